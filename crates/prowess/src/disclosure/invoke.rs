//! Renders a skill for a model: arguments filled in, paths absolute, its files listed.

use std::collections::{HashMap, HashSet};

use prowess_frontmatter::Value;

use crate::{
    read::{
        manifest::Manifest,
        skill::Skill,
        source::{ReadError, Resource, ResourceKind},
    },
    text::{invisible::visible, shorten::one_line},
};

/// The maximum number of files of a skill that are listed.
pub(crate) const MAX_FILES: usize = 50;
/// The maximum number of named arguments.
const MAX_NAMES: usize = 64;
/// The number of bytes after which nothing more is filled in, so that a few words cannot expand to
/// gigabytes.
const MAX_FILLED: usize = 4 * 1024 * 1024;
/// Placeholders for the folder of the skill.
const FOLDER: [&str; 3] = ["${CLAUDE_SKILL_DIR}", "${SKILL_DIR}", "{baseDir}"];

/// Reads the instructions of a skill as shown to a model, with a list of its files and without
/// invisible characters.
///
/// With `arguments`, `$ARGUMENTS` is all of them as typed, `$ARGUMENTS[0]` and `$0` the first one,
/// and `$name` the one at the position of `name` in the frontmatter's `arguments`; they are split
/// as a shell would. A missing one stays as written, or is empty if it has a name. `\$0` is written
/// as `$0`. Without any of these, the arguments are appended. Inserted text is not expanded again,
/// and nothing is ever run.
///
/// Paths of the skill's own files are made absolute if the skill is on disk: in links, after `./`,
/// and wherever they include a folder.
pub fn invoke(skill: &Skill, arguments: Option<&str>) -> Result<String, ReadError> {
    Ok(with_files(skill, fill_instructions(skill, &skill.text()?, arguments)))
}

/// Returns the names that the frontmatter of a skill gives its arguments, in order.
pub fn argument_names(manifest: &Manifest) -> Vec<&str> {
    let declared = manifest.unknown.iter().find(|it| it.key == "arguments");
    let mut names: Vec<&str> = match declared.map(|it| &it.value) {
        Some(Value::List(items)) => items.iter().filter_map(Value::as_text).collect(),
        Some(value) => value.as_text().unwrap_or("").split_whitespace().collect(),
        None => Vec::new(),
    };
    names.truncate(MAX_NAMES);
    names
}

/// Returns instructions with arguments filled in and paths absolute, without invisible characters
/// and the list of files.
pub(crate) fn fill_instructions(
    skill: &Skill,
    instructions: &str,
    arguments: Option<&str>,
) -> String {
    let place = SkillFiles {
        folder: folder(skill),
        on_disk: skill.absolute_folder().is_some(),
        resources: skill.resources(),
    };
    let given = arguments.map(|it| Arguments::new(it, &skill.manifest));
    expand(&visible(instructions), &place, given.as_ref())
}

/// Appends the list of its files to the text of a skill.
pub(crate) fn with_files(skill: &Skill, mut text: String) -> String {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str(&list_files(skill));
    text
}

/// Returns the folder of a skill, absolute if it is on disk.
pub(crate) fn folder(skill: &Skill) -> String {
    let folder = skill.absolute_folder();
    folder.as_deref().unwrap_or(skill.folder()).display().to_string()
}

/// Lists the files of a skill with kind and size; empty for a skill that has none.
fn list_files(skill: &Skill) -> String {
    let resources = skill.resources();
    if resources.is_empty() {
        return String::new();
    }
    let mut text = format!("\nFiles of this skill, in `{}`:\n", one_line(&folder(skill)));
    let lines = fold_paths(resources.iter().map(|it| &*it.path));
    for (name, count) in lines.iter().take(MAX_FILES) {
        let size: u64 = resources
            .iter()
            .filter(|it: &&Resource| match count {
                1 => *it.path == **name,
                _ => pattern(&it.path).as_deref() == Some(name),
            })
            .map(|it| it.size)
            .sum();
        let (name, kind) = (one_line(name), ResourceKind::of(name).as_str());
        text.push_str(&match count {
            1 => format!("- {name} ({kind}, {size} bytes)\n"),
            _ => format!("- {name} ({count} files, {size} bytes in total)\n"),
        });
    }
    text.push_str(&remaining_files(&lines));
    text
}

