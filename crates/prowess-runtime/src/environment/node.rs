//! Declarations of Node, Bun and Deno projects: `package.json`, `deno.json`, and their lock files.

use serde_json::{Map, Value};

use super::{
    files::{Files, join},
    needs::{
        Ecosystem, EnvironmentNeeds, PackageDeclaration, PackageNeed, PackageSource, Place,
        VersionNeed,
    },
    requirements::{MAX_PACKAGES, too_many},
};

/// The lock files next to a `package.json`; the first existing one is used.
const LOCKS: &[&str] = &[
    "npm-shrinkwrap.json",
    "package-lock.json",
    "pnpm-lock.yaml",
    "bun.lock",
    "bun.lockb",
    "yarn.lock",
];

/// The fields of a `package.json` with packages, each with its group, and whether they are
/// optional.
const FIELDS: &[(&str, Option<&str>, bool)] = &[
    ("dependencies", None, false),
    ("optionalDependencies", Some("optional"), true),
    ("peerDependencies", Some("peer"), false),
    ("devDependencies", Some("dev"), true),
];

/// Returns the environment that a folder declares for its Node and Bun scripts.
pub(super) fn read_package_json(files: &Files<'_>, folder: &str) -> Option<EnvironmentNeeds> {
    let path = join(folder, "package.json");
    let text = files.text(&path)?;
    let document = parse_object(files, &path, &text)?;
    let mut needs = EnvironmentNeeds::new(Ecosystem::Node, PackageDeclaration::PackageJson, &path);
    for &(field, group, is_optional) in FIELDS {
        let Some(found) = document.get(field) else { continue };
        let Some(packages) = found.as_object() else {
            files.note(&path, line_of(&text, field, field), &format!("`{field}` is not an object"));
            continue;
        };
        for (name, range) in packages {
            let place = Place::new(&path, line_of(&text, field, name));
            let Some(range) = range.as_str().filter(|_| is_name(name)) else {
                files.note(
                    &path,
                    place.line,
                    "this is not a package and its version, so it was left out",
                );
                continue;
            };
            if needs.packages.len() >= MAX_PACKAGES {
                files.note(&path, place.line, &too_many());
                break;
            }
            let mut package = PackageNeed::new(name.clone(), format!("{name}@{range}"), place);
            package.source = source_of(range);
            package.group = group.map(str::to_owned);
            package.is_optional = is_optional;
            needs.packages.push(package);
        }
    }
    let engine = document.get("engines").and_then(|it| it.get("node")).and_then(Value::as_str);
    needs.versions.extend(engine.map(|it| VersionNeed {
        requirement: it.trim().to_owned(),
        place: Place::new(&path, line_of(&text, "engines", "node")),
    }));
    let manager = document.get("packageManager").and_then(Value::as_str);
    needs.manager = manager.map(|it| it.split('+').next().unwrap_or(it).to_owned());
    needs.lock_file = LOCKS.iter().map(|it| join(folder, it)).find(|it| files.contains(it));
    (!needs.packages.is_empty() || !needs.versions.is_empty()).then_some(needs)
}

/// Returns the environment that a folder declares for its Deno scripts.
pub(super) fn read_deno_json(files: &Files<'_>, folder: &str) -> Option<EnvironmentNeeds> {
    let path = ["deno.json", "deno.jsonc"]
        .map(|it| join(folder, it))
        .into_iter()
        .find(|it| files.contains(it))?;
    let text = files.text(&path)?;
    let document = parse_object(files, &path, &strip_comments(&text))?;
    let mut needs = EnvironmentNeeds::new(Ecosystem::Deno, PackageDeclaration::DenoJson, &path);
    let imports = document.get("imports").and_then(Value::as_object);
    for (name, specifier) in imports.into_iter().flatten().take(MAX_PACKAGES) {
        let place = Place::new(&path, line_of(&text, "imports", name));
        let Some(specifier) = specifier.as_str() else { continue };
        match parse_specifier(specifier, place.clone()) {
            Some(package) => needs.packages.push(package),
            None if specifier.contains("://") => {
                files.note(&path, place.line, "a module at a URL is not followed");
            }
            None => {}
        }
    }
    needs.lock_file = Some(join(folder, "deno.lock")).filter(|it| files.contains(it));
    Some(needs)
}

/// Parses the package in an `npm:` or `jsr:` specifier, such as `npm:chalk@5/part`.
pub(super) fn parse_specifier(specifier: &str, place: Place) -> Option<PackageNeed> {
    let (registry, rest) = specifier.split_once(':')?;
    if !matches!(registry, "npm" | "jsr") {
        return None;
    }
    let rest = rest.trim_start_matches('/');
    let parts = if rest.starts_with('@') { 2 } else { 1 };
    let end = rest.match_indices('/').nth(parts - 1).map_or(rest.len(), |it| it.0);
    let package = &rest[..end];
    let at = package.rfind('@').filter(|at| *at > 0).unwrap_or(package.len());
    let name = &package[..at];
    if !is_name(name) || name.starts_with('@') != name.contains('/') {
        return None;
    }
    let name = if registry == "npm" { name.to_owned() } else { format!("jsr:{name}") };
    Some(PackageNeed::new(name, format!("{registry}:{package}"), place))
}

