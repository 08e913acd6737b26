//! Permitted commands: parsed, checked word by word, and reassembled.
//!
//! No shell ever receives the original text. A command is parsed, every part of it is looked up in
//! the policy, and the command line that runs is written anew, with the path of each program and
//! quotes around every word. Shell expansions are refused, except for globs among the arguments.

mod caution;
mod git;
mod git_command;
mod guard;
mod history;
mod git_dirs;
mod program;
mod reader;
mod scripts;
mod secrets;
mod withheld;
mod walk;
mod wrapper;

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use prowess_shell::{CommandKind, ListOperator, ShellCommand, ShellScript, Word, WordPart, lint};

use crate::sys::MetadataExt as _;
use crate::{policy::Policy, refusal::Refusal, subject::Subject};

use self::program::Program;
pub(crate) use self::{
    git_dirs::GitDirs,
    guard::{Guard, ProtectedChange, ProtectedFiles},
    secrets::find_secrets,
    withheld::Withheld,
};

/// The path of a program of the system, by its name.
pub fn system_program(name: &str) -> Option<PathBuf> {
    Program::of_system(name).map(|it| it.path).ok()
}

/// A command that may run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Plan {
    parts: Vec<PlannedProgram>,
    /// Its working directory, with links resolved.
    pub(crate) directory: PathBuf,
    /// The device and inode of that directory.
    directory_id: Option<(u64, u64)>,
    /// Its unlisted parts, one line each: they require approval.
    pub(crate) unlisted: Vec<String>,
    /// The files with secrets that it names, with links resolved: they require approval.
    pub(crate) secrets: Vec<PathBuf>,
    /// Those that the policy itself names.
    pub(crate) spelled_secrets: Vec<PathBuf>,
}

/// One program of it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct PlannedProgram {
    program: Program,
    /// Its words, and those of every command that it runs in turn, as matched by a policy.
    words: Vec<Vec<String>>,
    /// Its arguments.
    arguments: Vec<Argument>,
    /// The operator between it and the next one.
    operator: &'static str,
}

/// One word of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Argument {
    text: String,
    /// The same, quoted for a shell.
    quoted: String,
    /// Whether it is a glob, so that it may expand to several words.
    is_glob: bool,
}

/// The maximum length of a command.
const LONGEST: usize = 16 * 1024;
/// The maximum number of nested commands.
const MOST_NESTED: usize = 16;

/// Parses a command and checks every word of it.
pub(crate) fn plan(line: &str, directory: &Path, policy: &Policy) -> Result<Plan, Refusal> {
    let directory = resolve_directory(directory, policy)?;
    if line.len() > LONGEST {
        return Err(refusal("the command is too long", "put it into a script of a skill"));
    }
    if let Some(c) = line.chars().find(|it| it.is_control() && !matches!(it, '\n' | '\t')) {
        let message = format!("the command contains a control character: `{}`", c.escape_unicode());
        return Err(refusal(&message, "remove it"));
    }
    let script = prowess_shell::parse(line).map_err(|error| {
        refusal(&format!("cannot parse the command: {}", error.message), SYNTAX_HINT)
    })?;
    if let Some(hazard) = lint(line) {
        return Err(refusal(&hazard.to_string(), "this is never allowed"));
    }
    let mut context = CommandContext {
        directory: &directory,
        policy,
        unlisted: Vec::new(),
        secrets: Vec::new(),
        spelled_secrets: Vec::new(),
        matched_secrets: Vec::new(),
    };
    let parts = plan_script(&script, &mut context)?;
    let CommandContext { unlisted, secrets, spelled_secrets, matched_secrets, .. } = context;
    if parts.iter().any(|it| it.program.is_git())
        && let Some(other) =
            parts.iter().find(|it| !it.program.is_git() && !git_dirs::ignores_git(it))
    {
        let message = format!(
            "`{}` could read `.git`, which is accessible because the command also runs `git`",
            other.words[0][0]
        );
        return Err(refusal(&message, "run git by itself, or pipe its output to filters only"));
    }
    let directory_id = directory_id(&directory);
    let mut plan = Plan { parts, directory, directory_id, unlisted, secrets, spelled_secrets };
    // They are hidden from commands that only read.
    if plan.writes() {
        plan.secrets.extend(matched_secrets);
    }
    plan.secrets.sort();
    plan.secrets.dedup();
    Ok(plan)
}

