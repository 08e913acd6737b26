//! A source in memory: skills that came with a program, or that were created at run time.

use std::{
    borrow::Cow,
    collections::BTreeMap,
    ffi::OsStr,
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    DiscoveredSkill, Listing, ReadError, SizeLimits, Source, Visit, VisitResult,
    trouble::{Role, Trouble, finding},
};
use crate::{
    finding::Finding,
    read::source::{Resource, ResourceKind, Scope},
    spec::SKILL_FILE,
};

/// Skills in memory: paths such as `create-pr/SKILL.md`, each with its bytes.
#[derive(Debug, Clone)]
pub struct Memory {
    scope: Scope,
    name: PathBuf,
    files: BTreeMap<String, Cow<'static, [u8]>>,
}

impl Memory {
    /// Creates a source of files; `name` is the prefix of its paths when they are displayed.
    pub fn new<P: Into<String>, B: Into<Cow<'static, [u8]>>>(
        scope: Scope,
        name: impl Into<PathBuf>,
        files: impl IntoIterator<Item = (P, B)>,
    ) -> Self {
        let files = files.into_iter().map(|(path, bytes)| (path.into(), bytes.into())).collect();
        Self { scope, name: name.into(), files }
    }

    /// Returns the files of a folder, by their paths within it.
    fn files_in(&self, folder: &Path) -> impl Iterator<Item = (&str, &[u8])> {
        let parts = folder.iter().map(|it| it.to_string_lossy() + "/");
        let prefix: String = parts.collect();
        let files = self.files.range(prefix.clone()..);
        files.map_while(move |(path, bytes)| Some((path.strip_prefix(&prefix)?, &**bytes)))
    }

    fn bytes(&self, path: &Path) -> Result<&[u8], ReadError> {
        let known = path.strip_prefix(&self.name).ok();
        let parts = known.and_then(|it| it.iter().map(OsStr::to_str).collect::<Option<Vec<_>>>());
        let bytes = parts.and_then(|it| self.files.get(&it.join("/"))).map(|it| &**it);
        bytes.ok_or_else(|| ReadError::Io {
            path: path.to_owned(),
            source: io::ErrorKind::NotFound.into(),
        })
    }
}

impl Source for Memory {
    fn scope(&self) -> Scope {
        self.scope
    }

    fn visit(&self, folder: &Path, limits: &SizeLimits, listing: Listing) -> Visit {
        let Some((_, head)) = self.files_in(folder).find(|it| it.0 == SKILL_FILE) else {
            let names =
                self.files_in(folder).filter_map(|(path, _)| path.split_once('/')).map(|it| it.0);
            let mut folders: Vec<PathBuf> =
                names.filter(|it| !it.starts_with('.')).map(|it| folder.join(it)).collect();
            folders.dedup();
            return Visit {
                what: VisitResult::Folders(folders),
                linked: false,
                findings: Vec::new(),
            };
        };
        let path: Arc<Path> = self.name.join(folder).join(SKILL_FILE).into();
        let (resources, findings) = match listing {
            Listing::AtOnce => {
                let (resources, findings) = self.resources(&path, limits);
                (Some(resources), findings)
            }
            Listing::OnDemand => (None, Vec::new()),
        };
        let size = head.len() as u64;
        let head = head.to_vec();
        let omitted = match listing {
            Listing::AtOnce => self
                .files_in(folder)
                .filter(|it| it.0 != SKILL_FILE)
                .map(|it| it.1.len() as u64)
                .filter(|it| *it > limits.max_file_size)
                .sum(),
            Listing::OnDemand => 0,
        };
        let (real, linked, modified) = (None, false, None);
        let found =
            DiscoveredSkill { path, real, linked, head, size, modified, resources, omitted };
        Visit { what: VisitResult::Skill(Box::new(found)), linked: false, findings }
    }

    fn resources(&self, path: &Path, limits: &SizeLimits) -> (Vec<Resource>, Vec<Finding>) {
        let mut resources = Vec::new();
        let mut findings = Vec::new();
        let folder = path.strip_prefix(&self.name).ok().and_then(Path::parent);
        for (inside, bytes) in folder.into_iter().flat_map(|it| self.files_in(it)) {
            let (size, limit) = (bytes.len() as u64, limits.max_file_size);
            if inside == SKILL_FILE {
                continue;
            }
            if size > limit {
                let trouble = Trouble::TooLarge { size, limit };
                findings.extend(finding(&path.with_file_name(inside), Role::Resource, trouble));
                continue;
            }
            let is_text = str::from_utf8(bytes).is_ok();
            resources.push(Resource {
                kind: ResourceKind::of(inside),
                is_text,
                path: inside.into(),
                size,
                modified: None,
            });
        }
        (resources, findings)
    }

    fn read(&self, path: &Path) -> Result<Vec<u8>, ReadError> {
        self.bytes(path).map(<[u8]>::to_vec)
    }

    fn read_beside(&self, path: &Path, resource: &str) -> Result<Vec<u8>, ReadError> {
        self.bytes(&path.with_file_name(resource)).map(<[u8]>::to_vec)
    }
}
