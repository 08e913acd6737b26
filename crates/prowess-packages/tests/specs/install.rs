//! The scenarios of `specs/install.md`.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use prowess::{CLIENTS, Client, Surroundings, Verdict, examine};
use prowess_packages::{
    ArchiveLimits, FileReplacement, InstallAction, InstallConflict, InstallError, InstallOptions,
    InstallPlace, InstallReport, InstallState, InstallStep, Installer, LOCK_FILE, LocalEdits, Lock,
    LockedSkill, MergeResult, PackageCache, RecoveryOutcome, SkillSource, TargetError, TargetForm,
    VerifyFault, copy_folder, install_history, target_directories, verify,
};
use prowess_testing::world::World;

/// A project, with a cache and a state directory.
struct Bed {
    world: World,
    place: InstallPlace,
    cache: PackageCache,
}

const AGENTS: &str = ".agents/skills";
const CLAUDE: &str = ".claude/skills";
const STATE: &str = "home/.local/state/prowess";

impl Bed {
    fn new() -> Self {
        Self::of(World::new())
    }

    fn of(world: World) -> Self {
        let surroundings = Surroundings {
            home: Some(world.path("home")),
            cwd: world.path(""),
            repository: Some(world.path("")),
            ..Surroundings::default()
        };
        let mut place = InstallPlace::project(&world.path(""), &world.path(STATE), &surroundings);
        place.patience = Duration::from_secs(30);
        let cache = PackageCache::open(&world.path("home/.cache/prowess")).unwrap();
        Self { world, place, cache }
    }

    fn path(&self, path: &str) -> PathBuf {
        self.world.path(path)
    }

    fn text(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    /// Puts a package in the cache, to be installed in the directories of clients.
    fn package(&self, name: &str, files: &[(&str, &str)], clients: &[&str]) -> LockedSkill {
        package(&self.place, &self.cache, name, files, clients)
    }

    /// Returns a skill of a version, with three files.
    fn skill(&self, name: &str, version: &str, clients: &[&str]) -> LockedSkill {
        skill(&self.place, &self.cache, name, version, clients)
    }

    fn lock(&self) -> Vec<LockedSkill> {
        lock(&self.place)
    }

    fn install(&self, wanted: &[LockedSkill]) -> Result<InstallReport, InstallError> {
        self.install_with(wanted, LocalEdits::Refuse)
    }

    fn install_with(
        &self,
        wanted: &[LockedSkill],
        edits: LocalEdits,
    ) -> Result<InstallReport, InstallError> {
        let installer = Installer::open(&self.place, &self.cache, &|| ())?;
        change(&installer, &self.place, wanted, edits)
    }

    fn conflicts(&self, wanted: &[LockedSkill], edits: LocalEdits) -> Vec<InstallConflict> {
        let before = everything(&self.path(""));
        let error = self.install_with(wanted, edits).unwrap_err();
        assert_eq!(everything(&self.path("")), before, "{error}");
        let InstallError::Conflicts(conflicts) = error else { panic!("{error:?}") };
        for conflict in &conflicts {
            assert!(!conflict.hint().is_empty());
        }
        conflicts
    }

    /// Returns the text of every file in the trash and the history.
    fn kept(&self) -> Vec<String> {
        let all = everything(&self.path(STATE));
        all.into_values().map(|it| String::from_utf8_lossy(&it).into_owned()).collect()
    }
}

fn package(
    place: &InstallPlace,
    cache: &PackageCache,
    name: &str,
    files: &[(&str, &str)],
    clients: &[&str],
) -> LockedSkill {
    let from = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = from.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        if text.starts_with("#!") {
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
    }
    let draft = cache.draft().unwrap();
    let copied = copy_folder(from.path(), &ArchiveLimits::default(), draft.path()).unwrap();
    cache.insert(draft, &copied.files).unwrap();
    let source: SkillSource = format!("owner/repository@{name}").parse().unwrap();
    let mut skill = LockedSkill::new(name, source, "https://example.com/r.git", copied.files);
    let clients: Vec<String> = clients.iter().map(|it| (*it).to_owned()).collect();
    let directories = target_directories(place, &clients, false).unwrap();
    skill.targets = directories.iter().map(|it| it.target(name)).collect();
    skill
}

fn skill(
    place: &InstallPlace,
    cache: &PackageCache,
    name: &str,
    version: &str,
    clients: &[&str],
) -> LockedSkill {
    let document = format!(
        "---\nname: {name}\ndescription: The skill {name}\n---\n\nfirst\nsecond\nthird\n{version}\n"
    );
    let script = format!("#!/bin/sh\necho {version}\n");
    let files = [
        ("SKILL.md", &*document),
        ("scripts/run.sh", &*script),
        ("references/notes.md", "notes\n"),
    ];
    package(place, cache, name, &files, clients)
}

fn lock(place: &InstallPlace) -> Vec<LockedSkill> {
    let text = fs::read_to_string(place.root.join(LOCK_FILE)).unwrap_or_default();
    if text.is_empty() { Vec::new() } else { Lock::parse(&text).unwrap().skills().to_vec() }
}

/// Makes a change with the manifest and the lock.
fn change(
    installer: &Installer,
    place: &InstallPlace,
    wanted: &[LockedSkill],
    edits: LocalEdits,
) -> Result<InstallReport, InstallError> {
    let plan = installer.plan(&lock(place), wanted.to_vec(), edits)?;
    installer.apply(plan, &InstallOptions::new("a change"), |skills| files(place, skills))
}

fn files(place: &InstallPlace, skills: &[LockedSkill]) -> Vec<FileReplacement> {
    let mut lock = Lock::default();
    let mut manifest = String::new();
    let before = fs::read_to_string(place.root.join("prowess.toml")).unwrap_or_default();
    manifest.extend(before.split_inclusive('\n').filter(|it| it.starts_with('#')));
    manifest.push_str("[skills]\n");
    for skill in skills {
        lock.insert(skill.clone()).unwrap();
        manifest.push_str(&format!("{} = \"{}\"\n", skill.name, skill.source));
    }
    let change = |name: &str, text: String| {
        let path = place.root.join(name);
        let before = fs::read(&path).ok();
        FileReplacement::new(&path, before, Some(text.into_bytes()))
    };
    vec![change("prowess.toml", manifest), change(LOCK_FILE, lock.to_string())]
}

/// Returns every file of a folder with its bytes, links with their targets, and hidden ones too.
fn everything(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut all = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(path) = folders.pop() {
        for item in fs::read_dir(path).into_iter().flatten() {
            let path = item.unwrap().path();
            let name = path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned();
            if path.is_symlink() {
                let target = fs::read_link(&path).unwrap();
                all.insert(name, format!("-> {}", target.display()).into_bytes());
            } else if path.is_dir() {
                all.insert(format!("{name}/"), Vec::new());
                folders.push(path);
            } else if path.is_file() {
                all.insert(name, fs::read(&path).unwrap());
            } else {
                all.insert(name, b"special".to_vec());
            }
        }
    }
    all
}

fn named(names: &[&str]) -> Vec<String> {
    names.iter().map(|it| (*it).to_owned()).collect()
}

mod the_fewest_directories_that_clients_read {
    use super::*;

    fn paths(bed: &Bed, clients: &[&str], copy: bool) -> Vec<(String, TargetForm)> {
        let all = target_directories(&bed.place, &named(clients), copy).unwrap();
        all.into_iter().map(|it| (it.path, it.form)).collect()
    }

    #[test]
    fn one_directory_serves_all_clients_that_read_it() {
        let bed = Bed::new();
        let folder = |path: &str| vec![(path.to_owned(), TargetForm::Folder)];
        assert_eq!(paths(&bed, &["codex", "gemini", "amp"], false), folder(AGENTS));
        assert_eq!(paths(&bed, &["claude-code", "cursor"], false), folder(CLAUDE));
        assert_eq!(paths(&bed, &["cursor", "claude-code", "cursor"], false), folder(CLAUDE));
        assert_eq!(paths(&bed, &["cursor"], false), folder(AGENTS));
    }

    #[test]
    fn the_shared_directory_has_the_folder_and_others_have_links_to_it() {
        let bed = Bed::new();
        let both = [(AGENTS, TargetForm::Folder), (CLAUDE, TargetForm::Link)];
        let both = both.map(|it| (it.0.to_owned(), it.1));
        assert_eq!(paths(&bed, &["claude-code", "codex"], false), both);
        bed.install(&[bed.skill("pdf", "1", &["claude-code", "codex"])]).unwrap();
        let link = fs::read_link(bed.path(".claude/skills/pdf")).unwrap();
        assert_eq!(link, Path::new("../../.agents/skills/pdf"));
        assert!(bed.text(".claude/skills/pdf/SKILL.md").contains("first"));
        let copies = paths(&bed, &["claude-code", "codex"], true);
        assert!(copies.iter().all(|it| it.1 == TargetForm::Folder), "{copies:?}");
    }

    #[test]
    fn a_client_that_may_not_follow_links_gets_a_copy() {
        let bed = Bed::new();
        let skill = bed.skill("pdf", "1", &["codex", "trae"]);
        let forms = skill.targets.iter().map(|it| (&*it.path, it.form)).collect::<Vec<_>>();
        let copy = (".trae/skills/pdf", TargetForm::Folder);
        assert_eq!(forms, [(".agents/skills/pdf", TargetForm::Folder), copy]);
        bed.install(&[skill]).unwrap();
        assert!(!bed.path(".trae/skills/pdf").is_symlink());
    }

