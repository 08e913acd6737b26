//! Skills that a request names.

use super::words;
use crate::{library::Library, skill::Skill};

/// How many names of a request are looked up: nobody mentions more, and each costs a look at all
/// skills.
const MOST: usize = 64;

/// What a request mentions.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Mentions {
    /// The skills, by their places in the library, in the order in which they are mentioned.
    pub(crate) known: Vec<u32>,
    /// The names that no skill has.
    pub(crate) unknown: Vec<String>,
}

/// Finds `@name`, `$name`, and `/name` at the very start. Mail addresses, paths, amounts, variables
/// and whatever goes on behind the name (`@types/node`, `@app.route`) are no mentions.
pub(crate) fn mentions(library: &Library, request: &str) -> Mentions {
    let mut mentions = Mentions::default();
    let start = request.len() - request.trim_start().len();
    let is_free = |c: char| c.is_whitespace() || "([{\"'`,;:".contains(c);
    let mut seen: Vec<&str> = Vec::new();
    for (at, sign) in request.match_indices(['@', '$', '/']) {
        if !request[..at].chars().next_back().is_none_or(is_free) || (sign == "/" && at > start) {
            continue;
        }
        let Some(name) = name(&request[at + 1..]).filter(|it| !seen.contains(it)) else { continue };
        if seen.len() == MOST {
            break;
        }
        seen.push(name);
        // `$HOME` is no mention of `home`.
        let is_written = |at: &u32| name.ends_with(&*library.skills[*at as usize].manifest.name);
        match library.place(name).filter(|at| sign != "$" || is_written(at)) {
            Some(skill) if !mentions.known.contains(&skill) => mentions.known.push(skill),
            None if is_meant(sign, name) => mentions.unknown.push(name.to_owned()),
            _ => {}
        }
    }
    mentions
}

/// The skills that a request mentions, in its order.
pub(crate) fn mentioned<'lib>(
    library: &'lib Library,
    request: &str,
) -> impl Iterator<Item = &'lib Skill> {
    mentions(library, request).known.into_iter().map(|at| &*library.skills[at as usize])
}

/// The name at the start of a text.
fn name(rest: &str) -> Option<&str> {
    let is_part = |c: char| c.is_alphanumeric() || "-_:.".contains(c);
    let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
    // What ends a sentence is no part of a name.
    let name = rest[..end].trim_end_matches([':', '.']);
    let goes_on = rest[name.len()..].starts_with(['/', '\\', '@', '(', '=']);
    (!name.is_empty() && name.len() <= 256 && !goes_on).then_some(name)
}

/// Whether an unknown name was meant to be a skill: `$HOME`, `$5` and `@app.route` were not.
fn is_meant(sign: &str, name: &str) -> bool {
    let is_name = name.chars().all(|c| c.is_alphanumeric() || c == '-' || c == '_' || c == ':')
        && name.starts_with(|c: char| c.is_alphabetic());
    is_name && (sign != "$" || !name.contains(|c: char| c.is_uppercase() || c == '_'))
}

/// The skills whose name is written out in a request: several words joined as in the name
/// (`create-pr`), or with the word `skill` beside it.
pub(crate) fn named(library: &Library, request: &str, found: &[(u32, f32)]) -> Vec<u32> {
    let mut chunks: Vec<String> = Vec::new();
    let start = &request[..request.floor_char_boundary(16 * 1024)];
    words::chunks(start, |chunk| chunks.push(chunk.to_lowercase()));
    let is_skill = |at: Option<usize>| {
        at.and_then(|at| chunks.get(at)).is_some_and(|it| it == "skill" || it == "skills")
    };
    let is_named = |skill: &Skill| {
        let name = skill.manifest.name.to_lowercase();
        let is_joined = name.contains(['-', '_']);
        let spoken: Vec<&str> = name.split(['-', '_', ' ']).collect();
        let written = chunks.iter().enumerate().any(|(at, chunk)| {
            *chunk == name && (is_joined || is_skill(Some(at + 1)) || is_skill(at.checked_sub(1)))
        });
        let apart = || {
            (0..chunks.len().saturating_sub(spoken.len())).any(|at| {
                is_skill(Some(at + spoken.len()))
                    && chunks[at..].iter().zip(&spoken).all(|(a, b)| a == b)
            })
        };
        written || apart()
    };
    found.iter().map(|it| it.0).filter(|it| is_named(&library.skills[*it as usize])).collect()
}
