//! Resolves shims of version managers, which start one of several installed versions.

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::interpreter::is_executable;

/// The resolution of a program on `PATH`.
pub(super) enum Shim {
    /// It is not a shim.
    None,
    /// A shim of this version manager for this program.
    For(&'static str, PathBuf),
    /// A shim whose target is unknown, or not installed.
    Unknown,
}

/// The managers' names for a program, and the version files of a project.
const TOOLS: &[(&str, &[&str], &[&str])] = &[
    ("python", &["python"], &[".python-version"]),
    ("node", &["node", "nodejs"], &[".node-version", ".nvmrc"]),
    ("ruby", &["ruby"], &[".ruby-version"]),
];

/// All version files of a project.
#[rustfmt::skip]
pub(super) const FILES: &[&str] = &[
    ".python-version", ".node-version", ".nvmrc", ".ruby-version", ".tool-versions", "mise.toml", ".mise.toml", "config.toml",
];

/// The maximum size of a version file.
const LARGEST: u64 = 64 * 1024;

/// Resolves a shim: it is in a folder `shims`, next to the installed versions.
pub(super) fn behind_shim(path: &Path, directories: &[PathBuf], home: Option<&Path>) -> Shim {
    let Some(root) = path.parent().filter(|it| it.ends_with("shims")).and_then(Path::parent) else {
        return Shim::None;
    };
    let Some(name) = path.file_name().and_then(|it| it.to_str()) else { return Shim::Unknown };
    let Some((_, tools, files)) = TOOLS.iter().find(|it| name.starts_with(it.0)) else {
        return Shim::Unknown;
    };
    let installs = root.join("installs");
    let found = if installs.is_dir() {
        let manager = if root.ends_with("mise") { "mise" } else { "asdf" };
        let found = tools.iter().find_map(|tool| {
            let wanted = wanted_tool(tool, files, directories, home);
            program_in(&pick_version(&installs.join(tool), &wanted)?, name)
        });
        found.map(|it| (manager, it))
    } else {
        let wanted = read_nearest(files, directories).or_else(|| read(&root.join("version")));
        let wanted = wanted.iter().flat_map(|it| it.lines());
        let mut found =
            wanted.filter_map(|it| pick_version(&root.join("versions"), &[it.trim().to_owned()]));
        found.find_map(|it| program_in(&it, name)).map(|it| ("pyenv", it))
    };
    found.map_or(Shim::Unknown, |(manager, program)| Shim::For(manager, program))
}

/// Returns the program that `nvm` would put on `PATH`.
pub(super) fn of_nvm(name: &str, directories: &[PathBuf], home: &Path) -> Option<PathBuf> {
    let root = home.join(".nvm");
    let mut wanted = read_nearest(&[".nvmrc", ".node-version"], directories)
        .or_else(|| read(&root.join("alias/default")))?;
    // An alias may refer to another one, such as `lts/*`.
    for _ in 0..4 {
        let Some(next) = read(&root.join("alias").join(wanted.trim())) else { break };
        wanted = next;
    }
    program_in(&pick_version(&root.join("versions/node"), &[wanted.trim().to_owned()])?, name)
}

/// Returns the program of this name in an installation.
fn program_in(folder: &Path, name: &str) -> Option<PathBuf> {
    Some(folder.join("bin").join(name)).filter(|it| is_executable(it))
}

/// Returns the versions required by files of `asdf` and `mise`, or by the version files of other
/// managers.
fn wanted_tool(
    tool: &str,
    files: &[&str],
    directories: &[PathBuf],
    home: Option<&Path>,
) -> Vec<String> {
    let own = home.map(|it| [it.to_owned(), it.join(".config/mise")]).into_iter().flatten();
    let folders = directories.iter().cloned().chain(own);
    for folder in folders {
        for name in ["mise.toml", ".mise.toml", "config.toml"] {
            let table =
                read(&folder.join(name)).and_then(|it| it.parse::<toml_edit::DocumentMut>().ok());
            let value = table.as_ref().and_then(|it| it.get("tools")?.get(tool));
            if let Some(version) = value.and_then(toml_edit::Item::as_str) {
                return vec![version.to_owned()];
            }
        }
        let listed = read(&folder.join(".tool-versions"));
        let line = listed.iter().flat_map(|it| it.lines()).map(str::split_ascii_whitespace);
        for mut words in line {
            if words.next() == Some(tool) {
                return words.map(str::to_owned).collect();
            }
        }
        if let Some(version) = files.iter().find_map(|it| read(&folder.join(it))) {
            return vec![version.trim().to_owned()];
        }
    }
    vec!["latest".to_owned()]
}

/// Returns the content of the nearest file with one of these names.
fn read_nearest(files: &[&str], directories: &[PathBuf]) -> Option<String> {
    let folders = directories.iter();
    folders.flat_map(|it| files.iter().map(move |name| it.join(name))).find_map(|it| read(&it))
}

/// Returns the folder of an installed version: an exact match, else the newest with this prefix.
/// `system` matches none.
fn pick_version(folder: &Path, wanted: &[String]) -> Option<PathBuf> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .ok()?
        .flatten()
        .filter_map(|it| it.file_name().into_string().ok())
        .collect();
    names.sort_by_key(|it| numbers(it));
    wanted.iter().find_map(|wanted| {
        if wanted == "system" {
            return None;
        }
        let plain = wanted.strip_prefix('v').unwrap_or(wanted);
        let is_number = plain.starts_with(|it: char| it.is_ascii_digit());
        let exact = names.iter().find(|it: &&String| it.strip_prefix('v').unwrap_or(it) == plain);
        let found = exact.or_else(|| {
            names.iter().rev().find(|it| match is_number {
                true => numbers(it).starts_with(&numbers(plain)),
                // An alias that cannot be resolved here: the newest.
                false => !numbers(it).is_empty(),
            })
        })?;
        Some(folder.join(found))
    })
}

/// Returns the leading numbers of a version.
fn numbers(version: &str) -> Vec<u64> {
    let version = version.strip_prefix('v').unwrap_or(version);
    version.split('.').map_while(|it| it.parse().ok()).collect()
}

fn read(path: &Path) -> Option<String> {
    let metadata = fs::metadata(path).ok()?;
    let text =
        (metadata.is_file() && metadata.len() <= LARGEST).then(|| fs::read_to_string(path).ok());
    text.flatten().filter(|it| !it.trim().is_empty())
}
