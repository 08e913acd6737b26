//! Python requirements in the format of pip, one per line.

use std::collections::BTreeSet;

use super::{
    files::{Files, folder_of, resolve},
    needs::{PackageNeed, PackageSource, Place},
    packages::normalize_name,
};

/// The maximum number of packages of an environment.
pub(super) const MAX_PACKAGES: usize = 2_000;
/// Returns the note on further packages.
pub(super) fn too_many() -> String {
    format!("there are more than {MAX_PACKAGES} packages; the rest was left out")
}

/// The maximum number of files that a `requirements.txt` may include.
const MAX_FILES: usize = 50;

/// Reads a requirements file and those that it includes from the skill.
pub(super) fn read_requirements(files: &Files<'_>, path: &str) -> Vec<PackageNeed> {
    let mut packages = Vec::new();
    let mut read = BTreeSet::new();
    let mut waiting = vec![path.to_owned()];
    while let Some(path) = waiting.pop() {
        if !read.insert(path.clone()) {
            continue;
        }
        if read.len() > MAX_FILES {
            files.note(
                &path,
                0,
                &format!(
                    "there are more than {MAX_FILES} requirements files; this one was not read"
                ),
            );
            break;
        }
        let Some(text) = files.text(&path) else { continue };
        for (number, line) in logical_lines(&text) {
            match parse_line(&line) {
                Line::Requirement(requirement) => {
                    match parse_requirement(requirement, Place::new(&path, number)) {
                        Some(package) => packages.push(package),
                        None => files.note(
                            &path,
                            number,
                            "this is not a requirement, so it was left out",
                        ),
                    }
                }
                Line::Include(included) => match resolve(folder_of(&path), included) {
                    Some(included) if files.contains(&included) => waiting.push(included),
                    _ => files.note(
                        &path,
                        number,
                        "this file is not in the skill, so it was not read",
                    ),
                },
                Line::Option(option) => {
                    files.note(&path, number, &format!("`{option}` is not followed"));
                }
            }
            if packages.len() > MAX_PACKAGES {
                files.note(&path, number, &too_many());
                packages.truncate(MAX_PACKAGES);
                return packages;
            }
        }
    }
    packages
}

/// Parses a requirement (PEP 508, a URL or a path); `None` if it is invalid.
pub(super) fn parse_requirement(requirement: &str, place: Place) -> Option<PackageNeed> {
    let requirement = requirement.trim();
    let end = requirement
        .find(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '-' | '_' | '.'))
        .unwrap_or(requirement.len());
    let (name, rest) = requirement.split_at(end);
    let rest = rest.trim_start();
    let is_name = name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.ends_with(|c: char| c.is_ascii_alphanumeric());
    let rest = if rest.starts_with('[') { rest.split_once(']')?.1.trim_start() } else { rest };
    let follows = rest.is_empty()
        || rest.starts_with(['=', '<', '>', '!', '~', ';', '@', '('])
        || rest.starts_with("--");
    let mut package = PackageNeed::new(normalize_name(name), requirement.to_owned(), place);
    if is_name && follows {
        if let Some(address) = rest.strip_prefix('@') {
            let is_path = address.trim_start().starts_with("file:");
            package.source = if is_path { PackageSource::Path } else { PackageSource::Url };
        }
        let is_wheel = [".whl", ".tar.gz", ".zip"].iter().any(|it| name.ends_with(it));
        if !is_wheel {
            return Some(package);
        }
    }
    let is_url = requirement.contains("://");
    let is_path = requirement.starts_with(['.', '/'])
        || requirement.contains('/')
        || requirement.contains(".whl");
    if requirement.contains(char::is_whitespace)
        && !requirement.contains("--hash")
        && !requirement.contains(" ;")
    {
        return None;
    }
    if !is_url && !is_path {
        return None;
    }
    package.source = if is_url { PackageSource::Url } else { PackageSource::Path };
    let egg =
        requirement.split_once("egg=").map(|it| it.1.split(['&', '[']).next().unwrap_or_default());
    let tail = requirement.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    package.name = normalize_name(egg.unwrap_or(tail.trim_end_matches(".git")));
    Some(package)
}

enum Line<'t> {
    Requirement(&'t str),
    Include(&'t str),
    /// An option, without its value, which may be a secret.
    Option(&'t str),
}

fn parse_line(line: &str) -> Line<'_> {
    if !line.starts_with('-') {
        return Line::Requirement(line);
    }
    let end = line.find(|c: char| c == '=' || c.is_whitespace()).unwrap_or(line.len());
    let (option, value) = line.split_at(end);
    let value = value.trim_start_matches(|c: char| c == '=' || c.is_whitespace());
    match option {
        "-r" | "--requirement" => Line::Include(value),
        "-e" | "--editable" => Line::Requirement(value),
        _ if option.starts_with("-r") => Line::Include(line[2..].trim()),
        _ => Line::Option(option),
    }
}

/// Returns the logical lines: continuations joined, without comments and empty lines, each with its
/// first line number.
fn logical_lines(text: &str) -> Vec<(usize, String)> {
    let mut lines = Vec::new();
    let mut joined: Option<(usize, String)> = None;
    for (number, line) in text.lines().enumerate() {
        let (begun, mut whole) = joined.take().unwrap_or((number + 1, String::new()));
        let line = without_comment(line).trim();
        if let Some(line) = line.strip_suffix('\\') {
            whole.push_str(line.trim_end());
            whole.push(' ');
            joined = Some((begun, whole));
            continue;
        }
        whole.push_str(line);
        lines.push((begun, whole));
    }
    lines.extend(joined);
    let lines = lines.into_iter().map(|(number, line)| (number, line.trim().to_owned()));
    lines.filter(|it| !it.1.is_empty()).collect()
}

fn without_comment(line: &str) -> &str {
    if line.trim_start().starts_with('#') {
        return "";
    }
    line.find(" #").or_else(|| line.find("\t#")).map_or(line, |at| &line[..at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_requirement_is_kept_as_written_and_has_the_name_of_its_package() {
        let cases = [
            ("pypdf", "pypdf", PackageSource::Registry),
            ("Foo_Bar.baz>=1.0,<2", "foo-bar-baz", PackageSource::Registry),
            ("uvicorn[standard]~=0.30", "uvicorn", PackageSource::Registry),
            ("pywin32; sys_platform == 'win32'", "pywin32", PackageSource::Registry),
            ("a (>=1)", "a", PackageSource::Registry),
            ("a==1 --hash=sha256:00 --hash=sha256:11", "a", PackageSource::Registry),
            ("a @ https://example.com/a.whl", "a", PackageSource::Url),
            ("git+https://example.com/x/tool.git", "tool", PackageSource::Url),
            ("git+https://example.com/x/y#egg=Z_1", "z-1", PackageSource::Url),
            ("./wheels/own", "own", PackageSource::Path),
        ];
        for (text, name, source) in cases {
            let package = parse_requirement(text, Place::new("r", 1)).expect(text);
            assert_eq!(
                (&*package.name, &*package.requirement, package.source),
                (name, text, source)
            );
        }
        for text in ["", "two words", "==1", "-", "<html>", "a b @ c"] {
            assert_eq!(parse_requirement(text, Place::new("r", 1)), None, "{text}");
        }
    }

    #[test]
    fn lines_are_joined_and_comments_left_out() {
        let text = "# one\na==1 \\\n  --hash=sha256:00\n\nb  # two\nc#d\n";
        let expected =
            [(2, "a==1 --hash=sha256:00"), (5, "b"), (6, "c#d")].map(|it| (it.0, it.1.to_owned()));
        assert_eq!(logical_lines(text), expected);
    }
}
