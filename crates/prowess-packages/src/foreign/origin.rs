//! Records that other package managers leave in the folder of a skill.

use std::{
    fs::File,
    io::Read as _,
    path::{Path, PathBuf},
};

use serde_json::Value;

use super::{
    ForeignError, ForeignHash, ForeignSkill, LeftOut, clawhub,
    entry::{ForeignEntry, json, left_out},
};

/// The most bytes of a record.
const MAX_RECORD: u64 = 1 << 20;
/// The most bytes of a `SKILL.md`.
const MAX_DOCUMENT: u64 = 16 << 20;

/// Reads where a skill comes from, out of its own folder: `.clawhub/origin.json`,
/// `.openskills.json`, or what `gh skill` writes into the frontmatter of its `SKILL.md`. `None` if there is
/// nothing of that.
pub fn read_origin(folder: &Path) -> Result<Option<Result<ForeignSkill, LeftOut>>, ForeignError> {
    let name = folder.file_name().and_then(|it| it.to_str()).unwrap_or_default();
    for record in [".clawhub/origin.json", ".clawdhub/origin.json"] {
        if let Some(bytes) = contents(&folder.join(record), MAX_RECORD)? {
            return clawhub::read_origin(&bytes, name).map(Some);
        }
    }
    if let Some(bytes) = contents(&folder.join(".openskills.json"), MAX_RECORD)? {
        let file = json(&bytes)?;
        return Ok(Some(ForeignEntry::new(name, &file).and_then(|it| openskills(&it))));
    }
    let Some(bytes) = contents(&folder.join("SKILL.md"), MAX_DOCUMENT)? else { return Ok(None) };
    let Ok(frontmatter) = prowess::frontmatter_json(&bytes) else { return Ok(None) };
    let Some(metadata) = frontmatter.get("metadata").filter(|it| it.is_object()) else {
        return Ok(None);
    };
    if metadata.get("github-repo").is_none() && metadata.get("local-path").is_none() {
        return Ok(None);
    }
    let name = frontmatter.get("name").and_then(Value::as_str).unwrap_or(name);
    Ok(Some(ForeignEntry::new(name, metadata).and_then(|it| gh_skill(&it))))
}

fn openskills(entry: &ForeignEntry<'_>) -> Result<ForeignSkill, LeftOut> {
    let path = entry.text("subpath").map(|it| entry.folder(it)).transpose()?;
    let (address, is_local, unpinned) = match entry.text("sourceType") {
        Some("git" | "github") => {
            let address = entry.text("repoUrl").or(entry.text("source"));
            (address, false, "the record has no commit")
        }
        Some("local") => (
            entry.text("localPath").or(entry.text("source")),
            true,
            "it is a folder of this machine",
        ),
        _ => return Err(left_out(entry.name, "its type of source is not known")),
    };
    let address = address.ok_or_else(|| left_out(entry.name, "its record has no source"))?;
    Ok(ForeignSkill {
        name: entry.name.to_owned(),
        source: match is_local {
            true => entry.source(address)?,
            // What is not a URL is a spelling that both programs share.
            false if !address.contains(':') => {
                entry.repository(&format!("https://github.com/{address}"), None, path.as_deref())?
            }
            false => entry.repository(address, None, path.as_deref())?,
        },
        reference: None,
        commit: None,
        version: None,
        path,
        hash: ForeignHash::None("openskills records no hash"),
        folders: Vec::new(),
        unpinned: Some(unpinned),
    })
}

fn gh_skill(entry: &ForeignEntry<'_>) -> Result<ForeignSkill, LeftOut> {
    let path = entry.text("github-path").map(|it| entry.folder(it)).transpose()?;
    let is_local = entry.text("github-repo").is_none();
    let address = entry.text("github-repo").or(entry.text("local-path"));
    let address = address.ok_or_else(|| left_out(entry.name, "its frontmatter has no source"))?;
    if !is_local && !address.starts_with("https://") {
        return Err(left_out(entry.name, "its repository is not an HTTPS address"));
    }
    let pinned = entry.reference("github-pinned")?;
    let full = entry.reference("github-ref")?;
    let commit = entry.commit("github-ref");
    let short =
        full.map(|it| it.trim_start_matches("refs/heads/").trim_start_matches("refs/tags/"));
    let unpinned = match (&commit, is_local) {
        (Some(_), _) => None,
        (None, true) => Some("it is a folder of this machine"),
        (None, false) => Some("the frontmatter has no commit"),
    };
    let source = match is_local {
        true => entry.source(address)?,
        false => entry.repository(address, pinned.or(short), path.as_deref())?,
    };
    Ok(ForeignSkill {
        name: entry.name.to_owned(),
        source,
        reference: full.map(str::to_owned),
        commit,
        version: None,
        path,
        hash: entry
            .hash("github-tree-sha", "", 40)
            .map_or(ForeignHash::None("the frontmatter has no hash"), ForeignHash::GitTree),
        folders: Vec::new(),
        unpinned,
    })
}

/// Returns the bytes of a small file; `None` if there is no file.
fn contents(path: &Path, limit: u64) -> Result<Option<Vec<u8>>, ForeignError> {
    let failed = |source| ForeignError::Read { path: PathBuf::from(path), source };
    // A pipe or device in its place is not opened.
    match std::fs::symlink_metadata(path) {
        Ok(metadata) if !metadata.is_file() => return Ok(None),
        Ok(metadata) if metadata.len() > limit => {
            return Err(ForeignError::TooLarge { limit: format!("{} MiB", limit >> 20) });
        }
        Ok(_) => {}
        Err(error)
            if matches!(
                error.kind(),
                std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory
            ) =>
        {
            return Ok(None);
        }
        Err(error) => return Err(failed(error)),
    }
    let mut bytes = Vec::new();
    File::open(path).map_err(failed)?.take(limit).read_to_end(&mut bytes).map_err(failed)?;
    Ok(Some(bytes))
}
