//! Packs the lexicon of everyday words into the table that the library searches.
//!
//! A line is `said, said > word word | word word`: phrases of at most four words that people say,
//! the words that skills use for them, and after the bar those that often go with them. A line
//! `word = word` makes each a synonym of the others. The other places of a language are
//! `index/stop.rs`, `index/endings.rs`, and `WHEN` of `check/validate/guidance.rs`.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, bail, ensure};
use prowess::fitting;

use crate::options::Options;

/// The most words of a phrase that count.
const LONGEST: usize = 4;
const LONGEST_TRANSLATED: usize = 6;

/// Reads every `.txt` in a folder and writes the table.
pub(crate) fn lexicon(options: &Options<'_>) -> Result<()> {
    let packed = packed(options.path("--from")?)?;
    println!("{} phrases, {} bytes", packed.lines().count(), packed.len());
    let path = options.path("--write")?;
    fs::write(path, packed).with_context(|| format!("cannot write `{}`", path.display()))
}

/// Returns the table of all files in a folder.
fn packed(folder: &Path) -> Result<String> {
    let mut paths: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(folder)? {
        paths.push(entry?.path());
    }
    paths.retain(|it| it.extension().is_some_and(|it| it == "txt"));
    paths.sort();
    let mut table = Table::default();
    for path in &paths {
        for (number, line) in (1..).zip(fs::read_to_string(path)?.lines()) {
            let place = || format!("`{}`, line {number}", path.display());
            table.read(line, is_language(path)).with_context(place)?;
        }
    }
    Ok(table.packed())
}

/// The files of English words; every other file is of the language with the code in its name.
const ENGLISH: &[&str] = &["everyday", "families", "software", "work-and-life"];

/// Whether a file is of a language other than English.
fn is_language(path: &Path) -> bool {
    path.file_stem().is_some_and(|it| !ENGLISH.iter().any(|own| it == *own))
}

/// Phrases with the words that are close to them and those that are not, all of them stems; those
/// of English, and those of other languages.
#[derive(Debug, Default)]
struct Table {
    english: BTreeMap<String, [Vec<String>; 2]>,
    translated: BTreeMap<String, [Vec<String>; 2]>,
}

impl Table {
    /// Adds the entries of a line.
    fn read(&mut self, line: &str, is_translated: bool) -> Result<()> {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            return Ok(());
        }
        if let Some((said, words)) = line.split_once('>') {
            let (close, loose) = words.split_once('|').unwrap_or((words, ""));
            ensure!(!words.trim().is_empty(), "nothing stands behind `>`");
            for said in said.split(',') {
                self.add(said, close, loose, is_translated)?;
            }
            return Ok(());
        }
        let same: Vec<&str> = line.split('=').map(str::trim).collect();
        if same.len() < 2 {
            bail!("neither `>` nor `=` in `{line}`");
        }
        for one in &same {
            let others: Vec<&str> = same.iter().filter(|it| *it != one).copied().collect();
            self.add(one, &others.join(" "), "", is_translated)?;
        }
        Ok(())
    }

    fn add(&mut self, said: &str, close: &str, loose: &str, is_translated: bool) -> Result<()> {
        let stems = fitting::phrase(said);
        let longest = if is_translated { LONGEST_TRANSLATED } else { LONGEST };
        ensure!(!stems.is_empty(), "`{}` has no words that say anything", said.trim());
        ensure!(stems.len() <= longest, "`{}` has more than {longest} words", said.trim());
        // A word that is also English is not translated: nothing tells which language it is of.
        if is_translated && stems.len() == 1 && fitting::is_english(&stems[0]) {
            return Ok(());
        }
        let table = if is_translated { &mut self.translated } else { &mut self.english };
        let own = table.entry(stems.join(" ")).or_default();
        for (at, words) in [close, loose].into_iter().enumerate() {
            for word in words.split_whitespace() {
                let parts = fitting::phrase(word);
                // Each part of a compound word is weaker evidence.
                let at = if parts.len() > 1 && !is_translated { 1 } else { at };
                for part in parts {
                    let is_known = stems.contains(&part) || own.iter().any(|it| it.contains(&part));
                    if !is_known {
                        own[at].push(part);
                    }
                }
            }
        }
        Ok(())
    }

    /// Returns the table as sorted lines.
    fn packed(&self) -> String {
        let mut lines = Vec::new();
        let translated = self.translated.iter().filter(|it| !self.english.contains_key(it.0));
        let all = self.english.iter().map(|it| (it, "")).chain(translated.map(|it| (it, "=")));
        for ((said, [close, loose]), mark) in all {
            if close.is_empty() && loose.is_empty() {
                continue;
            }
            let mut line = format!("{said}\t{mark}{}", close.join(" "));
            if !loose.is_empty() {
                let _ = write!(line, "|{}", loose.join(" "));
            }
            lines.push(line + "\n");
        }
        lines.sort();
        lines.concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/prowess/src/index");

    #[test]
    fn the_table_of_the_library_is_the_one_of_its_lexicon() {
        let table = fs::read_to_string(format!("{FOLDER}/lexicon.tsv")).unwrap();
        let packed = packed(Path::new(&format!("{FOLDER}/lexicon"))).unwrap();
        assert!(packed == table, "run `prowess-benches lexicon` again");
    }

    #[test]
    fn lines_become_sorted_stems() {
        let mut table = Table::default();
        let lines = ["# decks", "", "slide deck, decks > presentations | themes", "jpg = jpeg"];
        lines.iter().for_each(|line| table.read(line, false).unwrap());
        let packed = table.packed();
        assert!(packed.is_ascii() && packed.lines().is_sorted(), "{packed}");
        assert_eq!(packed.lines().count(), 4);
        assert!(packed.starts_with("deck\tpresentat|them\njpeg\tjpg\njpg\tjpeg\n"), "{packed}");
    }

    #[test]
    fn what_is_wrong_with_a_line_is_said() {
        let error = |line: &str| Table::default().read(line, false).unwrap_err().to_string();
        assert_eq!(error("deck presentation"), "neither `>` nor `=` in `deck presentation`");
        assert_eq!(error("deck >"), "nothing stands behind `>`");
        assert_eq!(error("the > presentation"), "`the` has no words that say anything");
        assert_eq!(error("a1 b1 c1 d1 e1 > f"), "`a1 b1 c1 d1 e1` has more than 4 words");
    }
}