    #[test]
    fn where_links_do_not_work_there_are_copies_and_the_lock_says_so() {
        let bed = Bed::new();
        let wanted = bed.skill("pdf", "1", &["codex", "claude-code"]);
        let path = bed.path(".claude/skills");
        let failing = path.clone();
        // The only thing that is created while this directory is empty is the link.
        let installer = Installer::open_with_steps(&bed.place, &bed.cache, move |step| {
            let is_link = step == InstallStep::Create
                && fs::read_dir(&failing).is_ok_and(|it| it.count() == 0)
                && fs::read_dir(failing.join("../../.agents/skills"))
                    .is_ok_and(|it| it.count() > 0)
                && !failing.join("../tried").exists();
            if is_link {
                fs::write(failing.join("../tried"), "").unwrap();
                return Err(io::ErrorKind::Unsupported.into());
            }
            Ok(())
        })
        .unwrap();
        let report = change(&installer, &bed.place, &[wanted], LocalEdits::Refuse).unwrap();
        assert!(bed.path(".claude/tried").exists());
        assert!(!path.join("pdf").is_symlink() && path.join("pdf/SKILL.md").is_file());
        assert!(report.steps.iter().all(|it| it.form == TargetForm::Folder));
        assert!(bed.lock()[0].targets.iter().all(|it| it.form == TargetForm::Folder));
        assert!(verify(&bed.place, &bed.lock()).iter().all(|it| it.faults.is_empty()));
    }

    /// Returns what the doctor says of the skills for clients, if it is not well.
    fn complaints(bed: &Bed, clients: &[&'static Client]) -> Vec<String> {
        let checkup = examine(clients, &bed.place.surroundings, &[]);
        let mut complaints: Vec<String> =
            checkup.findings.iter().map(|it| it.message.clone()).collect();
        assert!(!checkup.skills.is_empty(), "nothing is found for {:?}", clients[0].name);
        for skill in &checkup.skills {
            for diagnosis in &skill.diagnoses {
                let is_open = diagnosis.notes.iter().any(|it| it.verdict == Verdict::Unknown);
                let is_well = match diagnosis.verdict {
                    Verdict::Loads | Verdict::Asks => true,
                    // Nothing is known about the client.
                    Verdict::Unknown => !is_open,
                    _ => false,
                };
                if !is_well || diagnosis.path.is_none() {
                    let (client, path) = (diagnosis.client.name, skill.path.display());
                    complaints.push(format!("{client} {path} {:?}", diagnosis.verdict));
                }
            }
        }
        complaints
    }

    #[test]
    fn the_doctor_finds_nothing_wrong_whatever_the_clients() {
        for in_project in [true, false] {
            let with: Vec<&'static Client> = CLIENTS
                .iter()
                .filter(|it| {
                    let mut spots = it.spots.iter().filter(|it| !it.path.starts_with('/'));
                    spots.any(|it| it.is_in_project() == in_project)
                })
                .collect();
            assert!(with.len() > 40);
            let mut sets: Vec<Vec<&'static Client>> = with.iter().map(|it| vec![*it]).collect();
            sets.push(with.clone());
            sets.extend(with.windows(2).map(<[_]>::to_vec));
            for (number, clients) in sets.iter().enumerate() {
                let mut bed = Bed::new();
                if !in_project {
                    bed.place =
                        InstallPlace::user(&bed.path(STATE), &bed.place.surroundings).unwrap();
                }
                let names: Vec<&str> = clients.iter().map(|it| it.name).collect();
                let skill = bed.skill("pdf", "1", &names);
                bed.install(&[skill]).unwrap();
                assert_eq!(complaints(&bed, clients), [""; 0], "{in_project} {number} {names:?}");
            }
        }
    }

    #[test]
    fn a_client_without_directories_is_refused_with_those_that_have_some() {
        let bed = Bed::new();
        let error = target_directories(&bed.place, &named(&["adk"]), false).unwrap_err();
        assert_eq!(error.to_string(), "`adk` has no directory for skills in a project");
        assert!(error.hint().contains("claude-code") && !error.hint().contains("adk"));
        let error = target_directories(&bed.place, &named(&["claud-code"]), false).unwrap_err();
        let TargetError::UnknownClient { nearest, .. } = &error else { panic!("{error:?}") };
        assert_eq!(*nearest, Some("claude-code"));
        assert!(error.hint().contains("claude-code"), "{}", error.hint());
    }

    #[test]
    fn without_a_choice_they_are_those_of_the_clients_in_use() {
        let bed = Bed::new();
        assert_eq!(paths(&bed, &[], false), [(AGENTS.to_owned(), TargetForm::Folder)]);
        let bed = Bed::of(World::new().folder(".claude"));
        assert_eq!(paths(&bed, &[], false), [(CLAUDE.to_owned(), TargetForm::Folder)]);
    }

    #[test]
    fn two_paths_of_one_directory_are_one_target() {
        let bed = Bed::of(World::new().folder(AGENTS).link(CLAUDE, "../.agents/skills"));
        let skill = bed.skill("pdf", "1", &["claude-code", "codex"]);
        assert_eq!(skill.targets.len(), 1);
        bed.install(&[skill]).unwrap();
        assert!(!bed.path(".agents/skills/pdf").is_symlink());
        assert!(bed.text(".claude/skills/pdf/SKILL.md").contains("first"));
        // A lock that names both is refused.
        let mut skill = bed.skill("two", "1", &["codex"]);
        let mut second = skill.targets[0].clone();
        second.path = format!("{CLAUDE}/two");
        second.form = TargetForm::Link;
        skill.targets.push(second);
        let wanted = [bed.lock(), vec![skill]].concat();
        let conflicts = bed.conflicts(&wanted, LocalEdits::Refuse);
        assert!(matches!(conflicts[..], [InstallConflict::SamePlace { .. }]), "{conflicts:?}");
    }
}

mod what_was_not_installed_is_never_touched {
    use super::*;

    #[test]
    fn a_folder_of_the_same_name_is_refused() {
        let bed = Bed::of(World::new().file(".agents/skills/pdf/SKILL.md", "mine"));
        for edits in [LocalEdits::Refuse, LocalEdits::Merge, LocalEdits::SetAside] {
            let conflicts = bed.conflicts(&[bed.skill("pdf", "1", &["codex"])], edits);
            let [InstallConflict::Occupied { path, what, .. }] = &conflicts[..] else {
                panic!("{conflicts:?}");
            };
            assert_eq!((&**path, *what), (".agents/skills/pdf", "a folder"));
        }
        assert_eq!(bed.text(".agents/skills/pdf/SKILL.md"), "mine");
        // Nor are the other targets installed.
        let conflicts =
            bed.conflicts(&[bed.skill("pdf", "1", &["codex", "claude-code"])], LocalEdits::Refuse);
        assert_eq!(conflicts.len(), 1);
        assert!(!bed.path(".claude").exists());
    }

    #[test]
    fn a_link_of_the_user_s_is_neither_followed_nor_replaced() {
        let bed = Bed::of(
            World::new()
                .file("own/pdf/SKILL.md", "mine")
                .link(".claude/skills/pdf", "../../own/pdf"),
        );
        let wanted = bed.skill("pdf", "1", &["codex", "claude-code"]);
        for edits in [LocalEdits::Refuse, LocalEdits::SetAside] {
            let conflicts = bed.conflicts(std::slice::from_ref(&wanted), edits);
            assert!(matches!(conflicts[..], [InstallConflict::Occupied { what: "a link", .. }]));
        }
        assert_eq!(bed.text("own/pdf/SKILL.md"), "mine");
        // One that took the place of ours stays when the skill is removed.
        fs::remove_file(bed.path(".claude/skills/pdf")).unwrap();
        bed.install(&[wanted]).unwrap();
        fs::remove_file(bed.path(".claude/skills/pdf")).unwrap();
        symlink("../../own/pdf", bed.path(".claude/skills/pdf")).unwrap();
        let report = bed.install(&[]).unwrap();
        let actions: Vec<_> = report.steps.iter().map(|it| it.action).collect();
        assert_eq!(actions, [InstallAction::Remove, InstallAction::Forget]);
        assert_eq!(bed.text(".claude/skills/pdf/SKILL.md"), "mine");
    }

    #[test]
    fn removing_all_skills_leaves_those_of_the_user() {
        // As in the report in which `remove --all` deleted the sources in `skills/`.
        let world = World::new()
            .skill_in("skills", "pdf", "The source")
            .skill_in("skills", "own", "Mine")
            .skill_in(AGENTS, "hand-written", "Mine")
            .link(".claude/skills/own", "../../skills/own");
        let bed = Bed::of(world);
        let before = everything(&bed.path(""));
        let wanted =
            ["pdf", "docx"].map(|it| bed.skill(it, "1", &["codex", "claude-code", "cursor"]));
        bed.install(&wanted).unwrap();
        bed.install(&[]).unwrap();
        let mut after = everything(&bed.path(""));
        assert_eq!(bed.lock(), []);
        after.retain(|path, _| !path.starts_with("prowess."));
        assert_eq!(after, before);
    }

