//! Two documents that some frameworks read instead of `skills/list`: an index of all skills, by
//! Agent Skills Discovery 0.2.0, and a manifest of the files of a skill.

use prowess::{Skill, brief_line, spec::MAX_DESCRIPTION};
use serde_json::{Value, json};

use crate::server::{
    entry::SkillListing,
    publishable::{PublishableSkill, listed_skills, skill_uri},
    server_state::ServerState,
};

/// The URI of the index.
pub(crate) const INDEX: &str = "skill://index.json";
/// The path of the manifest within each skill, unless the skill has a file of that name.
pub(crate) const MANIFEST: &str = "_manifest";

/// The identifier of the index format; it is never fetched.
const SCHEMA: &str = "https://schemas.agentskills.io/discovery/0.2.0/schema.json";

/// Lists every skill that a model may use, each with the URI and the digest of its `SKILL.md`.
/// Readers of the index offer all of it to a model, so skills for users only are left out.
pub(crate) fn index(served: &ServerState) -> Value {
    let library = served.library();
    let skills = listed_skills(&library).filter(|it| !it.manifest.hides_from_model()).filter_map(
        |skill: &Skill| {
            let published = PublishableSkill::new(skill, served.toolbox.authorizer()).ok()?;
            let entry = SkillListing::document(&published, &skill_uri(skill));
            Some(json!({
                "name": &*skill.manifest.name,
                "type": "skill-md",
                "description": brief_line(&skill.manifest.description, MAX_DESCRIPTION),
                "url": entry.uri,
                "digest": entry.digest,
            }))
        },
    );
    json!({ "$schema": SCHEMA, "skills": skills.collect::<Vec<_>>() })
}

/// Lists the files of a skill with size and digest.
pub(crate) fn manifest(skill: &PublishableSkill) -> Value {
    let files = SkillListing::files(skill)
        .map(|(path, digest, size)| json!({ "path": path, "size": size, "hash": digest }));
    json!({ "skill": &*skill.skill.manifest.name, "files": files.collect::<Vec<_>>() })
}
