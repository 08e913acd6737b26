//! Asks for approval.

use std::{fmt, future::Future, path::PathBuf, pin::Pin};

/// Answers questions on whether an action is allowed.
///
/// An implementation must be honest: anything but a yes is [`ApproverReply::No`], including that
/// nobody could be reached. The texts of a question come from skills and models; sanitize them
/// before they are displayed.
pub trait Approver: Send + Sync + fmt::Debug {
    /// Returns who answers, in one word for the records: `person`, `flag`, `nobody`.
    fn who(&self) -> &str;

    /// Returns who answers this question, if that varies.
    fn who_answers(&self, _: &Question) -> &str {
        self.who()
    }

    /// Asks.
    fn ask<'a>(&'a self, question: &'a Question) -> ApproverFuture<'a>;
}

/// The future of a reply.
pub type ApproverFuture<'a> = Pin<Box<dyn Future<Output = ApproverReply> + Send + 'a>>;

/// A question for approval.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Question {
    /// The action, in one line.
    pub what: String,
    /// The reason for the question, in one line.
    pub why: String,
    /// The script or command to run.
    pub content: Option<String>,
    /// The changes since the last approval, as lines with `+` and `-`.
    pub difference: Option<String>,
    /// The files that would be approved with it, one per line, executable ones first; bounded.
    pub files: Option<String>,
    /// The input of this call, which a permanent approval does not cover; bounded.
    pub given: Option<String>,
    /// The path of the skill or file.
    pub place: Option<PathBuf>,
    /// The changes to a file, as lines with `+` and `-`; bounded.
    pub diff: Option<String>,
    /// The resources that it could access, one per line: directories, the network.
    pub reach: Vec<String>,
    /// The coverage of an answer.
    pub coverage: Coverage,
    /// Whether a person must answer, rather than a flag such as `--yes`.
    pub in_person: bool,
}

/// The coverage of an answer beyond this call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Coverage {
    /// All further calls, until something about it changes.
    #[default]
    UntilChange,
    /// None: it is asked about each time.
    Once,
    /// As described by these texts.
    More {
        /// The coverage of an answer for this session.
        session: String,
        /// The coverage of a permanent answer.
        always: String,
    },
}

/// A reply to a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApproverReply {
    /// Denied.
    No,
    /// Allowed this time.
    Once,
    /// Allowed as long as the program runs, as far as the [`Coverage`] says.
    Session,
    /// Allowed as long as nothing about it changes.
    Always,
}

/// Refuses every question, because nobody can be asked.
#[derive(Debug, Clone, Copy, Default)]
pub struct DenyAll;

/// Answers yes to every question, because of a flag such as `--yes`.
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
        // A flag is set without knowledge of the file or command, so nothing is remembered.
        let reply = match question {
            Question { in_person: true, .. } => ApproverReply::No,
            Question { coverage: Coverage::UntilChange, .. } => ApproverReply::Always,
            Question { coverage: Coverage::Once | Coverage::More { .. }, .. } => {
                ApproverReply::Once
            }
        };
        Box::pin(async move { reply })
    }
}