    #[test]
    fn a_skill_is_not_installed_over_its_own_source() {
        let world = World::new()
            .skill_in(AGENTS, "pdf", "The source")
            .skill_in("skills", "docx", "The source")
            .file("SKILL.md", "---\nname: whole\ndescription: a\n---\n");
        let bed = Bed::of(world);
        for (source, path, name) in [
            (".", ".agents/skills/pdf", "pdf"),
            ("./.agents/skills/pdf", "", "pdf"),
            ("./.agents", "", "pdf"),
            (".", "", "whole"),
            ("~/../repo/.agents/skills", "pdf", "pdf"),
        ] {
            let mut skill = bed.skill(name, "1", &["codex"]);
            skill.source.kind = prowess_packages::SourceKind::Folder(source.into());
            skill.path = path.to_owned();
            let conflicts = bed.conflicts(&[skill], LocalEdits::SetAside);
            assert!(
                matches!(conflicts[..], [InstallConflict::SourceOverlap { .. }]),
                "{source} {path}: {conflicts:?}"
            );
        }
        // A folder beside the directories of clients can be installed.
        let mut skill = bed.skill("docx", "1", &["codex"]);
        skill.source.kind = prowess_packages::SourceKind::Folder("./skills/docx".into());
        bed.install(&[skill]).unwrap();
    }

    #[test]
    fn a_lock_that_lies_deletes_nothing() {
        let world = World::new()
            .file("src/pdf/main.rs", "mine")
            .file("home/pdf/notes", "mine")
            .file(".agents/skills/pdf/SKILL.md", "mine")
            .file(".agents/skills/other/SKILL.md", "mine");
        let bed = Bed::of(world);
        let outside = tempfile::tempdir().unwrap();
        fs::create_dir(outside.path().join("pdf")).unwrap();
        let installer = Installer::open(&bed.place, &bed.cache, &|| ()).unwrap();
        let absolute = outside.path().join("pdf").to_str().unwrap().to_owned();
        for path in [
            "src/pdf",
            "../pdf",
            "~/pdf",
            "~/.agents/skills/pdf",
            ".agents/skills/../../src/pdf",
            ".agents/skills/other",
            ".agents/skills",
            "pdf",
            "/pdf",
            "",
            &absolute,
        ] {
            let mut skill = bed.skill("pdf", "1", &["codex"]);
            skill.targets[0].path = path.to_owned();
            for edits in [LocalEdits::Refuse, LocalEdits::Merge, LocalEdits::SetAside] {
                let plan = installer.plan(&[skill.clone()], Vec::new(), edits);
                let Err(InstallError::Conflicts(conflicts)) = plan else { panic!("{path}") };
                assert!(matches!(conflicts[..], [InstallConflict::NoClientDirectory { .. }]));
                let faults = verify(&bed.place, &[skill.clone()]);
                assert_eq!(faults[0].faults, [VerifyFault::NoClientDirectory], "{path}");
            }
        }
        // A folder of somebody else is one that was changed.
        let skill = bed.skill("pdf", "1", &["codex"]);
        let plan = installer.plan(std::slice::from_ref(&skill), Vec::new(), LocalEdits::Refuse);
        let Err(InstallError::Conflicts(conflicts)) = plan else { panic!() };
        assert!(matches!(conflicts[..], [InstallConflict::Changed { .. }]), "{conflicts:?}");
        // Names that lead elsewhere are none.
        for name in ["..", ".", "", "a/b", "/", ".hidden", "con", "a\\b", "a\nb"] {
            let mut skill = skill.clone();
            skill.targets[0].path = format!("{AGENTS}/{name}");
            skill.name = name.to_owned();
            assert!(installer.plan(&[skill.clone()], Vec::new(), LocalEdits::SetAside).is_err());
            assert!(installer.plan(&[], vec![skill], LocalEdits::SetAside).is_err(), "{name:?}");
        }
    }

    #[test]
    fn a_directory_that_leads_into_a_repository_s_own_folder_is_refused() {
        for (git, link, target) in [
            (".git/modules", ".agents/skills", "../.git/modules"),
            (".git/skills", ".agents", ".git"),
            ("sub/.GIT/modules", ".agents/skills", "../sub/.GIT/modules"),
        ] {
            let bed = Bed::of(World::new().file(format!("{git}/keep"), "").link(link, target));
            let mut skill = bed.skill("pdf", "1", &["gemini"]);
            skill.targets[0].path = format!("{AGENTS}/pdf");
            let conflicts = bed.conflicts(&[skill], LocalEdits::Refuse);
            assert!(
                matches!(conflicts[..], [InstallConflict::LinkOutside { .. }]),
                "{conflicts:?}"
            );
            assert_eq!(fs::read_dir(bed.path(git)).unwrap().count(), 1);
        }
    }

    #[test]
    fn a_directory_that_leads_out_of_the_project_is_refused() {
        let outside = tempfile::tempdir().unwrap();
        for link in [AGENTS, ".agents"] {
            let bed = Bed::of(World::new().link(link, outside.path()));
            let mut skill = bed.skill("pdf", "1", &["gemini"]);
            skill.targets[0].path = format!("{AGENTS}/pdf");
            let conflicts = bed.conflicts(&[skill], LocalEdits::Refuse);
            assert!(matches!(conflicts[..], [InstallConflict::LinkOutside { .. }]));
        }
        let bed = Bed::of(World::new().link(AGENTS, "../nowhere"));
        let mut skill = bed.skill("pdf", "1", &["gemini"]);
        skill.targets[0].path = format!("{AGENTS}/pdf");
        let conflicts = bed.conflicts(&[skill.clone()], LocalEdits::Refuse);
        assert!(matches!(conflicts[..], [InstallConflict::LinkOutside { .. }]));
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
        let bed = Bed::of(World::new().file(AGENTS, "a file"));
        let conflicts = bed.conflicts(&[skill], LocalEdits::Refuse);
        assert!(matches!(conflicts[..], [InstallConflict::NotADirectory { .. }]));
        // In the home, links are the user's own.
        let mut bed = Bed::of(World::new().link("home/.agents", outside.path()));
        bed.place = InstallPlace::user(&bed.path(STATE), &bed.place.surroundings).unwrap();
        bed.install(&[bed.skill("pdf", "1", &["codex"])]).unwrap();
        assert!(outside.path().join("skills/pdf/SKILL.md").is_file());
    }

    #[test]
    fn names_that_some_systems_do_not_tell_apart_are_refused() {
        let bed = Bed::of(World::new().file(".agents/skills/Pdf/SKILL.md", "mine"));
        let conflicts = bed.conflicts(&[bed.skill("pdf", "1", &["codex"])], LocalEdits::Refuse);
        let [InstallConflict::SimilarName { existing, .. }] = &conflicts[..] else {
            panic!("{conflicts:?}");
        };
        assert_eq!(existing, "Pdf");
        let bed = Bed::new();
        let (one, mut other) =
            (bed.skill("pdf", "1", &["codex"]), bed.skill("two", "1", &["codex"]));
        other.name = "PDF".to_owned();
        other.targets[0].path = format!("{AGENTS}/PDF");
        let conflicts = bed.conflicts(&[one.clone(), other], LocalEdits::Refuse);
        assert!(matches!(conflicts[..], [InstallConflict::SameName { .. }]));
        let conflicts = bed.conflicts(&[one.clone(), one], LocalEdits::Refuse);
        assert!(conflicts[0].to_string().contains("they have the same name"), "{conflicts:?}");
    }

    #[test]
    fn a_file_in_place_of_a_skill_stays() {
        let bed =
            Bed::of(World::new().file(".agents/skills/pdf", "mine").pipe(".agents/skills/pipe"));
        for name in ["pdf", "pipe"] {
            let conflicts =
                bed.conflicts(&[bed.skill(name, "1", &["codex"])], LocalEdits::SetAside);
            assert!(matches!(conflicts[..], [InstallConflict::Occupied { .. }]));
        }
    }
}

mod local_edits_are_never_lost {
    use super::*;

    const DOCUMENT: &str = ".agents/skills/pdf/SKILL.md";

    /// Replaces text in an installed file, as editors do.
    fn edit(bed: &Bed, path: &str, from: &str, to: &str) {
        let text = bed.text(path);
        assert!(text.contains(from), "{text}");
        fs::remove_file(bed.path(path)).unwrap();
        bed.world.write(path, text.replace(from, to));
    }

    fn installed() -> Bed {
        let bed = Bed::new();
        bed.install(&[bed.skill("pdf", "1", &["codex", "claude-code"])]).unwrap();
        bed
    }

    fn newer(bed: &Bed) -> LockedSkill {
        bed.skill("pdf", "2", &["codex", "claude-code"])
    }

    #[test]
    fn an_update_of_a_changed_skill_is_refused() {
        let bed = installed();
        edit(&bed, DOCUMENT, "first", "my first");
        let conflicts = bed.conflicts(&[newer(&bed)], LocalEdits::Refuse);
        let [InstallConflict::Changed { files, .. }] = &conflicts[..] else {
            panic!("{conflicts:?}");
        };
        assert_eq!(files, &["SKILL.md"]);
        let conflicts = bed.conflicts(&[], LocalEdits::Refuse);
        assert!(matches!(conflicts[..], [InstallConflict::Changed { .. }]));
        let error = bed.install(&[newer(&bed)]).unwrap_err().to_string();
        let wanted = "`.agents/skills/pdf` was changed since it was installed: `SKILL.md`; nothing has changed";
        assert_eq!(error, wanted);
    }

