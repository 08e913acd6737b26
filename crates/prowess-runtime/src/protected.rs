//! What says how agents and tools behave that act without being asked: nothing an agent does writes it.

use std::{
    ffi::{OsStr, OsString},
    fs, path,
    path::{Component, Path, PathBuf},
};

use crate::policy::fits;

/// Files and directories of that kind, wherever they lie: of ours, of git, of other clients, of
/// programs that run what a project holds, and of a home. In a name, `*` stands for anything.
pub(crate) const PROTECTED: &[&str] = &[
    "prowess.toml",
    ".prowess",
    ".mcp.json",
    ".git/config",
    ".git/hooks",
    "commondir",
    "config.worktree",
    ".aider*",
    ".amazonq",
    ".claude",
    ".claude.json",
    ".cline",
    ".clinerules",
    ".codex",
    ".continue",
    ".cursor",
    ".gemini",
    ".kiro",
    ".opencode",
    "opencode.json",
    ".roo",
    ".vscode",
    ".windsurf",
    ".zed",
    ".cargo/config",
    ".cargo/config.toml",
    ".circleci",
    ".devcontainer",
    ".envrc",
    ".github/workflows",
    ".gitlab-ci.yml",
    ".husky",
    ".mise.toml",
    ".pre-commit-config.yaml",
    "site-packages/*.pth",
    ".bash_aliases",
    ".bash_login",
    ".bash_logout",
    ".bash_profile",
    ".bashrc",
    ".config/autostart",
    ".config/environment.d",
    ".config/fish",
    ".config/systemd",
    ".local/bin",
    ".pam_environment",
    ".profile",
    ".zlogin",
    ".zlogout",
    ".zprofile",
    ".zshenv",
    ".zshrc",
    ".aws",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".config/git",
    ".docker",
    ".gitconfig",
    ".gnupg",
    ".kube",
    ".my.cnf",
    ".netrc",
    ".npmrc",
    ".pgpass",
    ".pypirc",
    ".ssh",
];

/// Whether a path is one of them or lies in one, in any case a file system may ignore.
pub(crate) fn is_protected(path: &Path) -> bool {
    path.ancestors().any(|it| place(it).is_some())
}

/// The directory in which a path is one of them.
pub(crate) fn place(path: &Path) -> Option<&Path> {
    PROTECTED.iter().find_map(|own| {
        let mut place = path;
        for name in own.rsplit('/') {
            place.file_name().filter(|it| is_called(it, name))?;
            place = place.parent()?;
        }
        Some(place)
    })
}

/// Whether a file has a name, in any case; one with `*` may stand for many.
fn is_called(file: &OsStr, name: &str) -> bool {
    match name.contains('*') {
        true => fits(name, &file.to_string_lossy().to_ascii_lowercase()),
        false => file.eq_ignore_ascii_case(name),
    }
}

/// Where a path leads that a host has named.
#[derive(Debug)]
pub(crate) struct Way {
    /// What it leads to, there or not, without links.
    pub(crate) end: PathBuf,
    /// The links on the way: whoever replaces one leads it elsewhere.
    pub(crate) links: Vec<PathBuf>,
}

/// As many links as the kernel would follow.
const MAX_LINKS: usize = 40;

impl Way {
    /// Follows a path.
    pub(crate) fn of(path: &Path) -> Self {
        let path = path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let names = |path: &Path| -> Vec<OsString> {
            let is_name =
                |it: &Component<'_>| matches!(it, Component::Normal(_) | Component::ParentDir);
            let names = path.components().rev().filter(is_name);
            names.map(|it| it.as_os_str().to_owned()).collect()
        };
        let mut way = Self { end: PathBuf::from("/"), links: Vec::new() };
        let mut rest = names(&path);
        while let Some(name) = rest.pop() {
            if name == ".." {
                way.end.pop();
                continue;
            }
            way.end.push(name);
            let Ok(target) = fs::read_link(&way.end) else { continue };
            if way.links.len() == MAX_LINKS {
                break;
            }
            way.links.push(way.end.clone());
            way.end.pop();
            if target.is_absolute() {
                way.end = PathBuf::from("/");
            }
            rest.extend(names(&target));
        }
        way
    }
}

/// Whether a path is another or lies in it, in any case a file system may ignore.
pub(crate) fn lies_in(path: &Path, own: &Path) -> bool {
    let mut names = path.iter();
    own.iter().all(|own| names.next().is_some_and(|it| it.eq_ignore_ascii_case(own)))
}