/// The hint on the supported syntax.
const SYNTAX_HINT: &str =
    "use plain words and quotes, with `|`, `&&`, `||` and `;` between commands";

/// The hint for access to `.git`.
const GIT_HINT: &str = "use git, such as `git log`";

impl Plan {
    /// Returns the words of each program, and of each nested one.
    pub(crate) fn parts(&self) -> impl Iterator<Item = &[String]> {
        self.parts.iter().flat_map(|it| &it.words).map(|it| &**it)
    }

    /// Whether git is among them, and needs the `.git` directories.
    pub(crate) fn has_git(&self) -> bool {
        self.parts.iter().any(|it| it.program.is_git())
    }

    /// Whether any of its programs writes; otherwise it runs with read-only access.
    pub(crate) fn writes(&self) -> bool {
        let is_own = self.own_programs().next().is_some();
        is_own || !self.parts().all(reader::only_reads)
    }

    /// Whether any of its programs prints contents of files, and not only their names.
    pub(crate) fn prints_content(&self) -> bool {
        self.parts().any(|it| secrets::prints_content(&it[0]))
    }

    /// Returns the subject of an approval: every word, the directory, and the exact programs.
    pub(crate) fn subject(&self) -> Subject {
        let mut words: Vec<Vec<u8>> = vec![self.directory.as_os_str().as_encoded_bytes().to_vec()];
        // Another directory may be in its place when the approval is used.
        words.push(format!("{:?}", self.directory_id).into_bytes());
        for part in &self.parts {
            words.push(part.operator.into());
            words.push(part.program.identity().into_bytes());
            words.extend(part.arguments.iter().map(|it| it.quoted.clone().into_bytes()));
        }
        // The target of a link may have changed.
        words.extend(self.secrets.iter().map(|it| it.as_os_str().as_encoded_bytes().to_vec()));
        Subject::of_words(words.iter().map(|it| &**it))
    }

    /// Whether its directory and its programs are still the same.
    pub(crate) fn is_unchanged(&self) -> bool {
        directory_id(&self.directory) == self.directory_id
            && self.parts.iter().all(|it| it.program.is_unchanged())
    }

    /// Returns the arguments to run: the program itself, or a shell if several are joined or a glob
    /// is expanded.
    pub(crate) fn argv(&self) -> Vec<OsString> {
        match &self.parts[..] {
            [PlannedProgram { program, arguments, .. }]
                if !arguments.iter().any(|it| it.is_glob) =>
            {
                let path = program.path.clone().into_os_string();
                std::iter::once(path).chain(arguments.iter().map(|it| (&it.text).into())).collect()
            }
            parts => {
                let line: String = parts.iter().map(PlannedProgram::quote_for_shell).collect();
                vec!["/bin/sh".into(), "-c".into(), line.into()]
            }
        }
    }

    /// Returns the paths of those programs that do not belong to the system.
    pub(crate) fn own_programs(&self) -> impl Iterator<Item = PathBuf> {
        let places = self.parts.iter().flat_map(|it| it.program.places());
        places.filter(|it| !SYSTEM.iter().any(|own| it.starts_with(own))).map(Path::to_owned)
    }
}

/// Directories that every script can read.
const SYSTEM: &[&str] = &["/usr", "/bin", "/sbin", "/lib", "/lib64"];

impl PlannedProgram {
    /// Returns it as quoted for a shell.
    fn quote_for_shell(&self) -> String {
        let mut words = vec![quote(&self.program.path.to_string_lossy())];
        words.extend(self.arguments.iter().map(|it| it.quoted.clone()));
        format!("{}{}", words.join(" "), self.operator)
    }
}

