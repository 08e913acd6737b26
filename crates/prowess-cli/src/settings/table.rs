//! The table of settings: one row has the documentation, the rights and the value of a setting.
//!
//! `prowess config`, `docs/settings.md` and the JSON schema are made from it. A new setting needs
//!
//! - a row here
//! - a field with a default in its struct in `tables.rs`
//! - its use: where the field is read, or in a conversion such as [`Config::options`]
//! - in `tests/specs/config.rs`, its widest value in `WIDEST` and a strict one in `STRICT`, or its
//!   name in `FREE` if a project's file may set any value
//!
//! A limit of a run has its row, field and conversion in one line of `limits.rs`.

use super::{Config, right::ProjectRight, value::Slot};

/// A setting: its documentation, its rights, and its value.
pub(super) struct Row<'c> {
    pub(super) facts: Facts,
    pub(super) slot: &'c mut dyn Slot,
}

/// The facts about a setting that do not depend on its value.
#[derive(Debug, Clone, Copy)]
pub(super) struct Facts {
    /// Its table and name, such as `skill.depth`.
    pub(super) key: &'static str,
    /// The right of a project's file to set it.
    pub(super) right: ProjectRight,
    /// The flag that sets it for one run.
    pub(super) flag: Option<&'static str>,
    /// An example value in TOML; all lines for a table.
    pub(super) example: &'static str,
    /// A description in one sentence.
    pub(super) about: &'static str,
}

/// The tables in order, each with its subject.
pub(super) const TABLES: &[(&str, &str)] = &[
    ("skill", "Which skills are loaded."),
    (
        "packages",
        "How skills are installed from elsewhere; which ones is in `[skills]`, written by `prowess add`.",
    ),
    ("matching", "How skills are chosen for a request."),
    ("disclosure", "How much of a skill a model is shown."),
    ("window", "The context window of the model."),
    ("policy", "What tools and skills may do."),
    ("limits", "How much time and space a run may use."),
    ("sandbox", "How scripts and commands are confined."),
    ("run", "What scripts are run with."),
    ("prepare", "How packages are installed for scripts and servers."),
    ("sql", "The database of `execute_sql`."),
    ("model", "The language model."),
    ("agent", "The agent behind `ask` and `chat`."),
    ("servers", "MCP servers that agents can use."),
];

