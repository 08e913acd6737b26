//! The layers that ship, each of use without the others.

mod boundary;
mod logging;
mod retrieval;
mod folder;
mod guard;
mod approval;
mod calling;
mod last;
mod spending;
mod summary;
mod fit;
mod retry;

pub use self::{
    approval::{Approval, Witness},
    boundary::Boundary,
    calling::Calling,
    fit::Fit,
    folder::Folder,
    guard::{Guard, When},
    logging::Logging,
    retrieval::{Document, Documents, Retrieval, Retrieving},
    retry::Retry,
    spending::{Budget, Price, Spending},
};
