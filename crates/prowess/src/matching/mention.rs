//! Mentions: skills that a request names.

use std::{borrow::Cow, ops::Range};

use crate::{index::words, library::Library, read::skill::Skill};

/// The maximum number of names in a request that are looked up: real requests mention fewer, and
/// each costs a search of all skills.
const MOST: usize = 64;
/// The maximum number of words of a request that can be names, and of words in a spelled-out name.
const MOST_WRITTEN: usize = 1024;
const LONGEST_NAME: usize = 4;
/// Words before the name of an existing skill.
const THERE: [&str; 12] =
    ["the", "my", "our", "your", "this", "that", "use", "using", "with", "run", "via", "and"];
/// The beginnings of error messages.
const ERRORS: [&str; 6] = ["Error:", "error:", "Exception:", "Traceback", "warning:", "ERROR "];
/// The endings of file names.
const FILES: [&str; 24] = [
    "md", "py", "ts", "tsx", "jsx", "mjs", "json", "yaml", "yml", "toml", "txt", "sh", "rs", "go",
    "java", "rb", "php", "html", "css", "csv", "lock", "log", "zip", "git",
];
/// Separators between the words of a name.
const JOINTS: [char; 4] = ['-', '_', ' ', '.'];

/// The mentions of a request.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Mentions {
    /// The skills, by their positions in the library, in the order in which they are mentioned.
    pub(crate) known: Vec<u32>,
    /// The names that no skill has.
    pub(crate) unknown: Vec<String>,
    /// The ranges of known mentions and mail addresses in the request.
    spans: Vec<Range<usize>>,
}

impl Mentions {
    /// Returns the request without the skills that it mentions and without mail addresses: their
    /// words say nothing about what is wanted.
    pub(crate) fn without_mentions<'r>(&self, request: &'r str) -> Cow<'r, str> {
        if self.spans.is_empty() {
            return Cow::Borrowed(request);
        }
        let (mut rest, mut at) = (String::with_capacity(request.len()), 0);
        for span in &self.spans {
            rest.push_str(request.get(at..span.start).unwrap_or_default());
            rest.push(' ');
            at = at.max(span.end);
        }
        rest.push_str(&request[at..]);
        Cow::Owned(rest)
    }
}

/// Finds `@name`, `$name`, and `/name` at the very start. Mail addresses, paths, amounts, variables
/// and anything that continues after the name (`@types/node`, `@app.route`) are not mentions.
pub(crate) fn mentions(library: &Library, request: &str) -> Mentions {
    let mut mentions = Mentions::default();
    let start = request.len() - request.trim_start().len();
    let mut seen: Vec<&str> = Vec::new();
    for (at, sign) in request.match_indices(['@', '$', '/']) {
        if !request[..at]
            .chars()
            .next_back()
            .is_none_or(|c: char| c.is_whitespace() || "([{\"'`,;:".contains(c))
            || (sign == "/" && at > start)
        {
            mentions.spans.extend(mail_address(request, at).filter(|_| sign == "@"));
            continue;
        }
        let Some(name) = leading_name(&request[at + 1..]) else { continue };
        if seen.len() == MOST {
            break;
        }
        let is_new = !seen.contains(&name);
        seen.extend(is_new.then_some(name));
        // `$HOME` is not a mention of `home`.
        let known = library.position(name).filter(|at| {
            sign != "$" || name.ends_with(&*library.skills[*at as usize].manifest.name)
        });
        match known {
            Some(skill) => {
                mentions.spans.push(at..at + 1 + name.len());
                if !mentions.known.contains(&skill) {
                    mentions.known.push(skill);
                }
            }
            None if is_new && is_skill_mention(sign, name) => {
                mentions.unknown.push(name.to_owned());
            }
            None => {}
        }
    }
    mentions
}

/// Returns the skills that a request mentions, in order.
pub(crate) fn mentioned_skills<'lib>(
    library: &'lib Library,
    request: &str,
) -> impl Iterator<Item = &'lib Skill> {
    mentions(library, request).known.into_iter().map(|at| &*library.skills[at as usize])
}

/// Returns the range of the mail address that has its `@` here.
fn mail_address(request: &str, at: usize) -> Option<Range<usize>> {
    let is_part = |c: char| c.is_alphanumeric() || "-_.+".contains(c);
    let start = request[..at]
        .rfind(|c| !is_part(c))
        .map_or(0, |it| it + request[it..].chars().next().map_or(1, char::len_utf8));
    let end = request[at + 1..].find(|c| !is_part(c)).map_or(request.len(), |it| at + 1 + it);
    (start < at && at + 1 < end).then_some(start..end)
}

/// Returns the skill that a request invokes, `/name` at its very start, and the text after it.
pub(crate) fn invoked_skill<'lib, 'r>(
    library: &'lib Library,
    request: &'r str,
) -> Option<(&'lib Skill, &'r str)> {
    let rest = request.trim_start().strip_prefix('/')?;
    let name = leading_name(rest)?;
    let skill = &library.skills[library.position(name)? as usize];
    Some((skill, rest[name.len()..].trim()))
}

