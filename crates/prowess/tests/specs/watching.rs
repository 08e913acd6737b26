//! A library that follows its files: what the system tells, what it cannot, and the list that goes on.

use std::{
    fs,
    os::unix::fs::{MetadataExt as _, symlink},
    path::Path,
    thread,
    time::{Duration, Instant},
};

use prowess::{Directory, Library, LiveLibrary, Options, SizeLimits, Watching};

use crate::world::{PATIENCE, World, until};

/// Waits until the library that a keeper gives is as wanted.
fn wait(live_library: &LiveLibrary, what: &str, wanted: impl Fn(&Library) -> bool) {
    // A keeper looks by itself only after a minute.
    let start = Instant::now();
    let mut last = live_library.library();
    while !wanted(&last) {
        assert!(start.elapsed() < PATIENCE, "{what}: {:?}", listed(&last));
        last = live_library.wait(&last, Duration::from_secs(1));
    }
}

fn listed(library: &Library) -> Vec<(&str, &str)> {
    library.skills().map(|it| (&*it.manifest.name, &*it.manifest.description)).collect()
}

fn text(name: &str, description: &str) -> String {
    format!("---\nname: {name}\ndescription: {description}\n---\n\n# {name}\n")
}

/// All that a library says.
fn whole(library: &Library) -> Vec<String> {
    let skills = library.all().map(|it| {
        let resources = it.resources().iter().map(|it| (&it.path, it.size)).collect::<Vec<_>>();
        format!("{:?} {:?} {:?} {resources:?}", it.origin.path, it.manifest, it.hidden_by)
    });
    let findings = library.findings().iter().map(|it| format!("{it:?}"));
    skills.chain(findings).collect()
}

/// A keeper that is told of changes.
fn told(options: Options) -> LiveLibrary {
    let live_library = LiveLibrary::start(&Options { watch: true, ..options }).unwrap();
    assert_eq!(live_library.watching(), Watching::Notified);
    live_library
}

/// Returns whether this process watches a directory; `None` where the system does not say so, or
/// another way of watching is tested.
fn is_watched(path: &Path) -> Option<bool> {
    if cfg!(any(not(target_os = "linux"), prowess_notify)) {
        return None;
    }
    let inode = format!(" ino:{:x} ", fs::metadata(path).unwrap().ino());
    let open = fs::read_dir("/proc/self/fdinfo").unwrap().flatten();
    let watches = open.filter_map(|it| fs::read_to_string(it.path()).ok());
    let is_watched = watches
        .flat_map(|it| it.lines().map(str::to_owned).collect::<Vec<_>>())
        .any(|it| it.starts_with("inotify ") && it.contains(&inode));
    Some(is_watched)
}

mod a_keeper_hears_of_changes {
    use super::*;

    #[test]
    fn a_06_however_a_file_is_saved_it_is_seen() {
        let world = World::new()
            .skill("one", "before")
            .file("skills/kept/two.md", text("two", "before"))
            .link("skills/two/SKILL.md", "../kept/two.md");
        let live_library = told(world.options());
        let [one, two] = ["skills/one/SKILL.md", "skills/kept/two.md"].map(|it| world.path(it));
        let aside = world.path("skills/one/.SKILL.md.swp");
        let replace = |description: &str| {
            fs::write(&aside, text("one", description)).unwrap();
            fs::rename(&aside, &one).unwrap();
        };
        let seen = |name: &str, description: &str| {
            wait(&live_library, description, |it| listed(it).contains(&(name, description)));
        };
        fs::write(&one, text("one", "in place")).unwrap();
        seen("one", "in place");
        replace("renamed");
        seen("one", "renamed");
        replace("renamed again");
        seen("one", "renamed again");
        fs::remove_file(&one).unwrap();
        fs::write(&one, text("one", "anew, and longer")).unwrap();
        seen("one", "anew, and longer");
        let length = "---\nname: one\ndescription: anew".len() as u64;
        fs::File::options().write(true).open(&one).unwrap().set_len(length).unwrap();
        wait(&live_library, "cut short", |it| !it.findings().is_empty());
        fs::write(&two, text("two", "behind the link")).unwrap();
        seen("two", "behind the link");
        fs::write(&aside, text("two", "renamed behind it")).unwrap();
        fs::rename(&aside, &two).unwrap();
        seen("two", "renamed behind it");
    }

