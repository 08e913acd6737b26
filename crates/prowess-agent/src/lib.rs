//! An agent: it is asked for something, takes up the skills for it, calls tools, and answers.
//!
//! The modules stand in the order a request passes through them. Everything on the way is a
//! [`Layer`], and each is of use without the others. Nothing here starts a process or opens a file.
#![warn(missing_docs)]

mod event;
mod session;
mod request;
mod error;
mod mask;
mod layer;
mod layers;
mod model;
mod models;
mod agent;
mod trace;
mod otlp;

pub use crate::{
    agent::{Agent, Answer},
    error::TurnError,
    event::{Event, Score, Source, What},
    layer::{Called, Layer, Next, NextCall, Replied},
    layers::{Calling, Spans, Trace},
    mask::mask,
    model::{Ask, Delta, Model, ModelError, Offered, Reply, Replying, Spent, Stop},
    models::Scripted,
    otlp::{Collector, CollectorError, Otlp, Sending},
    request::{Context, Request, Told, Turn},
    session::{Session, SessionError},
    trace::{Summary, TotalOfTool, TraceError, Traced, UseOfSkill},
};
