//! Commands that may run: taken apart, checked word for word, and put together again.
//!
//! No shell sees what was given. A command is read, every part of it is looked up among those that
//! may run, and what runs in the end is written anew, with the path of each program and with quotes
//! around every word. Whatever a shell would expand is refused, but for globs among the arguments.

mod caution;
mod guard;
mod program;
mod scripts;
mod wrapper;

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use crate::{
    danger::danger,
    gate::Refusal,
    policy::Policy,
    shell::{self, Joint, Kind, Part, Script, Word},
    subject::Subject,
};

pub(crate) use self::guard::Guard;
use self::program::Program;

/// A command that may run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Plan {
    parts: Vec<Step>,
    /// Where it runs, without links.
    pub(crate) directory: PathBuf,
}

/// One program of it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Step {
    program: Program,
    /// Its words, as a policy sees them.
    argv: Vec<String>,
    /// Its words, as a shell is given them.
    quoted: Vec<String>,
    /// What stands between it and the next one.
    sign: &'static str,
}

/// One word of a command.
struct Argument {
    text: String,
    quoted: String,
    is_glob: bool,
}

/// How long a command can be.
const LONGEST: usize = 16 * 1024;

/// Takes a command apart and checks every word of it.
pub(crate) fn plan(line: &str, directory: &Path, policy: &Policy) -> Result<Plan, Refusal> {
    let directory = contained(directory, policy)?;
    if line.len() > LONGEST {
        return Err(refused("the command is too long", "put it into a script of a skill"));
    }
    if let Some(c) = line.chars().find(|it| it.is_control() && !matches!(it, '\n' | '\t')) {
        let message = format!("there is a control character in it: `{}`", c.escape_unicode());
        return Err(refused(&message, "write it without"));
    }
    let script = shell::parse(line)
        .map_err(|error| refused(&format!("it cannot be read: {}", error.message), STATIC))?;
    if let Some(danger) = danger(line) {
        return Err(refused(&danger.to_string(), "nothing may do that"));
    }
    let parts = steps(&script, &directory, policy)?;
    Ok(Plan { parts, directory })
}

/// What may stand in a command.
const STATIC: &str =
    "plain words with quotes are taken, and `|`, `&&`, `||` and `;` between commands";

impl Plan {
    /// The words of each program.
    pub(crate) fn parts(&self) -> impl Iterator<Item = &[String]> {
        self.parts.iter().map(|it| &*it.argv)
    }

    /// What an approval of it is bound to: every word, where it runs, and the very programs.
    pub(crate) fn subject(&self) -> Subject {
        let mut words: Vec<Vec<u8>> = vec![self.directory.as_os_str().as_encoded_bytes().to_vec()];
        for step in &self.parts {
            words.push(step.sign.into());
            words.push(step.program.identity().into_bytes());
            words.push(step.argv.len().to_string().into_bytes());
            words.extend(step.argv.iter().map(|it| it.clone().into_bytes()));
        }
        Subject::of_words(words.iter().map(|it| &**it))
    }

    /// What is run: the program itself, or a shell where several are joined or a glob is expanded.
    pub(crate) fn argv(&self) -> Vec<OsString> {
        if let [Step { program, argv, quoted, .. }] = &self.parts[..]
            && argv.iter().zip(quoted).skip(1).all(|(word, quoted)| *quoted == quote(word))
        {
            let path = program.path.clone().into_os_string();
            return std::iter::once(path).chain(argv.iter().skip(1).map(OsString::from)).collect();
        }
        let parts = self.parts.iter().map(|it| format!("{}{}", it.quoted.join(" "), it.sign));
        vec!["/bin/sh".into(), "-c".into(), parts.collect::<String>().into()]
    }

    /// Where those of its programs lie that do not belong to the system.
    pub(crate) fn own_programs(&self) -> impl Iterator<Item = PathBuf> {
        let places = self.parts.iter().flat_map(|it| it.program.places());
        places.filter(|it| !SYSTEM.iter().any(|own| it.starts_with(own))).map(Path::to_owned)
    }
}

