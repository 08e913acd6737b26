//! The programs and variables that a skill declares in its frontmatter: in prose (`compatibility`),
//! or in the extensions of clients.

use prowess::{
    Manifest,
    frontmatter::{Field, Value},
    spec::SKILL_FILE,
};
use serde_json::Value as Json;

use super::needs::{Needs, Place, ProgramNeed, VariableNeed};

/// The maximum number of programs and variables, and the maximum length of a name.
const MAX_NAMES: usize = 200;
const MAX_NAME: usize = 128;
/// The maximum depth of the search in maps.
const MAX_DEPTH: usize = 6;

/// Programs by the words that people write for them. Other words in a sentence are never programs.
const PROGRAMS: &[(&str, &str)] = &[
    ("ansible", "ansible"),
    ("aws", "aws"),
    ("az", "az"),
    ("bash", "bash"),
    ("brew", "brew"),
    ("bun", "bun"),
    ("cargo", "cargo"),
    ("chrome", "google-chrome"),
    ("chromium", "chromium"),
    ("clang", "clang"),
    ("cmake", "cmake"),
    ("codeql", "codeql"),
    ("conda", "conda"),
    ("curl", "curl"),
    ("deno", "deno"),
    ("docker", "docker"),
    ("docker-compose", "docker-compose"),
    ("dot", "dot"),
    ("exiftool", "exiftool"),
    ("fd", "fd"),
    ("ffmpeg", "ffmpeg"),
    ("ffprobe", "ffprobe"),
    ("firefox", "firefox"),
    ("fzf", "fzf"),
    ("gawk", "gawk"),
    ("gcc", "gcc"),
    ("gcloud", "gcloud"),
    ("gdb", "gdb"),
    ("gh", "gh"),
    ("ghostscript", "gs"),
    ("git", "git"),
    ("git-lfs", "git-lfs"),
    ("glab", "glab"),
    ("go", "go"),
    ("gpg", "gpg"),
    ("graphviz", "dot"),
    ("gs", "gs"),
    ("helm", "helm"),
    ("imagemagick", "magick"),
    ("java", "java"),
    ("jq", "jq"),
    ("julia", "julia"),
    ("kubectl", "kubectl"),
    ("libreoffice", "soffice"),
    ("lighthouse", "lighthouse"),
    ("magick", "magick"),
    ("make", "make"),
    ("matlab", "matlab"),
    ("mvn", "mvn"),
    ("mysql", "mysql"),
    ("node", "node"),
    ("node.js", "node"),
    ("nodejs", "node"),
    ("npm", "npm"),
    ("npx", "npx"),
    ("octave", "octave"),
    ("openssl", "openssl"),
    ("pandoc", "pandoc"),
    ("pdflatex", "pdflatex"),
    ("pdftoppm", "pdftoppm"),
    ("pdftotext", "pdftotext"),
    ("perl", "perl"),
    ("php", "php"),
    ("pip", "pip"),
    ("pip3", "pip3"),
    ("pipx", "pipx"),
    ("pnpm", "pnpm"),
    ("podman", "podman"),
    ("poppler", "pdftotext"),
    ("poppler-utils", "pdftotext"),
    ("powershell", "pwsh"),
    ("psql", "psql"),
    ("pwsh", "pwsh"),
    ("python", "python3"),
    ("python3", "python3"),
    ("qpdf", "qpdf"),
    ("rg", "rg"),
    ("ripgrep", "rg"),
    ("rscript", "Rscript"),
    ("rsync", "rsync"),
    ("ruby", "ruby"),
    ("rustc", "rustc"),
    ("semgrep", "semgrep"),
    ("shellcheck", "shellcheck"),
    ("soffice", "soffice"),
    ("sqlite3", "sqlite3"),
    ("ssh", "ssh"),
    ("supabase", "supabase"),
    ("swift", "swift"),
    ("tar", "tar"),
    ("terraform", "terraform"),
    ("tesseract", "tesseract"),
    ("tmux", "tmux"),
    ("tsx", "tsx"),
    ("unzip", "unzip"),
    ("uv", "uv"),
    ("uvx", "uvx"),
    ("vercel", "vercel"),
    ("wget", "wget"),
    ("xelatex", "xelatex"),
    ("yarn", "yarn"),
    ("yq", "yq"),
    ("yt-dlp", "yt-dlp"),
    ("zip", "zip"),
    ("zsh", "zsh"),
];

