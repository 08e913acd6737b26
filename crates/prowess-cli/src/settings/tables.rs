//! The tables of `prowess.toml`.

use std::{
    num::{NonZeroU64, NonZeroUsize},
    path::PathBuf,
    time::Duration,
};

use prowess::{ContextWindow, Directory, Matching, Strategy};
use prowess_mcp::config::ServerSetting;
use prowess_runtime::{AllowedToolsMode, Approvals, Decision, Policy, UnlistedCommands};
use prowess_sandbox::{RunLimits, SandboxLevel};

use super::{
    origin::{Setting, SettingOrigin},
    value::{Address, Bytes, Depth, Presets, PriceSetting, Ratio, RootPath},
};

/// Which skills there are.
#[derive(Debug, Clone, PartialEq)]
pub struct SkillSettings {
    /// Whether there are any.
    pub enabled: Setting<bool>,
    /// The directory that is written to, and read before others.
    pub skills_dir: Setting<Option<Directory>>,
    /// The directories that are read, the first taken first.
    pub directories: Setting<Vec<Directory>>,
    /// The presets that are read behind them.
    pub presets: Setting<Presets>,
    /// The names to take, and no others; all when there is no list.
    pub include: Setting<Option<Vec<String>>>,
    /// The names to leave out.
    pub exclude: Setting<Vec<String>>,
    /// The largest resource.
    pub max_file_size: Setting<Bytes>,
    /// The largest skill, all files together.
    pub max_skill_size: Setting<Bytes>,
    /// How many folders deep skills may lie below a directory.
    pub depth: Setting<Depth>,
    /// Whether what changes is reloaded while a program runs.
    pub watch: Setting<bool>,
    /// Whether what was read is kept for the next time.
    pub cache: Setting<bool>,
}

/// How skills are chosen for a request.
#[derive(Debug, Clone, PartialEq)]
pub struct MatchingSettings {
    /// By what they are chosen.
    pub strategy: Setting<Strategy>,
    /// How many are active at once.
    pub max_active: Setting<usize>,
    /// The least confidence.
    pub threshold: Setting<Ratio>,
}

/// How much of a skill a model is shown.
#[derive(Debug, Clone, PartialEq)]
pub struct DisclosureSettings {
    /// From which confidence on in brief.
    pub brief_at: Setting<Ratio>,
    /// From which confidence on in full.
    pub full_at: Setting<Ratio>,
}

/// How much a model can be told.
#[derive(Debug, Clone, PartialEq)]
pub struct WindowSettings {
    /// Tokens at once.
    pub tokens: Setting<NonZeroUsize>,
    /// How many of the last messages stay whole.
    pub keep_recent: Setting<usize>,
}

/// What may be done.
#[derive(Debug, Clone, PartialEq)]
pub struct PolicySettings {
    /// The commands that may be run: each the first words of one.
    pub commands: Setting<Vec<String>>,
    /// The hosts that may be asked, and no others; the internet when there is no list.
    pub hosts: Setting<Option<Vec<String>>>,
    /// Whether hosts lead to the internet alone, because only a project names them.
    pub are_hosts_public: bool,
    /// The hosts that scripts may connect to.
    pub script_hosts: Setting<Vec<String>>,
    /// The directories in which files may be read and written; nothing when nobody has said, which
    /// leaves the working directory.
    pub roots: Setting<Option<Vec<RootPath>>>,
    /// When a person is asked. A project cannot ask less than its user has set.
    pub approvals: Setting<Approvals>,
    /// What the `allowed-tools` of a skill mean.
    pub allowed_tools: Setting<AllowedToolsMode>,
    /// What happens before a tool writes a file: nothing, a question, or a refusal. A project can make
    /// it stricter only.
    pub writes: Setting<Decision>,
    /// What happens to a command that is not listed: a refusal or a question. A project can make it
    /// stricter only.
    pub unlisted_commands: Setting<UnlistedCommands>,
    /// What happens before a tool reads a file that may contain secrets: nothing, a question, or a refusal.
    /// A project can make it stricter only.
    pub secret_reads: Setting<Decision>,
    /// What happens before a request that does more than get something goes to a host that is not
    /// listed: nothing, a question, or a refusal. A project can make it stricter only.
    pub sends: Setting<Decision>,
    /// The variables of the environment that scripts may get.
    pub environment: Setting<Vec<String>>,
    /// What is allowed, asked or denied. The rules of all files hold together, so that a project
    /// takes nothing away from what its user has denied.
    pub rules: Setting<Vec<RuleSetting>>,
}

