//! Parses commands that download packages and run a program of theirs, such as `npx -y PACKAGE`.

use std::path::PathBuf;

use prowess_runtime::{
    environment::{Ecosystem, InterpreterSearch},
    preparation::{PreparedEnvironment, Recipe, RecipeError},
};

/// A command that downloads packages and runs a program of theirs.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PackageCommand {
    /// The ecosystem of the packages.
    pub ecosystem: Ecosystem,
    /// The packages, in the syntax of their ecosystem; the first contains the program.
    pub packages: Vec<String>,
    /// The program; if it is not named, that of the first package.
    pub program: Option<String>,
    /// The version of the interpreter, if required.
    pub interpreter: Option<String>,
    /// The arguments of the program.
    pub arguments: Vec<String>,
}

/// A command that runs in the virtual environment of a project, like `uv run`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProjectCommand {
    /// The directory of the project; by default the working directory of the command.
    pub directory: String,
    /// The program of the environment.
    pub program: String,
    /// The arguments of the program.
    pub arguments: Vec<String>,
}

/// A program that downloads packages.
struct Launcher {
    program: &'static str,
    /// The subcommands that do so; any one of these.
    words: &'static [&'static str],
    ecosystem: Ecosystem,
    /// Options for the package that contains the program.
    from: &'static [&'static str],
    /// Options for further packages.
    with: &'static [&'static str],
    /// Options for the version of the interpreter.
    interpreter: &'static [&'static str],
    /// Options without a value that have no effect here.
    flags: &'static [&'static str],
}

const NPX: &[&str] = &[
    "-y",
    "--yes",
    "-q",
    "--quiet",
    "-s",
    "--silent",
    "--no-install",
    "--prefer-offline",
    "--prefer-online",
    "--ignore-existing",
    "--no-audit",
    "--no-fund",
    "--bun",
    "--verbose",
];
const UVX: &[&str] = &[
    "-q",
    "--quiet",
    "-v",
    "--verbose",
    "--isolated",
    "--refresh",
    "-U",
    "--upgrade",
    "--reinstall",
    "-n",
    "--no-cache",
    "--no-config",
    "--no-progress",
    "--offline",
    "--native-tls",
    "--no-env-file",
    "--managed-python",
    "--no-managed-python",
    "--no-python-downloads",
    "--no-project",
    "--frozen",
    "--locked",
    "--no-sync",
    "--no-dev",
];
const PIPX: &[&str] = &["-q", "--quiet", "-v", "--verbose", "--no-cache", "--fetch-missing-python"];

/// The option for a package in every ecosystem of Node.
const PACKAGE: &[&str] = &["-p", "--package"];

/// All launchers; longer subcommands precede their prefixes.
const LAUNCHERS: &[Launcher] = &[
    node("npx", &[]),
    node("pnpx", &[]),
    node("bunx", &[]),
    node("npm", &["exec", "x"]),
    node("pnpm", &["dlx"]),
    node("yarn", &["dlx"]),
    node("bun", &["x"]),
    python("uvx", &[]),
    python("uv", &["tool run"]),
    Launcher { from: &["--with"], with: &[], ..python("uv", &["run"]) },
    Launcher {
        from: &["--spec"],
        with: &[],
        interpreter: &["--python"],
        flags: PIPX,
        ..python("pipx", &["run"])
    },
];

