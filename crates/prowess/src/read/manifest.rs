//! The fields of a skill's frontmatter.

use std::{fmt, sync::LazyLock};

use prowess_frontmatter::{Field, Value};

/// The frontmatter of a skill, typed. A field that is not there is empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Manifest {
    /// What it is called; not always a name that the specification allows.
    pub name: Box<str>,
    /// What it does and when to use it.
    pub description: Box<str>,
    /// Under which terms it comes.
    pub license: Option<Box<str>>,
    /// What it needs around it, in words.
    pub compatibility: Option<Box<str>>,
    /// Whatever else its author noted, as written.
    pub metadata: Box<[Field<'static>]>,
    /// The tools it may use without asking.
    pub allowed_tools: AllowedTools,
    /// Its version, as written.
    pub version: Option<Box<str>>,
    /// Who wrote it.
    pub author: Option<Box<str>>,
    /// Words to find it by.
    pub tags: Box<[Box<str>]>,
    /// What it does when it is run.
    pub kind: Type,
    /// Whether it is in use, where it says so; see [`status`](Self::status()).
    pub status: Option<Status>,
    /// The address it was imported from; empty for a local one.
    pub source: Option<Box<str>>,
    /// Who or what made it.
    pub created_by: Option<Box<str>>,
    /// Whether somebody has to agree before it runs.
    pub requires_approval: bool,
    /// What single clients understand, where any of it is used.
    pub dialect: Option<Box<Dialect>>,
    /// The fields nobody here knows, as written.
    pub unknown: Box<[Field<'static>]>,
}

/// Fields that clients have added and people use.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Dialect {
    /// The model does not see it; a person can still invoke it.
    pub disable_model_invocation: Option<bool>,
    /// A person can invoke it.
    pub user_invocable: Option<bool>,
    /// What to type behind its name.
    pub argument_hint: Option<Box<str>>,
    /// More about when to use it.
    pub when_to_use: Option<Box<str>>,
    /// Globs of the files it is about.
    pub paths: Box<[Box<str>]>,
    /// Where it runs: `fork` or `inline`.
    pub context: Option<Box<str>>,
    /// The agent that it is handed to.
    pub agent: Option<Box<str>>,
    /// The model that it wants.
    pub model: Option<Box<str>>,
    /// How hard the model should think.
    pub effort: Option<Box<str>>,
    /// What is run before and after it, as written.
    pub hooks: Option<Value<'static>>,
    /// What it needs: tools, programs, other skills.
    pub requires: Box<[Box<str>]>,
    /// Words that ask for it.
    pub triggers: Box<[Box<str>]>,
}

/// The tools that a skill may use without asking, such as `Read` or `Bash(git add:*)`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AllowedTools(pub Box<[Box<str>]>);

/// What a skill does when it is run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Type {
    /// It tells the model how to do something.
    #[default]
    Instruction,
    /// It is a plan of tool calls.
    Composite,
    /// It is a shell script.
    Script,
    /// It is a text with places to fill in.
    Template,
}

/// Whether a skill is in use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Status {
    /// In use.
    #[default]
    Active,
    /// Not yet in use.
    Draft,
    /// No longer in use.
    Disabled,
}

impl Manifest {
    /// Says whether the skill has a tag, whatever its case.
    pub fn has_tag(&self, tag: &str) -> bool {
        self.tags.iter().any(|own| own.eq_ignore_ascii_case(tag))
    }

    /// Whether it is in use; one that does not say so is.
    pub fn status(&self) -> Status {
        self.status.unwrap_or_default()
    }

    /// Whether the skill is in use.
    pub fn is_active(&self) -> bool {
        self.status() == Status::Active
    }

    /// Whether the model does not see the skill, so that only a person can invoke it.
    pub fn hides_from_model(&self) -> bool {
        self.dialect().disable_model_invocation == Some(true)
    }

    /// Whether a model may know of the skill: it is in use and does not hide from models.
    pub fn is_for_models(&self) -> bool {
        self.is_active() && !self.hides_from_model()
    }

    /// Whether a person can invoke the skill by its name.
    pub fn is_for_people(&self) -> bool {
        self.is_active() && self.dialect().user_invocable != Some(false)
    }

    /// The fields that clients have added; all empty when none is used.
    pub fn dialect(&self) -> &Dialect {
        static NONE: LazyLock<Dialect> = LazyLock::new(Dialect::default);
        self.dialect.as_deref().unwrap_or(&NONE)
    }
}

impl AllowedTools {
    /// Reads tools with spaces or commas between them, those inside parentheses left alone.
    pub fn from_text(text: &str) -> Self {
        let mut depth = 0_usize;
        let separates = |c: char| {
            match c {
                '(' => depth += 1,
                ')' => depth = depth.saturating_sub(1),
                _ => {}
            }
            depth == 0 && (c == ',' || c.is_whitespace())
        };
        Self(text.split(separates).filter(|it| !it.is_empty()).map(Box::from).collect())
    }

    /// The tools as the specification writes them, with spaces between; nothing when one of them
    /// would come apart.
    pub fn to_text(&self) -> Option<String> {
        let text = self.0.join(" ");
        (Self::from_text(&text) == *self).then_some(text)
    }
}

impl Type {
    /// Every type.
    pub const ALL: [Self; 4] = [Self::Instruction, Self::Composite, Self::Script, Self::Template];

    /// The word for it, as in a frontmatter.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Instruction => "instruction",
            Self::Composite => "composite",
            Self::Script => "script",
            Self::Template => "template",
        }
    }

    /// The type that a word stands for.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.as_str() == word)
    }
}

impl Status {
    /// Every status.
    pub const ALL: [Self; 3] = [Self::Active, Self::Draft, Self::Disabled];

    /// The word for it, as in a frontmatter.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Draft => "draft",
            Self::Disabled => "disabled",
        }
    }

    /// The status that a word stands for.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.as_str() == word)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
