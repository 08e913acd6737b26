//! The files of a plugin that become resources of a skill.

use std::{
    fs::File,
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use prowess::SizeLimits;
use prowess_runtime::{
    sandbox::{Links, Root},
    store::Files,
};
use prowess_sandbox::FileType;

use super::{LostItem, MANIFEST, plugin::Plugin, secret::is_private_key};

/// The most files and folders that are visited.
const MOST: usize = 1000;
/// The greatest depth.
const DEEPEST: usize = 8;
/// Folders of generated files, which no skill needs.
const MADE: &[&str] = &["node_modules", "__pycache__", "venv", "target"];

/// Reads the files of a plugin into this much room, the programs that its host started first. No
/// link is followed.
pub(super) fn carry_files(
    root: &Root,
    plugin: &Plugin,
    limits: &SizeLimits,
    room: u64,
) -> (Files, Vec<LostItem>) {
    let Walk { found, mut lost, .. } = Walk::new(root, plugin);
    let files = read_files(root, found, limits, room, &mut lost);
    (files, lost)
}

/// Reads the files of these paths into this much room.
pub(super) fn read_files(
    root: &Root,
    found: Vec<String>,
    limits: &SizeLimits,
    room: u64,
    lost: &mut Vec<LostItem>,
) -> Files {
    let mut files = Files::new();
    let mut left = room;
    for path in found {
        let most = limits.max_file_size.min(left);
        let bytes = root.file(Path::new(&path), Links::Never).map(|file| read(file, most));
        let why = match bytes {
            Ok(Ok(Some(bytes))) if is_private_key(&bytes) => "it has a private key".to_owned(),
            Ok(Ok(Some(bytes))) => {
                left -= bytes.len() as u64;
                files.insert(path, bytes);
                continue;
            }
            Ok(Ok(None)) if most < limits.max_file_size => {
                "all files together are larger than a skill may be".to_owned()
            }
            Ok(Ok(None)) => format!("it is larger than {most} bytes"),
            Ok(Err(error)) => format!("it cannot be read: {error}"),
            Err(error) => format!("it cannot be read: {error}"),
        };
        lost.push(LostItem::new(format!("`{path}`"), why));
    }
    files
}

/// Reads a whole file; `None` if it is larger than `most` bytes.
pub(super) fn read(file: File, most: u64) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= most).then_some(bytes))
}

/// A search for the regular files of a plugin.
#[derive(Default)]
pub(super) struct Walk {
    found: Vec<String>,
    lost: Vec<LostItem>,
    seen: usize,
}

impl Walk {
    fn new(root: &Root, plugin: &Plugin) -> Self {
        let mut walk = Self::default();
        walk.found.extend(plugin.programs().filter(|it| is_program(root, it)).map(str::to_owned));
        walk.visit(root, Path::new(""), 0);
        if walk.seen > MOST {
            walk.lose("the rest of its files", &format!("there are more than {MOST}"));
        }
        walk
    }

    /// Lists the files of a folder that is not a plugin.
    pub(super) fn of_folder(root: &Root) -> (Vec<String>, Vec<LostItem>) {
        let mut walk = Self::default();
        walk.visit(root, Path::new(""), 0);
        if walk.seen > MOST {
            walk.lose("the rest of its files", &format!("there are more than {MOST}"));
        }
        (walk.found, walk.lost)
    }

    fn visit(&mut self, root: &Root, folder: &Path, depth: usize) {
        let listed = match root.list(folder, Links::Never) {
            Ok(listed) => listed,
            Err(error) => {
                let why = format!("it cannot be read: {error}");
                return self.lose(format_args!("`{}`", folder.display()), &why);
            }
        };
        let mut below: Vec<PathBuf> = Vec::new();
        for entry in listed.iter().filter(|it| depth > 0 || it.name != MANIFEST) {
            self.seen += 1;
            if self.seen > MOST {
                return;
            }
            let path = folder.join(&entry.name);
            match (why_left_out(&path, entry.kind, depth), path.to_str()) {
                (None, Some(text)) if entry.kind == FileType::RegularFile => {
                    if !self.found.iter().any(|it| it == text) {
                        self.found.push(text.to_owned());
                    }
                }
                (None, _) => below.push(path),
                (Some(why), _) => self.lose(format_args!("`{}`", path.display()), why),
            }
        }
        for folder in below {
            self.visit(root, &folder, depth + 1);
        }
    }

    fn lose(&mut self, what: impl std::fmt::Display, why: &str) {
        self.lost.push(LostItem::new(what.to_string(), why));
    }
}

/// Returns whether a path is a file that is carried over.
fn is_program(root: &Root, path: &str) -> bool {
    let mut parts = PathBuf::new();
    let is_carried = path.split('/').all(|part| {
        parts.push(part);
        !part.is_empty() && why_left_out(&parts, FileType::RegularFile, 0).is_none()
    });
    path != MANIFEST && is_carried && root.file(&parts, Links::Never).is_ok()
}

/// Returns the reason a file or folder is left out.
fn why_left_out(path: &Path, kind: FileType, depth: usize) -> Option<&'static str> {
    let name = path.file_name()?.to_string_lossy().to_lowercase();
    let is_folder = kind == FileType::Directory;
    let path = path.to_str().filter(|it| it.len() <= 1024 && !it.contains(['\\', ':']));
    if name.starts_with('.') {
        Some("it is hidden")
    } else if !is_folder && kind != FileType::RegularFile {
        Some("it is a link or a special file")
    } else if path.is_none_or(|it| it.contains(char::is_control)) {
        Some("its name is too long, is not UTF-8, or has `\\`, `:` or control characters")
    } else if name.ends_with(".env") {
        Some("it may contain secrets; the skill says which settings there are")
    } else if !is_folder && is_secret(&name) {
        Some("it may contain secrets")
    } else if name == "skill.md" {
        Some("only a skill's own text may have this name")
    } else if is_folder && MADE.contains(&&*name) {
        Some("it is generated")
    } else if is_folder && depth + 1 == DEEPEST {
        Some("it is nested too deeply")
    } else {
        None
    }
}

/// Returns whether a file of this name, in lower case, usually contains a key or password.
fn is_secret(name: &str) -> bool {
    let (stem, ending) = name.rsplit_once('.').unwrap_or((name, ""));
    let is_key = matches!(stem, "id_rsa" | "id_ed25519" | "id_ecdsa" | "id_dsa") && ending != "pub";
    is_key
        || matches!(ending, "key" | "pem" | "p12" | "pfx")
        || stem == "secrets"
        || (ending == "json"
            && ["credentials", "service-account"].iter().any(|it| stem.starts_with(it)))
        || (ending == "txt" && stem.starts_with("token"))
}