const fn node(program: &'static str, words: &'static [&'static str]) -> Launcher {
    let (ecosystem, from) = (Ecosystem::Node, PACKAGE);
    Launcher { program, words, ecosystem, from, with: &[], interpreter: &[], flags: NPX }
}

const fn python(program: &'static str, words: &'static [&'static str]) -> Launcher {
    let (ecosystem, interpreter) = (Ecosystem::Python, &["-p", "--python"]);
    let (from, with) = (&["--from"], &["-w", "--with"]);
    Launcher { program, words, ecosystem, from, with, interpreter, flags: UVX }
}

impl PackageCommand {
    /// Parses a command. `None` if it downloads no packages; an error if it does so in an
    /// unsupported way.
    pub fn of(command: &str, arguments: &[String]) -> Option<Result<Self, String>> {
        let program = command.rsplit('/').next().unwrap_or(command);
        let named = LAUNCHERS.iter().filter(|it| it.program == program);
        let (launcher, rest) = named.into_iter().find_map(|launcher| {
            if launcher.words.is_empty() {
                return Some((launcher, arguments));
            }
            launcher.words.iter().find_map(|words| {
                let words: Vec<&str> = words.split(' ').collect();
                let begins = arguments.len() >= words.len()
                    && arguments.iter().zip(&words).all(|(own, it)| own == it);
                begins.then(|| (launcher, &arguments[words.len()..]))
            })
        })?;
        let read = read(launcher, rest);
        // Without packages of its own, it uses those of a project.
        let is_of_project =
            launcher.words == ["run"] && !rest.iter().any(|it| it.starts_with("--with"));
        (launcher.program != "uv" || !is_of_project).then_some(read)
    }

    /// Returns the recipe of the environment for its packages.
    pub fn recipe(&self, search: &InterpreterSearch) -> Result<Recipe, RecipeError> {
        let (packages, version) = (self.packages.clone(), self.interpreter.as_deref());
        Recipe::of_packages(self.ecosystem, packages, version, search)
    }

    /// Finds its program in the environment with its packages.
    pub fn program_in(&self, environment: &PreparedEnvironment) -> Result<PathBuf, String> {
        let package = self.packages.first().map(String::as_str).unwrap_or_default();
        let name = match &self.program {
            Some(name) => name.clone(),
            None => environment.program_of_package(package)?,
        };
        let found = environment.program(&name);
        found.ok_or_else(|| format!("`{package}` has no program `{name}`"))
    }
}

impl ProjectCommand {
    /// Parses `uv run`. `None` if it is another command; an error if it uses unsupported options.
    pub fn of(command: &str, arguments: &[String]) -> Option<Result<Self, String>> {
        let program = command.rsplit('/').next().unwrap_or(command);
        let is_run = program == "uv" && arguments.iter().any(|it| it == "run");
        let has_packages = PackageCommand::of(command, arguments).is_some();
        (is_run && !has_packages).then(|| Self::read(arguments))
    }

    fn read(arguments: &[String]) -> Result<Self, String> {
        let (mut directory, mut has_run) = (".".to_owned(), false);
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            let (option, value) =
                word.split_once('=').map_or((word.as_str(), None), |it| (it.0, Some(it.1)));
            match option {
                "run" if !has_run => has_run = true,
                "--directory" | "--project" => {
                    let value = value.map(str::to_owned).or_else(|| words.next().cloned());
                    directory = value.ok_or_else(|| format!("`{option}` of `uv` needs a value"))?;
                }
                "--" => {}
                flag if UVX.contains(&flag) && value.is_none() => {}
                option if option.starts_with('-') => {
                    return Err(format!("`{option}` of `uv` is not supported"));
                }
                _ if !has_run => return Err(format!("`uv {word}` is not supported")),
                _ => return Ok(Self::running(directory, word, words.cloned().collect())),
            }
        }
        Err("`uv run` has no program".to_owned())
    }

    fn running(directory: String, word: &str, arguments: Vec<String>) -> Self {
        match word.ends_with(".py") {
            true => {
                let arguments = std::iter::once(word.to_owned()).chain(arguments).collect();
                Self { directory, program: "python".to_owned(), arguments }
            }
            false => Self { directory, program: word.to_owned(), arguments },
        }
    }
}

fn read(launcher: &Launcher, arguments: &[String]) -> Result<PackageCommand, String> {
    let Launcher { program, ecosystem, .. } = launcher;
    let (mut from, mut with, mut interpreter) = (Vec::new(), Vec::new(), None);
    let mut words = arguments.iter();
    let first = loop {
        let Some(word) = words.next() else { break None };
        if word == "--" {
            break words.next();
        }
        if !word.starts_with('-') {
            break Some(word);
        }
        let (option, value) = match word.split_once('=') {
            Some((option, value)) => (option, Some(value.to_owned())),
            None => (word.as_str(), None),
        };
        if launcher.flags.contains(&option) && value.is_none() {
            continue;
        }
        let is_known = [launcher.from, launcher.with, launcher.interpreter];
        if !is_known.iter().any(|it| it.contains(&option)) {
            return Err(format!("`{option}` of `{program}` is not supported"));
        }
        let value = value.or_else(|| words.next().cloned()).filter(|it| !it.is_empty());
        let value = value.ok_or_else(|| format!("`{option}` of `{program}` needs a value"))?;
        if launcher.from.contains(&option) {
            from.push(value);
        } else if launcher.with.contains(&option) {
            with.extend(value.split(',').map(|it| it.trim().to_owned()));
        } else {
            interpreter = Some(value);
        }
    };
    let arguments: Vec<String> = words.cloned().collect();
    let first = first.ok_or_else(|| format!("`{program}` has no package"))?;
    let (packages, named) = match from.is_empty() {
        true => (vec![first.clone()], None),
        false => (from, Some(first.clone())),
    };
    let (named, arguments) = match named {
        Some(script) if script.ends_with(".py") => {
            (Some("python".to_owned()), std::iter::once(script).chain(arguments).collect())
        }
        named => (named, arguments),
    };
    if let Some(named) = named.as_ref().filter(|it| it.contains('/') || it.starts_with('.')) {
        return Err(format!("`{named}` is not the name of a program"));
    }
    let packages = packages.iter().chain(&with).map(|it| match ecosystem {
        Ecosystem::Python => python_package(it),
        _ => node_package(it),
    });
    let packages = packages.collect::<Result<Vec<_>, _>>()?;
    let own = match (ecosystem, packages.first()) {
        (Ecosystem::Python, Some(package)) => Some(python_name(package).to_owned()),
        _ => None,
    };
    let ecosystem = *ecosystem;
    Ok(PackageCommand { ecosystem, packages, program: named.or(own), interpreter, arguments })
}

/// Parses a package of a Node registry: a name with an optional scope and version.
fn node_package(text: &str) -> Result<String, String> {
    let (scope, rest) = match text.strip_prefix('@') {
        Some(rest) => {
            rest.split_once('/').map_or((Some(""), rest), |(scope, rest)| (Some(scope), rest))
        }
        None => (None, text),
    };
    let (name, version) = rest.split_once('@').map_or((rest, None), |it| (it.0, Some(it.1)));
    let is_package = scope.is_none_or(is_name)
        && is_name(name)
        && version.is_none_or(|it: &str| {
            !it.is_empty()
                && it.chars().all(|c: char| c.is_ascii_alphanumeric() || "-._+^~<>=*| ".contains(c))
        });
    if is_package && text.len() <= LENGTH {
        Ok(text.to_owned())
    } else {
        Err(not_in_registry(text))
    }
}

/// Whether a text is the name or the scope of a package of Node.
fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_.~".contains(c))
}

