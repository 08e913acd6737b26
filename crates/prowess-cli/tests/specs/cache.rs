//! A warm start from the cache of an earlier run.

use std::{
    collections::BTreeSet,
    fs::{self, File, Permissions},
    mem::MaybeUninit,
    os::unix::fs::{PermissionsExt as _, chown, symlink},
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use rustix::{
    fs::inotify::{CreateFlags, Reader, WatchFlags, add_watch, init},
    io::Errno,
};
use serde_json::Value as Json;

use crate::world::{SKILLS, World};

/// The time for which a changed file is not cached.
const SETTLED: Duration = Duration::from_millis(2100);

/// Returns a world with enough skills for a cache, unchanged for long enough.
fn world() -> World {
    let world = with_skills(World::new(), "skills");
    thread::sleep(SETTLED);
    world
}

fn with_skills(world: World, directory: &str) -> World {
    (0..70).fold(world, |world, number| {
        let text = document(&format!("skill-{number}"), &format!("Counts to {number}"), "count");
        world.file(format!("{directory}/skill-{number}/SKILL.md"), text)
    })
}

fn document(name: &str, description: &str, body: &str) -> String {
    format!("---\nname: {name}\ndescription: {description}\n---\n\n{body}\n")
}

fn list(world: &World, arguments: &[&str]) -> Json {
    world.run(["list", "--json"].iter().chain(&SKILLS).chain(arguments)).json()
}

fn find(world: &World, request: &str, arguments: &[&str]) -> Json {
    world.run(["find", request, "--json"].iter().chain(&SKILLS).chain(arguments)).json()
}

/// Asserts that `list` and `find` give the same results as without a cache.
#[track_caller]
fn is_right(world: &World, request: &str, arguments: &[&str]) {
    let without = [&["--no-cache"], arguments].concat();
    assert_eq!(list(world, arguments), list(world, &without));
    assert_eq!(find(world, request, arguments), find(world, request, &without));
}

fn folder(world: &World) -> PathBuf {
    world.path("home/.cache/prowess")
}

/// Returns the files of the cache, sorted.
fn files(world: &World) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder(world)).into_iter().flatten();
    let mut files: Vec<PathBuf> = entries.map(|it| it.unwrap().path()).collect();
    files.sort();
    files
}

fn endings(world: &World) -> BTreeSet<String> {
    let ending = |it: PathBuf| it.extension().unwrap().to_str().unwrap().to_owned();
    files(world).into_iter().map(ending).collect()
}

/// Returns the folders of skills that are opened during a run, and its result.
fn opened<T>(world: &World, run: impl FnOnce() -> T) -> (BTreeSet<String>, T) {
    let watcher = init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).unwrap();
    let mut watched = std::collections::BTreeMap::new();
    for entry in fs::read_dir(world.path("skills")).unwrap() {
        let path = entry.unwrap().path();
        let number = add_watch(&watcher, &path, WatchFlags::OPEN).unwrap();
        watched.insert(number, path.file_name().unwrap().to_str().unwrap().to_owned());
    }
    let ran = run();
    let mut buffer = [MaybeUninit::uninit(); 4096];
    let mut events = Reader::new(&watcher, &mut buffer);
    let mut opened = BTreeSet::new();
    loop {
        match events.next() {
            Ok(event) => opened.extend(watched.get(&event.wd()).cloned()),
            Err(Errno::AGAIN) => return (opened, ran),
            Err(errno) => panic!("{errno}"),
        }
    }
}

mod what_has_not_changed_is_not_read_again {
    use super::*;

    #[test]
    fn a_second_list_opens_no_skill() {
        let world =
            world().file("skills/skill-3/scripts/run.sh", "echo").file("skills/skill-4/a", "b");
        thread::sleep(SETTLED);
        let (first, said) = opened(&world, || list(&world, &[]));
        assert_eq!((first.len(), said["skills"].as_array().unwrap().len()), (70, 70));
        let (second, again) = opened(&world, || list(&world, &[]));
        assert_eq!(second, BTreeSet::new());
        assert_eq!(said, again);
        assert_eq!(again, list(&world, &["--no-cache"]));
    }

    #[test]
    fn a_second_search_reads_no_instructions() {
        let world = world().file("skills/skill-3/METADATA.yml", "description: counts sheep\n");
        thread::sleep(SETTLED);
        let (first, said) = opened(&world, || find(&world, "count sheep", &[]));
        assert_eq!(first.len(), 70);
        assert_eq!(said["matches"][0]["name"], "skill-3", "{said}");
        let (second, again) = opened(&world, || find(&world, "count sheep", &[]));
        // Matches are explained from the text of the skill.
        let found: Vec<&str> = again["matches"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|it| it["name"].as_str())
            .collect();
        assert!(second.iter().all(|it| found.contains(&&**it)), "{second:?}");
        assert_eq!(said, again);
        assert_eq!(again, find(&world, "count sheep", &["--no-cache"]));
        world.write("skills/skill-3/METADATA.yml", "description: counts goats\n");
        thread::sleep(SETTLED);
        assert_eq!(find(&world, "sheep", &[]), find(&world, "sheep", &["--no-cache"]));
    }

