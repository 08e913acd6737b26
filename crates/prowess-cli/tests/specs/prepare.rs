//! The packages of scripts: installed from a registry on this machine by the real pip and npm.

use std::{
    collections::BTreeMap,
    fs,
    io::Write as _,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{Arc, LazyLock, Mutex},
    thread,
};

use prowess_runtime::sandbox::SandboxLevel;
use serde_json::{Value as Json, json};

use crate::{
    ask::ask,
    model_server::{Answer, ModelServer},
    server::Server,
    world::{Ran, SKILLS, World, level, program, until},
};

/// A registry for Python and npm on this machine.
struct Registry {
    server: Server,
    files: Arc<Mutex<BTreeMap<String, Vec<u8>>>>,
}

impl Registry {
    fn new() -> Self {
        let files: Arc<Mutex<BTreeMap<String, Vec<u8>>>> = Arc::default();
        let own = files.clone();
        let server = Server::new(move |asked, client| {
            let path = asked.line.split(' ').nth(1).unwrap_or_default().replace("%2f", "/");
            let found = own.lock().unwrap().get(&path).cloned();
            let kind = if path.starts_with("/simple/") { "text/html" } else { "application/json" };
            let (status, body) = match found {
                Some(body) => ("200 OK", body),
                None => ("404 Not Found", Vec::new()),
            };
            let length = body.len();
            write!(
                client,
                "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
            )?;
            client.write_all(&body)
        });
        Self { server, files }
    }

    fn serve(&self, path: &str, body: impl Into<Vec<u8>>) {
        self.files.lock().unwrap().insert(path.to_owned(), body.into());
    }

    /// Adds a wheel with one module that has a function `word`, and may depend on others.
    fn python(&self, name: &str, word: &str, needs: &[&str]) {
        self.list_file(name, &format!("{name}-1.0-py3-none-any.whl"), wheel(name, word, 0, needs));
    }

    /// Adds a file of a Python package.
    fn list_file(&self, name: &str, file: &str, bytes: Vec<u8>) {
        let address = self.server.url(&format!("/files/{file}"));
        self.serve(&format!("/simple/{name}/"), format!("<a href=\"{address}\">{file}</a>"));
        self.serve(&format!("/files/{file}"), bytes);
    }

    /// Adds an npm package whose module is a word.
    fn npm(&self, name: &str, package: Json, module: &str) {
        let mut package = package;
        package["name"] = json!(name);
        package["version"] = json!("1.0.0");
        let archive = tarball(&package.to_string(), module);
        let path = format!("/{name}/-/{name}-1.0.0.tgz");
        package["dist"] = json!({
            "tarball": self.server.url(&path),
            "integrity": integrity(&archive),
        });
        let about = json!({
            "name": name,
            "dist-tags": { "latest": "1.0.0" },
            "versions": { "1.0.0": package },
        });
        self.serve(&path, archive);
        self.serve(&format!("/{name}"), about.to_string());
    }

    /// Returns the hash of an npm package for lock files.
    fn integrity(&self, name: &str) -> String {
        integrity(&self.files.lock().unwrap()[&format!("/{name}/-/{name}-1.0.0.tgz")])
    }

    /// Returns the number of downloads of package files.
    fn downloads(&self) -> usize {
        let is_file = |line: &str| line.contains("/files/") || line.contains("/-/");
        self.server.asked().iter().filter(|it| is_file(&it.line)).count()
    }

    /// Returns the settings of a user with this registry.
    fn settings(&self) -> String {
        let (python, npm) = (self.server.url("/simple"), self.server.url("/"));
        format!("[prepare]\npython_index = \"{python}\"\nnpm_registry = \"{npm}\"\n")
    }

    /// Returns a world whose user has this registry, with a skill of these files.
    fn world(&self, files: &[(&str, &str)]) -> World {
        let world = World::new().skill("pdf", "Reads PDF files.");
        let world = world.file("home/.config/prowess/prowess.toml", self.settings());
        files
            .iter()
            .fold(world, |world, (path, text)| world.file(format!("skills/pdf/{path}"), text))
    }
}

