//! The examples at the end of the long help of every command.

use std::fmt::Write as _;

use clap::{Command, builder::Styles};

/// A command, without `prowess`, and its examples: arguments, and their purpose.
type Examples = (&'static str, &'static [(&'static str, &'static str)]);

/// Every command has examples. A new command is one more entry here.
const EXAMPLES: &[Examples] = &[
    (
        "list",
        &[
            ("prowess list --preset claude", "list the skills that Claude Code finds"),
            ("prowess list --dir skills --json", "print them as JSON"),
        ],
    ),
    (
        "check",
        &[
            ("prowess check my-skill", "check one skill"),
            (
                "prowess check skills --profile lenient",
                "report only what keeps clients from loading skills",
            ),
            ("prowess check my-skill --fix --dry-run", "show possible fixes as a diff"),
        ],
    ),
    (
        "audit",
        &[
            ("prowess audit some-skill", "look at a skill before you use it"),
            ("prowess audit --fail-on warning", "audit all skills, strictly"),
            (
                "prowess audit . --baseline prowess-audit.toml --accept",
                "accept what was looked at, and report only what is new",
            ),
        ],
    ),
    (
        "rule",
        &[("prowess rule", "list all rules"), ("prowess rule name-folder", "explain one rule")],
    ),
    (
        "doctor",
        &[
            ("prowess doctor my-skill", "show which clients load a skill, and why not"),
            ("prowess doctor --table", "add a table of all skills and clients"),
        ],
    ),
    (
        "find",
        &[
            ("prowess find open a PR", "find the best five skills"),
            ("prowess find 'open a PR' --why --top 1", "show which words matched"),
            ("prowess find --queries requests.jsonl", "answer many requests"),
        ],
    ),
    (
        "lab",
        &[
            ("prowess lab --dir skills", "find skills that compete for requests"),
            ("prowess lab create-pr --html lab.html", "examine one skill, and write a report"),
        ],
    ),
    (
        "show",
        &[
            ("prowess show create-pr", "show the whole skill"),
            ("prowess show create-pr --level brief", "show only a summary"),
            ("prowess show fix-issue --arguments '123'", "fill in its arguments"),
        ],
    ),
    (
        "read",
        &[
            ("prowess read create-pr scripts/gather.sh", "print one file, unchanged"),
            (
                "prowess read create-pr SKILL.md --lines 1-20",
                "print the first lines of its SKILL.md",
            ),
        ],
    ),
    (
        "prompt",
        &[
            ("prowess prompt 'open a PR'", "show what a model would be sent"),
            (
                "prowess prompt --history chat.json --window 8000",
                "see how a conversation fits into 8000 tokens",
            ),
        ],
    ),
    (
        "ask",
        &[
            ("prowess ask --dry-run 'open a PR'", "show what would be sent, without sending it"),
            ("git diff | prowess ask 'review this' --file -", "include text from a pipe"),
            ("prowess ask --resume", "continue the last session"),
        ],
    ),
    (
        "chat",
        &[
            ("prowess chat", "start a conversation; `/help` lists commands"),
            ("prowess chat --resume monday", "continue a session"),
        ],
    ),
    (
        "sessions",
        &[
            ("prowess sessions", "list sessions, newest first"),
            ("prowess sessions --remove-older 30d", "remove old sessions"),
        ],
    ),
    (
        "mcp",
        &[
            ("prowess mcp --dir skills", "serve a client on stdio"),
            ("prowess mcp install --client claude-code", "register it in Claude Code"),
        ],
    ),
    (
        "mcp install",
        &[
            ("prowess mcp install", "list the supported clients"),
            (
                "prowess mcp install --client cursor --dry-run",
                "show what would be written, and where",
            ),
            ("prowess mcp install --client codex --remove --yes", "remove it again"),
        ],
    ),
    (
        "catalog",
        &[
            ("prowess catalog --budget 2000", "fit the list into 2000 tokens"),
            ("prowess catalog --format xml", "include the location of each skill"),
        ],
    ),
    ("new", &[("prowess new rotate-keys --dir skills", "create a SKILL.md to fill in")]),
    (
        "create",
        &[
            (
                "prowess create greet --type script --file greet.sh --description 'Greets'",
                "create a script skill",
            ),
            (
                "prowess create notes --description 'How to write notes' --file notes.md",
                "create an instruction skill from a file",
            ),
        ],
    ),
    ("enable", &[("prowess enable greet --dir skills", "enable it")]),
    ("disable", &[("prowess disable greet --dir skills", "disable it")]),
    (
        "remove",
        &[("prowess remove greet --dir skills", "remove it; `prowess undo greet` restores it")],
    ),
    (
        "undo",
        &[
            ("prowess undo", "restore the last file a tool wrote, or the last removed skill"),
            ("prowess undo --list", "list what can be undone"),
            ("prowess undo notes/today.md", "undo the last change of this file"),
            ("prowess undo greet --dir skills", "restore a removed skill"),
        ],
    ),
    (
        "add",
        &[
            ("prowess add anthropics/skills", "choose from the skills of a repository"),
            ("prowess add anthropics/skills@pdf", "install one of them"),
            ("prowess add ./my-skills --all --client claude-code", "install all for Claude Code"),
            ("prowess add acme/skills#v2 --list", "show what a version contains"),
        ],
    ),
    (
        "sync",
        &[
            ("prowess sync", "install what this project asks for"),
            ("prowess sync --locked --offline", "the same in CI, without changing the lock file"),
        ],
    ),
    ("outdated", &[("prowess outdated", "list newer versions")]),
    (
        "update",
        &[
            ("prowess update --dry-run", "show what would change"),
            ("prowess update pdf", "update one skill"),
        ],
    ),
    ("verify", &[("prowess verify", "check that nothing was changed since it was installed")]),
    (
        "search",
        &[
            ("prowess search fill in forms", "search installed skills and your registries"),
            ("prowess search pdf --registry https://clawhub.ai", "search a registry"),
        ],
    ),
    (
        "use",
        &[
            ("prowess use anthropics/skills@pdf", "print its instructions"),
            ("prowess use anthropics/skills@pdf -- claude", "start Claude Code with it"),
        ],
    ),
    (
        "import",
        &[
            ("prowess import --dry-run", "show what other package managers installed here"),
            ("prowess import skills-lock.json", "take over the skills of npx skills"),
        ],
    ),
    ("export", &[("prowess export --format skills-lock", "print a lock file for npx skills")]),
    (
        "publish",
        &[
            (
                "prowess publish my-skill --to https://hub.example.com --dry-run",
                "show what would be uploaded",
            ),
            ("prowess publish my-skill --to https://hub.example.com", "check, pack and upload it"),
        ],
    ),
    (
        "cache",
        &[
            ("prowess cache", "show where fetched packages are, and how much they take"),
            ("prowess cache --clean", "remove what no installed skill needs"),
        ],
    ),
    ("migrate", &[("prowess migrate old-plugins --dir skills", "convert all plugins in a folder")]),
    (
        "init",
        &[
            ("prowess init", "write a `prowess.toml` for this project"),
            ("prowess init --dry-run", "print it instead"),
        ],
    ),
    (
        "config",
        &[
            ("prowess config", "show every setting, and where it comes from"),
            ("prowess config limits", "show one table of settings"),
            ("prowess config policy.hosts", "explain one setting"),
            ("prowess config --path", "print the path of your settings"),
        ],
    ),
    (
        "prepare",
        &[
            ("prowess prepare pdf", "install what its scripts need"),
            ("prowess prepare", "list the environments"),
            ("prowess prepare --clean", "remove unused ones"),
        ],
    ),
    (
        "run",
        &[
            ("prowess run greet who=Ada", "run it in the sandbox"),
            (
                "prowess run create-pr --script scripts/gather.sh -- --help",
                "run one of its scripts",
            ),
            ("prowess run release version=1.2 --plan", "show the steps of a composite skill"),
        ],
    ),
    (
        "tool",
        &[
            ("prowess tool execute_command command=ls", "call it with a named parameter"),
            (
                r#"prowess tool execute_command '{"command": "ls"}'"#,
                "call it with JSON, as a model does",
            ),
            ("prowess tool http_request @request.json --json", "read the input from a file"),
        ],
    ),
    (
        "tools",
        &[
            ("prowess tools", "list tools"),
            ("prowess tools --format openai", "print them for the OpenAI API"),
        ],
    ),
    (
        "servers",
        &[
            ("prowess servers", "list the configured servers and their tools"),
            ("prowess servers docs", "show only the server with this label"),
        ],
    ),
    ("servers show", &[("prowess servers show docs:release", "print a skill of a server")]),
    (
        "servers login",
        &[
            ("prowess servers login docs", "log in with a browser"),
            ("prowess servers login docs --device", "log in with a code, on any device"),
        ],
    ),
    ("servers logout", &[("prowess servers logout docs", "forget the login")]),
    (
        "trace",
        &[
            ("prowess trace pr.jsonl -o pr.html", "write a page that shows what an agent did"),
            ("prowess trace pr.jsonl --json", "print the numbers"),
        ],
    ),
    (
        "approvals",
        &[
            ("prowess approvals", "list saved approvals, newest first"),
            ("prowess approvals --revoke 3f2a9c1d", "revoke one"),
        ],
    ),
    (
        "trust",
        &[
            ("prowess trust .", "trust this project"),
            ("prowess trust --list", "list your decisions"),
            ("prowess trust . --revoke", "stop trusting it"),
        ],
    ),
    ("sandbox", &[("prowess sandbox", "show the sandbox features of this machine")]),
    (
        "completions",
        &[
            (
                "prowess completions bash > ~/.local/share/bash-completion/completions/prowess",
                "install completions for bash",
            ),
            (
                "prowess completions fish > ~/.config/fish/completions/prowess.fish",
                "install completions for fish",
            ),
            (
                "prowess completions zsh > ~/.prowess.zsh",
                "write completions for zsh, to be sourced in ~/.zshrc",
            ),
        ],
    ),
    (
        "man",
        &[
            ("prowess man ~/.local/share/man/man1", "install the pages for `man prowess-find`"),
            ("prowess man | man -l -", "read the page of `prowess`"),
        ],
    ),
];

