//! Reading a trace, summing it up, and making a page of it.
//!
//! A trace comes from anywhere: whatever stands in it is taken as text and nothing else.

mod read;
mod summary;
mod page;

pub use self::{
    read::{RecordedTrace, TraceError},
    summary::{Summary, TotalOfTool, UseOfSkill},
};