    #[test]
    fn changes_in_different_places_are_merged() {
        let bed = installed();
        edit(&bed, DOCUMENT, "first", "my first");
        bed.world.write(".agents/skills/pdf/own.md", "mine");
        bed.world.write(".agents/skills/pdf/references/more/own.md", "mine");
        fs::remove_file(bed.path(".agents/skills/pdf/references/notes.md")).unwrap();
        let report = bed.install_with(&[newer(&bed)], LocalEdits::Merge).unwrap();
        let merged = bed.text(DOCUMENT);
        assert!(merged.contains("my first\n") && merged.contains("\n2\n"), "{merged}");
        assert_eq!(bed.text(".agents/skills/pdf/scripts/run.sh"), "#!/bin/sh\necho 2\n");
        let mode = fs::metadata(bed.path(".agents/skills/pdf/scripts/run.sh")).unwrap().mode();
        assert_eq!(mode & 0o111, 0o111);
        assert_eq!(bed.text(".agents/skills/pdf/own.md"), "mine");
        assert_eq!(bed.text(".agents/skills/pdf/references/more/own.md"), "mine");
        let step = &report.steps[0];
        assert_eq!(step.action, InstallAction::Merge);
        let results: Vec<_> = step.merged.iter().map(|it| (&*it.path, it.result)).collect();
        assert_eq!(
            results,
            [
                ("SKILL.md", MergeResult::Merged),
                ("own.md", MergeResult::Kept),
                ("references/more/own.md", MergeResult::Kept),
                ("references/notes.md", MergeResult::StaysRemoved),
            ]
        );
        // The folder as it was can be brought back.
        assert!(bed.kept().iter().any(|it| it.contains("my first\nsecond\nthird\n1\n")));
        // The lock has the new version, from which the next update goes on.
        assert_eq!(bed.lock()[0].digest, newer(&bed).digest);
        let third = bed.skill("pdf", "3", &["codex", "claude-code"]);
        bed.install_with(&[third], LocalEdits::Merge).unwrap();
        let merged = bed.text(DOCUMENT);
        assert!(merged.contains("my first\n") && merged.contains("\n3\n"), "{merged}");
    }

    #[test]
    fn where_changes_collide_the_user_s_file_stays_and_the_new_one_is_beside_it() {
        let bed = installed();
        edit(&bed, DOCUMENT, "\n1\n", "\nmine\n");
        let report = bed.install_with(&[newer(&bed)], LocalEdits::Merge).unwrap();
        assert!(bed.text(DOCUMENT).ends_with("third\nmine\n"));
        assert!(bed.text(".agents/skills/pdf/SKILL.md.new").ends_with("third\n2\n"));
        let results: Vec<_> = report.steps[0].merged.iter().map(|it| it.result).collect();
        assert_eq!(results, [MergeResult::Beside]);
        for (path, bytes) in everything(&bed.path(AGENTS)) {
            let text = String::from_utf8(bytes).unwrap();
            assert!(!text.contains("<<<<") && !text.contains(">>>>"), "{path}: {text}");
        }
        // The next update puts its version beside both.
        let third = bed.skill("pdf", "3", &["codex", "claude-code"]);
        bed.install_with(&[third], LocalEdits::Merge).unwrap();
        assert!(bed.text(DOCUMENT).ends_with("third\nmine\n"));
        assert!(bed.text(".agents/skills/pdf/SKILL.md.new").ends_with("third\n2\n"));
        assert!(bed.text(".agents/skills/pdf/SKILL.md.new2").ends_with("third\n3\n"));
    }

    #[test]
    fn binary_files_are_not_merged() {
        let bed = Bed::new();
        let version = |text: &str| {
            let document = "---\nname: pdf\ndescription: a\n---\n";
            bed.package("pdf", &[("SKILL.md", document), ("data", text)], &["codex"])
        };
        bed.install(&[version("a\0\nb\nc\nd\n1\n")]).unwrap();
        edit(&bed, ".agents/skills/pdf/data", "a\0", "A\0");
        let report = bed.install_with(&[version("a\0\nb\nc\nd\n2\n")], LocalEdits::Merge).unwrap();
        assert_eq!(report.steps[0].merged[0].result, MergeResult::Beside);
        assert_eq!(bed.text(".agents/skills/pdf/data"), "A\0\nb\nc\nd\n1\n");
        assert_eq!(bed.text(".agents/skills/pdf/data.new"), "a\0\nb\nc\nd\n2\n");
    }

    #[test]
    fn set_aside_they_are_in_the_trash() {
        let bed = installed();
        edit(&bed, DOCUMENT, "first", "my first");
        bed.install_with(&[newer(&bed)], LocalEdits::SetAside).unwrap();
        assert!(!bed.text(DOCUMENT).contains("my first"));
        assert!(verify(&bed.place, &bed.lock()).iter().all(|it| it.faults.is_empty()));
        assert!(bed.kept().iter().any(|it| it.contains("my first")));
        edit(&bed, DOCUMENT, "first", "another first");
        bed.install_with(&[], LocalEdits::SetAside).unwrap();
        assert!(!bed.path(".agents/skills/pdf").exists());
        assert!(bed.kept().iter().any(|it| it.contains("another first")));
    }

    #[test]
    fn installing_the_same_version_keeps_them_and_restores_what_is_missing() {
        let bed = installed();
        edit(&bed, DOCUMENT, "first", "my first");
        let report = bed.install(&bed.lock()).unwrap();
        assert_eq!(report.steps[0].action, InstallAction::KeepEdited);
        assert_eq!(report.id, None);
        assert!(bed.text(DOCUMENT).contains("my first"));
        let bed = installed();
        fs::remove_file(bed.path(DOCUMENT)).unwrap();
        bed.world.write(".agents/skills/pdf/own.md", "mine");
        bed.install(&bed.lock()).unwrap();
        assert!(bed.text(DOCUMENT).contains("first"));
        assert_eq!(bed.text(".agents/skills/pdf/own.md"), "mine");
        // A whole target that is gone comes back too.
        fs::remove_dir_all(bed.path(".agents/skills/pdf")).unwrap();
        bed.install(&bed.lock()).unwrap();
        assert!(bed.text(".claude/skills/pdf/SKILL.md").contains("first"));
    }

    #[test]
    fn what_interpreters_leave_is_no_edit() {
        let bed = installed();
        bed.world.write(".agents/skills/pdf/scripts/__pycache__/run.pyc", "x");
        bed.world.write(".agents/skills/pdf/.DS_Store", "x");
        assert!(verify(&bed.place, &bed.lock()).iter().all(|it| it.faults.is_empty()));
        let report = bed.install(&[newer(&bed)]).unwrap();
        assert_eq!(report.steps[0].action, InstallAction::Replace);
        assert!(bed.text(DOCUMENT).contains("\n2\n"));
    }

    #[test]
    fn links_in_a_skill_are_edits_and_are_not_followed() {
        let bed = installed();
        bed.world.write("own/secret.md", "mine");
        symlink("../../../own/secret.md", bed.path(".agents/skills/pdf/link.md")).unwrap();
        fs::remove_file(bed.path(DOCUMENT)).unwrap();
        symlink("../../../own/secret.md", bed.path(DOCUMENT)).unwrap();
        let conflicts = bed.conflicts(&[newer(&bed)], LocalEdits::Refuse);
        let [InstallConflict::Changed { files, .. }] = &conflicts[..] else {
            panic!("{conflicts:?}");
        };
        assert_eq!(files, &["SKILL.md", "link.md"]);
        bed.install_with(&[newer(&bed)], LocalEdits::Merge).unwrap();
        assert!(bed.path(DOCUMENT).is_symlink());
        assert!(bed.path(".agents/skills/pdf/link.md").is_symlink());
        bed.install_with(&[], LocalEdits::SetAside).unwrap();
        assert_eq!(bed.text("own/secret.md"), "mine");
    }
}

mod a_skill_is_removed_from_one_client_and_stays_for_others {
    use super::*;

    #[test]
    fn the_others_find_it_as_before() {
        let bed = Bed::new();
        bed.install(&[bed.skill("pdf", "1", &["codex", "claude-code"])]).unwrap();
        bed.install(&[bed.skill("pdf", "1", &["codex"])]).unwrap();
        assert!(!bed.path(".claude/skills/pdf").is_symlink());
        assert!(bed.text(".agents/skills/pdf/SKILL.md").contains("first"));
        assert!(verify(&bed.place, &bed.lock()).iter().all(|it| it.faults.is_empty()));
    }

    #[test]
    fn the_folder_moves_if_it_was_in_the_directory_of_that_client() {
        let bed = Bed::new();
        bed.install(&[bed.skill("pdf", "1", &["codex", "claude-code"])]).unwrap();
        bed.install(&[bed.skill("pdf", "1", &["claude-code"])]).unwrap();
        assert!(!bed.path(".agents/skills/pdf").exists());
        assert!(!bed.path(".claude/skills/pdf").is_symlink());
        assert!(bed.text(".claude/skills/pdf/SKILL.md").contains("first"));
        assert!(verify(&bed.place, &bed.lock()).iter().all(|it| it.faults.is_empty()));
        // And back: a client that shares the folder turns it into a link.
        bed.install(&[bed.skill("pdf", "1", &["codex", "claude-code"])]).unwrap();
        assert!(bed.path(".claude/skills/pdf").is_symlink());
        assert!(verify(&bed.place, &bed.lock()).iter().all(|it| it.faults.is_empty()));
    }