/// Adds the examples to the help.
pub(crate) fn add_examples(command: Command) -> Command {
    EXAMPLES.iter().fold(command, |command, (path, examples)| {
        let text = format_examples(examples);
        match path.split_once(' ') {
            _ if !has_command(&command, path) => command,
            Some((above, below)) => command.mut_subcommand(above, |it| {
                it.mut_subcommand(below, |it| it.after_long_help(text))
            }),
            None => command.mut_subcommand(path, |it| it.after_long_help(text)),
        }
    })
}

/// Whether this build has a command.
fn has_command(command: &Command, path: &str) -> bool {
    path.split(' ').try_fold(command, |it, name| it.find_subcommand(name)).is_some()
}

fn format_examples(examples: &[(&str, &str)]) -> String {
    let (styles, mut text) = (Styles::styled(), String::new());
    let header = styles.get_header();
    let _ = write!(text, "{header}Examples:{header:#}");
    for (line, what) in examples {
        let _ = write!(text, "\n  {line}\n          {what}");
    }
    text
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory as _, Parser as _};

    use super::*;
    use crate::arguments::Arguments;

    #[test]
    fn every_command_has_examples() {
        fn without(command: &Command) -> Vec<String> {
            let below = command.get_subcommands().filter(|it| it.get_name() != "help");
            below
                .flat_map(|it| {
                    let own = it.get_after_long_help().is_none().then(|| it.get_name().to_owned());
                    own.into_iter().chain(without(it))
                })
                .collect()
        }
        assert_eq!(without(&add_examples(Arguments::command())), Vec::<String>::new());
    }

    #[test]
    fn every_example_can_be_typed() {
        for (path, examples) in EXAMPLES {
            for (line, _) in *examples {
                let own = &line[line.find("prowess").expect("it is an example of ours")..];
                let words = words(own.split(" | ").next().unwrap_or(own));
                let words = words.iter().take_while(|it| *it != ">");
                let typed = Arguments::try_parse_from(words);
                assert!(typed.is_ok(), "{line}: {}", typed.map(drop).unwrap_err());
                assert!(
                    own.starts_with(&format!("prowess {path}")) || own.contains("install"),
                    "{line}"
                );
            }
        }
    }

    /// Splits a line into words like a shell that knows only single quotes.
    fn words(line: &str) -> Vec<String> {
        let mut words = vec![String::new()];
        let mut is_quoted = false;
        for c in line.chars() {
            match c {
                '\'' => is_quoted = !is_quoted,
                ' ' if !is_quoted => words.push(String::new()),
                c => words.last_mut().expect("there is one").push(c),
            }
        }
        words
    }
}
