//! Package managers: the choice of one for an environment, and the installation with it.

use std::{
    collections::BTreeMap,
    fmt, fs,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    recipe::{PACKAGE, Recipe},
    store::LockedPackage,
};
use crate::{
    digest::file_digest,
    environment::{Ecosystem, InterpreterSearch},
};

/// A program that installs packages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum PackageManager {
    /// `uv`.
    Uv,
    /// `pip`, in a virtual environment.
    Pip,
    /// `npm`.
    Npm,
    /// `pnpm`.
    Pnpm,
    /// `bun`.
    Bun,
    /// `deno`.
    Deno,
}

/// The properties of a package manager.
#[derive(Debug)]
struct Facts {
    manager: PackageManager,
    ecosystem: Ecosystem,
    name: &'static str,
    /// The lock files that it reads; it writes the first.
    locks: &'static [&'static str],
    /// The shell script that installs. Everything that varies is passed in variables.
    script: &'static str,
}

/// The package managers, in order of preference if no lock file decides.
const MANAGERS: &[Facts] = &[
    Facts {
        manager: PackageManager::Uv,
        ecosystem: Ecosystem::Python,
        name: "uv",
        locks: &["uv.lock"],
        script: UV,
    },
    Facts {
        manager: PackageManager::Pip,
        ecosystem: Ecosystem::Python,
        name: "pip",
        locks: &[],
        script: PIP,
    },
    Facts {
        manager: PackageManager::Npm,
        ecosystem: Ecosystem::Node,
        name: "npm",
        locks: &["package-lock.json", "npm-shrinkwrap.json"],
        script: NPM,
    },
    Facts {
        manager: PackageManager::Pnpm,
        ecosystem: Ecosystem::Node,
        name: "pnpm",
        locks: &["pnpm-lock.yaml"],
        script: PNPM,
    },
    Facts {
        manager: PackageManager::Bun,
        ecosystem: Ecosystem::Node,
        name: "bun",
        locks: &["bun.lock", "bun.lockb"],
        script: BUN,
    },
    Facts {
        manager: PackageManager::Deno,
        ecosystem: Ecosystem::Deno,
        name: "deno",
        locks: &["deno.lock"],
        script: DENO,
    },
];

// Only wheels are allowed unless packages may run scripts, so no code of a package runs here.
const PIP: &str = r#"
if "$INTERPRETER" -I -m pip --python "$INTERPRETER" --version > "$TMPDIR/version" 2>&1; then
    "$INTERPRETER" -I -m venv --without-pip "$TREE"
    python="$INTERPRETER"
    for_tree=yes
else
    "$INTERPRETER" -I -m venv "$TREE"
    python="$TREE/bin/python"
    for_tree=
fi
pip() {
    "$python" -I -m pip ${for_tree:+--python "$TREE/bin/python"} \
        --disable-pip-version-check --no-input --no-color --no-cache-dir "$@"
}
if [ -z "$OFFLINE" ]; then
    set -- --index-url "$INDEX" ${LOCKED:+--require-hashes --no-deps} -r "$REQUIREMENTS"
    set -- ${CERTIFICATES:+--cert "$CERTIFICATES"} ${PLAIN_HOST:+--trusted-host "$PLAIN_HOST"} "$@"
    if [ -n "$INSTALL_SCRIPTS" ]; then
        pip wheel --wheel-dir "$ARTIFACTS" "$@"
    else
        pip download --only-binary=:all: --dest "$ARTIFACTS" "$@"
    fi
fi
pip install --quiet --no-index --find-links "$ARTIFACTS" ${LOCKED:+--require-hashes --no-deps} -r "$REQUIREMENTS"
"#;

const UV: &str = r#"
uv() {
    "$PROGRAM" --no-config --color never --cache-dir "$ARTIFACTS" ${OFFLINE:+--offline} "$@"
}
export UV_PYTHON_DOWNLOADS=never UV_NO_PROGRESS=1
uv venv --quiet --python "$INTERPRETER" "$TREE"
set -- --python "$TREE/bin/python" --default-index "$INDEX" ${PLAIN_HOST:+--allow-insecure-host "$PLAIN_HOST"}
if [ -z "$INSTALL_SCRIPTS" ]; then
    set -- --no-build "$@"
fi
if [ -n "$LOCKED" ]; then
    cp "$REQUIREMENTS" "$LOCK"
elif [ -e "$PROJECT/uv.lock" ]; then
    uv export --quiet --frozen --no-dev --no-emit-project --no-header --no-annotate \
        --project "$PROJECT" --python "$INTERPRETER" -o "$LOCK" > "$TMPDIR/exported"
