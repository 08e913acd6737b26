//! An agent: it is asked for something, takes up the skills for it, calls tools, and answers.
//!
//! The modules are in the order a request passes through them, and each uses only those before it. Everything on the way is a
//! [`Middleware`], and each is of use without the others. Nothing here starts a process, opens a file,
//! prints, or reads the environment.
//!
//! Middleware may stand in any order, the first outermost. This one is usual:
//!
//! 1. what looks on (trace, spans, logging): it is told of everything wherever it stands, and
//!    outermost it also sees calls as they were made;
//! 2. the error boundary, which catches what goes wrong behind it;
//! 3. what adds to a request, once a turn: [`Skills`], servers, retrieval;
//! 4. what says no to calls: guardrails, approval;
//! 5. [`ToolLoop`], behind which everything is passed once a step;
//! 6. limits of spending, so that no further step is taken;
//! 7. fitting into the window, so that it counts what all the others added;
//! 8. retries, next to the model, so that the same request is sent again.
//!
//! ```
//! use std::sync::Arc;
//!
//! use prowess::{Library, Options};
//! use prowess_agent::{Agent, ScriptedModel, Session, SkillOptions, Skills};
//!
//! # tokio::runtime::Runtime::new()?.block_on(async {
//! let options = Options { sources: vec![prowess::bundled()], ..Options::default() };
//! let library = Arc::new(Library::load(&options)?);
//! let agent = Agent::new(Arc::new(ScriptedModel::new().says("Here you are.")))
//!     .with(Skills::new(Some(Arc::new(library)), SkillOptions::default()));
//! let answer = agent.ask(&Session::new("first"), "Open a pull request").await?;
//! assert_eq!(answer.message.content, "Here you are.");
//! # Ok::<(), Box<dyn std::error::Error>>(()) })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![warn(missing_docs)]

mod model;
mod mask;
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

pub use crate::{
    agent::{Agent, AgentAnswer},
    builtin::{
        Approval, Budget, CatchErrors, ContextDocument, DocumentSource, FitContext, Folder, Guard,
        Logging, Price, RecordingApprover, Retrieval, RetrievalFuture, Retry, Servers,
        SkillOptions, Skills, Spans, Spending, ToolLoop, Trace, When,
    },
    error::TurnError,
    event::{Event, EventKind, PromptSource, SkillScore},
    mask::{KnownSecrets, Masking, mask},
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
