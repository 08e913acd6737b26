//! An agent: receives a request, activates the matching skills, calls tools, and answers.
//!
//! ```
//! use std::sync::Arc;
//!
//! use prowess::{Library, Options};
//! use prowess_agent::{Agent, ScriptedModel, Session};
//! use serde_json::json;
//!
//! # tokio::runtime::Runtime::new()?.block_on(async {
//! let options = Options { sources: vec![prowess::bundled()], ..Options::default() };
//! let library = Arc::new(Library::load(&options)?);
//! // Any other model goes here; this one says what it was told to say.
//! let model = ScriptedModel::new()
//!     .calls("use_skill", json!({"name": "write-tests"}))
//!     .says("Here you are.");
//! let agent = Agent::builder(Arc::new(model)).skills(library).build();
//! let answer = agent.ask(&Session::new("first"), "Test this function").await?;
//! assert_eq!((&*answer.message.content, answer.steps), ("Here you are.", 2));
//! # Ok::<(), Box<dyn std::error::Error>>(()) })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! What it is asked is awaited in a `tokio` runtime. The agent only reads: what does more needs a
//! policy that allows it, or an approver; see [`AgentBuilder`].
//!
//! The modules are in the order a request passes through them, and each uses only those before it.
//! Everything between the agent and its model is a [`Middleware`], and each one works without the
//! others. Nothing here starts a process, opens a file, prints, or reads the environment.
//!
//! Middleware can be added to [`Agent::new`] in any order; the first is the outermost. The usual order is:
//!
//! 1. observers (trace, spans, logging): they receive every event in any position, and outermost
//!    they also see calls as they were made;
//! 2. the error boundary, which catches failures of everything behind it;
//! 3. middleware that adds to a request, once per turn: [`Skills`], servers, retrieval;
//! 4. middleware that can reject calls: guardrails, approval;
//! 5. [`ToolLoop`]: everything behind it runs once per step;
//! 6. spending limits, so that no further step is taken;
//! 7. fitting into the context window, so that it counts what all others added;
//! 8. retries, next to the model, so that the same request is sent again.
#![warn(missing_docs)]

mod model;
mod event;
mod session;
mod error;
mod middleware;
mod models;
mod builtin;
mod agent;
mod page;
mod trace;
mod otlp;

#[cfg(feature = "mcp")]
pub use crate::builtin::Servers;
pub use crate::{
    agent::{Agent, AgentAnswer, AgentBuilder},
    builtin::{
        Approval, Budget, CatchErrors, ContextDocument, DocumentSource, FitContext, Folder, Guard,
        Logging, Price, RecordingApprover, Retrieval, RetrievalFuture, Retry, SkillOptions, Skills,
        Spans, Spending, ToolLoop, Trace, When,
    },
    error::TurnError,
    event::{Event, EventDescription, EventKind, EventLevel, FieldValue, PromptSource, SkillScore},
    middleware::{
        CallFuture, Middleware, Next, NextCall, ResponseFuture,
        request::{Context, Request, SkillInHistory, Turn},
    },
    model::{
        ChatRequest, ChatResponse, Delta, Model, ModelError, ModelFuture, StopReason, TokenUsage,
        ToolDefinition,
    },
    models::{
        ApiKey, ConnectionError, ModelConnection, ModelProvider, ProviderRow, ScriptedModel, model,
    },
    otlp::{Collector, CollectorError, CollectorProtocol, Otlp, SpanExporter},
    page::HtmlPage,
    session::{Session, SessionError},
    trace::{RecordedTrace, Summary, TotalOfTool, TraceError, UseOfSkill},
};