/// The number of files from which on those with one folder and extension become one line.
const MANY: usize = 10;

/// Returns the lines of a list of files, in order, each with the number of files it represents:
/// many assets with one folder and extension, which are not read one by one, are one line such as
/// `schemas/*.xsd`.
pub(crate) fn fold_paths<'p>(paths: impl Iterator<Item = &'p str> + Clone) -> Vec<(String, usize)> {
    let mut counts: HashMap<String, usize> = HashMap::new();
    paths.clone().filter_map(pattern).for_each(|it| *counts.entry(it).or_default() += 1);
    counts.retain(|_, it| *it >= MANY);
    let mut seen: HashSet<String> = HashSet::new();
    let mut lines = Vec::new();
    for path in paths {
        match pattern(path).and_then(|it| counts.get(&it).map(|count| (it, *count))) {
            Some((pattern, count)) if seen.insert(pattern.clone()) => {
                lines.push((pattern, count));
            }
            Some(_) => {}
            None => lines.push((path.to_owned(), 1)),
        }
    }
    lines
}

/// Returns a line with the number of files that are not listed, if there are any.
pub(crate) fn remaining_files(lines: &[(String, usize)]) -> String {
    match lines.iter().skip(MAX_FILES).map(|it| it.1).sum::<usize>() {
        0 => String::new(),
        more => format!("- … and {more} more\n"),
    }
}

/// Returns the pattern for an asset and all others with its folder and extension.
fn pattern(path: &str) -> Option<String> {
    let (folder, file) = path.rsplit_once('/').unwrap_or(("", path));
    let (_, ending) =
        file.rsplit_once('.').filter(|_| ResourceKind::of(path) == ResourceKind::Asset)?;
    Some(if folder.is_empty() { format!("*.{ending}") } else { format!("{folder}/*.{ending}") })
}

/// Expands a text in one pass, so that inserted text is not expanded again.
fn expand(text: &str, place: &SkillFiles<'_>, arguments: Option<&Arguments<'_>>) -> String {
    let mut out = String::with_capacity(text.len());
    let (mut at, mut is_filled) = (0, false);
    while at < text.len() && out.len() <= MAX_FILLED {
        let rest = &text[at..];
        let token = |rest: &str| arguments.and_then(|it| it.token(rest));
        let plain = place.verbatim_length(text, at);
        at += if plain > 0 {
            out.push_str(&rest[..plain]);
            plain
        } else if rest.starts_with(is_path) {
            let end = rest.find(|c| !is_path(c)).unwrap_or(rest.len());
            place.write_path(&text[..at], &rest[..end], &rest[end..], &mut out);
            end
        } else if let Some((length, value)) = token(rest) {
            is_filled |= value.is_some();
            out.push_str(value.unwrap_or(&rest[..length]));
            length
        } else if let Some((length, _)) = rest.strip_prefix('\\').and_then(token) {
            out.push_str(&rest[1..=length]);
            length + 1
        } else if let Some(word) = FOLDER.iter().find(|it| rest.starts_with(**it)) {
            out.push_str(&place.folder);
            word.len()
        } else {
            // A character that could begin a placeholder or a path, and does not.
            out.push_str(&rest[..1]);
            1
        };
    }
    out.push_str(&text[at..]);
    match arguments {
        Some(given) if !is_filled && !given.all.is_empty() => {
            format!("{}\n\nARGUMENTS: {}\n", out.trim_end(), given.all)
        }
        _ => out,
    }
}

/// The location of a skill's files.
struct SkillFiles<'s> {
    folder: String,
    on_disk: bool,
    /// The resources, sorted by path.
    resources: &'s [Resource],
}