/// Those of them that are also ordinary words: they are programs only in a list of requirements.
const AMBIGUOUS: &[&str] = &[
    "dot",
    "go",
    "java",
    "make",
    "node",
    "swift",
    "chrome",
    "vercel",
    "supabase",
    "zip",
    "tar",
    "az",
    "lighthouse",
];

/// Lists of programs below `requires` or `prerequisites`, and whether one of them suffices.
const LISTS: &[(&str, bool)] = &[
    ("bins", false),
    ("binaries", false),
    ("commands", false),
    ("programs", false),
    ("anyBins", true),
    ("any_bins", true),
    ("any-bins", true),
];
/// Lists of variables at any position.
const VARIABLES: &[&str] =
    &["envVars", "primaryEnv", "required_environment_variables", "requires-env"];
/// Lists of variables below `requires` or `prerequisites`.
const REQUIRED_VARIABLES: &[&str] = &["env", "env_vars", "environment", "environment_variables"];

/// Returns the programs that a skill declares, without reading its files.
pub(crate) fn declared_programs(manifest: &Manifest) -> Vec<String> {
    let mut needs = Needs::default();
    add_declared(manifest, "", &mut needs);
    needs.programs.into_iter().flat_map(|it| it.any_of).collect()
}

/// Adds the programs and variables that a skill declares.
pub(super) fn add_declared(manifest: &Manifest, document: &str, needs: &mut Needs) {
    if let Some(text) = &manifest.compatibility {
        let line = line_of(document, "compatibility:");
        add_from_sentence(text, line, needs);
    }
    for field in manifest.metadata.iter().chain(&manifest.unknown) {
        let is_asked = is_requirement_key(&field.key) || VARIABLES.contains(&&*field.key);
        if is_asked {
            add_requirements(field, false, needs);
        } else if field.key == "compatibility" || field.key == "dependencies" {
            let text = field.value.as_text().unwrap_or_default();
            add_from_sentence(text, field.line + 1, needs);
        }
        search_requirements(&field.value, field.line, 0, needs);
    }
    for word in &manifest.dialect().requires {
        let line = line_of(document, "requires:");
        let (name, version) = split_version(word);
        if let Some(program) = known_program(name) {
            add_program(vec![program.to_owned()], version, false, line, needs);
        }
    }
}

/// Searches for maps with requirements, whichever client they are for.
fn search_requirements(value: &Value<'_>, line: usize, depth: usize, needs: &mut Needs) {
    if depth > MAX_DEPTH {
        return;
    }
    match value {
        Value::Map(fields) => {
            for field in fields {
                let line = if field.line == 0 { line } else { field.line };
                let found = Field { line, ..field.clone() };
                if is_requirement_key(&field.key) || VARIABLES.contains(&&*field.key) {
                    add_requirements(&found, false, needs);
                } else if field.key == "optional" {
                    add_requirements(&found, true, needs);
                } else {
                    search_requirements(&field.value, line, depth + 1, needs);
                }
            }
        }
        // The specification only allows strings below `metadata`, so some contain JSON.
        Value::Scalar(scalar) if scalar.text.trim_start().starts_with('{') => {
            if let Ok(json) = serde_json::from_str(&scalar.text) {
                search_requirements(&from_json(json), line, depth + 1, needs);
            }
        }
        Value::Scalar(_) | Value::List(_) | Value::Empty => {}
    }
}

fn is_requirement_key(key: &str) -> bool {
    matches!(key, "requires" | "prerequisites" | "requirements")
}

