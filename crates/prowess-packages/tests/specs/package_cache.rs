//! The scenarios of `specs/package_cache.md`.

use std::{
    fs,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    thread,
};

use prowess_packages::{
    ArchiveLimits, CacheError, ContentDigest, PackageCache, Placing, TreeFile, copy_folder,
};
use prowess_testing::world::World;

/// A folder `from` with a skill.
fn skill() -> World {
    let world = World::new()
        .file("from/SKILL.md", "# a")
        .file("from/data/empty", "")
        .file("from/data/x.txt", "some text");
    prowess_testing::configured_server::executable(&world.path("from/run.sh"), "#!/bin/sh\n");
    world
}

fn cache(world: &World) -> PackageCache {
    PackageCache::open(&world.path("cache")).unwrap()
}

/// Puts a folder into the cache. Returns its files and its folder in the cache.
fn insert(cache: &PackageCache, from: &Path) -> (Vec<TreeFile>, PathBuf) {
    let draft = cache.draft().unwrap();
    let files = copy_folder(from, &ArchiveLimits::default(), draft.path()).unwrap().files;
    let folder = cache.insert(draft, &files).unwrap();
    (files, folder)
}

/// The contents of all files below a folder, by path.
fn contents(folder: &Path, files: &[TreeFile]) -> Vec<Vec<u8>> {
    files.iter().map(|it| fs::read(folder.join(&it.path)).unwrap()).collect()
}

fn inode(path: impl AsRef<Path>) -> u64 {
    fs::metadata(path).unwrap().ino()
}

/// Writes to a file that nobody may write to, as an editor does that insists.
fn overwrite(path: &Path, text: &str) {
    fs::set_permissions(path, fs::Permissions::from_mode(0o644)).unwrap();
    fs::write(path, text).unwrap();
}

/// The files below a folder of the cache.
fn below(folder: PathBuf) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false => found.push(path),
            }
        }
    }
    found
}

mod each_file_is_stored_once {
    use super::*;

    #[test]
    fn what_is_inserted_is_there_byte_for_byte() {
        let world = skill();
        let cache = cache(&world);
        let (files, folder) = insert(&cache, &world.path("from"));
        assert_eq!(contents(&folder, &files), contents(&world.path("from"), &files));
        assert_eq!(cache.folder_of(&files), Some(folder));
        assert_eq!(files.len(), 4);
    }

    #[test]
    fn packages_share_files_that_are_equal() {
        let world = skill().file("other/LICENSE", "some text").file("other/b", "b");
        let cache = cache(&world);
        let (_, one) = insert(&cache, &world.path("from"));
        let (_, other) = insert(&cache, &world.path("other"));
        assert_eq!(inode(one.join("data/x.txt")), inode(other.join("LICENSE")));
        let size = cache.size().unwrap();
        assert_eq!((size.files, size.bytes), (5, 3 + 9 + 10 + 1));
        insert(&cache, &world.path("from"));
        assert_eq!(cache.size().unwrap(), size);
    }

    #[test]
    fn an_executable_file_is_another_than_a_plain_one() {
        let world = World::new().file("from/plain", "x");
        prowess_testing::configured_server::executable(&world.path("from/run"), "x");
        let cache = cache(&world);
        let (_, folder) = insert(&cache, &world.path("from"));
        let mode = |it: &str| fs::metadata(folder.join(it)).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode("plain"), mode("run")), (0o444, 0o555));
        assert_eq!(cache.size().unwrap().files, 2);
    }

    #[test]
    fn a_part_of_a_package_has_a_folder_of_its_own() {
        let world = skill();
        let cache = cache(&world);
        let (files, folder) = insert(&cache, &world.path("from"));
        let part: Vec<TreeFile> = files
            .iter()
            .filter(|it| it.path.starts_with("data/"))
            .map(|it| {
                let mut file = it.clone();
                file.path = it.path["data/".len()..].to_owned();
                file
            })
            .collect();
        let own = cache.folder_of(&part).unwrap();
        assert_ne!(own, folder);
        assert_eq!(fs::read(own.join("x.txt")).unwrap(), b"some text");
        assert_eq!(inode(own.join("x.txt")), inode(folder.join("data/x.txt")));
    }
}

mod installed_files_are_hard_links_or_copies {
    use super::*;