    #[test]
    fn local_edits_move_with_the_folder() {
        let bed = Bed::new();
        bed.install(&[bed.skill("pdf", "1", &["codex", "claude-code"])]).unwrap();
        bed.world.write(".agents/skills/pdf/own.md", "mine");
        bed.install(&[bed.skill("pdf", "1", &["claude-code"])]).unwrap();
        assert!(!bed.path(".agents/skills/pdf").exists());
        assert_eq!(bed.text(".claude/skills/pdf/own.md"), "mine");
        bed.install(&[bed.skill("pdf", "1", &["codex", "claude-code"])]).unwrap();
        assert_eq!(bed.text(".agents/skills/pdf/own.md"), "mine");
        assert!(bed.path(".claude/skills/pdf").is_symlink());
    }

    #[test]
    fn what_is_the_same_already_is_taken_over() {
        let bed = Bed::new();
        let wanted = bed.skill("pdf", "1", &["codex", "claude-code"]);
        bed.install(std::slice::from_ref(&wanted)).unwrap();
        fs::remove_file(bed.path(LOCK_FILE)).unwrap();
        let report = bed.install(&[wanted]).unwrap();
        assert!(report.steps.iter().all(|it| it.action == InstallAction::Keep));
        assert_eq!(bed.lock().len(), 1);
    }
}

mod a_change_is_whole_or_not_made {
    use super::*;

    /// Returns a project with every kind of change ahead: a skill to update, one to merge, one to
    /// remove, and files of the user's in between.
    fn bed() -> Bed {
        let world = World::new()
            .skill_in(AGENTS, "mine", "Mine")
            .skill_in(".claude/skills", "own", "Mine")
            .file("prowess.toml", "# mine\n");
        let bed = Bed::of(world);
        let clients = ["codex", "claude-code"];
        let skills = ["pdf", "edited", "old"].map(|it| bed.skill(it, "1", &clients));
        bed.install(&skills).unwrap();
        bed.world.write(".agents/skills/edited/own.md", "written by me");
        bed
    }

    fn wanted(place: &InstallPlace, cache: &PackageCache) -> Vec<LockedSkill> {
        let clients = ["codex", "claude-code"];
        // The last one goes to a directory that does not exist yet.
        let all = ["pdf", "edited", "new"].map(|it| skill(place, cache, it, "2", &clients));
        let last = skill(place, cache, "last", "2", &["junie"]);
        [all.to_vec(), vec![last]].concat()
    }

    /// Changes, each made from the state of `bed`, after a first one or not.
    type Change = fn(&Installer, &InstallPlace, &PackageCache) -> Result<(), InstallError>;

    const CHANGES: &[(&str, bool, Change)] = &[
        ("update", false, |installer, place, cache| {
            change(installer, place, &wanted(place, cache), LocalEdits::Merge).map(drop)
        }),
        ("remove", false, |installer, place, _| {
            change(installer, place, &[], LocalEdits::SetAside).map(drop)
        }),
        ("undo", true, |installer, place, _| {
            let last = install_history(place)?.remove(0);
            installer.undo(&last.id, &InstallOptions::new("undo")).map(drop)
        }),
    ];

    fn prepared(after: bool) -> Bed {
        let bed = bed();
        if after {
            let installer = Installer::open(&bed.place, &bed.cache, &|| ()).unwrap();
            CHANGES[0].2(&installer, &bed.place, &bed.cache).unwrap();
        }
        bed
    }

    /// The project as users see it: without hidden drafts, and with all that is ours.
    fn seen(bed: &Bed) -> BTreeMap<String, Vec<u8>> {
        everything(&bed.path(""))
    }

    fn hidden(bed: &Bed) -> Vec<String> {
        seen(bed).into_keys().filter(|it| it.contains(".prowess-install-")).collect()
    }

    /// Whether the user's own files are somewhere.
    fn assert_nothing_is_lost(bed: &Bed, at: &str) {
        for path in [".agents/skills/mine/SKILL.md", ".claude/skills/own/SKILL.md"] {
            assert!(bed.text(path).contains("Mine"), "{at}: {path}");
        }
        let own = seen(bed).into_iter().any(|it| it.1 == b"written by me");
        assert!(own || bed.kept().iter().any(|it| it == "written by me"), "{at}: the edit is lost");
    }

    /// Returns the state after a change, and its steps.
    fn made(after: bool, change: Change) -> (BTreeMap<String, Vec<u8>>, Vec<InstallStep>) {
        let (bed, steps) = (prepared(after), Arc::new(Mutex::new(Vec::new())));
        let noted = steps.clone();
        let watched = Installer::open_with_steps(&bed.place, &bed.cache, move |step| {
            noted.lock().unwrap().push(step);
            Ok(())
        })
        .unwrap();
        change(&watched, &bed.place, &bed.cache).unwrap();
        drop(watched);
        assert_nothing_is_lost(&bed, "made");
        let steps = steps.lock().unwrap().clone();
        (seen(&bed), steps)
    }

    #[test]
    fn a_process_that_dies_at_any_step_leaves_old_or_new() {
        for (name, after, change) in CHANGES {
            let (new, steps) = made(*after, *change);
            let old = seen(&prepared(*after));
            assert!(old != new && steps.len() > 20, "{name}: {}", steps.len());
            let (mut olds, mut news) = (0, 0);
            for last in 0..steps.len() {
                let at = format!("{name} {last} of {} {:?}", steps.len(), steps[last]);
                let bed = prepared(*after);
                let count = AtomicUsize::new(0);
                // A dead process does nothing any more, not even clean up.
                let dying =
                    Installer::open_with_steps(&bed.place, &bed.cache, move |_| {
                        match count.fetch_add(1, Ordering::Relaxed) < last {
                            true => Ok(()),
                            false => Err(io::Error::other("dead")),
                        }
                    });
                let result = dying.and_then(|it| change(&it, &bed.place, &bed.cache));
                assert_nothing_is_lost(&bed, &at);
                let next = Installer::open(&bed.place, &bed.cache, &|| ()).unwrap();
                assert_nothing_is_lost(&bed, &at);
                assert_eq!(hidden(&bed), [""; 0], "{at}");
                let now = seen(&bed);
                let is_new = now == new;
                assert!(is_new || now == old, "{at}: {:?}", now.keys());
                // What was said to be done is done.
                assert!(is_new || result.is_err(), "{at}");
                if let Err(InstallError::Io { now, .. }) = &result {
                    assert!(!is_new || *now == InstallState::Interrupted, "{at}");
                }
                for recovered in next.recovered() {
                    let finished = recovered.outcome == RecoveryOutcome::Finished;
                    assert_eq!(finished, is_new, "{at}: {recovered:?}");
                }
                if is_new {
                    news += 1;
                } else {
                    olds += 1;
                }
                if !is_new {
                    change(&next, &bed.place, &bed.cache).unwrap();
                    assert_eq!(seen(&bed), new, "{at}");
                    assert_nothing_is_lost(&bed, &at);
                }
            }
            assert!(olds > 10 && news > 2, "{name}: {olds} {news}");
        }
    }

    #[test]
    fn a_process_that_dies_while_it_repairs_is_repaired_by_the_next() {
        let (_, after, change) = CHANGES[0];
        let (new, steps) = made(after, change);
        let old = seen(&prepared(after));
        for first in (0..steps.len()).step_by(3) {
            let die = |bed: &Bed, last: usize| {
                let count = AtomicUsize::new(0);
                Installer::open_with_steps(&bed.place, &bed.cache, move |_| {
                    match count.fetch_add(1, Ordering::Relaxed) < last {
                        true => Ok(()),
                        false => Err(io::Error::other("dead")),
                    }
                })
            };
            let bed = prepared(after);
            let _ = die(&bed, first).and_then(|it| change(&it, &bed.place, &bed.cache));
            // Each attempt comes a little further.
            for last in [2, 5, 9, 14, 20, 27] {
                let _ = die(&bed, last);
                assert_nothing_is_lost(&bed, &format!("{first} {last}"));
            }
            drop(Installer::open(&bed.place, &bed.cache, &|| ()).unwrap());
            let now = seen(&bed);
            assert!(now == old || now == new, "{first}: {:?}", now.keys());
        }
    }

    #[test]
    fn a_step_that_fails_leaves_what_was_there() {
        // ENOSPC, EIO, EMFILE, EROFS, EACCES
        let faults = [28, 5, 24, 30, 13];
        for (name, after, change) in CHANGES {
            let (new, steps) = made(*after, *change);
            let old = seen(&prepared(*after));
            for (number, step) in steps.iter().enumerate() {
                let at = format!("{name} {number} of {} {step:?}", steps.len());
                let code = faults[number % faults.len()];
                let bed = prepared(*after);
                let count = AtomicUsize::new(0);
                let faulty =
                    Installer::open_with_steps(&bed.place, &bed.cache, move |_| {
                        match count.fetch_add(1, Ordering::Relaxed) == number {
                            true => Err(io::Error::from_raw_os_error(code)),
                            false => Ok(()),
                        }
                    });
                let result = faulty.and_then(|it| change(&it, &bed.place, &bed.cache));
                assert_nothing_is_lost(&bed, &at);
                let now = seen(&bed);
                match result {
                    Err(error) => {
                        assert_eq!(now, old, "{at}: {error}");
                        assert!(error.to_string().contains("nothing has changed"), "{at}: {error}");
                    }
                    // A link that cannot be created becomes a copy, and moving to the trash is
                    // tried again by the next.
                    Ok(()) if *step == InstallStep::Create && code == 13 => {}
                    Ok(()) => {
                        drop(Installer::open(&bed.place, &bed.cache, &|| ()).unwrap());
                        assert_eq!(seen(&bed), new, "{at}");
                    }
                }
                drop(Installer::open(&bed.place, &bed.cache, &|| ()).unwrap());
                assert_eq!(hidden(&bed), [""; 0], "{at}");
                assert_nothing_is_lost(&bed, &at);
            }
        }
    }

