//! Evaluation files: requests, each with what should come of it.
//!
//! Skills bring them in several shapes: `evals/evals.json`, lists of triggers, lines of JSON. All are
//! read here, and what cannot be read is a finding.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use serde_json::{Value as Json, value::RawValue};

use super::{Lab, can_be_matched};
use crate::{
    finding::{Finding, Severity},
    parse::decode,
    rule,
    skill::Skill,
};

/// A request, and what should come of it.
#[derive(Debug, Clone)]
pub struct Trial<'lib> {
    /// The file that it stands in.
    pub path: PathBuf,
    /// The line in which it begins.
    pub line: usize,
    /// The request.
    pub request: String,
    /// What should come of it.
    pub expected: Expected<'lib>,
}

/// What should come of a request.
#[derive(Debug, Clone)]
pub enum Expected<'lib> {
    /// It matches one of these skills.
    AnyOf(Vec<&'lib Skill>),
    /// It matches anything but this skill.
    Not(&'lib Skill),
    /// It matches no skill.
    Nothing,
}

/// What was read from evaluation files.
#[derive(Debug, Clone, Default)]
pub struct Trials<'lib> {
    /// The requests, in the order in which they stand there.
    pub trials: Vec<Trial<'lib>>,
    /// What is wrong with the files.
    pub findings: Vec<Finding>,
}

/// How many faults of one file are told one by one.
const MOST_FAULTS: usize = 10;
/// What a request is called, and the skill that it is for.
const REQUEST: [&str; 5] = ["query", "prompt", "request", "question", "input"];
const SKILL: [&str; 4] = ["expected_skill", "skill", "skill_name", "skills"];
const SHOULD: [&str; 2] = ["should_trigger", "shouldTrigger"];
/// What a list of requests is called that say themselves what is expected; and one of those that should
/// match, or should not.
const LISTS: [&str; 5] = ["evals", "cases", "queries", "tests", "prompts"];
const POSITIVE: [&str; 4] = ["should_trigger", "shouldTrigger", "shouldTriggerPrompts", "positive"];
const NEGATIVE: [&str; 4] =
    ["should_not_trigger", "shouldNotTrigger", "shouldNotTriggerPrompts", "negative"];