    #[test]
    fn a_06_a_directory_that_goes_and_comes_is_followed() {
        let world = World::new().skill("one", "first");
        let live_library = told(world.options());
        let [skills, away] = ["skills", "away"].map(|it| world.path(it));
        fs::rename(&skills, &away).unwrap();
        wait(&live_library, "moved away", |it| listed(it).is_empty());
        // Changes at its new place are ignored.
        world.write("away/other/SKILL.md", text("other", "x"));
        world.write("skills/two/SKILL.md", text("two", "second"));
        wait(&live_library, "made anew", |it| listed(it) == [("two", "second")]);
        fs::remove_dir_all(&skills).unwrap();
        wait(&live_library, "deleted", |it| listed(it).is_empty());
        fs::rename(&away, &skills).unwrap();
        wait(&live_library, "moved back", |it| listed(it) == [("one", "first"), ("other", "x")]);
        world.write("skills/one/SKILL.md", text("one", "changed"));
        wait(&live_library, "changed", |it| listed(it).contains(&("one", "changed")));
    }

    #[test]
    fn a_06_a_directory_that_is_not_there_yet_is_followed() {
        let world = World::new();
        let directories = vec![Directory::new("a/b/c")];
        let live_library = told(Options { directories, ..world.options() });
        assert_eq!(live_library.library().findings()[0].rule.code, "directory-missing");
        fs::create_dir(world.path("a")).unwrap();
        until("the directory above is watched", || is_watched(&world.path("a")) != Some(false));
        world.write("a/b/c/one/SKILL.md", text("one", "first"));
        wait(&live_library, "put there", |it| listed(it) == [("one", "first")]);
        assert_eq!(live_library.library().findings(), []);
        world.write("a/b/c/one/SKILL.md", text("one", "second"));
        wait(&live_library, "changed", |it| listed(it) == [("one", "second")]);
    }

    #[test]
    fn a_directory_behind_a_link_is_followed_where_it_leads() {
        let world = World::new()
            .skill_in("v1", "one", "old")
            .skill_in("v2", "one", "new")
            .link("now", "v1");
        let directories = vec![Directory::new("now")];
        let live_library = told(Options { directories, ..world.options() });
        assert_eq!(listed(&live_library.library()), [("one", "old")]);
        symlink("v2", world.path("next")).unwrap();
        fs::rename(world.path("next"), world.path("now")).unwrap();
        wait(&live_library, "made to lead elsewhere", |it| listed(it) == [("one", "new")]);
        world.write("v2/one/SKILL.md", text("one", "newer"));
        wait(&live_library, "changed there", |it| listed(it) == [("one", "newer")]);
    }

    #[test]
    fn a_directory_behind_a_link_that_leads_nowhere_for_a_while_is_followed() {
        let world = World::new().skill_in("far/v1", "one", "old").link("now", "far/v1");
        let directories = vec![Directory::new("now")];
        let live_library = told(Options { directories, ..world.options() });
        fs::remove_dir_all(world.path("far")).unwrap();
        wait(&live_library, "removed", |it| listed(it).is_empty());
        world.write("far/v1/one/SKILL.md", text("one", "new"));
        wait(&live_library, "made anew", |it| listed(it) == [("one", "new")]);
        world.write("far/v1/one/SKILL.md", text("one", "newer"));
        wait(&live_library, "changed there", |it| listed(it) == [("one", "newer")]);
    }