fn python(script: &str, arguments: &[&str]) -> Vec<u8> {
    let mut command = Command::new("/usr/bin/python3");
    let output = command.args(["-I", "-c", script]).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// Returns a wheel whose module has a word, with this many bytes of padding.
fn wheel(name: &str, word: &str, padding: usize, needs: &[&str]) -> Vec<u8> {
    wheel_of(name, &format!("def word():\n    return {word:?}\n"), padding, needs)
}

/// Returns a wheel with this module, which may have a program `main`.
fn wheel_of(name: &str, module: &str, padding: usize, needs: &[&str]) -> Vec<u8> {
    let script = r#"
import io, sys, zipfile
name, module, padding, *needs = sys.argv[1:]
about = f"{name}-1.0.dist-info"
files = {
    f"{name}.py": module + '#' * int(padding),
    f"{about}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n" + "".join(f"Requires-Dist: {it}\n" for it in needs),
    f"{about}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    f"{about}/entry_points.txt": f"[console_scripts]\n{name}-say = {name}:word\n{name} = {name}:main\n",
}
files[f"{about}/RECORD"] = "".join(f"{it},,\n" for it in [*files, f"{about}/RECORD"])
made = io.BytesIO()
with zipfile.ZipFile(made, "w") as wheel:
    for path, text in files.items():
        wheel.writestr(zipfile.ZipInfo(path), text)
sys.stdout.buffer.write(made.getvalue())
"#;
    python(script, &[&[name, module, &padding.to_string()], needs].concat())
}

/// Returns the sources of a Python package that runs a shell command when it is built, and prints
/// which homes it sees.
fn sources(name: &str, line: &str) -> Vec<u8> {
    let script = r#"
import io, sys, tarfile
name, line = sys.argv[1:]
backend = '''
import os, zipfile
def build_wheel(folder, settings=None, metadata=None):
    os.system(LINE)
    file = "NAME-1.0-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(folder, file), "w") as wheel:
        about = "NAME-1.0.dist-info"
        homes = [it for it in ("/root", "/home") if os.path.exists(it) and os.listdir(it)]
        wheel.writestr("NAME.py", f"def word():\\n    return 'built, sees {homes}'\\n")
        wheel.writestr(about + "/METADATA", "Metadata-Version: 2.1\\nName: NAME\\nVersion: 1.0\\n")
        wheel.writestr(about + "/WHEEL", "Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr(about + "/RECORD", "")
    return file
'''.replace("NAME", name).replace("LINE", repr(line))
project = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n[project]\nname = "%s"\nversion = "1.0"\n' % name
info = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n"
made = io.BytesIO()
with tarfile.open(fileobj=made, mode="w:gz") as sources:
    for path, text in {"backend.py": backend, "pyproject.toml": project, "PKG-INFO": info}.items():
        file = tarfile.TarInfo(f"{name}-1.0/{path}")
        file.size = len(text.encode())
        sources.addfile(file, io.BytesIO(text.encode()))
sys.stdout.buffer.write(made.getvalue())
"#;
    python(script, &[name, line])
}

fn tarball(package: &str, module: &str) -> Vec<u8> {
    let script = r#"
import gzip, io, sys, tarfile
made = io.BytesIO()
with gzip.GzipFile(fileobj=made, mode="w", mtime=0) as packed, tarfile.open(fileobj=packed, mode="w") as archive:
    for path, text in (("package.json", sys.argv[1]), ("index.js", sys.argv[2])):
        file = tarfile.TarInfo("package/" + path)
        file.size = len(text.encode())
        file.mode = 0o644
        archive.addfile(file, io.BytesIO(text.encode()))
sys.stdout.buffer.write(made.getvalue())
"#;
    python(script, &[package, module])
}

fn integrity(bytes: &[u8]) -> String {
    let mut command = Command::new("/usr/bin/python3");
    let script = "import base64, hashlib, sys\nprint(base64.b64encode(hashlib.sha512(sys.stdin.buffer.read()).digest()).decode(), end='')";
    let mut child = command
        .args(["-I", "-c", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(bytes).unwrap();
    let output = child.wait_with_output().unwrap();
    format!("sha512-{}", String::from_utf8(output.stdout).unwrap())
}

/// Returns the directory of a package manager, which is fetched by the first test that needs it;
/// `None` if there is none for this machine.
fn package_manager(name: &str) -> Option<PathBuf> {
    let file = match name {
        "uv" => "uv/bin/uv",
        "pnpm" => "node_modules/.bin/pnpm",
        "bun" => "node_modules/@oven/bun-linux-x64/bin/bun",
        _ => "node_modules/@deno/linux-x64-glibc/deno",
    };
    let file = MANAGERS.join(file);
    file.exists().then(|| file.parent().unwrap().to_owned())
}

static MANAGERS: LazyLock<PathBuf> = LazyLock::new(|| {
    let from = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../specs/managers"));
    let target = Path::new(program()).ancestors().nth(2).unwrap();
    let [folder, making] = ["package-managers", "package-managers-new"].map(|it| target.join(it));
    let lock = |folder: &Path| fs::read(folder.join("package-lock.json")).ok();
    if lock(&folder) != lock(from) {
        for folder in [&folder, &making] {
            let _ = fs::remove_dir_all(folder);
        }
        fs::create_dir(&making).unwrap();
        for name in ["package.json", "package-lock.json"] {
            fs::copy(from.join(name), making.join(name)).unwrap();
        }
        let mut npm = Command::new("npm");
        npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"]);
        let mut pip = Command::new("/usr/bin/python3");
        pip.args(["-m", "pip", "install", "--quiet", "--target", "uv", "uv==0.9.7"]);
        for command in [&mut npm, &mut pip] {
            let output = command.current_dir(&making).output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        }
        fs::rename(making, &folder).unwrap();
    }
    folder.canonicalize().unwrap()
});

/// Returns the files below a folder, each with its content.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let entries = fs::read_dir(folder).unwrap().map(|it| it.unwrap().path());
    let all = entries.flat_map(|path| match path.is_dir() && !path.is_symlink() {
        true => files(&path),
        false => [(path.clone(), fs::read(path).unwrap_or_default())].into(),
    });
    all.collect()
}

/// Runs the program with a long timeout: installers are slow on a busy machine.
fn run(world: &World, arguments: &[&str]) -> Ran {
    let mut command = world.command(arguments.iter().chain(&SKILLS));
    let output = command.stdin(Stdio::null()).output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    Ran { code: output.status.code(), out: output.stdout, stderr }
}

/// Runs a script of the skill `pdf`; everything is approved, but nothing more is installed.
fn script(world: &World, path: &str) -> Ran {
    let ran = run(world, &["prepare", "--json"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    run(world, &["run", "pdf", "--script", path, "--yes"])
}

/// Prepares the skill `pdf`.
fn prepare(world: &World, arguments: &[&str]) -> Ran {
    run(world, &[&["prepare", "pdf", "--yes"], arguments].concat())
}

/// Returns the environments.
fn environments(world: &World) -> Vec<Json> {
    let ran = run(world, &["prepare", "--json"]);
    ran.json()["environments"].as_array().unwrap().clone()
}

/// Returns the folder of the only environment.
fn environment(world: &World) -> PathBuf {
    let key = environments(world)[0]["key"].as_str().unwrap().to_owned();
    store(world).join(key)
}

fn store(world: &World) -> PathBuf {
    world.path("home/.local/share/prowess/environments")
}

/// Returns the entries of the store, without its locks.
fn left(world: &World) -> Vec<String> {
    let entries = fs::read_dir(store(world)).into_iter().flatten().flatten();
    let names = entries.map(|it| it.file_name().into_string().unwrap());
    names.filter(|it| !it.starts_with('.')).collect()
}

fn assert_well(ran: &Ran) {
    assert_eq!(ran.code, Some(0), "{}\n{}", ran.stdout(), ran.stderr);
}

/// A script that prints the word of a package.
const SAY: &str = "import tiny\nprint(tiny.word())\n";
/// The files of a skill.
type Files<'a> = &'a [(&'a str, &'a str)];
const REQUIREMENTS: (&str, &str) = ("requirements.txt", "tiny>=1\n");

mod packages_are_installed_once_after_somebody_agrees {
    use super::*;

    #[test]
    #[cfg_attr(not(feature = "external"), ignore = "needs pip")]
    fn what_a_python_script_needs_is_installed_and_the_script_runs() {
        let registry = Registry::new();
        registry.python("tiny", "tiny", &["deep"]);
        registry.python("deep", "deep", &[]);
        let both = "import subprocess, tiny, deep\nprint(tiny.word(), deep.word())\nsubprocess.run(['tiny-say'], check=False)\n";
        let world = registry.world(&[REQUIREMENTS, ("scripts/say.py", both)]);
        let before = run(&world, &["show", "pdf", "--level", "metadata"]);
        assert!(before.stderr.contains("missing: tiny (requirements.txt:1)"), "{}", before.stderr);
        assert!(
            before.stderr.contains("`prowess prepare pdf --dir skills` installs"),
            "{}",
            before.stderr
        );
        let prepared = prepare(&world, &[]);
        assert_well(&prepared);
        assert!(
            prepared.stdout().contains("prepared pdf: 2 packages for python"),
            "{}",
            prepared.stdout()
        );
        let downloads = registry.downloads();
        assert_well(&prepare(&world, &[]));
        assert_eq!(registry.downloads(), downloads);
        drop(registry);
        let ran = script(&world, "scripts/say.py");
        assert_well(&ran);
        assert_eq!(ran.stdout(), "tiny deep\n");
        let after = run(&world, &["show", "pdf", "--level", "metadata"]);
        assert!(!after.stderr.contains("missing"), "{}", after.stderr);
        let record = &environments(&world)[0];
        assert_eq!(record["packages"][1], json!({ "name": "tiny", "version": "1.0" }));
        assert_eq!(record["used_by"][0][0], "pdf");
    }

    #[test]
    #[cfg_attr(not(feature = "external"), ignore = "needs npm")]
    fn what_a_node_script_needs_is_installed_and_the_script_runs() {
        let registry = Registry::new();
        registry.npm(
            "tiny",
            json!({ "dependencies": { "deep": "^1" } }),
            "module.exports = 'tiny ' + require('deep');",
        );
        registry.npm("deep", json!({}), "module.exports = 'deep';");
        let package = r#"{"dependencies": {"tiny": "^1.0.0"}}"#;
        let world = registry.world(&[
            ("package.json", package),
            ("scripts/say.js", "console.log(require('tiny'));\n"),
            ("scripts/say.mjs", "import tiny from 'tiny';\nconsole.log(tiny);\n"),
        ]);
        assert_well(&prepare(&world, &[]));
        drop(registry);
        for path in ["scripts/say.js", "scripts/say.mjs"] {
            let ran = script(&world, path);
            assert_well(&ran);
            assert_eq!(ran.stdout(), "tiny deep\n");
        }
        let lock = fs::read_to_string(environment(&world).join("lock")).unwrap();
        assert!(lock.contains("node_modules/deep") && lock.contains("sha512-"), "{lock}");
    }

    #[test]
    #[cfg_attr(not(feature = "external"), ignore = "needs npm")]
    fn every_package_manager_installs_what_it_is_for() {
        let registry = Registry::new();
        registry.python("tiny", "tiny", &["deep"]);
        registry.python("deep", "deep", &[]);
        registry.npm("tiny", json!({}), "module.exports = 'tiny';");
        let package = r#"{"name": "x", "dependencies": {"tiny": "^1.0.0"}}"#;
        let integrity = registry.integrity("tiny");
        let pnpm = format!(
            "lockfileVersion: '9.0'\n\nsettings:\n  autoInstallPeers: true\n  excludeLinksFromLockfile: false\n\n\
             importers:\n\n  .:\n    dependencies:\n      tiny:\n        specifier: ^1.0.0\n        version: 1.0.0\n\n\
             packages:\n\n  tiny@1.0.0:\n    resolution: {{integrity: {integrity}}}\n\nsnapshots:\n\n  tiny@1.0.0: {{}}\n"
        );
        let address = registry.server.url("/tiny/-/tiny-1.0.0.tgz");
        let bun = format!(
            r#"{{"lockfileVersion": 1, "workspaces": {{"": {{"name": "x", "dependencies": {{"tiny": "^1.0.0"}}}}}},
            "packages": {{"tiny": ["tiny@1.0.0", "{address}", {{}}, "{integrity}"]}}}}"#
        );
        let node = "console.log(require('tiny'));\n";
        let deno =
            "#!/usr/bin/env -S deno run\nimport tiny from 'npm:tiny@1';\nconsole.log(tiny);\n";
        let cases: [(&str, &str, Files<'_>); 4] = [
            ("uv", "say.py", &[REQUIREMENTS, ("say.py", SAY)]),
            (
                "pnpm",
                "say.js",
                &[("package.json", package), ("pnpm-lock.yaml", &pnpm), ("say.js", node)],
            ),
            ("bun", "say.js", &[("package.json", package), ("bun.lock", &bun), ("say.js", node)]),
            ("deno", "say.ts", &[("say.ts", deno)]),
        ];
        for (manager, path, files) in cases {
            let Some(bin) = package_manager(manager) else { continue };
            let world = registry.world(files);
            let run = |arguments: &[&str]| {
                let mut command = world.command(arguments.iter().chain(&SKILLS));
                let path = format!("{}:/usr/bin:/bin", bin.display());
                let output = command.env("PATH", path).stdin(Stdio::null()).output().unwrap();
                let stderr = String::from_utf8(output.stderr).unwrap();
                let ran = Ran { code: output.status.code(), out: output.stdout, stderr };
                assert_eq!(ran.code, Some(0), "{manager}: {}", ran.stderr);
                ran
            };
            let prepared = run(&["prepare", "pdf", "--yes"]);
            assert!(
                prepared.stdout().contains(&format!("with {manager}, ")),
                "{}",
                prepared.stdout()
            );
            assert_eq!(run(&["run", "pdf", "--script", path, "--yes"]).stdout(), "tiny\n");
            let asked = registry.server.connections();
            run(&["prepare", "pdf", "--offline"]);
            assert_eq!(run(&["run", "pdf", "--script", path]).stdout(), "tiny\n", "{manager}");
            assert_eq!(registry.server.connections(), asked, "{manager}");
        }
    }

    #[test]
    fn nothing_is_downloaded_before_somebody_agrees() {
        let registry = Registry::new();
        registry.python("tiny", "tiny", &[]);
        let world = registry.world(&[REQUIREMENTS, ("say.py", SAY)]);
        let nobody = run(&world, &["prepare", "pdf"]);
        assert_eq!(nobody.code, Some(2), "{}", nobody.stderr);
        assert!(nobody.stderr.contains("`--yes`"), "{}", nobody.stderr);
        let would = "it would install tiny>=1 from 127.0.0.1";
        assert!(nobody.stderr.contains(would), "{}", nobody.stderr);
        let no = world.run_at_terminal("n\n", "prepare pdf --dir skills");
        assert_eq!(no.code, Some(2), "{}", no.stdout());
        assert!(
            no.stdout().contains("install 1 package for `pdf` from 127.0.0.1"),
            "{}",
            no.stdout()
        );
        assert!(no.stdout().contains("tiny>=1"), "{}", no.stdout());
        assert_eq!(registry.server.connections(), 0);
        assert_eq!(left(&world), [""; 0]);
    }

    #[test]
    #[cfg_attr(not(feature = "external"), ignore = "needs pip")]
    fn running_a_script_offers_to_install_what_it_lacks() {
        let registry = Registry::new();
        registry.python("tiny", "tiny", &[]);
        let files = [REQUIREMENTS, ("say.py", SAY)];
        let world = registry.world(&files);
        let ran = run(&world, &["run", "pdf", "--script", "say.py", "--yes"]);
        assert_well(&ran);
        assert_eq!(ran.stdout(), "tiny\n");
        // If the script is approved and nobody can be asked, it runs without them.
        assert_well(&run(&world, &["prepare", "--clean", "--all"]));
        let ran = run(&world, &["run", "pdf", "--script", "say.py"]);
        assert_eq!(ran.code, Some(1), "{}", ran.stderr);
        let told = "not installed, because nobody could be asked: tiny>=1; `--yes` installs them without asking";
        assert!(ran.stderr.contains(told), "{}", ran.stderr);
        let ran = run(&world, &["run", "pdf", "--script", "say.py", "--no-install"]);
        assert!(!ran.stderr.contains("`--yes`"), "{}", ran.stderr);
        let ran = run(&world, &["run", "pdf", "--script", "say.py"]);
        assert!(
            ran.stderr.contains("`prowess prepare pdf --dir skills` installs"),
            "{}",
            ran.stderr
        );
        let world = registry.world(&files);
        let asked = world.run_at_terminal("n\nn\n", "run pdf --script say.py --dir skills");
        assert!(asked.stdout().contains("install 1 package for `pdf`"), "{}", asked.stdout());
        assert_eq!(left(&world), [""; 0]);
    }

    #[test]
    fn a_script_does_not_run_where_its_packages_could_not_be_installed() {
        let registry = Registry::new();
        let ours = "print('it ran')\nimport tiny\n";
        let world = registry.world(&[REQUIREMENTS, ("say.py", ours)]);
        let ran = run(&world, &["run", "pdf", "--script", "say.py", "--yes"]);
        assert_eq!((ran.code, ran.stdout()), (Some(1), ""), "{}", ran.stderr);
        assert!(ran.stderr.contains("failed to install the packages"), "{}", ran.stderr);
        assert!(ran.stderr.contains("`--no-install`"), "{}", ran.stderr);
        let ran = run(&world, &["run", "pdf", "--script", "say.py", "--yes", "--json"]);
        assert_eq!(ran.code, Some(1), "{}", ran.stderr);
        let error = ran.json()["error"].to_string();
        assert!(error.contains("failed to install the packages"), "{error}");
        let run = "run pdf --script say.py --dir skills";
        let asked = world.run_at_terminal("y\ny\n", run);
        assert_eq!(asked.code, Some(1), "{}", asked.stdout());
        assert!(!asked.stdout().contains("it ran\r\n"), "{}", asked.stdout());
        let asked = world.run_at_terminal("n\ny\n", run);
        assert_eq!(asked.code, Some(1), "{}", asked.stdout());
        assert!(!asked.stdout().contains("it ran\r\n"), "{}", asked.stdout());
        for words in ["`say.py` was not run", "`--no-install` runs it"] {
            assert!(asked.stdout().contains(words), "{words}: {}", asked.stdout());
        }
    }

    #[test]
    #[cfg_attr(not(feature = "external"), ignore = "needs pip")]
    fn a_script_is_offered_what_it_imports_itself() {
        let registry = Registry::new();
        registry.python("pypdf", "pypdf", &[]);
        registry.python("rich", "rich", &[]);
        let say = |name: &str| format!("import {name}\nprint({name}.word())\n");
        let (one, two) = (say("pypdf"), say("rich"));
        let world = registry.world(&[("one.py", &one), ("two.py", &two)]);
        let ran = run(&world, &["run", "pdf", "--script", "one.py", "--yes"]);
        assert_well(&ran);
        assert_eq!(ran.stdout(), "pypdf\n");
        assert_eq!(environments(&world)[0]["packages"].as_array().unwrap().len(), 1);
        let ran = run(&world, &["run", "pdf", "--script", "one.py"]);
        assert_eq!((ran.code, ran.stdout()), (Some(0), "pypdf\n"), "{}", ran.stderr);
        let prepared = prepare(&world, &[]);
        assert!(prepared.stdout().contains("2 packages"), "{}", prepared.stdout());
        assert_eq!(script(&world, "two.py").stdout(), "rich\n");
    }

    #[test]
    fn nothing_is_offered_or_installed_with_no_install() {
        let registry = Registry::new();
        registry.python("tiny", "tiny", &[]);
        let ours = "print('it ran', flush=True)\nimport tiny\n";
        let world = registry.world(&[REQUIREMENTS, ("say.py", ours)]);
        let ran = run(&world, &["run", "pdf", "--script", "say.py", "--yes", "--no-install"]);
        assert_eq!((ran.code, ran.stdout()), (Some(1), "it ran\n"), "{}", ran.stderr);
        let world = registry.world(&[REQUIREMENTS, ("say.py", ours)]);
        let asked =
            world.run_at_terminal("y\n", "run pdf --script say.py --dir skills --no-install");
        assert!(asked.stdout().contains("it ran\r\n"), "{}", asked.stdout());
        assert!(!asked.stdout().contains("install 1 package"), "{}", asked.stdout());
        assert_eq!(registry.server.connections(), 0);
        assert_eq!(left(&world), [""; 0]);
    }

    #[test]
    fn what_an_installer_repeats_is_shown_once() {
        let registry = Registry::new();
        let retry = "WARNING: Retrying (Retry(total=$at, connect=None)) after <object at 0x7f$at>";
        let uv = format!(
            "#!/bin/sh\nfor at in 1 2 3 4 5 6; do echo \"{retry}\"; echo 'warning: trying again'; echo \"try $at\"; done\nexit 1\n"
        );
        let world = registry.world(&[REQUIREMENTS, ("say.py", SAY)]).file("bin/uv", uv);
        fs::set_permissions(world.path("bin/uv"), fs::Permissions::from_mode(0o755)).unwrap();
        for more in [&[][..], &["-v"]] {
            let arguments = [&["prepare", "pdf", "--yes"], more, &SKILLS].concat();
            let mut command = world.command(arguments);
            let path = format!("{}:/usr/bin:/bin", world.path("bin").display());
            let output = command.env("PATH", path).stdin(Stdio::null()).output().unwrap();
            let stderr = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(1), "{stderr}");
            let count = |line: &str| stderr.lines().filter(|it| it.trim() == line).count();
            assert_eq!(count("warning: trying again"), 1, "{more:?}: {stderr}");
            assert_eq!((count("try 1"), count("try 5")), (1, 1), "{more:?}: {stderr}");
            assert_eq!(stderr.matches("WARNING: Retrying").count(), 1, "{more:?}: {stderr}");
        }
    }

    #[test]
    #[cfg_attr(not(feature = "external"), ignore = "needs npm")]
    fn what_cannot_be_installed_is_told_with_the_reason() {
        let registry = Registry::new();
        registry.npm("tiny", json!({}), "module.exports = 'tiny';");
        let world = registry.world(&[("requirements.txt", "./vendor/x\n"), ("say.py", SAY)]);
        let ran = prepare(&world, &[]);
        assert_eq!(ran.code, Some(1), "{}", ran.stderr);
        assert!(ran.stderr.contains("./vendor/x: it is a file or folder"), "{}", ran.stderr);
        assert!(!ran.stderr.contains("needs no packages"), "{}", ran.stderr);
        let package = r#"{"dependencies": {"tiny": "^1.0.0"}}"#;
        for lock in ["{broken", r#"{"name": "x", "lockfileVersion": 3, "packages": {}}"#] {
            let world = registry.world(&[
                ("package.json", package),
                ("package-lock.json", lock),
                ("say.js", "require('tiny')\n"),
            ]);
            let ran = prepare(&world, &[]);
            assert_eq!(ran.code, Some(1), "{}", ran.stderr);
            assert!(ran.stderr.contains("hint: the lock file is broken, or"), "{}", ran.stderr);
            assert!(!ran.stderr.contains("--workspaces"), "{}", ran.stderr);
        }
    }

    #[test]
    fn a_model_s_script_is_offered_the_same() {
        let registry = Registry::new();
        registry.python("tiny", "tiny", &[]);
        let world = registry.world(&[REQUIREMENTS, ("say.py", SAY)]);
        let given = json!({ "name": "pdf", "script": "say.py" });
        let told = |arguments: &[&str]| {
            let call = Answer::calls([("run_skill", given.clone())]);
            let server = ModelServer::start([call, Answer::text("done")]);
            let ran =
                ask(&world, &server, &[&["read a PDF file"], &SKILLS[..], arguments].concat());
            format!("{}\n{}", server.last(), ran.stderr)
        };
        let ran = told(&["--yes"]);
        assert!(ran.contains("tiny\\\\n"), "{ran}");
        assert_well(&run(&world, &["prepare", "--clean", "--all"]));
        let failed = told(&[]);
        assert!(failed.contains("prowess prepare pdf"), "{failed}");
    }

    /// Servers for Python and Node with a tool `note` that writes a file beside its program and
    /// returns its content.
    const PYTHON_SERVER: &str = r#"
import json, pathlib, sys
def main():
    for line in sys.stdin:
        asked = json.loads(line)
        if 'id' not in asked: continue
        said = {}
        if asked['method'] == 'initialize': said = {'protocolVersion': '2025-06-18', 'capabilities': {'tools': {}}, 'serverInfo': {'name': 'x', 'version': '1'}}
        if asked['method'] == 'tools/list': said = {'tools': [{'name': 'note', 'inputSchema': {'type': 'object'}}]}
        if asked['method'] == 'tools/call':
            file = pathlib.Path(__file__).with_name('note.txt')
            try: file.open('a').write('noted by python;')
            except OSError as error: said = {'content': [{'type': 'text', 'text': type(error).__name__}]}
            else: said = {'content': [{'type': 'text', 'text': file.read_text()}]}
        print(json.dumps({'jsonrpc': '2.0', 'id': asked['id'], 'result': said}), flush=True)
"#;
    const NODE_SERVER: &str = r#"#!/usr/bin/env node
const fs = require('fs'), file = __dirname + '/note.txt';
require('readline').createInterface({ input: process.stdin }).on('line', (line) => {
  const asked = JSON.parse(line);
  if (asked.id === undefined) return;
  let result = {};
  if (asked.method === 'initialize') result = { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 'x', version: '1' } };
  if (asked.method === 'tools/list') result = { tools: [{ name: 'note', inputSchema: { type: 'object' } }] };
  if (asked.method === 'tools/call') {
    let text;
    try { fs.appendFileSync(file, 'noted by node;'); text = fs.readFileSync(file, 'utf8'); } catch (error) { text = error.code; }
    result = { content: [{ type: 'text', text }] };
  }
  console.log(JSON.stringify({ jsonrpc: '2.0', id: asked.id, result }));
});
"#;

    #[test]
    #[cfg_attr(not(feature = "external"), ignore = "needs npm")]
    fn the_servers_that_a_skill_brings_are_prepared_with_it() {
        let registry = Registry::new();
        registry.list_file(
            "scribe",
            "scribe-1.0-py3-none-any.whl",
            wheel_of("scribe", PYTHON_SERVER, 0, &[]),
        );
        registry.npm("clerk", json!({ "bin": { "clerk": "index.js" } }), NODE_SERVER);
        let described = json!({
            "scribe": { "command": "uvx", "args": ["scribe"] },
            "clerk": { "command": "npx", "args": ["-y", "clerk"] },
        });
        let world = registry.world(&[(".mcp.json", &described.to_string())]);
        let told = || {
            let note = |server: &str| (format!("mcp__{server}__note"), json!({}));
            let notes = [note("scribe"), note("clerk"), note("scribe")];
            let model = ModelServer::start([
                Answer::calls([("use_skill", json!({ "name": "pdf" }))]),
                Answer::calls(notes.iter().map(|it| (&*it.0, it.1.clone()))),
                Answer::text("done"),
            ]);
            let ran = ask(&world, &model, &[&["read a PDF file", "--yes"], &SKILLS[..]].concat());
            (model.last().to_string(), ran.stderr)
        };
        let (_, stderr) = told();
        assert!(stderr.contains("`prowess prepare` with the name of the skill"), "{stderr}");
        assert_eq!(registry.downloads(), 0);
        let ran = prepare(&world, &[]);
        assert_well(&ran);
        assert_eq!(registry.downloads(), 2, "{}", ran.stderr);
        let trees = || -> Vec<_> {
            left(&world).iter().map(|it| files(&store(&world).join(it).join("tree"))).collect()
        };
        let before = trees();
        for _ in 0..2 {
            let (said, stderr) = told();
            let wanted = match level() {
                SandboxLevel::Strong => ["noted by python;noted by python;", "noted by node;"],
                _ => ["PermissionError", "EACCES"],
            };
            for words in wanted {
                assert!(said.contains(words), "{words}: {said} {stderr}");
            }
            assert!(!said.contains("noted by python;noted by python;noted"), "{said}");
        }
        assert_eq!((before.len(), before == trees()), (2, true));
    }

    #[test]
    #[cfg_attr(not(feature = "external"), ignore = "needs npm")]
    fn the_packages_of_a_server_are_installed_where_somebody_has_agreed_ahead() {
        let registry = Registry::new();
        let bytes = wheel_of("scribe", PYTHON_SERVER, 0, &[]);
        registry.list_file("scribe", "scribe-1.0-py3-none-any.whl", bytes);
        registry.npm("clerk", json!({ "bin": { "clerk": "index.js" } }), NODE_SERVER);
        let world = registry.world(&[]);
        let set = "[servers.scribe]\ncommand = \"uvx\"\nargs = [\"scribe\"]\n\
                   [servers.clerk]\ncommand = \"npx\"\nargs = [\"-y\", \"clerk\"]\n";
        world.write("home/.config/prowess/prowess.toml", format!("{}{set}", registry.settings()));
        let ran = run(&world, &["servers", "scribe"]);
        assert_eq!(ran.code, Some(1), "{}", ran.stdout());
        assert!(ran.stderr.contains("run `prowess prepare --server scribe "), "{}", ran.stderr);
        assert_eq!(registry.downloads(), 0);
        let ran = run(&world, &["servers", "scribe", "--yes"]);
        assert_well(&ran);
        assert!(ran.stdout().contains("mcp__scribe__note"), "{}", ran.stdout());
        assert!(ran.stderr.contains("prepared scribe: 1 package"), "{}", ran.stderr);
        let ran = run(&world, &["tool", "mcp__clerk__note", "--yes"]);
        assert!(ran.stderr.contains("prepared clerk: 1 package"), "{}", ran.stderr);
        assert_eq!(registry.downloads(), 2);
        let ran = run(&world, &["servers", "--yes"]);
        assert_well(&ran);
        assert_eq!(registry.downloads(), 2);
    }

    #[test]
    #[cfg_attr(not(feature = "external"), ignore = "needs pip")]
    fn a_guess_is_not_installed_unless_somebody_asks_for_it() {
        let registry = Registry::new();
        registry.python("tiny", "tiny", &[]);
        let world = registry.world(&[("say.py", SAY)]);
        let ran = prepare(&world, &[]);
        assert_eq!(ran.code, Some(1), "{}", ran.stderr);
        assert!(ran.stderr.contains("only guessed from imports: tiny"), "{}", ran.stderr);
        assert_eq!(registry.server.connections(), 0);
        assert_well(&prepare(&world, &["--guessed"]));
        assert_eq!(script(&world, "say.py").stdout(), "tiny\n");

        // Also if the rest was installed before.
        registry.python("pypdf", "pypdf", &[]);
        let world = registry.world(&[("say.py", "import pypdf, tiny\nprint(tiny.word())\n")]);
        assert_well(&prepare(&world, &[]));
        let ran = script(&world, "say.py");
        assert_eq!(ran.code, Some(1), "{}", ran.stdout());
        assert!(ran.stderr.contains("missing: tiny"), "{}", ran.stderr);
        assert!(
            ran.stderr.contains("`prowess prepare pdf --guessed --dir skills`"),
            "{}",
            ran.stderr
        );
        assert_eq!(run(&world, &["prepare", "pdf", "--guessed"]).code, Some(2));
        assert_well(&prepare(&world, &["--guessed"]));
        assert_eq!(script(&world, "say.py").stdout(), "tiny\n");
        // An approved installation is repeated unchanged.
        assert_well(&run(&world, &["prepare", "--clean", "--all"]));
        assert_well(&run(&world, &["prepare", "pdf"]));
        assert_eq!(script(&world, "say.py").stdout(), "tiny\n");
    }

    #[test]
    #[cfg_attr(not(feature = "external"), ignore = "needs pip")]
    fn skills_that_need_the_same_share_one_environment() {
        let registry = Registry::new();
        registry.python("tiny", "tiny", &[]);
        let world = registry.world(&[REQUIREMENTS, ("say.py", SAY)]);
        let world = world.skill("other", "Another one.").file("skills/other/say.py", SAY);
        let world = world.file("skills/other/requirements.txt", "tiny>=1\n");
        assert_well(&prepare(&world, &[]));
        let asked = registry.server.connections();
        assert_well(&run(&world, &["prepare", "other"]));
        assert_eq!(registry.server.connections(), asked);
        let [one] = &*environments(&world) else { panic!("there is one") };
        assert_eq!(one["used_by"].as_array().unwrap().len(), 2);
        fs::remove_dir_all(world.path("skills/pdf")).unwrap();
        assert_well(&run(&world, &["prepare", "--clean"]));
        assert_eq!(environments(&world).len(), 1);
        fs::remove_dir_all(world.path("skills/other")).unwrap();
        assert_well(&run(&world, &["prepare", "--clean"]));
        assert_eq!(left(&world), [""; 0]);
    }

    #[test]
    fn a_skill_that_needs_nothing_is_left_alone() {
        let registry = Registry::new();
        let world = registry.world(&[("say.py", "import json\nprint(json.dumps(1))\n")]);
        let ran = prepare(&world, &[]);
        assert_well(&ran);
        assert!(ran.stderr.contains("`pdf` needs no packages"), "{}", ran.stderr);
        assert_eq!(left(&world), [""; 0]);
        assert_eq!(run(&world, &["prepare", "nosuch"]).code, Some(1));
    }
}

mod installing_can_hurt_nobody {
    use super::*;

    #[test]
    #[cfg_attr(not(feature = "external"), ignore = "needs npm")]
    fn no_script_of_a_package_runs_unless_somebody_lets_it() {
        let registry = Registry::new();
        registry.list_file("tiny", "tiny-1.0.tar.gz", sources("tiny", "true"));
        let world = registry.world(&[REQUIREMENTS, ("say.py", SAY)]);
        let ran = prepare(&world, &[]);
        assert_eq!(ran.code, Some(1), "{}", ran.stderr);
        assert!(ran.stderr.contains("--install-scripts"), "{}", ran.stderr);
        assert_eq!(left(&world), [""; 0]);
        assert_well(&prepare(&world, &["--install-scripts"]));
        assert_eq!(script(&world, "say.py").stdout(), "built, sees []\n");

        let install =
            json!({ "scripts": { "postinstall": "echo ran > ran; cat /etc/shadow >> ran; true" } });
        registry.npm("tiny", install, "const fs = require('fs'); module.exports = fs.existsSync(__dirname + '/ran') ? fs.readFileSync(__dirname + '/ran', 'utf8') : 'quiet';");
        let files = [
            ("package.json", r#"{"dependencies": {"tiny": "1"}}"#),
            ("say.js", "console.log(require('tiny').trim());\n"),
        ];
        let world = registry.world(&files);
        assert_well(&prepare(&world, &[]));
        assert_eq!(script(&world, "say.js").stdout(), "quiet\n");
        assert_well(&prepare(&world, &["--install-scripts"]));
        assert_eq!(script(&world, "say.js").stdout(), "ran\n");
    }

    #[test]
    #[cfg_attr(not(feature = "external"), ignore = "needs pip")]
    fn what_an_install_script_leaves_behind_leads_nowhere() {
        let registry = Registry::new();
        let links = [
            ("ln -s HOME/secret $out/lock", true),
            ("ln -s HOME/secret $out/environment.json", true),
            ("mv $out/tree $out/t; ln -s HOME $out/tree", false),
            ("rm -rf $out/artifacts; ln -s HOME $out/artifacts", false),
            ("rm -rf $out/tree/bin; ln -s HOME $out/tree/bin", false),
            ("ln -s /dev/zero $out/artifacts/x-1.0-py3-none-any.whl", false),
        ];
        for (line, is_mended) in links {
            let world = registry.world(&[REQUIREMENTS, ("say.py", SAY)]);
            let world = world.file("home/secret", "mine\n");
            let home = world.path("home");
            let line = line.replace("HOME", &home.display().to_string());
            let line = format!("out=$(dirname \"$TREE\"); {line}");
            registry.list_file("tiny", "tiny-1.0.tar.gz", sources("tiny", &line));
            let ran = prepare(&world, &["--install-scripts"]);
            assert_eq!(ran.code == Some(0), is_mended, "{line}\n{}", ran.stderr);
            assert_eq!(fs::read_to_string(home.join("secret")).unwrap(), "mine\n", "{line}");
            assert_eq!(left(&world).len(), usize::from(is_mended), "{line}");
            assert_eq!(environments(&world).len(), usize::from(is_mended), "{line}");
        }
    }

    #[test]
    #[cfg_attr(not(feature = "external"), ignore = "needs npm")]
    fn an_installation_reaches_the_registries_alone() {
        let (registry, other) = (Registry::new(), Registry::new());
        other.serve("/files/tiny-1.0-py3-none-any.whl", wheel("tiny", "elsewhere", 0, &[]));
        let elsewhere = other.server.url("/files/tiny-1.0-py3-none-any.whl");
        registry.serve(
            "/simple/tiny/",
            format!("<a href=\"{elsewhere}\">tiny-1.0-py3-none-any.whl</a>"),
        );
        let world = registry.world(&[REQUIREMENTS, ("say.py", SAY)]);
        let ran = prepare(&world, &[]);
        assert_eq!(ran.code, Some(1), "{}", ran.stderr);
        let host = format!("127.0.0.1:{}", other.server.port());
        assert!(ran.stderr.contains(&format!("add `{host}` to `prepare.hosts`")), "{}", ran.stderr);
        assert_eq!(other.server.connections(), 0);
        assert_eq!(left(&world), [""; 0]);
        let more = format!("{}hosts = [\"{host}\"]\n", registry.settings());
        world.write("home/.config/prowess/prowess.toml", more);
        assert_well(&prepare(&world, &[]));
        assert_eq!(script(&world, "say.py").stdout(), "elsewhere\n");

        // The lock file of a skill has addresses of packages, too.
        let archive = tarball(r#"{"name": "tiny", "version": "1.0.0"}"#, "module.exports = 1;");
        let lock = json!({
            "name": "x", "lockfileVersion": 3, "requires": true,
            "packages": {
                "": { "name": "x", "dependencies": { "tiny": "1.0.0" } },
                "node_modules/tiny": {
                    "version": "1.0.0",
                    "resolved": other.server.url("/tiny.tgz"),
                    "integrity": integrity(&archive),
                },
            },
        });
        other.serve("/tiny.tgz", archive);
        let connections = other.server.connections();
        let world = registry.world(&[
            ("package.json", r#"{"name": "x", "dependencies": {"tiny": "1.0.0"}}"#),
            ("package-lock.json", &lock.to_string()),
            ("say.js", "console.log(require('tiny'));\n"),
        ]);
        let ran = prepare(&world, &[]);
        assert_eq!(ran.code, Some(1), "{}", ran.stderr);
        assert!(ran.stderr.contains(&host), "{}", ran.stderr);
        assert_eq!(other.server.connections(), connections);
    }

    #[test]
    #[cfg_attr(not(feature = "external"), ignore = "needs pip")]
    fn where_packages_come_from_is_not_up_to_a_skill() {
        let (registry, other) = (Registry::new(), Registry::new());
        registry.python("tiny", "mine", &[]);
        other.python("tiny", "theirs", &[]);
        let index = other.server.url("/simple");
        let requirements = format!(
            "--index-url {index}\n--extra-index-url {index}\ntiny>=1\nfar @ {index}/far.whl\n./local\n-e ../up\n"
        );
        let world = registry.world(&[
            ("requirements.txt", &requirements),
            (".npmrc", &format!("registry={index}\n")),
            ("pip.conf", &format!("[global]\nindex-url = {index}\n")),
            ("say.py", SAY),
        ]);
        let ran = prepare(&world, &[]);
        assert_well(&ran);
        assert!(ran.stderr.contains("not installed: far"), "{}", ran.stderr);
        assert_eq!(other.server.connections(), 0);
        assert_eq!(script(&world, "say.py").stdout(), "mine\n");
    }

    #[test]
    #[cfg_attr(not(feature = "external"), ignore = "needs pip")]
    fn an_environment_has_a_largest_size() {
        let registry = Registry::new();
        let bytes = wheel("tiny", "x", 8_000_000, &[]);
        registry.list_file("tiny", "tiny-1.0-py3-none-any.whl", bytes);
        let world = registry.world(&[REQUIREMENTS, ("say.py", SAY)]);
        let small = format!("{}max_size = \"1 MiB\"\n", registry.settings());
        world.write("home/.config/prowess/prowess.toml", small);
        let ran = prepare(&world, &[]);
        assert_eq!(ran.code, Some(1), "{}", ran.stderr);
        assert_eq!(left(&world), [""; 0]);
        world.write("home/.config/prowess/prowess.toml", registry.settings());
        assert_well(&prepare(&world, &[]));
    }

    #[test]
    #[cfg_attr(not(feature = "external"), ignore = "needs pip")]
    fn a_full_disk_leaves_nothing_half_made() {
        let registry = Registry::new();
        let bytes = wheel("tiny", "tiny", 12_000_000, &[]);
        registry.list_file("tiny", "tiny-1.0-py3-none-any.whl", bytes);
        let world = registry.world(&[REQUIREMENTS, ("say.py", SAY)]).folder("home/.local/share");
        let ran = world.run_script(
            "how=-m; [ $(id -u) = 0 ] || how=-Urm\n\
             exec unshare $how sh -c 'mount -t tmpfs -o size=6m tmpfs home/.local/share || exit 9\n\
             \"$0\" prepare pdf --yes --dir skills; echo $?; ls home/.local/share/prowess/environments' \"$0\"",
        );
        assert_eq!(ran.stdout(), "1\n", "{}", ran.stderr);
        assert!(ran.stderr.contains("there is no space left on the disk"), "{}", ran.stderr);
        assert_well(&prepare(&world, &[]));
        assert_eq!(script(&world, "say.py").stdout(), "tiny\n");
    }

    #[test]
    #[cfg_attr(not(feature = "external"), ignore = "needs pip")]
    fn a_preparation_that_is_killed_leaves_nothing_half_made() {
        let registry = Registry::new();
        registry.python("tiny", "tiny", &[]);
        let world = registry.world(&[REQUIREMENTS, ("say.py", SAY)]);
        let mut child = world
            .command(["prepare", "pdf", "--yes", "--dir", "skills"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        until("it downloads", || registry.server.connections() > 0);
        child.kill().unwrap();
        child.wait().unwrap();
        until("its files are gone", || left(&world).is_empty() || environments(&world).len() == 1);
        assert_well(&prepare(&world, &[]));
        assert_eq!(script(&world, "say.py").stdout(), "tiny\n");
        assert_eq!(left(&world).len(), 1);
    }

    #[test]
    #[cfg_attr(not(feature = "external"), ignore = "needs pip")]
    fn two_who_prepare_the_same_thing_at_once_do_it_once() {
        let registry = Registry::new();
        registry.python("tiny", "tiny", &[]);
        let world = registry.world(&[REQUIREMENTS, ("say.py", SAY)]);
        thread::scope(|scope| {
            let both = [(); 2].map(|()| scope.spawn(|| prepare(&world, &[])));
            both.into_iter().for_each(|it| assert_well(&it.join().unwrap()));
        });
        assert_eq!(registry.downloads(), 1);
        assert_eq!(left(&world).len(), 1);
    }
}

mod a_script_runs_with_what_was_approved_and_cannot_change_it {
    use super::*;

    #[test]
    #[cfg_attr(not(feature = "external"), ignore = "needs pip")]
    fn an_environment_whose_lock_file_has_changed_is_not_used() {
        let registry = Registry::new();
        registry.python("tiny", "tiny", &[]);
        let world = registry.world(&[REQUIREMENTS, ("say.py", SAY)]);
        assert_well(&prepare(&world, &[]));
        let folder = environment(&world);
        let refused = |why: &str| {
            let ran = run(&world, &["run", "pdf", "--script", "say.py"]);
            assert_eq!(ran.code, Some(2), "{}", ran.stderr);
            assert!(ran.stderr.contains(why), "{}", ran.stderr);
            assert!(ran.stderr.contains("prowess prepare pdf --update"), "{}", ran.stderr);
        };
        assert_eq!(script(&world, "say.py").stdout(), "tiny\n");
        let lock = fs::read_to_string(folder.join("lock")).unwrap();
        fs::write(folder.join("lock"), lock.replace("tiny==1.0", "tiny==2.0")).unwrap();
        refused("its lock file has changed");
        fs::write(folder.join("lock"), &lock).unwrap();
        let record = fs::read_to_string(folder.join("environment.json")).unwrap();
        fs::write(folder.join("environment.json"), "{").unwrap();
        refused("its record is invalid");
        fs::write(folder.join("environment.json"), &record).unwrap();
        assert_eq!(script(&world, "say.py").stdout(), "tiny\n");
        let approvals = run(&world, &["approvals", "--json"]).json();
        let approvals = approvals["approvals"].as_array().unwrap();
        let own = approvals.iter().find(|it| it["kind"] == "environment").unwrap();
        assert_well(&world.run(["approvals", "--revoke", own["id"].as_str().unwrap()]));
        refused("it is not approved");
        assert_well(&prepare(&world, &["--update"]));
        assert_eq!(script(&world, "say.py").stdout(), "tiny\n");
    }

    #[test]
    #[cfg_attr(not(feature = "external"), ignore = "needs pip")]
    fn a_package_that_has_changed_in_the_registry_is_not_installed_again() {
        let registry = Registry::new();
        registry.python("tiny", "tiny", &[]);
        let world = registry.world(&[REQUIREMENTS, ("say.py", SAY)]);
        assert_well(&prepare(&world, &[]));
        assert_well(&run(&world, &["prepare", "--clean", "--all"]));
        registry.python("tiny", "changed", &[]);
        // An approved installation needs no question as long as it is the same.
        let ran = run(&world, &["prepare", "pdf"]);
        assert_eq!(ran.code, Some(1), "{}", ran.stderr);
        assert_eq!(left(&world), [""; 0]);
        assert_eq!(run(&world, &["prepare", "pdf", "--update"]).code, Some(2));
        assert_well(&prepare(&world, &["--update"]));
        assert_eq!(script(&world, "say.py").stdout(), "changed\n");
    }

    #[test]
    #[cfg_attr(not(feature = "external"), ignore = "needs pip")]
    fn an_environment_is_made_again_without_network() {
        let registry = Registry::new();
        registry.python("tiny", "tiny", &[]);
        let world = registry.world(&[REQUIREMENTS, ("say.py", SAY)]);
        assert_eq!(prepare(&world, &["--offline"]).code, Some(1));
        assert_well(&prepare(&world, &[]));
        drop(registry);
        let folder = environment(&world);
        let lock = fs::read_to_string(folder.join("lock")).unwrap();
        fs::remove_dir_all(folder.join("tree")).unwrap();
        assert_well(&run(&world, &["prepare", "pdf", "--offline"]));
        assert_eq!(script(&world, "say.py").stdout(), "tiny\n");
        assert_eq!(fs::read_to_string(folder.join("lock")).unwrap(), lock);
    }

    #[test]
    #[cfg_attr(not(feature = "external"), ignore = "needs pip")]
    fn no_script_can_write_into_an_environment() {
        let registry = Registry::new();
        registry.python("tiny", "tiny", &[]);
        let poison = "import tiny\ntry:\n    open(tiny.__file__, 'a').write('x')\n    print('written')\n\
            except OSError as error:\n    print(type(error).__name__)\n";
        let world = registry.world(&[REQUIREMENTS, ("say.py", SAY), ("poison.py", poison)]);
        assert_well(&prepare(&world, &[]));
        let before = files(&environment(&world).join("tree"));
        let ran = script(&world, "poison.py");
        let wanted = match level() {
            SandboxLevel::Strong => "written\n",
            _ => "PermissionError\n",
        };
        assert_eq!(ran.stdout(), wanted, "{}", ran.stderr);
        assert_eq!(files(&environment(&world).join("tree")), before);
        for above in ["home", "home/.local/share/prowess/environments"] {
            let ran =
                run(&world, &["run", "pdf", "--script", "poison.py", "--yes", "--write", above]);
            assert_ne!(ran.code, Some(0), "{}", ran.stdout());
            assert!(ran.stderr.contains("because environments are in"), "{}", ran.stderr);
        }
        assert_eq!(script(&world, "say.py").stdout(), "tiny\n");
    }

    #[test]
    fn scripts_of_a_package_of_modules_run_as_modules() {
        let world = World::new()
            .skill("pdf", "Reads PDF files.")
            .file("skills/pdf/scripts/__init__.py", "")
            .file("skills/pdf/scripts/words.py", "WORD = 'word'\n")
            .file("skills/pdf/scripts/top.py", "from scripts.words import WORD\nprint(WORD)\n")
            .file(
                "skills/pdf/scripts/beside.py",
                "from .words import WORD\nimport sys\nprint(WORD, sys.argv[1:])\n",
            );
        assert_eq!(script(&world, "scripts/top.py").stdout(), "word\n");
        let ran = run(&world, &["run", "pdf", "--script", "scripts/beside.py", "--yes"]);
        assert_eq!(ran.stdout(), "word []\n", "{}", ran.stderr);
    }
}

mod environments_do_not_pile_up {
    use super::*;

    #[test]
    #[cfg_attr(not(feature = "external"), ignore = "needs pip")]
    fn environments_are_listed_and_removed() {
        let registry = Registry::new();
        registry.python("tiny", "tiny", &[]);
        registry.python("deep", "deep", &[]);
        let world = registry.world(&[REQUIREMENTS, ("say.py", SAY)]);
        let world = world.skill("other", "Another one.").file("skills/other/say.py", SAY);
        let world = world.file("skills/other/requirements.txt", "deep\n");
        assert_well(&prepare(&world, &[]));
        assert_well(&run(&world, &["prepare", "other", "--yes"]));
        let listed = run(&world, &["prepare"]);
        assert!(listed.stdout().contains("pdf  1 package, "), "{}", listed.stdout());
        assert!(listed.stderr.contains("2 environments"), "{}", listed.stderr);
        assert_well(&run(&world, &["prepare", "pdf", "--clean"]));
        let [one] = &*environments(&world) else { panic!("there is one") };
        assert_eq!(one["used_by"][0][0], "other");
        // The leftover of a killed preparation is old, and not locked.
        let leftover = store(&world).join("prowess-work-left");
        fs::create_dir(&leftover).unwrap();
        age(&leftover);
        let ran = run(&world, &["prepare", "--clean", "--all"]);
        assert_well(&ran);
        assert!(ran.stderr.contains("removed 1 environment"), "{}", ran.stderr);
        assert_eq!(left(&world), [""; 0]);
        let none = run(&world, &["prepare"]);
        assert!(none.stderr.contains("nothing is prepared"), "{}", none.stderr);
    }

    /// Makes a folder look as if it was not touched for an hour.
    fn age(path: &Path) {
        let hour = "1 hour ago";
        assert!(Command::new("touch").args(["-d", hour]).arg(path).status().unwrap().success());
    }
}