else
    uv pip compile --quiet --generate-hashes --no-header --no-annotate "$@" -o "$LOCK" "$REQUIREMENTS" > "$TMPDIR/compiled"
fi
uv pip install --require-hashes --no-deps --link-mode copy --compile-bytecode "$@" -r "$LOCK"
"#;

const NPM: &str = r#"
cd "$TREE"
verb=install
if [ -n "$LOCKED" ]; then verb=ci; fi
"$PROGRAM" $verb --omit=dev --no-audit --no-fund --no-update-notifier --logs-max=0 \
    --registry="$INDEX" --cache="$ARTIFACTS" --globalconfig="$TMPDIR/npmrc" --loglevel=http \
    ${CERTIFICATES:+--cafile="$CERTIFICATES"} ${OFFLINE:+--offline} $NO_INSTALL_SCRIPTS
"#;

const PNPM: &str = r#"
cd "$TREE"
"$PROGRAM" install --prod --reporter=append-only ${LOCKED:+--frozen-lockfile} \
    --registry="$INDEX" --store-dir="$ARTIFACTS/store" --config.cache-dir="$ARTIFACTS/cache" \
    --config.node-linker=hoisted \
    --config.package-import-method=copy ${CERTIFICATES:+--config.cafile="$CERTIFICATES"} \
    ${OFFLINE:+--offline} $NO_INSTALL_SCRIPTS
"#;

const BUN: &str = r#"
cd "$TREE"
"$PROGRAM" install --omit=dev --no-progress ${LOCKED:+--frozen-lockfile} --save-text-lockfile \
    --registry="$INDEX" --cache-dir="$ARTIFACTS" --backend=copyfile \
    ${CERTIFICATES:+--cafile="$CERTIFICATES"} $NO_INSTALL_SCRIPTS
"#;

const DENO: &str = r#"
cd "$TREE"
export DENO_DIR="$ARTIFACTS" DENO_NO_UPDATE_CHECK=1 NPM_CONFIG_REGISTRY="$INDEX"
if [ -z "$OFFLINE" ]; then
    "$PROGRAM" cache --quiet --no-config --lock="$TREE/deno.lock" ${LOCKED:+--frozen} \
        ${CERTIFICATES:+--cert "$CERTIFICATES"} "$TREE/imports.ts"
fi
cp -R "$ARTIFACTS" "$TREE/deno"
# Scripts look for packages as if they came from the usual registry.
usual="$TREE/deno/npm/registry.npmjs.org"
if [ ! -e "$usual" ]; then
    for registry in "$TREE/deno/npm/"*; do
        if [ -d "$registry" ]; then mv "$registry" "$usual"; fi
    done
fi
"#;

/// A package manager that is installed.
#[derive(Debug)]
pub(super) struct Installer {
    facts: &'static Facts,
    program: PathBuf,
    /// Paths that it has to read, besides the system's.
    pub(super) reads: Vec<PathBuf>,
}

impl Installer {
    /// Chooses the package manager for an environment: that of the lock file if it is installed,
    /// else the first that is.
    pub(super) fn choose(recipe: &Recipe, search: &InterpreterSearch) -> Option<Self> {
        let able: Vec<Self> = MANAGERS
            .iter()
            .filter(|it| it.ecosystem == recipe.ecosystem)
            .filter_map(|it| Self::find(it, recipe, search))
            .collect();
        let at = able
            .iter()
            .position(|it: &Self| it.facts.locks.iter().any(|it| recipe.lock_file(it).is_some()))
            .unwrap_or(0);
        able.into_iter().nth(at)
    }

    fn find(facts: &'static Facts, recipe: &Recipe, search: &InterpreterSearch) -> Option<Self> {
        match facts.manager {
            PackageManager::Pip | PackageManager::Deno => {
                Some(Self { facts, program: recipe.interpreter.clone(), reads: Vec::new() })
            }
            // Bun is used only if there is no Node.
            PackageManager::Npm | PackageManager::Pnpm if is_bun(&recipe.interpreter) => None,
            _ => {
                let program = search.find_installed(facts.name)?;
                let reads = package_folder(&program).unwrap_or_else(|| program.clone());
                Some(Self { facts, program, reads: vec![reads] })
            }
        }
    }

    pub(super) fn manager(&self) -> PackageManager {
        self.facts.manager
    }

