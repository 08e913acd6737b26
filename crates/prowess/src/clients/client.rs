//! What is known of a client: where it looks, and what it does at which symptom.

use super::{symptom::Symptom, verdict::Verdict};

/// A program that finds skills by itself, and what is known of it.
#[derive(Debug)]
pub struct Client {
    /// What it is called here, such as `claude-code`.
    pub name: &'static str,
    /// What its makers call it.
    pub label: &'static str,
    /// Files and directories that show that it is installed, or used in this project. Written like the path of a
    /// [`Spot`]; one of the project is also looked for in the folders above, as far as the repository goes.
    pub markers: &'static [&'static str],
    /// Names of its program, one of which is on the `PATH` where it is installed.
    pub programs: &'static [&'static str],
    /// The directories that it looks into, the first taken first. None where whoever uses it names them.
    pub spots: &'static [Spot],
    /// What it does when two skills have one name.
    pub clash: Clash,
    /// Whether a skill goes by the name of its folder, whatever its frontmatter says.
    pub by_folder: bool,
    /// How many characters all descriptions together may take before they are shortened.
    pub room: Option<usize>,
    /// What it does at which symptom. What it does at others is not known.
    pub facts: &'static [Fact],
    /// Where it is said which directories it looks into, and in which order.
    pub source: &'static Citation,
}

/// A directory that a client looks into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spot {
    /// Its path: in the project, below `~`, below a variable such as `$CODEX_HOME`, or absolute.
    pub path: &'static str,
    /// Whether it is also looked for in the folders above, as far as the repository goes.
    pub upwards: bool,
}

/// What a client does when two skills have one name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clash {
    /// The one in the directory that comes first is taken.
    First,
    /// Both are taken.
    Both,
    /// One is taken, and nobody can tell which.
    Random,
    /// It is not known.
    Unknown,
}

/// What a client does at some symptoms, and who says so.
#[derive(Debug)]
pub struct Fact {
    /// What it does.
    pub verdict: Verdict,
    /// At which symptoms.
    pub symptoms: &'static [Symptom],
    /// Who says so.
    pub source: &'static Citation,
}

/// Where something can be read about a client, and when that was looked up.
#[derive(Debug, PartialEq, Eq)]
pub struct Citation {
    /// A page, or a file of the client's repository.
    pub url: &'static str,
    /// The day.
    pub checked: &'static str,
}

/// Variables that move a directory of a client, and where it is without them.
pub const VARIABLES: &[(&str, &str)] = &[
    ("CLAUDE_CONFIG_DIR", "~/.claude"),
    ("CODEX_HOME", "~/.codex"),
    ("COPILOT_HOME", "~/.copilot"),
    ("HERMES_HOME", "~/.hermes"),
    ("KIMI_CODE_HOME", "~/.kimi-code"),
    ("OPENCLAW_STATE_DIR", "~/.openclaw"),
    ("QWEN_HOME", "~/.qwen"),
    ("VIBE_HOME", "~/.vibe"),
    ("XDG_CONFIG_HOME", "~/.config"),
];

impl Client {
    /// Whether whoever uses it names its directories.
    pub fn is_told_where(&self) -> bool {
        self.spots.is_empty()
    }

    /// Whether it is known to follow a link to the folder of a skill.
    pub fn follows_links(&self, in_project: bool) -> bool {
        let says = |verdict: Verdict, symptom: Symptom| {
            self.facts.iter().any(|it| it.verdict == verdict && it.symptoms.contains(&symptom))
        };
        says(Verdict::Loads, Symptom::FolderLink)
            && !(in_project && says(Verdict::Unseen, Symptom::ProjectLink))
    }

    /// Whether something is known about a symptom, whatever its number.
    pub(crate) fn knows(&self, symptom: Symptom) -> bool {
        let is_it = |it: &Symptom| std::mem::discriminant(it) == std::mem::discriminant(&symptom);
        self.facts.iter().any(|fact| fact.symptoms.iter().any(is_it))
    }
}

impl Spot {
    /// Whether it lies in the project, and not with the user or the system.
    pub fn is_in_project(&self) -> bool {
        !self.path.starts_with(['~', '$', '/'])
    }

    /// The path with what a variable stands for where it is not set.
    pub fn usual(&self) -> String {
        match self.variable() {
            Some((usual, _, rest)) => format!("{usual}{rest}"),
            None => self.path.to_owned(),
        }
    }

    /// The variable that it begins with: its usual value, its name, and the rest.
    pub(crate) fn variable(&self) -> Option<(&'static str, &'static str, &'static str)> {
        let path = self.path.strip_prefix('$')?;
        let (name, rest) = path.split_at(path.find('/').unwrap_or(path.len()));
        VARIABLES.iter().find(|it| it.0 == name).map(|it| (it.1, it.0, rest))
    }
}