/// Parses the fields below `requires`, or a list of variables.
fn add_requirements(field: &Field<'_>, is_optional: bool, needs: &mut Needs) {
    let line = field.line + 1;
    if VARIABLES.contains(&&*field.key) {
        return add_variables(&field.value, is_optional, line, needs);
    }
    let Value::Map(fields) = &field.value else { return };
    for inner in fields {
        let line = if inner.line == 0 { line } else { inner.line + 1 };
        if let Some((_, is_any)) = LISTS.iter().find(|it| it.0 == inner.key) {
            let names: Vec<String> =
                names(&inner.value).into_iter().filter(|it| is_program(it)).collect();
            match is_any {
                true if !names.is_empty() => add_program(names, None, is_optional, line, needs),
                true => {}
                false => names
                    .into_iter()
                    .for_each(|it| add_program(vec![it], None, is_optional, line, needs)),
            }
        } else if VARIABLES.iter().chain(REQUIRED_VARIABLES).any(|it| *it == inner.key) {
            add_variables(&inner.value, is_optional, line, needs);
        }
    }
}

/// Returns the names in a list, or in a comma-separated text; for a map its `name`.
fn names(value: &Value<'_>) -> Vec<String> {
    match value {
        Value::List(items) => items
            .iter()
            .take(MAX_NAMES)
            .filter_map(|it| it.get("name").unwrap_or(it).as_text())
            .map(|it| it.trim().to_owned())
            .collect(),
        Value::Scalar(scalar) => {
            let parts = scalar.text.split([',', ' ']).map(str::trim).filter(|it| !it.is_empty());
            parts.take(MAX_NAMES).map(str::to_owned).collect()
        }
        Value::Map(_) | Value::Empty => Vec::new(),
    }
}

fn add_variables(value: &Value<'_>, is_optional: bool, line: usize, needs: &mut Needs) {
    let optional: Vec<String> = match value {
        Value::List(items) => items
            .iter()
            .filter(|it| it.get("required").and_then(Value::as_text) == Some("false"))
            .filter_map(|it| it.get("name")?.as_text().map(str::to_owned))
            .collect(),
        Value::Scalar(_) | Value::Map(_) | Value::Empty => Vec::new(),
    };
    for name in names(value) {
        let is_optional = is_optional || optional.contains(&name);
        add_variable(&name, is_optional, line, needs);
    }
}

fn add_program(
    any_of: Vec<String>,
    version: Option<String>,
    is_optional: bool,
    line: usize,
    needs: &mut Needs,
) {
    let same = needs.programs.iter_mut().find(|it| it.any_of == any_of);
    if let Some(same) = same {
        same.is_optional &= is_optional;
        same.version = same.version.take().or(version);
        return;
    }
    if needs.programs.len() < MAX_NAMES {
        needs.programs.push(ProgramNeed {
            any_of,
            version,
            is_optional,
            place: Place::new(SKILL_FILE, line),
            scripts: Vec::new(),
        });
    }
}

/// Adds a program that a script starts, unless the skill declares it.
pub(super) fn add_started(
    name: &str,
    is_optional: bool,
    place: Place,
    script: &str,
    needs: &mut Needs,
) {
    let same = needs.programs.iter_mut().find(|it| it.any_of.iter().any(|it| it == name));
    if let Some(same) = same {
        if !same.scripts.is_empty() {
            same.is_optional &= is_optional;
            if same.scripts.iter().all(|it| it != script) {
                same.scripts.push(script.to_owned());
            }
        }
        return;
    }
    if needs.programs.len() < MAX_NAMES {
        let (any_of, scripts) = (vec![name.to_owned()], vec![script.to_owned()]);
        needs.programs.push(ProgramNeed { any_of, version: None, is_optional, place, scripts });
    }
}

fn add_variable(name: &str, is_optional: bool, line: usize, needs: &mut Needs) {
    // A value after `=` may be secret, and is dropped.
    let name = name.split('=').next().unwrap_or_default().trim().trim_start_matches('$');
    let is_name = !name.is_empty()
        && name.len() <= MAX_NAME
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && !name.starts_with(|c: char| c.is_ascii_digit());
    if let Some(same) = needs.variables.iter_mut().find(|it| it.name == name) {
        same.is_optional &= is_optional;
    } else if is_name && needs.variables.len() < MAX_NAMES {
        let place = Place::new(SKILL_FILE, line);
        needs.variables.push(VariableNeed { name: name.to_owned(), is_optional, place });
    }
}

/// Whether this is the name of a program, rather than a path or an option.
fn is_program(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= MAX_NAME
        && name.chars().all(|c: char| c.is_ascii_alphanumeric() || "-_.+@".contains(c))
        && !name.starts_with(['-', '.'])
}

