//! Reads shell scripts: what a POSIX shell takes, and what people use of bash.
//!
//! The reader is conservative: it takes time in proportion to the text, goes down a bounded number
//! of levels, and refuses what it does not understand. It expands nothing. Where `sh` and `bash`
//! read a text differently it takes the reading in which more is run: `((…))` are two subshells,
//! and `[[ … && … ]]` keeps its parts.

mod parser;
mod word;

pub(crate) use self::word::{is_name, literal, unescaped};

/// A list of statements.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Script(pub(crate) Vec<Statement>);

/// A pipeline, and how it stands to the next one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Statement {
    /// Its commands, each writing to the next.
    pub(crate) pipeline: Vec<Command>,
    /// Whether `!` stands before it.
    pub(crate) is_negated: bool,
    /// What stands behind it.
    pub(crate) joint: Joint,
}

/// What stands between two statements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Joint {
    /// `;`, a line end, or nothing.
    Then,
    /// `&&`.
    And,
    /// `||`.
    Or,
    /// `&`.
    Background,
}

/// One command of a pipeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Command {
    /// What it does.
    pub(crate) kind: Kind,
    /// Where its streams lead.
    pub(crate) redirects: Vec<Redirect>,
    /// The line it begins on, counted from 1.
    pub(crate) line: usize,
}

/// What a command does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    /// It runs a program, a builtin or a function.
    Simple {
        /// What stands before the name.
        assignments: Vec<Assignment>,
        /// The name and what follows.
        words: Vec<Word>,
    },
    /// It defines a function.
    Function {
        /// Its name.
        name: Word,
        /// What it does.
        body: Box<Command>,
    },
    /// It holds other commands together.
    Compound {
        /// How.
        form: Form,
        /// The words it has itself: of a loop, a choice or a test.
        words: Vec<Word>,
        /// The scripts inside it, in their order.
        bodies: Vec<Script>,
    },
}

/// How a command holds others together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Form {
    /// `{ …; }`.
    Group,
    /// `( … )`.
    Subshell,
    /// `if …; then …; fi`.
    If,
    /// `while …; do …; done`, or `until`.
    While,
    /// `for NAME in …; do …; done`, or `select`.
    For(String),
    /// `case … in … esac`.
    Case,
    /// `[[ … ]]`; the operators are words.
    Test,
}

/// `NAME=value`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Assignment {
    /// The name.
    pub(crate) name: String,
    /// Whether it adds to what is there.
    pub(crate) adds: bool,
    /// One word, or those of a list.
    pub(crate) value: Vec<Word>,
}

/// Where a stream leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Redirect {
    /// Which way.
    pub(crate) way: Way,
    /// The file; of a here-document its text.
    pub(crate) target: Word,
}

/// Which way a stream leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// It is read from a file.
    In,
    /// It is written to a file.
    Out,
    /// It is a copy of another stream.
    Copy,
    /// It is read from what stands in the script.
    Here,
}

/// A word before it is expanded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Word(pub(crate) Vec<Part>);

/// A part of a word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part {
    /// Text that stands for itself, but for globs, braces and a tilde at the start.
    Plain(String),
    /// Text that stands for itself.
    Quoted(String),
    /// A variable or parameter, with what is done to it.
    Variable {
        /// Its name.
        name: String,
        /// Where it stands between double quotes.
        is_quoted: bool,
        /// What follows the name between the braces, such as `:-default`.
        rest: Vec<Self>,
    },
    /// What a command prints.
    Substitution {
        /// The command.
        script: Script,
        /// Where it stands between double quotes.
        is_quoted: bool,
    },
    /// A file from which can be read what a command prints, or written what it reads.
    Process(Script),
    /// A number, with what has to be expanded for it.
    Arithmetic(Vec<Self>),
    /// The words of a list: `NAME=(…)`.
    List(Vec<Word>),
}

/// A text is no script, or none that is understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {message}")]
pub(crate) struct ShellError {
    /// The line, counted from 1.
    pub(crate) line: usize,
    /// What is wrong.
    pub(crate) message: String,
}

/// Reads a script.
pub(crate) fn parse(text: &str) -> Result<Script, ShellError> {
    match text.find('\0') {
        Some(at) => {
            let line = text[..at].matches('\n').count() + 1;
            Err(ShellError { line, message: "there is a null character".to_owned() })
        }
        None => parser::Parser::new(text, 1, 0).script(),
    }
}

#[cfg(test)]
mod tests;
