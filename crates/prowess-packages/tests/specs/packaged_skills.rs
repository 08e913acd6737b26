//! The scenarios of `specs/packaged_skills.md`.

use std::{fs, path::Path};

use prowess_packages::{DiscoveredPackage, FileDigest, PackagedSkill, TreeFile, discover};
use tempfile::TempDir;

/// A package: a folder, and the list of its files.
struct Package {
    folder: TempDir,
    files: Vec<TreeFile>,
}

impl Package {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), files: Vec::new() }
    }

    /// A package with a good skill in each of these folders, called like it.
    fn of(folders: &[&str]) -> Self {
        folders.iter().fold(Self::new(), |package, it| package.skill(it))
    }

    fn skill(self, folder: &str) -> Self {
        let name = folder.rsplit('/').next().unwrap();
        self.named(folder, if name.is_empty() { "whole" } else { name })
    }

    fn named(self, folder: &str, name: &str) -> Self {
        self.text(folder, &format!("---\nname: {name}\ndescription: Does {name}.\n---\n\nDo it.\n"))
    }

    /// Adds a `SKILL.md` of this text.
    fn text(self, folder: &str, text: &str) -> Self {
        let path = if folder.is_empty() { String::new() } else { format!("{folder}/") };
        self.file(&format!("{path}SKILL.md"), text)
    }

    fn file(mut self, path: &str, text: impl AsRef<[u8]>) -> Self {
        self.write(path, text.as_ref());
        let (digest, size) = FileDigest::of_file(&self.folder.path().join(path)).unwrap();
        self.files.retain(|it| it.path != path);
        self.files.push(TreeFile::new(path, digest, size, false));
        self.files.sort();
        self
    }

    fn write(&self, path: &str, text: &[u8]) {
        let path = self.folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn discover(&self) -> DiscoveredPackage {
        self.below("")
    }

    fn below(&self, below: &str) -> DiscoveredPackage {
        discover(self.path(), &self.files, below)
    }

    /// The folders of the skills that others find too.
    fn seen(&self) -> Vec<String> {
        let skills = self.discover().skills.into_iter();
        skills.filter(|it| !it.overlooked && !it.internal).map(|it| it.path).collect()
    }
}

fn paths(found: &DiscoveredPackage) -> Vec<&str> {
    found.skills.iter().map(|it| &*it.path).collect()
}

fn skill<'d>(found: &'d DiscoveredPackage, path: &str) -> &'d PackagedSkill {
    found.skills.iter().find(|it| it.path == path).unwrap_or_else(|| panic!("{path}: {found:#?}"))
}

/// The codes and paths of findings.
fn codes(found: &DiscoveredPackage) -> Vec<(&str, &str)> {
    found.findings.iter().map(|it| (it.rule.code, it.path.to_str().unwrap())).collect()
}

/// Each case was compared with `npx skills@1.7.4 add FOLDER --list`.
mod skills_are_found_where_others_find_them {
    use super::*;

    #[test]
    fn folders_of_skills_are_searched_three_deep_and_the_top_once() {
        let package = Package::of(&[
            "top",
            "deep/er",
            "skills/a",
            "skills/x/b",
            "skills/x/y/c",
            "skills/x/y/z/d",
            "skills/.curated/e",
            "skills/.hidden/q/f",
        ]);
        let seen = [
            "skills/.curated/e",
            "skills/.hidden/q/f",
            "skills/a",
            "skills/x/b",
            "skills/x/y/c",
            "top",
        ];
        assert_eq!(package.seen(), seen);
        assert_eq!(package.discover().skills.len(), 8);
    }

    #[test]
    fn the_folders_of_agents_are_searched() {
        let package = Package::of(&[
            ".claude/skills/a",
            ".github/skills/g/b",
            ".posit/assistant/skills/c",
            ".unknown/skills/d",
        ]);
        let seen = [".claude/skills/a", ".github/skills/g/b", ".posit/assistant/skills/c"];
        assert_eq!(package.seen(), seen);
    }

    #[test]
    fn a_skill_at_the_top_is_the_whole_package() {
        let package = Package::of(&["", "skills/a"]).file("README.md", "x");
        assert_eq!(package.seen(), [""]);
        let found = package.discover();
        let whole = skill(&found, "");
        let files: Vec<&str> = whole.files.iter().map(|it| &*it.path).collect();
        assert_eq!(files, ["README.md", "SKILL.md", "skills/a/SKILL.md"]);
        let inner = skill(&found, "skills/a");
        assert_eq!(inner.inside.as_deref(), Some(""));
        assert_eq!(inner.files.len(), 1);
        assert_eq!(inner.files[0].path, "SKILL.md");
    }