fn directory_id(directory: &Path) -> Option<(u64, u64)> {
    std::fs::metadata(directory).map(|it| (it.dev(), it.ino())).ok()
}

/// Resolves the directory, if it is in a root of the policy.
fn resolve_directory(directory: &Path, policy: &Policy) -> Result<PathBuf, Refusal> {
    let shown = directory.display();
    let Some(directory) = existing_directory(directory) else {
        return Err(refusal(&format!("there is no directory `{shown}`"), "choose one that exists"));
    };
    if git::has_git(&directory) {
        return Err(refusal(
            &format!("`{shown}` leads into `.git`, which only git may read"),
            GIT_HINT,
        ));
    }
    if policy.withholds(&directory) {
        return Err(refusal(&format!("`{shown}` cannot be used"), "choose another directory"));
    }
    let mut roots = policy.roots.iter().filter_map(|it| existing_directory(it));
    if roots.any(|it| directory.starts_with(it)) {
        return Ok(directory);
    }
    let roots: Vec<String> = policy.roots.iter().map(|it| format!("`{}`", it.display())).collect();
    let hint = match roots.is_empty() {
        true => "add directories with `--root` or `policy.roots`".to_owned(),
        false => format!("commands may run in {}", roots.join(", ")),
    };
    Err(refusal(&format!("`{shown}` is not in a directory that commands may run in"), &hint))
}

fn existing_directory(path: &Path) -> Option<PathBuf> {
    prowess::real_path(path).ok().filter(|it| it.is_dir())
}

fn plan_script(
    script: &ShellScript,
    context: &mut CommandContext<'_>,
) -> Result<Vec<PlannedProgram>, Refusal> {
    let mut parts = Vec::new();
    for (at, pipeline) in script.0.iter().enumerate() {
        let is_last = at + 1 == script.0.len();
        if pipeline.is_negated {
            return Err(refusal("`!` before a command is not supported", SYNTAX_HINT));
        }
        let operator = match pipeline.operator {
            ListOperator::Background => {
                return Err(refusal("background commands are not supported", SYNTAX_HINT));
            }
            ListOperator::Sequence if is_last => "",
            ListOperator::Sequence => "; ",
            ListOperator::And => " && ",
            ListOperator::Or => " || ",
        };
        for (at, command) in pipeline.commands.iter().enumerate() {
            let is_last = at + 1 == pipeline.commands.len();
            let operator = if is_last { operator } else { " | " };
            parts.push(PlannedProgram { operator, ..plan_command(command, context)? });
        }
    }
    if parts.is_empty() {
        return Err(refusal("the command is empty", "pass one, such as `ls -l`"));
    }
    Ok(parts)
}

fn plan_command(
    command: &ShellCommand,
    context: &mut CommandContext<'_>,
) -> Result<PlannedProgram, Refusal> {
    let CommandKind::Simple { assignments, words } = &command.kind else {
        return Err(refusal(
            "loops, conditions, groups and functions are not supported",
            SYNTAX_HINT,
        ));
    };
    if !command.redirects.is_empty() {
        return Err(refusal(
            "redirections are not supported",
            "use `file_operations` to write a file, and a pipe between commands",
        ));
    }
    if !assignments.is_empty() {
        return Err(refusal("variable assignments are not supported", SYNTAX_HINT));
    }
    let mut arguments: Vec<Argument> = words.iter().map(to_argument).collect::<Result<_, _>>()?;
    let mut words = Vec::new();
    let program = resolve_program(&arguments, context, &mut words)?;
    arguments.remove(0);
    let is_git = program.is_git();
    if is_git {
        arguments = git::harden(arguments, context.directory)?;
    }
    let part = PlannedProgram { program, words, arguments, operator: "" };
    if is_git {
        history::check(&part, context.directory, context.policy)?;
    }
    Ok(part)
}