    /// The variable that names the folder of a process that is killed.
    const KILLED: &str = "PROWESS_TEST_KILLED";

    /// Opens the folder that another process works in.
    fn shared(root: &Path) -> (InstallPlace, PackageCache) {
        let surroundings = Surroundings {
            home: Some(root.join("home")),
            cwd: root.join("work"),
            repository: Some(root.join("work")),
            ..Surroundings::default()
        };
        let mut place =
            InstallPlace::project(&root.join("work"), &root.join("home/state"), &surroundings);
        place.patience = Duration::from_secs(60);
        (place, PackageCache::open(&root.join("home/cache")).unwrap())
    }

    /// The versions between which the killed processes change.
    fn version(place: &InstallPlace, cache: &PackageCache, number: usize) -> Vec<LockedSkill> {
        let clients: [&[&str]; 3] =
            [&["codex", "claude-code"], &["claude-code"], &["trae", "codex"]];
        let names = ["one", "two", "three", "four", "five"];
        let names = names.iter().skip(number % 2).take(3 + number % 3);
        names
            .enumerate()
            .map(|(at, it)| {
                let clients = clients[(number + at) % clients.len()];
                skill(place, cache, it, &(number % 4).to_string(), clients)
            })
            .collect()
    }

    /// Kills processes while they install, and checks what the next one finds.
    fn kill(rounds: usize) -> [usize; 3] {
        let test =
            "install::a_change_is_whole_or_not_made::killing_processes_at_random_loses_nothing";
        let root = tempfile::tempdir().unwrap();
        let work = root.path().join("work");
        fs::create_dir_all(work.join(".agents/skills/mine")).unwrap();
        fs::write(work.join(".agents/skills/mine/SKILL.md"), "written by me").unwrap();
        let (place, cache) = shared(root.path());
        let mut random = 0x2545_F491_4F6C_DD1D_u64;
        let (mut killed, mut finished, mut repaired) = (0, 0, 0);
        let mut longest = 60_000.0;
        // The states that the project can be in, by their lock.
        let mut states: BTreeMap<Vec<u8>, BTreeMap<String, Vec<u8>>> = BTreeMap::new();
        for number in 0..12 {
            let installer = Installer::open(&place, &cache, &|| ()).unwrap();
            let wanted = version(&place, &cache, number);
            change(&installer, &place, &wanted, LocalEdits::Refuse).unwrap();
            states.insert(fs::read(work.join(LOCK_FILE)).unwrap(), everything(&work));
        }
        for round in 0..rounds {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let share = (random >> 33) as f64 / f64::from(1_u32 << 31);
            let mut child = Command::new(std::env::current_exe().unwrap())
                .args(["--exact", test, "--nocapture"])
                .env(KILLED, root.path())
                .env("PROWESS_TEST_ROUND", (round % 12).to_string())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            std::thread::sleep(Duration::from_micros((longest * share) as u64));
            child.kill().unwrap();
            let ended = child.wait().unwrap().code();
            longest *= if ended.is_none() { 1.15 } else { 0.9 };
            assert!(ended.is_none_or(|it| it == 0), "round {round}: {ended:?}");
            killed += usize::from(ended.is_none());
            finished += usize::from(ended.is_some());
            let next = Installer::open(&place, &cache, &|| ()).unwrap();
            repaired += next.recovered().len();
            let now = everything(&work);
            let lock = fs::read(work.join(LOCK_FILE)).unwrap();
            let state = states.get(&lock).unwrap_or_else(|| panic!("round {round}: a new lock"));
            assert_eq!(&now, state, "round {round}");
            let faults = verify(&place, &self::lock(&place));
            assert!(faults.iter().all(|it| it.faults.is_empty()), "round {round}: {faults:?}");
        }
        assert!(killed > rounds / 8 && finished > rounds / 8, "{killed} {finished}");
        assert!(repaired > 0, "no process was killed in the middle of a change");
        [killed, finished, repaired]
    }

    #[test]
    fn killing_processes_at_random_loses_nothing() {
        if let Some(root) = std::env::var_os(KILLED) {
            let (place, cache) = shared(Path::new(&root));
            let round: usize = std::env::var("PROWESS_TEST_ROUND").unwrap().parse().unwrap();
            let installer = Installer::open(&place, &cache, &|| ()).unwrap();
            let wanted = version(&place, &cache, round);
            change(&installer, &place, &wanted, LocalEdits::Refuse).unwrap();
            return;
        }
        kill(60);
    }

    #[test]
    #[cfg_attr(not(feature = "external"), ignore = "needs minutes")]
    fn killing_a_thousand_processes_loses_nothing() {
        let [killed, finished, repaired] = kill(1000);
        println!("{killed} were killed, {finished} ended, {repaired} changes were repaired");
    }

    #[test]
    fn what_is_said_to_be_done_is_on_the_disk() {
        for (name, after, change) in CHANGES {
            let (_, steps) = made(*after, *change);
            let mut unsynced = 0;
            for step in &steps {
                match step {
                    InstallStep::Write => unsynced += 1,
                    InstallStep::Sync => unsynced -= 1,
                    InstallStep::Rename => assert_eq!(unsynced, 0, "{name}: {steps:?}"),
                    _ => {}
                }
            }
            let last = |wanted| steps.iter().rposition(|it| *it == wanted);
            assert!(last(InstallStep::SyncDirectory) > last(InstallStep::Rename), "{name}");
        }
    }

    #[test]
    fn what_the_user_did_after_a_crash_is_kept() {
        let (_, steps) = made(false, CHANGES[0].2);
        let mut kept = 0;
        for last in (0..steps.len()).step_by(2) {
            let bed = bed();
            let count = AtomicUsize::new(0);
            let dying = Installer::open_with_steps(&bed.place, &bed.cache, move |_| {
                match count.fetch_add(1, Ordering::Relaxed) < last {
                    true => Ok(()),
                    false => Err(io::Error::other("dead")),
                }
            });
            let _ = dying.and_then(|it| CHANGES[0].2(&it, &bed.place, &bed.cache));
            // Edits of what is there, by writing new files, and new folders where nothing is.
            for name in ["pdf", "edited", "new", "old"] {
                let folder = bed.path(&format!("{AGENTS}/{name}"));
                fs::create_dir_all(&folder).unwrap();
                fs::write(folder.join("later.md"), format!("later {name}")).unwrap();
            }
            let manifest = bed.text("prowess.toml") + "# later\n";
            fs::write(bed.path("prowess.toml"), &manifest).unwrap();
            let next = Installer::open(&bed.place, &bed.cache, &|| ()).unwrap();
            assert_nothing_is_lost(&bed, &last.to_string());
            assert!(bed.text("prowess.toml").ends_with("# later\n"), "{last}");
            kept += usize::from(!next.recovered().is_empty());
            let all = [seen(&bed), everything(&bed.path(STATE))];
            for name in ["pdf", "edited", "new", "old"] {
                let text = format!("later {name}").into_bytes();
                let is_there = all.iter().flatten().any(|it| *it.1 == text);
                assert!(is_there, "{last}: what was written to {name} is lost");
            }
        }
        assert!(kept > 5, "{kept}");
    }

    #[test]
    fn what_somebody_changes_meanwhile_is_kept() {
        // Somebody writes a skill, or swaps it for a link, at each step of the update.
        let (_, steps) = made(false, CHANGES[0].2);
        let mut refused = 0;
        for (number, step) in steps.iter().enumerate() {
            let bed = bed();
            bed.world.write("own/SKILL.md", "my own");
            let root = bed.path("");
            let count = AtomicUsize::new(0);
            let installer = Installer::open_with_steps(&bed.place, &bed.cache, move |_| {
                if count.fetch_add(1, Ordering::Relaxed) == number {
                    let folder = root.join(".agents/skills/pdf");
                    if folder.is_dir() {
                        fs::write(folder.join("meanwhile.md"), "meanwhile").unwrap();
                    } else {
                        symlink("../../own", folder).unwrap();
                    }
                    let manifest = root.join("prowess.toml");
                    let text = fs::read_to_string(&manifest).unwrap() + "# meanwhile\n";
                    fs::write(&manifest, text).unwrap();
                }
                Ok(())
            })
            .unwrap();
            let result = CHANGES[0].2(&installer, &bed.place, &bed.cache);
            drop(installer);
            let at = format!("{number} {step:?} {result:?}");
            refused += usize::from(result.is_err());
            assert_nothing_is_lost(&bed, &at);
            assert_eq!(bed.text("own/SKILL.md"), "my own", "{at}");
            let all = [seen(&bed), everything(&bed.path(STATE))];
            let has = |text: &str| {
                all.iter().flatten().any(|it| String::from_utf8_lossy(it.1).contains(text))
            };
            let is_link = bed.path(".agents/skills/pdf").is_symlink();
            assert!(has("meanwhile") || is_link, "{at}");
            // The manifest of somebody else is not overwritten.
            assert!(bed.text("prowess.toml").contains("# meanwhile"), "{at}");
            drop(Installer::open(&bed.place, &bed.cache, &|| ()).unwrap());
            assert_eq!(hidden(&bed), [""; 0], "{at}");
        }
        assert!(refused > 10, "{refused}");
    }

