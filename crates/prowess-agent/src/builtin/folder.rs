//! Documents of a folder, found by the index that is also used for skills.

use std::{path::Path, sync::Arc};

use prowess::{Library, Match, Memory, Options, Scope, Tier, matches};
use prowess_runtime::{
    sandbox::{Root, RootError},
    text::{Texts, texts},
};
use serde_json::json;

use super::retrieval::{ContextDocument, DocumentSource, RetrievalFuture};

/// The Markdown and text files of a folder, in sections: each heading begins one.
///
/// They are read once, when the folder is opened. Sections are matched like skills, by the words
/// they have in common with a request, in any inflection; weak matches are not returned.
#[derive(Debug)]
pub struct Folder {
    parts: Vec<FileSection>,
    library: Option<Library>,
    left_out: Vec<String>,
    /// The minimum confidence of a section.
    pub threshold: f64,
}

/// A section of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct FileSection {
    path: String,
    heading: String,
    text: String,
}

/// The maximum size of a section in bytes.
const LONGEST: usize = 4000;
/// The prefix of a section's name: a string that no request contains.
const NAME: &str = "zq";

impl Folder {
    /// Reads a folder.
    pub fn open(path: &Path) -> Result<Self, RootError> {
        let Texts { files, left_out, .. } = texts(&Root::open(path)?);
        let parts: Vec<FileSection> =
            files.iter().flat_map(|(path, text)| split(path, text)).collect();
        let library = library(&parts);
        // The first request builds the index; doing that here saves the user the wait.
        library.iter().for_each(|it| drop(matches(it, "index", 1)));
        Ok(Self { parts, library, left_out, threshold: 0.2 })
    }

    /// Returns the files that were not read, each with the reason.
    pub fn left_out(&self) -> &[String] {
        &self.left_out
    }

    fn find(&self, request: &str, limit: usize) -> Vec<ContextDocument> {
        let Some(library) = &self.library else { return Vec::new() };
        let found = matches(library, request, limit);
        // The name exists only because it is required: a request that contains it does not mention
        // the section.
        let is_meant =
            |it: &&Match<'_>| it.tier == Tier::Evidence && it.confidence >= self.threshold;
        let found = found.iter().filter(is_meant);
        found
            .filter_map(|it: &Match<'_>| {
                let number: usize = it.skill.manifest.name.strip_prefix(NAME)?.parse().ok()?;
                let FileSection { path, heading, text } = self.parts.get(number)?.clone();
                Some(ContextDocument { path, heading, text, confidence: it.confidence })
            })
            .collect()
    }
}

impl DocumentSource for Folder {
    fn retrieve<'a>(&'a self, request: &'a str, limit: usize) -> RetrievalFuture<'a> {
        Box::pin(async move { Ok(self.find(request, limit)) })
    }
}

/// Returns the sections as skills, so that they can be matched like those.
fn library(parts: &[FileSection]) -> Option<Library> {
    let skills = parts.iter().enumerate().map(|(number, part)| {
        let name = format!("{NAME}{number}");
        let description = json!(format!("{} {}", part.path, part.heading));
        let text = format!("---\nname: {name}\ndescription: {description}\n---\n{}\n", part.text);
        (format!("{name}/SKILL.md"), text.into_bytes())
    });
    let source = Memory::new(Scope::Project, "documents", skills);
    let options = Options { sources: vec![Arc::new(source)], ..Options::default() };
    Library::load(&options).ok()
}

/// Splits a text into sections: each heading begins one, and a section that is too long becomes
/// several.
fn split(path: &str, text: &str) -> Vec<FileSection> {
    let mut sections = Vec::new();
    let (mut above, mut start, mut at, mut is_code) = ("", 0, 0, false);
    for line in text.split_inclusive('\n') {
        is_code ^= line.trim_start().starts_with("```");
        let end = at + line.len();
        if let Some(heading) = heading(line).filter(|_| !is_code) {
            sections.push((above, &text[start..at]));
            (above, start) = (heading, end);
        }
        at = end;
    }
    sections.push((above, &text[start..]));
    let parts = sections.into_iter().flat_map(|(heading, text)| {
        pieces(text).map(move |text: &str| FileSection {
            path: path.to_owned(),
            heading: heading.to_owned(),
            text: text.trim().to_owned(),
        })
    });
    parts.filter(|it| !it.text.is_empty()).collect()
}

/// Returns the text of a heading, if a line is one.
fn heading(line: &str) -> Option<&str> {
    let text = line.trim_start_matches('#');
    let is_heading = (1..=6).contains(&(line.len() - text.len())) && text.starts_with(' ');
    is_heading.then(|| text.trim().trim_end_matches('#').trim())
}

/// Splits a text into pieces of limited length, at the end of a paragraph, a line or a word.
fn pieces(mut text: &str) -> impl Iterator<Item = &str> {
    std::iter::from_fn(move || {
        let most = text.floor_char_boundary(LONGEST);
        let end = match text.len() == most {
            true => most,
            false => {
                ["\n\n", "\n", " "].iter().find_map(|it| text[..most].rfind(it)).unwrap_or(most)
            }
        };
        let (piece, rest) = text.split_at(end.max(1).min(text.len()));
        text = rest;
        (!piece.is_empty()).then_some(piece)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> Vec<(String, String)> {
        split("a.md", text).into_iter().map(|it| (it.heading, it.text)).collect()
    }

    #[test]
    fn headings_begin_parts_but_not_in_code() {
        let text = "before\n# One #\nfirst\n```sh\n# no heading\n```\n\n## Two\n#tag\n### Empty\n";
        let wanted = [("", "before"), ("One", "first\n```sh\n# no heading\n```"), ("Two", "#tag")];
        assert_eq!(parts(text), wanted.map(|it| (it.0.to_owned(), it.1.to_owned())));
        assert_eq!(parts(""), []);
    }

    #[test]
    fn what_is_too_long_is_cut_and_nothing_is_lost() {
        for text in ["word ".repeat(3000), "ä".repeat(9000), "\n".repeat(9000) + "x"] {
            let parts = parts(&text);
            assert!(parts.iter().all(|it| it.1.len() <= LONGEST));
            let letters = |it: &str| it.chars().filter(|it| it.is_alphanumeric()).count();
            let found: usize = parts.iter().map(|it| letters(&it.1)).sum();
            assert_eq!(found, letters(&text));
        }
    }
}
