//! Finds functions that start themselves without end.

use std::collections::{BTreeMap, BTreeSet};

use crate::script::{
    CommandKind, CompoundKind, ListOperator, ShellCommand, ShellScript, Word, WordPart,
};

/// The commands that a function starts.
#[derive(Default)]
struct Starts {
    /// All commands that it calls.
    calls: BTreeSet<String>,
    /// The commands that it starts concurrently, and the number of them that must lead back to it.
    together: Vec<(Vec<String>, usize)>,
    line: usize,
}

/// The name of the script itself.
const ITSELF: &str = "$0";

/// Finds a function that starts itself without end: its name and line. Every step uses `fuel`.
pub(super) fn find_bomb(script: &ShellScript, fuel: &mut usize) -> Option<(String, usize)> {
    let mut functions = BTreeMap::new();
    let mut own = read(script, false, &mut functions);
    own.line = 1;
    functions.insert(ITSELF.to_owned(), own);
    for (name, starts) in &functions {
        for (group, least) in &starts.together {
            let back = group.iter().filter(|it| reaches(it, name, &functions, fuel));
            if back.count() >= *least {
                return Some((name.clone(), starts.line));
            }
        }
    }
    None
}

/// Whether calling one function leads to calling another.
fn reaches(
    from: &String,
    to: &str,
    functions: &BTreeMap<String, Starts>,
    fuel: &mut usize,
) -> bool {
    let mut seen = BTreeSet::new();
    let mut next = vec![from];
    while let Some(name) = next.pop() {
        *fuel = fuel.saturating_sub(1);
        if name == to {
            return true;
        }
        if *fuel > 0 && seen.insert(name) {
            next.extend(functions.get(name).into_iter().flat_map(|it| &it.calls));
        }
    }
    false
}

fn read(
    script: &ShellScript,
    is_conditional: bool,
    functions: &mut BTreeMap<String, Starts>,
) -> Starts {
    let mut starts = Starts::default();
    let mut is_joined = false;
    for pipeline in &script.0 {
        let is_conditional = is_conditional || is_joined;
        let names: Vec<String> = pipeline.commands.iter().filter_map(name).collect();
        let mut calls: BTreeSet<String> = names.iter().cloned().collect();
        for command in &pipeline.commands {
            let inner = read_compound(command, is_conditional, functions);
            calls.extend(inner.calls);
            starts.together.extend(inner.together);
        }
        if pipeline.operator == ListOperator::Background && !is_conditional {
            starts.together.push((calls.iter().cloned().collect(), 1));
        }
        if names.len() > 1 {
            starts.together.push((names, 2));
        }
        starts.calls.extend(calls);
        is_joined = matches!(pipeline.operator, ListOperator::And | ListOperator::Or);
    }
    starts
}

/// Walks through a compound command; the commands of a function are recorded under its name.
fn read_compound(
    command: &ShellCommand,
    is_conditional: bool,
    functions: &mut BTreeMap<String, Starts>,
) -> Starts {
    let mut starts = Starts::default();
    match &command.kind {
        CommandKind::Simple { .. } => {}
        CommandKind::Function { name, body } => {
            let mut own = read_compound(body, false, functions);
            own.calls.extend(self::name(body));
            own.line = command.line;
            functions.insert(name.literal().unwrap_or_default(), own);
        }
        CommandKind::Compound { kind, bodies, .. } => {
            let is_plain = matches!(kind, CompoundKind::Group | CompoundKind::Subshell);
            for body in bodies {
                let inner = read(body, is_conditional || !is_plain, functions);
                starts.calls.extend(inner.calls);
                starts.together.extend(inner.together);
            }
        }
    }
    starts
}

/// Returns the name of the command that a simple command calls.
fn name(command: &ShellCommand) -> Option<String> {
    let CommandKind::Simple { words, .. } = &command.kind else { return None };
    let word = words.first()?;
    word.literal().or_else(|| is_itself(word).then(|| ITSELF.to_owned()))
}

fn is_itself(word: &Word) -> bool {
    let mut parts = word.0.iter().filter(|it| **it != WordPart::Quoted(String::new()));
    matches!(parts.next(), Some(WordPart::Variable { name, rest, .. }) if name == "0" && rest.is_empty())
        && parts.next().is_none()
}