    /// Returns the skill's own lock file that it installs from.
    pub(super) fn own_lock<'r>(&self, recipe: &'r Recipe) -> Option<(&'static str, &'r str)> {
        // `uv` creates its own from that of a project.
        let locks = self.facts.locks.iter().filter(|_| self.manager() != PackageManager::Uv);
        locks.copied().find_map(|it| Some((it, recipe.lock_file(it)?)))
    }

    /// Returns the shell script that installs.
    pub(super) fn script(&self) -> String {
        format!("set -eu\n{}", self.facts.script)
    }

    pub(super) fn program(&self) -> &Path {
        &self.program
    }

    /// Returns the files to write into the tree before the installation.
    pub(super) fn files(
        &self,
        recipe: &Recipe,
        lock: Option<&str>,
        with_guessed: bool,
    ) -> BTreeMap<String, String> {
        let mut files = BTreeMap::new();
        match self.facts.ecosystem {
            Ecosystem::Node => {
                files.insert(PACKAGE.to_owned(), recipe.package_json(with_guessed));
            }
            Ecosystem::Deno => {
                let installed = recipe.to_install(with_guessed);
                let imports =
                    installed.iter().map(|it| format!("import {};\n", Value::from(&**it)));
                files.insert("imports.ts".to_owned(), imports.collect());
            }
            Ecosystem::Python => return files,
        }
        let own = self.own_lock(recipe);
        let name = own.map_or(self.facts.locks[0], |it| it.0);
        let lock = lock.or(own.map(|it| it.1));
        files.extend(lock.map(|it| (name.to_owned(), it.to_owned())));
        files
    }

    /// Returns the resulting lock file: exact versions with hashes.
    pub(super) fn lock(&self, out: &Output<'_>) -> Result<String, String> {
        match self.manager() {
            PackageManager::Pip => list_wheels(out.artifacts),
            PackageManager::Uv => read_text(out.lock),
            manager => {
                let mut locks = self.facts.locks.iter().map(|it| out.tree.join(it));
                let path = locks.find(|it| it.is_file());
                let lock = read_text(&path.ok_or("it created no lock file")?)?;
                if manager == PackageManager::Npm {
                    check_hashes(&lock)?;
                }
                Ok(lock)
            }
        }
    }

    /// Refuses npm packages with other names than the requested ones, which a lock file can
    /// substitute.
    pub(super) fn check_names(&self, requirements: &[String], tree: &Path) -> Result<(), String> {
        if self.facts.ecosystem != Ecosystem::Node {
            return Ok(());
        }
        for requirement in requirements.iter().filter(|it| !it.contains("@npm:")) {
            let at = requirement.rfind('@').filter(|at| *at > 0).unwrap_or(requirement.len());
            let name = &requirement[..at];
            let found = npm_package(&tree.join("node_modules").join(name));
            if let Some(found) = found.filter(|it| it.name != name) {
                return Err(format!("`{name}` was installed as the package `{}`", found.name));
            }
        }
        Ok(())
    }

    /// Returns the installed packages.
    pub(super) fn packages(&self, lock: &str, tree: &Path) -> Vec<LockedPackage> {
        let mut packages = match self.facts.ecosystem {
            Ecosystem::Python => lock.lines().filter_map(parse_pinned).collect(),
            Ecosystem::Node => npm_packages(&tree.join("node_modules")),
            Ecosystem::Deno => deno_packages(lock),
        };
        packages.sort();
        packages.dedup();
        packages
    }
}

/// The paths of the results of an installation.
pub(super) struct Output<'o> {
    pub(super) tree: &'o Path,
    pub(super) artifacts: &'o Path,
    pub(super) lock: &'o Path,
}

/// The maximum size read of a file that an installation created.
const FILE: u64 = 32 * 1024 * 1024;
/// The maximum number of packages listed for an environment.
const LISTED: usize = 20_000;

fn is_bun(interpreter: &Path) -> bool {
    interpreter.file_name().is_some_and(|it| it == "bun")
}

/// Returns the folder of the npm package that a file belongs to.
fn package_folder(program: &Path) -> Option<PathBuf> {
    program
        .ancestors()
        .find(|it| it.parent().is_some_and(|it| it.ends_with("node_modules")) && it.is_dir())
        .map(Path::to_owned)
}

fn read_text(path: &Path) -> Result<String, String> {
    super::store::read_text(path, FILE).map_err(|error| format!("{}: {error}", path.display()))
}

/// Returns the downloaded wheels, each as a requirement with its hash.
fn list_wheels(artifacts: &Path) -> Result<String, String> {
    let mut lines = Vec::new();
    for entry in fs::read_dir(artifacts).map_err(|it| it.to_string())?.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let mut parts = name.split('-');
        let (Some(package), Some(version), true) =
            (parts.next(), parts.next(), name.ends_with(".whl"))
        else {
            return Err(format!("`{name}` is not a wheel"));
        };
        let hash = file_digest(&entry.path()).map_err(|error| format!("`{name}`: {error}"))?;
        let package = package.to_ascii_lowercase().replace('_', "-");
        lines.push(format!("{package}=={version} --hash=sha256:{hash}\n"));
    }
    lines.sort();
    Ok(lines.concat())
}