fn known_program(word: &str) -> Option<&'static str> {
    let word = word.to_ascii_lowercase();
    PROGRAMS.binary_search_by_key(&&*word, |it| it.0).ok().map(|at| PROGRAMS[at].1)
}

/// Parses a sentence such as “Requires Python 3.12+, git and docker (optional: jq)”.
fn add_from_sentence(text: &str, line: usize, needs: &mut Needs) {
    for clause in split_clauses(text) {
        let words: Vec<&str> = clause.split_whitespace().collect();
        let lower: Vec<String> =
            words.iter().map(|it| trim_punctuation(it).to_lowercase()).collect();
        let is_optional = lower
            .iter()
            .any(|it| matches!(&**it, "optional" | "optionally" | "recommended" | "recommends"));
        let mut alternative: Option<(usize, Vec<String>)> = None;
        for (at, word) in words.iter().enumerate() {
            let word = trim_punctuation(word);
            if is_negated(&lower[..at]) {
                break;
            }
            if is_variable(word) {
                add_variable(word, is_optional, line, needs);
                continue;
            }
            let (name, version) = split_version(word);
            let Some(program) = known_program(name).filter(|_| is_meant(&words, at, name)) else {
                continue;
            };
            let version = version.or_else(|| following_version(&words, at));
            let joins = alternative.take().filter(|it| at == it.0 + 2 && lower[at - 1] == "or");
            let any_of = match joins {
                Some((_, mut names)) => {
                    needs.programs.retain(|it| it.any_of != names);
                    names.push(program.to_owned());
                    names
                }
                None => vec![program.to_owned()],
            };
            alternative = Some((at, any_of.clone()));
            add_program(any_of, version, is_optional, line, needs);
        }
    }
}

/// Splits a text into clauses. A dot within a word ends nothing.
fn split_clauses(text: &str) -> Vec<String> {
    let spaced = text.replace(". ", "\n").replace(['(', ')', ';'], "\n").replace(" but ", "\n");
    spaced.lines().map(|it| it.replace(',', " , ")).collect()
}

fn trim_punctuation(word: &str) -> &str {
    word.trim_matches(|c: char| {
        !c.is_alphanumeric() && c != '+' && c != '_' && c != '<' && c != '>' && c != '='
    })
    .trim_end_matches('.')
}

fn is_negated(before: &[String]) -> bool {
    before.iter().any(|it| {
        matches!(&**it, "no" | "not" | "without" | "never" | "doesn't" | "don't" | "designed")
    })
}

/// Whether an ambiguous word is used as the name of a program.
fn is_meant(words: &[&str], at: usize, name: &str) -> bool {
    // `git-based`, `docker.io/x` and similar are separate words already; a product is not its
    // program.
    let next = words.get(at + 1).map_or("", |it| trim_punctuation(it)).to_lowercase();
    if matches!(
        &*next,
        "hub" | "account" | "actions" | "desktop" | "code" | "project" | "projects" | "repository"
    ) {
        return false;
    }
    if !AMBIGUOUS.contains(&&*name.to_lowercase()) || words[at].starts_with('`') {
        return true;
    }
    let before = at.checked_sub(1).map_or("", |at| words[at]).to_lowercase();
    let is_listed = matches!(
        &*before,
        "" | ","
            | "and"
            | "or"
            | "requires"
            | "require"
            | "needs"
            | "need"
            | "with"
            | "either"
            | "requires:"
    );
    let is_end =
        matches!(&*next, "" | "and" | "or" | "installed" | "cli" | "on" | "to" | "is" | "required");
    is_listed && (is_end || next.starts_with(|c: char| c.is_ascii_digit() || c == '>'))
}

/// Splits `node>=18` into a name and a version.
fn split_version(word: &str) -> (&str, Option<String>) {
    match word.find(['<', '>', '=']) {
        Some(at) if at > 0 => (&word[..at], Some(word[at..].to_owned())),
        _ => (word, None),
    }
}

