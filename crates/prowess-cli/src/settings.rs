//! The settings of `prowess.toml`: typed, every value with its origin.
//!
//! The host names the places to look ([`Places`]); nothing here reads the environment.

mod places;
mod reader;
mod units;
mod value;
mod origin;
mod tables;
mod limits;
mod right;
mod table;
mod reference;
mod starter;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use prowess::{ContextWindow, Directory, Matching, Memory, Options, Scope, SizeLimits, Thresholds};
use prowess_runtime::{Policy, policy::PolicyRule};
use prowess_sandbox::RunLimits;
use serde_json::Value as Json;

pub use self::{
    limits::LimitSettings,
    origin::{ConfigError, ConfigProblem, IgnoredSetting, Setting, SettingOrigin},
    places::Places,
    right::ProjectRight,
    tables::{
        AgentSettings, DisclosureSettings, MatchingSettings, ModelSettings, PackagesSettings,
        PolicySettings, PrepareSettings, RegistrySettings, RuleSetting, RunSettings,
        SandboxSettings, ServerSettings, SignerSetting, SignerSettings, SkillSettings, SqlSettings,
        WindowSettings,
    },
    units::{bytes, duration, size},
    value::{Address, Bytes, Depth, KnownClient, MinAge, Presets, PriceSetting, Ratio, RootPath},
};
use self::{places::Owner, reader::Reader, table::Row};

/// All settings, with defaults for those that are not set.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Config {
    /// The selection of skills.
    pub skill: SkillSettings,
    /// The installation of skills from elsewhere.
    pub packages: PackagesSettings,
    /// The choice of skills for a request.
    pub matching: MatchingSettings,
    /// The disclosure of skills to a model.
    pub disclosure: DisclosureSettings,
    /// The context window.
    pub window: WindowSettings,
    /// The policy.
    pub policy: PolicySettings,
    /// The limits of a run.
    pub limits: LimitSettings,
    /// The sandbox of scripts.
    pub sandbox: SandboxSettings,
    /// The interpreters of scripts.
    pub run: RunSettings,
    /// The installation of packages for scripts and servers.
    pub prepare: PrepareSettings,
    /// The database of `execute_sql`.
    pub sql: SqlSettings,
    /// The language model.
    pub model: ModelSettings,
    /// The agent.
    pub agent: AgentSettings,
    /// The MCP servers that agents can use.
    pub servers: Setting<ServerSettings>,
    /// The files that were read, the one of least precedence first.
    pub files: Vec<PathBuf>,
    /// Files that were found and ignored, each with the reason.
    pub ignored_files: Vec<(PathBuf, &'static str)>,
    /// Settings of a project's file that it may not set.
    pub ignored: Vec<IgnoredSetting>,
    /// The project's file, if one was read.
    pub project: Option<ProjectFile>,
}

/// The settings file of a project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectFile {
    /// Its path.
    pub path: PathBuf,
    /// The digest of its content.
    pub digest: String,
    /// Whether the user has approved exactly this content.
    pub is_approved: bool,
}

/// A setting with its documentation.
#[derive(Debug, Clone, PartialEq)]
pub struct SettingInfo {
    /// Its table and name, such as `skill.depth`.
    pub key: &'static str,
    /// The current value, without the password of an address.
    pub value: Json,
    /// The value in TOML.
    pub text: String,
    /// The origin of the value.
    pub origin: SettingOrigin,
    /// The default value in TOML.
    pub default: String,
    /// The kind of value, such as "a whole number, 0 or more".
    pub kind: String,
    /// A description in one sentence.
    pub about: &'static str,
    /// An example value in TOML.
    pub example: &'static str,
    /// The rights of a project's file.
    pub project: ProjectRight,
    /// The flag that sets it for one run.
    pub flag: Option<&'static str>,
}

impl Config {
    /// Reads the files of all places, each over those before it. All errors are reported at once.
    pub fn load(places: &Places) -> Result<Self, ConfigError> {
        let mut config = Self::default();
        let mut problems = Vec::new();
        let (layers, ignored_files) = places.layers();
        for layer in layers {
            match Reader::open(&layer, places) {
                Ok(mut reader) => {
                    let had_hosts = config.policy.hosts.value.is_some();
                    reader.read(&mut config.rows());
                    problems.append(&mut reader.problems);
                    config.ignored.append(&mut reader.ignored);
                    if layer.owner == Owner::Project {
                        let (digest, is_approved) = (reader.digest, reader.is_approved);
                        let has_hosts = config.policy.hosts.value.is_some();
                        config.policy.are_hosts_public = has_hosts && !had_hosts && !is_approved;
                        let path = layer.file.clone();
                        config.project = Some(ProjectFile { path, digest, is_approved });
                    }
                }
                Err(problem) => problems.push(*problem),
            }
            config.files.push(layer.file);
        }
        config.ignored_files = ignored_files;
        if problems.is_empty() {
            problems.extend(config.check_commands());
            problems.extend(config.check_thresholds());
        }
        if problems.is_empty() { Ok(config) } else { Err(ConfigError { problems }) }
    }

