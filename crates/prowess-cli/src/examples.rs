//! Examples, as they stand at the end of the long help of every command.

use std::fmt::Write as _;

use clap::{Command, builder::Styles};

/// A command, as it is typed behind `prowess`; and what else may be typed, with what for.
type Examples = (&'static str, &'static [(&'static str, &'static str)]);

/// Every command has examples. A new command is one more entry here.
const EXAMPLES: &[Examples] = &[
    (
        "list",
        &[
            ("prowess list --preset claude", "what Claude Code would find"),
            ("prowess list --dir skills --json", "the same for a script"),
        ],
    ),
    (
        "check",
        &[
            ("prowess check my-skill", "what the specification says about it"),
            ("prowess check skills --profile lenient", "only what keeps clients from loading"),
            ("prowess check my-skill --fix --dry-run", "what could be put right, as a diff"),
        ],
    ),
    (
        "rule",
        &[
            ("prowess rule", "all of them, in a line each"),
            ("prowess rule name-folder", "what one asks for, and why"),
        ],
    ),
    (
        "doctor",
        &[
            ("prowess doctor my-skill", "which installed clients load it, and why not"),
            ("prowess doctor --table", "a table of all skills and clients"),
        ],
    ),
    (
        "find",
        &[
            ("prowess find open a PR", "the five that fit best"),
            ("prowess find 'open a PR' --why --top 1", "and which words say so"),
            ("prowess find --queries requests.jsonl", "many requests, a line each"),
        ],
    ),
    (
        "lab",
        &[
            ("prowess lab --dir skills", "which skills take each other's requests"),
            ("prowess lab create-pr --html lab.html", "one of them, and a page of all"),
        ],
    ),
    (
        "show",
        &[
            ("prowess show create-pr", "the whole skill"),
            ("prowess show create-pr --level brief", "what a fair match would show"),
            ("prowess show fix-issue --arguments '123'", "with `123` for its arguments"),
        ],
    ),
    (
        "read",
        &[
            ("prowess read create-pr scripts/gather.sh", "one file of it, byte for byte"),
            ("prowess read create-pr SKILL.md --lines 1-20", "the first lines of its SKILL.md"),
        ],
    ),
    (
        "prompt",
        &[
            ("prowess prompt 'open a PR'", "what a model would be sent"),
            ("prowess prompt --history chat.json --window 8000", "how a talk fits in 8000 tokens"),
        ],
    ),
    (
        "ask",
        &[
            ("prowess ask --dry-run 'open a PR'", "what would be sent; nothing is"),
            ("git diff | prowess ask 'review this' --file -", "with a text from a pipe"),
            ("prowess ask --resume", "go on where it was broken off"),
        ],
    ),
    (
        "chat",
        &[
            ("prowess chat", "talk; `/help` says what can be typed"),
            ("prowess chat --resume monday", "go on with a session"),
        ],
    ),
    (
        "sessions",
        &[
            ("prowess sessions", "the last one first"),
            ("prowess sessions --remove-older 30d", "forget what is old"),
        ],
    ),
    (
        "mcp",
        &[
            ("prowess mcp --dir skills", "serve a client that starts it"),
            ("prowess mcp install --client claude-code", "have a client start it"),
        ],
    ),
    (
        "mcp install",
        &[
            ("prowess mcp install", "which clients are known"),
            ("prowess mcp install --client cursor --dry-run", "what would be written, and where"),
            ("prowess mcp install --client codex --remove --yes", "take it out again"),
        ],
    ),
    (
        "catalog",
        &[
            ("prowess catalog --budget 2000", "what fits into 2000 tokens"),
            ("prowess catalog --format xml", "with the place of each skill"),
        ],
    ),
    ("new", &[("prowess new rotate-keys --dir skills", "a SKILL.md to fill in")]),
    (
        "create",
        &[
            (
                "prowess create greet --type script --file greet.sh --description 'Greets'",
                "a script, with what it is for",
            ),
            (
                "prowess create notes --description 'How to write notes' --file notes.md",
                "instructions from a file",
            ),
        ],
    ),
    ("enable", &[("prowess enable greet --dir skills", "put it in use")]),
    ("disable", &[("prowess disable greet --dir skills", "keep it, out of use")]),
    ("remove", &[("prowess remove greet --dir skills", "gone, until `prowess undo greet`")]),
    (
        "undo",
        &[
            ("prowess undo", "the last file that a tool wrote, or the last skill removed"),
            ("prowess undo --list", "what can be undone"),
            ("prowess undo notes/today.md", "the last change of this file"),
            ("prowess undo greet --dir skills", "bring back a removed skill"),
        ],
    ),
    ("migrate", &[("prowess migrate old-plugins --dir skills", "all plugins of a folder")]),
    (
        "init",
        &[
            ("prowess init", "a `prowess.toml` for this project"),
            ("prowess init --dry-run", "what would be in it"),
        ],
    ),
    (
        "config",
        &[
            ("prowess config", "every setting, and where it comes from"),
            ("prowess config limits", "one table of them"),
            ("prowess config policy.hosts", "what one setting means, and who may set it"),
            ("prowess config --path", "where your own settings go"),
        ],
    ),
    (
        "prepare",
        &[
            ("prowess prepare pdf", "install what its scripts need"),
            ("prowess prepare", "which environments there are"),
            ("prowess prepare --clean", "remove those that nobody uses"),
        ],
    ),
    (
        "run",
        &[
            ("prowess run greet who=Ada", "execute it, in the sandbox"),
            (
                "prowess run create-pr --script scripts/gather.sh -- --help",
                "a script that it brings",
            ),
            ("prowess run release version=1.2 --plan", "the steps of a composite skill, not run"),
        ],
    ),
    (
        "tool",
        &[
            ("prowess tool execute_command command=ls", "with what it is given by name"),
            (r#"prowess tool execute_command '{"command": "ls"}'"#, "as a model would call it"),
            ("prowess tool http_request @request.json --json", "with input from a file"),
        ],
    ),
    (
        "tools",
        &[
            ("prowess tools", "what can be called, and what for"),
            ("prowess tools --format openai", "ready to be sent"),
        ],
    ),
    (
        "servers",
        &[
            ("prowess servers", "those that are set, and their tools"),
            ("prowess servers docs", "only the one with this label"),
        ],
    ),
    ("servers show", &[("prowess servers show docs:release", "a skill that a server offers")]),
    (
        "servers login",
        &[
            ("prowess servers login docs", "in a browser"),
            ("prowess servers login docs --device", "with a code, on any device"),
        ],
    ),
    ("servers logout", &[("prowess servers logout docs", "forget the login")]),
    (
        "trace",
        &[
            ("prowess trace pr.jsonl -o pr.html", "a page of what an agent did"),
            ("prowess trace pr.jsonl --json", "the same in numbers"),
        ],
    ),
    (
        "approvals",
        &[
            ("prowess approvals", "what is no longer asked about, the last one first"),
            ("prowess approvals --revoke 3f2a9c1d", "be asked about it again"),
        ],
    ),
    (
        "trust",
        &[
            ("prowess trust .", "let the skills of this project act"),
            ("prowess trust --list", "what you have decided so far"),
            ("prowess trust . --revoke", "take it back"),
        ],
    ),
    ("sandbox", &[("prowess sandbox", "which sandbox features this machine supports")]),
    (
        "completions",
        &[
            (
                "prowess completions bash > ~/.local/share/bash-completion/completions/prowess",
                "for every new bash",
            ),
            ("prowess completions fish > ~/.config/fish/completions/prowess.fish", "for fish"),
            ("prowess completions zsh > ~/.prowess.zsh", "for zsh, which has to `source` it"),
        ],
    ),
    (
        "man",
        &[
            ("prowess man ~/.local/share/man/man1", "then `man prowess-find` shows a page"),
            ("prowess man | man -l -", "read it at once"),
        ],
    ),
];

/// Puts the examples where they are shown.
pub(crate) fn add(command: Command) -> Command {
    EXAMPLES.iter().fold(command, |command, (path, examples)| {
        let text = text(examples);
        match path.split_once(' ') {
            Some((above, below)) => command.mut_subcommand(above, |it| {
                it.mut_subcommand(below, |it| it.after_long_help(text))
            }),
            None => command.mut_subcommand(path, |it| it.after_long_help(text)),
        }
    })
}

fn text(examples: &[(&str, &str)]) -> String {
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
        assert_eq!(without(&add(Arguments::command())), Vec::<String>::new());
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

    /// The words of a line, as a shell would see them that knows nothing but single quotes.
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
