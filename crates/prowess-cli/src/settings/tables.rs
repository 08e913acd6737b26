//! The tables of `prowess.toml`.

use std::{collections::BTreeMap, num::NonZeroUsize, path::PathBuf, time::Duration};

use prowess::{ContextWindow, Directory, Matching, Strategy, Thresholds};
use prowess_mcp::config::ServerSetting;
use prowess_runtime::{
    Policy,
    policy::{AllowedToolsMode, Approvals, Decision, UnlistedCommands},
    preparation::PrepareLimits,
};
use prowess_sandbox::SandboxLevel;

use super::{
    origin::{Setting, SettingOrigin},
    value::{Address, Bytes, Depth, KnownClient, MinAge, Presets, PriceSetting, Ratio, RootPath},
};

/// The installation of skills from elsewhere.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PackagesSettings {
    /// The clients that skills are installed for; those that are found if there is no list.
    pub clients: Setting<Option<Vec<KnownClient>>>,
    /// Whether each client gets its own copy.
    pub copy: Setting<bool>,
    /// The age that a version must have.
    pub min_age: Setting<Option<MinAge>>,
    /// The registries that are searched, by name.
    pub registries: Setting<RegistrySettings>,
    /// Who must have signed what.
    pub signers: Setting<SignerSettings>,
}

/// The registries of skills, each with a name.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RegistrySettings(pub BTreeMap<String, Address>);

/// Who must have signed what. What the user and what a project asks for both apply.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SignerSettings(pub Vec<SignerSetting>);

/// The signers that are accepted for the sources of a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignerSetting {
    /// The pattern, such as `anthropics/*`.
    pub pattern: String,
    /// The identities, of which one is enough; an exception from shorter patterns if there is none.
    pub identities: Vec<String>,
    /// Whether a project asks for it.
    pub is_of_project: bool,
}

/// The selection of skills.
#[derive(Debug, Clone, PartialEq)]
pub struct SkillSettings {
    /// Whether skills are enabled.
    pub enabled: Setting<bool>,
    /// The directory that is written to, and read before the others.
    pub skills_dir: Setting<Option<Directory>>,
    /// The directories that are read; earlier ones win.
    pub directories: Setting<Vec<Directory>>,
    /// The presets that are read after them.
    pub presets: Setting<Presets>,
    /// The names to include, and no others; all if there is no list.
    pub include: Setting<Option<Vec<String>>>,
    /// The names to exclude.
    pub exclude: Setting<Vec<String>>,
    /// The largest resource.
    pub max_file_size: Setting<Bytes>,
    /// The largest skill, all files together.
    pub max_skill_size: Setting<Bytes>,
    /// The number of folder levels below a directory that are searched.
    pub depth: Setting<Depth>,
    /// Whether changes are reloaded while a program runs.
    pub watch: Setting<bool>,
    /// Whether skills are cached between runs.
    pub cache: Setting<bool>,
}

/// The choice of skills for a request.
#[derive(Debug, Clone, PartialEq)]
pub struct MatchingSettings {
    /// The strategy.
    pub strategy: Setting<Strategy>,
    /// The most skills active at once.
    pub max_active: Setting<usize>,
    /// The minimum confidence.
    pub threshold: Setting<Ratio>,
}

/// The disclosure of skills to a model.
#[derive(Debug, Clone, PartialEq)]
pub struct DisclosureSettings {
    /// The confidence from which a skill is disclosed in brief.
    pub brief_at: Setting<Ratio>,
    /// The confidence from which a skill is disclosed in full.
    pub full_at: Setting<Ratio>,
}

/// The context window.
#[derive(Debug, Clone, PartialEq)]
pub struct WindowSettings {
    /// Its size in tokens.
    pub tokens: Setting<NonZeroUsize>,
    /// The number of recent messages that stay whole.
    pub keep_recent: Setting<usize>,
}

/// The policy.
#[derive(Debug, Clone, PartialEq)]
pub struct PolicySettings {
    /// The commands that may be run, each given by its first words.
    pub commands: Setting<Vec<String>>,
    /// The hosts that may be requested, and no others; the internet if there is no list.
    pub hosts: Setting<Option<Vec<String>>>,
    /// Whether hosts are restricted to public addresses, because only a project names them.
    pub are_hosts_public: bool,
    /// The hosts that scripts may connect to.
    pub script_hosts: Setting<Vec<String>>,
    /// The directories in which files may be read and written; the working directory if it is not
    /// set.
    pub roots: Setting<Option<Vec<RootPath>>>,
    /// When a person is asked. A project cannot ask less than its user has set.
    pub approvals: Setting<Approvals>,
    /// The meaning of a skill's `allowed-tools`.
    pub allowed_tools: Setting<AllowedToolsMode>,
    /// The decision on a tool's write to a file: allow, ask or deny. A project can only make it
    /// stricter.
    pub writes: Setting<Decision>,
    /// The decision on a command that is not listed: deny or ask. A project can only make it
    /// stricter.
    pub unlisted_commands: Setting<UnlistedCommands>,
    /// The decision on a tool's read of a file that may contain secrets: allow, ask or deny. A
    /// project can only make it stricter.
    pub secret_reads: Setting<Decision>,
    /// The decision on a request other than a read to a host that is not listed: allow, ask or
    /// deny. A project can only make it stricter.
    pub sends: Setting<Decision>,
    /// The environment variables that scripts may get.
    pub environment: Setting<Vec<String>>,
    /// The rules that allow, ask about or deny actions. The rules of all files apply together, so
    /// that a project cannot lift a denial of its user.
    pub rules: Setting<Vec<RuleSetting>>,
}

