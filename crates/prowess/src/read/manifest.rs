//! The fields of a skill's frontmatter.

use std::{fmt, sync::LazyLock};

use prowess_frontmatter::{Field, Value};

/// The frontmatter of a skill, typed. A missing field is empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Manifest {
    /// The name; not always one that the specification allows.
    pub name: Box<str>,
    /// A description of what the skill does and when to use it.
    pub description: Box<str>,
    /// The license.
    pub license: Option<Box<str>>,
    /// The environment requirements, in words.
    pub compatibility: Option<Box<str>>,
    /// The author's other metadata, as written.
    pub metadata: Box<[Field<'static>]>,
    /// The tools that the skill may use without asking.
    pub allowed_tools: AllowedTools,
    /// Its version, as written.
    pub version: Option<Box<str>>,
    /// The author.
    pub author: Option<Box<str>>,
    /// Keywords for search.
    pub tags: Box<[Box<str>]>,
    /// The type: what the skill does when it is run.
    pub kind: Type,
    /// The status, if stated; see [`status`](Self::status()).
    pub status: Option<Status>,
    /// The address that it was imported from; empty for a local skill.
    pub source: Option<Box<str>>,
    /// The person or program that created it.
    pub created_by: Option<Box<str>>,
    /// Whether running it requires an approval.
    pub requires_approval: bool,
    /// Client-specific fields, if any is used.
    pub dialect: Option<Box<Dialect>>,
    /// Unknown fields, as written.
    pub unknown: Box<[Field<'static>]>,
}

/// Client-specific fields that are in use.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Dialect {
    /// Hides the skill from the model; a person can still invoke it.
    pub disable_model_invocation: Option<bool>,
    /// Whether a person can invoke it.
    pub user_invocable: Option<bool>,
    /// A hint at the arguments that follow its name.
    pub argument_hint: Option<Box<str>>,
    /// More on when to use it.
    pub when_to_use: Option<Box<str>>,
    /// Globs of the files that it is about.
    pub paths: Box<[Box<str>]>,
    /// The context that it runs in: `fork` or `inline`.
    pub context: Option<Box<str>>,
    /// The agent that it is delegated to.
    pub agent: Option<Box<str>>,
    /// The model to use.
    pub model: Option<Box<str>>,
    /// The reasoning effort.
    pub effort: Option<Box<str>>,
    /// Hooks that run before and after it, as written.
    pub hooks: Option<Value<'static>>,
    /// Dependencies: tools, programs, other skills.
    pub requires: Box<[Box<str>]>,
    /// Words that trigger it.
    pub triggers: Box<[Box<str>]>,
}

/// The tools that a skill may use without asking, such as `Read` or `Bash(git add:*)`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AllowedTools(pub Box<[Box<str>]>);

/// The type of a skill: what it does when it is run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Type {
    /// Tells the model how to do something.
    #[default]
    Instruction,
    /// A plan of tool calls.
    Composite,
    /// A shell script.
    Script,
    /// A text with placeholders.
    Template,
}

/// The status of a skill: whether it is in use.
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
    /// Returns whether the skill has a tag, ignoring case.
    pub fn has_tag(&self, tag: &str) -> bool {
        self.tags.iter().any(|own| own.eq_ignore_ascii_case(tag))
    }

    /// Returns the status; active if none is stated.
    pub fn status(&self) -> Status {
        self.status.unwrap_or_default()
    }

    /// Whether the skill is in use.
    pub fn is_active(&self) -> bool {
        self.status() == Status::Active
    }

    /// Whether the skill is hidden from the model, so that only a person can invoke it.
    pub fn hides_from_model(&self) -> bool {
        self.dialect().disable_model_invocation == Some(true)
    }

    /// Whether a model may see the skill: it is in use and not hidden from models.
    pub fn is_for_models(&self) -> bool {
        self.is_active() && !self.hides_from_model()
    }

    /// Whether a person can invoke the skill by its name.
    pub fn is_for_people(&self) -> bool {
        self.is_active() && self.dialect().user_invocable != Some(false)
    }

    /// Returns the client-specific fields; all empty when none is used.
    pub fn dialect(&self) -> &Dialect {
        static NONE: LazyLock<Dialect> = LazyLock::new(Dialect::default);
        self.dialect.as_deref().unwrap_or(&NONE)
    }
}

impl AllowedTools {
    /// Parses tools separated by spaces or commas, except inside parentheses.
    pub fn from_text(text: &str) -> Self {
        let mut depth = 0_usize;
        Self(
            text.split(|c: char| {
                match c {
                    '(' => depth += 1,
                    ')' => depth = depth.saturating_sub(1),
                    _ => {}
                }
                depth == 0 && (c == ',' || c.is_whitespace())
            })
            .filter(|it| !it.is_empty())
            .map(Box::from)
            .collect(),
        )
    }

    /// Returns the tools as the specification writes them, separated by spaces; `None` if one of
    /// them contains a separator.
    pub fn to_text(&self) -> Option<String> {
        let text = self.0.join(" ");
        (Self::from_text(&text) == *self).then_some(text)
    }
}

impl Type {
    /// Every type.
    pub const ALL: [Self; 4] = [Self::Instruction, Self::Composite, Self::Script, Self::Template];

    /// Returns the word for it, as in a frontmatter.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Instruction => "instruction",
            Self::Composite => "composite",
            Self::Script => "script",
            Self::Template => "template",
        }
    }

    /// Returns the type with this name.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.as_str() == word)
    }
}

impl Status {
    /// Every status.
    pub const ALL: [Self; 3] = [Self::Active, Self::Draft, Self::Disabled];

    /// Returns the word for it, as in a frontmatter.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Draft => "draft",
            Self::Disabled => "disabled",
        }
    }

    /// Returns the status with this name.
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