/// What is decided about calls that are all it says: of this tool, by this skill, and so on.
#[derive(Debug, Clone, PartialEq)]
pub struct RuleSetting {
    /// The tool.
    pub tool: Option<String>,
    /// The skill.
    pub skill: Option<String>,
    /// How the command begins.
    pub command: Option<String>,
    /// The file, or the directory above it.
    pub path: Option<PathBuf>,
    /// What is decided.
    pub decision: Decision,
    /// Where it stands.
    pub origin: SettingOrigin,
}

/// The servers that agents can use, each under a label.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ServerSettings(pub Vec<ServerSetting>);

/// How long and how much a run may take.
#[derive(Debug, Clone, PartialEq)]
pub struct LimitSettings {
    /// From its start to its end.
    pub timeout: Setting<Duration>,
    /// Without a word from it.
    pub idle: Setting<Option<Duration>>,
    /// Of one processor.
    pub cpu: Setting<Duration>,
    /// What is kept of each stream.
    pub output: Setting<Bytes>,
    /// Its memory.
    pub memory: Setting<Bytes>,
    /// One file.
    pub file: Setting<Bytes>,
    /// All files of the work directory.
    pub work: Setting<Bytes>,
    /// Processes at once.
    pub processes: Setting<NonZeroU64>,
    /// Open files of one process.
    pub descriptors: Setting<NonZeroU64>,
}

/// What scripts are run with.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunSettings {
    /// The Python.
    pub python: Setting<Option<PathBuf>>,
    /// The Node.js.
    pub node: Setting<Option<PathBuf>>,
}

/// How packages are installed for scripts and servers.
#[derive(Debug, Clone, PartialEq)]
pub struct PrepareSettings {
    /// The index for Python packages.
    pub python_index: Setting<Option<Address>>,
    /// The registry for npm packages.
    pub npm_registry: Setting<Option<Address>>,
    /// More hosts that packages are downloaded from.
    pub hosts: Setting<Vec<String>>,
    /// How long an installation may take.
    pub timeout: Setting<Duration>,
    /// The largest environment.
    pub max_size: Setting<Bytes>,
    /// How much all environments may take.
    pub max_total: Setting<Bytes>,
}

/// What stands between a script and the machine.
#[derive(Debug, Clone, PartialEq)]
pub struct SandboxSettings {
    /// The least that must stand there.
    pub level: Setting<SandboxLevel>,
}

/// The database of `execute_sql`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SqlSettings {
    /// Where it is.
    pub url: Setting<Option<Address>>,
    /// Whether statements may write.
    pub write: Setting<bool>,
    /// Whether a superuser is taken as it is; otherwise it reads, and without the rights of one.
    pub privileged: Setting<bool>,
}

/// The agent.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentSettings {
    /// How many sessions are kept that nobody gave a name; the oldest go first, and with 0 none is kept.
    pub keep_sessions: Setting<usize>,
}

/// The language model.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ModelSettings {
    /// Whose it is, and whose the key is.
    pub provider: Setting<Option<String>>,
    /// What it is called.
    pub name: Setting<Option<String>>,
    /// Where it is asked. A project cannot set it, because a key goes there, and all that is said.
    pub base_url: Setting<Option<Address>>,
    /// The file that holds the key; nobody but its owner may read it.
    pub key_file: Setting<Option<PathBuf>>,
    /// With how many tokens it may reply at once.
    pub max_output: Setting<Option<NonZeroUsize>>,
    /// How long is waited for a word from it.
    pub timeout: Setting<Option<Duration>>,
    /// What a million tokens that it reads cost.
    pub input_price: Setting<Option<PriceSetting>>,
    /// What a million tokens that it says cost.
    pub output_price: Setting<Option<PriceSetting>>,
}

