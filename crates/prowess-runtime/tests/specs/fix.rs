//! Safe fixes.

use std::{fs, os::unix::fs::MetadataExt as _, path::Path};

use prowess_runtime::sandbox::{RewriteError, Root};

use crate::world::World;

/// A skill whose description has a colon, and the same with quotes around it.
const COLON: &str = "---\nname: colon\ndescription: Use when: asked\n---\n\nAsk.\n";
const QUOTED: &str = "---\nname: colon\ndescription: 'Use when: asked'\n---\n\nAsk.\n";

fn bytes(world: &World, path: &str) -> Vec<u8> {
    fs::read(world.path(path)).unwrap()
}

fn text(world: &World, path: &str) -> String {
    String::from_utf8(bytes(world, path)).unwrap()
}

/// Returns the names in a folder.
fn names(world: &World, path: &str) -> Vec<String> {
    let entries = fs::read_dir(world.path(path)).unwrap();
    let mut names: Vec<_> =
        entries.map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

mod a_file_is_written_whole_or_not_at_all {
    use super::*;

    #[test]
    fn two_who_fix_the_same_are_both_content() {
        let world = World::new().document("colon", QUOTED);
        let root = Root::open(&world.path("skills")).unwrap();
        let path = world.path("skills/colon/SKILL.md");
        let number = fs::metadata(&path).unwrap().ino();
        let inside = Path::new("colon/SKILL.md");
        root.rewrite(inside, COLON.as_bytes(), QUOTED.as_bytes()).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().ino(), number);
        assert_eq!(names(&world, "skills/colon"), ["SKILL.md"]);
    }

    #[test]
    fn what_somebody_else_has_changed_meanwhile_stays() {
        let world = World::new().document("colon", COLON);
        let root = Root::open(&world.path("skills")).unwrap();
        let inside = Path::new("colon/SKILL.md");
        let rewrite = |before: &str| root.rewrite(inside, before.as_bytes(), b"mine");
        for before in ["", "other", &COLON[1..], &format!("{COLON}\n")] {
            assert!(matches!(rewrite(before), Err(RewriteError::Changed)), "{before:?}");
        }
        assert_eq!(text(&world, "skills/colon/SKILL.md"), COLON);
        world.remove("skills/colon/SKILL.md");
        assert!(matches!(rewrite(COLON), Err(RewriteError::Changed)));
        assert_eq!(names(&world, "skills/colon"), [""; 0]);
        world.write("skills/colon/SKILL.md", COLON);
        rewrite(COLON).unwrap();
        assert_eq!(text(&world, "skills/colon/SKILL.md"), "mine");
    }
}