/// The working directory of a command, and the policy on it.
struct CommandContext<'a> {
    directory: &'a Path,
    policy: &'a Policy,
    /// The parts that require approval.
    unlisted: Vec<String>,
    secrets: Vec<PathBuf>,
    spelled_secrets: Vec<PathBuf>,
    /// The files with secrets that its globs match.
    matched_secrets: Vec<PathBuf>,
}

impl CommandContext<'_> {
    /// Records a question with this text instead of the refusal, if the policy can ask.
    fn ask_or(&mut self, refusal: Refusal, asked: &str) -> Result<(), Refusal> {
        if !self.policy.asks_about_commands() {
            return Err(refusal);
        }
        if !self.unlisted.iter().any(|it| it == asked) {
            self.unlisted.push(asked.to_owned());
        }
        Ok(())
    }
}

/// Finds the program of a command, if the policy allows it with all of its words; records the words
/// of it, and of nested commands.
fn resolve_program(
    words: &[Argument],
    context: &mut CommandContext<'_>,
    recorded: &mut Vec<Vec<String>>,
) -> Result<Program, Refusal> {
    let Some(name) = words.first().filter(|it| !it.is_glob).map(|it| &it.text) else {
        return Err(refusal("the program name is missing, or not plain text", SYNTAX_HINT));
    };
    if program::is_builtin(name) {
        return Err(refusal(
            &format!("`{name}` is a shell builtin, and commands do not share a shell"),
            "use `working_directory` to run it elsewhere",
        ));
    }
    let policy = context.policy;
    let commands = &policy.commands;
    let entries = commands.iter().map(|it| it.split_ascii_whitespace().collect::<Vec<_>>());
    let matching = entries
        .filter_map(|it| Some((Program::matching(words, &it, context.directory, policy)?, it)));
    let mut is_listed = true;
    let (program, spelled) = match matching.max_by_key(|it| it.1.len()) {
        Some((program, entry)) => (program?, entry.len()),
        None => {
            let refusal = unlisted_refusal(name, policy);
            let asked = format!("`{name}` is not listed in `policy.commands`");
            context.ask_or(refusal, &asked)?;
            is_listed = false;
            (Program::named(name, context.directory, policy)?, 1)
        }
    };
    if let Some(other) = program.disguised_name().filter(|it| !commands.iter().any(|own| own == it))
    {
        let message = format!("`{name}` is another name for `{other}`, which is not allowed");
        context.ask_or(refusal(&message, &allowed_commands(policy)), &message)?;
    }
    let own = program.names().take(1).map(str::to_owned);
    recorded.push(own.chain(words[1..].iter().map(|it| it.text.clone())).collect());
    if recorded.len() > MOST_NESTED {
        return Err(refusal("the commands are nested too deeply", SYNTAX_HINT));
    }
    if program.is_git() && recorded.len() > 1 {
        return Err(refusal("`git` cannot be run by another program", "run it by itself"));
    }
    // Words that the policy itself names need no further check.
    let rest = &words[spelled..];
    if program.names().any(secrets::prints_content) {
        let directory = context.directory;
        for word in &words[1..spelled] {
            context.spelled_secrets.extend(secrets::named_secrets(word, directory, policy));
        }
        for word in rest {
            context.secrets.extend(secrets::named_secrets(word, directory, policy));
            context.matched_secrets.extend(secrets::matched_secrets(word, directory, policy));
        }
    }
    // `find` only looks for files, it does not read them.
    let reads = program.names().all(|it| it != "find");
    if let Some(word) = rest.iter().find(|it| reads && git::is_inside(it, context.directory)) {
        let who = if program.is_git() { "only git itself may read" } else { "only git may read" };
        let message = format!("`{}` leads into `.git`, which {who}", word.text);
        return Err(refusal(&message, GIT_HINT));
    }
    for known in program.names() {
        if let Some(wrapped) = wrapper::wrapped_command(known, rest)? {
            let inner = resolve_program(wrapped, context, recorded)?;
            if known == "xargs" && inner.names().any(caution::is_known) {
                let inner = &wrapped[0].text;
                return Err(refusal(
                    &format!(
                        "what `xargs` adds to `{inner}` could be an option that runs or writes something"
                    ),
                    "name the files yourself",
                ));
            }
        }
        let is_bare = spelled == 1;
        let mut inner = None;
        let checked = caution::check(known, rest, is_bare, |it| {
            let resolved = resolve_program(it, context, recorded).map(drop);
            resolved.inspect_err(|refusal| inner = Some(refusal.clone()))
        });
        match checked {
            // Arguments of git could make it run something later, outside of the sandbox.
            Err(refusal) if program.is_git() || inner.is_some() => return Err(refusal),
            // The user sees all of its words, and may approve them.
            Err(_) if !is_listed => {}
            Err(refusal) => {
                let asked = refusal.message.clone();
                context.ask_or(refusal, &asked)?;
            }
            Ok(()) => {}
        }
    }
    Ok(program)
}