    #[test]
    fn a_placed_folder_has_links_to_the_files_of_the_cache() {
        let world = skill();
        let cache = cache(&world);
        let (files, folder) = insert(&cache, &world.path("from"));
        let target = world.path("skills/a");
        assert_eq!(cache.place(&files, &target).unwrap(), Placing::HardLinks);
        assert_eq!(contents(&target, &files), contents(&folder, &files));
        for file in &files {
            assert_eq!(inode(target.join(&file.path)), inode(folder.join(&file.path)));
        }
        let mode = fs::metadata(target.join("run.sh")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o555);
    }

    #[test]
    fn many_files_are_placed_at_once() {
        let world = World::new();
        for number in 0..300 {
            world.write(format!("from/{}/{number}", number % 7), number.to_string());
        }
        let cache = cache(&world);
        let (files, _) = insert(&cache, &world.path("from"));
        let target = world.path("skills/a");
        assert_eq!(cache.place(&files, &target).unwrap(), Placing::HardLinks);
        assert_eq!(contents(&target, &files), contents(&world.path("from"), &files));
        assert_eq!(files.len(), 300);
    }

    #[test]
    fn many_folders_are_placed_or_none() {
        let world = skill().file("other/b", "b").folder("skills");
        let cache = cache(&world);
        let (files, _) = insert(&cache, &world.path("from"));
        let (other, _) = insert(&cache, &world.path("other"));
        let paths: Vec<PathBuf> = (0..40).map(|it| world.path(format!("skills/{it}"))).collect();
        let mut folders: Vec<(&[TreeFile], &Path)> =
            paths.iter().map(|it| (&files[..], it.as_path())).collect();
        let last = world.path("skills/last");
        folders.push((&other, &last));
        assert_eq!(cache.place_all(&folders).unwrap(), [Placing::HardLinks; 41]);
        assert_eq!(fs::read(last.join("b")).unwrap(), b"b");
        assert_eq!(below(world.path("skills")).len(), 40 * 4 + 1);
        for folder in &paths {
            fs::remove_dir_all(folder).unwrap();
        }
        // The last one is there already.
        assert!(cache.place_all(&folders).is_err());
        assert_eq!(below(world.path("skills")), [last.join("b")]);
        assert_eq!(fs::read_dir(world.path("skills")).unwrap().count(), 1);
    }

    #[test]
    fn a_folder_that_exists_is_not_touched() {
        let world = skill().file("skills/a/mine", "mine");
        let cache = cache(&world);
        let (files, _) = insert(&cache, &world.path("from"));
        let error = cache.place(&files, &world.path("skills/a")).unwrap_err();
        assert!(matches!(error, CacheError::Io { action: "create", .. }), "{error:?}");
        assert_eq!(below(world.path("skills")), [world.path("skills/a/mine")]);
    }

    #[test]
    fn on_another_file_system_files_are_copied() {
        let elsewhere = tempfile::tempdir_in("/dev/shm").unwrap();
        let world = skill();
        assert_ne!(
            fs::metadata(elsewhere.path()).unwrap().dev(),
            fs::metadata(world.path(".")).unwrap().dev(),
            "the temporary folder is in memory too"
        );
        let cache = cache(&world);
        let (files, folder) = insert(&cache, &world.path("from"));
        let target = elsewhere.path().join("a");
        assert_eq!(cache.place(&files, &target).unwrap(), Placing::Copies);
        assert_eq!(contents(&target, &files), contents(&folder, &files));
        let mode = |it: &str| fs::metadata(target.join(it)).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode("SKILL.md"), mode("run.sh")), (0o644, 0o755));
    }

    #[test]
    fn copies_that_were_asked_for_can_be_edited() {
        let world = skill();
        let cache = cache(&world);
        let (files, folder) = insert(&cache, &world.path("from"));
        let target = world.path("skills/a");
        assert_eq!(cache.copy(&files, &target).unwrap(), Placing::Copies);
        fs::write(target.join("SKILL.md"), "edited").unwrap();
        assert_eq!(fs::read(folder.join("SKILL.md")).unwrap(), b"# a");
        assert_eq!(cache.folder_of(&files), Some(folder));
    }
}

mod a_changed_file_is_never_used {
    use super::*;

    #[test]
    fn an_edit_through_a_link_is_noticed_and_the_file_dropped() {
        let world = skill();
        let cache = cache(&world);
        let (files, _) = insert(&cache, &world.path("from"));
        cache.place(&files, &world.path("skills/a")).unwrap();
        // Of the same length.
        overwrite(&world.path("skills/a/SKILL.md"), "# b");
        let before = cache.size().unwrap().files;
        let error = cache.place(&files, &world.path("skills/b")).unwrap_err();
        assert!(matches!(error, CacheError::Missing(it) if it == ContentDigest::of(&files)));
        assert!(!world.path("skills/b").exists());
        assert_eq!(cache.folder_of(&files), None);
        assert_eq!(cache.size().unwrap().files, before - 1);
        assert_eq!(fs::read(world.path("skills/a/SKILL.md")).unwrap(), b"# b");
    }

