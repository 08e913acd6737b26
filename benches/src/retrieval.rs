//! Requests with known right skills: the data for measuring finding.

use std::{collections::HashMap, fs, path::Path, process::Command, sync::Arc};

use anyhow::{Context as _, Result, bail, ensure};
use prowess::{Library, Listing, Memory, Scope};
use serde::{Deserialize, de::DeserializeOwned};

use crate::options::Options;

/// An installable skill.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Skill {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) body: String,
    /// The repository in which it was published.
    #[serde(default)]
    pub(crate) repo: String,
}

/// A request, and the skills that are right for it.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Request {
    pub(crate) id: String,
    pub(crate) query: String,
    /// Their ids.
    pub(crate) gold: Vec<String>,
    /// The origin of requests of its kind.
    pub(crate) stratum: String,
    #[serde(default)]
    pub(crate) source_repo: String,
}

/// A near miss: a request that a skill looks right for and is not.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Negative {
    pub(crate) query: String,
    pub(crate) skill_id: String,
}

/// The stratum of requests that no skill answers.
const UNANSWERABLE: &str = "none";

/// Skills, requests and near misses; every id refers to a skill.
#[derive(Debug)]
pub(crate) struct Data {
    pub(crate) skills: Vec<Skill>,
    pub(crate) requests: Vec<Request>,
    pub(crate) negatives: Vec<Negative>,
    /// Requests that no skill answers.
    pub(crate) unanswerable: Vec<Request>,
    /// The index of each id among the skills.
    places: HashMap<String, usize>,
}

impl Data {
    /// Reads files with one JSON object per line; one that ends in `.zst` is unpacked by `zstd`.
    pub(crate) fn read(skills: &Path, queries: &Path, negatives: Option<&Path>) -> Result<Self> {
        let negatives = match negatives {
            Some(path) => lines(path)?,
            None => Vec::new(),
        };
        Self::new(lines(skills)?, lines(queries)?, negatives)
    }

    /// Joins the parts; fails if one refers to something that another does not have.
    pub(crate) fn new(
        skills: Vec<Skill>,
        requests: Vec<Request>,
        negatives: Vec<Negative>,
    ) -> Result<Self> {
        let (unanswerable, requests) =
            requests.into_iter().partition(|it| it.stratum == UNANSWERABLE);
        let mut data = Self { skills, requests, negatives, unanswerable, places: HashMap::new() };
        data.check()?;
        Ok(data)
    }

    /// Reads the files that the options name.
    pub(crate) fn named(options: &Options<'_>) -> Result<Self> {
        let negatives = options.get("--negatives").map(Path::new);
        let negatives = negatives.map_or_else(|| Ok(Vec::new()), lines)?;
        let mut requests = lines(options.path("--queries")?)?;
        if let Some(path) = options.get("--requests") {
            requests.extend(lines(Path::new(path))?);
        }
        Self::new(lines(options.path("--skills")?)?, requests, negatives)
    }

    /// Loads some of the skills, by their indices.
    pub(crate) fn library(&self, which: &[usize]) -> Library {
        library(which.iter().map(|it| &self.skills[*it]))
    }

    /// Returns the index of the skill with an id.
    pub(crate) fn place(&self, id: &str) -> Option<usize> {
        self.places.get(id).copied()
    }

    /// Returns the indices of the skills that are right for a request.
    pub(crate) fn right(&self, request: &Request) -> Vec<usize> {
        request.gold.iter().filter_map(|it| self.place(it)).collect()
    }

    /// Indexes the skills, and checks that all ids exist and skills are complete.
    fn check(&mut self) -> Result<()> {
        for (place, Skill { id, name, description, .. }) in self.skills.iter().enumerate() {
            let before = self.places.insert(id.clone(), place);
            ensure!(before.is_none(), "two skills have the id `{id}`");
            let is_folder = !id.is_empty() && id.bytes().all(|it| it.is_ascii_alphanumeric());
            ensure!(is_folder, "the id `{id}` is not made of letters and digits");
            let is_whole = [name, description].iter().all(|it| !it.trim().is_empty());
            ensure!(is_whole, "skill `{id}` has no name or no description");
        }
        for Request { id, gold, .. } in &self.requests {
            ensure!(!gold.is_empty(), "no skill is right for request `{id}`");
            let unknown = gold.iter().find(|it| self.place(it).is_none());
            if let Some(unknown) = unknown {
                bail!("request `{id}` wants skill `{unknown}`, which is not there");
            }
        }
        let unknown = self.negatives.iter().find(|it| self.place(&it.skill_id).is_none());
        if let Some(Negative { skill_id, .. }) = unknown {
            bail!("a negative speaks of skill `{skill_id}`, which is not there");
        }
        Ok(())
    }
}

/// Loads skills from memory, each at `<id>/SKILL.md`.
pub(crate) fn library<'s>(skills: impl IntoIterator<Item = &'s Skill>) -> Library {
    let files =
        skills.into_iter().map(|it| (format!("{}/SKILL.md", it.id), document(it).into_bytes()));
    let memory = Memory::new(Scope::Project, "", files);
    let options = prowess::Options {
        sources: vec![Arc::new(memory)],
        resources: Listing::OnDemand,
        ..prowess::Options::default()
    };
    Library::load(&options).expect("there is a source")
}

/// Returns the id of a skill of such a library.
pub(crate) fn id(skill: &prowess::Skill) -> &str {
    skill.folder().to_str().unwrap_or_default()
}

/// Returns a `SKILL.md`. A JSON string is a YAML string, whatever it contains.
fn document(skill: &Skill) -> String {
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let Skill { name, description, body, .. } = skill;
    format!("---\nname: {}\ndescription: {}\n---\n{body}", quoted(name), quoted(description))
}

