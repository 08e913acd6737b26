//! Finds functions that start themselves without end.

use std::collections::{BTreeMap, BTreeSet};

use crate::shell::{self, Command, Form, Joint, Kind, Part, Script, Word};

/// What a function starts.
#[derive(Default)]
struct Starts {
    /// Whatever it calls.
    calls: BTreeSet<String>,
    /// What it starts side by side, and how many of these have to lead back to it.
    together: Vec<(Vec<String>, usize)>,
    line: usize,
}

/// What the script itself is called by.
const ITSELF: &str = "$0";

/// Finds a function that starts itself without end: its name and line. Every step takes of `fuel`.
pub(super) fn bomb(script: &Script, fuel: &mut usize) -> Option<(String, usize)> {
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

/// Whether calling one function comes to calling another.
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

fn read(script: &Script, is_conditional: bool, functions: &mut BTreeMap<String, Starts>) -> Starts {
    let mut starts = Starts::default();
    let mut is_joined = false;
    for statement in &script.0 {
        let is_conditional = is_conditional || is_joined;
        let names: Vec<String> = statement.pipeline.iter().filter_map(name).collect();
        let mut calls: BTreeSet<String> = names.iter().cloned().collect();
        for command in &statement.pipeline {
            let inner = inside(command, is_conditional, functions);
            calls.extend(inner.calls);
            starts.together.extend(inner.together);
        }
        if statement.joint == Joint::Background && !is_conditional {
            starts.together.push((calls.iter().cloned().collect(), 1));
        }
        if names.len() > 1 {
            starts.together.push((names, 2));
        }
        starts.calls.extend(calls);
        is_joined = matches!(statement.joint, Joint::And | Joint::Or);
    }
    starts
}

/// Reads what stands inside a compound command; what a function does is noted under its name.
fn inside(
    command: &Command,
    is_conditional: bool,
    functions: &mut BTreeMap<String, Starts>,
) -> Starts {
    let mut starts = Starts::default();
    match &command.kind {
        Kind::Simple { .. } => {}
        Kind::Function { name, body } => {
            let mut own = inside(body, false, functions);
            own.calls.extend(self::name(body));
            own.line = command.line;
            functions.insert(shell::literal(name).unwrap_or_default(), own);
        }
        Kind::Compound { form, bodies, .. } => {
            let is_plain = matches!(form, Form::Group | Form::Subshell);
            for body in bodies {
                let inner = read(body, is_conditional || !is_plain, functions);
                starts.calls.extend(inner.calls);
                starts.together.extend(inner.together);
            }
        }
    }
    starts
}

/// What a simple command calls.
fn name(command: &Command) -> Option<String> {
    let Kind::Simple { words, .. } = &command.kind else { return None };
    let word = words.first()?;
    shell::literal(word).or_else(|| is_itself(word).then(|| ITSELF.to_owned()))
}

fn is_itself(word: &Word) -> bool {
    let mut parts = word.0.iter().filter(|it| **it != Part::Quoted(String::new()));
    matches!(parts.next(), Some(Part::Variable { name, rest, .. }) if name == "0" && rest.is_empty())
        && parts.next().is_none()
}
