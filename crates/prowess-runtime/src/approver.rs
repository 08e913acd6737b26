//! Whoever can be asked whether something may be done.

use std::{fmt, future::Future, path::PathBuf, pin::Pin};

/// Whoever can be asked whether something may be done.
///
/// An implementer owes an honest answer: whatever is not a yes is [`ApproverReply::No`], also when nobody
/// could be reached. The texts of a question come from skills and models; whoever shows them makes
/// them safe first.
pub trait Approver: Send + Sync + fmt::Debug {
    /// Who answers, in one word for the records: `person`, `flag`, `nobody`.
    fn who(&self) -> &str;

    /// Who answers this question, where that is not always the same.
    fn who_answers(&self, _: &Question) -> &str {
        self.who()
    }

    /// Asks.
    fn ask<'a>(&'a self, question: &'a Question) -> ApproverFuture<'a>;
}

/// A reply, once it is waited for.
pub type ApproverFuture<'a> = Pin<Box<dyn Future<Output = ApproverReply> + Send + 'a>>;

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
    /// What would change in a file, as lines with `+` and `-`; bounded.
    pub diff: Option<String>,
    /// What it could reach, one line each: directories, the network.
    pub reach: Vec<String>,
    /// What an answer covers.
    pub coverage: Coverage,
    /// Whether a person has to agree, so that no flag such as `--yes` answers it.
    pub in_person: bool,
}

/// What an answer can cover beside this one time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Coverage {
    /// All further times, until something about it changes.
    #[default]
    UntilChange,
    /// Nothing: it is asked about each time.
    Once,
    /// More, as far as these say in words.
    More {
        /// An answer for this session.
        session: String,
        /// An answer for good.
        always: String,
    },
}

/// What somebody replies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApproverReply {
    /// It may not be done.
    No,
    /// It may be done this time.
    Once,
    /// It may be done as long as the program runs, as far as the [`Coverage`] says.
    Session,
    /// It may be done as long as nothing about it changes.
    Always,
}

/// Nobody is there: everything that is asked is refused.
#[derive(Debug, Clone, Copy, Default)]
pub struct DenyAll;

/// Whoever has agreed before, by a flag such as `--yes`.
#[derive(Debug, Clone, Copy, Default)]
pub struct ApproveAll;

impl Approver for DenyAll {
    fn who(&self) -> &str {
        "nobody"
    }

    fn ask<'a>(&'a self, _: &'a Question) -> ApproverFuture<'a> {
        Box::pin(async { ApproverReply::No })
    }
}

impl Approver for ApproveAll {
    fn who(&self) -> &str {
        "flag"
    }

    fn ask<'a>(&'a self, question: &'a Question) -> ApproverFuture<'a> {
        // Whoever agrees ahead has not seen which file or command it is, so nothing of it is kept.
        let reply = match question {
            Question { in_person: true, .. } => ApproverReply::No,
            Question { coverage: Coverage::UntilChange, .. } => ApproverReply::Always,
            _ => ApproverReply::Once,
        };
        Box::pin(async move { reply })
    }
}
