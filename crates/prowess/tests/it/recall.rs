//! A library with a cache is the same as one without, whatever happens to the files and the cache.

use std::{
    fs::{self, File, FileTimes, Permissions},
    os::unix::fs::{PermissionsExt as _, symlink},
    path::Path,
    thread::sleep,
    time::Duration,
};

use proptest::{collection::vec, prelude::*, sample::Index};
use prowess::{Cache, Directory, Library, Listing, Options, Profile, matches};

use crate::files::World;

/// Longer than the timestamp resolution of this machine's file system.
const TICK: Duration = Duration::from_millis(15);

/// A change to a skill.
#[derive(Debug, Clone, Copy)]
enum Edit {
    Write(&'static str),
    /// Changes one letter in place, and restores the old time.
    Slip,
    Touch,
    Remove,
    Rename,
    Lock,
    Unlock,
    Resource(&'static str),
    Describe(&'static str),
    Unresource,
    Link,
    /// Replaces it by a folder of skills.
    Nest,
}

fn edit() -> impl Strategy<Value = Edit> {
    prop_oneof![
        3 => prop_oneof![Just("alpha beta"), Just("gamma"), Just("delta alpha")].prop_map(Edit::Write),
        3 => Just(Edit::Slip),
        1 => Just(Edit::Write("\u{0}---\n: broken")),
        1 => Just(Edit::Touch),
        1 => Just(Edit::Remove),
        1 => Just(Edit::Rename),
        1 => Just(Edit::Lock),
        1 => Just(Edit::Unlock),
        2 => prop_oneof![Just("one"), Just("two"), Just("three")].prop_map(Edit::Resource),
        5 => prop_oneof![Just("epsilon"), Just("zetazet")].prop_map(Edit::Describe),
        1 => Just(Edit::Unresource),
        1 => Just(Edit::Link),
        1 => Just(Edit::Nest),
    ]
}

const NAMES: [&str; 3] = ["a", "b", "c"];

impl Edit {
    /// Applies the change, if possible.
    fn happen(self, world: &World, name: &str) {
        let folder = world.path(&format!("skills/{name}"));
        let document = folder.join("SKILL.md");
        let _ = match self {
            Self::Write(words) => {
                fs::create_dir_all(&folder).and_then(|()| fs::write(&document, text(name, words)))
            }
            Self::Slip => slip(&document),
            Self::Touch => File::open(&document)
                .and_then(|it| it.set_modified(std::time::SystemTime::UNIX_EPOCH)),
            Self::Remove => fs::remove_dir_all(&folder).or_else(|_| fs::remove_file(&folder)),
            Self::Rename => fs::rename(&folder, world.path("skills/renamed")),
            Self::Lock => fs::set_permissions(&document, Permissions::from_mode(0o000)),
            Self::Unlock => fs::set_permissions(&document, Permissions::from_mode(0o600)),
            Self::Resource(text) => fs::create_dir_all(folder.join("scripts"))
                .and_then(|()| fs::write(folder.join("scripts/run"), text)),
            Self::Describe(words) => {
                fs::write(folder.join("METADATA.yml"), format!("description: {words}\n"))
            }
            Self::Unresource => fs::remove_dir_all(folder.join("scripts")),
            Self::Link => symlink("../renamed", world.path(&format!("skills/{name}/link")))
                .or_else(|_| symlink("renamed", &folder)),
            Self::Nest => fs::create_dir_all(folder.join("inner"))
                .and_then(|()| fs::rename(&document, folder.join("inner/SKILL.md"))),
        };
    }
}

fn text(name: &str, words: &str) -> String {
    format!(
        "---\nname: {name}\ndescription: about {words}\nmetadata:\n  a: [1, {{b: c}}]\n---\n{words} body\n"
    )
}

fn slip(document: &Path) -> std::io::Result<()> {
    let time = fs::metadata(document)?.modified()?;
    let text = fs::read_to_string(document)?;
    let other = if text.contains("about") {
        text.replace("about", "xbout")
    } else {
        text.replace("xbout", "about")
    };
    fs::write(document, other)?;
    File::open(document)?.set_times(FileTimes::new().set_modified(time))
}

fn options(world: &World, cached: bool) -> Options {
    let cache = Cache { settled: TICK, least: 1, ..Cache::new(world.path("cache")) };
    Options {
        directories: vec![Directory::new(world.path("skills"))],
        cache: cached.then_some(cache),
        profile: Profile::Lenient,
        limits: prowess::SizeLimits {
            depth: 2,
            max_skill_size: 400,
            ..prowess::SizeLimits::default()
        },
        ..Options::default()
    }
}

/// Formats everything observable of a library.
fn seen(options: &Options) -> String {
    let library = Library::load(options).unwrap();
    let mut seen = String::new();
    for it in library.all() {
        seen +=
            &format!("{:?} {:?} {:?} {:?}\n", it.manifest, it.origin, it.resources(), it.hidden_by);
    }
    seen += &format!("{:#?} {:?}\n", library.findings(), library.left_out());
    for request in ["alpha", "about gamma", "epsilon body", "xbout c"] {
        for it in matches(&library, request, 10) {
            seen += &format!(
                "{} {} {} {:?}; ",
                it.skill.origin.path.display(),
                it.confidence,
                it.score,
                it.tier
            );
        }
    }
    seen
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_edited_a_cache_makes_no_difference(
        edits in vec((edit(), any::<Index>(), any::<bool>()), 1..12),
        on_demand in any::<bool>(),
    ) {
        let world = World::new();
        for name in NAMES {
            world.file(&format!("skills/{name}/SKILL.md"), text(name, "alpha"));
        }
        let resources = if on_demand { Listing::OnDemand } else { Listing::AtOnce };
        let look = |cached| seen(&Options { resources, ..options(&world, cached) });
        sleep(TICK * 2);
        look(true);
        for (edit, name, waits) in edits {
            edit.happen(&world, NAMES[name.index(NAMES.len())]);
            if waits {
                sleep(TICK * 2);
            }
            prop_assert_eq!(look(true), look(false), "after {:?}", edit);
        }
    }

    #[test]
    fn whatever_a_cache_holds_it_makes_no_difference(
        place in any::<Index>(), byte in any::<u8>(), cut in any::<bool>(), swap in any::<bool>(),
    ) {
        let world = World::new();
        for name in NAMES {
            world.file(&format!("skills/{name}/SKILL.md"), text(name, "alpha"));
        }
        sleep(TICK * 2);
        let (with, without) = (options(&world, true), options(&world, false));
        let right = seen(&without);
        prop_assert_eq!(&seen(&with), &right);
        let files: Vec<_> = fs::read_dir(world.path("cache")).unwrap().map(|it| it.unwrap().path()).collect();
        prop_assert_eq!(files.len(), 2);
        let kept: Vec<Vec<u8>> = files.iter().map(|it| fs::read(it).unwrap()).collect();
        for (file, bytes) in files.iter().zip(kept.iter().skip(usize::from(swap)).chain(&kept)) {
            let mut bytes = bytes.clone();
            let at = place.index(bytes.len());
            bytes[at] ^= byte;
            bytes.truncate(if cut { at } else { bytes.len() });
            fs::write(file, bytes).unwrap();
        }
        prop_assert_eq!(&seen(&with), &right);
        prop_assert_eq!(&seen(&with), &right);
    }
}