/// Whether npm would accept a name.
fn is_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= 214
        && name.chars().all(|c: char| c.is_ascii_alphanumeric() || "-_.~@/".contains(c))
        && !name.starts_with('.')
}

/// Returns the source of a package with this version.
fn source_of(range: &str) -> PackageSource {
    const PATHS: &[&str] = &["file:", "link:", "portal:", "workspace:", "./", "../", "/", "~/"];
    if PATHS.iter().any(|it| range.starts_with(it)) {
        PackageSource::Path
    } else if range.contains("://")
        || range.starts_with("git")
        || (range.contains('/') && !range.starts_with("npm:"))
    {
        PackageSource::Url
    } else {
        PackageSource::Registry
    }
}

fn parse_object(files: &Files<'_>, path: &str, text: &str) -> Option<Map<String, Value>> {
    match serde_json::from_str(text) {
        Ok(Value::Object(document)) => return Some(document),
        Ok(_) => files.note(path, 0, "it is not a JSON object"),
        Err(error) => {
            let message = error.to_string();
            let message = message.split(" at line").next().unwrap_or_default();
            files.note(path, error.line(), &format!("it is not JSON: {message}"));
        }
    }
    None
}

/// Returns the line of a key below another; 0 if it is not found.
fn line_of(text: &str, above: &str, key: &str) -> usize {
    let Some(start) = text.find(&format!("\"{above}\"")) else { return 0 };
    let offset = if above == key { Some(0) } else { text[start..].find(&format!("\"{key}\"")) };
    offset.map_or(0, |it| text[..start + it].matches('\n').count() + 1)
}

/// Removes the comments and trailing commas that Deno allows from JSON, with line numbers
/// unchanged.
fn strip_comments(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let mut length = c.len_utf8();
        match c {
            '"' => {
                length = string_length(rest);
                plain.push_str(&rest[..length]);
            }
            '/' if rest.starts_with("//") => length = rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => {
                length = rest[2..].find("*/").map_or(rest.len(), |it| it + 4);
                plain.extend(rest[..length].matches('\n'));
            }
            '}' | ']' => {
                let end = plain.trim_end().len();
                if plain[..end].ends_with(',') {
                    plain.replace_range(end - 1..end, " ");
                }
                plain.push(c);
            }
            c => plain.push(c),
        }
        rest = &rest[length..];
    }
    plain
}

fn string_length(text: &str) -> usize {
    let mut signs = text.char_indices().skip(1);
    while let Some((at, c)) = signs.next() {
        match c {
            '\\' => drop(signs.next()),
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_specifier_names_a_package_and_its_registry() {
        let cases = [
            ("npm:chalk@5/part", Some(("chalk", "npm:chalk@5"))),
            ("npm:@s/n@^1", Some(("@s/n", "npm:@s/n@^1"))),
            ("jsr:@std/path", Some(("jsr:@std/path", "jsr:@std/path"))),
            ("jsr:/@std/path@1/posix", Some(("jsr:@std/path", "jsr:@std/path@1"))),
            ("https://example.com/x.ts", None),
            ("npm:", None),
            ("npm:@s", None),
            ("./x.ts", None),
        ];
        for (specifier, expected) in cases {
            let found = parse_specifier(specifier, Place::new("x", 1));
            assert_eq!(found.as_ref().map(|it| (&*it.name, &*it.requirement)), expected);
        }
    }

    #[test]
    fn comments_and_last_commas_are_left_out_of_json() {
        let text = "{ // a\n \"b\": [\"//\", 1,], /* c\n */ \"d\": \"\\\"\",\n}";
        assert_eq!(strip_comments(text), "{ \n \"b\": [\"//\", 1 ], \n \"d\": \"\\\"\" \n}");
    }

    #[test]
    fn a_version_says_where_a_package_comes_from() {
        let cases = [
            ("^1.0.0", PackageSource::Registry),
            ("latest", PackageSource::Registry),
            ("npm:other@1", PackageSource::Registry),
            ("npm:@s/other@1", PackageSource::Registry),
            ("file:../x", PackageSource::Path),
            ("workspace:*", PackageSource::Path),
            ("github:a/b", PackageSource::Url),
            ("a/b#main", PackageSource::Url),
            ("git+ssh://example.com/a.git", PackageSource::Url),
        ];
        for (range, expected) in cases {
            assert_eq!(source_of(range), expected, "{range}");
        }
    }
}
