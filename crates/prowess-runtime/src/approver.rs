//! Whoever can be asked whether something may be done.

use std::{fmt, future::Future, path::PathBuf, pin::Pin};

/// Whoever can be asked whether something may be done.
///
/// An implementer owes an honest answer: whatever is not a yes is [`Reply::No`], also when nobody
/// could be reached. The texts of a question come from skills and models; whoever shows them makes
/// them safe first.
pub trait Approver: Send + Sync + fmt::Debug {
    /// Who answers, in one word for the records: `person`, `flag`, `nobody`.
    fn who(&self) -> &str;

    /// Asks.
    fn ask<'a>(&'a self, question: &'a Question) -> Answering<'a>;
}

/// A reply, once it is waited for.
pub type Answering<'a> = Pin<Box<dyn Future<Output = Reply> + Send + 'a>>;

/// What somebody is asked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Question {
    /// What would be done, in one line.
    pub what: String,
    /// Why it is asked, in one line.
    pub why: String,
    /// What would run: a script, a command.
    pub content: Option<String>,
    /// What has changed since it was approved, as lines with `+` and `-`.
    pub difference: Option<String>,
    /// The files that would be approved with it, one a line, what can run first; bounded.
    pub files: Option<String>,
    /// What it would be given in this call, which an approval for good does not look at; bounded.
    pub given: Option<String>,
    /// Where all of it lies.
    pub place: Option<PathBuf>,
}

/// What somebody replies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply {
    /// It may not be done.
    No,
    /// It may be done this time.
    Once,
    /// It may be done as long as nothing about it changes.
    Always,
}

/// Nobody is there: everything that is asked is refused.
#[derive(Debug, Clone, Copy, Default)]
pub struct Nobody;

/// Whoever has agreed before, by a flag such as `--yes`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Agreed;

impl Approver for Nobody {
    fn who(&self) -> &str {
        "nobody"
    }

    fn ask<'a>(&'a self, _: &'a Question) -> Answering<'a> {
        Box::pin(async { Reply::No })
    }
}

impl Approver for Agreed {
    fn who(&self) -> &str {
        "flag"
    }

    fn ask<'a>(&'a self, _: &'a Question) -> Answering<'a> {
        Box::pin(async { Reply::Always })
    }
}
