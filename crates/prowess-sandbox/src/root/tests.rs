use std::{fs, path::Path};

use super::*;
use crate::RewriteError;

fn root() -> (tempfile::TempDir, Root) {
    let folder = tempfile::tempdir().unwrap();
    let inside = folder.path().join("inside");
    fs::create_dir_all(inside.join("a/b")).unwrap();
    fs::write(inside.join("a/file"), "text").unwrap();
    fs::write(folder.path().join("outside"), "secret").unwrap();
    let root = Root::open(&inside).unwrap();
    (folder, root)
}

/// Creates a link; not every user may do that on Windows.
fn link(target: impl AsRef<Path>, path: &Path) -> bool {
    #[cfg(unix)]
    let made = std::os::unix::fs::symlink(target, path);
    #[cfg(windows)]
    let made = match path.parent().unwrap().join(&target).is_dir() {
        true => std::os::windows::fs::symlink_dir(target, path),
        false => std::os::windows::fs::symlink_file(target, path),
    };
    if cfg!(unix) {
        made.as_ref().unwrap();
    }
    made.is_ok() && path.is_symlink()
}

#[test]
fn no_path_leads_out() {
    let (folder, root) = root();
    let absolute = folder.path().join("outside");
    for out in [Path::new("../outside"), Path::new("a/../../outside"), &absolute] {
        for links in [Links::Inside, Links::Never] {
            let error = root.file(out, links).unwrap_err();
            assert!(matches!(error, RootError::Outside { .. }), "{out:?} {error:?}");
        }
        assert!(matches!(root.write(out, b"new"), Err(RootError::Outside { .. })), "{out:?}");
    }
    assert_eq!(fs::read(absolute).unwrap(), b"secret");
}

#[test]
fn links_are_followed_inside_only() {
    let (_folder, root) = root();
    let at = |name: &str| root.path().join(name);
    let made = [
        link("../outside", &at("out")),
        link("..", &at("up")),
        link("a", &at("folder")),
        link("a/file", &at("in")),
    ];
    if made.contains(&false) {
        return;
    }
    for out in ["out", "up/outside", "up/inside/a/file", "folder/../up/outside"] {
        for links in [Links::Inside, Links::Never] {
            let error = root.file(Path::new(out), links).unwrap_err();
            assert!(matches!(error, RootError::Outside { .. }), "{out:?} {error:?}");
        }
    }
    for inside in ["in", "folder/file"] {
        let text = io::read_to_string(root.file(Path::new(inside), Links::Inside).unwrap());
        assert_eq!(text.unwrap(), "text");
        let error = root.file(Path::new(inside), Links::Never).unwrap_err();
        assert!(matches!(error, RootError::Outside { .. }), "{inside:?} {error:?}");
    }
    assert!(root.write(Path::new("in"), b"new").is_err());
    assert!(root.write(Path::new("folder/new"), b"new").is_err());
    assert_eq!(root.read_link(Path::new("in")).unwrap(), Path::new("a/file"));
    assert_eq!(root.entry(Path::new("in")).unwrap().kind, FileType::Symlink);
}

#[test]
fn a_file_is_written_whole_and_nothing_else_is_left() {
    let (_folder, root) = root();
    root.write(Path::new("new/deep/file"), b"one").unwrap();
    root.write(Path::new("new/deep/file"), b"two").unwrap();
    let listed = root.list(Path::new("new/deep"), Links::Never).unwrap();
    let expected = DirectoryEntry { name: "file".into(), kind: FileType::RegularFile, size: 3 };
    assert_eq!(listed, [expected]);
    let path = Path::new("a/file");
    assert!(!root.write_if(path, b"new", |old| Ok(old.is_none())).unwrap());
    assert!(root.write_if(path, b"new", |old| Ok(old.is_some())).unwrap());
    assert!(matches!(root.rewrite(path, b"text", b"x"), Err(RewriteError::Changed)));
    root.rewrite(path, b"new", b"newer").unwrap();
    root.rename(path, "renamed").unwrap();
    assert_eq!(fs::read(root.path().join("a/renamed")).unwrap(), b"newer");
    assert!(root.file(path, Links::Never).unwrap_err().is_missing());
    let names = root.directory(Path::new("a"), Links::Never).unwrap().names().unwrap();
    assert_eq!(names, ["b", "renamed"]);
}

#[test]
fn what_is_no_file_is_not_opened_as_one() {
    let (_folder, root) = root();
    assert!(root.file(Path::new("a/b"), Links::Never).is_err());
    assert!(root.directory(Path::new("a/file"), Links::Never).is_err());
    assert!(root.file(Path::new("a/file/more"), Links::Never).is_err());
    assert!(matches!(root.write(Path::new("a/b"), b""), Err(RootError::NotRegular { .. })));
    let page = root.page(Path::new("a"), Links::Never, 1, 1).unwrap();
    assert_eq!((page.total, &page.entries[0].name), (2, &"file".into()));
}

#[test]
fn writers_of_a_directory_wait_for_each_other() {
    let (_folder, root) = root();
    let add = || {
        let path = Path::new("count");
        let mut number = 0_u32;
        loop {
            let before = fs::read(root.path().join(path)).unwrap_or_default();
            number += 1;
            let after = [before.as_slice(), b"x"].concat();
            let written = root.write_if(path, &after, |old| {
                let now = old.map_or(Ok(String::new()), io::read_to_string)?;
                Ok(now.as_bytes() == before)
            });
            if written.unwrap() {
                return number;
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..10).for_each(|_| _ = add()));
        }
    });
    assert_eq!(fs::read(root.path().join("count")).unwrap().len(), 40);
}
