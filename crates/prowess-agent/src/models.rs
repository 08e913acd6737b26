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
mod provider;
mod connection;
mod scripted;

pub use self::{
    connection::{ApiKey, ConnectionError, ModelConnection, model},
    provider::{ModelProvider, ProviderRow},
    scripted::ScriptedModel,
};
