//! A library while time goes on: lazy bodies, reloads, watching.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use prowess::{Directory, Library, Listing, LiveLibrary, Memory, Options, Scope};

use crate::world::{Counting, World, until};

mod bodies_stay_on_disk_until_they_are_asked_for {
    use super::*;

    #[test]
    fn q_06_loading_reads_metadata_alone() {
        let files: [(&str, &[u8]); 3] = [
            ("one/SKILL.md", b"---\nname: one\ndescription: a\n---\nbody of one\n"),
            ("one/notes.md", b"notes"),
            ("two/SKILL.md", b"---\nname: two\ndescription: b\n---\nbody of two\n"),
        ];
        let memory = Memory::new(Scope::Project, "memory", files);
        let source = Arc::new(Counting::new(memory));
        let options = Options { sources: vec![source.clone()], ..Options::default() };
        let library = Library::load(&options).unwrap();
        assert_eq!(library.skills().count(), 2);
        assert_eq!(source.reads(), 0);
        assert_eq!(library.get("two").unwrap().instructions().unwrap(), "body of two\n");
        assert_eq!(source.reads(), 1);
    }

    #[test]
    fn resources_wait_as_well_when_they_are_wanted_on_demand() {
        let world = World::new().skill("one", "a").file("skills/one/notes.md", "notes");
        let options = Options { resources: Listing::OnDemand, ..world.options() };
        let library = Library::load(&options).unwrap();
        world.write("skills/one/later.md", "written after loading");
        let skill = library.get("one").unwrap();
        let paths: Vec<&str> = skill.resources().iter().map(|it| &*it.path).collect();
        assert_eq!(paths, ["later.md", "notes.md"]);
        assert_eq!(skill.read("notes.md").unwrap(), b"notes");
    }

    #[test]
    fn q_26_the_keeper_loads_the_metadata_when_it_starts() {
        let world = World::new().skill("one", "a").skill("two", "b");
        let live_library = LiveLibrary::start(&world.options()).unwrap();
        world.remove("skills/two/SKILL.md");
        world.write("skills/one/SKILL.md", "---\nname: one\ndescription: changed\n---\nnew body\n");
        let library = live_library.library();
        let described: Vec<&str> = library.skills().map(|it| &*it.manifest.description).collect();
        assert_eq!(described, ["a", "b"]);
        assert_eq!(library.get("one").unwrap().instructions().unwrap(), "new body\n");
        assert!(library.get("two").unwrap().instructions().is_err());
    }

