//! Evaluation files: requests, each with the expected result. Unreadable parts become findings.

use std::path::{Path, PathBuf};

use serde_json::Value as Json;

use super::{
    Lab, can_be_matched,
    requests::{RequestEntry, Requests, SKILL},
};
use crate::{
    finding::{Finding, Severity, rule},
    index::{did_you_mean, nearest},
    read::{parse::decode, skill::Skill, source::SizeLimits},
};

/// A request, with the expected result.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Trial<'lib> {
    /// The file that it is from.
    pub path: PathBuf,
    /// The line in which it begins.
    pub line: usize,
    /// The request.
    pub request: String,
    /// The expected result.
    pub expected: ExpectedMatch<'lib>,
}

/// The expected result of a request.
#[derive(Debug, Clone)]
pub enum ExpectedMatch<'lib> {
    /// It matches one of these skills.
    AnyOf(Vec<&'lib Skill>),
    /// It matches anything but this skill.
    Not(&'lib Skill),
    /// It matches no skill.
    Nothing,
}

/// The contents of evaluation files.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Trials<'lib> {
    /// The requests, in the order written.
    pub trials: Vec<Trial<'lib>>,
    /// The findings about the files.
    pub findings: Vec<Finding>,
}

/// The maximum number of faults of one file that are reported one by one.
const MOST_FAULTS: usize = 10;

/// The context of a file of requests.
#[derive(Clone, Copy)]
struct FileContext<'lib> {
    /// The skill that is meant if none is named.
    skill: Option<&'lib Skill>,
    /// Whether the file is beside it.
    is_beside: bool,
}

/// A fault of a request.
enum EntryError {
    /// It is malformed.
    Form(&'static str),
    /// There is no skill of this name.
    Skill(String),
}

impl<'lib> Lab<'lib> {
    /// Reads the evaluation files beside the `wanted` skills: `evals/evals.json`, and lists of
    /// triggers. Those of skills that are shadowed or not in use are ignored.
    pub fn evaluations(&self, wanted: impl Fn(&Skill) -> bool) -> Trials<'lib> {
        let mut all = Trials::default();
        for skill in self.library.skills().filter(|it| it.manifest.is_active() && wanted(it)) {
            let (source, limits) = (&skill.home.source, skill.home.limits);
            // Evaluation files go into no context window, so they may be larger.
            let max_file_size = limits.max_file_size.max(limits.max_document_size);
            let limits = SizeLimits { max_file_size, ..limits };
            let (files, findings) = source.resources(&skill.origin.path, &limits);
            for file in files.iter().map(|it| &*it.path).filter(|it| is_evaluation(it)) {
                let path = skill.folder().join(file);
                match source.read_beside(&skill.origin.path, file) {
                    Ok(bytes) => {
                        let about = FileContext { skill: Some(skill), is_beside: true };
                        all.extend(self.read(&bytes, &path, about));
                    }
                    Err(error) => {
                        let message = format!("it cannot be read: {error}");
                        all.findings.push(finding(&path, None, message, String::new()));
                    }
                }
            }
            all.findings.extend(findings.into_iter().filter(|it: &Finding| {
                let file = it.path.strip_prefix(skill.folder()).ok().and_then(Path::to_str);
                file.is_some_and(is_evaluation)
            }));
        }
        all
    }