impl Config {
    /// Returns every setting, in the order of the tables.
    #[rustfmt::skip]
    pub(super) fn rows(&mut self) -> Vec<Row<'_>> {
        use ProjectRight::*;
        let Self {
            skill, packages, matching, disclosure, window, policy, limits, sandbox, run, prepare, sql, model, agent, servers, ..
        } = self;
        let mut rows = vec![
            row("skill.enabled", &mut skill.enabled, Stricter, None, "false",
                "Whether any skills are loaded."),
            row("skill.skills_dir", &mut skill.skills_dir, Inside, Some("--dir"), "\"skills\"",
                "The directory that new skills are written to; it is also read first."),
            row("skill.directories", &mut skill.directories, Inside, Some("--dir"), "[\"skills\", \".claude/skills\"]",
                "The directories that skills are loaded from; of two skills with the same name, the first one wins."),
            row("skill.presets", &mut skill.presets, Any, Some("--preset"), "[\"claude\", \"agents\"]",
                "Clients whose directories are loaded, after `skill.directories`."),
            row("skill.include", &mut skill.include, Narrower, Some("--include"), "[\"pdf\", \"release-notes\"]",
                "Load only the skills with these names."),
            row("skill.exclude", &mut skill.exclude, More, Some("--exclude"), "[\"draft-notes\"]",
                "Skip the skills with these names."),
            row("skill.max_file_size", &mut skill.max_file_size, Stricter, Some("--max-file-size"), "\"1 MiB\"",
                "The largest file of a skill; a larger one is left out, and the skill stays."),
            row("skill.max_skill_size", &mut skill.max_skill_size, Stricter, Some("--max-skill-size"), "\"5 MiB\"",
                "The largest skill, counting all its files; a larger one is left out."),
            row("skill.depth", &mut skill.depth, Any, Some("--depth"), "2",
                "How many folders deep skills are searched for."),
            row("skill.watch", &mut skill.watch, Unset, None, "true",
                "Whether skills are reloaded when their files change, in `chat` and `mcp`."),
            row("skill.cache", &mut skill.cache, Stricter, Some("--no-cache"), "false",
                "Whether parsed skills are cached for the next run."),
            row("packages.clients", &mut packages.clients, Any, Some("--client"), "[\"claude-code\", \"cursor\"]",
                "The clients that skills are installed for; without it, `prowess add` takes those that it finds."),
            row("packages.copy", &mut packages.copy, Any, Some("--copy"), "true",
                "Whether each client gets its own copy of a skill instead of a link to one copy."),
            row("packages.min_age", &mut packages.min_age, Stricter, None, "\"3d\"",
                "How old a version must be before it is installed, so that others can find what is wrong with it first."),
            row("packages.registries", &mut packages.registries, Narrower, Some("--registry"), "{ clawhub = \"https://clawhub.ai\" }",
                "The registries that `prowess search` asks, each with a name; without any, only installed skills are searched."),
            row("packages.signers", &mut packages.signers, More, None, "{ \"acme/*\" = [\"minisign:RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3\"] }",
                "Who must have signed what comes from a source, by patterns of sources; one of the listed signers is enough, the longest pattern decides, and what a project asks for applies too."),
            row("matching.strategy", &mut matching.strategy, Any, Some("--strategy"), "\"keyword\"",
                "How skills are matched: by everything they say, by name and description, only when mentioned as `@name`, all of them, or left to the model."),
            row("matching.max_active", &mut matching.max_active, Any, Some("--top"), "5",
                "How many skills are active at once."),
            row("matching.threshold", &mut matching.threshold, Any, Some("--threshold"), "0.2",
                "The lowest confidence at which a skill is used."),
            row("disclosure.brief_at", &mut disclosure.brief_at, Any, None, "0.3",
                "The confidence from which a model is shown a summary of the skill instead of its description."),
            row("disclosure.full_at", &mut disclosure.full_at, Any, None, "0.8",
                "The confidence from which a model is shown the whole skill."),
            row("window.tokens", &mut window.tokens, Any, Some("--window"), "128000",
                "Context window size in tokens."),
            row("window.keep_recent", &mut window.keep_recent, Any, Some("--keep"), "6",
                "How many of the latest messages are never shortened."),
            row("policy.commands", &mut policy.commands, NarrowerOrApproved, None, "[\"git log\", \"cargo test\"]",
                "The commands that run without a question, each by its first words."),
            row("policy.hosts", &mut policy.hosts, NarrowerOrApproved, None, "[\"api.github.com\", \"*.example.com\"]",
                "The hosts that requests may go to; every public host when it is not set."),
            row("policy.script_hosts", &mut policy.script_hosts, Narrower, Some("--net"), "[\"api.github.com\"]",
                "The hosts that scripts may connect to, each script once you have approved it with these hosts; none when it is not set."),
            row("policy.roots", &mut policy.roots, Narrower, None, "[\".\", \"~/notes\"]",
                "The directories in which files may be read and written; the working directory when it is not set."),
            row("policy.approvals", &mut policy.approvals, Stricter, None, "\"always\"",
                "When you are asked before something runs: when a skill requires it or has changed, always, or never."),
            row("policy.allowed_tools", &mut policy.allowed_tools, Stricter, None, "\"enforce\"",
                "What `allowed-tools` of a skill means: those tools need no approval, they are advice, or no other tool may be used."),
            row("policy.writes", &mut policy.writes, Stricter, None, "\"deny\"",
                "What happens before a tool writes a file: nothing, a question, or a refusal; secrets, hidden files, startup files and instructions for agents are asked about anyway."),
            row("policy.unlisted_commands", &mut policy.unlisted_commands, Stricter, None, "\"deny\"",
                "What happens to a command that is not in `policy.commands`: it is refused, or you are asked about exactly this command."),
            row("policy.secret_reads", &mut policy.secret_reads, Stricter, None, "\"deny\"",
                "What happens before a tool reads a file that may contain secrets, such as `.env` or a private key: nothing, a question, or a refusal."),
            row("policy.sends", &mut policy.sends, Stricter, None, "\"deny\"",
                "What happens before `http_request` sends anything but GET or HEAD to a host that is not in `policy.hosts`: nothing, a question, or a refusal."),
            row("policy.environment", &mut policy.environment, Nothing, Some("--env"), "[\"GITHUB_TOKEN\"]",
                "Environment variables that are passed on to scripts."),
            row("policy.rules", &mut policy.rules, More, None, "[{ tool = \"http_request\", decision = \"ask\" }]",
                "Rules that allow, ask about or deny calls; of those that match, `deny` wins over `ask`, and `ask` over `allow`."),
        ];
        rows.extend(limits.rows());
        rows.extend([
            row("sandbox.level", &mut sandbox.level, Stricter, None, "\"strong\"",
                "The weakest sandbox that scripts and commands may run in; where the machine has none, nothing runs."),
            row("run.python", &mut run.python, Nothing, None, "\"~/.venvs/tools/bin/python3\"",
                "The Python that runs scripts, instead of that of an active virtual environment or on `PATH`."),
            row("run.node", &mut run.node, Nothing, None, "\"/opt/node/bin/node\"",
                "The Node.js that runs scripts, instead of that on `PATH`."),
            row("prepare.python_index", &mut prepare.python_index, Nothing, None, "\"https://nexus.example.com/simple\"",
                "The package index for Python [default: that of `uv` or `pip`, else PyPI]."),
            row("prepare.npm_registry", &mut prepare.npm_registry, Nothing, None, "\"https://nexus.example.com/npm/\"",
                "The registry for npm packages [default: that of `npm`, else npmjs.org]."),
            row("prepare.hosts", &mut prepare.hosts, Nothing, None, "[\"files.example.com\"]",
                "More hosts that packages are downloaded from; those of the registries are always allowed."),
            row("prepare.timeout", &mut prepare.timeout, Nothing, None, "\"20m\"",
                "How long an installation may take."),
            row("prepare.max_size", &mut prepare.max_size, Nothing, None, "\"8 GiB\"",
                "The largest environment, including what was downloaded for it."),
            row("prepare.max_total", &mut prepare.max_total, Nothing, None, "\"50 GiB\"",
                "How much all environments may take; those unused for the longest time are removed first."),
            row("sql.url", &mut sql.url, InsideUnset, None, "\"sqlite:data.db\"",
                "The database: SQLite, PostgreSQL or MariaDB."),
            row("sql.write", &mut sql.write, Nothing, None, "true",
                "Whether statements may change the database."),
            row("sql.privileged", &mut sql.privileged, Nothing, None, "true",
                "Whether a database superuser keeps its privileges; without it, it only reads."),
            row("model.provider", &mut model.provider, Nothing, Some("--provider"), "\"anthropic\"",
                "The provider of the model, whose API key is used."),
            row("model.name", &mut model.name, Unset, Some("--model"), "\"gpt-4o\"",
                "The model to ask."),
            row("model.base_url", &mut model.base_url, Nothing, Some("--base-url"), "\"http://localhost:11434/v1\"",
                "The address of the model's API."),
            row("model.key_file", &mut model.key_file, Nothing, None, "\"~/.config/prowess/key\"",
                "A file with the API key; only its owner may be able to read it."),
            row("model.max_output", &mut model.max_output, Unset, Some("--max-output"), "4096",
                "The most tokens of one reply."),
            row("model.timeout", &mut model.timeout, Unset, Some("--model-timeout"), "\"2m\"",
                "How long to wait for the next part of a reply."),
            row("model.input_price", &mut model.input_price, Nothing, None, "2.5",
                "The price of a million input tokens, for `--max-cost`."),
            row("model.output_price", &mut model.output_price, Nothing, None, "10",
                "The price of a million output tokens, for `--max-cost`."),
            row("agent.keep_sessions", &mut agent.keep_sessions, Nothing, None, "50",
                "How many unnamed sessions are kept; the oldest are removed first, and with 0 none is kept."),
            row("servers", servers, More, None, "docs = { url = \"https://example.com/mcp\" }\nfiles = { command = \"npx\", args = [\"-y\", \"@modelcontextprotocol/server-filesystem\", \".\"] }",
                "MCP servers, each under a label: a `command` with `args`, `env`, `cwd`, `read`, `write` and `hosts`, or a `url` with `headers` and `oauth`."),
        ]);
        rows
    }
}

/// Creates a row.
pub(super) fn row<'c>(
    key: &'static str,
    slot: &'c mut dyn Slot,
    right: ProjectRight,
    flag: Option<&'static str>,
    example: &'static str,
    about: &'static str,
) -> Row<'c> {
    Row { facts: Facts { key, right, flag, example, about }, slot }
}