fn lines<T: DeserializeOwned>(path: &Path) -> Result<Vec<T>> {
    let text = text(path).with_context(|| format!("cannot read `{}`", path.display()))?;
    let mut items = Vec::new();
    for (number, line) in (1..).zip(text.lines()).filter(|it| !it.1.trim().is_empty()) {
        let item = serde_json::from_str(line);
        items.push(item.with_context(|| format!("`{}`, line {number}", path.display()))?);
    }
    ensure!(!items.is_empty(), "there is nothing in `{}`", path.display());
    Ok(items)
}

fn text(path: &Path) -> Result<String> {
    if path.extension().is_none_or(|it| it != "zst") {
        return Ok(fs::read_to_string(path)?);
    }
    let output = Command::new("zstd").args(["-dcq", "--"]).arg(path).output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr).trim());
    Ok(String::from_utf8(output.stdout)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SKILLS: &str = r#"
        {"id":"a1","name":"make-tea","description":"Says: \"boil\"\nand # wait","body":"\n# Tea\n","path":"x"}
        {"id":"b2","name":"make-tea","description":"{{ 'No' }} ","body":"---\nodd: [\n---\n","repo":"o/r"}"#;
    const REQUESTS: &str = r#"{"id":"q","query":"tea!","gold":["b2"],"stratum":"author"}"#;
    const NEGATIVES: &str = r#"{"query":"coffee","skill_id":"a1","label":0}"#;

    fn read(skills: &str, requests: &str, negatives: &str) -> Result<Data, String> {
        let directory = tempfile::tempdir().unwrap();
        let paths = ["skills", "requests", "negatives"].map(|it| directory.path().join(it));
        for (path, text) in paths.iter().zip([skills, requests, negatives]) {
            fs::write(path, text).unwrap();
        }
        let data = Data::read(&paths[0], &paths[1], Some(&paths[2]));
        let folder = format!("{}/", directory.path().display());
        data.map_err(|it| format!("{it:#}").replace(&folder, ""))
    }

    #[test]
    fn every_line_is_read() {
        let data = read(SKILLS, REQUESTS, NEGATIVES).unwrap();
        assert_eq!(data.skills.len(), 2);
        assert_eq!(data.skills[1].repo, "o/r");
        assert_eq!(data.requests[0].gold, ["b2"]);
        assert_eq!(data.requests[0].stratum, "author");
        assert_eq!(data.right(&data.requests[0]), [1]);
        assert_eq!(data.negatives[0].skill_id, "a1");
    }

    #[test]
    fn a_skill_of_the_library_is_the_one_of_the_file() {
        let data = read(SKILLS, REQUESTS, NEGATIVES).unwrap();
        let library = data.library(&[1, 0]);
        assert!(library.left_out().is_empty(), "{:?}", library.findings());
        let mut found: Vec<&prowess::Skill> = library.all().collect();
        found.sort_by_key(|it| id(it));
        assert_eq!(found.len(), 2);
        for (found, skill) in found.into_iter().zip(&data.skills) {
            assert_eq!(id(found), skill.id);
            assert_eq!(&*found.manifest.name, skill.name);
            assert_eq!(found.manifest.description.trim(), skill.description.trim());
            assert_eq!(found.instructions().unwrap().trim(), skill.body.trim());
        }
    }

    #[test]
    fn only_the_skills_that_are_wanted_are_loaded() {
        let data = read(SKILLS, REQUESTS, NEGATIVES).unwrap();
        assert_eq!(data.library(&[1]).all().map(id).collect::<Vec<_>>(), ["b2"]);
        assert_eq!(data.library(&[]).all().count(), 0);
    }

    #[test]
    fn what_is_wrong_is_said() {
        let of_skills = |skills: &str| read(skills, REQUESTS, NEGATIVES).unwrap_err();
        let of_requests = |requests: &str| read(SKILLS, requests, NEGATIVES).unwrap_err();
        assert!(of_skills("\n{\"id\":\"a1\"}").starts_with("`skills`, line 2: missing field"));
        assert!(of_skills("{").starts_with("`skills`, line 1: EOF"));
        assert_eq!(of_skills(""), "there is nothing in `skills`");
        let twice = format!("{SKILLS}\n{SKILLS}");
        assert_eq!(of_skills(&twice), "two skills have the id `a1`");
        let outside = of_skills(&SKILLS.replace("a1", "../a1"));
        assert_eq!(outside, "the id `../a1` is not made of letters and digits");
        let nameless = of_skills(&SKILLS.replace("make-tea", " "));
        assert_eq!(nameless, "skill `a1` has no name or no description");
        let unknown = of_requests(&REQUESTS.replace("b2", "c3"));
        assert_eq!(unknown, "request `q` wants skill `c3`, which is not there");
        let none = of_requests(&REQUESTS.replace("\"b2\"", ""));
        assert_eq!(none, "no skill is right for request `q`");
        let negative = read(SKILLS, REQUESTS, &NEGATIVES.replace("a1", "c3")).unwrap_err();
        assert_eq!(negative, "a negative speaks of skill `c3`, which is not there");
        let missing = Data::read(Path::new("no-such"), Path::new("no-such"), None).unwrap_err();
        assert_eq!(missing.to_string(), "cannot read `no-such`");
    }

    #[test]
    fn a_packed_file_that_is_none_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("skills.jsonl.zst");
        fs::write(&path, "no such thing").unwrap();
        let error = Data::read(&path, &path, None).unwrap_err();
        assert!(error.to_string().starts_with("cannot read "), "{error:#}");
    }
}