    /// Returns the options to load skills with; without any source if skills are disabled.
    pub fn options(&self) -> Options {
        let skill = &self.skill;
        let mut options = Options {
            include: skill.include.value.clone(),
            exclude: skill.exclude.value.clone(),
            limits: SizeLimits {
                max_file_size: skill.max_file_size.value.0,
                max_skill_size: skill.max_skill_size.value.0,
                depth: skill.depth.value.get(),
                ..SizeLimits::default()
            },
            watch: skill.watch.value,
            ..Options::default()
        };
        if skill.enabled.value {
            options.directories = self.directories();
        } else {
            let empty = Memory::new(Scope::Project, "", <[(&str, &[u8]); 0]>::default());
            options.sources = vec![Arc::new(empty)];
        }
        options
    }

    /// Returns the directories to read: the one that is written to, the others, those of presets.
    pub fn directories(&self) -> Vec<Directory> {
        let skill = &self.skill;
        let own = skill.skills_dir.value.iter().chain(&skill.directories.value).cloned();
        own.chain(skill.presets.value.directories()).collect()
    }

    /// Returns the directories that a project has to be trusted for: those that its own file names,
    /// and those that a preset finds in the current project, each with the folder of that file. Its
    /// own file is the one that was found, or `typed`, the one named on the command line.
    /// Directories named on the command line belong to the user.
    pub fn directories_of_project(
        &self,
        typed: Option<&Path>,
    ) -> Vec<(Directory, Option<PathBuf>)> {
        let SkillSettings { skills_dir, directories, presets, .. } = &self.skill;
        let file = typed.or(self.project.as_ref().map(|it| &*it.path));
        let mut all = Vec::new();
        if let Some(folder) = folder_if_set_in(file, &skills_dir.origin) {
            all.extend(skills_dir.value.iter().map(|it| (it.clone(), Some(folder.to_owned()))));
        }
        if let Some(folder) = folder_if_set_in(file, &directories.origin) {
            all.extend(directories.value.iter().map(|it| (it.clone(), Some(folder.to_owned()))));
        }
        let folder = folder_if_set_in(file, &presets.origin);
        if presets.value.from.is_none() || folder.is_some() {
            let own = presets.value.directories().filter(|it| it.scope == Scope::Project);
            all.extend(own.map(|it| (it, folder.map(Path::to_owned))));
        }
        all
    }

    /// Returns how skills are chosen for a request.
    pub fn matching(&self) -> Matching {
        Matching {
            strategy: self.matching.strategy.value,
            max_active: self.matching.max_active.value,
            threshold: self.matching.threshold.value.get(),
            rule: None,
        }
    }

    /// Returns the confidences from which a skill is disclosed in brief and in full.
    pub fn thresholds(&self) -> Thresholds {
        let DisclosureSettings { brief_at, full_at } = &self.disclosure;
        Thresholds::new(brief_at.value.get(), full_at.value.get()).unwrap_or_default()
    }

    /// Returns the context window, with estimated token counts.
    pub fn window(&self) -> ContextWindow {
        ContextWindow {
            tokens: self.window.tokens.value.get(),
            keep_recent: self.window.keep_recent.value,
            ..ContextWindow::default()
        }
    }

    /// Returns the limits of a run.
    pub fn limits(&self) -> RunLimits {
        self.limits.run_limits()
    }

