//! Login to remote servers by OAuth 2.1, as in the authorization chapter of MCP (2025-11-25).
//!
//! A person logs in once (`login`); requests then have a token that is renewed when it expires
//! (`bearer`). Nothing here follows a redirect, and a token is only sent to the server that it was
//! issued for.

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
