//! Searches a text that cannot be parsed as a script for the same hazards, word by word.

use super::{Hazard, HazardKind, command::Walk, rules};

/// Searches a text; `line` is that of its first line.
pub(super) fn text(text: &str, line: usize) -> Walk<()> {
    for (at, own) in text.lines().enumerate() {
        if !own.trim_start().starts_with('#') {
            let found = one(own).map(|kind| {
                let command = own.trim().chars().filter(|it| *it != '\0').take(120).collect();
                Hazard { kind, line: line + at, command }
            });
            found.map_or(Ok(()), Err)?;
        }
    }
    Ok(())
}

fn one(line: &str) -> Option<HazardKind> {
    let plain: String =
        line.chars().filter(|it| !matches!(it, '\'' | '"' | '\\' | '`' | '\0')).collect();
    if is_bomb(&plain) {
        return Some(HazardKind::ForkBomb);
    }
    let mut has_foreign = false;
    let mut rest = &*plain;
    while !rest.is_empty() {
        let end = rest.find(separates).unwrap_or(rest.len());
        let (segment, behind) = rest.split_at(end);
        let words: Vec<&str> =
            segment.split([' ', '\t', ',']).filter(|it| !it.is_empty()).collect();
        let names = words.iter().map(|it| it.rsplit('/').next().unwrap_or_default());
        for (at, name) in names.enumerate() {
            let found = segment_hazard(name, &words[at + 1..], has_foreign);
            if found.is_some() {
                return found;
            }
            has_foreign |= rules::is_fetcher(name) || rules::is_decoder(name);
        }
        let sign = behind.chars().next();
        rest = behind.get(1..).unwrap_or_default();
        match sign {
            Some('>') if rules::is_disk(rest.trim_start_matches(['>', '|', ' '])) => {
                return Some(HazardKind::DeviceWrite);
            }
            Some(';') => has_foreign = false,
            _ => {}
        }
    }
    None
}

/// Returns the hazard of a command name with its arguments.
fn segment_hazard(name: &str, arguments: &[&str], has_foreign: bool) -> Option<HazardKind> {
    match name {
        "rm" => {
            let (is_recursive, operands) = rules::removal(arguments.iter().copied());
            let is_vital = operands.iter().any(|it| {
                matches!(*it, "~" | "~/" | "~/*" | "$HOME" | "$HOME/" | "$HOME/*")
                    || rules::is_vital(it)
            });
            (is_recursive && is_vital).then_some(HazardKind::Delete)
        }
        "dd" => arguments
            .iter()
            .any(|it| it.starts_with("if=") || it.starts_with("of=/dev/"))
            .then_some(HazardKind::DiskCopy),
        name if rules::is_formatter(name) => Some(HazardKind::Format),
        name if has_foreign && (rules::is_shell(name) || rules::code_letters(name).is_some()) => {
            // A shell with a script or code as argument does not run its input.
            let has_own =
                arguments.iter().any(|it| !it.starts_with('-') || matches!(*it, "-c" | "-m"));
            (!has_own).then_some(HazardKind::PipeToShell)
        }
        _ => None,
    }
}

/// Whether a line contains a function that starts itself twice.
fn is_bomb(line: &str) -> bool {
    let dense: String = line.chars().filter(|it| !it.is_whitespace()).collect();
    dense.match_indices("(){").any(|(at, sign)| {
        let name = dense[..at].rsplit([';', '&', '|', '{', '}']).next().unwrap_or_default();
        let behind = &dense[at + sign.len()..];
        let body = behind.strip_prefix(name).and_then(|it| it.strip_prefix('|'));
        !name.is_empty() && body.is_some_and(|it| it.starts_with(name))
    })
}

fn separates(c: char) -> bool {
    matches!(c, ';' | '&' | '|' | '(' | ')' | '{' | '}' | '<' | '>')
}
