//! Tells the program what it was built from, for `prowess --version`.

use std::{env, path::Path, process::Command};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let target = env::var("TARGET").expect("cargo sets it");
    println!("cargo::rustc-env=PROWESS_TARGET={target}");
    let features = env::var("CARGO_CFG_FEATURE").unwrap_or_default();
    println!("cargo::rustc-env=PROWESS_FEATURES={features}");
    // A package from a registry may lie inside a repository of somebody else.
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    if workspace.join("crates/prowess-cli/build.rs").exists() && workspace.join(".git").exists() {
        commit(&workspace);
    }
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