fn unlisted_refusal(name: &str, policy: &Policy) -> Refusal {
    let near: Vec<String> = policy
        .commands
        .iter()
        .filter(|it: &&String| it.split_ascii_whitespace().next() == Some(name))
        .map(|it| format!("`{it}`"))
        .collect();
    let hint = match near.is_empty() {
        true => allowed_commands(policy),
        false => format!("only {} of `{name}` may run", near.join(", ")),
    };
    refusal(&format!("`{name}` is not an allowed command"), &hint)
}

/// Returns a hint that lists the permitted commands.
fn allowed_commands(policy: &Policy) -> String {
    let all: Vec<&str> = policy.commands.iter().map(|it| &**it).take(40).collect();
    match all.is_empty() {
        true => "no commands are allowed; add them to `policy.commands`".to_owned(),
        false => format!("allowed by `policy.commands`: {}", all.join(", ")),
    }
}

/// Converts a literal or a glob.
fn to_argument(word: &Word) -> Result<Argument, Refusal> {
    let mut text = String::new();
    let mut pieces = Vec::new();
    for (at, part) in word.0.iter().enumerate() {
        match part {
            WordPart::Quoted(piece) => {
                text.push_str(piece);
                pieces.push((piece.as_str(), false));
            }
            WordPart::Plain(piece) => {
                if at == 0 && piece.starts_with('~') {
                    return Err(refusal("`~` is not expanded", "write the path out"));
                }
                if piece.contains('{') && piece.contains(',') {
                    return Err(refusal(
                        "braces are not expanded",
                        "write the words out, or quote them",
                    ));
                }
                text.push_str(piece);
                pieces.push((piece.as_str(), true));
            }
            _ => {
                return Err(refusal(
                    "variables, substitutions and arithmetic are not expanded",
                    SYNTAX_HINT,
                ));
            }
        }
    }
    let is_glob = pieces.iter().any(|it| it.1 && it.0.contains(GLOB_SIGNS));
    // An option is literal, even if a file has its name.
    if !is_glob || text.starts_with('-') {
        return Ok(Argument::literal(&text));
    }
    // No matching file can be mistaken for an option.
    let mut quoted = if text.starts_with(GLOB_SIGNS) { "./".to_owned() } else { String::new() };
    for (piece, is_plain) in pieces {
        for c in piece.chars() {
            match is_plain && (GLOB_SIGNS.contains(&c) || matches!(c, '!' | '-')) {
                true => quoted.push(c),
                false => quoted.push_str(&quote(&c.to_string())),
            }
        }
    }
    Ok(Argument { text, quoted, is_glob: true })
}

const GLOB_SIGNS: [char; 4] = ['*', '?', '[', ']'];

impl Argument {
    /// Creates a literal.
    fn literal(text: &str) -> Self {
        Self { text: text.to_owned(), quoted: quote(text), is_glob: false }
    }
}

/// Quotes a literal for a shell.
fn quote(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

fn refusal(message: &str, hint: &str) -> Refusal {
    Refusal { message: message.to_owned(), hint: hint.to_owned() }
}
