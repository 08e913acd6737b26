//! Declarations of Python scripts and projects: a header (PEP 723), `pyproject.toml`,
//! `.python-version`.

use toml_edit::{Document, Item};

use super::{
    files::{Files, join},
    needs::{Ecosystem, EnvironmentNeeds, PackageDeclaration, PackageNeed, Place, VersionNeed},
    requirements::{MAX_PACKAGES, parse_requirement, read_requirements, too_many},
};

/// Returns the environment that the header of a script declares; `None` without a header.
pub(super) fn read_header(files: &Files<'_>, path: &str, text: &str) -> Option<EnvironmentNeeds> {
    let (first, toml) = header_block(text)?;
    let mut needs = EnvironmentNeeds::new(Ecosystem::Python, PackageDeclaration::Header, path);
    let Some(document) = parse_toml(files, path, first, &toml) else { return Some(needs) };
    let reader = TomlReader { files, file: path, text: &toml, first };
    needs.versions.extend(reader.read_version(document.get("requires-python")));
    reader.add_packages(document.get("dependencies"), None, &mut needs.packages);
    reader.note_uv(document.get("tool"));
    needs.lock_file = Some(format!("{path}.lock")).filter(|it| files.contains(it));
    Some(needs)
}

/// Returns the environment that a folder declares for its Python scripts. A locked project takes
/// precedence, then `requirements.txt`, then an unlocked project.
pub(super) fn read_declaration(files: &Files<'_>, folder: &str) -> Option<EnvironmentNeeds> {
    let [project, listed, lock] =
        ["pyproject.toml", "requirements.txt", "uv.lock"].map(|it| join(folder, it));
    let mut needs = match files.contains(&lock) {
        true => read_pyproject(files, &project, Some(lock))
            .or_else(|| read_requirements_txt(files, &listed)),
        false => {
            read_requirements_txt(files, &listed).or_else(|| read_pyproject(files, &project, None))
        }
    }?;
    if needs.declared == PackageDeclaration::Requirements && files.contains(&project) {
        // The Python version of the project applies as well.
        let versions = read_pyproject(files, &project, None).map(|it| it.versions);
        needs.versions.extend(versions.into_iter().flatten());
    }
    Some(needs)
}

fn read_requirements_txt(files: &Files<'_>, path: &str) -> Option<EnvironmentNeeds> {
    let packages = files.contains(path).then(|| read_requirements(files, path))?;
    let needs = EnvironmentNeeds::new(Ecosystem::Python, PackageDeclaration::Requirements, path);
    (!packages.is_empty()).then_some(EnvironmentNeeds { packages, ..needs })
}

/// Returns the version that the nearest `.python-version` requires.
pub(super) fn read_version_file(files: &Files<'_>, folder: &str) -> Option<VersionNeed> {
    let path = join(folder, ".python-version");
    let text = files.text(&path)?;
    let mut lines = text.lines().enumerate().map(|it| (it.0, it.1.trim()));
    let (at, version) = lines.find(|it| !it.1.is_empty() && !it.1.starts_with('#'))?;
    let version = version.trim_start_matches("cpython-").trim_start_matches("python-");
    if !version.starts_with(|c: char| c.is_ascii_digit()) || version.len() > 32 {
        files.note(&path, at + 1, "this is not a version of Python");
        return None;
    }
    let dots = version.matches('.').count();
    let requirement = if dots < 2 { format!("=={version}.*") } else { format!("=={version}") };
    Some(VersionNeed { requirement, place: Place::new(&path, at + 1) })
}

/// Returns the TOML of the `# /// script` block of a script, and its first line.
fn header_block(text: &str) -> Option<(usize, String)> {
    let mut lines = text.lines().enumerate();
    let (first, _) = lines.find(|it| it.1.trim_end() == "# /// script")?;
    let mut block = Vec::new();
    let mut end = None;
    for (_, line) in lines {
        let line = line.trim_end();
        if line == "# ///" {
            end = Some(block.len());
        }
        match line.strip_prefix("# ").or_else(|| (line == "#").then_some("")) {
            Some(line) => block.push(line),
            None => break,
        }
    }
    // An unclosed block is an ordinary comment.
    block.truncate(end?);
    Some((first + 2, block.join("\n")))
}