    #[test]
    fn after_a_change_only_what_has_changed_is_read() {
        let world = world();
        find(&world, "sheep", &[]);
        world.write("skills/skill-3/SKILL.md", document("skill-3", "Counts to 3", "sheep"));
        let (opened, said) = opened(&world, || find(&world, "sheep", &[]));
        assert_eq!(opened, BTreeSet::from(["skill-3".to_owned()]));
        assert_eq!(said["matches"][0]["name"], "skill-3", "{said}");
        assert_eq!(said, find(&world, "sheep", &["--no-cache"]));
    }

    #[test]
    fn a_few_skills_are_read_every_time() {
        let world = World::new().skill("one", "a").skill("two", "b");
        thread::sleep(SETTLED);
        is_right(&world, "a", &[]);
        assert_eq!(files(&world), [""; 0].map(PathBuf::from));
    }
}

mod a_cache_is_never_wrong {
    use super::*;

    #[test]
    fn a_change_of_the_same_size_within_the_same_second_is_seen() {
        let world = world();
        list(&world, &[]);
        let path = world.path("skills/skill-3/SKILL.md");
        let time = fs::metadata(&path).unwrap().modified().unwrap();
        for letter in ["A", "B", "C", "D", "E", "F"] {
            fs::write(&path, document("skill-3", letter, "count")).unwrap();
            File::open(&path).unwrap().set_modified(time).unwrap();
            let said = list(&world, &[]);
            let skills = said["skills"].as_array().unwrap();
            let own = skills.iter().find(|it| it["name"] == "skill-3").unwrap();
            assert_eq!(own["description"], letter);
        }
        is_right(&world, "count", &[]);
    }

    #[test]
    fn whatever_is_added_removed_or_renamed_is_seen() {
        let world = world();
        is_right(&world, "count to 8", &[]);
        let skill = |number: usize| world.path(format!("skills/skill-{number}"));
        let edits: [&dyn Fn(); 10] = [
            &|| world.write("skills/new/SKILL.md", document("new", "Counts to 8", "new")),
            &|| world.write("skills/skill-1/SKILL.md", "---\nname: [\n---\n"),
            &|| world.write("skills/skill-2/scripts/run", "echo"),
            &|| world.write("skills/skill-2/scripts/run", "else"),
            &|| world.write("skills/skill-2/METADATA.yml", "description: counts to 8 and 8\n"),
            &|| world.remove("skills/skill-2/scripts/run"),
            &|| world.remove("skills/skill-4/SKILL.md"),
            &|| fs::rename(skill(5), world.path("skills/other")).unwrap(),
            &|| fs::remove_dir_all(skill(6)).unwrap(),
            &|| {
                fs::rename(skill(7), world.path("outside")).unwrap();
                symlink("../outside", skill(7)).unwrap();
            },
        ];
        for edit in edits {
            edit();
            is_right(&world, "count to 8", &[]);
        }
        thread::sleep(SETTLED);
        is_right(&world, "count to 8", &[]);
        is_right(&world, "count to 8", &[]);
    }

    #[test]
    fn a_skill_that_may_no_longer_be_read_is_not_shown() {
        let world = world();
        for path in ["home", "skills"] {
            chown(world.path(path), Some(65534), Some(65534)).unwrap_or_default();
        }
        let arguments = ["list", "--json", "--dir", "skills"];
        let first = world.run_without_rights(&arguments);
        assert_eq!(first.json()["skills"].as_array().unwrap().len(), 70);
        assert_ne!(files(&world), [""; 0].map(PathBuf::from));
        let world = world.locked("skills/skill-3/SKILL.md").locked("skills/skill-4");
        let said = world.run_without_rights(&arguments).json();
        let skills = said["skills"].as_array().unwrap();
        let is_gone = |name: &str| skills.iter().all(|it| it["name"] != name);
        assert!(is_gone("skill-3") && is_gone("skill-4") && skills.len() == 68);
        assert_eq!(said["findings"].as_array().unwrap().len(), 2, "{}", said["findings"]);
    }

    #[test]
    fn other_settings_have_a_cache_of_their_own() {
        let world = with_skills(World::new(), "skills/deep");
        let world = with_skills(world, "skills")
            .file("skills/nameless/SKILL.md", "---\ndescription: Has no name\n---\n")
            .file("skills/skill-9/large", "0123456789".repeat(100));
        thread::sleep(SETTLED);
        let settings: [&[&str]; 6] = [
            &[],
            &["--depth", "2"],
            &["--profile", "lenient"],
            &["--max-file-size", "10"],
            &["--max-skill-size", "500"],
            &["--cwd", "skills", "--dir", "deep"],
        ];
        for arguments in settings.iter().chain(&settings) {
            is_right(&world, "count", arguments);
        }
    }
}