    #[test]
    fn if_nothing_is_found_everything_is_searched_five_deep() {
        let package = Package::of(&["a/b/c", "1/2/3/4/five", "1/2/3/4/5/six", "a/dist/x"]);
        assert_eq!(package.seen(), ["1/2/3/4/five", "a/b/c"]);
    }

    #[test]
    fn the_plugins_of_a_marketplace_are_searched() {
        let marketplace = r#"{"name": "m", "plugins": [
            {"name": "docs", "source": "./", "strict": false, "skills": ["./extra/pdf", "./extra/doc"]},
            {"name": "tools", "source": "./plugins/tools"},
            {"name": "bare", "source": "plugins/bare"}
        ]}"#;
        let package = Package::of(&[
            "extra/pdf",
            "extra/doc",
            "extra/unlisted",
            "plugins/tools/skills/t1",
            "plugins/tools/skills/deep/t2",
            "plugins/bare/skills/b1",
        ])
        .file(".claude-plugin/marketplace.json", marketplace);
        let seen = ["extra/doc", "extra/pdf", "extra/unlisted", "plugins/tools/skills/t1"];
        assert_eq!(package.seen(), seen);
    }

    #[test]
    fn of_two_skills_of_a_name_the_first_one_is_taken() {
        let package = Package::new()
            .named("pdf", "pdf")
            .named("skills/a/pdf", "pdf")
            .named(".claude/skills/pdf", "pdf")
            .skill("skills/other");
        assert_eq!(package.seen(), ["pdf", "skills/other"]);
        let found = package.discover();
        assert_eq!(found.skills.len(), 4);
        let taken = [
            ("name-taken", ".claude/skills/pdf/SKILL.md"),
            ("name-taken", "skills/a/pdf/SKILL.md"),
        ];
        assert_eq!(codes(&found), taken);
        let finding = &found.findings[0];
        assert_eq!(finding.message, "`pdf` is also the name of the skill in `pdf`");
        assert_ne!(skill(&found, "pdf").digest, skill(&found, "skills/other").digest);
    }

    #[test]
    fn what_was_installed_from_elsewhere_is_not_offered() {
        let lock = r#"{"version": 1, "skills": {"Foo Bar": {}, "other": {}}}"#;
        let package = Package::new()
            .named(".claude/skills/x", "foo_bar")
            .skill(".agents/skills/other")
            .skill(".agents/skills/own")
            .named("skills/y", "foo-bar")
            .file("skills-lock.json", lock);
        assert_eq!(package.seen(), [".agents/skills/own", "skills/y"]);
        let found = package.discover();
        let reason = skill(&found, ".agents/skills/other").overlooked_because.unwrap();
        assert_eq!(reason, "skills-lock.json says that it was installed from elsewhere");
    }

    #[test]
    fn an_internal_skill_says_so() {
        let package = Package::of(&["skills/a"])
            .text("skills/b", "---\nname: b\ndescription: B.\nmetadata:\n  internal: true\n---\n")
            .text(
                "skills/c",
                "---\nname: c\ndescription: C.\nmetadata:\n  internal: \"true\"\n---\n",
            );
        let found = package.discover();
        let internal = |path| skill(&found, path).internal;
        assert_eq!(["skills/a", "skills/b", "skills/c"].map(internal), [false, true, false]);
        assert!(!skill(&found, "skills/b").overlooked);
    }
}

mod what_others_overlook_is_found {
    use super::*;

