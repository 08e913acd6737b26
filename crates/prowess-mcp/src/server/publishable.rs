//! A skill that the Skills extension can publish, and the files of it that are served.
//!
//! Listing and reading both use this, so that everything listed can be read.

use std::borrow::Cow;

use prowess::{
    FrontmatterError, Library, Resource, Scope, Skill, frontmatter_json, is_plain_name,
    spec::{MAX_COMPATIBILITY, MAX_DESCRIPTION, SKILL_FILE},
};
use prowess_runtime::Authorizer;
use serde_json::{Map, Value};

use crate::server::uri::{self, Uri};

/// The limits that every host accepts: the number of files of a skill, and their total size in
/// bytes.
const MAX_FILES: usize = 512;
const MAX_BYTES: u64 = 16 * 1024 * 1024;

/// A skill that every host accepts as it is.
#[derive(Debug)]
pub(crate) struct PublishableSkill {
    /// The skill, with a fresh list of its files.
    pub(crate) skill: Skill,
    /// The current content of its `SKILL.md`.
    pub(crate) document: Vec<u8>,
    /// The frontmatter of exactly these bytes.
    pub(crate) frontmatter: Map<String, Value>,
    /// The other files that are served.
    pub(crate) files: Vec<Resource>,
}

/// The reason a skill is not published; the tools still offer it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotPublishable {
    #[error("its name is not valid by the Agent Skills specification")]
    Name,
    #[error("it needs approval first")]
    Unapproved,
    #[error("its `SKILL.md` cannot be read now")]
    Unreadable,
    #[error("{0}")]
    Frontmatter(#[from] FrontmatterError),
    #[error("its frontmatter does not have `name: {0}`")]
    Renamed(String),
    #[error("its description does not have 1 to {MAX_DESCRIPTION} characters")]
    Description,
    #[error("its compatibility does not have 1 to {MAX_COMPATIBILITY} characters")]
    Compatibility,
    #[error(
        "its metadata has values that are not strings: put numbers, dates and booleans in quotes"
    )]
    Metadata,
    #[error("it has more than {MAX_FILES} files")]
    TooMany,
    #[error("its files have more than {MAX_BYTES} bytes")]
    TooLarge,
}

impl PublishableSkill {
    /// Reads the current state of a skill.
    pub(crate) fn new(skill: &Skill, authorizer: &Authorizer) -> Result<Self, NotPublishable> {
        let name = &*skill.manifest.name;
        if !is_plain_name(name) {
            return Err(NotPublishable::Name);
        }
        if !authorizer.can_disclose(skill) {
            return Err(NotPublishable::Unapproved);
        }
        let document = skill.document().map_err(|_| NotPublishable::Unreadable)?;
        let frontmatter = frontmatter_json(&document)?;
        if frontmatter.get("name").and_then(Value::as_str) != Some(name) {
            return Err(NotPublishable::Renamed(name.to_owned()));
        }
        check_fields(&frontmatter)?;
        let skill = skill.with_current_resources();
        let files = files(&skill, authorizer);
        if files.len() >= MAX_FILES {
            return Err(NotPublishable::TooMany);
        }
        if files.iter().map(|it| it.size).sum::<u64>() + document.len() as u64 > MAX_BYTES {
            return Err(NotPublishable::TooLarge);
        }
        Ok(Self { skill, document, frontmatter, files })
    }

    /// Reads one of its files; `None` if it is not served.
    pub(crate) fn read(&self, path: &str) -> Option<Cow<'_, [u8]>> {
        if path == SKILL_FILE {
            return Some(Cow::Borrowed(&self.document));
        }
        let file = self.files.iter().find(|it| &*it.path == path)?;
        self.skill.read(&file.path).ok().map(Cow::Owned)
    }
}

/// Checks the fields against the specification. A host may reject a whole list for one invalid
/// entry.
fn check_fields(frontmatter: &Map<String, Value>) -> Result<(), NotPublishable> {
    if !frontmatter.get("description").is_some_and(|it| is_text(it, MAX_DESCRIPTION)) {
        return Err(NotPublishable::Description);
    }
    if !frontmatter.get("compatibility").is_none_or(|it| is_text(it, MAX_COMPATIBILITY)) {
        return Err(NotPublishable::Compatibility);
    }
    if !frontmatter
        .get("metadata")
        .is_none_or(|it: &Value| it.as_object().is_some_and(|it| it.values().all(Value::is_string)))
    {
        return Err(NotPublishable::Metadata);
    }
    Ok(())
}

/// Whether a value is a text that is not blank, of at most so many characters.
fn is_text(value: &Value, max: usize) -> bool {
    value.as_str().is_some_and(|it| !it.trim().is_empty() && it.chars().count() <= max)
}

/// Returns the files beside a `SKILL.md` that may be disclosed and have a valid path.
fn files(skill: &Skill, authorizer: &Authorizer) -> Vec<Resource> {
    let folder = skill.absolute_folder();
    let mut files = skill.resources().to_vec();
    files.retain(|file| {
        let path = folder.as_ref().map(|it| it.join(&*file.path));
        uri::is_valid_path(&file.path)
            && path.is_none_or(|it| authorizer.can_disclose_file(skill, &it))
    });
    files
}

/// Returns the skills of a listing, sorted by name: the enabled ones that no other shadows.
pub(crate) fn listed_skills(library: &Library) -> impl Iterator<Item = &Skill> {
    library.skills().filter(|it| it.manifest.is_active())
}

/// Returns the enabled skills of a scope, sorted by name; the first of those with the same name.
pub(crate) fn skills_in_scope(library: &Library, scope: Scope) -> impl Iterator<Item = &Skill> {
    let mut last = None;
    let of_scope = library.all().filter(move |it| it.origin.scope == scope);
    let first =
        of_scope.filter(move |it| last.replace(&*it.manifest.name) != Some(&*it.manifest.name));
    first.filter(|it| it.manifest.is_active())
}

/// The target of a URI.
#[derive(Debug)]
pub(crate) enum UriTarget<'lib> {
    /// All skills of a scope.
    Scope(Scope),
    /// A skill, or a path in it.
    Skill {
        /// The skill.
        skill: &'lib Skill,
        /// The URI of its folder, in the form of the request.
        base: String,
        /// The path within; empty for the folder itself.
        path: String,
    },
}

impl<'lib> UriTarget<'lib> {
    /// Resolves a URI: into a scope, else into the skill that its first part names.
    pub(crate) fn find(library: &'lib Library, uri: &Uri) -> Option<Self> {
        let [first, rest @ ..] = &uri.0[..] else { return None };
        Self::find_in_scope(library, first, rest).or_else(|| {
            let skill = listed_skills(library).find(|it| *it.manifest.name == **first)?;
            Some(Self::Skill { skill, base: uri::root_uri(first), path: rest.join("/") })
        })
    }

    fn find_in_scope(library: &'lib Library, scope: &str, rest: &[String]) -> Option<Self> {
        let scope = SCOPES.into_iter().find(|it| it.as_str() == scope)?;
        let [name, path @ ..] = rest else { return Some(Self::Scope(scope)) };
        let skill = skills_in_scope(library, scope).find(|it| *it.manifest.name == **name)?;
        Some(Self::Skill { skill, base: skill_uri(skill), path: path.join("/") })
    }
}

/// The scopes that URIs can begin with.
const SCOPES: [Scope; 3] = [Scope::Project, Scope::User, Scope::Bundled];

/// Returns the URI of a skill's folder.
pub(crate) fn skill_uri(skill: &Skill) -> String {
    uri::child_uri(&uri::root_uri(skill.origin.scope.as_str()), &skill.manifest.name)
}