/// Parses the version after a program: `3.12+`, `>= 18`, `18 or newer`.
fn following_version(words: &[&str], at: usize) -> Option<String> {
    let next = trim_punctuation(words.get(at + 1)?);
    let (sign, number) = match next {
        ">=" | "≥" => (">=", trim_punctuation(words.get(at + 2)?)),
        "v" | "version" => ("", trim_punctuation(words.get(at + 2)?)),
        _ => ("", next.trim_start_matches(">=").trim_start_matches('v')),
    };
    let is_open = number.ends_with('+') || next.starts_with(">=") || !sign.is_empty() || {
        let rest: Vec<&str> =
            words.iter().skip(at + 2).take(2).map(|it| trim_punctuation(it)).collect();
        matches!(&rest[..], ["or", "newer" | "higher" | "later" | "above", ..])
    };
    let number = number.trim_end_matches('+').trim_end_matches(".x");
    let is_number = !number.is_empty() && number.chars().all(|c| c.is_ascii_digit() || c == '.');
    let is_whole = number.starts_with(|c: char| c.is_ascii_digit());
    (is_number && is_whole).then(|| format!("{}{number}", if is_open { ">=" } else { "==" }))
}

/// Whether a word can only be the name of a variable: `OPENAI_API_KEY`.
fn is_variable(word: &str) -> bool {
    word.contains('_')
        && word.len() >= 5
        && word.chars().all(|c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
        && !word.starts_with('_')
        && !word.ends_with('_')
}

/// Returns the line of a document that begins with this text.
fn line_of(document: &str, start: &str) -> usize {
    document.lines().position(|it| it.starts_with(start)).map_or(0, |it| it + 1)
}

/// Converts JSON to a frontmatter value.
fn from_json(json: Json) -> Value<'static> {
    match json {
        Json::Object(map) => Value::Map(
            map.into_iter()
                .map(|(key, value): (String, Json)| Field::new(key, from_json(value)))
                .collect(),
        ),
        Json::Array(items) => Value::List(items.into_iter().map(from_json).collect()),
        Json::String(text) => text_value(text),
        Json::Bool(it) => text_value(it.to_string()),
        Json::Number(it) => text_value(it.to_string()),
        Json::Null => Value::Empty,
    }
}

fn text_value(text: String) -> Value<'static> {
    Value::from(text.as_str()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recognize(text: &str) -> String {
        let mut needs = Needs::default();
        add_from_sentence(text, 3, &mut needs);
        let variables = needs.variables.iter().map(|it| format!("${}", it.name));
        let all: Vec<String> = needs
            .programs
            .iter()
            .map(|it: &ProgramNeed| {
                let optional = if it.is_optional { "?" } else { "" };
                format!(
                    "{}{}{optional}",
                    it.any_of.join("|"),
                    it.version.as_deref().unwrap_or_default()
                )
            })
            .chain(variables)
            .collect();
        all.join(" ")
    }

    #[test]
    fn programs_are_recognised_in_a_sentence_and_other_words_are_not() {
        let cases = [
            ("Requires git, docker, jq", "git docker jq"),
            ("Requires git, docker, jq, and access to the internet", "git docker jq"),
            ("Requires Python 3.14+ and uv", "python3>=3.14 uv"),
            ("Python 3.12+, API key required", "python3>=3.12"),
            ("Node.js 18 or newer", "node>=18"),
            ("node>=18.0.0", "node>=18.0.0"),
            ("Requires either MATLAB or Octave to be installed", "matlab|octave"),
            ("Needs ffmpeg (optional: yt-dlp)", "ffmpeg yt-dlp?"),
            ("Works without docker. No git needed.", ""),
            ("Designed for Claude Code (or similar products)", ""),
            ("Make sure to go to the project and node the graph", ""),
            ("Requires make and go", "make go"),
            ("GitHub account, Docker Hub account, Python project", ""),
            (
                "PARALLEL_API_KEY and OPENROUTER_API_KEY required",
                "$PARALLEL_API_KEY $OPENROUTER_API_KEY",
            ),
            ("An OpenRouter API key is required", ""),
            ("", ""),
        ];
        for (text, expected) in cases {
            assert_eq!(recognize(text), expected, "{text}");
        }
        assert!(PROGRAMS.is_sorted());
    }
}