    #[test]
    fn a_directory_swapped_for_a_link_leads_nowhere() {
        let (_, steps) = made(false, CHANGES[0].2);
        for (number, step) in steps.iter().enumerate() {
            let bed = bed();
            let outside = tempfile::tempdir().unwrap();
            fs::create_dir(outside.path().join("pdf")).unwrap();
            fs::write(outside.path().join("pdf/SKILL.md"), "theirs").unwrap();
            let before = everything(outside.path());
            let (root, to) = (bed.path(".agents"), outside.path().to_owned());
            let count = AtomicUsize::new(0);
            let installer = Installer::open_with_steps(&bed.place, &bed.cache, move |_| {
                if count.fetch_add(1, Ordering::Relaxed) == number {
                    fs::rename(root.join("skills"), root.join("moved")).unwrap();
                    symlink(&to, root.join("skills")).unwrap();
                }
                Ok(())
            })
            .unwrap();
            let _ = CHANGES[0].2(&installer, &bed.place, &bed.cache);
            drop(installer);
            let mut now = everything(outside.path());
            // A draft may lie there; nothing that was there has changed.
            now.retain(|path, _| !path.contains(".prowess-install-"));
            assert_eq!(now, before, "{number} {step:?}");
            let own = everything(&bed.path("")).into_iter().any(|it| it.1 == b"written by me");
            let kept = bed.kept().iter().any(|it| it == "written by me");
            assert!(own || kept, "{number} {step:?}");
        }
    }

    #[test]
    fn a_cancelled_change_leaves_what_was_there() {
        let bed = bed();
        let before = seen(&bed);
        let installer = Installer::open(&bed.place, &bed.cache, &|| ()).unwrap();
        let (cancelled, calls) = (AtomicBool::new(false), AtomicUsize::new(0));
        let report = |done: usize, all: usize| {
            assert!(done <= all);
            calls.fetch_add(1, Ordering::Relaxed);
            cancelled.store(true, Ordering::Relaxed);
        };
        let plan =
            installer.plan(&bed.lock(), wanted(&bed.place, &bed.cache), LocalEdits::Merge).unwrap();
        let options = InstallOptions::new("update").with_progress(&report).with_cancel(&cancelled);
        let result = installer.apply(plan, &options, |it| files(&bed.place, it));
        assert!(matches!(result, Err(InstallError::Cancelled { .. })), "{result:?}");
        assert!(calls.into_inner() > 0);
        assert_eq!(seen(&bed), before);
        assert_eq!(installer.history().unwrap().len(), 1);
    }

    #[test]
    fn a_package_that_is_not_in_the_cache_changes_nothing() {
        let bed = bed();
        let before = seen(&bed);
        let mut wanted = wanted(&bed.place, &bed.cache);
        let other = tempfile::tempdir().unwrap();
        let elsewhere = PackageCache::open(other.path()).unwrap();
        wanted[2] = skill(&bed.place, &elsewhere, "new", "unknown", &["codex"]);
        let error = bed.install_with(&wanted, LocalEdits::Merge).unwrap_err();
        assert_eq!(error.to_string(), "cannot install `new`; nothing has changed");
        assert!(error.hint().is_some());
        assert_eq!(seen(&bed), before);
    }

    #[test]
    fn a_project_that_is_gone_does_not_stop_others() {
        let (_, steps) = made(false, CHANGES[0].2);
        let one = bed();
        let count = AtomicUsize::new(0);
        let last = steps.len() / 2;
        let dying = Installer::open_with_steps(&one.place, &one.cache, move |_| {
            match count.fetch_add(1, Ordering::Relaxed) < last {
                true => Ok(()),
                false => Err(io::Error::other("dead")),
            }
        });
        let _ = dying.and_then(|it| CHANGES[0].2(&it, &one.place, &one.cache)).unwrap_err();
        let other = one.path("other");
        fs::create_dir(&other).unwrap();
        let mut place = one.place.clone();
        place.root.clone_from(&other);
        place.surroundings.cwd.clone_from(&other);
        for directory in [".agents", ".claude"] {
            fs::rename(one.path(directory), one.path(&format!("moved{directory}"))).unwrap();
        }
        let installer = Installer::open(&place, &one.cache, &|| ()).unwrap();
        let wanted = skill(&place, &one.cache, "pdf", "1", &["codex"]);
        change(&installer, &place, &[wanted], LocalEdits::Refuse).unwrap();
        assert!(other.join(".agents/skills/pdf/SKILL.md").is_file());
    }

    #[test]
    fn a_file_that_is_a_link_is_written_where_it_leads() {
        let bed = Bed::of(
            World::new()
                .file("dotfiles/prowess.toml", "")
                .link("prowess.toml", "dotfiles/prowess.toml"),
        );
        fs::set_permissions(bed.path("dotfiles/prowess.toml"), fs::Permissions::from_mode(0o640))
            .unwrap();
        bed.install(&[bed.skill("pdf", "1", &["codex"])]).unwrap();
        assert!(bed.path("prowess.toml").is_symlink());
        assert!(bed.text("dotfiles/prowess.toml").contains("pdf = "));
        let mode = fs::metadata(bed.path("dotfiles/prowess.toml")).unwrap().mode();
        assert_eq!(mode & 0o777, 0o640);
    }

    #[test]
    #[cfg_attr(
        not(feature = "external"),
        ignore = "needs to be run as root, to change users and mount"
    )]
    fn a_full_disk_or_a_read_only_directory_leaves_what_was_there() {
        let test = "install::a_change_is_whole_or_not_made::a_full_disk_or_a_read_only_directory_leaves_what_was_there";
        if let Some(root) = std::env::var_os(KILLED) {
            let (place, cache) = shared(Path::new(&root));
            let before = everything(&place.root);
            let large = "x".repeat(300_000);
            let document = format!("---\nname: large\ndescription: a\n---\n{large}");
            let mut wanted = version(&place, &cache, 1);
            wanted.push(package(&place, &cache, "large", &[("SKILL.md", &document)], &["codex"]));
            let installer = Installer::open(&place, &cache, &|| ()).unwrap();
            let error = change(&installer, &place, &wanted, LocalEdits::Refuse).unwrap_err();
            println!("[{error}]");
            assert_eq!(everything(&place.root), before);
            change(&installer, &place, &[], LocalEdits::Refuse).map_or_else(
                |error| assert!(error.to_string().contains("nothing has changed")),
                |_| assert_eq!(lock(&place), []),
            );
            return;
        }
        let mount =
            "mount -t tmpfs -o size=200k small \"$1/work\"; cp -a \"$1/copy/.\" \"$1/work\"";
        let read_only = "chmod 555 \"$1\"/work/.*/skills; chown -R 65534 \"$1\"";
        let nobody = "setpriv --reuid=65534 --regid=65534 --clear-groups";
        for (prepare, run) in [(mount, ""), (read_only, nobody)] {
            let root = tempfile::Builder::new()
                .permissions(fs::Permissions::from_mode(0o755))
                .tempdir()
                .unwrap();
            fs::create_dir(root.path().join("work")).unwrap();
            let (place, cache) = shared(root.path());
            let installer = Installer::open(&place, &cache, &|| ()).unwrap();
            change(&installer, &place, &version(&place, &cache, 0), LocalEdits::Refuse).unwrap();
            drop(installer);
            let copied = Command::new("cp")
                .arg("-a")
                .arg(root.path().join("work"))
                .arg(root.path().join("copy"))
                .status();
            assert!(copied.unwrap().success());
            let program = std::env::current_exe().unwrap();
            let copy = root.path().join("program");
            fs::copy(program, &copy).unwrap();
            let script = format!(
                "{prepare}; exec {run} \"$0\" --exact {test} --nocapture --include-ignored"
            );
            let ran = Command::new("unshare")
                .args(["-m", "sh", "-c", &script])
                .arg(&copy)
                .arg(root.path())
                .env(KILLED, root.path())
                .env("HOME", root.path())
                .output()
                .unwrap();
            let out = String::from_utf8_lossy(&ran.stdout);
            assert!(ran.status.success(), "{out} {}", String::from_utf8_lossy(&ran.stderr));
            assert!(out.contains("nothing has changed]"), "{out}");
        }
    }
}

mod other_processes_wait {
    use super::*;

    #[test]
    fn a_second_one_waits_and_sees_what_the_first_did() {
        let bed = Bed::new();
        let skills: Vec<LockedSkill> =
            (0..8).map(|it| bed.skill(&format!("skill-{it}"), "1", &["codex"])).collect();
        let waited = AtomicUsize::new(0);
        let first = Installer::open(&bed.place, &bed.cache, &|| ()).unwrap();
        std::thread::scope(|scope| {
            for skill in &skills {
                let (bed, waited) = (&bed, &waited);
                scope.spawn(move || {
                    let on_wait = || {
                        waited.fetch_add(1, Ordering::Relaxed);
                    };
                    let installer = Installer::open(&bed.place, &bed.cache, &on_wait).unwrap();
                    let wanted = [bed.lock(), vec![skill.clone()]].concat();
                    change(&installer, &bed.place, &wanted, LocalEdits::Refuse).unwrap();
                });
            }
            prowess_testing::world::until("all wait", || waited.load(Ordering::Relaxed) == 8);
            drop(first);
        });
        assert_eq!(bed.lock().len(), 8);
        let names: BTreeSet<_> =
            fs::read_dir(bed.path(AGENTS)).unwrap().map(|it| it.unwrap().file_name()).collect();
        assert_eq!(names.len(), 8);
    }

