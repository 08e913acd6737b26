//! The layers that ship, each of use without the others.

mod calling;
mod skills;
mod spans;
mod trace;

pub use self::{
    calling::Calling,
    skills::{Showing, Skills},
    spans::Spans,
    trace::Trace,
};
pub(crate) use self::{spans::TARGET as SPANS_TARGET, trace::VERSION as TRACE_VERSION};
