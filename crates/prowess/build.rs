//! Embeds the folders of `skills/` in the library, so that a new one needs no code change; and a
//! fingerprint of the crate, so that nothing is used that other code has cached.

use std::{
    env, fs,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    path::{Path, PathBuf},
};

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    for folder in ["src", "skills"] {
        println!("cargo::rerun-if-changed={folder}");
        collect(&root.join(folder), &mut files);
    }
    println!("cargo::rustc-env=PROWESS_BUILD={:016x}", fingerprint(root, files));
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it")).join("bundled.rs");
    fs::write(out, table(&root.join("skills"))).expect("the build directory can be written");
}

/// Returns a fingerprint of files of this crate and of its features.
fn fingerprint(root: &Path, mut files: Vec<PathBuf>) -> u64 {
    files.sort();
    let mut hasher = DefaultHasher::new();
    env::var_os("CARGO_CFG_FEATURE").hash(&mut hasher);
    for file in files {
        let bytes = fs::read(&file).expect("a package has its sources");
        (file.strip_prefix(root).expect("it was found below the root"), bytes).hash(&mut hasher);
    }
    hasher.finish()
}

/// Returns the source code of the table of all files below `root`.
pub(crate) fn table(root: &Path) -> String {
    let mut files = Vec::new();
    collect(root, &mut files);
    files.sort();

    let mut table = String::from("static BUNDLED: &[(&str, &[u8])] = &[\n");
    for file in files {
        let name = file.strip_prefix(root).expect("it was found below the root");
        let name = name.to_str().expect("bundled files have plain names").replace('\\', "/");
        table.push_str(&format!(
            "    ({name:?}, include_bytes!({:?})),\n",
            file.display().to_string()
        ));
    }
    table.push_str("];\n");
    table
}

/// Collects the files below `folder`; hidden folders such as a placeholder's are skipped.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a package has its sources") {
        let entry = entry.expect("sources can be read");
        let path = entry.path();
        if entry.file_name().to_string_lossy().starts_with('.') {
            continue;
        }
        if path.is_dir() {
            collect(&path, files);
        } else {
            files.push(path);
        }
    }
}