/// Parses a line of a Python lock file: `pypdf==4.1 …`.
fn parse_pinned(line: &str) -> Option<LockedPackage> {
    let (name, rest) = line.split_once("==")?;
    let version = rest.split([' ', ';', '\\']).next()?;
    let is_name = name.chars().all(|it| it.is_ascii_alphanumeric() || "-_.[],".contains(it));
    is_name.then(|| LockedPackage { name: name.to_owned(), version: version.to_owned() })
}

/// Refuses an npm lock file that lacks the hash of a package.
fn check_hashes(lock: &str) -> Result<(), String> {
    let lock: Value = serde_json::from_str(lock).map_err(|it| it.to_string())?;
    let packages = lock["packages"].as_object().ok_or("`package-lock.json` lists no packages")?;
    for (path, package) in packages.iter().filter(|it| !it.0.is_empty()) {
        let is_inside = package["inBundle"] == true || package["link"] == true;
        if !is_inside && package["integrity"].as_str().is_none() {
            return Err(format!("`package-lock.json` has no hash for `{path}`"));
        }
    }
    Ok(())
}

/// Returns the packages in a `node_modules` folder.
fn npm_packages(folder: &Path) -> Vec<LockedPackage> {
    let (scopes, plain): (Vec<_>, Vec<_>) = subfolders(folder)
        .partition(|it| it.file_name().is_some_and(|it| it.as_encoded_bytes().starts_with(b"@")));
    let all = plain.into_iter().chain(scopes.iter().flat_map(|it| subfolders(it)));
    all.filter_map(|it| npm_package(&it)).collect()
}

fn subfolders(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|it| it.path()).take(LISTED)
}

/// Returns the npm package in a folder.
fn npm_package(folder: &Path) -> Option<LockedPackage> {
    let about: Value = serde_json::from_str(&read_text(&folder.join(PACKAGE)).ok()?).ok()?;
    let (name, version) = (about["name"].as_str()?, about["version"].as_str()?);
    Some(LockedPackage { name: name.to_owned(), version: version.to_owned() })
}

/// Returns the packages in a Deno lock file: `"npm": {"chalk@5.3.0": …}`.
fn deno_packages(lock: &str) -> Vec<LockedPackage> {
    let lock: Value = serde_json::from_str(lock).unwrap_or_default();
    ["npm", "jsr"]
        .iter()
        .flat_map(|registry| lock[registry].as_object().into_iter().flatten())
        .filter_map(|(key, _)| {
            // A leading `@` belongs to a scope; peer packages follow after `_`.
            let (name, version) = key.split_at(key.get(1..)?.find('@')? + 1);
            let version = version[1..].split('_').next()?;
            Some(LockedPackage { name: name.to_owned(), version: version.to_owned() })
        })
        .collect()
}

impl PackageManager {
    /// Returns its name.
    pub fn as_str(self) -> &'static str {
        MANAGERS.iter().find(|it| it.manager == self).map_or("", |it| it.name)
    }
}

impl fmt::Display for PackageManager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pinned_lines_are_packages() {
        let package = |line| parse_pinned(line).map(|it| format!("{} {}", it.name, it.version));
        assert_eq!(package("pypdf==4.1 --hash=sha256:00").as_deref(), Some("pypdf 4.1"));
        assert_eq!(package("a==1 ; python_version > '3' \\").as_deref(), Some("a 1"));
        assert_eq!(package("    --hash=sha256:=="), None);
        assert_eq!(package("# x"), None);
    }

    #[test]
    fn a_lock_without_hashes_is_refused() {
        let lock = r#"{"packages": {"": {}, "node_modules/a": {"version": "1"}}}"#;
        assert_eq!(
            check_hashes(lock),
            Err("`package-lock.json` has no hash for `node_modules/a`".to_owned())
        );
        assert!(check_hashes("{}").is_err());
        assert!(check_hashes(&lock.replace(r#""1""#, r#""1", "integrity": "sha512-x""#)).is_ok());
    }

    #[test]
    fn packages_of_deno_have_names_and_versions() {
        let lock = r#"{"npm": {"@a/b@1.0.0_c@2.0.0": {}}, "jsr": {"@std/path@1.1.0": {}}}"#;
        let names: Vec<_> = deno_packages(lock).into_iter().map(|it| it.name).collect();
        assert_eq!(names, ["@a/b", "@std/path"]);
    }
}