    /// Returns the policy. `cwd` is the root if none is set.
    pub fn policy(&self, cwd: &Path) -> Policy {
        let set = &self.policy;
        let roots = set.roots.value.as_ref();
        let roots = roots.map(|all| all.iter().map(|it| it.0.clone()).collect());
        Policy {
            rules: set.rules.value.iter().flat_map(policy_rules).collect(),
            approvals: set.approvals.value,
            allowed_tools: set.allowed_tools.value,
            commands: set
                .commands
                .value
                .iter()
                .map(|it| normalize_command(it).to_owned())
                .collect(),
            hosts: set.hosts.value.clone(),
            are_hosts_public: set.are_hosts_public,
            script_hosts: set.script_hosts.value.clone(),
            roots: roots.unwrap_or_else(|| vec![cwd.to_owned()]),
            environment: set.environment.value.clone(),
            interpreters: BTreeMap::new(),
            withheld: self.model.key_file.value.iter().cloned().collect(),
            protected: self.files.clone(),
            writes: set.writes.value,
            unlisted_commands: set.unlisted_commands.value,
            secret_reads: set.secret_reads.value,
            sends: set.sends.value,
        }
    }

    /// Returns every setting, in the order of the tables.
    pub fn settings(&self) -> Vec<SettingInfo> {
        let (mut own, mut defaults) = (self.clone(), Self::default());
        own.rows()
            .into_iter()
            .zip(defaults.rows())
            .map(|(row, default): (Row<'_>, Row<'_>)| SettingInfo {
                key: row.facts.key,
                value: row.slot.to_json(),
                text: row.slot.to_toml(),
                origin: row.slot.origin().clone(),
                default: default.slot.to_toml(),
                kind: row.slot.expected(),
                about: row.facts.about,
                example: row.facts.example,
                project: row.facts.right,
                flag: row.facts.flag,
            })
            .collect()
    }

    /// Returns the problem of a listed command that would allow every program, which a list is
    /// there to prevent, or other programs than meant.
    fn check_commands(&self) -> Option<ConfigProblem> {
        let commands = &self.policy.commands;
        let (path, line) = commands.origin.place()?;
        let (message, hint) = commands.value.iter().find_map(|entry: &String| {
            let mut words = normalize_command(entry).split_ascii_whitespace();
            let name = words.next().unwrap_or_default();
            if name.is_empty() || name.contains(['*', '?', '[']) {
                let hint = "list each program that may run, such as `\"ls\"` or `\"git status\"`";
                let name = if name.is_empty() { entry } else { name };
                return Some((format!("`{name}` in `policy.commands` names no program"), hint));
            }
            let hint = "`*` is allowed only at the end; `\"git log\"` means `git log` followed by anything";
            words
                .any(|it| it == "*")
                .then(|| (format!("`{entry}` in `policy.commands` has a `*` before its end"), hint))
        })?;
        Some(ConfigProblem {
            line: Some(line),
            hint: Some(hint.to_owned()),
            ..ConfigProblem::new(path, message)
        })
    }

    /// Returns a problem between values that are valid by themselves.
    fn check_thresholds(&self) -> Option<ConfigProblem> {
        let DisclosureSettings { brief_at, full_at } = &self.disclosure;
        let error = Thresholds::new(brief_at.value.get(), full_at.value.get()).err()?;
        let set = [full_at, brief_at].into_iter().find_map(|it| it.origin.place());
        let (path, line) = set?;
        let message = format!(
            "`disclosure.brief_at` is {} and `disclosure.full_at` is {}: the first must not be above the second",
            error.brief_at, error.full_at
        );
        Some(ConfigProblem { line: Some(line), ..ConfigProblem::new(path, message) })
    }
}

/// Returns the folder of a settings file, if a value was set there.
fn folder_if_set_in<'p>(file: Option<&'p Path>, origin: &SettingOrigin) -> Option<&'p Path> {
    file.filter(|it| origin.place().is_some_and(|(path, _)| path == *it))?.parent()
}

/// Returns the rules for a setting: its path is a file, or the directory above it.
fn policy_rules(it: &RuleSetting) -> impl Iterator<Item = PolicyRule> + use<> {
    let path = it.path.as_ref().map(|it| it.to_string_lossy().into_owned());
    let below = path.as_ref().map(|it| Some(format!("{it}/*")));
    let rule = PolicyRule {
        tool: it.tool.clone(),
        skill: it.skill.clone(),
        command: it.command.clone(),
        path,
        decision: it.decision,
    };
    let below = below.map(|path| PolicyRule { path, ..rule.clone() });
    [Some(rule), below].into_iter().flatten()
}

/// Returns an entry of `policy.commands` as the policy expects it. Every listed command may have
/// more arguments, so that a trailing ` *` or `:*` adds nothing.
fn normalize_command(entry: &str) -> &str {
    let entry = entry.trim();
    let plain = entry.strip_suffix(" *").or_else(|| entry.strip_suffix(":*"));
    plain.unwrap_or(entry).trim_end()
}
