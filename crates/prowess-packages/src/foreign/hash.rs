//! The hashes that other package managers take of a folder.

use std::{
    fs::{self, File, Metadata},
    io::{self, Read},
    path::{Path, PathBuf},
};

use serde_json::Value;
use sha1::Sha1;
use sha2::{Digest, Sha256};

use super::{
    ForeignHash, HashCheck,
    order::{is_known, path_key},
    sys::is_executable,
};

/// The most files of a folder.
const MAX_FILES: usize = 50_000;
/// The most bytes of a folder.
const MAX_BYTES: u64 = 1 << 30;
/// The most folders above a file.
const MAX_DEPTH: usize = 32;
/// The most bytes of a file that is read as a whole.
const MAX_WHOLE: u64 = 64 << 20;

/// A folder cannot be hashed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HashError {
    /// A file or folder cannot be read.
    #[error("cannot read `{}`", path.display())]
    Read {
        /// The path.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A limit is exceeded.
    #[error("the folder has more than {limit}")]
    TooLarge {
        /// The limit, such as `50000 files`.
        limit: String,
    },
    /// The scheme sorts names by a language that is not known.
    #[error("the order of `{path}` among other names depends on the language of the machine")]
    Order {
        /// The path.
        path: String,
    },
    /// A name is not Unicode.
    #[error("the name of `{}` is not Unicode", path.display())]
    Name {
        /// The path.
        path: PathBuf,
    },
}

/// A file or link of a folder.
struct FolderFile {
    /// The path below the folder, with `/`.
    path: String,
    at: PathBuf,
    metadata: Metadata,
}

/// Compares a folder with a hash.
pub(super) fn verify(hash: &ForeignHash, folder: &Path) -> HashCheck {
    let result = match hash {
        ForeignHash::None(reason) => return HashCheck::NotChecked((*reason).to_owned()),
        ForeignHash::Computed(said) => computed(folder).map(|it| it == said.to_lowercase()),
        ForeignHash::GitTree(said) => match git_tree(folder) {
            Ok(tree) if tree == said.to_lowercase() => Ok(true),
            Ok(_) => return git_tree_differs(folder),
            Err(error) => Err(error),
        },
        ForeignHash::ClawHub(said) => {
            let ignores = [".gitignore", ".clawhubignore", ".clawdhubignore"];
            match claw_hub(folder, false) {
                Ok(hash) if hash == said.to_lowercase() => Ok(true),
                Ok(_) if ignores.iter().any(|it| folder.join(it).exists()) => {
                    return HashCheck::NotChecked(
                        "clawhub leaves out what its ignore files name".to_owned(),
                    );
                }
                result => result.map(|_| false),
            }
        }
        ForeignHash::ClawHubContent(said) => {
            claw_hub(folder, true).map(|it| it == said.to_lowercase())
        }
        ForeignHash::ApmPackage(said) => apm_package(folder).map(|it| it == said.to_lowercase()),
        ForeignHash::ApmFiles(files) => apm_files(folder, files),
        ForeignHash::SkillPort(said) => skillport(folder).map(|it| it == said.to_lowercase()),
        ForeignHash::WellKnown(said) => match well_known(folder, said) {
            Ok(true) => Ok(true),
            Ok(false) => {
                return HashCheck::NotChecked(
                    "the digest may be of the archive that it was unpacked from".to_owned(),
                );
            }
            Err(error) => Err(error),
        },
    };
    match result {
        Ok(true) => HashCheck::Matches,
        Ok(false) => HashCheck::Differs,
        Err(error) => HashCheck::NotChecked(match std::error::Error::source(&error) {
            Some(cause) => format!("{error}: {cause}"),
            None => error.to_string(),
        }),
    }
}

/// Returns `computedHash` of `npx skills`.
pub(super) fn computed(folder: &Path) -> Result<String, HashError> {
    let mut files =
        walk(folder, &|name, is_folder| is_folder && matches!(name, ".git" | "node_modules"))?;
    files.retain(|it| it.metadata.is_file());
    sort_by_locale(&mut files)?;
    let mut hasher = Sha256::new();
    for file in &files {
        hasher.update(&file.path);
        file.feed(&mut |bytes| hasher.update(bytes))?;
    }
    Ok(hex(&hasher.finalize()))
}

/// Returns the fingerprint of `clawhub`, or its hash of a folder on GitHub.
fn claw_hub(folder: &Path, is_content: bool) -> Result<String, HashError> {
    let mut files = walk(folder, &|name, is_folder| {
        name.starts_with('.') || is_folder && name == "node_modules"
    })?;
    files.retain(|it| it.metadata.is_file());
    sort_by_locale(&mut files)?;
    let mut lines = Vec::with_capacity(files.len());
    for file in &files {
        let (digest, size) = file.sha256()?;
        lines.push(match is_content {
            true => format!("{}\0{size}\0{digest}", file.path),
            false => format!("{}:{digest}", file.path),
        });
    }
    Ok(hex(&Sha256::digest(lines.join("\n"))))
}

