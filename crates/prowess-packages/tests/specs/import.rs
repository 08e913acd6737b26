//! The scenarios of `specs/import.md`.

use std::{fs, path::Path};

use prowess_packages::{ForeignFormat, ForeignLock, ForeignSkill, read_foreign};
use tempfile::TempDir;

/// Creates a folder with these files.
fn folder(files: &[(&str, &[u8])]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (path, bytes) in files {
        put(folder.path(), path, bytes);
    }
    folder
}

fn put(folder: &Path, path: &str, bytes: &[u8]) {
    let path = folder.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

fn read(format: ForeignFormat, text: &str) -> ForeignLock {
    read_foreign(format, text.as_bytes()).unwrap()
}

fn skill<'l>(lock: &'l ForeignLock, name: &str) -> &'l ForeignSkill {
    lock.skills.iter().find(|it| it.name == name).unwrap_or_else(|| panic!("{name}: {lock:?}"))
}

/// The files of the example that the hashes of other programs are known for.
const EXAMPLE: &[(&str, &[u8])] = &[
    ("SKILL.md", b"---\nname: t\ndescription: d\n---\nhi\n"),
    ("scripts/a.py", b"print(1)\n"),
    ("LICENSE.txt", b"x"),
    ("a_b", b"1"),
    ("a-b", b"2"),
];
const COMPUTED: &str = "0ceeb04c49b3bd9555152a7d416eccb36a04cb72b4f5f7d8e2f4823715221821";
const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

mod hashes_are_those_of_the_other_programs {
    use std::{fs, path::Path, process::Command};

    use prowess_packages::{ForeignHash, HashCheck};

    use super::{COMPUTED, EXAMPLE, folder, put};

    #[test]
    fn each_scheme_gives_the_hash_that_its_program_gave() {
        let hashes = [
            ForeignHash::Computed(COMPUTED.to_owned()),
            ForeignHash::ClawHub(
                "fd71078470707ba432e8362837605c1aa5105859e8e4356935f59b2f56f6b169".to_owned(),
            ),
            ForeignHash::ClawHubContent(
                "530c54dd581e561f212bea124442abdcac101bad6c3fb60aedcabaaaf23c0bb5".to_owned(),
            ),
            ForeignHash::ApmPackage(
                "sha256:a9f381c2b9dcdd5735593185f986191d5eb9e474b2b7208b7c78cd440a53e3a0"
                    .to_owned(),
            ),
            ForeignHash::SkillPort(
                "sha256:3275d1494566bb4bbbe16c527d14b9b100852d657c67873ec2b90ed2e7ae0e2d"
                    .to_owned(),
            ),
            ForeignHash::WellKnown(
                "sha256:f440f891897ca116420a4ad36bf63b452c9e56c586172438ec95cbf4eb963196"
                    .to_owned(),
            ),
        ];
        let folder = folder(EXAMPLE);
        put(folder.path(), ".git/config", b"not of the skill");
        for hash in &hashes {
            assert_eq!(hash.verify(folder.path()), HashCheck::Matches, "{hash:?}");
        }
        put(folder.path(), "scripts/a.py", b"print(2)\n");
        for hash in &hashes {
            assert_ne!(hash.verify(folder.path()), HashCheck::Matches, "{hash:?}");
        }
        assert_eq!(hashes[0].verify(folder.path()), HashCheck::Differs);
    }

