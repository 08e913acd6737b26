//! Files that configure agents and tools which act automatically: no agent may write them.

use std::{
    ffi::{OsStr, OsString},
    fs, path,
    path::{Component, Path, PathBuf},
};

use prowess::{CLIENTS, Client};
use unicode_general_category::{GeneralCategory, get_general_category};

use crate::{glob::fits, sys::slashed};

/// Files and directories of that kind, wherever they are: of Prowess, of git, of programs that run
/// what is in a project, of a home, and of agents that are not in [`CLIENTS`]: those of clients are
/// [`Client::protected_files`]. In lower case; in the last name, `*` matches anything.
const PROTECTED: &[&str] = &[
    "prowess.toml",
    ".prowess",
    ".git/config",
    ".git/hooks",
    "commondir",
    "config.worktree",
    ".aider*",
    ".amazonq",
    ".cargo/config",
    ".cargo/config.toml",
    ".circleci",
    ".devcontainer",
    ".devcontainer.json",
    ".dir-locals.el",
    ".dir-locals-2.el",
    ".envrc",
    ".exrc",
    ".github/workflows",
    ".gitlab-ci.yml",
    ".husky",
    ".idea/externaldependencies.xml",
    ".idea/runconfigurations",
    ".idea/startup.xml",
    ".idea/tools",
    ".idea/watchertasks.xml",
    ".idea/workspace.xml",
    ".lefthook*",
    "lefthook.json",
    "lefthook.toml",
    "lefthook.yaml",
    "lefthook.yml",
    "lefthook-local.*",
    ".mise",
    ".mise.toml",
    ".mise.*.toml",
    ".config/mise",
    ".config/mise.toml",
    "mise.toml",
    "mise.*.toml",
    ".nvim.lua",
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

/// Whether a path is a protected file or folder, or is inside one; upper and lower case are the same.
pub fn is_protected(path: &Path) -> bool {
    path.ancestors().any(|it| protected_in(it).is_some())
}

/// Returns a name or path as a file system compares it that ignores case, like that of macOS: `ſ` is
/// an `s` to it, `ß` is `ss`, and characters that cannot be seen do not count.
pub(crate) fn fold(name: &OsStr) -> String {
    let text = slashed(Path::new(name));
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    let seen = text.chars().filter(|it| get_general_category(*it) != GeneralCategory::Format);
    seen.flat_map(char::to_uppercase).flat_map(char::to_lowercase).collect()
}

/// Whether a name is another to a file system that ignores case.
pub(crate) fn is_named(name: &OsStr, other: &str) -> bool {
    name.eq_ignore_ascii_case(other) || fold(name) == other.to_ascii_lowercase()
}

/// Returns the directory in which a path is protected by its name.
pub(crate) fn protected_in(path: &Path) -> Option<&Path> {
    let file = fold(path.file_name()?);
    let of_clients = CLIENTS.iter().flat_map(Client::protected_files);
    PROTECTED.iter().copied().chain(of_clients).find_map(|own| {
        let mut names = own.rsplit('/');
        names.next().filter(|name| is_called(&file, name))?;
        let mut place = path.parent()?;
        for name in names {
            place.file_name().filter(|it| is_named(it, name))?;
            place = place.parent()?;
        }
        Some(place)
    })
}

/// Whether a file has a name, which may contain `*`.
fn is_called(file: &str, name: &str) -> bool {
    if name.contains('*') { fits(name, file) } else { file == name }
}

/// The resolution of a path that a host has named.
#[derive(Debug)]
pub(crate) struct ResolvedPath {
    /// The target, existing or not, with links resolved.
    pub(crate) end: PathBuf,
    /// The links in the path: replacing one changes the target.
    pub(crate) links: Vec<PathBuf>,
}

/// The maximum number of links that the kernel follows.
const MAX_LINKS: usize = 40;

impl ResolvedPath {
    /// Resolves a path.
    pub(crate) fn of(path: &Path) -> Self {
        let path = path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let mut end: PathBuf = path.components().take_while(is_root).collect();
        let mut links = Vec::new();
        let mut rest = reversed_names(&path);
        while let Some(name) = rest.pop() {
            if name == ".." {
                end.pop();
                continue;
            }
            end.push(name);
            let Ok(target) = fs::read_link(&end) else { continue };
            if links.len() == MAX_LINKS {
                break;
            }
            links.push(end.clone());
            end.pop();
            if target.is_absolute() {
                end = target.components().take_while(is_root).collect();
            }
            rest.extend(reversed_names(&target));
        }
        Self { end, links }
    }
}

/// Whether a part of a path belongs to its root: `/`, or on Windows also a drive.
fn is_root(part: &Component<'_>) -> bool {
    matches!(part, Component::Prefix(_) | Component::RootDir)
}

/// Returns the names in a path and each `..`, the last first.
fn reversed_names(path: &Path) -> Vec<OsString> {
    path.components()
        .rev()
        .filter(|it| matches!(it, Component::Normal(_) | Component::ParentDir))
        .map(|it| it.as_os_str().to_owned())
        .collect()
}

/// Whether a path equals another or is inside of it, ignoring case.
pub(crate) fn is_within(path: &Path, other: &Path) -> bool {
    let mut names = path.iter();
    other.iter().all(|name| {
        names.next().is_some_and(|it| it.eq_ignore_ascii_case(name) || fold(it) == fold(name))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_act_on_is_protected_and_ordinary_files_are_not() {
        assert!(PROTECTED.iter().all(|it| *it == it.to_ascii_lowercase()));
        for path in [
            ".devcontainer.json",
            "sub/.idea/workspace.xml",
            ".idea/runConfigurations/Run.xml",
            ".exrc",
            ".nvim.lua",
            ".dir-locals.el",
            "lefthook.yml",
            ".lefthook.toml",
            ".lefthook/pre-commit/x.sh",
            "lefthook-local.yml",
            "mise.toml",
            "mise.local.toml",
            ".mise.toml",
            ".junie/guidelines.md",
            ".augment/rules/x.md",
            ".trae/rules.md",
            ".husky/pre-commit",
            "lib/site-packages/x.pth",
            ".aider.conf.yml",
            ".mcp.json",
            "sub/.Claude/settings.json",
            ".\u{212a}ube/config",
            ".ßh/config",
            "opencode.json",
        ] {
            assert!(is_protected(Path::new(path)), "{path}");
        }
        for path in [
            ".idea/misc.xml",
            "workspace.xml",
            "lefthook.md",
            "mise.md",
            "promise.toml",
            "docs/lefthook/x.yml",
            "x.pth",
            "Cargo.toml",
            "trae/x",
        ] {
            assert!(!is_protected(Path::new(path)), "{path}");
        }
    }
}
