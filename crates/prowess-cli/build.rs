//! Tells the program what it was built from, for `prowess --version`, and the linker how to make it
//! smaller.

use std::{
    env,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// What makes a release smaller: relocations are packed (a tenth of their size), and functions with
/// the same code become one.
const SHRINKING: [&[&str]; 2] =
    [&["-Wl,-z,pack-relative-relocs", "-Wl,--icf=all"], &["-Wl,-z,pack-relative-relocs"]];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let target = env::var("TARGET").expect("cargo sets it");
    println!("cargo::rustc-env=PROWESS_TARGET={target}");
    let features = env::var("CARGO_CFG_FEATURE").unwrap_or_default();
    println!("cargo::rustc-env=PROWESS_FEATURES={features}");
    shrink();
    // A package from a registry may lie inside a repository of somebody else.
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    if workspace.join("crates/prowess-cli/build.rs").exists() && workspace.join(".git").exists() {
        commit(&workspace);
    }
}

/// Passes on arguments for the linker of a release, if a program that is linked with them runs here.
/// That asks the linker, the C library and its loader at once; none of them has to be this new.
fn shrink() {
    let is_linux = env::var("CARGO_CFG_TARGET_OS").is_ok_and(|it| it == "linux");
    if is_linux && env::var("PROFILE").is_ok_and(|it| it == "release") {
        let folder = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
        let source = folder.join("probe.rs");
        fs::write(&source, "fn main() {}\n").expect("the build directory can be written");
        if let Some(arguments) = SHRINKING.iter().find(|it| runs(&source, it)) {
            for argument in *arguments {
                println!("cargo::rustc-link-arg-bins={argument}");
            }
        }
    }
}

/// Whether a program can be linked as ours will be, with more arguments, and then runs.
fn runs(source: &Path, arguments: &[&str]) -> bool {
    let program = source.with_extension("");
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    let mut rustc = Command::new(env::var_os("RUSTC").expect("cargo sets it"));
    rustc.args(["--edition=2024", "--target"]).arg(env::var_os("TARGET").expect("cargo sets it"));
    if let Some(linker) = env::var_os("RUSTC_LINKER") {
        let mut argument = OsString::from("linker=");
        argument.push(linker);
        rustc.arg("-C").arg(argument);
    }
    rustc.args(flags.split('\x1f').filter(|it| !it.is_empty()));
    // Flags may leave out the tables that unwinding needs.
    if env::var("CARGO_CFG_PANIC").is_ok_and(|it| it == "abort") {
        rustc.args(["-C", "panic=abort"]);
    }
    for argument in arguments {
        rustc.arg("-C").arg(format!("link-arg={argument}"));
    }
    rustc.arg("-o").arg(&program).arg(source).stdout(Stdio::null()).stderr(Stdio::null());
    rustc.status().is_ok_and(|it| it.success())
        && Command::new(&program).status().is_ok_and(|it| it.success())
}

/// Passes on the checked out commit and its date. It runs again when another one is checked out.
fn commit(workspace: &Path) {
    let Some(commit) = git(workspace, &["log", "-1", "--no-show-signature", "--format=%H %cs"])
    else {
        return;
    };
    let Some((hash, date)) = commit.split_once(' ') else { return };
    println!("cargo::rustc-env=PROWESS_COMMIT={hash}");
    println!("cargo::rustc-env=PROWESS_COMMIT_DATE={date}");
    for file in ["HEAD", "logs/HEAD"] {
        // Cargo would run this at every build for a file that does not exist.
        let path = git(workspace, &["rev-parse", "--git-path", file]);
        if let Some(path) = path.map(|it| workspace.join(it)).filter(|it| it.exists()) {
            println!("cargo::rerun-if-changed={}", path.display());
        }
    }
}

/// Returns the output of git, if it succeeds.
fn git(workspace: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").arg("-C").arg(workspace).args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim_end().to_owned())
}