const MIB: u64 = 1024 * 1024;

/// A program has people in front of it, whose skills are larger and lie deeper than the defaults of the library allow.
impl Default for SkillSettings {
    fn default() -> Self {
        Self {
            enabled: Setting::new(true),
            skills_dir: Setting::default(),
            directories: Setting::default(),
            presets: Setting::default(),
            include: Setting::default(),
            exclude: Setting::default(),
            max_file_size: size(10 * MIB),
            max_skill_size: size(64 * MIB),
            depth: Setting::new(Depth::DEEPEST),
            watch: Setting::default(),
            cache: Setting::new(true),
        }
    }
}

impl Default for MatchingSettings {
    fn default() -> Self {
        let Matching { strategy, max_active, threshold, .. } = Matching::default();
        Self {
            strategy: Setting::new(strategy),
            max_active: Setting::new(max_active),
            threshold: share(threshold),
        }
    }
}

impl Default for DisclosureSettings {
    fn default() -> Self {
        Self { brief_at: share(0.15), full_at: share(0.7) }
    }
}

impl Default for WindowSettings {
    fn default() -> Self {
        let ContextWindow { tokens, keep_recent, .. } = ContextWindow::default();
        let tokens = NonZeroUsize::new(tokens).expect("a window holds something");
        Self { tokens: Setting::new(tokens), keep_recent: Setting::new(keep_recent) }
    }
}

impl Default for PolicySettings {
    fn default() -> Self {
        let policy = Policy::default();
        Self {
            commands: Setting::new(policy.commands),
            hosts: Setting::new(policy.hosts),
            are_hosts_public: policy.are_hosts_public,
            script_hosts: Setting::new(policy.script_hosts),
            roots: Setting::default(),
            approvals: Setting::new(policy.approvals),
            allowed_tools: Setting::new(policy.allowed_tools),
            // Whoever reads settings has a person who can be asked.
            writes: Setting::new(Decision::Ask),
            unlisted_commands: Setting::new(UnlistedCommands::Ask),
            secret_reads: Setting::new(Decision::Ask),
            sends: Setting::new(Decision::Ask),
            environment: Setting::new(policy.environment),
            rules: Setting::default(),
        }
    }
}

impl Default for LimitSettings {
    fn default() -> Self {
        let limits = RunLimits::default();
        let count = |it| Setting::new(NonZeroU64::new(it).expect("a script may run at all"));
        Self {
            timeout: Setting::new(limits.timeout),
            idle: Setting::new(limits.idle),
            cpu: Setting::new(limits.cpu),
            output: size(limits.output),
            memory: size(limits.memory),
            file: size(limits.file),
            work: size(limits.work),
            processes: count(limits.processes),
            descriptors: count(limits.descriptors),
        }
    }
}

impl Default for PrepareSettings {
    fn default() -> Self {
        const GIB: u64 = 1024 * MIB;
        Self {
            python_index: Setting::default(),
            npm_registry: Setting::default(),
            hosts: Setting::default(),
            timeout: Setting::new(Duration::from_secs(600)),
            max_size: size(4 * GIB),
            max_total: size(20 * GIB),
        }
    }
}

impl Default for AgentSettings {
    fn default() -> Self {
        Self { keep_sessions: Setting::new(200) }
    }
}

impl Default for SandboxSettings {
    fn default() -> Self {
        Self { level: Setting::new(SandboxLevel::Landlock) }
    }
}

fn size(bytes: u64) -> Setting<Bytes> {
    Setting::new(Bytes(bytes))
}

fn share(number: f64) -> Setting<Ratio> {
    Setting::new(Ratio::new(number).expect("a default lies between 0 and 1"))
}
