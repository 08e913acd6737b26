//! The built-in middleware; each one works without the others.

mod boundary;
mod trace;
mod spans;
mod logging;
mod skills;
mod retrieval;
mod folder;
mod guard;
mod approval;
mod calling;
#[cfg(feature = "mcp")]
mod servers;
mod last;
mod spending;
mod summary;
mod fit;
mod retry;

#[cfg(feature = "mcp")]
pub use self::servers::Servers;
pub use self::{
    approval::{Approval, RecordingApprover},
    boundary::CatchErrors,
    calling::ToolLoop,
    fit::FitContext,
    folder::Folder,
    guard::{Guard, When},
    logging::Logging,
    retrieval::{ContextDocument, DocumentSource, Retrieval, RetrievalFuture},
    retry::Retry,
    skills::{SkillOptions, Skills},
    spans::Spans,
    spending::{Budget, Price, Spending},
    trace::Trace,
};
pub(crate) use self::{spans::TARGET as SPANS_TARGET, trace::VERSION as TRACE_VERSION};
