//! Files that cannot be committed as a fixture: links, pipes, and files that are too large.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
};

use prowess::{CheckResult, Directory, Library, Options, Profile, SizeLimits, check, check_text};
use tempfile::TempDir;

use crate::{codes, shown};

/// A directory of skills that exists as long as the test.
pub(crate) struct World(TempDir);

impl World {
    pub(crate) fn new() -> Self {
        let world = Self(tempfile::tempdir().unwrap());
        fs::create_dir(world.path("skills")).unwrap();
        world
    }

    /// Returns a path beside the directory of skills.
    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    pub(crate) fn file(&self, path: &str, bytes: impl AsRef<[u8]>) -> &Self {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
        self
    }

    pub(crate) fn folder(&self, path: &str) -> &Self {
        fs::create_dir_all(self.path(path)).unwrap();
        self
    }

    /// Creates a skill in the directory of skills, in a folder of its name.
    pub(crate) fn skill(&self, name: &str) -> &Self {
        self.file(&format!("skills/{name}/SKILL.md"), document(name))
    }

    pub(crate) fn link(&self, path: &str, target: impl AsRef<Path>) -> &Self {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(target, path).unwrap();
        self
    }

    pub(crate) fn pipe(&self, path: &str) -> &Self {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
        self
    }

    pub(crate) fn checked(&self) -> CheckResult {
        check(&[self.path("skills")], Profile::Spec, &SizeLimits::default()).unwrap()
    }

    pub(crate) fn options(&self, directories: &[&str]) -> Options {
        let directory = |it: &&str| Directory::new(self.path(it));
        Options { directories: directories.iter().map(directory).collect(), ..Options::default() }
    }

    pub(crate) fn library(&self) -> Library {
        Library::load(&self.options(&["skills"])).unwrap()
    }
}

/// Returns the text of a valid skill.
pub(crate) fn document(name: &str) -> String {
    format!(
        "---\nname: {name}\ndescription: Reads PDF files. Use when one is given.\n---\n\nRead the file.\n"
    )
}

/// Returns the names that were loaded, and the findings.
fn loaded(world: &World) -> String {
    let library = world.library();
    let names: Vec<&str> = library.skills().map(|it| &*it.manifest.name).collect();
    format!("{}; {}", names.join(" "), shown(library.findings()))
}

#[test]
fn a_link_to_the_file_of_a_neighbour_is_the_same_skill() {
    let world = World::new();
    world.skill("pdf").link("skills/pdf-again/SKILL.md", "../pdf/SKILL.md");
    assert_eq!(loaded(&world), "pdf; ");
}

#[test]
fn a_linked_folder_is_the_same_skill() {
    let world = World::new();
    world.skill("pdf").link("skills/zzz", "pdf");
    assert_eq!(loaded(&world), "pdf; ");
}

#[test]
fn two_directories_that_are_one_by_a_link_hold_one_skill_each() {
    let world = World::new();
    world.skill("pdf").link("linked", "skills");
    let library = Library::load(&world.options(&["skills", "linked"])).unwrap();
    assert_eq!(library.all().count(), 1);
    assert_eq!(codes(library.findings()), Vec::<&str>::new());
}

#[test]
fn a_link_out_of_the_directories_is_not_followed() {
    let world = World::new();
    world.skill("pdf").file("secret/SKILL.md", document("secret"));
    world.link("skills/secret", "../secret").link("skills/file/SKILL.md", "../../secret/SKILL.md");
    assert_eq!(loaded(&world), "pdf; E- link-escapes, E- link-escapes");
}

#[test]
fn a_link_out_of_one_directory_into_another_is_followed() {
    let world = World::new();
    world.file("more/csv/SKILL.md", document("csv")).link("skills/csv", "../more/csv");
    let library = Library::load(&world.options(&["skills", "more"])).unwrap();
    assert_eq!(library.all().count(), 1);
    assert_eq!(codes(library.findings()), Vec::<&str>::new());
}

#[test]
fn links_that_lead_nowhere_or_in_circles_harm_nobody_else() {
    let world = World::new();
    world
        .skill("pdf")
        .link("skills/gone", "nowhere")
        .link("skills/file-gone/SKILL.md", "nowhere.md")
        .link("skills/circle", "circle")
        .link("skills/deep/circle", "../../skills");
    assert_eq!(loaded(&world), "pdf; W- link-broken, E- link-broken, W- link-broken");
}

#[test]
fn a_folder_called_like_the_file_is_no_skill() {
    let world = World::new();
    world.skill("pdf").folder("skills/odd/SKILL.md");
    assert_eq!(loaded(&world), "pdf; E- file-not-regular");
}

#[test]
fn a_pipe_blocks_nobody() {
    let world = World::new();
    world.skill("pdf").pipe("skills/odd/SKILL.md").pipe("skills/pdf/data");
    assert_eq!(loaded(&world), "pdf; E- file-not-regular, W- resource-not-regular");
}

#[test]
fn what_a_package_manager_or_a_hidden_folder_holds_is_nobodys_skill() {
    let world = World::new();
    world
        .skill("pdf")
        .file("skills/node_modules/SKILL.md", document("node"))
        .file("skills/.git/SKILL.md", document("git"))
        .file("skills/pdf/node_modules/inner/SKILL.md", document("inner"));
    assert_eq!(loaded(&world), "pdf; ");
    assert_eq!(codes(&world.checked().findings), Vec::<&str>::new());
}

#[test]
fn a_huge_file_is_left_out_and_its_neighbours_are_not() {
    let world = World::new();
    let huge = format!("{}{}", document("huge"), "\n".repeat(2 * 1024 * 1024));
    world.skill("pdf").file("skills/huge/SKILL.md", huge);
    assert_eq!(loaded(&world), "pdf; E- file-too-large");
}

#[test]
fn a_hundred_thousand_blank_lines_hide_nothing_from_a_check() {
    let padded = format!("{}{}\u{202E}\n", document("pdf"), "\n".repeat(100_000));
    let findings = check_text(padded.as_bytes(), Some("pdf"), Profile::Spec);
    assert_eq!(shown(&findings), "W6 body-long, W100007 hidden-characters");
}

#[test]
fn one_bad_skill_affects_no_other() {
    let world = World::new();
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/irregular");
    let mut bad = 0;
    for entry in fs::read_dir(fixtures).unwrap() {
        let entry = entry.unwrap();
        let Ok(bytes) = fs::read(entry.path().join("SKILL.md")) else { continue };
        let name = entry.file_name().into_string().unwrap();
        world.file(&format!("skills/{name}/SKILL.md"), bytes);
        bad += 1;
    }
    world.skill("aaa").skill("zzz");
    let library = world.library();
    assert!(bad > 90 && library.get("aaa").is_some() && library.get("zzz").is_some());
    assert_eq!(library.all().count() + library.left_out().len(), bad + 2);
}