/// What every script can read.
const SYSTEM: &[&str] = &["/usr", "/bin", "/sbin", "/lib", "/lib64"];

/// The directory without links, if it lies in a root of the policy.
fn contained(directory: &Path, policy: &Policy) -> Result<PathBuf, Refusal> {
    let real = |path: &Path| std::fs::canonicalize(path).ok().filter(|it| it.is_dir());
    let shown = directory.display();
    let Some(directory) = real(directory) else {
        return Err(refused(&format!("there is no directory `{shown}`"), "name one that is there"));
    };
    let mut roots = policy.roots.iter().filter_map(|it| real(it));
    if roots.any(|it| directory.starts_with(it)) {
        return Ok(directory);
    }
    let roots: Vec<String> = policy.roots.iter().map(|it| format!("`{}`", it.display())).collect();
    let hint = match roots.is_empty() {
        true => "`policy.roots` names the directories in which commands may run".to_owned(),
        false => format!("commands may run in {}", roots.join(", ")),
    };
    Err(refused(&format!("`{shown}` lies in no directory that commands may run in"), &hint))
}

fn steps(script: &Script, directory: &Path, policy: &Policy) -> Result<Vec<Step>, Refusal> {
    let mut steps = Vec::new();
    for (at, statement) in script.0.iter().enumerate() {
        let is_last = at + 1 == script.0.len();
        if statement.is_negated {
            return Err(refused("`!` is not taken before a command", STATIC));
        }
        let sign = match statement.joint {
            Joint::Background => {
                return Err(refused("nothing may go on in the background", STATIC));
            }
            Joint::Then if is_last => "",
            Joint::Then => "; ",
            Joint::And => " && ",
            Joint::Or => " || ",
        };
        for (at, command) in statement.pipeline.iter().enumerate() {
            let is_last = at + 1 == statement.pipeline.len();
            let sign = if is_last { sign } else { " | " };
            steps.push(Step { sign, ..step(command, directory, policy)? });
        }
    }
    if steps.is_empty() {
        return Err(refused("there is no command", "give one, such as `ls -l`"));
    }
    Ok(steps)
}

fn step(command: &shell::Command, directory: &Path, policy: &Policy) -> Result<Step, Refusal> {
    let Kind::Simple { assignments, words } = &command.kind else {
        return Err(refused("loops, choices, groups and functions are not taken", STATIC));
    };
    if !command.redirects.is_empty() {
        return Err(refused(
            "redirections are not taken",
            "use `file_operations` to write a file, and a pipe between commands",
        ));
    }
    if !assignments.is_empty() {
        return Err(refused("variables are not set for a command", STATIC));
    }
    let arguments: Vec<Argument> = words.iter().map(argument).collect::<Result<_, _>>()?;
    if arguments.first().is_some_and(|it| it.is_glob) {
        return Err(refused("the name of a program is written out", STATIC));
    }
    let argv: Vec<String> = arguments.iter().map(|it| it.text.clone()).collect();
    let program = allowed(&argv, directory, policy, 0)?;
    let path = quote(&program.path.to_string_lossy());
    let rest = arguments.into_iter().skip(1).map(|it| it.quoted);
    Ok(Step { quoted: std::iter::once(path).chain(rest).collect(), program, argv, sign: "" })
}