    #[test]
    fn q_27_a_change_is_seen_after_a_reload_or_a_restart() {
        let world = World::new().skill("one", "before");
        let live_library = LiveLibrary::start(&world.options()).unwrap();
        let held = live_library.library();
        let world = world.skill("two", "added").skill("one", "after");
        let described = |library: &Library| {
            library.skills().map(|it| it.manifest.description.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(described(&live_library.library()), ["before"]);
        assert_eq!(described(&live_library.reload().unwrap()), ["after", "added"]);
        assert_eq!(described(&live_library.library()), ["after", "added"]);
        assert_eq!(described(&held), ["before"]);
        assert_eq!(described(&world.load()), ["after", "added"]);
    }

    #[test]
    fn a_bad_edit_keeps_the_last_good_version() {
        let world = World::new().skill("one", "good");
        let library = world.load();
        world.write("skills/one/SKILL.md", "---\nname: [one\n---\n");
        let reloaded = library.reload().unwrap();
        assert_eq!(&*reloaded.get("one").unwrap().manifest.description, "good");
        let kept = reloaded.findings().iter().find(|it| it.rule.code == "kept-last-good").unwrap();
        assert_eq!(kept.severity.as_str(), "error");
        // The version before stays through a second reload too.
        let reloaded = reloaded.reload().unwrap();
        assert_eq!(&*reloaded.get("one").unwrap().manifest.description, "good");
        let world = world.skill("one", "better");
        let mended = reloaded.reload().unwrap();
        assert_eq!(&*mended.get("one").unwrap().manifest.description, "better");
        assert_eq!(mended.findings(), []);
        drop(world);
    }

    #[test]
    fn a_bad_edit_lets_no_other_skill_in() {
        let world = World::new()
            .skill("another", "Stays")
            .skill("deploy", "The project's")
            .skill_in("home/mine", "deploy", "The user's");
        let directories = vec![Directory::new("~/mine"), Directory::new("skills")];
        let live_library = LiveLibrary::start(&Options { directories, ..world.options() }).unwrap();
        let mut library = Library::clone(&live_library.library());
        let mut reloaded = || {
            library = library.reload().unwrap();
            let kept = live_library.reload().unwrap();
            let [both, others] = [&library, &*kept].map(|it| {
                let rules: Vec<&str> = it.findings().iter().map(|it| it.rule.code).collect();
                let taken = it.get("deploy").unwrap().manifest.description.to_string();
                (taken, it.all().count(), rules.contains(&"kept-last-good"))
            });
            assert_eq!(both, others);
            both
        };
        let taken = |description: &str, count, kept| (description.to_owned(), count, kept);
        for text in ["---\nname: [deploy\n---\n", "", "---\nname: deploy\n---\n"] {
            world.write("skills/deploy/SKILL.md", text);
            assert_eq!(reloaded(), taken("The project's", 3, true), "{text:?}");
        }
        let world = world.skill("deploy", "Mended");
        assert_eq!(reloaded(), taken("Mended", 3, false));
        world.remove("skills/deploy/SKILL.md");
        assert_eq!(reloaded(), taken("The user's", 2, false));
    }

    #[test]
    fn a_skill_that_was_deleted_is_gone_after_a_reload() {
        let world = World::new().skill("one", "a").skill("two", "b").skill("three", "c");
        let library = world.load();
        world.remove("skills/one/SKILL.md");
        std::fs::remove_dir_all(world.path("skills/two")).unwrap();
        let reloaded = library.reload().unwrap();
        let names: Vec<&str> = reloaded.all().map(|it| &*it.manifest.name).collect();
        assert_eq!((names, reloaded.findings().len()), (vec!["three"], 0));
    }

    #[test]
    fn whoever_reads_while_others_reload_sees_a_whole_library() {
        let mut world =
            World::new().document("changing", "---\nname: changing\ndescription: '0'\n---\n");
        for number in 0..40 {
            world = world.skill(&format!("skill-{number}"), "Stays");
        }
        let live_library = LiveLibrary::start(&world.options()).unwrap();
        let seen = || {
            let library = live_library.library();
            assert_eq!(library.all().count(), 41);
            assert_eq!(library.findings(), []);
            library.get("changing").unwrap().manifest.description.parse::<usize>().unwrap()
        };
        let (version, done) = (Mutex::new(0), AtomicUsize::new(0));
        let change = |own: usize| {
            for _ in 0..50 {
                let written = {
                    let mut version = version.lock().unwrap();
                    *version += 1;
                    let text = format!("---\nname: changing\ndescription: '{version}'\n---\n");
                    let new = world.path(format!("new-{own}"));
                    std::fs::write(&new, text).unwrap();
                    std::fs::rename(new, world.path("skills/changing/SKILL.md")).unwrap();
                    *version
                };
                live_library.reload().unwrap();
                assert!(seen() >= written, "version {written} was lost");
            }
            done.fetch_add(1, Ordering::Relaxed);
        };
        std::thread::scope(|scope| {
            for own in 0..2 {
                scope.spawn(move || change(own));
            }
            for _ in 0..10 {
                scope.spawn(|| {
                    let mut before = 0;
                    while done.load(Ordering::Relaxed) < 2 {
                        let now = seen();
                        assert!(now >= before, "version {before} was lost");
                        before = now;
                        std::thread::yield_now();
                    }
                });
            }
        });
        assert_eq!(seen(), 100);
    }
}

mod a_watched_library_follows_its_files {
    use super::*;

    /// Waits until the library that a keeper gives is as wanted.
    fn wait(live_library: &LiveLibrary, wanted: impl Fn(&Library) -> bool) {
        until("the library is as wanted", || wanted(&live_library.library()));
    }

    fn describes(library: &Library, name: &str, description: &str) -> bool {
        library.get(name).is_some_and(|it| &*it.manifest.description == description)
    }

    #[test]
    fn a_06_a_changed_skill_is_seen_while_running() {
        let world = World::new().skill("one", "before");
        let options = Options { watch: true, ..world.options() };
        let live_library = LiveLibrary::start(&options).unwrap();
        assert!(describes(&live_library.library(), "one", "before"));

        let world = world.skill("one", "after").skill("two", "added");
        wait(&live_library, |it| describes(it, "one", "after") && describes(it, "two", "added"));
        world.write("skills/two/notes.md", "more");
        wait(&live_library, |it| it.get("two").unwrap().resources().len() == 1);
        world.write("skills/one/SKILL.md", "broken");
        wait(&live_library, |it| it.findings().iter().any(|it| it.rule.code == "kept-last-good"));
        assert!(describes(&live_library.library(), "one", "after"));
        world.remove("skills/one/SKILL.md");
        wait(&live_library, |it| it.get("one").is_none());
    }

    #[test]
    fn a_06_nothing_is_watched_by_default() {
        let world = World::new().skill("one", "before");
        let live_library = LiveLibrary::start(&world.options()).unwrap();
        world.skill("one", "after");
        thread::sleep(Duration::from_millis(1200));
        assert!(describes(&live_library.library(), "one", "before"));
    }
}