fn parse_toml(files: &Files<'_>, file: &str, first: usize, text: &str) -> Option<Document<String>> {
    match Document::parse(text.to_owned()) {
        Ok(document) => Some(document),
        Err(error) => {
            let line = error.span().map_or(0, |it| line_of(text, it.start) + first - 1);
            let message = error.message().lines().next().unwrap_or_default();
            files.note(file, line, &format!("it is not TOML: {message}"));
            None
        }
    }
}

fn read_pyproject(
    files: &Files<'_>,
    path: &str,
    lock_file: Option<String>,
) -> Option<EnvironmentNeeds> {
    let text = files.text(path)?;
    let document = parse_toml(files, path, 1, &text)?;
    let mut needs = EnvironmentNeeds::new(Ecosystem::Python, PackageDeclaration::Pyproject, path);
    let reader = TomlReader { files, file: path, text: &text, first: 1 };
    if let Some(project) = document.get("project").and_then(Item::as_table_like) {
        needs.versions.extend(reader.read_version(project.get("requires-python")));
        reader.add_packages(project.get("dependencies"), None, &mut needs.packages);
        reader.add_groups(project.get("optional-dependencies"), &mut needs.packages);
    }
    reader.add_groups(document.get("dependency-groups"), &mut needs.packages);
    reader.note_uv(document.get("tool"));
    let poetry = document.get("tool").and_then(|it| it.get("poetry")?.get("dependencies"));
    if let Some(poetry) = poetry.filter(|_| needs.packages.is_empty()) {
        reader.add_poetry(poetry, &mut needs);
    }
    needs.lock_file = lock_file;
    (!needs.packages.is_empty() || !needs.versions.is_empty()).then_some(needs)
}

struct TomlReader<'a> {
    files: &'a Files<'a>,
    file: &'a str,
    text: &'a str,
    /// The line of the file where the text begins.
    first: usize,
}

impl TomlReader<'_> {
    fn place(&self, span: Option<std::ops::Range<usize>>) -> Place {
        let line = span.map_or(0, |it| line_of(self.text, it.start) + self.first - 1);
        Place::new(self.file, line)
    }

    fn note(&self, span: Option<std::ops::Range<usize>>, message: &str) {
        self.files.note(self.file, self.place(span).line, message);
    }

    fn read_version(&self, item: Option<&Item>) -> Option<VersionNeed> {
        let item = item?;
        let requirement = item.as_str()?.trim().to_owned();
        let is_fit = requirement.starts_with(['=', '<', '>', '!', '~']) && requirement.len() <= 128;
        if !is_fit {
            self.note(item.span(), "this is not a version of Python");
        }
        is_fit.then(|| VersionNeed { requirement, place: self.place(item.span()) })
    }

    /// Parses a list of requirements, with their group if there is one.
    fn add_packages(
        &self,
        list: Option<&Item>,
        group: Option<&str>,
        packages: &mut Vec<PackageNeed>,
    ) {
        let Some(list) = list else { return };
        let Some(array) = list.as_array() else {
            return self.note(list.span(), "this is not a list of requirements");
        };
        for value in array {
            let found =
                value.as_str().and_then(|it| parse_requirement(it, self.place(value.span())));
            match found {
                _ if packages.len() >= MAX_PACKAGES => {
                    return self.note(value.span(), &too_many());
                }
                Some(mut package) => {
                    package.group = group.map(str::to_owned);
                    package.is_optional = group.is_some();
                    packages.push(package);
                }
                // `{include-group = "x"}`: that group is listed separately.
                None if value.is_inline_table() => {}
                None => self.note(value.span(), "this is not a requirement, so it was left out"),
            }
        }
    }

    fn add_groups(&self, groups: Option<&Item>, packages: &mut Vec<PackageNeed>) {
        for (group, list) in
            groups.and_then(Item::as_table_like).into_iter().flat_map(|it| it.iter())
        {
            self.add_packages(Some(list), Some(group), packages);
        }
    }

    /// Adds notes on sources of packages, which are chosen by the user and not by the skill.
    fn note_uv(&self, tool: Option<&Item>) {
        let Some(uv) = tool.and_then(|it| it.get("uv")).and_then(Item::as_table_like) else {
            return;
        };
        for key in ["index", "index-url", "extra-index-url", "find-links", "sources"] {
            if let Some(item) = uv.get(key) {
                let span = uv.key(key).and_then(toml_edit::Key::span).or_else(|| item.span());
                self.note(span, &format!("`tool.uv.{key}` is not followed"));
            }
        }
    }

    fn add_poetry(&self, dependencies: &Item, needs: &mut EnvironmentNeeds) {
        let table = dependencies.as_table_like();
        for (name, item) in table.into_iter().flat_map(|it| it.iter()).take(MAX_PACKAGES) {
            let key = table.and_then(|it| it.key(name)).and_then(toml_edit::Key::span);
            let place = self.place(key.clone().or_else(|| item.span()));
            let version = item.as_str().or_else(|| item.get("version").and_then(Item::as_str));
            let Some(versions) = version.and_then(from_poetry) else {
                self.note(key, &format!("`{name}` is declared in a way that is not understood"));
                continue;
            };
            if name == "python" {
                needs.versions.push(VersionNeed { requirement: versions, place });
                continue;
            }
            let requirement = format!("{name}{versions}");
            if let Some(mut package) = parse_requirement(&requirement, place) {
                package.is_optional = item.get("optional").and_then(Item::as_bool) == Some(true);
                needs.packages.push(package);
            }
        }
    }
}

