//! Reads the fields of entries, none of which can be trusted.

use prowess::CLIENTS;
use serde_json::{Map, Value};

use super::{ForeignError, ForeignLock, ForeignSkill, LeftOut};
use crate::source::{
    GitSource, SkillSource, SourceKind, SourceSyntaxError, check_reference, relative_path,
};

/// The most characters of a text that is shown.
const MAX_SHOWN: usize = 200;
/// The most bytes of a text.
const MAX_TEXT: usize = 4096;

/// An entry of a lock file.
pub(super) struct ForeignEntry<'j> {
    pub(super) name: &'j str,
    fields: &'j Map<String, Value>,
}

impl<'j> ForeignEntry<'j> {
    /// Returns an entry if it is a map.
    pub(super) fn new(name: &'j str, value: &'j Value) -> Result<Self, LeftOut> {
        let fields = value.as_object().ok_or_else(|| left_out(name, "its entry is not a map"))?;
        Ok(Self { name, fields })
    }

    /// Returns a text without control characters; `None` if there is none, or an empty one.
    pub(super) fn text(&self, key: &str) -> Option<&'j str> {
        let text = self.fields.get(key)?.as_str()?;
        let is_fine =
            !text.is_empty() && text.len() <= MAX_TEXT && !text.contains(char::is_control);
        is_fine.then_some(text)
    }

    pub(super) fn field(&self, key: &str) -> Option<&'j Value> {
        self.fields.get(key)
    }

    /// Returns a source.
    pub(super) fn source(&self, text: &str) -> Result<SkillSource, LeftOut> {
        let source: SkillSource =
            text.parse().map_err(|it: SourceSyntaxError| left_out(self.name, &it.to_string()))?;
        self.readable(SkillSource { skills: Vec::new(), ..source })
    }

    /// Returns a repository, or the folder of it on this machine, with what is asked for of it.
    pub(super) fn repository(
        &self,
        url: &str,
        reference: Option<&str>,
        path: Option<&str>,
    ) -> Result<SkillSource, LeftOut> {
        let git = GitSource::from_url(url).map_err(|it| left_out(self.name, &it.to_string()))?;
        let git = GitSource {
            reference: reference.map(str::to_owned).or(git.reference),
            path: path.filter(|it| !it.is_empty()).map(str::to_owned).or(git.path),
            url: git.url,
        };
        self.readable(SkillSource { kind: SourceKind::Git(git), skills: Vec::new() })
    }

    /// Fails if a source that was put together is none that a user could write.
    fn readable(&self, source: SkillSource) -> Result<SkillSource, LeftOut> {
        match source.to_string().parse::<SkillSource>() {
            Ok(read) if read == source => Ok(source),
            Ok(_) => {
                Err(left_out(self.name, "its source cannot be written such that it reads the same"))
            }
            Err(error) => Err(left_out(self.name, &error.to_string())),
        }
    }

    /// Returns a reference that git does not take for an option.
    pub(super) fn reference(&self, key: &str) -> Result<Option<&'j str>, LeftOut> {
        match self.text(key) {
            Some(text) if check_reference(text).is_err() => {
                Err(left_out(self.name, "its reference is not a branch, tag or commit"))
            }
            text => Ok(text),
        }
    }

    /// Returns a folder below the source.
    pub(super) fn folder(&self, path: &str) -> Result<String, LeftOut> {
        let path = relative_path(path.split('/'))
            .map_err(|_| left_out(self.name, "its path leads out of the source"))?;
        Ok(path.unwrap_or_default())
    }

    /// Returns the folder of a `SKILL.md`.
    pub(super) fn skill_folder(&self, key: &str) -> Result<Option<String>, LeftOut> {
        let Some(path) = self.text(key) else { return Ok(None) };
        let name = path.rsplit('/').next().unwrap_or_default();
        let folder = match name.eq_ignore_ascii_case("SKILL.md") {
            true => &path[..path.len() - name.len()],
            false => path,
        };
        self.folder(folder).map(Some)
    }

    /// Returns a commit: 40 or 64 hexadecimal digits.
    pub(super) fn commit(&self, key: &str) -> Option<String> {
        self.text(key).filter(|it| is_commit(it)).map(str::to_lowercase)
    }

    /// Returns a hash in hex of this many digits, behind a prefix.
    pub(super) fn hash(&self, key: &str, prefix: &str, digits: usize) -> Option<String> {
        let text = self.text(key)?;
        let hex = text.strip_prefix(prefix)?;
        let is_hash = hex.len() == digits && hex.bytes().all(|it| it.is_ascii_hexdigit());
        is_hash.then(|| text.to_lowercase())
    }
}

