//! Computes a fingerprint of the code, so that nothing is used that other code has cached.

use std::{
    fs,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    path::Path,
};

fn main() {
    let mut hasher = DefaultHasher::new();
    hash(Path::new("src"), &mut hasher);
    println!("cargo::rerun-if-changed=src");
    println!("cargo::rustc-env=PROWESS_FRONTMATTER_CODE={:016x}", hasher.finish());
}

/// Hashes the names and contents of the files below `folder`.
fn hash(folder: &Path, hasher: &mut DefaultHasher) {
    let entries = fs::read_dir(folder).expect("a package has its sources");
    let mut paths: Vec<_> = entries.map(|it| it.expect("sources can be read").path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            hash(&path, hasher);
        } else {
            (&path, fs::read(&path).expect("sources can be read")).hash(hasher);
        }
    }
}