    #[test]
    fn what_is_fetched_again_takes_its_place() {
        let world = skill();
        let cache = cache(&world);
        let (files, folder) = insert(&cache, &world.path("from"));
        overwrite(&folder.join("SKILL.md"), "# a longer text");
        let (again, repaired) = insert(&cache, &world.path("from"));
        assert_eq!(again, files);
        assert_eq!(contents(&repaired, &files), contents(&world.path("from"), &files));
        cache.place(&files, &world.path("skills/b")).unwrap();
        assert_eq!(fs::read(world.path("skills/b/SKILL.md")).unwrap(), b"# a");
    }

    #[test]
    fn a_file_that_was_only_touched_is_used_again() {
        let world = skill();
        let cache = cache(&world);
        let (files, folder) = insert(&cache, &world.path("from"));
        overwrite(&folder.join("SKILL.md"), "# a");
        assert_eq!(cache.folder_of(&files), Some(folder.clone()));
        cache.place(&files, &world.path("skills/b")).unwrap();
        let mode = fs::metadata(folder.join("SKILL.md")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o444);
    }

    #[test]
    fn a_folder_that_was_changed_is_made_again() {
        let world = skill();
        let cache = cache(&world);
        let (files, folder) = insert(&cache, &world.path("from"));
        fs::remove_file(folder.join("run.sh")).unwrap();
        assert_eq!(cache.folder_of(&files), Some(folder.clone()));
        assert_eq!(contents(&folder, &files), contents(&world.path("from"), &files));
    }

    #[test]
    fn a_list_that_leads_out_of_the_folder_is_not_followed() {
        let world = skill();
        let cache = cache(&world);
        let (mut files, _) = insert(&cache, &world.path("from"));
        files.truncate(1);
        files[0].path = "../escaped".to_owned();
        assert!(cache.place(&files, &world.path("skills/a")).is_err());
        assert_eq!(below(world.path("skills")), Vec::<PathBuf>::new());
        assert_eq!(cache.folder_of(&files), None);
    }

    #[test]
    fn a_folder_that_others_can_write_in_is_refused() {
        let world = skill();
        drop(cache(&world));
        fs::set_permissions(world.path("cache"), fs::Permissions::from_mode(0o777)).unwrap();
        let error = PackageCache::open(&world.path("cache")).unwrap_err();
        let CacheError::Io { source, .. } = &error else { panic!("{error}") };
        assert_eq!(source.to_string(), "everyone can write in it");
    }
}

mod several_processes_use_one_cache {
    use super::*;

    #[test]
    fn the_same_package_can_be_inserted_by_many_at_once() {
        let world = skill();
        let one = || insert(&cache(&world), &world.path("from")).1;
        let work = || (0..10).map(|_| one()).collect::<Vec<_>>();
        let folders: Vec<PathBuf> = thread::scope(|scope| {
            let all: Vec<_> = (0..8).map(|_| scope.spawn(work)).collect();
            all.into_iter().flat_map(|it| it.join().unwrap()).collect()
        });
        assert_eq!(folders.len(), 80);
        assert!(folders.iter().all(|it| it == &folders[0]));
        let cache = cache(&world);
        assert_eq!(cache.size().unwrap().files, 4);
        let (files, _) = insert(&cache, &world.path("from"));
        assert_eq!(contents(&folders[0], &files), contents(&world.path("from"), &files));
        assert_eq!(below(world.path("cache/drafts")), Vec::<PathBuf>::new());
    }

    #[test]
    fn a_draft_is_removed_when_it_is_dropped() {
        let world = World::new();
        let cache = cache(&world);
        let draft = cache.draft().unwrap();
        fs::write(draft.path().join("half"), "half").unwrap();
        let path = draft.path().to_owned();
        drop(draft);
        assert!(!path.exists());
        assert_eq!(below(world.path("cache/drafts")), Vec::<PathBuf>::new());
    }

    #[test]
    fn what_a_killed_process_left_is_removed_by_the_next() {
        let world = World::new()
            .file("cache/drafts/draft-killed.lock", "")
            .file("cache/drafts/draft-killed/half", "half");
        let cache = cache(&world);
        let living = cache.draft().unwrap();
        fs::write(living.path().join("half"), "half").unwrap();
        let other = PackageCache::open(&world.path("cache")).unwrap().draft().unwrap();
        assert!(!world.path("cache/drafts/draft-killed").exists());
        assert!(!world.path("cache/drafts/draft-killed.lock").exists());
        assert_eq!(fs::read(living.path().join("half")).unwrap(), b"half");
        drop(other);
    }
}

