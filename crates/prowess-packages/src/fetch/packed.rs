//! Unpacks what was downloaded.

use std::{fs, io::Read as _};

use crate::{
    archive::{ArchiveFormat, LeftOut, UnpackOptions, UnpackedArchive, format_of, unpack_with},
    cache::CacheDraft,
    digest::{FileDigest, TreeFile},
    fetch::{
        PackageFetcher, blocking,
        error::{FetchPackageError, size},
        git_program::shown,
        web::SavedBody,
    },
};

/// Files in a draft.
#[derive(Debug)]
pub(super) struct DraftFiles {
    pub(super) draft: CacheDraft,
    pub(super) files: Vec<TreeFile>,
    /// The commit that an archive says it is of.
    pub(super) comment: Option<String>,
    pub(super) notes: Vec<String>,
}

/// The format of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BodyKind {
    Archive(ArchiveFormat),
    /// A `SKILL.md`.
    Skill,
    Unusable(&'static str),
}

/// The most bytes of a `SKILL.md`.
const MAX_SKILL: u64 = 10 << 20;

impl PackageFetcher {
    /// Unpacks an archive, or takes a `SKILL.md`, into a new draft; with a name, into its folder.
    pub(super) async fn unpack_body(
        &self,
        body: SavedBody,
        options: UnpackOptions,
    ) -> Result<DraftFiles, FetchPackageError> {
        let draft = self.draft().await?;
        self.unpack_body_to(body, options, draft, None).await
    }

    /// Does the same with a draft that may have other folders.
    pub(super) async fn unpack_body_to(
        &self,
        mut body: SavedBody,
        options: UnpackOptions,
        draft: CacheDraft,
        name: Option<String>,
    ) -> Result<DraftFiles, FetchPackageError> {
        let url = shown(body.url.as_str());
        let progress = self.progress.clone();
        blocking(move || {
            let folder = match &name {
                Some(name) => draft.path().join(name),
                None => draft.path().to_owned(),
            };
            let written =
                |source| FetchPackageError::Io { action: "write", path: folder.clone(), source };
            fs::create_dir_all(&folder).map_err(written)?;
            let unpacked = match kind(&body.beginning) {
                BodyKind::Archive(format) => unpack_with(&mut body.file, format, &options, &folder)
                    .map_err(|source| FetchPackageError::Archive { url: url.clone(), source })?,
                BodyKind::Skill => {
                    let mut bytes = Vec::new();
                    (&mut body.file)
                        .take(MAX_SKILL + 1)
                        .read_to_end(&mut bytes)
                        .map_err(written)?;
                    if bytes.len() as u64 > MAX_SKILL {
                        let limit = size(MAX_SKILL);
                        return Err(FetchPackageError::TooLarge { url, limit });
                    }
                    if str::from_utf8(&bytes).is_err() {
                        return Err(FetchPackageError::NotAnArchive { url, found: BINARY });
                    }
                    fs::write(folder.join("SKILL.md"), &bytes).map_err(written)?;
                    UnpackedArchive {
                        files: vec![skill_file(&bytes)],
                        ..UnpackedArchive::default()
                    }
                }
                BodyKind::Unusable(found) => {
                    return Err(FetchPackageError::NotAnArchive { url, found });
                }
            };
            progress.add_files(unpacked.files.len() as u64);
            let notes = left_out(&unpacked.left_out).collect();
            let mut files = unpacked.files;
            if let Some(name) = name {
                for file in &mut files {
                    file.path.insert_str(0, &format!("{name}/"));
                }
            }
            Ok(DraftFiles { draft, files, comment: unpacked.comment, notes })
        })
        .await
    }
}

pub(super) fn skill_file(bytes: &[u8]) -> TreeFile {
    TreeFile {
        path: "SKILL.md".to_owned(),
        digest: FileDigest::of(bytes),
        size: bytes.len() as u64,
        executable: false,
    }
}

/// Returns what was left out as sentences.
pub(super) fn left_out(left_out: &[LeftOut]) -> impl Iterator<Item = String> {
    left_out.iter().take(100).map(|it| format!("`{}` was left out: it is {}", it.path, it.reason))
}

const BINARY: &str = "a file of another format";

/// Returns what bytes are, by the first of them.
fn kind(beginning: &[u8]) -> BodyKind {
    if let Some(format) = format_of("", beginning) {
        return BodyKind::Archive(format);
    }
    let text = match str::from_utf8(beginning) {
        Ok(text) => text,
        // A character may be cut in two.
        Err(error) if error.error_len().is_none() => {
            str::from_utf8(&beginning[..error.valid_up_to()]).unwrap_or_default()
        }
        Err(_) => return BodyKind::Unusable(BINARY),
    };
    let text = text.trim_start_matches('\u{feff}').trim_start();
    let lower = text.get(..14).unwrap_or(text).to_ascii_lowercase();
    match text {
        "" => BodyKind::Unusable("empty"),
        _ if lower.starts_with("<!doctype")
            || lower.starts_with("<html")
            || lower.starts_with("<?xml") =>
        {
            BodyKind::Unusable("a page of HTML")
        }
        _ if text.starts_with(['{', '[']) => BodyKind::Unusable("JSON"),
        _ if text.contains('\0') => BodyKind::Unusable(BINARY),
        _ => BodyKind::Skill,
    }
}

#[cfg(test)]
mod tests {
    use super::{ArchiveFormat, BodyKind, kind};

    #[test]
    fn formats_are_recognized_by_content() {
        assert_eq!(kind(b"PK\x03\x04..."), BodyKind::Archive(ArchiveFormat::Zip));
        assert_eq!(kind(b"\x1f\x8b\x08"), BodyKind::Archive(ArchiveFormat::TarGz));
        assert_eq!(kind(b"---\nname: a\n---\n\xc3"), BodyKind::Skill);
        assert_eq!(kind(b"\n<!DOCTYPE html><html>"), BodyKind::Unusable("a page of HTML"));
        assert_eq!(kind(b""), BodyKind::Unusable("empty"));
        assert_eq!(kind(b"\x7fELF\x00\xff\xfe"), BodyKind::Unusable("a file of another format"));
    }
}
