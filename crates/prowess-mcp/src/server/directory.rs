//! Folders as resources: their direct children.

use std::collections::BTreeMap;

use prowess::{Library, Scope, spec::SKILL_FILE};
use rmcp::{ErrorData, model::Resource};

use crate::server::{
    media_type::{DIRECTORY, media_type},
    paging::{Page, page},
    publishable::{PublishableSkill, UriTarget, skills_in_scope},
    resources::{malformed_uri, short_uri, unserved_uri},
    server_state::ServerState,
    uri::{self, Uri},
};

/// Lists the direct children of a folder, a page at a time.
pub(crate) fn read(
    served: &ServerState,
    uri: &str,
    cursor: Option<&str>,
) -> Result<Page<Resource>, ErrorData> {
    let found = Uri::read(uri).map_err(|why| malformed_uri(uri, why))?;
    let library = served.library();
    let none = || unserved_uri(uri, format!("{} is not a directory", short_uri(uri)));
    match UriTarget::find(&library, &found).ok_or_else(none)? {
        UriTarget::Scope(scope) => skills(served, &library, scope, cursor),
        UriTarget::Skill { skill, base, path } => {
            let skill =
                PublishableSkill::new(skill, served.toolbox.authorizer()).map_err(|_| none())?;
            let children = children(&skill, &base, &path);
            if children.is_empty() {
                return Err(none());
            }
            // A cursor of one folder is not valid for another.
            let list = uri::child_uri(&base, &path);
            page(&list, cursor, children.into_iter(), |it| Some((it, COST)))
        }
    }
}

/// The approximate size of a child in bytes.
const COST: usize = 256;

/// Returns the folders of the skills of a scope.
fn skills(
    served: &ServerState,
    library: &Library,
    scope: Scope,
    cursor: Option<&str>,
) -> Result<Page<Resource>, ErrorData> {
    let base = uri::root_uri(scope.as_str());
    let all = skills_in_scope(library, scope).map(|it| (&*it.manifest.name, it));
    page(&base, cursor, all, |skill| {
        PublishableSkill::new(skill, served.toolbox.authorizer()).ok()?;
        Some((folder(&base, &skill.manifest.name, &skill.manifest.name), COST))
    })
}

/// Returns the direct children of a folder of a skill, by name; empty if it is not a folder.
fn children(skill: &PublishableSkill, base: &str, path: &str) -> BTreeMap<String, Resource> {
    let document = (SKILL_FILE, true, skill.document.len() as u64);
    let files = skill.files.iter().map(|it| (&*it.path, it.is_text, it.size));
    let mut children = BTreeMap::new();
    for (file, is_text, size) in std::iter::once(document).chain(files) {
        let within = match path {
            "" => Some(file),
            _ => file.strip_prefix(path).and_then(|it| it.strip_prefix('/')),
        };
        let Some(within) = within else { continue };
        let name = within.split('/').next().unwrap_or(within);
        let place = if path.is_empty() { name.to_owned() } else { format!("{path}/{name}") };
        let child = match within.contains('/') {
            true => folder(base, &place, name),
            false => Resource::new(uri::child_uri(base, file), name)
                .with_mime_type(media_type(file, is_text))
                .with_size(size),
        };
        children.insert(name.to_owned(), child);
    }
    children
}

fn folder(base: &str, path: &str, name: &str) -> Resource {
    Resource::new(uri::child_uri(base, path), name).with_mime_type(DIRECTORY)
}