    #[test]
    fn however_folders_are_moved_about_the_library_is_what_is_on_disk() {
        const PLACES: [&str; 8] = ["a", "b", "c", "g/a", "g/b", "g/c", "h/a", "h"];
        let world = World::new().skill("a", "first").folder("skills/g").folder("outside");
        let limits = SizeLimits { depth: 3, ..SizeLimits::default() };
        let options = Options { limits, ..world.options() };
        let live_library = told(options.clone());
        let mut state = 7_u64;
        let mut next = |most: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as usize % most
        };
        for round in 0..60 {
            for _ in 0..=next(4) {
                let [one, other] = [(); 2].map(|()| PLACES[next(PLACES.len())]);
                let [from, to] = [one, other].map(|it| world.path(format!("skills/{it}")));
                // Much of it cannot be done to what is there at that moment, which is as well.
                let _ = match next(9) {
                    0 => fs::remove_dir_all(&from),
                    1 | 2 => fs::rename(&from, &to),
                    3 => fs::rename(&from, world.path("outside/x"))
                        .and_then(|()| fs::rename(&to, &from))
                        .and_then(|()| fs::rename(world.path("outside/x"), &to)),
                    4 => symlink(&to, &from),
                    5 => fs::remove_file(&from),
                    6 => fs::create_dir_all(from.join("references"))
                        .and_then(|()| fs::write(from.join("references/x.md"), round.to_string())),
                    _ => fs::create_dir_all(&from).and_then(|()| {
                        let name = PLACES[next(3)];
                        fs::write(from.join("SKILL.md"), text(name, &format!("in round {round}")))
                    }),
                };
            }
            let fresh = Library::load(&options).unwrap();
            wait(&live_library, &format!("round {round}"), |it| whole(it) == whole(&fresh));
        }
    }

    #[test]
    fn folders_that_come_later_are_heard_as_well() {
        let world = World::new().skill("one", "a").folder("skills/empty");
        let live_library = told(world.options());
        let size = |path: &str, size: u64| {
            wait(&live_library, path, |it| {
                let one = it.get("one").unwrap();
                one.resources().iter().any(|it| &*it.path == path && it.size == size)
            });
        };
        world.write("skills/one/references/deep/notes.md", "1");
        size("references/deep/notes.md", 1);
        world.write("skills/one/references/deep/notes.md", "22");
        size("references/deep/notes.md", 2);
        world.write("skills/empty/SKILL.md", text("late", "b"));
        wait(&live_library, "a folder becomes a skill", |it| it.get("late").is_some());
        fs::rename(world.path("skills/empty"), world.path("outside")).unwrap();
        wait(&live_library, "a folder is moved out", |it| it.get("late").is_none());
        let last = live_library.library();
        world.write("outside/SKILL.md", text("late", "c"));
        assert!(std::sync::Arc::ptr_eq(&live_library.wait(&last, Duration::from_secs(1)), &last));
    }

    #[test]
    fn thousands_of_changes_at_once_come_to_one_whole_library() {
        const SKILLS: usize = 1500;
        let mut world = World::new();
        for number in 0..SKILLS {
            world = world.skill(&format!("skill-{number:04}"), "main");
        }
        let live_library = told(world.options());
        thread::scope(|scope| {
            scope.spawn(|| {
                for number in 0..SKILLS {
                    let folder = world.path(format!("skills/skill-{number:04}"));
                    match number % 3 {
                        0 => fs::remove_dir_all(folder).unwrap(),
                        _ => world.write(
                            folder.join("SKILL.md"),
                            text(&format!("skill-{number:04}"), "branch"),
                        ),
                    }
                    world.write(
                        format!("skills/new-{number:04}/SKILL.md"),
                        text(&format!("new-{number:04}"), "branch"),
                    );
                    (0..4).for_each(|it| {
                        world.write(format!("skills/new-{number:04}/file-{it}.md"), "x");
                    });
                }
            });
            let mut last = live_library.library();
            let start = Instant::now();
            while listed(&last).len() != SKILLS / 3 * 2 + SKILLS
                || listed(&last).iter().any(|it| it.1 != "branch")
            {
                assert!(start.elapsed() < PATIENCE * 4, "{} skills", listed(&last).len());
                last = live_library.wait(&last, Duration::from_millis(200));
                // No file is changed by a rename here, so that half of one may be seen, but never half of
                // a library.
                let names: Vec<&str> = last.skills().map(|it| &*it.manifest.name).collect();
                assert!(names.len() >= SKILLS / 3 * 2, "{} skills", names.len());
                assert!(names.is_sorted());
            }
        });
        let on_disk = world.load();
        let files = |it: &Library| it.all().map(|it| it.resources().len()).sum::<usize>();
        wait(&live_library, "as on disk", |it| {
            listed(it) == listed(&on_disk) && files(it) == files(&on_disk)
        });
        assert_eq!(live_library.watching(), Watching::Notified);
    }

    #[test]
    fn what_was_reloaded_and_then_undone_is_seen() {
        let world = World::new().skill("one", "a");
        let live_library = told(world.options());
        world.write("skills/one/notes.md", "notes");
        assert_eq!(live_library.reload().unwrap().get("one").unwrap().resources().len(), 1);
        world.remove("skills/one/notes.md");
        wait(&live_library, "undone", |it| it.get("one").unwrap().resources().is_empty());
    }

    #[test]
    fn what_was_asked_for_once_is_given_back() {
        let world = World::new().skill("one", "a");
        for _ in 0..300 {
            let live_library = told(world.options());
            assert_ne!(is_watched(&world.path("skills")), Some(false));
            drop(live_library);
            until("nothing is watched any more", || {
                is_watched(&world.path("skills")) != Some(true)
            });
        }
        told(world.options());
    }
}