/// Converts a version of Poetry to the standard syntax: `^1.2` is `>=1.2,<2`.
fn from_poetry(version: &str) -> Option<String> {
    let version = version.trim();
    if version == "*" {
        return Some(String::new());
    }
    if version.starts_with(['=', '<', '>', '!']) || version.starts_with("~=") {
        return Some(version.replace(' ', ""));
    }
    let number = version.trim_start_matches(['^', '~']);
    let parts: Vec<u64> = number.split('.').map(|it| it.parse().ok()).collect::<Option<_>>()?;
    // The fixed part: the first that is not 0, or for `~` the second.
    let fixed = match version.starts_with('^') {
        true => parts.iter().position(|it| *it > 0).unwrap_or(parts.len() - 1),
        false if version.starts_with('~') => 1.min(parts.len() - 1),
        false => return Some(format!("=={number}")),
    };
    let mut below = parts[..=fixed].to_vec();
    below[fixed] = below[fixed].checked_add(1)?;
    let below: Vec<String> = below.iter().map(u64::to_string).collect();
    Some(format!(">={number},<{}", below.join(".")))
}

fn line_of(text: &str, offset: usize) -> usize {
    text.as_bytes()[..offset.min(text.len())].iter().filter(|it| **it == b'\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_a_block_of_comments_that_ends() {
        let text = "#!/usr/bin/env python3\n# /// script\n# dependencies = [\"a\"]\n#\n# ///\n# more\nimport a\n";
        assert_eq!(header_block(text), Some((3, "dependencies = [\"a\"]\n".to_owned())));
        assert_eq!(header_block("# /// script\n# a = 1\nimport a\n# ///\n"), None);
        assert_eq!(header_block("x = '''\n#/// script\n# ///\n"), None);
    }

    #[test]
    fn versions_of_poetry_are_read() {
        let cases = [
            ("^1.2.3", Some(">=1.2.3,<2")),
            ("^0.3", Some(">=0.3,<0.4")),
            ("~1.2.3", Some(">=1.2.3,<1.3")),
            ("*", Some("")),
            (">=1, <2", Some(">=1,<2")),
            ("1.0", Some("==1.0")),
            ("^x", None),
            ("", None),
        ];
        for (version, expected) in cases {
            assert_eq!(from_poetry(version).as_deref(), expected, "{version}");
        }
    }
}
