//! An agent: it is asked for something, takes up the skills for it, calls tools, and answers.
//!
//! The modules stand in the order a request passes through them. Everything on the way is a
//! [`Layer`], and each is of use without the others. Nothing here starts a process or opens a file.
#![warn(missing_docs)]

mod event;
mod session;
mod request;
mod error;
mod layer;
mod layers;
mod model;
mod models;
mod agent;

pub use crate::{
    agent::{Agent, Answer},
    error::TurnError,
    event::{Event, Score, Source, What},
    layer::{Called, Layer, Next, NextCall, Replied},
    layers::{Calling, Servers},
    model::{Ask, Delta, Model, ModelError, Offered, Reply, Replying, Spent, Stop},
    models::Scripted,
    request::{Context, Request, Told, Turn},
    session::{Session, SessionError},
};