    fn git(folder: &Path, arguments: &[&str]) -> String {
        let output = Command::new("git")
            .current_dir(folder)
            .args(arguments)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .output()
            .unwrap();
        assert!(output.status.success(), "git {arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    #[cfg(unix)]
    #[test]
    fn a_tree_is_that_of_git() {
        use std::os::unix::fs::PermissionsExt as _;

        let folder = folder(EXAMPLE);
        for path in ["a/x", "a.txt", "a0", "a-/deep/er/x", "ä/é", "A"] {
            put(folder.path(), path, path.as_bytes());
        }
        fs::set_permissions(folder.path().join("scripts/a.py"), fs::Permissions::from_mode(0o755))
            .unwrap();
        std::os::unix::fs::symlink("a/x", folder.path().join("link")).unwrap();
        fs::create_dir(folder.path().join("empty")).unwrap();
        git(folder.path(), &["init", "-q"]);
        git(folder.path(), &["add", "."]);
        let tree = ForeignHash::GitTree(git(folder.path(), &["write-tree"]));
        assert_eq!(tree.verify(folder.path()), HashCheck::Matches);
        fs::set_permissions(folder.path().join("a0"), fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(tree.verify(folder.path()), HashCheck::Differs);
    }

    #[test]
    fn line_ends_do_not_count_for_apm() {
        let folder = folder(&[("SKILL.md", b"a\r\nb\rc\n"), ("image", b"\0\r\n")]);
        let digest = |bytes: &[u8]| prowess_packages::FileDigest::of(bytes).to_string();
        let files = [("SKILL.md", digest(b"a\nb\rc\n")), ("image", digest(b"\0\r\n"))];
        let hash =
            ForeignHash::ApmFiles(files.into_iter().map(|it| (it.0.to_owned(), it.1)).collect());
        assert_eq!(hash.verify(folder.path()), HashCheck::Matches);
        put(folder.path(), "image", b"\0\n");
        assert_eq!(hash.verify(folder.path()), HashCheck::Differs);
        put(folder.path(), "image", b"\0\r\n");
        put(folder.path(), "more", b"x");
        assert_eq!(hash.verify(folder.path()), HashCheck::Differs);
    }

    #[test]
    fn an_order_that_is_not_known_is_not_checked() {
        let folder = folder(EXAMPLE);
        put(folder.path(), "ä", b"x");
        let HashCheck::NotChecked(reason) =
            ForeignHash::Computed(COMPUTED.to_owned()).verify(folder.path())
        else {
            panic!()
        };
        assert!(reason.contains("`ä`") && reason.contains("language"), "{reason}");
        let HashCheck::NotChecked(reason) =
            ForeignHash::Computed(COMPUTED.to_owned()).verify(&folder.path().join("none"))
        else {
            panic!()
        };
        assert!(reason.contains("cannot read"), "{reason}");
        assert_eq!(
            ForeignHash::None("no hash").verify(folder.path()),
            HashCheck::NotChecked("no hash".to_owned())
        );
    }

    #[test]
    fn a_file_that_gh_skill_has_rewritten_is_not_called_changed() {
        let tree = "0123456789abcdef0123456789abcdef01234567";
        let text =
            format!("---\nname: t\ndescription: d\nmetadata:\n    github-tree-sha: {tree}\n---\n");
        let folder = folder(&[("SKILL.md", text.as_bytes())]);
        let HashCheck::NotChecked(reason) =
            ForeignHash::GitTree(tree.to_owned()).verify(folder.path())
        else {
            panic!()
        };
        assert_eq!(reason, "gh skill has rewritten its `SKILL.md`");
    }
}

mod lock_files_of_other_programs_are_read {
    use prowess_packages::{ForeignFormat, ForeignHash, HashCheck, SourceKind, read_origin};

    use super::{COMMIT, COMPUTED, EXAMPLE, folder, put, read, skill};

    #[test]
    fn skills_lock_json_of_a_project() {
        let text = format!(
            r#"{{"version": 1, "skills": {{
                "pdf": {{"source": "anthropics/skills", "ref": "v1", "sourceType": "github", "skillPath": "skills/pdf/SKILL.md", "computedHash": "{COMPUTED}"}},
                "pinned": {{"source": "anthropics/skills", "ref": "{COMMIT}", "sourceType": "github", "skillPath": "SKILL.md", "computedHash": "{COMPUTED}"}},
                "My Skill": {{"source": "https://git.example.com/a/b", "sourceUrl": "https://git.example.com/a/b.git", "sourceType": "git", "computedHash": "{COMPUTED}"}},
                "lab": {{"source": "https://gitlab.com/g/s/r", "sourceUrl": "https://gitlab.com/g/s/r", "sourceType": "gitlab", "computedHash": "{COMPUTED}"}},
                "ssh": {{"source": "git@github.com:a/b.git", "sourceType": "git", "sourceUrl": "git@github.com:a/b.git", "computedHash": "{COMPUTED}"}},
                "site": {{"source": "example.com", "sourceUrl": "https://example.com/docs", "sourceType": "well-known", "wellKnownDigest": "sha256:{COMPUTED}"}},
                "mine": {{"source": "./vendor", "sourceType": "local", "computedHash": "{COMPUTED}", "new": 1}},
                "npm": {{"source": "@acme/skills", "sourceType": "node_modules", "version": "1.2.3", "computedHash": "{COMPUTED}"}}
            }}}}"#
        );
        let lock = read(ForeignFormat::SkillsLock, &text);
        assert_eq!(lock.left_out, []);
        let sources: Vec<String> =
            lock.skills.iter().map(|it| format!("{} {}", it.name, it.source)).collect();
        assert_eq!(
            sources,
            [
                "My Skill https://git.example.com/a/b.git",
                "lab gitlab:g/s/r",
                "mine ./vendor",
                "npm npm:@acme/skills",
                "pdf anthropics/skills/skills/pdf#v1",
                "pinned anthropics/skills#0123456789abcdef0123456789abcdef01234567",
                "site https://example.com/docs",
                "ssh git@github.com:a/b.git",
            ]
        );
        let pdf = skill(&lock, "pdf");
        assert_eq!(
            (pdf.reference.as_deref(), pdf.path.as_deref(), &pdf.commit),
            (Some("v1"), Some("skills/pdf"), &None)
        );
        assert_eq!(pdf.unpinned, Some("the lock file has no commit"));
        assert_eq!(skill(&lock, "pinned").commit.as_deref(), Some(COMMIT));
        assert_eq!(skill(&lock, "pinned").unpinned, None);
        assert!(
            pdf.folders.contains(&".agents/skills/pdf".to_owned())
                && pdf.folders.contains(&".claude/skills/pdf".to_owned())
        );
        assert_eq!(skill(&lock, "My Skill").folders[0], ".agents/skills/my-skill");
        assert_eq!(pdf.verify(folder(EXAMPLE).path()), HashCheck::Matches);
        assert!(matches!(skill(&lock, "site").hash, ForeignHash::WellKnown(_)));
    }

    #[test]
    fn skill_lock_json_of_a_user() {
        let text = format!(
            r#"{{"version": 3, "dismissed": {{}}, "skills": {{
                "pdf": {{"source": "anthropics/skills", "sourceType": "github", "sourceUrl": "https://github.com/anthropics/skills.git", "skillPath": "skills/pdf/SKILL.md", "skillFolderHash": "{COMMIT}", "installedAt": "x", "updatedAt": "x"}},
                "acme/forms": {{"source": "acme/skills", "sourceType": "github", "sourceUrl": "https://github.com/acme/skills", "pinnedRef": "{COMMIT}", "skillFolderHash": "{COMMIT}"}},
                "other": {{"source": "https://git.example.com/a/b.git", "sourceType": "git", "sourceUrl": "https://git.example.com/a/b.git", "skillFolderHash": "{COMPUTED}"}},
                "site": {{"source": "example.com", "sourceType": "well-known", "sourceUrl": "https://example.com", "skillFolderHash": "", "wellKnownDigest": "sha256:{COMPUTED}"}}
            }}}}"#
        );
        let lock = read(ForeignFormat::UserLock, &text);
        assert_eq!(lock.left_out, []);
        assert_eq!(skill(&lock, "pdf").hash, ForeignHash::GitTree(COMMIT.to_owned()));
        assert_eq!(skill(&lock, "pdf").folders[0], "~/.agents/skills/pdf");
        let forms = skill(&lock, "forms");
        assert_eq!(
            (forms.commit.as_deref(), &*forms.folders[0]),
            (Some(COMMIT), "~/.agents/skills/acme/forms")
        );
        assert!(matches!(skill(&lock, "other").hash, ForeignHash::Computed(_)));
        assert!(matches!(skill(&lock, "site").hash, ForeignHash::WellKnown(_)));
    }

    #[test]
    fn apm_lock_yaml_with_the_skills_of_packages() {
        let digest = |bytes: &[u8]| prowess_packages::FileDigest::of(bytes).to_string();
        let (a, b) = (digest(b"a\n"), digest(b"b"));
        let text = format!(
            "lockfile_version: '1'\ngenerated_at: '2026-01-01T00:00:00+00:00'\nnew: {{x: 1}}\ndependencies:\n\
             - repo_url: anthropics/skills\n  host: github.com\n  resolved_commit: {COMMIT}\n  resolved_ref: main\n  virtual_path: skills/pdf\n  is_virtual: true\n  package_type: claude_skill\n\
             \x20 deployed_files: &files\n  - .github/skills/pdf/SKILL.md\n  - .github/skills/pdf/a/b.txt\n  - .claude/skills/pdf/SKILL.md\n\
             \x20 deployed_file_hashes:\n    .github/skills/pdf/SKILL.md: {a}\n    .github/skills/pdf/a/b.txt: {b}\n    .claude/skills/pdf/SKILL.md: {a}\n\
             - repo_url: team/bundle\n  host: git.example.com\n  port: 8443\n  resolved_commit: {COMMIT}\n  deployed_files:\n  - .github/skills/one/\n  - .github/skills/two\n  - .github/prompts/x.prompt.md\n\
             - repo_url: team/hooks\n  resolved_commit: {COMMIT}\n  deployed_files: []\n\
             - repo_url: _local/mine\n  source: local\n  local_path: ../mine\n  deployed_files:\n  - .github/skills/mine/SKILL.md\n"
        );
        let lock = read(ForeignFormat::ApmLock, &text);
        let names: Vec<&str> = lock.skills.iter().map(|it| &*it.name).collect();
        assert_eq!(names, ["mine", "one", "pdf", "two"]);
        assert_eq!(
            (&*lock.left_out[0].name, &*lock.left_out[0].reason),
            ("team/hooks", "it has installed no skill")
        );
        let pdf = skill(&lock, "pdf");
        assert_eq!(pdf.source.to_string(), "anthropics/skills/skills/pdf#main");
        assert_eq!(
            (pdf.commit.as_deref(), pdf.path.as_deref(), pdf.unpinned),
            (Some(COMMIT), Some("skills/pdf"), None)
        );
        assert_eq!(pdf.folders, [".github/skills/pdf", ".claude/skills/pdf"]);
        let installed = folder(&[("SKILL.md", b"a\r\n"), ("a/b.txt", b"b")]);
        assert_eq!(pdf.verify(installed.path()), HashCheck::Matches);
        put(installed.path(), "a/b.txt", b"c");
        assert_eq!(pdf.verify(installed.path()), HashCheck::Differs);
        let SourceKind::Git(git) = &skill(&lock, "one").source.kind else { panic!() };
        assert_eq!(git.url, "https://git.example.com:8443/team/bundle");
        assert_eq!(skill(&lock, "mine").source.to_string(), "../mine");
        assert!(skill(&lock, "mine").unpinned.is_some());
    }

    #[test]
    fn apm_yml_without_a_lock_file() {
        let text = "name: x\nversion: 1.0.0\ndependencies:\n  apm:\n  - anthropics/skills/skills/pdf#v1\n  - gitlab.com/team/repo\n  - git: https://git.example.com/a/b.git\n    path: skills/x\n    ref: main\n  - path: ./mine\n  - name: tool\n    marketplace: acme\n  - a/b#^1.0\n  mcp: [x]\n";
        let lock = read(ForeignFormat::ApmManifest, text);
        let sources: Vec<String> =
            lock.skills.iter().map(|it| format!("{} {}", it.name, it.source)).collect();
        assert_eq!(
            sources,
            [
                "mine ./mine",
                "pdf anthropics/skills/skills/pdf#v1",
                "repo gitlab:team/repo",
                "x https://git.example.com/a/b.git//skills/x#main"
            ],
            "{lock:?}"
        );
        assert!(lock.skills.iter().all(|it| it.unpinned == Some("`apm.yml` has no commits")));
        assert_eq!(lock.left_out.len(), 2);
    }

    #[test]
    fn clawhub_lock_json() {
        let text = format!(
            r#"{{"version": 1, "skills": {{
                "pdf": {{"version": "1.2.0", "installedAt": 1}},
                "@acme/forms": {{"version": null, "installedAt": 1}},
                "skills-sh:anthropics/skills/docx": {{"version": "{COMMIT}", "installedAt": 1, "sourceKind": "skills-sh", "sourceRepository": "anthropics/skills", "sourcePath": "skills/docx"}}
            }}}}"#
        );
        let lock = read(ForeignFormat::ClawHub, &text);
        assert_eq!(lock.left_out, []);
        assert_eq!(
            (skill(&lock, "pdf").version.as_deref(), skill(&lock, "pdf").unpinned),
            (Some("1.2.0"), None)
        );
        assert_eq!(skill(&lock, "pdf").folders, ["skills/pdf"]);
        let forms = skill(&lock, "forms");
        assert!(
            matches!(&forms.source.kind, SourceKind::ClawHub { owner: Some(owner), .. } if owner == "acme")
        );
        assert_eq!((&*forms.folders[0], forms.unpinned.is_some()), ("skills/@acme/forms", true));
        let docx = skill(&lock, "docx");
        assert_eq!(
            (docx.commit.as_deref(), docx.source.to_string()),
            (Some(COMMIT), "anthropics/skills/skills/docx".to_owned())
        );
    }

    #[test]
    fn records_in_the_folders_of_skills() {
        let claw = folder(EXAMPLE);
        put(claw.path(), ".clawhub/origin.json", br#"{"version": 1, "registry": "https://hub.example.com", "slug": "t", "installedVersion": "2.0.0", "installedAt": 1, "fingerprint": "fd71078470707ba432e8362837605c1aa5105859e8e4356935f59b2f56f6b169"}"#);
        let skill = read_origin(claw.path()).unwrap().unwrap().unwrap();
        assert!(
            matches!(&skill.source.kind, SourceKind::ClawHub { registry: Some(url), .. } if url.as_str() == "https://hub.example.com/")
        );
        assert_eq!(skill.verify(claw.path()), HashCheck::Matches);

        let open = folder(EXAMPLE);
        put(open.path(), ".openskills.json", br#"{"source": "anthropics/skills", "sourceType": "git", "repoUrl": "https://github.com/anthropics/skills", "subpath": "skills/t", "installedAt": "x"}"#);
        let skill = read_origin(open.path()).unwrap().unwrap().unwrap();
        assert_eq!(
            (skill.source.to_string(), skill.unpinned),
            ("anthropics/skills/skills/t".to_owned(), Some("the record has no commit"))
        );

        let gh = folder(&[]);
        let text = format!(
            "---\ndescription: d\nmetadata:\n    github-path: skills/t\n    github-ref: refs/tags/v1\n    github-repo: https://github.com/anthropics/skills\n    github-tree-sha: {COMMIT}\nname: t\n---\n"
        );
        put(gh.path(), "SKILL.md", text.as_bytes());
        let skill = read_origin(gh.path()).unwrap().unwrap().unwrap();
        assert_eq!(
            (&*skill.name, skill.source.to_string()),
            ("t", "anthropics/skills/skills/t#v1".to_owned())
        );
        assert_eq!(skill.hash, ForeignHash::GitTree(COMMIT.to_owned()));
        put(gh.path(), "SKILL.md", text.replace("refs/tags/v1", COMMIT).as_bytes());
        assert_eq!(
            read_origin(gh.path()).unwrap().unwrap().unwrap().commit.as_deref(),
            Some(COMMIT)
        );

        assert!(read_origin(folder(EXAMPLE).path()).unwrap().is_none());
    }
}

mod nothing_in_a_foreign_file_is_trusted {
    use proptest::prelude::*;
    use prowess_packages::{ForeignError, ForeignFormat, read_foreign};

    use super::{COMMIT, COMPUTED, folder, put, read, skill};

    #[test]
    fn a_hostile_entry_is_left_out_and_the_others_stay() {
        let text = format!(
            r#"{{"version": 1, "skills": {{
                "good": {{"source": "a/b", "sourceType": "github", "computedHash": "{COMPUTED}"}},
                "up": {{"source": "a/b", "sourceType": "github", "skillPath": "../../x/SKILL.md"}},
                "option": {{"source": "a/b", "sourceType": "github", "ref": "--upload-pack=touch x"}},
                "command": {{"source": "ext::sh -c touch% x", "sourceUrl": "ext::sh -c touch% x", "sourceType": "git"}},
                "url": {{"source": "--x", "sourceUrl": "--x", "sourceType": "git"}},
                "type": {{"source": "a/b", "sourceType": "telepathy"}},
                "text": "x",
                "none": {{}},
                "bad-hash": {{"source": "a/b", "sourceType": "github", "computedHash": "x"}},
                "lines\nand \u001b[31mcolours": 1
            }}}}"#
        );
        let lock = read(ForeignFormat::SkillsLock, &text);
        let names: Vec<&str> = lock.skills.iter().map(|it| &*it.name).collect();
        assert_eq!(names, ["bad-hash", "good"]);
        let left_out: Vec<&str> = lock.left_out.iter().map(|it| &*it.name).collect();
        assert_eq!(
            left_out,
            ["command", "linesand [31mcolours", "none", "option", "text", "type", "up", "url"]
        );
        assert!(
            lock.left_out
                .iter()
                .all(|it| !it.reason.is_empty() && !it.reason.contains(char::is_control))
        );
        assert!(matches!(skill(&lock, "bad-hash").hash, prowess_packages::ForeignHash::None(_)));

        let text = format!(
            "lockfile_version: \"1\"\ndependencies:\n- repo_url: a/b\n  resolved_commit: {COMMIT}\n  deployed_files: [../../x/skills/y/SKILL.md]\n- repo_url: 7\n- x\n- repo_url: c/d\n  deployed_files: [s/skills/z/SKILL.md]\n"
        );
        let lock = read(ForeignFormat::ApmLock, &text);
        assert_eq!((lock.skills.len(), lock.left_out.len()), (1, 3), "{lock:?}");
        let lock = read(
            ForeignFormat::ClawHub,
            r#"{"version":1,"skills":{"../x":{},"a/../b":{},".":{},"@a/b/c":{},"ok":{"version":"1.0.0"}}}"#,
        );
        assert_eq!((lock.skills.len(), lock.left_out.len()), (1, 4), "{lock:?}");
    }

    #[test]
    fn a_file_that_is_not_of_the_format_is_refused() {
        for format in ForeignFormat::ALL {
            let error = read_foreign(format, &vec![b' '; (16 << 20) + 1]).unwrap_err();
            assert!(matches!(error, ForeignError::TooLarge { .. }));
            let error = read_foreign(format, b"{\"version\": 1, \"skills\": [").unwrap_err();
            assert!(matches!(error, ForeignError::Syntax { .. }), "{error:?}");
        }
        let error =
            read_foreign(ForeignFormat::UserLock, br#"{"version": 2, "skills": {}}"#).unwrap_err();
        assert_eq!(error.to_string(), "the file has version 2, and version 3 is read");
        assert!(error.hint().is_some());
        assert!(
            read_foreign(ForeignFormat::ApmLock, b"lockfile_version: '9'\ndependencies: []\n")
                .is_err()
        );
        let deep = "[".repeat(100_000);
        assert!(read_foreign(ForeignFormat::SkillsLock, deep.as_bytes()).is_err());
        assert!(read_foreign(ForeignFormat::ApmLock, deep.as_bytes()).is_err());
        let record = folder(&[]);
        put(record.path(), ".openskills.json", b"{");
        assert!(prowess_packages::read_origin(record.path()).is_err());
    }

    #[test]
    fn no_bytes_of_a_foreign_file_cause_a_panic() {
        proptest!(|(any in prop::collection::vec(any::<u8>(), 0..100), at in 0..400_usize, len in 0..30_usize, put in "[\\x00-\\x7fä]{0,8}")| {
            let json = format!(r#"{{"version": 1, "skills": {{"pdf": {{"source": "anthropics/skills", "ref": "v1", "sourceType": "github", "skillPath": "skills/pdf/SKILL.md", "computedHash": "{COMPUTED}"}}, "@a/b": {{"version": "1"}}}}}}"#);
            let yaml = format!("lockfile_version: '1'\ndependencies:\n- repo_url: a/b\n  virtual_path: skills/pdf\n  resolved_commit: {COMMIT}\n  deployed_files:\n  - .github/skills/pdf/SKILL.md\n  apm: [a/b/c#d]\n");
            for format in ForeignFormat::ALL {
                let _ = read_foreign(format, &any);
                for text in [&json, &json.replace("\"version\": 1", "\"version\": 3"), &yaml] {
                    let at = at.min(text.len());
                    let changed = format!("{}{put}{}", &text[..at], &text[(at + len).min(text.len())..]);
                    let _ = read_foreign(format, changed.as_bytes());
                }
            }
        });
    }
}

mod formats_of_other_programs_are_written {
    use std::{fs, path::Path, process::Command};

    use prowess_packages::{
        ExportedSkill, FileDigest, ForeignFormat, ForeignHash, HashCheck, InstallTarget,
        LockedSkill, TargetForm, TreeFile, export_apm_lock, export_apm_manifest,
        export_skills_lock,
    };

    use super::{COMMIT, EXAMPLE, folder, put, read, skill};

    /// Returns a skill with the files of the example.
    fn locked(name: &str, source: &str, path: &str) -> LockedSkill {
        let files = EXAMPLE.iter().map(|(path, bytes)| {
            TreeFile::new(*path, FileDigest::of(bytes), bytes.len() as u64, false)
        });
        let mut skill =
            LockedSkill::new(name, source.parse().unwrap(), "https://example.com", files.collect());
        skill.path = path.to_owned();
        skill.commit = Some(COMMIT.to_owned());
        skill
            .targets
            .push(InstallTarget::new(format!(".github/skills/{name}"), TargetForm::Folder));
        skill
    }

    fn exported<'a>(skills: &'a [LockedSkill], folder: &'a Path) -> Vec<ExportedSkill<'a>> {
        skills.iter().map(|it| ExportedSkill::new(it, folder)).collect()
    }

    #[test]
    fn a_written_skills_lock_json_reads_back() {
        let folder = folder(EXAMPLE);
        let mut forms = locked("forms", "https://git.example.com/a/b.git#v2", "skills/x");
        forms.skill = Some("The Forms".to_owned());
        let skills = [
            locked("pdf", "anthropics/skills", "skills/pdf"),
            forms,
            locked("lab", "gitlab:g/r", ""),
            locked("site", "https://example.com/docs", ""),
            locked("mine", "./vendor", "mine"),
            locked("npm", "npm:@a/b", ""),
            locked("claw", "clawhub:claw", ""),
        ];
        let file = export_skills_lock(&exported(&skills, folder.path())).unwrap();
        let left_out: Vec<&str> = file.left_out.iter().map(|it| &*it.name).collect();
        assert_eq!(left_out, ["npm", "claw"]);
        assert!(file.text.starts_with("{\n  \"version\": 1,\n  \"skills\": {\n    \"The Forms\": {\n      \"source\": \"https://git.example.com/a/b.git\",\n"), "{}", file.text);
        assert!(file.text.ends_with("}\n"));
        let lock = read(ForeignFormat::SkillsLock, &file.text);
        assert_eq!(lock.left_out, []);
        for (name, source) in [
            ("pdf", "anthropics/skills/skills/pdf"),
            ("The Forms", "https://git.example.com/a/b.git//skills/x#v2"),
            ("lab", "gitlab:g/r"),
            ("site", "https://example.com/docs"),
            ("mine", "./vendor"),
        ] {
            let skill = skill(&lock, name);
            assert_eq!(skill.source, source.parse().unwrap(), "{name}");
            assert_eq!(skill.verify(folder.path()), HashCheck::Matches);
        }
    }

    #[test]
    #[cfg_attr(not(feature = "external"), ignore = "needs npx and its registry")]
    fn npx_skills_installs_from_a_written_skills_lock_json() {
        let project = folder(&[]);
        let vendor = project.path().join("vendor/skills");
        for (name, text) in [
            ("pdf", "---\nname: pdf\ndescription: d\n---\n"),
            ("my-skill", "---\nname: My Skill\ndescription: d\n---\n"),
        ] {
            put(&vendor, &format!("{name}/SKILL.md"), text.as_bytes());
            put(&vendor, &format!("{name}/scripts/a_b.py"), b"1");
            put(&vendor, &format!("{name}/scripts/a-b.py"), b"2");
        }
        let [mut pdf, mut mine] =
            ["pdf", "my-skill"].map(|it| locked(it, "./vendor", &format!("skills/{it}")));
        pdf.copy = false;
        mine.skill = Some("My Skill".to_owned());
        let (pdf_folder, mine_folder) = (vendor.join("pdf"), vendor.join("my-skill"));
        let skills =
            [ExportedSkill::new(&pdf, &pdf_folder), ExportedSkill::new(&mine, &mine_folder)];
        let file = export_skills_lock(&skills).unwrap();
        assert_eq!(file.left_out, []);
        put(project.path(), "skills-lock.json", file.text.as_bytes());
        let npx = |arguments: &[&str]| {
            let output = Command::new("npx")
                .args(["--yes", "-p", "node@22.20.0", "-p", "skills@1.7.4", "skills"])
                .args(arguments)
                .current_dir(project.path())
                .env("HOME", project.path().join("home"))
                .env("DISABLE_TELEMETRY", "1")
                .env("CI", "1")
                .env("npm_config_cache", std::env::temp_dir().join("prowess-npx-cache"))
                .output()
                .unwrap();
            let text = format!(
                "{}{}",
                String::from_utf8_lossy(&output.stdout),
                String::from_utf8_lossy(&output.stderr)
            );
            assert!(output.status.success(), "{text}");
            text
        };
        let said = npx(&["experimental_install"]);
        for name in ["pdf", "my-skill"] {
            let installed = project.path().join(".agents/skills").join(name);
            assert!(
                installed.join("SKILL.md").is_file() && installed.join("scripts/a_b.py").is_file(),
                "{said}"
            );
        }
        let after = fs::read_to_string(project.path().join("skills-lock.json")).unwrap();
        let lock = read(ForeignFormat::SkillsLock, &after);
        assert_eq!(lock.left_out, []);
        for (name, folder) in [("pdf", "pdf"), ("My Skill", "my-skill")] {
            assert_eq!(skill(&lock, name).verify(&vendor.join(folder)), HashCheck::Matches);
            assert_eq!(
                skill(&lock, name).verify(&project.path().join(".agents/skills").join(folder)),
                HashCheck::Matches
            );
        }
        let hashes = |text: &str| -> Vec<String> {
            text.lines().filter(|it| it.contains("computedHash")).map(str::to_owned).collect()
        };
        assert_eq!(hashes(&after), hashes(&file.text));
        let listed = npx(&["list"]);
        assert!(listed.contains("pdf"), "{listed}");
    }

    #[test]
    fn a_written_apm_lock_yaml_reads_back() {
        let folder = folder(EXAMPLE);
        put(folder.path(), "SKILL.md", b"a\r\n");
        let skills = [
            locked("pdf", "anthropics/skills#v1", "skills/pdf"),
            locked("x", "https://git.example.com/a/b.git", ""),
            locked("mine", "./vendor", ""),
            locked("npm", "npm:a", ""),
        ];
        let file = export_apm_lock(&exported(&skills, folder.path())).unwrap();
        let left_out: Vec<&str> = file.left_out.iter().map(|it| &*it.name).collect();
        assert_eq!(left_out, ["mine", "npm"]);
        let lock = read(ForeignFormat::ApmLock, &file.text);
        assert_eq!(lock.left_out, []);
        for (name, source) in
            [("pdf", "anthropics/skills/skills/pdf#v1"), ("x", "https://git.example.com/a/b")]
        {
            let skill = skill(&lock, name);
            assert_eq!(
                (skill.source.clone(), skill.commit.as_deref()),
                (git(source), Some(COMMIT))
            );
            assert_eq!(skill.verify(folder.path()), HashCheck::Matches);
        }
        let file = export_apm_manifest("my project", &exported(&skills, folder.path()));
        let lock = read(ForeignFormat::ApmManifest, &file.text);
        let sources: Vec<String> = lock.skills.iter().map(|it| it.source.to_string()).collect();
        assert_eq!(
            sources,
            ["https://git.example.com/a/b.git", "anthropics/skills/skills/pdf#v1", "./vendor"],
            "{}",
            file.text
        );
        assert_eq!(file.left_out.len(), 1);
    }

    /// Returns the source of a repository, which a URL without `.git` does not always mean.
    fn git(text: &str) -> prowess_packages::SkillSource {
        match text.starts_with("https://") {
            true => format!("git+{text}").parse().unwrap(),
            false => text.parse().unwrap(),
        }
    }

    #[test]
    #[cfg_attr(not(feature = "external"), ignore = "needs pip and its registry")]
    fn apm_reads_a_written_apm_lock_yaml() {
        let world = folder(&[]);
        let shell = |at: &str, script: &str| {
            let output = Command::new("sh")
                .args(["-ec", script])
                .current_dir(world.path().join(at))
                .env("HOME", world.path())
                .env("GIT_CONFIG_NOSYSTEM", "1")
                .output()
                .unwrap();
            let text = format!(
                "{}{}",
                String::from_utf8_lossy(&output.stdout),
                String::from_utf8_lossy(&output.stderr)
            );
            assert!(output.status.success(), "{script}: {text}");
            text
        };
        shell("", "python3 -m venv venv && venv/bin/pip install -q apm-cli==0.35.0");
        let document = b"---\nname: pdf\ndescription: d\n---\r\nhi\n";
        for at in ["repository/skills/pdf", "ours/.claude/skills/pdf"] {
            put(world.path(), &format!("{at}/SKILL.md"), document);
            put(world.path(), &format!("{at}/scripts/a_b.py"), b"1");
            put(world.path(), &format!("{at}/scripts/a-b.py"), b"2");
        }
        let address = world.path().join("repository");
        let config = format!(
            "[user]\nname = t\nemail = t@example.com\n[url \"file://{}\"]\n\tinsteadOf = https://github.com/acme/skills\n\tinsteadOf = https://github.com/acme/skills.git\n",
            address.display()
        );
        put(world.path(), ".gitconfig", config.as_bytes());
        shell("repository", "git init -q -b main && git add . && git commit -q -m x");
        let commit = shell("repository", "git rev-parse HEAD").trim().to_owned();

        let installed = world.path().join("ours/.claude/skills/pdf");
        let files = ["SKILL.md", "scripts/a-b.py", "scripts/a_b.py"].map(|path| {
            let (digest, size) = FileDigest::of_file(&installed.join(path)).unwrap();
            TreeFile::new(path, digest, size, false)
        });
        let source = "acme/skills#main".parse().unwrap();
        let mut pdf = LockedSkill::new("pdf", source, "https://example.com", files.to_vec());
        (pdf.commit, pdf.path) = (Some(commit.clone()), "skills/pdf".to_owned());
        pdf.targets.push(InstallTarget::new(".claude/skills/pdf", TargetForm::Folder));
        let skills = [ExportedSkill::new(&pdf, &installed)];
        let file = export_apm_lock(&skills).unwrap();
        put(world.path(), "ours/apm.lock.yaml", file.text.as_bytes());
        let manifest = export_apm_manifest("ours", &skills);
        put(world.path(), "ours/apm.yml", manifest.text.as_bytes());
        let script = "\
from pathlib import Path
from apm_cli.deps.lockfile import LockFile
from apm_cli.utils.content_hash import verify_package_hash
lock = LockFile.from_yaml(Path('apm.lock.yaml').read_text())
[dep] = lock.get_all_dependencies()
assert verify_package_hash(Path('.claude/skills/pdf'), dep.content_hash)
print(dep.get_unique_key(), dep.resolved_commit, dep.resolved_ref)
";
        put(world.path(), "read.py", script.as_bytes());
        let said = shell("ours", "../venv/bin/python ../read.py");
        assert_eq!(said, format!("acme/skills/skills/pdf {commit} main\n"));
        shell("ours", "../venv/bin/apm install --frozen");
        assert_eq!(fs::read(installed.join("SKILL.md")).unwrap(), document);

        // What the program writes itself.
        put(world.path(), "theirs/apm.yml", manifest.text.as_bytes());
        fs::create_dir_all(world.path().join("theirs/.claude")).unwrap();
        shell("theirs", "../venv/bin/apm install");
        let text = fs::read_to_string(world.path().join("theirs/apm.lock.yaml")).unwrap();
        let lock = read(ForeignFormat::ApmLock, &text);
        let pdf = skill(&lock, "pdf");
        assert_eq!(pdf.source.to_string(), "acme/skills/skills/pdf#main");
        assert_eq!((pdf.commit.as_deref(), pdf.unpinned), (Some(&*commit), None), "{text}");
        assert_eq!(pdf.folders, [".claude/skills/pdf"]);
        assert_eq!(pdf.verify(&world.path().join("theirs/.claude/skills/pdf")), HashCheck::Matches);
        let package = text.lines().find_map(|it| it.trim().strip_prefix("content_hash: sha256:"));
        let package = ForeignHash::ApmPackage(format!("sha256:{}", package.unwrap()));
        assert_eq!(package.verify(&installed), HashCheck::Matches);
    }
}