/// Parses a package of a Python registry as in PEP 508: `name@1.2`, the syntax of `uvx`, becomes
/// `name==1.2`.
fn python_package(text: &str) -> Result<String, String> {
    let name = python_name(text);
    let mut rest = &text[name.len()..];
    let mut package = name.to_owned();
    if let Some((extras, behind)) = rest.strip_prefix('[').and_then(|it| it.split_once(']')) {
        if !extras.chars().all(|c: char| c.is_ascii_alphanumeric() || "-_., ".contains(c)) {
            return Err(not_in_registry(text));
        }
        package = format!("{name}[{extras}]");
        rest = behind;
    }
    let has_name = name.starts_with(|c: char| c.is_ascii_alphanumeric());
    let package = match rest.strip_prefix('@') {
        _ if !has_name || text.len() > LENGTH => None,
        _ if rest.is_empty() => Some(package),
        Some("latest") => Some(package),
        Some(version) => is_version(version).then(|| format!("{package}=={version}")),
        None => rest
            .split(',')
            .all(|it: &str| {
                let version = it.trim().trim_start_matches(['<', '>', '=', '!', '~']);
                version.len() < it.trim().len() && is_version(version.trim())
            })
            .then(|| format!("{package}{rest}")),
    };
    package.ok_or_else(|| not_in_registry(text))
}

