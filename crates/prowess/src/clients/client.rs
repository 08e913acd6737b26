//! The facts about a client: the directories that it reads, and its treatment of each symptom.

use super::{citation::Citation, mcp::McpSettings, symptom::Symptom, verdict::Verdict};

/// A program that finds skills by itself, with the facts about it.
#[derive(Debug)]
#[non_exhaustive]
pub struct Client {
    /// The name used here, such as `claude-code`.
    pub name: &'static str,
    /// The name that its makers use.
    pub label: &'static str,
    /// Files and directories that show that it is installed, or used in this project. Written like
    /// the path of a [`Spot`]; one of the project is also looked for in the parent folders, up to
    /// the root of the repository.
    pub markers: &'static [&'static str],
    /// Names of its program, one of which is on the `PATH` if it is installed.
    pub programs: &'static [&'static str],
    /// The directories that it reads, in order of precedence. None if its user configures them.
    pub spots: &'static [Spot],
    /// The preset with the directories that are its own.
    pub preset: Option<Preset>,
    /// The behaviour when two skills have the same name.
    pub clash: Clash,
    /// Whether a skill has the name of its folder, whatever its frontmatter says.
    pub by_folder: bool,
    /// The maximum number of characters of all descriptions together before they are truncated.
    pub room: Option<usize>,
    /// The behaviour at each symptom. At others it is unknown.
    pub facts: &'static [Fact],
    /// The source for the directories that it reads, and their order.
    pub source: &'static Citation,
    /// Files and directories that control how it acts, in a project or a home, which agents must not
    /// write, except for those of `mcp`. In lower case; in the last name, `*` matches anything.
    pub protected: &'static [&'static str],
    /// Its settings for MCP servers, if they are known.
    pub mcp: Option<McpSettings>,
}

/// A directory that a client reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Spot {
    /// Its path: in the project, below `~`, below a variable such as `$CODEX_HOME`, or absolute.
    pub path: &'static str,
    /// Whether it is also looked for in the parent folders, up to the root of the repository.
    pub upwards: bool,
}

impl Spot {
    /// Creates a place that is only looked for where it is, and not in parent folders.
    pub const fn new(path: &'static str) -> Self {
        Self { path, upwards: false }
    }
}

/// A named list of directories.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Preset {
    /// The name.
    pub name: &'static str,
    /// Its directories, in order of precedence; those below `~` are the user's.
    pub directories: &'static [&'static str],
}

/// The behaviour of a client when two skills have the same name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Clash {
    /// Loads the one in the directory that comes first.
    First,
    /// Loads both.
    Both,
    /// Loads one of them, unpredictably.
    Random,
    /// Unknown.
    Unknown,
}

/// The behaviour of a client at some symptoms, with its source.
#[derive(Debug)]
#[non_exhaustive]
pub struct Fact {
    /// The behaviour.
    pub verdict: Verdict,
    /// The symptoms.
    pub symptoms: &'static [Symptom],
    /// The source.
    pub source: &'static Citation,
}

/// Variables that relocate a directory of a client, and its default.
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
    /// Whether its user configures its directories.
    pub fn is_told_where(&self) -> bool {
        self.spots.is_empty()
    }

    /// Returns everything that agents must not write because of it: what is
    /// [`protected`](Self::protected), and the files of a project with the MCP servers that it
    /// starts.
    pub fn protected_files(&self) -> impl Iterator<Item = &'static str> + use<> {
        let servers = self.mcp.map_or(&[][..], |it| it.project);
        self.protected.iter().chain(servers).copied()
    }

    /// Whether it is known to follow a link to the folder of a skill.
    pub fn follows_links(&self, in_project: bool) -> bool {
        self.is_known_for(Verdict::Loads, Symptom::FolderLink)
            && !(in_project && self.is_known_for(Verdict::Unseen, Symptom::ProjectLink))
    }

    fn is_known_for(&self, verdict: Verdict, symptom: Symptom) -> bool {
        self.facts.iter().any(|it| it.verdict == verdict && it.symptoms.contains(&symptom))
    }

    /// Whether there is a fact about a symptom, whatever its number.
    pub(crate) fn knows(&self, symptom: Symptom) -> bool {
        self.facts.iter().any(|fact| {
            fact.symptoms
                .iter()
                .any(|it: &Symptom| std::mem::discriminant(it) == std::mem::discriminant(&symptom))
        })
    }
}

impl Spot {
    /// Whether it is in the project, and not the user's or the system's.
    pub fn is_in_project(&self) -> bool {
        !self.path.starts_with(['~', '$', '/'])
    }

    /// Returns the path with a leading variable replaced by its default.
    pub fn usual(&self) -> String {
        match self.variable() {
            Some((usual, _, rest)) => format!("{usual}{rest}"),
            None => self.path.to_owned(),
        }
    }

    /// Returns the variable that it begins with: its default, its name, and the rest of the path.
    pub(crate) fn variable(&self) -> Option<(&'static str, &'static str, &'static str)> {
        let path = self.path.strip_prefix('$')?;
        let (name, rest) = path.split_at(path.find('/').unwrap_or(path.len()));
        VARIABLES.iter().find(|it| it.0 == name).map(|it| (it.1, it.0, rest))
    }
}