pub(super) fn is_commit(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|it| it.is_ascii_hexdigit())
}

pub(super) fn left_out(name: &str, reason: &str) -> LeftOut {
    let name = name.chars().filter(|it| !it.is_control()).take(MAX_SHOWN).collect();
    LeftOut { name, reason: reason.to_owned() }
}

/// Reads a file of JSON.
pub(super) fn json(bytes: &[u8]) -> Result<Value, ForeignError> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    serde_json::from_slice(bytes).map_err(|it| ForeignError::Syntax { message: it.to_string() })
}

/// Returns a map of a file.
pub(super) fn map<'j>(value: &'j Value, key: &str) -> Result<&'j Map<String, Value>, ForeignError> {
    let map = value.get(key).and_then(Value::as_object);
    map.ok_or_else(|| ForeignError::Syntax { message: format!("`{key}` is not a map") })
}

/// Reads each entry of `skills`; those that cannot be taken over are left out.
pub(super) fn read_skills(
    file: &Value,
    read: impl Fn(&ForeignEntry<'_>) -> Result<ForeignSkill, LeftOut>,
) -> Result<ForeignLock, ForeignError> {
    let mut lock = ForeignLock::default();
    for (name, value) in map(file, "skills")? {
        match ForeignEntry::new(name, value).and_then(|it| read(&it)) {
            Ok(skill) => lock.skills.push(skill),
            Err(it) => lock.left_out.push(it),
        }
    }
    Ok(lock)
}

/// Fails unless a file has the known version.
pub(super) fn version(
    value: &Value,
    key: &str,
    known: &'static [&'static str],
) -> Result<(), ForeignError> {
    let found = match value.get(key) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Number(number)) => number.to_string(),
        _ => "unknown".to_owned(),
    };
    if known.contains(&found.as_str()) {
        return Ok(());
    }
    let found = found.chars().filter(|it| !it.is_control()).take(20).collect();
    Err(ForeignError::Version { found, known: known.last().copied().unwrap_or_default() })
}

/// Returns the folders of clients that a skill may be in, of a project or of a user.
pub(super) fn folders(name: &str, is_user: bool) -> Vec<String> {
    let shared = if is_user { "~/.agents/skills" } else { ".agents/skills" };
    let mut folders = vec![shared];
    for spot in CLIENTS.iter().flat_map(|it| it.spots) {
        let is_of_user = spot.path.starts_with("~/");
        let is_elsewhere =
            spot.path.starts_with(['$', '/', '%']) || !is_of_user && spot.path.starts_with('~');
        if is_of_user == is_user && !is_elsewhere && !folders.contains(&spot.path) {
            folders.push(spot.path);
        }
    }
    folders.into_iter().map(|it| format!("{it}/{name}")).collect()
}

/// Returns the folder name that `npx skills` gives a skill.
pub(super) fn folder_name(name: &str) -> String {
    let mut out = String::new();
    for c in name.to_lowercase().chars() {
        match c {
            'a'..='z' | '0'..='9' | '.' | '_' => out.push(c),
            _ if out.ends_with('-') => {}
            _ => out.push('-'),
        }
    }
    let out: String = out.trim_matches(['.', '-']).chars().take(255).collect();
    if out.is_empty() { "unnamed-skill".to_owned() } else { out }
}