/// A rule with a decision for calls that match all of its fields.
#[derive(Debug, Clone, PartialEq)]
pub struct RuleSetting {
    /// The tool.
    pub tool: Option<String>,
    /// The skill.
    pub skill: Option<String>,
    /// The first words of the command.
    pub command: Option<String>,
    /// The file, or the directory above it.
    pub path: Option<PathBuf>,
    /// The decision.
    pub decision: Decision,
    /// Its place.
    pub origin: SettingOrigin,
}

/// The MCP servers that agents can use, each with a label.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ServerSettings(pub Vec<ServerSetting>);

/// The interpreters of scripts.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunSettings {
    /// The path of Python.
    pub python: Setting<Option<PathBuf>>,
    /// The path of Node.js.
    pub node: Setting<Option<PathBuf>>,
}

/// The installation of packages for scripts and servers.
#[derive(Debug, Clone, PartialEq)]
pub struct PrepareSettings {
    /// The index for Python packages.
    pub python_index: Setting<Option<Address>>,
    /// The registry for npm packages.
    pub npm_registry: Setting<Option<Address>>,
    /// Additional hosts that packages are downloaded from.
    pub hosts: Setting<Vec<String>>,
    /// The time limit of an installation.
    pub timeout: Setting<Duration>,
    /// The largest environment.
    pub max_size: Setting<Bytes>,
    /// The largest size of all environments together.
    pub max_total: Setting<Bytes>,
}

/// The sandbox of scripts.
#[derive(Debug, Clone, PartialEq)]
pub struct SandboxSettings {
    /// The least sandbox level that is required.
    pub level: Setting<SandboxLevel>,
}

/// The database of `execute_sql`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SqlSettings {
    /// Its address.
    pub url: Setting<Option<Address>>,
    /// Whether statements may write.
    pub write: Setting<bool>,
    /// Whether a superuser connection is used as it is; otherwise it is read-only, without
    /// superuser rights.
    pub privileged: Setting<bool>,
}

/// The agent.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentSettings {
    /// The number of unnamed sessions to keep; the oldest are removed first, and with 0 none is
    /// saved.
    pub keep_sessions: Setting<usize>,
}

/// The language model.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ModelSettings {
    /// The provider, to which the key belongs.
    pub provider: Setting<Option<String>>,
    /// The name.
    pub name: Setting<Option<String>>,
    /// The base URL. A project cannot set it, because the key and the conversation are sent there.
    pub base_url: Setting<Option<Address>>,
    /// The file with the key; only its owner may be able to read it.
    pub key_file: Setting<Option<PathBuf>>,
    /// The maximum tokens per reply.
    pub max_output: Setting<Option<NonZeroUsize>>,
    /// The time to wait for the next token.
    pub timeout: Setting<Option<Duration>>,
    /// The price of a million input tokens.
    pub input_price: Setting<Option<PriceSetting>>,
    /// The price of a million output tokens.
    pub output_price: Setting<Option<PriceSetting>>,
}

const MIB: u64 = 1024 * 1024;

/// A person's skills are larger and nested deeper than the defaults of the library allow.
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
            threshold: ratio(threshold),
        }
    }
}

impl Default for DisclosureSettings {
    fn default() -> Self {
        let thresholds = Thresholds::default();
        Self { brief_at: ratio(thresholds.brief_at()), full_at: ratio(thresholds.full_at()) }
    }
}

impl Default for WindowSettings {
    fn default() -> Self {
        let ContextWindow { tokens, keep_recent, .. } = ContextWindow::default();
        let tokens = NonZeroUsize::new(tokens).expect("the default window is not empty");
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
            // A program with settings has a person who can be asked.
            writes: Setting::new(Decision::Ask),
            unlisted_commands: Setting::new(UnlistedCommands::Ask),
            secret_reads: Setting::new(Decision::Ask),
            sends: Setting::new(Decision::Ask),
            environment: Setting::new(policy.environment),
            rules: Setting::default(),
        }
    }
}

impl Default for PrepareSettings {
    fn default() -> Self {
        let limits = PrepareLimits::default();
        Self {
            python_index: Setting::default(),
            npm_registry: Setting::default(),
            hosts: Setting::default(),
            timeout: Setting::new(limits.timeout),
            max_size: size(limits.size),
            max_total: size(limits.total),
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

fn ratio(number: f64) -> Setting<Ratio> {
    Setting::new(Ratio::new(number).expect("a default is between 0 and 1"))
}