/// Finds the program of a command, if the policy allows it with all of its words.
fn allowed(
    argv: &[String],
    directory: &Path,
    policy: &Policy,
    depth: usize,
) -> Result<Program, Refusal> {
    let name = &argv[0];
    if program::is_builtin(name) {
        return Err(refused(
            &format!(
                "`{name}` belongs to a shell, and no shell keeps anything between two commands"
            ),
            "`working_directory` says where a command runs",
        ));
    }
    let entries = policy.commands.iter().map(|it| it.split_ascii_whitespace().collect::<Vec<_>>());
    let matching = entries.filter_map(|it| Some((Program::matching(argv, &it, directory)?, it)));
    let Some((program, entry)) = matching.max_by_key(|it| it.1.len()) else {
        return Err(unlisted(argv, policy));
    };
    let program = program?;
    if let Some(other) =
        program.disguise().filter(|it| !policy.commands.iter().any(|own| own == it))
    {
        return Err(refused(
            &format!(
                "`{name}` is `{other}` by another name, which is not among the commands that may run"
            ),
            &listed(policy),
        ));
    }
    // What the policy spells out itself needs no caution.
    let rest = &argv[entry.len()..];
    for known in program.names() {
        if let Some(wrapped) = wrapper::wrapped(known, rest)? {
            if depth > 4 || wrapped.is_empty() {
                return Err(refused(&format!("`{name}` has no command to run"), STATIC));
            }
            let inner = allowed(wrapped, directory, policy, depth + 1)?;
            if known == "xargs" && inner.names().any(caution::is_known) {
                return Err(refused(
                    &format!(
                        "what `xargs` adds to `{}` could be an option that runs or writes something",
                        wrapped[0]
                    ),
                    "name the files yourself",
                ));
            }
        }
        let is_bare = entry.len() == 1;
        caution::check(known, rest, is_bare, |wrapped| {
            allowed(wrapped, directory, policy, depth + 1).map(drop)
        })?;
    }
    Ok(program)
}

fn unlisted(argv: &[String], policy: &Policy) -> Refusal {
    let name = &argv[0];
    let starts = |it: &&String| it.split_ascii_whitespace().next() == Some(name);
    let near: Vec<String> =
        policy.commands.iter().filter(starts).map(|it| format!("`{it}`")).collect();
    let hint = match near.is_empty() {
        true => listed(policy),
        false => format!("of `{name}` only {} may run", near.join(", ")),
    };
    refused(&format!("`{name}` is not among the commands that may run"), &hint)
}

/// Which commands may run, in words.
fn listed(policy: &Policy) -> String {
    let all: Vec<&str> = policy.commands.iter().map(|it| &**it).take(40).collect();
    match all.is_empty() {
        true => "no command may run; `policy.commands` lists those that may".to_owned(),
        false => format!("`policy.commands` lists those that may: {}", all.join(", ")),
    }
}

/// Takes a word that stands for itself, or for the files that match it.
fn argument(word: &Word) -> Result<Argument, Refusal> {
    let mut text = String::new();
    let mut pieces = Vec::new();
    for (at, part) in word.0.iter().enumerate() {
        match part {
            Part::Quoted(piece) => {
                text.push_str(piece);
                pieces.push((piece.as_str(), false));
            }
            Part::Plain(piece) => {
                if at == 0 && piece.starts_with('~') {
                    return Err(refused("`~` is not expanded", "write the path out"));
                }
                if piece.contains('{') && piece.contains(',') {
                    return Err(refused(
                        "braces are not expanded",
                        "write the words out, or quote them",
                    ));
                }
                text.push_str(piece);
                pieces.push((piece.as_str(), true));
            }
            _ => {
                return Err(refused(
                    "variables, substitutions and arithmetic are not expanded",
                    STATIC,
                ));
            }
        }
    }
    let is_sign = |c: char| matches!(c, '*' | '?' | '[' | ']');
    let is_glob = pieces.iter().any(|it| it.1 && it.0.contains(is_sign));
    // An option stands for itself, whatever file has its name.
    if !is_glob || text.starts_with('-') {
        return Ok(Argument { quoted: quote(&text), text, is_glob: false });
    }
    // No file that matches can be taken for an option.
    let mut quoted = if text.starts_with(is_sign) { "./".to_owned() } else { String::new() };
    for (piece, is_plain) in pieces {
        for c in piece.chars() {
            match is_plain && (is_sign(c) || matches!(c, '!' | '-')) {
                true => quoted.push(c),
                false => quoted.push_str(&quote(&c.to_string())),
            }
        }
    }
    Ok(Argument { text, quoted, is_glob: true })
}

/// A word as a shell takes it for itself.
fn quote(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

fn refused(message: &str, hint: &str) -> Refusal {
    Refusal { message: message.to_owned(), hint: hint.to_owned() }
}