impl<'lib> Lab<'lib> {
    /// Reads the evaluation files that lie beside the skills that are `wanted`: `evals/evals.json`, and
    /// lists of triggers. Those of skills that are hidden or not in use are left alone.
    pub fn evaluations(&self, wanted: impl Fn(&Skill) -> bool) -> Trials<'lib> {
        let mut all = Trials::default();
        let is_in_use = |it: &Skill| it.hidden_by.is_none() && it.manifest.is_active();
        for skill in self.library.all().filter(|it| is_in_use(it) && wanted(it)) {
            let files = skill.resources().iter().map(|it| &*it.path);
            for file in files.filter(|it| is_evaluation(it)) {
                let path = skill.folder().join(file);
                match skill.read(file) {
                    Ok(bytes) => all.extend(self.read(&bytes, &path, Some(skill))),
                    Err(error) => {
                        let message = format!("it cannot be read: {error}");
                        all.findings.push(finding(&path, None, message, ""));
                    }
                }
            }
        }
        all
    }

    /// Reads a file of requests, each with the skill that it is for: a JSON list, or one object a line.
    pub fn trials(&self, bytes: &[u8], path: &Path) -> Trials<'lib> {
        self.read(bytes, path, None)
    }

    fn read(&self, bytes: &[u8], path: &Path, own: Option<&'lib Skill>) -> Trials<'lib> {
        let text = &*decode(bytes).text;
        let (requests, mut faults) = match requests(text) {
            Ok(requests) => (requests, Vec::new()),
            Err(fault) => (Requests::default(), vec![fault]),
        };
        let mut trials = Vec::new();
        for entry in &requests.entries {
            match self.expected(entry, requests.skill.as_ref(), own) {
                Ok((request, expected)) => {
                    trials.push(Trial {
                        path: path.to_owned(),
                        line: entry.line,
                        request,
                        expected,
                    });
                }
                Err(fault) => faults.push((Some(entry.line), fault)),
            }
        }
        let hint = match own {
            Some(_) => r#"a request is such as {"query": "open a PR", "should_trigger": true}"#,
            None => r#"a request is such as {"query": "open a PR", "skill": "create-pr"}"#,
        };
        let more = faults.len().saturating_sub(MOST_FAULTS);
        faults.truncate(MOST_FAULTS);
        faults
            .extend((more > 0).then(|| (None, format!("{more} more of its requests are faulty"))));
        let finding = |(line, message)| finding(path, line, message, hint);
        Trials { trials, findings: faults.into_iter().map(finding).collect() }
    }

    /// The request of an entry, and what should come of it.
    fn expected(
        &self,
        entry: &Entry<'_>,
        about: Option<&Json>,
        own: Option<&'lib Skill>,
    ) -> Result<(String, Expected<'lib>), String> {
        let json: Json = serde_json::from_str(entry.text).map_err(|it| not_json(&it))?;
        let field = |names: &[&str]| names.iter().find_map(|it| json.get(*it));
        let request = json.as_str().or_else(|| field(&REQUEST)?.as_str()).unwrap_or_default();
        if request.trim().is_empty() {
            return Err("there is no request, which is called `query` or `prompt`".to_owned());
        }
        let should = match field(&SHOULD).map(Json::as_bool) {
            Some(None) => return Err("`should_trigger` is neither true nor false".to_owned()),
            Some(Some(should)) => should,
            None => entry.should.unwrap_or(true),
        };
        // What lies beside a skill is about that one, whatever it was called when it was written.
        let names: Vec<&str> = match field(&SKILL).or(about.filter(|_| own.is_none())) {
            None => Vec::new(),
            Some(Json::Null) => return Ok((request.to_owned(), Expected::Nothing)),
            Some(Json::String(name)) => vec![name],
            Some(Json::Array(names)) => names.iter().filter_map(Json::as_str).collect(),
            Some(_) => return Err("the skill is neither a name nor null".to_owned()),
        };
        let find = |name: &&str| {
            let own = own.filter(|it| *it.manifest.name == **name);
            let missing = || format!("there is no skill `{name}`");
            own.or_else(|| self.library.get(name)).ok_or_else(missing)
        };
        let mut skills: Vec<&Skill> = names.iter().map(find).collect::<Result<_, _>>()?;
        if skills.is_empty() {
            skills.extend(own);
        }
        let expected = match (&skills[..], should) {
            ([], _) => return Err("it does not say which `skill` is expected".to_owned()),
            ([first, ..], false) => Expected::Not(first),
            (_, true) => Expected::AnyOf(skills),
        };
        Ok((request.to_owned(), expected))
    }
}

impl<'lib> Trials<'lib> {
    /// Adds those of another file.
    pub fn extend(&mut self, more: Self) {
        self.trials.extend(more.trials);
        self.findings.extend(more.findings);
    }
}

impl Expected<'_> {
    /// Whether a request can come out as expected at all.
    pub fn is_possible(&self) -> bool {
        match self {
            Self::AnyOf(skills) => skills.iter().any(|it| can_be_matched(it)),
            Self::Not(_) | Self::Nothing => true,
        }
    }
}

/// Whether a file beside a `SKILL.md` holds requests, by its path.
fn is_evaluation(path: &str) -> bool {
    let (folder, file) = path.rsplit_once('/').unwrap_or(("", path));
    let has = |word: &str| file.to_ascii_lowercase().contains(word);
    let is_json = file.ends_with(".json") || file.ends_with(".jsonl");
    let is_list = match folder {
        "evals" => file == "evals.json" || ["trigger", "quer", "case"].iter().any(|it| has(it)),
        "" | "tests" => has("trigger"),
        _ => false,
    };
    is_json && is_list
}

