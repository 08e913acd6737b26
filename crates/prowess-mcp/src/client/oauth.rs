//! Logging in to servers behind an address, by OAuth 2.1 as the authorization chapter of MCP (2025-11-25) has it.
//!
//! A person logs in once (`login`); requests then carry a token that is renewed when it expires (`bearer`).
//! Nothing here follows a redirect, and a token goes to the server that it was given out for and to nobody else.

mod secret;
mod error;
mod web;
mod challenge;
mod discovery;
mod registration;
mod token;
mod callback;
mod device;
mod token_file;
mod bearer;
mod login;

pub(super) use self::{bearer::Bearer, challenge::Challenge, login::LoginJob};
pub use self::{
    error::LoginError,
    login::{LoginPrompt, LoginRequest},
    token_file::{LoginState, Logins},
};
