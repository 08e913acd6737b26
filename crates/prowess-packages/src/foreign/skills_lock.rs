//! `skills-lock.json` of `npx skills`, version 1.

use super::{
    ForeignError, ForeignHash, ForeignLock, ForeignSkill, LeftOut,
    entry::{ForeignEntry, folder_name, folders, is_commit, json, left_out, read_skills, version},
};

/// Why a skill without a commit is not pinned.
pub(super) const NO_COMMIT: &str = "the lock file has no commit";

pub(super) fn read(bytes: &[u8]) -> Result<ForeignLock, ForeignError> {
    let file = json(bytes)?;
    version(&file, "version", &["1"])?;
    read_skills(&file, skill)
}

fn skill(entry: &ForeignEntry<'_>) -> Result<ForeignSkill, LeftOut> {
    let name = entry.name;
    let kind = entry.text("sourceType").unwrap_or_default();
    let reference = entry.reference("ref")?;
    let path = entry.skill_folder("skillPath")?;
    let source = source(entry, kind, reference, path.as_deref())?;
    let commit = reference.filter(|it| is_commit(it)).map(str::to_lowercase);
    let hash = match (entry.text("wellKnownDigest"), entry.hash("computedHash", "", 64)) {
        (_, Some(hash)) => ForeignHash::Computed(hash),
        (Some(_), None) => entry
            .hash("wellKnownDigest", "sha256:", 64)
            .map_or(ForeignHash::None("the lock file has no hash"), ForeignHash::WellKnown),
        (None, None) => ForeignHash::None("the lock file has no hash"),
    };
    let unpinned = match (kind, &commit) {
        (_, Some(_)) => None,
        ("local", None) => Some("it is a folder of this machine"),
        ("well-known", None) => Some("a web site may change it"),
        _ => Some(NO_COMMIT),
    };
    Ok(ForeignSkill {
        name: name.to_owned(),
        source,
        reference: reference.map(str::to_owned),
        commit,
        version: entry.text("version").map(str::to_owned),
        path,
        hash,
        folders: folders(&folder_name(name), false),
        unpinned,
    })
}

/// Returns the source of an entry, which both lock files of `npx skills` write in the same way.
pub(super) fn source(
    entry: &ForeignEntry<'_>,
    kind: &str,
    reference: Option<&str>,
    path: Option<&str>,
) -> Result<crate::source::SkillSource, LeftOut> {
    let text =
        entry.text("source").ok_or_else(|| left_out(entry.name, "its entry has no source"))?;
    let url = entry.text("sourceUrl");
    match kind {
        "github" if !text.contains(':') => {
            let url = format!("https://github.com/{}", text.trim_end_matches(".git"));
            entry.repository(&url, reference, path)
        }
        "github" | "git" | "gitlab" => {
            let text = url.unwrap_or(text);
            // The program itself cannot restore a shorthand of another host.
            if kind != "github" && !text.contains(':') {
                let reason = "its entry does not say on which host the repository is";
                return Err(left_out(entry.name, reason));
            }
            entry.repository(text, reference, path)
        }
        "well-known" => entry.source(&url.map_or_else(|| format!("https://{text}"), str::to_owned)),
        "local" if text.starts_with(['.', '/']) || text.contains(":\\") => entry.source(text),
        "local" => entry.source(&format!("./{text}")),
        "node_modules" => entry.source(&format!("npm:{text}")),
        other => {
            let reason =
                format!("its type of source, `{}`, is not known", left_out(other, "").name);
            Err(left_out(entry.name, &reason))
        }
    }
}