/// A file of requests.
#[derive(Default)]
struct Requests<'t> {
    entries: Vec<Entry<'t>>,
    /// The skill that all of it is about.
    skill: Option<Json>,
}

/// A request as it stands in a file.
struct Entry<'t> {
    text: &'t str,
    /// Counted from 1.
    line: usize,
    /// Whether it stands in a list of those that should match, or of those that should not.
    should: Option<bool>,
}

/// What is wrong, and in which line.
type Fault = (Option<usize>, String);

fn requests(text: &str) -> Result<Requests<'_>, Fault> {
    if is_lines(text) {
        let lines = text.lines().zip(1..).filter(|it| !it.0.trim().is_empty());
        let entry = |(text, line)| Entry { text, line, should: None };
        return Ok(Requests { entries: lines.map(entry).collect(), skill: None });
    }
    let fault = |error: serde_json::Error| (Some(error.line()), not_json(&error));
    if text.trim_start().starts_with('[') {
        let list: Vec<&RawValue> = serde_json::from_str(text).map_err(fault)?;
        return Ok(Requests { entries: placed(text, vec![(list, None)]), skill: None });
    }
    let fields: BTreeMap<String, &RawValue> = serde_json::from_str(text).map_err(fault)?;
    let skill = SKILL.iter().find_map(|it| fields.get(*it));
    let skill = skill.and_then(|it| serde_json::from_str(it.get()).ok());
    let names = LISTS.map(|it| (it, None)).into_iter();
    let names = names.chain(POSITIVE.map(|it| (it, Some(true))));
    let names = names.chain(NEGATIVE.map(|it| (it, Some(false))));
    let lists: Vec<_> = names
        .filter_map(|(name, should)| {
            Some((serde_json::from_str(fields.get(name)?.get()).ok()?, should))
        })
        .collect();
    if lists.is_empty() {
        return Err((None, "it has no list of requests, such as `evals`".to_owned()));
    }
    Ok(Requests { entries: placed(text, lists), skill })
}

/// Whether a text is one object a line: the first line is whole, and not all there is.
fn is_lines(text: &str) -> bool {
    let mut lines = text.lines().filter(|it| !it.trim().is_empty());
    let first = lines.next().unwrap_or_default();
    let is_object = first.trim_start().starts_with('{');
    is_object
        && serde_json::from_str::<BTreeMap<String, &RawValue>>(first).is_ok_and(|fields| {
            // One line alone can also be a whole file with lists in it.
            lines.next().is_some() || REQUEST.iter().any(|it| fields.contains_key(*it))
        })
}

/// The requests of lists that were read from a text, with their lines.
fn placed<'t>(text: &'t str, lists: Vec<(Vec<&'t RawValue>, Option<bool>)>) -> Vec<Entry<'t>> {
    let ends: Vec<usize> = text.match_indices('\n').map(|it| it.0).collect();
    let entries = lists
        .into_iter()
        .flat_map(|(list, should)| list.into_iter().map(move |raw| (raw.get(), should)));
    let entry = |(own, should): (&'t str, _)| {
        let at = own.as_ptr().addr().saturating_sub(text.as_ptr().addr());
        Entry { text: own, line: ends.partition_point(|it| *it < at) + 1, should }
    };
    entries.map(entry).collect()
}

/// What a reader of JSON says, without the place, which is told beside it.
fn not_json(error: &serde_json::Error) -> String {
    let words = error.to_string();
    let words = words.split(" at line ").next().unwrap_or_default();
    format!("it is not JSON: {words}")
}

fn finding(path: &Path, line: Option<usize>, message: String, hint: &'static str) -> Finding {
    let finding = Finding::new(&rule::EVALS, Severity::Warning, path, message, hint);
    Finding { line, ..finding }
}