/// Returns the hash that `apm` takes of a package.
pub(super) fn apm_package(folder: &Path) -> Result<String, HashError> {
    let mut files =
        walk(folder, &|name, is_folder| is_folder && matches!(name, ".git" | "__pycache__"))?;
    files.retain(|it| it.metadata.is_file() && it.path != ".apm-pin");
    let mut hasher = Sha256::new();
    for file in &files {
        hasher.update(&file.path);
        file.feed(&mut |bytes| hasher.update(bytes))?;
    }
    Ok(format!("sha256:{}", hex(&hasher.finalize())))
}

/// Returns the hash that `apm` takes of a file: its line ends do not count if it is a text.
fn apm_file(bytes: &[u8]) -> String {
    let is_text = !bytes.contains(&0) && std::str::from_utf8(bytes).is_ok();
    let digest = match std::str::from_utf8(bytes) {
        Ok(text) if is_text && text.contains("\r\n") => Sha256::digest(text.replace("\r\n", "\n")),
        _ => Sha256::digest(bytes),
    };
    format!("sha256:{}", hex(&digest))
}

/// Compares the installed files with their hashes; one that is not recorded is a difference.
fn apm_files(
    folder: &Path,
    hashes: &std::collections::BTreeMap<String, String>,
) -> Result<bool, HashError> {
    let mut files =
        walk(folder, &|name, is_folder| is_folder && matches!(name, ".git" | "__pycache__"))?;
    files.retain(|it| it.metadata.is_file());
    if files.len() != hashes.len() {
        return Ok(false);
    }
    for file in &files {
        let Some(said) = hashes.get(&file.path) else { return Ok(false) };
        if apm_file(&file.whole()?) != said.to_lowercase() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Returns the hash that `skillport` takes of a skill.
fn skillport(folder: &Path) -> Result<String, HashError> {
    let mut files = walk(folder, &|name, _| name.starts_with('.'))?;
    files.retain(|it| it.metadata.is_file());
    let mut hasher = Sha256::new();
    for file in &files {
        hasher.update(&file.path);
        hasher.update([0]);
        hasher.update(hex(&file.blob()?));
        hasher.update([0]);
    }
    Ok(format!("sha256:{}", hex(&hasher.finalize())))
}

/// Whether a folder has the digest of an entry: version 0.1.0 is of files, later ones of an archive
/// or of the `SKILL.md` that is the whole skill.
fn well_known(folder: &Path, said: &str) -> Result<bool, HashError> {
    let mut files = walk(folder, &|name, is_folder| is_folder && name == ".git")?;
    files.retain(|it| it.metadata.is_file());
    if let [file] = &files[..]
        && file.path == "SKILL.md"
        && format!("sha256:{}", file.sha256()?.0) == said.to_lowercase()
    {
        return Ok(true);
    }
    let mut hasher = Sha256::new();
    for file in &files {
        hasher.update(&file.path);
        hasher.update([0]);
        file.feed(&mut |bytes| hasher.update(bytes))?;
        hasher.update([0]);
    }
    Ok(format!("sha256:{}", hex(&hasher.finalize())) == said.to_lowercase())
}

/// Returns the SHA-1 of the tree that git would make of a folder.
fn git_tree(folder: &Path) -> Result<String, HashError> {
    let files = walk(folder, &|name, is_folder| is_folder && name == ".git")?;
    let entries: Vec<(&str, &FolderFile)> = files.iter().map(|it| (&*it.path, it)).collect();
    tree(&entries).map(|it| hex(&it))
}

/// Returns the tree of the entries of one folder, whose paths are in byte order.
fn tree(entries: &[(&str, &FolderFile)]) -> Result<[u8; 20], HashError> {
    // Git sorts a folder as if its name ended with a slash.
    let mut lines: Vec<(String, Vec<u8>)> = Vec::new();
    let mut rest = entries;
    while let Some((path, entry)) = rest.first() {
        let Some((name, _)) = path.split_once('/') else {
            let mode = if entry.metadata.is_symlink() {
                "120000"
            } else if is_executable(&entry.metadata) == Some(true) {
                "100755"
            } else {
                "100644"
            };
            lines.push((
                (*path).to_owned(),
                [format!("{mode} {path}\0").as_bytes(), &entry.blob()?].concat(),
            ));
            rest = &rest[1..];
            continue;
        };
        let prefix = format!("{name}/");
        let count = rest.iter().take_while(|it| it.0.starts_with(&prefix)).count();
        let below: Vec<(&str, &FolderFile)> =
            rest[..count].iter().map(|it| (&it.0[prefix.len()..], it.1)).collect();
        let line = [format!("40000 {name}\0").as_bytes(), &tree(&below)?].concat();
        lines.push((prefix, line));
        rest = &rest[count..];
    }
    lines.sort();
    let body: Vec<u8> = lines.into_iter().flat_map(|it| it.1).collect();
    let mut hasher = Sha1::new();
    hasher.update(format!("tree {}\0", body.len()));
    hasher.update(&body);
    Ok(hasher.finalize().into())
}

/// Returns why a folder may differ from a tree without having been edited.
fn git_tree_differs(folder: &Path) -> HashCheck {
    let file = folder.join("SKILL.md");
    let text = fs::symlink_metadata(&file)
        .ok()
        .filter(|it| it.is_file() && it.len() <= MAX_WHOLE)
        .and_then(|_| fs::read(&file).ok());
    let json = text.and_then(|it| prowess::frontmatter_json(&it).ok());
    let metadata = json.as_ref().and_then(|it| it.get("metadata")).and_then(Value::as_object);
    if metadata.is_some_and(|it| it.contains_key("github-tree-sha")) {
        return HashCheck::NotChecked("gh skill has rewritten its `SKILL.md`".to_owned());
    }
    match cfg!(unix) {
        true => HashCheck::Differs,
        false => HashCheck::NotChecked(
            "this system does not know which files can be executed".to_owned(),
        ),
    }
}

/// Returns the files and links of a folder, in the byte order of their paths.
fn walk(folder: &Path, skips: &dyn Fn(&str, bool) -> bool) -> Result<Vec<FolderFile>, HashError> {
    let mut entries = Vec::new();
    let mut bytes = 0_u64;
    let mut folders = vec![(folder.to_owned(), String::new(), 0)];
    while let Some((at, prefix, depth)) = folders.pop() {
        if depth > MAX_DEPTH {
            return Err(HashError::TooLarge { limit: format!("{MAX_DEPTH} levels") });
        }
        let failed = |source| HashError::Read { path: at.clone(), source };
        for entry in fs::read_dir(&at).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let at = entry.path();
            let name = entry.file_name();
            let Some(name) = name.to_str() else { return Err(HashError::Name { path: at }) };
            let metadata = fs::symlink_metadata(&at)
                .map_err(|source| HashError::Read { path: at.clone(), source })?;
            if skips(name, metadata.is_dir()) {
                continue;
            }
            let path = format!("{prefix}{name}");
            if metadata.is_dir() {
                folders.push((at, path + "/", depth + 1));
            } else if metadata.is_file() || metadata.is_symlink() {
                bytes = bytes.saturating_add(metadata.len());
                entries.push(FolderFile { path, at, metadata });
            }
            if entries.len() + folders.len() > MAX_FILES {
                return Err(HashError::TooLarge { limit: format!("{MAX_FILES} files") });
            }
            if bytes > MAX_BYTES {
                return Err(HashError::TooLarge { limit: format!("{} GiB", MAX_BYTES >> 30) });
            }
        }
    }
    entries.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(entries)
}

fn sort_by_locale(files: &mut [FolderFile]) -> Result<(), HashError> {
    // One file alone has no order.
    if let Some(file) = files.iter().find(|it| !is_known(&it.path)).filter(|_| files.len() > 1) {
        return Err(HashError::Order { path: file.path.clone() });
    }
    files.sort_by_cached_key(|it| path_key(&it.path));
    Ok(())
}

impl FolderFile {
    /// Passes on the bytes of a file, as many as it had when it was found.
    fn feed(&self, take: &mut dyn FnMut(&[u8])) -> Result<u64, HashError> {
        let failed = |source| HashError::Read { path: self.at.clone(), source };
        let mut file =
            File::open(&self.at).map_err(failed)?.take(self.metadata.len().saturating_add(1));
        let mut buffer = vec![0; 64 * 1024];
        let mut size = 0;
        loop {
            match file.read(&mut buffer) {
                Ok(0) => return Ok(size),
                Ok(count) => {
                    take(&buffer[..count]);
                    size += count as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(failed(error)),
            }
        }
    }

    fn sha256(&self) -> Result<(String, u64), HashError> {
        let mut hasher = Sha256::new();
        let size = self.feed(&mut |bytes| hasher.update(bytes))?;
        Ok((hex(&hasher.finalize()), size))
    }

    /// Returns the SHA-1 of the blob that git would make of it.
    fn blob(&self) -> Result<[u8; 20], HashError> {
        let mut hasher = Sha1::new();
        if self.metadata.is_symlink() {
            let target = fs::read_link(&self.at)
                .map_err(|source| HashError::Read { path: self.at.clone(), source })?;
            let Some(target) = target.to_str() else {
                return Err(HashError::Name { path: self.at.clone() });
            };
            hasher.update(format!("blob {}\0{target}", target.len()));
        } else {
            hasher.update(format!("blob {}\0", self.metadata.len()));
            self.feed(&mut |bytes| hasher.update(bytes))?;
        }
        Ok(hasher.finalize().into())
    }

    fn whole(&self) -> Result<Vec<u8>, HashError> {
        if self.metadata.len() > MAX_WHOLE {
            return Err(HashError::TooLarge {
                limit: format!("{} MiB in one file", MAX_WHOLE >> 20),
            });
        }
        let mut bytes = Vec::new();
        self.feed(&mut |it| bytes.extend_from_slice(it))?;
        Ok(bytes)
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|it| format!("{it:02x}")).collect()
}