mod what_was_fetched_is_remembered {
    use super::*;
    use prowess_packages::FetchedTree;

    fn fetched(cache: &PackageCache, world: &World) -> FetchedTree {
        let (files, folder) = insert(cache, &world.path("from"));
        let source = "anthropics/skills".parse().unwrap();
        let mut tree = FetchedTree::new(folder, files, source, "https://example.com/a.git");
        tree.commit = Some("c".repeat(40));
        tree.published = Some(1_700_000_000);
        tree
    }

    const KEY: &str = "git https://example.com/a.git cccc";

    #[test]
    fn a_key_gives_the_tree_that_was_remembered() {
        let world = skill();
        let cache = cache(&world);
        let tree = fetched(&cache, &world);
        cache.remember(KEY, &tree).unwrap();
        let mut recalled = PackageCache::open(&world.path("cache")).unwrap().recall(KEY).unwrap();
        // How a source is written is the matter of another chapter.
        recalled.source = tree.source.clone();
        assert_eq!(recalled, tree);
        assert_eq!(cache.recall("git https://example.com/a.git"), None);
        cache.forget(KEY).unwrap();
        assert_eq!(cache.recall(KEY), None);
        cache.forget(KEY).unwrap();
    }

    #[test]
    fn a_tree_with_a_file_that_is_gone_is_not_recalled() {
        let world = skill();
        let cache = cache(&world);
        let tree = fetched(&cache, &world);
        cache.remember(KEY, &tree).unwrap();
        overwrite(&tree.folder.join("SKILL.md"), "something else");
        assert_eq!(cache.recall(KEY), None);
    }

    #[test]
    fn a_damaged_entry_is_none() {
        let world = skill();
        let cache = cache(&world);
        cache.remember(KEY, &fetched(&cache, &world)).unwrap();
        let [path] = &below(world.path("cache/keys"))[..] else { panic!("not one key") };
        let text = fs::read_to_string(path).unwrap();
        for damaged in [
            String::new(),
            text[..text.len() / 2].to_owned(),
            text.replace("run.sh", "../run.sh"),
            text.replace("run.sh", "run.py"),
            text.replace("cccc", "dddd"),
            text.replace("\"version\":1", "\"version\":2"),
        ] {
            assert_ne!(damaged, text);
            fs::write(path, &damaged).unwrap();
            assert_eq!(cache.recall(KEY), None, "{damaged}");
        }
        fs::write(path, &text).unwrap();
        assert!(cache.recall(KEY).is_some());
    }
}

mod a_cache_can_be_emptied {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn files_that_are_installed_or_wanted_stay() {
        let world = skill().file("other/b", "installed").file("third/c", "wanted");
        let cache = cache(&world);
        let (gone, _) = insert(&cache, &world.path("from"));
        let (installed, _) = insert(&cache, &world.path("other"));
        let (wanted, _) = insert(&cache, &world.path("third"));
        cache.place(&installed, &world.path("skills/b")).unwrap();
        let removed = cache.prune(&BTreeSet::from([wanted[0].digest])).unwrap();
        assert_eq!((removed.files, removed.bytes), (4, 3 + 9 + 10));
        let cache = self::cache(&world);
        assert_eq!(cache.size().unwrap().files, 2);
        assert!(cache.folder_of(&installed).is_some());
        assert!(cache.folder_of(&wanted).is_some());
        assert_eq!(cache.folder_of(&gone), None);
        assert_eq!(fs::read(world.path("skills/b/b")).unwrap(), b"installed");
    }

    #[test]
    fn nothing_is_removed_while_others_use_the_cache() {
        let world = skill();
        let cache = cache(&world);
        let (files, _) = insert(&cache, &world.path("from"));
        let other = self::cache(&world);
        let error = cache.prune(&BTreeSet::new()).unwrap_err();
        assert!(matches!(error, CacheError::InUse(_)), "{error:?}");
        assert!(other.folder_of(&files).is_some());
        // A draft uses it too.
        let draft = other.draft().unwrap();
        let error = other.prune(&BTreeSet::new()).unwrap_err();
        assert!(matches!(error, CacheError::InUse(_)), "{error:?}");
        drop(draft);
        assert_eq!(self::cache(&world).prune(&BTreeSet::new()).unwrap().files, 4);
    }
}