/// Returns the name at the start of a text.
fn leading_name(rest: &str) -> Option<&str> {
    let end =
        rest.find(|c: char| !c.is_alphanumeric() && !"-_:.".contains(c)).unwrap_or(rest.len());
    // Punctuation at the end of a sentence is not part of a name.
    let name = rest[..end].trim_end_matches([':', '.']);
    let goes_on = rest[name.len()..].starts_with(['/', '\\', '@', '(', '=']);
    (!name.is_empty() && name.len() <= 256 && !goes_on).then_some(name)
}

/// Whether an unknown name was meant to be a skill: `$HOME`, `$5` and `@app.route` were not.
fn is_skill_mention(sign: &str, name: &str) -> bool {
    let is_name = name.chars().all(|c| c.is_alphanumeric() || c == '-' || c == '_' || c == ':')
        && name.starts_with(|c: char| c.is_alphabetic());
    is_name && (sign != "$" || !name.contains(|c: char| c.is_uppercase() || c == '_'))
}

/// Whether the name of a skill is spelled out in a request: joined (`create-pr`, `createPr`); or
/// next to the word `skill`; or as separate words (`create pr`), if that `is_all`, more or less, of
/// the request: in a longer one two common words in a row need not be a name.
pub(crate) fn is_named(written: &[String], skill: &Skill, is_all: bool) -> bool {
    let name = skill.manifest.name.to_lowercase();
    let words: Vec<&str> = name.split(JOINTS).filter(|it| !it.is_empty()).collect();
    let squeezed = words.concat();
    let word = |at: usize| written.get(at).map_or("", |it| it.as_str());
    // `the build skill` is an existing one; `a build skill` is one that the user wants.
    let has_skill = |at: usize, length: usize| {
        let is_definite = at.checked_sub(1).is_none_or(|before| THERE.contains(&word(before)));
        is_definite && matches!(word(at + length), "skill" | "skills")
    };
    let is_joined = written.iter().enumerate().any(|(at, chunk)| {
        let is_name = words.first().is_some_and(|it| chunk.starts_with(it))
            && chunk.chars().filter(|it| !JOINTS.contains(it)).eq(squeezed.chars());
        is_name && (words.len() > 1 || has_skill(at, 1))
    });
    if is_joined || words.len() < 2 {
        return is_joined;
    }
    let mut windows = written.windows(words.len()).enumerate();
    windows.any(|(at, it)| it == words && (is_all || has_skill(at, words.len())))
}

/// Returns the skills whose names could be meant, by their positions: they are candidates whatever
/// their score.
pub(crate) fn named_skills(library: &Library, written: &[String]) -> Vec<u32> {
    let mut named = Vec::new();
    for at in (0..written.len()).filter(|at| library.has_name_starting_with(&written[*at])) {
        let names = (1..=LONGEST_NAME).filter_map(|words| written.get(at..at + words));
        named.extend(names.filter_map(|words| library.exact_position(&words.join("-"))));
    }
    named.sort_unstable();
    named.dedup();
    named
}

/// Returns the words of a request as written, in lower case, except for those in code, paths and
/// error messages: a name there is not meant as one.
pub(crate) fn written_words(request: &str) -> Vec<String> {
    let mut written = Vec::new();
    let start = &request[..request.floor_char_boundary(16 * 1024)];
    let mut is_fenced = false;
    for line in start.lines() {
        let is_fence = line.trim_start().starts_with("```");
        is_fenced ^= is_fence;
        if is_fence || is_fenced {
            continue;
        }
        for word in without_quotes(&line[..error_at(line)]).split_whitespace() {
            if !is_path(word) {
                words::chunks(word, |chunk| written.push(chunk.to_lowercase()));
            }
        }
    }
    written.truncate(MOST_WRITTEN);
    written
}

/// Returns the position in a line at which an error message begins.
fn error_at(line: &str) -> usize {
    let starts = ERRORS.iter().filter_map(|it| line.find(it));
    starts.min().unwrap_or(line.len())
}

/// Returns a line without the passages in quotes and backticks that have several words; one word
/// may well be a name.
fn without_quotes(line: &str) -> String {
    let mut rest = String::with_capacity(line.len());
    for (at, passage) in line.split(['"', '`']).enumerate() {
        let is_quoted = at % 2 == 1 && passage.split_whitespace().nth(LONGEST_NAME).is_some();
        rest.push_str(if is_quoted { "" } else { passage });
        rest.push(' ');
    }
    rest
}

/// Whether a word is a path, a URL, a repository or the name of a file.
fn is_path(word: &str) -> bool {
    let word = word.trim_matches(|c: char| !c.is_alphanumeric() && !matches!(c, '/' | '\\' | '~'));
    let has_slash = word.trim_start_matches('/').contains(['/', '\\']);
    has_slash || word.rsplit_once('.').is_some_and(|(_, it)| FILES.contains(&it))
}