mod a_cache_is_safe_to_have {
    use super::*;

    #[test]
    fn a_damaged_cache_is_set_aside_and_made_anew() {
        let world = world();
        is_right(&world, "count", &[]);
        let kept = files(&world);
        assert_eq!(endings(&world), ["index", "skills"].map(str::to_owned).into());
        let sound: Vec<Vec<u8>> = kept.iter().map(|it| fs::read(it).unwrap()).collect();
        let damages: [&dyn Fn(usize) -> Vec<u8>; 5] = [
            &|at| sound[at][..sound[at].len() / 2].to_vec(),
            &|at| sound[1 - at].clone(),
            &|at| sound[at].iter().map(|it| it.wrapping_add(u8::from(*it == b'c'))).collect(),
            &|_| Vec::new(),
            &|_| vec![0xFF; 1000],
        ];
        for damage in damages {
            for (at, path) in kept.iter().enumerate() {
                fs::write(path, damage(at)).unwrap();
            }
            is_right(&world, "count", &[]);
            for (path, sound) in kept.iter().zip(&sound) {
                assert_eq!(fs::read(path).unwrap().len(), sound.len());
                assert!(path.with_extension("bad").exists());
            }
        }
    }

    #[test]
    fn a_cache_can_be_deleted_at_any_time() {
        let world = world();
        is_right(&world, "count", &[]);
        fs::remove_dir_all(folder(&world)).unwrap();
        is_right(&world, "count", &[]);
        fs::remove_dir_all(folder(&world)).unwrap();
        fs::write(folder(&world), "a file in its place").unwrap();
        is_right(&world, "count", &[]);
        assert_eq!(fs::read(folder(&world)).unwrap(), b"a file in its place");
    }

    #[test]
    fn a_cache_is_private() {
        let world = world();
        is_right(&world, "count", &[]);
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&folder(&world)), 0o700);
        assert!(files(&world).iter().all(|it| mode(it) == 0o600));

        let is_left_alone = |prepare: &dyn Fn()| {
            fs::remove_dir_all(folder(&world)).unwrap_or_default();
            let _ = fs::remove_file(folder(&world));
            fs::create_dir(folder(&world)).unwrap();
            prepare();
            is_right(&world, "count", &[]);
            assert_eq!(files(&world), [""; 0].map(PathBuf::from));
        };
        is_left_alone(&|| {
            fs::set_permissions(folder(&world), Permissions::from_mode(0o777)).unwrap();
        });
        is_left_alone(&|| {
            fs::remove_dir(folder(&world)).unwrap();
            fs::create_dir_all(world.path("elsewhere")).unwrap();
            symlink(world.path("elsewhere"), folder(&world)).unwrap();
        });
        // Only root can change the owner of a folder.
        if chown(folder(&world), Some(65534), None).is_ok() {
            is_left_alone(&|| chown(folder(&world), Some(65534), None).unwrap());
        }
    }

    #[test]
    fn nobody_keeps_anything_who_does_not_want_to() {
        let world = world();
        list(&world, &["--no-cache"]);
        assert!(!world.path("home/.cache").exists());
        world.write("off.toml", "[skill]\ncache = false\n");
        list(&world, &["--config", "off.toml"]);
        assert!(!world.path("home/.cache").exists());
        list(&world, &[]);
        let (opened, _) = opened(&world, || list(&world, &["--no-cache"]));
        assert_eq!(opened.len(), 70);
    }

    #[test]
    fn several_programs_share_a_cache() {
        let world = world();
        let (listed, found) =
            (list(&world, &["--no-cache"]), find(&world, "count", &["--no-cache"]));
        thread::scope(|scope| {
            for _ in 0..5 {
                scope.spawn(|| assert_eq!(list(&world, &[]), listed));
                scope.spawn(|| assert_eq!(find(&world, "count", &[]), found));
            }
        });
        assert_eq!(files(&world).len(), 2, "{:?}", files(&world));
        assert_eq!(endings(&world), ["index", "skills"].map(str::to_owned).into());
    }

    #[test]
    fn a_cache_stays_small() {
        let world = world();
        for number in 0..40 {
            list(&world, &["--max-file-size", &number.to_string()]);
        }
        assert_eq!(files(&world).len(), 32);
        let (opened, _) = opened(&world, || list(&world, &["--max-file-size", "39"]));
        assert_eq!(opened, BTreeSet::new());
    }

    #[test]
    fn no_tool_writes_what_libraries_recall() {
        let world = world();
        list(&world, &[]);
        for path in [".cache/prowess/new", "new"] {
            let input = format!(r#"{{"operation": "write", "path": "{path}", "content": "x"}}"#);
            world.run(["tool", "--yes", "--root", "home", "file_operations", &input]);
        }
        assert!(!folder(&world).join("new").exists());
        assert!(world.path("home/new").exists());
    }
}