    /// Reads a file of requests as JSON, one object per line, CSV or YAML. Those that name no skill
    /// are about `about`, if it is given.
    pub fn trials(&self, bytes: &[u8], path: &Path, about: Option<&'lib Skill>) -> Trials<'lib> {
        self.read(bytes, path, FileContext { skill: about, is_beside: false })
    }

    fn read(&self, bytes: &[u8], path: &Path, about: FileContext<'lib>) -> Trials<'lib> {
        let usual = match about.is_beside {
            true => r#"write each request as {"query": "open a PR", "should_trigger": true}"#,
            false => r#"write each request as {"query": "open a PR", "skill": "create-pr"}"#,
        };
        let Requests { entries, skill, faults } = Requests::read(&decode(bytes).text, path);
        let usual = |line, message| finding(path, line, message, usual.to_owned());
        let mut read = Trials::default();
        read.findings.extend(faults.into_iter().map(|(line, message)| usual(line, message)));
        for entry in entries {
            let line = entry.line;
            match self.expected(&entry, skill.as_ref(), about) {
                Ok((request, expected)) => {
                    read.trials.push(Trial { path: path.to_owned(), line, request, expected });
                }
                Err(EntryError::Form(message)) => {
                    read.findings.push(usual(Some(line), message.to_owned()));
                }
                Err(EntryError::Skill(name)) => {
                    let names = self.library.skills().map(|it| &*it.manifest.name);
                    // Comparing with all names is slow, and further faults are not reported.
                    let is_reported = read.findings.len() < MOST_FAULTS;
                    let near = is_reported.then(|| nearest(&name, names)).flatten();
                    let mut fault = usual(Some(line), format!("there is no skill `{name}`"));
                    if let Some(near) = near {
                        fault.hint = did_you_mean(near).into();
                    }
                    read.findings.push(fault);
                }
            }
        }
        read.findings.sort_by_key(|it| it.line);
        let more = read.findings.len().saturating_sub(MOST_FAULTS);
        read.findings.truncate(MOST_FAULTS);
        if more > 0 {
            read.findings.push(usual(None, format!("{more} more of its requests are invalid")));
        }
        read
    }

    /// Returns the request of an entry, and its expected result.
    fn expected(
        &self,
        entry: &RequestEntry,
        whole: Option<&Json>,
        about: FileContext<'lib>,
    ) -> Result<(String, ExpectedMatch<'lib>), EntryError> {
        let request = entry.request().ok_or(EntryError::Form("there is no `query` or `prompt`"))?;
        let should = entry
            .should_match()
            .ok_or(EntryError::Form("`should_trigger` is neither true nor false"))?;
        let beside = about.skill.filter(|_| about.is_beside);
        // A file beside a skill is about that skill, whatever its name was when the file was
        // written.
        let names: Vec<&str> = match entry.field(&SKILL).or(whole.filter(|_| beside.is_none())) {
            None => Vec::new(),
            Some(Json::Null) => {
                return Ok((
                    request.to_owned(),
                    beside.map_or(ExpectedMatch::Nothing, ExpectedMatch::Not),
                ));
            }
            Some(Json::String(name)) => vec![name],
            Some(Json::Array(names)) => names.iter().filter_map(Json::as_str).collect(),
            Some(_) => return Err(EntryError::Form("`skill` is neither a name nor null")),
        };
        let mut skills: Vec<&Skill> = names
            .iter()
            .map(|name: &&str| {
                let own = beside.filter(|it| *it.manifest.name == **name);
                let skill = own.or_else(|| self.library.get(name));
                skill.ok_or_else(|| EntryError::Skill((*name).to_owned()))
            })
            .collect::<Result<_, _>>()?;
        if skills.is_empty() {
            skills.extend(about.skill);
        }
        let expected = match (&skills[..], should) {
            ([], _) => return Err(EntryError::Form("it does not say which `skill` is expected")),
            ([first, ..], false) => ExpectedMatch::Not(first),
            (_, true) => ExpectedMatch::AnyOf(skills),
        };
        Ok((request.to_owned(), expected))
    }
}

impl<'lib> Trials<'lib> {
    /// Adds the trials and findings of another file.
    pub fn extend(&mut self, more: Self) {
        self.trials.extend(more.trials);
        self.findings.extend(more.findings);
    }
}

impl ExpectedMatch<'_> {
    /// Whether the expected result is possible at all.
    pub fn is_possible(&self) -> bool {
        match self {
            Self::AnyOf(skills) => skills.iter().any(|it| can_be_matched(it)),
            Self::Not(_) | Self::Nothing => true,
        }
    }
}

/// Whether a file beside a `SKILL.md` contains requests, by its path.
fn is_evaluation(path: &str) -> bool {
    let (folder, file) = path.rsplit_once('/').unwrap_or(("", path));
    let Some((name, ending)) = file.rsplit_once('.') else { return false };
    let name = name.to_ascii_lowercase();
    let has = |words: &[&str]| words.iter().any(|it| name.contains(it));
    let is_list = match folder {
        "evals" => name == "evals" || has(&["trigger", "quer", "case", "prompts"]),
        "" | "tests" => has(&["trigger"]),
        _ => false,
    };
    // Directly beside the skill other tables may be about triggers as well.
    let endings = ["json", "jsonl", "csv", "yaml", "yml"];
    is_list && endings[..if folder.is_empty() { 2 } else { 5 }].contains(&ending)
}

fn finding(path: &Path, line: Option<usize>, message: String, hint: String) -> Finding {
    let finding = Finding::new(&rule::EVALS, Severity::Warning, path, message, hint);
    Finding { line, ..finding }
}