    #[test]
    fn a_journal_that_others_can_write_is_not_followed() {
        let bed = Bed::new();
        let packages = bed.place.state.join("packages");
        fs::create_dir_all(packages.join("changes/1")).unwrap();
        fs::set_permissions(&packages, fs::Permissions::from_mode(0o777)).unwrap();
        let error = Installer::open(&bed.place, &bed.cache, &|| ()).unwrap_err();
        let InstallError::Io { source, .. } = &error else { panic!("{error}") };
        assert_eq!(source.to_string(), "everyone can write in it");
        assert!(packages.join("changes/1").is_dir());
    }

    #[test]
    fn waiting_has_an_end() {
        let bed = Bed::new();
        let _first = Installer::open(&bed.place, &bed.cache, &|| ()).unwrap();
        let mut place = bed.place.clone();
        place.patience = Duration::from_millis(1);
        let error = Installer::open(&place, &bed.cache, &|| ()).unwrap_err();
        assert!(matches!(error, InstallError::Busy { .. }), "{error}");
        assert!(error.to_string().contains("nothing has changed"));
    }
}

mod the_last_change_can_be_undone {
    use super::*;

    fn undo(bed: &Bed) -> Result<String, InstallError> {
        let installer = Installer::open(&bed.place, &bed.cache, &|| ())?;
        let last = installer.history()?.first().map(|it| it.id.clone()).unwrap_or_default();
        Ok(installer.undo(&last, &InstallOptions::new("undo"))?.title)
    }

    #[test]
    fn folders_manifest_and_lock_are_as_before() {
        let bed = Bed::of(World::new().file("prowess.toml", "# mine\n"));
        let clients = ["codex", "claude-code"];
        let mut states = vec![everything(&bed.path(""))];
        let version =
            |number: &str| ["pdf", "docx"].map(|it| bed.skill(it, number, &clients)).to_vec();
        bed.install(&version("1")).unwrap();
        bed.world.write(".agents/skills/pdf/own.md", "mine");
        states.push(everything(&bed.path("")));
        bed.install_with(&version("2"), LocalEdits::Merge).unwrap();
        states.push(everything(&bed.path("")));
        bed.install_with(&[bed.skill("pdf", "3", &["claude-code"])], LocalEdits::SetAside).unwrap();
        states.push(everything(&bed.path("")));
        bed.install_with(&[], LocalEdits::SetAside).unwrap();
        let history = install_history(&bed.place).unwrap();
        assert_eq!(history.len(), 4);
        assert_eq!(history[0].skills, ["pdf"]);
        while let Some(state) = states.pop() {
            if states.is_empty() {
                // An edit would be lost with the folder that was new.
                assert!(matches!(undo(&bed), Err(InstallError::ChangedSince { .. })));
                fs::remove_file(bed.path(".agents/skills/pdf/own.md")).unwrap();
            }
            assert_eq!(undo(&bed).unwrap(), "a change");
            assert_eq!(everything(&bed.path("")), state, "{}", states.len());
        }
        assert_eq!(install_history(&bed.place).unwrap(), []);
        assert!(matches!(undo(&bed), Err(InstallError::NoSuchChange { .. })));
    }

    #[test]
    fn it_is_refused_if_something_has_changed_since() {
        let bed = Bed::new();
        bed.install(&[bed.skill("pdf", "1", &["codex"])]).unwrap();
        let more = [bed.skill("pdf", "2", &["codex"]), bed.skill("docx", "1", &["codex"])];
        bed.install(&more).unwrap();
        for path in ["prowess.toml", LOCK_FILE, ".agents/skills/pdf/own.md"] {
            let before = fs::read(bed.path(path)).ok();
            bed.world.write(path, [&*before.clone().unwrap_or_default(), b"# later\n"].concat());
            let state = everything(&bed.path(""));
            let error = undo(&bed).unwrap_err();
            assert!(matches!(error, InstallError::ChangedSince { .. }), "{path}: {error}");
            assert_eq!(everything(&bed.path("")), state);
            match before {
                Some(before) => bed.world.write(path, before),
                None => fs::remove_file(bed.path(path)).unwrap(),
            }
        }
        undo(&bed).unwrap();
        assert!(bed.text(".agents/skills/pdf/SKILL.md").contains("\n1\n"));
    }

    #[test]
    fn what_was_removed_is_in_the_trash_as_that_of_stores() {
        let bed = Bed::new();
        bed.install(&[bed.skill("pdf", "1", &["codex"])]).unwrap();
        bed.install(&[]).unwrap();
        let trash = bed.path(STATE).join("trash/skills");
        let entries: Vec<_> = fs::read_dir(&trash)
            .unwrap()
            .map(|it| it.unwrap().file_name().into_string().unwrap())
            .collect();
        let [entry] = &entries[..] else { panic!("{entries:?}") };
        let (time, folder) = entry.split_once('-').unwrap();
        assert_eq!((time.len(), folder), (20, "pdf"));
        assert!(trash.join(entry).join("skill/SKILL.md").is_file());
        let origin = fs::read_to_string(trash.join(entry).join("origin")).unwrap();
        assert_eq!(Path::new(&origin), prowess::real_path(bed.path(AGENTS)).unwrap());
        assert_eq!(fs::metadata(&trash).unwrap().mode() & 0o077, 0);
        undo(&bed).unwrap();
        assert!(bed.text(".agents/skills/pdf/SKILL.md").contains("first"));
        assert_eq!(fs::read_dir(&trash).unwrap().count(), 0);
    }

    #[test]
    fn the_history_has_an_end() {
        let bed = Bed::new();
        for number in 0..24 {
            bed.install(&[bed.skill("pdf", &number.to_string(), &["codex"])]).unwrap();
        }
        let history = install_history(&bed.place).unwrap();
        assert_eq!(history.len(), 20);
        assert!(history.is_sorted_by(|a, b| a.time > b.time));
    }
}

mod what_is_installed_is_compared_with_the_lock {
    use super::*;

    #[test]
    fn every_difference_is_named() {
        let bed = Bed::new();
        let clients = ["codex", "claude-code"];
        let skills = ["a", "b", "c", "d", "e"].map(|it| bed.skill(it, "1", &clients));
        bed.install(&skills).unwrap();
        assert_eq!(verify(&bed.place, &bed.lock()).len(), 10);
        assert!(verify(&bed.place, &bed.lock()).iter().all(|it| it.faults.is_empty()));
        let path = |name: &str| bed.path(&format!("{AGENTS}/{name}"));
        fs::remove_file(path("a/SKILL.md")).unwrap();
        fs::write(path("a/SKILL.md"), "changed").unwrap();
        fs::remove_file(path("a/references/notes.md")).unwrap();
        fs::write(path("a/more.md"), "more").unwrap();
        fs::copy(path("a/scripts/run.sh"), path("a/copy")).unwrap();
        fs::rename(path("a/copy"), path("a/scripts/run.sh")).unwrap();
        fs::set_permissions(path("a/scripts/run.sh"), fs::Permissions::from_mode(0o644)).unwrap();
        fs::remove_dir_all(path("b")).unwrap();
        fs::remove_file(bed.path(".claude/skills/c")).unwrap();
        symlink("../../.agents/skills/d", bed.path(".claude/skills/c")).unwrap();
        fs::remove_file(bed.path(".claude/skills/d")).unwrap();
        fs::create_dir(bed.path(".claude/skills/d")).unwrap();
        fs::remove_dir_all(path("e")).unwrap();
        symlink("d", path("e")).unwrap();
        let faults: BTreeMap<String, Vec<VerifyFault>> = verify(&bed.place, &bed.lock())
            .into_iter()
            .map(|it| (it.path, it.faults))
            .filter(|it| !it.1.is_empty())
            .collect();
        let of = |path: &str| &faults[path][..];
        assert_eq!(
            of(".agents/skills/a"),
            [
                VerifyFault::Changed("SKILL.md".to_owned()),
                VerifyFault::Mode("scripts/run.sh".to_owned()),
                VerifyFault::Missing("references/notes.md".to_owned()),
                VerifyFault::Extra("more.md".to_owned()),
            ]
        );
        assert_eq!(of(".agents/skills/b"), [VerifyFault::Gone]);
        let elsewhere = VerifyFault::LeadsElsewhere("../../.agents/skills/d".into());
        assert_eq!(of(".claude/skills/c"), [elsewhere]);
        assert_eq!(of(".claude/skills/d"), [VerifyFault::Replaced("a folder")]);
        assert_eq!(of(".agents/skills/e"), [VerifyFault::Replaced("a link")]);
        assert_eq!(faults.len(), 5, "{faults:?}");
    }

    #[test]
    fn an_edit_through_a_hard_link_is_noticed() {
        let bed = Bed::new();
        bed.install(&[bed.skill("pdf", "1", &["codex"])]).unwrap();
        let path = bed.path(".agents/skills/pdf/SKILL.md");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        let text = fs::read_to_string(&path).unwrap().replace("first", "FIRST");
        fs::write(&path, &text).unwrap();
        let faults = verify(&bed.place, &bed.lock());
        assert_eq!(faults[0].faults, [VerifyFault::Changed("SKILL.md".to_owned())]);
        // And it is not installed elsewhere.
        let wanted = bed.skill("pdf", "1", &["codex"]);
        bed.install_with(&[wanted], LocalEdits::SetAside).unwrap();
        assert!(bed.text(".agents/skills/pdf/SKILL.md").contains("first"));
        assert!(bed.kept().contains(&text));
    }
}
