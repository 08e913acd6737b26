//! The models that ship, one file each.

mod sse;
mod draft;
mod history;
mod trouble;
mod adapter;
mod openai;
mod responses;
mod anthropic;
mod gemini;
mod connection;
mod scripted;

pub use self::{
    connection::{ApiKey, ConnectionError, ModelConnection, ModelProvider, model},
    scripted::ScriptedModel,
};
