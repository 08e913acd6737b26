//! A source in memory: skills that came with a program, or that a test made up.

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{Found, Limits, ReadError, Source, Visit, What};
use crate::{
    finding::{Finding, Severity},
    rule,
    skill::{Kind, Resource, Scope},
};

/// Skills in memory: paths such as `create-pr/SKILL.md`, each with its bytes.
#[derive(Debug, Clone)]
pub struct Memory {
    scope: Scope,
    name: PathBuf,
    files: BTreeMap<PathBuf, &'static [u8]>,
}

impl Memory {
    /// Makes a source of files; `name` is what its paths begin with when they are shown.
    pub fn new(
        scope: Scope,
        name: impl Into<PathBuf>,
        files: impl IntoIterator<Item = (&'static str, &'static [u8])>,
    ) -> Self {
        let files = files.into_iter().map(|(path, bytes)| (PathBuf::from(path), bytes)).collect();
        Self { scope, name: name.into(), files }
    }

    /// The files of a folder but for its `SKILL.md`.
    fn beside(&self, folder: &Path, limits: &Limits, findings: &mut Vec<Finding>) -> Vec<Resource> {
        let mut resources = Vec::new();
        for (file, bytes) in &self.files {
            let Ok(inside) = file.strip_prefix(folder) else { continue };
            let inside = inside.to_string_lossy();
            let size = bytes.len() as u64;
            if inside == "SKILL.md" {
                continue;
            }
            if size > limits.max_file_size {
                findings.push(too_large(&self.name.join(file), size, limits));
                continue;
            }
            resources.push(Resource {
                kind: Kind::of(&inside),
                is_text: str::from_utf8(bytes).is_ok(),
                path: inside.into(),
                size,
                modified: None,
            });
        }
        resources
    }

    fn bytes(&self, path: &Path) -> Result<&'static [u8], ReadError> {
        let known = path.strip_prefix(&self.name).ok().and_then(|it| self.files.get(it));
        known.copied().ok_or_else(|| ReadError::Io {
            path: path.to_owned(),
            source: io::ErrorKind::NotFound.into(),
        })
    }
}

impl Source for Memory {
    fn scope(&self) -> Scope {
        self.scope
    }

    fn visit(&self, folder: &Path, limits: &Limits) -> Visit {
        let Some(head) = self.files.get(&folder.join("SKILL.md")) else {
            let inside = self.files.keys().filter_map(|it| it.strip_prefix(folder).ok());
            let names =
                inside.filter(|it| it.components().count() > 1).filter_map(|it| it.iter().next());
            let mut folders: Vec<PathBuf> = names
                .filter(|it| !it.as_encoded_bytes().starts_with(b"."))
                .map(|it| folder.join(it))
                .collect();
            folders.dedup();
            return Visit { what: What::Folders(folders), linked: false, findings: Vec::new() };
        };
        let path: Arc<Path> = self.name.join(folder).join("SKILL.md").into();
        let mut findings = Vec::new();
        let resources = self.beside(folder, limits, &mut findings);
        let found = Found {
            real: path.clone(),
            path,
            linked: false,
            head: head.to_vec(),
            size: head.len() as u64,
            modified: None,
            resources: Some(resources),
        };
        Visit { what: What::Skill(Box::new(found)), linked: false, findings }
    }

    fn resources(&self, path: &Path, limits: &Limits) -> Vec<Resource> {
        let folder = path.strip_prefix(&self.name).ok().and_then(Path::parent);
        folder.map_or_else(Vec::new, |it| self.beside(it, limits, &mut Vec::new()))
    }

    fn read(&self, path: &Path) -> Result<Vec<u8>, ReadError> {
        self.bytes(path).map(<[u8]>::to_vec)
    }

    fn read_beside(&self, path: &Path, resource: &str) -> Result<Vec<u8>, ReadError> {
        self.bytes(&path.with_file_name(resource)).map(<[u8]>::to_vec)
    }
}

/// The finding about a resource over the limit.
pub(super) fn too_large(path: &Path, size: u64, limits: &Limits) -> Finding {
    Finding::about(
        &rule::RESOURCE_TOO_LARGE,
        Severity::Warning,
        path,
        format!(
            "the resource has {size} bytes, more than {}, and is left out",
            limits.max_file_size
        ),
        "make it smaller, or raise `max_file_size`",
    )
}