impl SkillFiles<'_> {
    /// Returns the number of bytes from a position on that are copied as they are: they contain no
    /// placeholder and no path.
    fn verbatim_length(&self, text: &str, at: usize) -> usize {
        let rest = &text[at..];
        let has_paths = self.on_disk && !self.resources.is_empty();
        let is_linked = |end: usize| is_link(&text[..at + end]) && rest[end..].starts_with(is_path);
        if has_paths && is_linked(0) {
            return 0;
        }
        let mut from = 0;
        while let Some(found) = rest[from..].find(['$', '\\', '{', '/', '(', '<']) {
            let found = from + found;
            from = found + 1;
            match rest.as_bytes()[found] {
                b'$' | b'\\' | b'{' => return found,
                b'/' if has_paths => return rest[..found].trim_end_matches(is_path).len(),
                b'(' | b'<' if has_paths && is_linked(from) => return from,
                _ => {}
            }
        }
        rest.len()
    }

    /// Writes a possible path, absolute if it is one of a resource.
    fn write_path(&self, before: &str, run: &str, behind: &str, out: &mut String) {
        let written = run.trim_end_matches('.');
        let path = written.strip_prefix("./").unwrap_or(written);
        let is_link = is_link(before);
        // A bare `README.md` is more often a file of the project.
        let is_path = is_link || path != written || path.contains('/');
        let is_part = before.ends_with([':', '$', '}', '\\']) || behind.starts_with("](");
        if self.on_disk
            && is_path
            && !is_part
            && self.resources.binary_search_by(|it| (*it.path).cmp(path)).is_ok()
        {
            out.push_str(&self.folder);
            out.push('/');
            out.push_str(path);
            out.push_str(&run[written.len()..]);
        } else {
            out.push_str(run);
        }
    }
}

/// Whether a text ends at the start of a link's target.
fn is_link(before: &str) -> bool {
    before.ends_with("](") || before.ends_with("](<")
}

/// Whether a character continues a path; a path that is longer than that of a resource is another.
fn is_path(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '~' | '+' | '@' | '%' | '*')
}

/// The arguments typed after the name of a skill.
struct Arguments<'a> {
    all: &'a str,
    each: Vec<String>,
    /// The names of the first ones.
    names: Vec<&'a str>,
}

impl<'a> Arguments<'a> {
    fn new(text: &'a str, manifest: &'a Manifest) -> Self {
        Self { all: text.trim(), each: split(text), names: argument_names(manifest) }
    }

    /// Returns the placeholder that a text begins with: its length, and its replacement if there is
    /// one.
    fn token(&self, text: &str) -> Option<(usize, Option<&str>)> {
        let word = text.strip_prefix('$')?;
        let end = word.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(word.len());
        if &word[..end] == "ARGUMENTS" {
            return Some(match index(&word[end..]) {
                Some(index) => (end + index.len() + 3, self.argument(index)),
                None => (end + 1, Some(self.all)),
            });
        }
        if is_number(&word[..end]) {
            return Some((end + 1, self.argument(&word[..end])));
        }
        let named = self.names.iter().enumerate().filter(|it| !it.1.is_empty());
        let named = named.filter(|it| {
            let behind = word.strip_prefix(&**it.1).map(|it| it.chars().next());
            behind.is_some_and(|it| it.is_none_or(|c| !c.is_alphanumeric() && c != '_'))
        });
        let (place, name) = named.max_by_key(|it| it.1.len())?;
        Some((name.len() + 1, Some(self.each.get(place).map_or("", |it| it))))
    }

    fn argument(&self, index: &str) -> Option<&str> {
        self.each.get(index.parse::<usize>().ok()?).map(String::as_str)
    }
}

/// Returns the number in the brackets that a text begins with.
fn index(text: &str) -> Option<&str> {
    let inside = text.strip_prefix('[')?;
    let end = inside.find(|c: char| !c.is_ascii_digit())?;
    (end > 0 && inside[end..].starts_with(']')).then(|| &inside[..end])
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit())
}

/// Splits arguments as a shell would; an unclosed quote extends to the end.
fn split(text: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match quote {
            None if c.is_whitespace() => words.extend(word.take()),
            None if matches!(c, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            Some(mark) if c == mark => quote = None,
            None | Some('"') if c == '\\' => {
                word.get_or_insert_default().push(chars.next().unwrap_or('\\'));
            }
            _ => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}