    #[test]
    fn a_skill_says_why_others_overlook_it() {
        let package =
            Package::of(&["skills/a", "skills/a/examples/inner", "far/away/b", "dist/x/c"])
                .text("skills/repaired", "---\nname: repaired\ndescription: Use when: asked\n---\n")
                .text("skills/nameless", "---\ndescription: D.\n---\n")
                .file("skills/lower/skill.md", "---\nname: lower\ndescription: D.\n---\n");
        let found = package.discover();
        let repairs = "its frontmatter cannot be read without repairs";
        let far = "it is in a folder that they do not search";
        for (path, because) in [
            ("skills/a", None),
            ("skills/a/examples/inner", Some("it is inside another skill")),
            ("far/away/b", Some(far)),
            ("dist/x/c", Some(far)),
            ("skills/repaired", Some(repairs)),
            ("skills/nameless", Some(repairs)),
            ("skills/lower", Some("its file is not called SKILL.md")),
        ] {
            let skill = skill(&found, path);
            assert_eq!(skill.overlooked_because, because, "{path}");
            assert_eq!(skill.overlooked, because.is_some(), "{path}");
        }
        assert_eq!(skill(&found, "skills/nameless").name, "nameless");
        let expected = [
            ("nested-skill", "skills/a/examples/inner/SKILL.md"),
            ("file-name", "skills/lower/skill.md"),
            ("name-missing", "skills/nameless/SKILL.md"),
            ("yaml-repaired", "skills/repaired/SKILL.md"),
        ];
        let mut codes = codes(&found);
        codes.sort_by_key(|it| it.1);
        assert_eq!(codes, expected);
    }

    #[test]
    fn a_skill_that_cannot_be_used_is_a_finding_with_its_line() {
        let package = Package::of(&["skills/good"])
            .text("skills/silent", "---\nname: silent\nlicense: MIT\n---\n")
            .text("skills/plain", "# Nothing\n")
            .text("skills/path", "---\nname: a/b\ndescription: D.\n---\n")
            .text("skills/alias", "---\nname: alias\ndescription: &a D.\nlicense: *a\n---\n")
            .file("skills/bytes/SKILL.md", b"---\nname: \xFF\n---\n");
        let found = package.discover();
        assert_eq!(paths(&found), ["skills/good"]);
        for (folder, code, line) in [
            ("silent", "description-missing", 1),
            ("plain", "frontmatter-missing", 1),
            ("path", "name-path", 2),
            ("alias", "yaml-unsafe", 4),
            ("bytes", "encoding", 2),
        ] {
            let path = format!("skills/{folder}/SKILL.md");
            let finding = found.findings.iter().find(|it| it.path == Path::new(&path));
            let finding = finding.unwrap_or_else(|| panic!("{folder}: {:?}", codes(&found)));
            assert_eq!((finding.rule.code, finding.line), (code, Some(line)));
        }
    }

    #[test]
    fn skills_of_dependencies_are_counted() {
        let package =
            Package::of(&["skills/a", "node_modules/x/skills/b", "node_modules/y", ".git/z"]);
        let found = package.discover();
        assert_eq!(paths(&found), ["skills/a"]);
        assert_eq!(found.notes[0].message, "2 skills in `node_modules` are not listed");
        assert_eq!(paths(&package.below("node_modules/x")), ["node_modules/x/skills/b"]);
    }

    #[test]
    fn a_long_file_is_read_to_the_end_of_its_frontmatter() {
        let text = format!("---\nname: long\ndescription: D.\n---\n{}", "ä".repeat(200_000));
        let found = Package::new().text("long", &text).discover();
        assert_eq!(paths(&found), ["long"]);
        assert_eq!(codes(&found), [], "nothing is wrong with what was not read");
        let text = format!("---\nname: long\ndescription: {}\n---\n", "x".repeat(200_000));
        let found = Package::new().text("long", &text).discover();
        assert_eq!(found.skills, []);
        assert_eq!(codes(&found).len(), 1);
    }
}

mod a_search_can_begin_below_the_package {
    use super::*;

    #[test]
    fn a_folder_is_named_by_its_path() {
        let package = Package::of(&["skills/a", "skills/b", "other/c"]);
        assert_eq!(paths(&package.below("skills")), ["skills/a", "skills/b"]);
        assert_eq!(paths(&package.below("./skills/a/")), ["skills/a"]);
        assert_eq!(paths(&package.below("skills/a/SKILL.md")), ["skills/a"]);
        let found = package.below("skills/a");
        assert!(!found.skills[0].overlooked);
        assert_eq!(found.skills[0].files[0].path, "SKILL.md");
    }

    #[test]
    fn a_folder_that_is_not_there_is_said_with_the_nearest() {
        let package = Package::of(&["skills/pdf"]);
        let found = package.below("skils/pdf");
        assert_eq!(found.skills, []);
        assert_eq!(found.notes[0].message, "there is no folder `skils/pdf`");
        assert_eq!(found.notes[0].hint, "did you mean `skills/pdf`?");
        assert_eq!(package.below("../x").notes[0].message, "its path contains `..`");
        assert_eq!(package.below("skill").skills, []);
    }
}

mod plugins_say_what_they_bring {
    use super::*;

