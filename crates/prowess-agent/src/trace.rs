//! Reads traces, summarizes them, and renders them as a page.
//!
//! A trace is untrusted: everything in it is treated as plain text.

mod read;
mod summary;
mod page;

pub use self::{
    read::{RecordedTrace, TraceError},
    summary::{Summary, TotalOfTool, UseOfSkill},
};