/// Whether a text is a version of a Python package.
fn is_version(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "-._+!*".contains(c))
}

/// Returns the name at the start of a Python requirement.
fn python_name(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && !"-_.".contains(c));
    &text[..end.unwrap_or(text.len())]
}

/// The maximum length of a package.
const LENGTH: usize = 200;

fn not_in_registry(text: &str) -> String {
    format!("`{text}` is not a package of a registry")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A command line, its packages, its program and its arguments.
    type Row =
        (&'static str, &'static [&'static str], Option<&'static str>, &'static [&'static str]);

    fn of(line: &str) -> Option<Result<PackageCommand, String>> {
        let mut words = line.split(' ').map(str::to_owned);
        let command = words.next().unwrap();
        PackageCommand::of(&command, &words.collect::<Vec<_>>())
    }

    #[test]
    fn the_ways_to_run_a_package_come_to_packages_a_program_and_arguments() {
        let table: &[Row] = &[
            (
                "npx -y @modelcontextprotocol/server-filesystem /a b",
                &["@modelcontextprotocol/server-filesystem"],
                None,
                &["/a", "b"],
            ),
            ("npx --yes server@1.2.3 --port 1 -y", &["server@1.2.3"], None, &["--port", "1", "-y"]),
            ("npx -y @a/b@latest", &["@a/b@latest"], None, &[]),
            ("npx -p pkg -p other cmd x", &["pkg", "other"], Some("cmd"), &["x"]),
            ("npx -y --package=@a/b@^1 -- cmd -x", &["@a/b@^1"], Some("cmd"), &["-x"]),
            ("/usr/bin/npx -y pkg", &["pkg"], None, &[]),
            ("npm exec --yes -- pkg -x", &["pkg"], None, &["-x"]),
            ("pnpm dlx pkg a", &["pkg"], None, &["a"]),
            ("pnpm --package=pkg dlx cmd", &[], None, &[]),
            ("pnpm dlx --package=pkg cmd", &["pkg"], Some("cmd"), &[]),
            ("bunx --bun pkg", &["pkg"], None, &[]),
            ("bun x pkg", &["pkg"], None, &[]),
            ("yarn dlx -q pkg", &["pkg"], None, &[]),
            (
                "uvx mcp-server-git --repository .",
                &["mcp-server-git"],
                Some("mcp-server-git"),
                &["--repository", "."],
            ),
            ("uvx mcp-server-git@latest", &["mcp-server-git"], Some("mcp-server-git"), &[]),
            ("uvx pkg@1.2", &["pkg==1.2"], Some("pkg"), &[]),
            (
                "uvx --from pkg[cli]>=1,<2 cmd --from x",
                &["pkg[cli]>=1,<2"],
                Some("cmd"),
                &["--from", "x"],
            ),
            ("uvx --with a,b --with c pkg", &["pkg", "a", "b", "c"], Some("pkg"), &[]),
            ("uv tool run --from=pkg cmd", &["pkg"], Some("cmd"), &[]),
            (
                "uv run --with mcp[cli] mcp run server.py",
                &["mcp[cli]"],
                Some("mcp"),
                &["run", "server.py"],
            ),
            (
                "uv run --with a --with b /x/server.py y",
                &["a", "b"],
                Some("python"),
                &["/x/server.py", "y"],
            ),
            ("pipx run --no-cache pkg==1.0 x", &["pkg==1.0"], Some("pkg"), &["x"]),
            ("pipx run --spec pkg cmd", &["pkg"], Some("cmd"), &[]),
        ];
        for (line, packages, program, arguments) in table {
            let found = of(line);
            if packages.is_empty() {
                assert_eq!(found, None, "{line}");
                continue;
            }
            let found = found.unwrap_or_else(|| panic!("{line}")).unwrap();
            assert_eq!(found.packages, *packages, "{line}");
            assert_eq!(found.program.as_deref(), *program, "{line}");
            assert_eq!(found.arguments, *arguments, "{line}");
        }
        let found = of("uvx --python 3.12 pkg").unwrap().unwrap();
        assert_eq!(
            (found.ecosystem, found.interpreter.as_deref()),
            (Ecosystem::Python, Some("3.12"))
        );
    }

    #[test]
    fn uv_runs_what_the_environment_of_a_project_has() {
        let of = |line: &str| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            ProjectCommand::of(&words[0], &words[1..])
        };
        let table: &[(&str, [&str; 2], &[&str])] = &[
            ("uv --directory /a run server.py x", ["/a", "python"], &["server.py", "x"]),
            ("uv run --directory=/a server", ["/a", "server"], &[]),
            ("uv run --project /a -- python -m server", ["/a", "python"], &["-m", "server"]),
            ("uv run --frozen server --directory b", [".", "server"], &["--directory", "b"]),
        ];
        for (line, [directory, program], arguments) in table {
            let found = of(line).unwrap_or_else(|| panic!("{line}")).unwrap();
            assert_eq!((&*found.directory, &*found.program), (*directory, *program), "{line}");
            assert_eq!(found.arguments, *arguments, "{line}");
        }
        assert_eq!(of("uvx run"), None);
        assert_eq!(of("uv pip install x"), None);
        assert_eq!(of("uv run --with mcp server"), None);
        for line in
            ["uv run", "uv run --directory", "uv run --index-url https://x y", "uv sync run"]
        {
            assert!(of(line).unwrap().is_err(), "{line}");
        }
    }

    #[test]
    fn what_fetches_nothing_is_none_of_them() {
        for line in [
            "node server.js",
            "python -m pkg",
            "uv run x.py",
            "npm start",
            "pipx list",
            "uv tool list",
            "x",
        ] {
            assert_eq!(of(line), None, "{line}");
        }
    }

    #[test]
    fn what_is_no_package_of_a_registry_is_refused() {
        for line in [
            "npx",
            "npx -y",
            "npx -p",
            "npx --package= x",
            "npx -p pkg",
            "npx -c pkg",
            "npx --registry https://evil.example pkg",
            "npx --registry=https://evil.example pkg",
            "npx github:a/b",
            "npx a/b",
            "npx ./a",
            "npx ../a",
            "npx /a",
            "npx @a",
            "npx @/b",
            "npx file:a",
            "npx pkg@file:a",
            "npx pkg@git+https://x/y",
            "npx pkg@",
            "npx https://x/y.tgz",
            "npx --node-options=--require=./x pkg",
            "npx -p pkg ../../bin/sh",
            "npx -p pkg ./x",
            "npx $(x)",
            "uvx --from git+https://github.com/a/b cmd",
            "uvx --from ./a cmd",
            "uvx --index-url https://evil.example pkg",
            "uvx --default-index=https://evil.example pkg",
            "uvx pkg@https://x/y.whl",
            "uvx pkg@",
            "uvx pkg=",
            "uvx pkg==",
            "uvx pkg>1;x",
            "uvx pkg[a/b]",
            "uvx --with ,x pkg",
            "uvx --with-editable . pkg",
            "uvx -x",
            "pipx run --pip-args=--index-url=x pkg",
            "pipx run https://x/y.py",
            &format!("npx {}", "a".repeat(300)),
        ] {
            assert!(of(line).unwrap_or_else(|| panic!("{line}")).is_err(), "{line}");
        }
    }
}