    #[test]
    fn a_skill_has_the_name_of_its_plugin() {
        let marketplace = r#"{"name": "m", "metadata": {"pluginRoot": "./plugins"}, "plugins": [
            {"name": "docs", "source": "../", "strict": false, "skills": ["./extra/pdf"]},
            {"name": "tools", "source": "tools"}
        ]}"#;
        let package = Package::of(&[
            "extra/pdf",
            "extra/doc",
            "plugins/tools/skills/a",
            "plugins/tools/more/b",
            "plugins/own/skills/c",
        ])
        .file(".claude-plugin/marketplace.json", marketplace)
        .file(
            "plugins/tools/.claude-plugin/plugin.json",
            r#"{"name": "tools-manifest", "skills": "./more"}"#,
        )
        .file("plugins/own/.codex-plugin/plugin.json", r#"{"name": "own"}"#);
        let found = package.discover();
        let plugin = |path| skill(&found, path).plugin.as_deref();
        assert_eq!(plugin("extra/pdf"), Some("docs"));
        assert_eq!(plugin("extra/doc"), None);
        assert_eq!(plugin("plugins/tools/skills/a"), Some("tools"));
        assert_eq!(plugin("plugins/tools/more/b"), Some("tools"));
        assert_eq!(plugin("plugins/own/skills/c"), Some("own"));
        assert_eq!(found.notes, []);
    }

    #[test]
    fn plugins_elsewhere_are_named_with_their_commit() {
        let sha = "0123456789abcdef0123456789abcdef01234567";
        let marketplace = format!(
            r#"{{"plugins": [
            {{"name": "a", "source": {{"source": "github", "repo": "o/r", "ref": "v1", "sha": "{sha}"}}}},
            {{"name": "b", "source": {{"source": "url", "url": "https://git.example.com/o/r", "ref": "main"}}}},
            {{"name": "c", "source": {{"source": "git-subdir", "url": "o/mono", "path": "plugins/c"}}}},
            {{"name": "d", "source": {{"source": "npm", "package": "@acme/d", "version": "^1.0.0"}}}},
            {{"name": "e", "source": {{"source": "local", "path": "./e"}}}}
        ]}}"#
        );
        let package =
            Package::of(&["e/skills/x"]).file(".claude-plugin/marketplace.json", marketplace);
        let found = package.discover();
        let elsewhere: Vec<(&str, String)> =
            found.elsewhere.iter().map(|it| (&*it.0, it.1.to_string())).collect();
        assert_eq!(
            elsewhere,
            [
                ("a", format!("o/r#{sha}")),
                ("b", "git+https://git.example.com/o/r#main".to_owned()),
                ("c", "o/mono/plugins/c".to_owned()),
                ("d", "npm:@acme/d@^1.0.0".to_owned()),
            ]
        );
        assert_eq!(skill(&found, "e/skills/x").plugin.as_deref(), Some("e"));
    }

    #[test]
    fn a_source_that_leads_to_this_machine_or_out_of_the_package_is_refused() {
        let sources = [
            r#"{"source": "url", "url": "file:///home/me/r.git"}"#,
            r#"{"source": "url", "url": "http://127.0.0.1/r.git"}"#,
            r#"{"source": "url", "url": "ext::sh -c id"}"#,
            r#"{"source": "url", "url": "https://user:pass@git.example.com/r.git"}"#,
            r#"{"source": "github", "repo": "../../etc"}"#,
            r#"{"source": "github", "repo": "o/r", "ref": "--upload-pack=id"}"#,
            r#"{"source": "git-subdir", "url": "o/r", "path": "../x"}"#,
            r#"{"source": "npm", "package": "x", "registry": "https://npm.example.com"}"#,
            r#"{"source": "unknown"}"#,
            r#""../outside""#,
            r#""./missing""#,
            "5",
        ];
        for source in sources {
            let package = Package::of(&["skills/a"]).file(
                ".claude-plugin/marketplace.json",
                format!(r#"{{"plugins": [{{"name": "p", "source": {source}}}]}}"#),
            );
            let found = package.discover();
            assert!(found.elsewhere.is_empty(), "{source}: {:?}", found.elsewhere);
            assert_eq!(found.notes.len(), 1, "{source}: {:?}", found.notes);
            assert!(found.notes[0].message.contains("`p`"), "{:?}", found.notes);
            assert_eq!(paths(&found), ["skills/a"]);
        }
    }

    #[test]
    fn of_several_marketplaces_the_first_one_that_names_a_plugin_decides() {
        let plugin = |repository: &str| {
            format!(
                r#"{{"plugins": [{{"name": "p", "source": {{"source": "github", "repo": "{repository}"}}}}]}}"#
            )
        };
        let package = Package::of(&["skills/a"])
            .file(".claude-plugin/marketplace.json", plugin("o/claude"))
            .file(".agents/plugins/marketplace.json", plugin("o/agents"))
            .file(".cursor-plugin/marketplace.json", plugin("o/cursor"));
        let found = package.discover();
        assert_eq!(found.elsewhere.len(), 1);
        assert_eq!(found.elsewhere[0].1.to_string(), "o/agents");
    }

    #[test]
    fn a_manifest_of_agent_plugins_has_no_other_fields() {
        let schema = "https://agent-plugins.org/schemas/1.0.0/plugin.schema.json";
        let discovered = |fields: &str| {
            let manifest = format!(r#"{{"$schema": "{schema}", {fields}}}"#);
            Package::of(&["skills/a"]).file("plugin.json", manifest).discover()
        };
        let found = discovered(r#""name": "acme.tools", "version": "1.0.0""#);
        assert_eq!(skill(&found, "skills/a").plugin.as_deref(), Some("acme.tools"));
        assert_eq!(found.notes, []);
        let found = discovered(r#""name": "acme", "licence": "MIT""#);
        assert_eq!(skill(&found, "skills/a").plugin.as_deref(), Some("acme"));
        assert_eq!(
            found.notes[0].message,
            "`licence` is not a field of Agent Plugins; it is ignored"
        );
        assert_eq!(found.notes[0].hint, "did you mean `license`?");
        for fields in [
            r#""name": "Bad Name""#,
            r#""name": "a..b""#,
            r#""version": 1, "name": "a""#,
            r#""x": 1"#,
        ] {
            let found = discovered(fields);
            assert_eq!(skill(&found, "skills/a").plugin, None, "{fields}");
            assert!(found.notes.iter().any(|it| it.message.ends_with("the plugin is not used")));
        }
        // Other programs have a file of this name too.
        let found = Package::of(&["skills/a"]).file("plugin.json", r#"{"id": 5}"#).discover();
        assert_eq!(found.notes, []);
    }

    #[test]
    fn a_broken_manifest_is_noted_with_its_line() {
        let path = ".claude-plugin/marketplace.json";
        let found = Package::of(&["skills/a"]).file(path, "{\n  \"plugins\": [\n  }\n").discover();
        assert_eq!(paths(&found), ["skills/a"]);
        assert_eq!((&*found.notes[0].path, found.notes[0].line), (path, Some(3)));
        let found = Package::of(&["skills/a"]).file(path, vec![b' '; (1 << 20) + 1]).discover();
        assert_eq!(found.notes[0].message, "it has more than 1 MiB");
        let listed =
            r#"{"plugins": [{"name": "p", "skills": ["./skills/a", "./skills/b", "../c", 5]}]}"#;
        let found = Package::of(&["skills/a"]).file(path, listed).discover();
        assert_eq!(found.notes.len(), 3, "{:?}", found.notes);
    }
}

mod a_package_is_not_trusted {
    use proptest::{
        prelude::*,
        test_runner::{Config, RngSeed, TestRunner},
    };

    use super::*;

    #[test]
    fn only_listed_files_are_opened() {
        let package = Package::of(&["skills/a"]);
        package.write("skills/unlisted/SKILL.md", b"---\nname: unlisted\ndescription: D.\n---\n");
        package.write(".claude-plugin/marketplace.json", b"not JSON");
        let found = package.discover();
        assert_eq!(paths(&found), ["skills/a"]);
        assert_eq!(found.notes, []);
        // A listed file that is gone is a finding.
        let package = Package::of(&["skills/a", "skills/b"]);
        fs::remove_file(package.path().join("skills/b/SKILL.md")).unwrap();
        let found = package.discover();
        assert_eq!(paths(&found), ["skills/a"]);
        assert_eq!(codes(&found), [("file-unreadable", "skills/b/SKILL.md")]);
    }

    #[cfg(unix)]
    #[test]
    fn no_link_is_followed() {
        use std::os::unix::fs::symlink;

        let outside = Package::of(&["secret"]);
        let package = Package::of(&["skills/a", "skills/b", "c/d"]);
        fs::remove_file(package.path().join("skills/b/SKILL.md")).unwrap();
        symlink(outside.path().join("secret/SKILL.md"), package.path().join("skills/b/SKILL.md"))
            .unwrap();
        fs::remove_dir_all(package.path().join("c/d")).unwrap();
        symlink(outside.path().join("secret"), package.path().join("c/d")).unwrap();
        let found = package.discover();
        assert_eq!(paths(&found), ["skills/a"]);
        let unread =
            [("file-unreadable", "c/d/SKILL.md"), ("file-unreadable", "skills/b/SKILL.md")];
        assert_eq!(codes(&found), unread);
    }

    #[test]
    fn odd_paths_are_not_searched() {
        let digest = FileDigest::of(b"");
        let deep = format!("{}SKILL.md", "d/".repeat(100));
        let mut files: Vec<TreeFile> = [
            "../x/SKILL.md",
            "/etc/SKILL.md",
            "a//SKILL.md",
            r"a\SKILL.md",
            "./SKILL.md",
            "",
            &deep,
        ]
        .map(|it| TreeFile::new(it, digest, 0, false))
        .into();
        files.sort();
        let folder = tempfile::tempdir().unwrap();
        let found = discover(folder.path(), &files, "");
        assert_eq!(found.skills, []);
        assert_eq!(found.notes[0].message, "7 files have paths that cannot be used");
        let found = discover(&folder.path().join("missing"), &files, "");
        assert!(found.notes[0].message.starts_with("the folder of the package cannot be read"));
    }

    #[test]
    fn the_same_package_gives_the_same_result() {
        let package = (0..300).fold(Package::new(), |package, number| {
            package
                .named(&format!("f{}/skills/s{number}", number % 7), &format!("s{}", number % 250))
        });
        let (one, two) = (package.discover(), package.discover());
        assert_eq!(one.skills, two.skills);
        assert_eq!(one.findings, two.findings);
        assert_eq!(one.skills.len(), 300);
        assert!(one.skills.is_sorted_by(|a, b| a.path < b.path));
    }

    /// A value of JSON with the keys and texts of manifests.
    fn json() -> impl Strategy<Value = serde_json::Value> {
        const WORDS: &[&str] = &[
            "plugins",
            "name",
            "source",
            "skills",
            "metadata",
            "pluginRoot",
            "strict",
            "repo",
            "url",
            "path",
            "ref",
            "sha",
            "github",
            "git-subdir",
            "npm",
            "package",
            "local",
            "./",
            "./skills/a",
            "../..",
            "a",
            "skills",
            "$schema",
            "https://agent-plugins.org/schemas/1.0.0/plugin.schema.json",
            "version",
            "o/r",
        ];
        let word = || proptest::sample::select(WORDS).prop_map(str::to_owned);
        let leaf = prop_oneof![
            Just(serde_json::Value::Null),
            any::<bool>().prop_map(serde_json::Value::from),
            any::<i32>().prop_map(serde_json::Value::from),
            word().prop_map(serde_json::Value::from),
        ];
        leaf.prop_recursive(5, 40, 5, move |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(serde_json::Value::from),
                proptest::collection::vec((word(), inner), 0..5)
                    .prop_map(|it| it.into_iter().collect()),
            ]
        })
    }

    #[test]
    fn no_manifest_breaks_it() {
        let config = Config {
            cases: 100,
            failure_persistence: None,
            rng_seed: RngSeed::Fixed(20),
            ..Config::default()
        };
        let bytes = proptest::collection::vec(any::<u8>(), 0..60);
        let run = TestRunner::new(config).run(&(json(), bytes), |(manifest, bytes)| {
            let text =
                format!(r#"{{"plugins": [{manifest}, {{"name": "p", "source": {manifest}}}]}}"#);
            let package = Package::of(&["skills/a", "a/skills/b"])
                .file(".claude-plugin/marketplace.json", text)
                .file(".claude-plugin/plugin.json", manifest.to_string())
                .file("plugin.json", manifest.to_string())
                .file("skills-lock.json", manifest.to_string())
                .file(".agents/plugins/marketplace.json", &bytes)
                .file("skills/c/SKILL.md", &bytes);
            let found = package.discover();
            prop_assert!(found.skills.iter().any(|it| it.path == "skills/a"));
            prop_assert!(
                found.notes.iter().all(|it| !it.message.is_empty() && !it.hint.is_empty())
            );
            Ok(())
        });
        run.unwrap_or_else(|error| panic!("{error}"));
    }
}
