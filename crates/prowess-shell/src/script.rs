//! The parsed form of a script. Nothing in it is expanded.

/// A shell script: a list of pipelines.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ShellScript(pub Vec<Pipeline>);

/// A pipeline, and the operator after it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pipeline {
    /// Its commands, each writing to the next.
    pub commands: Vec<ShellCommand>,
    /// Whether it is negated with `!`.
    pub is_negated: bool,
    /// The operator after it.
    pub operator: ListOperator,
}

/// The operator after a pipeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListOperator {
    /// `;`, a line end, or nothing.
    Sequence,
    /// `&&`.
    And,
    /// `||`.
    Or,
    /// `&`.
    Background,
}

/// One command of a pipeline.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShellCommand {
    /// The kind, with its words and bodies.
    pub kind: CommandKind,
    /// Its redirections, in order.
    pub redirects: Vec<Redirect>,
    /// The line it begins on, counted from 1.
    pub line: usize,
}

/// The kind of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandKind {
    /// A simple command: runs a program, a builtin or a function.
    Simple {
        /// The assignments before the name.
        assignments: Vec<Assignment>,
        /// The name and the arguments.
        words: Vec<Word>,
    },
    /// A function definition.
    Function {
        /// Its name.
        name: Word,
        /// Its body.
        body: Box<ShellCommand>,
    },
    /// A compound command.
    Compound {
        /// Its syntax.
        kind: CompoundKind,
        /// The words of a `for`, `case` or `[[ … ]]`.
        words: Vec<Word>,
        /// The scripts inside it, including conditions, in order.
        bodies: Vec<ShellScript>,
    },
}

/// The syntax of a compound command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CompoundKind {
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
#[non_exhaustive]
pub struct Assignment {
    /// The name.
    pub name: String,
    /// Whether it is `NAME+=value`.
    pub appends: bool,
    /// One word, or the words of a list.
    pub value: Vec<Word>,
}

/// A redirection.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Redirect {
    /// The kind.
    pub kind: RedirectKind,
    /// The file or descriptor; for a here-document, its text.
    pub target: Word,
}

/// The kind of a redirection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RedirectKind {
    /// Reads from a file.
    Input,
    /// Writes to a file.
    Output,
    /// Duplicates a descriptor.
    Duplicate,
    /// Reads from a here-document or here-string.
    Here,
}

/// A word before it is expanded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Word(pub Vec<WordPart>);

/// A part of a word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WordPart {
    /// Unquoted text, in which globs, braces and a tilde at the start are still to be expanded.
    Plain(String),
    /// Quoted text.
    Quoted(String),
    /// A parameter expansion, such as `$name` or `${name:-default}`.
    Variable {
        /// Its name.
        name: String,
        /// Whether it is in double quotes.
        is_quoted: bool,
        /// The rest between the braces, such as `:-default`.
        rest: Vec<Self>,
    },
    /// A command substitution.
    Substitution {
        /// The command.
        script: ShellScript,
        /// Whether it is in double quotes.
        is_quoted: bool,
    },
    /// A process substitution, `<(…)` or `>(…)`.
    Process(ShellScript),
    /// An arithmetic expansion, with the expansions inside it.
    Arithmetic(Vec<Self>),
    /// The words of a list: `NAME=(…)`.
    List(Vec<Word>),
}

impl Word {
    /// Returns the text of the word, unless it has an expansion other than a glob, braces or a
    /// tilde.
    ///
    /// ```
    /// let script = prowess_shell::parse("'l's -l").unwrap();
    /// let prowess_shell::CommandKind::Simple { words, .. } = &script.0[0].commands[0].kind else {
    ///     unreachable!()
    /// };
    /// assert_eq!(words[0].literal().as_deref(), Some("ls"));
    /// ```
    pub fn literal(&self) -> Option<String> {
        let parts = self.0.iter().map(|it| match it {
            WordPart::Plain(text) | WordPart::Quoted(text) => Some(text.as_str()),
            _ => None,
        });
        parts.collect()
    }
}
