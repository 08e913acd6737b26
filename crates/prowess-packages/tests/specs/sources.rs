//! The scenarios of `specs/sources.md`.

use proptest::test_runner::{Config as ProptestConfig, TestRunner};
use prowess_packages::{GitSource, KnownHost, SkillSource, SourceKind, SourceSyntaxError};

/// Cases are the same in each run, so that none fails for somebody else only.
fn cases() -> ProptestConfig {
    ProptestConfig {
        cases: 4000,
        failure_persistence: None,
        rng_seed: proptest::test_runner::RngSeed::Fixed(20),
        ..ProptestConfig::default()
    }
}

fn source(text: &str) -> SkillSource {
    text.parse().unwrap_or_else(|error: SourceSyntaxError| panic!("{error}; {}", error.hint()))
}

fn refused(text: &str) -> SourceSyntaxError {
    text.parse::<SkillSource>().expect_err(text)
}

fn git(text: &str) -> GitSource {
    source(text).git().unwrap_or_else(|| panic!("`{text}` is not a repository")).clone()
}

/// Returns URL, branch, folder and skill of a repository, and the kind and place of anything else.
fn parts(text: &str) -> String {
    let source = source(text);
    let place = match &source.kind {
        SourceKind::Git(git) => {
            let part = |it: &Option<String>| it.clone().unwrap_or_else(|| "-".to_owned());
            format!("git {} {} {}", git.url, part(&git.reference), part(&git.path))
        }
        SourceKind::Folder(path) => format!("folder {}", path.display()),
        SourceKind::File(path) => format!("file {}", path.display()),
        SourceKind::Download(url) => format!("download {url}"),
        SourceKind::Site(url) => format!("site {url}"),
        SourceKind::ClawHub { registry, owner, slug, version } => format!(
            "clawhub {} {} {slug} {}",
            registry.as_ref().map_or("-", |it| it.as_str()),
            owner.as_deref().unwrap_or("-"),
            version.as_deref().unwrap_or("-")
        ),
        SourceKind::Npm { name, range } => {
            format!("npm {name} {}", range.as_deref().unwrap_or("-"))
        }
        other => format!("{other:?}"),
    };
    match source.skills.is_empty() {
        true => place,
        false => format!("{place} @{}", source.skills.join(",")),
    }
}

fn assert_parts(rows: &[(&str, &str)]) {
    for (text, expected) in rows {
        assert_eq!(parts(text), *expected, "{text}");
    }
}

mod a_source_is_written_as_in_other_package_managers {
    use super::*;

    #[test]
    fn an_owner_and_a_repository_are_on_github() {
        let source = source("anthropics/skills@pdf");
        assert_eq!(source.git().unwrap().url, "https://github.com/anthropics/skills");
        assert_eq!(source.skills, ["pdf"]);
        assert_eq!(source.name(), "anthropics/skills");
    }

    /// Each row was compared with what `skills` 1.7.4 makes of the text, but for a `.git` at the end of a
    /// URL on GitHub and GitLab.
    #[test]
    fn every_spelling_of_npx_skills_means_the_same() {
        let rows = [
            ("anthropics/skills", "git https://github.com/anthropics/skills - -"),
            ("anthropics/skills/", "git https://github.com/anthropics/skills - -"),
            (
                "anthropics/skills/skills/pdf",
                "git https://github.com/anthropics/skills - skills/pdf",
            ),
            (
                "anthropics/skills/skills/pdf/",
                "git https://github.com/anthropics/skills - skills/pdf",
            ),
            ("anthropics/skills@pdf", "git https://github.com/anthropics/skills - - @pdf"),
            (
                "anthropics/skills@pdf reader",
                "git https://github.com/anthropics/skills - - @pdf reader",
            ),
            ("anthropics/skills#main", "git https://github.com/anthropics/skills main -"),
            ("anthropics/skills#v1.0.0", "git https://github.com/anthropics/skills v1.0.0 -"),
            (
                "anthropics/skills#feature/new",
                "git https://github.com/anthropics/skills feature/new -",
            ),
            (
                "anthropics/skills#feature%2Fnew",
                "git https://github.com/anthropics/skills feature/new -",
            ),
            (
                "anthropics/skills#0123456789abcdef0123456789abcdef01234567",
                "git https://github.com/anthropics/skills 0123456789abcdef0123456789abcdef01234567 -",
            ),
            ("anthropics/skills#main@pdf", "git https://github.com/anthropics/skills main - @pdf"),
            ("anthropics/skills#@pdf", "git https://github.com/anthropics/skills - - @pdf"),
            ("anthropics/skills@pdf#main", "git https://github.com/anthropics/skills main - @pdf"),
            (
                "anthropics/skills/skills/pdf#main",
                "git https://github.com/anthropics/skills main skills/pdf",
            ),
            (
                "anthropics/skills/skills#main@pdf",
                "git https://github.com/anthropics/skills main skills @pdf",
            ),
            (
                "anthropics/skills/skills#@pdf",
                "git https://github.com/anthropics/skills - skills @pdf",
            ),
            (
                "anthropics/skills#main@pdf%20reader",
                "git https://github.com/anthropics/skills main - @pdf reader",
            ),
            ("github:anthropics/skills", "git https://github.com/anthropics/skills - -"),
            ("github:anthropics/skills#main", "git https://github.com/anthropics/skills main -"),
            (
                "github:anthropics/skills#main@pdf",
                "git https://github.com/anthropics/skills main - @pdf",
            ),
            ("github:anthropics/skills@pdf", "git https://github.com/anthropics/skills - - @pdf"),
            (
                "github:anthropics/skills/skills/pdf",
                "git https://github.com/anthropics/skills - skills/pdf",
            ),
            (
                "https://github.com/anthropics/skills",
                "git https://github.com/anthropics/skills - -",
            ),
            (
                "https://github.com/anthropics/skills/",
                "git https://github.com/anthropics/skills - -",
            ),
            (
                "https://github.com/anthropics/skills.git",
                "git https://github.com/anthropics/skills - -",
            ),
            (
                "https://github.com/anthropics/skills#main",
                "git https://github.com/anthropics/skills main -",
            ),
            (
                "https://github.com/anthropics/skills.git#main",
                "git https://github.com/anthropics/skills main -",
            ),
            (
                "https://github.com/anthropics/skills#feature/new",
                "git https://github.com/anthropics/skills feature/new -",
            ),
            (
                "https://github.com/anthropics/skills/tree/main",
                "git https://github.com/anthropics/skills main -",
            ),
            (
                "https://github.com/anthropics/skills/tree/main/skills/pdf",
                "git https://github.com/anthropics/skills main skills/pdf",
            ),
            (
                "https://github.com/anthropics/skills/tree/main/skills/pdf/",
                "git https://github.com/anthropics/skills main skills/pdf",
            ),
            (
                "https://github.com/anthropics/skills/tree/v1.0/skills",
                "git https://github.com/anthropics/skills v1.0 skills",
            ),
            (
                "https://github.com/anthropics/skills/issues/4",
                "git https://github.com/anthropics/skills - -",
            ),
            ("http://github.com/anthropics/skills", "git https://github.com/anthropics/skills - -"),
            (
                "https://www.github.com/anthropics/skills",
                "git https://github.com/anthropics/skills - -",
            ),
            ("www.github.com/anthropics/skills", "git https://github.com/anthropics/skills - -"),
            ("github.com/anthropics/skills", "git https://github.com/anthropics/skills - -"),
            (
                "github.com/anthropics/skills/tree/main/skills/pdf",
                "git https://github.com/anthropics/skills main skills/pdf",
            ),
            (
                "https://raw.githubusercontent.com/a/b/main/pdf/SKILL.md",
                "download https://raw.githubusercontent.com/a/b/main/pdf/SKILL.md",
            ),
            (
                "https://codeload.github.com/a/b/zip/refs/heads/main",
                "download https://codeload.github.com/a/b/zip/refs/heads/main",
            ),
            (
                "https://objects.githubusercontent.com/asset/1/a",
                "download https://objects.githubusercontent.com/asset/1/a",
            ),
            (
                "https://github.com/a/b/archive/refs/heads/main.zip",
                "download https://github.com/a/b/archive/refs/heads/main.zip",
            ),
            (
                "https://github.com/a/b/raw/main/pdf/SKILL.md",
                "download https://github.com/a/b/raw/main/pdf/SKILL.md",
            ),
            (
                "https://github.com/a/b/releases/download/v1/pdf.zip",
                "download https://github.com/a/b/releases/download/v1/pdf.zip",
            ),
            (
                "https://github.com/a/b/releases/latest/download/pdf.zip",
                "download https://github.com/a/b/releases/latest/download/pdf.zip",
            ),
            ("gitlab:group/repo", "git https://gitlab.com/group/repo - -"),
            ("gitlab:group/sub/repo", "git https://gitlab.com/group/sub/repo - -"),
            ("gitlab:group/repo#main", "git https://gitlab.com/group/repo main -"),
            ("https://gitlab.com/group/repo", "git https://gitlab.com/group/repo - -"),
            ("https://gitlab.com/group/repo/", "git https://gitlab.com/group/repo - -"),
            ("https://gitlab.com/group/repo.git", "git https://gitlab.com/group/repo - -"),
            ("https://gitlab.com/group/sub/repo", "git https://gitlab.com/group/sub/repo - -"),
            ("https://gitlab.com/group/repo#main", "git https://gitlab.com/group/repo main -"),
            (
                "https://gitlab.com/group/repo/-/tree/main",
                "git https://gitlab.com/group/repo main -",
            ),
            (
                "https://gitlab.com/group/repo/-/tree/main/skills/pdf",
                "git https://gitlab.com/group/repo main skills/pdf",
            ),
            (
                "https://gitlab.com/group/sub/repo/-/tree/v2/skills",
                "git https://gitlab.com/group/sub/repo v2 skills",
            ),
            ("gitlab.com/group/repo", "git https://gitlab.com/group/repo - -"),
            (
                "https://gitlab.com/g/r/-/archive/main/r-main.tar.gz",
                "download https://gitlab.com/g/r/-/archive/main/r-main.tar.gz",
            ),
            (
                "https://gitlab.com/g/r/-/raw/main/SKILL.md",
                "download https://gitlab.com/g/r/-/raw/main/SKILL.md",
            ),
            (
                "https://gitlab.example.com/group/repo/-/tree/main",
                "git https://gitlab.example.com/group/repo.git main -",
            ),
            (
                "https://gitlab.example.com/group/sub/repo/-/tree/main/skills/pdf",
                "git https://gitlab.example.com/group/sub/repo.git main skills/pdf",
            ),
            (
                "https://gitlab.example.com:8443/group/repo/-/tree/main/skills",
                "git https://gitlab.example.com:8443/group/repo.git main skills",
            ),
            (
                "https://gitlab.example.com/group/repo.git/-/tree/main/skills",
                "git https://gitlab.example.com/group/repo.git main skills",
            ),
            (
                "https://gitlab.example.com/group/repo.git",
                "git https://gitlab.example.com/group/repo.git - -",
            ),
            (
                "https://gitlab.example.com/group/repo.git#main",
                "git https://gitlab.example.com/group/repo.git main -",
            ),
            (
                "https://dev.azure.com/org/project/_git/repo",
                "git https://dev.azure.com/org/project/_git/repo - -",
            ),
            (
                "https://org@dev.azure.com/org/project/_git/repo",
                "git https://dev.azure.com/org/project/_git/repo - -",
            ),
            (
                "https://dev.azure.com/org/project/_git/repo?path=/skills/pdf",
                "git https://dev.azure.com/org/project/_git/repo - skills/pdf",
            ),
            (
                "https://dev.azure.com/org/project/_git/repo?path=/skills/pdf&version=GBmain",
                "git https://dev.azure.com/org/project/_git/repo main skills/pdf",
            ),
            (
                "https://dev.azure.com/org/project/_git/repo?version=GTv1.0",
                "git https://dev.azure.com/org/project/_git/repo v1.0 -",
            ),
            (
                "https://dev.azure.com/org/project/_git/repo?path=%2Fskills%2Fpdf&version=GBfeature%2Fnew",
                "git https://dev.azure.com/org/project/_git/repo feature/new skills/pdf",
            ),
            (
                "https://dev.azure.com/org/my%20project/_git/repo",
                "git https://dev.azure.com/org/my%20project/_git/repo - -",
            ),
            (
                "https://dev.azure.com/org/project/_git/repo#main",
                "git https://dev.azure.com/org/project/_git/repo main -",
            ),
            (
                "https://dev.azure.com/org/project/_git/repo#main@pdf",
                "git https://dev.azure.com/org/project/_git/repo main - @pdf",
            ),
            (
                "https://org.visualstudio.com/project/_git/repo",
                "git https://org.visualstudio.com/project/_git/repo - -",
            ),
            (
                "https://tfs.example.com/tfs/all/project/_git/repo",
                "git https://tfs.example.com/tfs/all/project/_git/repo - -",
            ),
            (
                "git@github.com:anthropics/skills.git",
                "git git@github.com:anthropics/skills.git - -",
            ),
            ("git@github.com:anthropics/skills", "git git@github.com:anthropics/skills - -"),
            (
                "git@github.com:anthropics/skills.git#main",
                "git git@github.com:anthropics/skills.git main -",
            ),
            ("git@gitlab.com:group/sub/repo.git", "git git@gitlab.com:group/sub/repo.git - -"),
            (
                "git@ssh.dev.azure.com:v3/org/project/repo",
                "git git@ssh.dev.azure.com:v3/org/project/repo - -",
            ),
            ("git@git.example.com:team/skills.git", "git git@git.example.com:team/skills.git - -"),
            (
                "deploy@git.example.com:team/skills.git",
                "git deploy@git.example.com:team/skills.git - -",
            ),
            (
                "ssh://git@git.example.com:2222/team/skills.git",
                "git ssh://git@git.example.com:2222/team/skills.git - -",
            ),
            (
                "ssh://git@git.example.com:2222/team/skills.git#main",
                "git ssh://git@git.example.com:2222/team/skills.git main -",
            ),
            ("file:///srv/git/skills.git", "git file:///srv/git/skills.git - -"),
            (
                "https://git.example.com/team/skills.git",
                "git https://git.example.com/team/skills.git - -",
            ),
            (
                "https://git.example.com/team/skills.git#v1",
                "git https://git.example.com/team/skills.git v1 -",
            ),
            (
                "https://git.example.com:8443/team/skills.git",
                "git https://git.example.com:8443/team/skills.git - -",
            ),
            (
                "http://127.0.0.1:8080/team/skills.git",
                "git http://127.0.0.1:8080/team/skills.git - -",
            ),
            ("https://example.com", "site https://example.com/"),
            ("https://example.com/docs", "site https://example.com/docs"),
            ("http://localhost:8080", "site http://localhost:8080/"),
            ("./skills", "folder ./skills"),
            ("../skills", "folder ../skills"),
            (".", "folder ."),
            ("..", "folder .."),
            ("./skills/", "folder ./skills"),
            ("/srv/skills", "folder /srv/skills"),
            (r"C:\skills", r"folder C:\skills"),
            ("C:/skills", "folder C:/skills"),
        ];
        assert!(rows.len() > 100);
        assert_parts(&rows);
    }

    #[test]
    fn pages_of_hosts_are_understood() {
        assert_parts(&[
            ("https://github.com/o/r?tab=readme-ov-file", "git https://github.com/o/r - -"),
            ("https://github.com/o/r/tree/main/", "git https://github.com/o/r main -"),
            (
                "https://github.com/o/r/blob/main/skills/pdf/SKILL.md",
                "git https://github.com/o/r main skills/pdf",
            ),
            (
                "https://github.com/o/r/blob/main/pdf.zip",
                "download https://github.com/o/r/raw/main/pdf.zip",
            ),
            (
                "https://github.com/o/r/tree/main/my%20skills",
                "git https://github.com/o/r main my skills",
            ),
            ("https://github.com/o/r/commit/0123abc", "git https://github.com/o/r 0123abc -"),
            ("https://github.com/o/r/releases/tag/v1.2", "git https://github.com/o/r v1.2 -"),
            ("https://github.com/o/r@pdf", "git https://github.com/o/r - - @pdf"),
            (
                "https://gist.github.com/someone/0123abc",
                "git https://gist.github.com/0123abc.git - -",
            ),
            (
                "https://gitlab.com/g/r/-/blob/main/skills/pdf/SKILL.md?ref_type=heads",
                "git https://gitlab.com/g/r main skills/pdf",
            ),
            ("https://gitlab.com/g/r/-/issues", "git https://gitlab.com/g/r - -"),
            ("https://codeberg.org/o/r", "git https://codeberg.org/o/r - -"),
            ("codeberg.org/o/r", "git https://codeberg.org/o/r - -"),
            (
                "https://codeberg.org/o/r/src/branch/main/skills/pdf",
                "git https://codeberg.org/o/r main skills/pdf",
            ),
            (
                "https://git.example.com/o/r/src/tag/v1/skills",
                "git https://git.example.com/o/r.git v1 skills",
            ),
            (
                "https://git.example.com/forge/o/r/src/commit/0123abc/pdf/SKILL.md",
                "git https://git.example.com/forge/o/r.git 0123abc pdf",
            ),
            (
                "https://git.example.com/o/r/raw/branch/main/SKILL.md",
                "download https://git.example.com/o/r/raw/branch/main/SKILL.md",
            ),
            ("https://bitbucket.org/team/repo", "git https://bitbucket.org/team/repo - -"),
            (
                "https://bitbucket.org/team/repo/src/main/skills/pdf/",
                "git https://bitbucket.org/team/repo main skills/pdf",
            ),
            (
                "https://github.example.com/o/r/tree/main/skills",
                "git https://github.example.com/o/r.git main skills",
            ),
            (
                "https://github.example.com/o/r/blob/main/pdf/SKILL.md",
                "git https://github.example.com/o/r.git main pdf",
            ),
            (
                "https://dev.azure.com/org/p/_git/r?version=GC0123abc&path=/pdf/SKILL.md",
                "git https://dev.azure.com/org/p/_git/r 0123abc pdf",
            ),
            ("https://clawhub.ai/acme/pdf", "clawhub - acme pdf -"),
            ("https://clawhub.ai/skills/pdf", "clawhub - - pdf -"),
            ("https://skills.sh/o/r/pdf", "git https://github.com/o/r - - @pdf"),
            ("https://www.npmjs.com/package/@acme/skills/v/1.2.3", "npm @acme/skills 1.2.3"),
            (
                "https://example.com/docs/.well-known/agent-skills/index.json",
                "site https://example.com/docs",
            ),
        ]);
    }

    #[test]
    fn a_branch_with_a_slash_is_written_behind_a_hash() {
        assert_parts(&[
            ("o/r/skills#feature/x", "git https://github.com/o/r feature/x skills"),
            (
                "https://github.com/o/r/tree/feature/x/skills/y#feature/x",
                "git https://github.com/o/r feature/x skills/y",
            ),
            (
                "https://gitlab.com/g/r/-/tree/feature/x#feature/x",
                "git https://gitlab.com/g/r feature/x -",
            ),
        ]);
        let error = refused("https://github.com/o/r/tree/feature/x#other");
        assert_eq!(error.why, "it names two branches, `feature` and `other`");
    }

    #[test]
    fn a_folder_of_any_repository_is_behind_two_slashes() {
        assert_parts(&[
            (
                "https://git.example.com/o/r.git//skills/pdf#v1",
                "git https://git.example.com/o/r.git v1 skills/pdf",
            ),
            ("git@git.example.com:o/r.git//skills@x", "git git@git.example.com:o/r.git - skills@x"),
            (
                "ssh://git@git.example.com/o/r.git//skills#@pdf",
                "git ssh://git@git.example.com/o/r.git - skills @pdf",
            ),
            ("file:///srv/r.git//skills", "git file:///srv/r.git - skills"),
            ("gitlab:g/sub/r//skills", "git https://gitlab.com/g/sub/r - skills"),
            ("o/r//c%23", "git https://github.com/o/r - c#"),
            ("git+https://git.example.com/o/r//skills", "git https://git.example.com/o/r - skills"),
        ]);
    }

    #[test]
    fn several_skills_are_separated_by_commas() {
        assert_eq!(source("o/r@pdf,docx").skills, ["pdf", "docx"]);
        assert_eq!(source("o/r/office@pdf").skills, ["pdf"]);
        assert_eq!(source("git@github.com:o/r.git#main@pdf").skills, ["pdf"]);
        assert_eq!(source("https://example.com#@pdf").skills, ["pdf"]);
        assert_eq!(source("./skills#@pdf,docx").skills, ["pdf", "docx"]);
        assert_eq!(source("o/r#@a%2Cb").skills, ["a,b"]);
        // A name that begins with `@` is that of a folder.
        assert_eq!(git("o/r/skills/@acme/pdf").path.as_deref(), Some("skills/@acme/pdf"));
    }

    #[test]
    fn files_registries_and_sites_are_sources() {
        assert_parts(&[
            ("./pdf.zip", "file ./pdf.zip"),
            ("/srv/pdf.tar.gz", "file /srv/pdf.tar.gz"),
            ("./pdf/SKILL.md", "file ./pdf/SKILL.md"),
            ("file:///srv/pdf.skill", "file /srv/pdf.skill"),
            ("./pdf.zip/", "folder ./pdf.zip/"),
            (r".\skills\pdf", "folder ./skills/pdf"),
            ("~/skills", "folder ~/skills"),
            ("./c#/skills", "folder ./c#/skills"),
            ("https://example.com/pdf.zip", "download https://example.com/pdf.zip"),
            (
                "https://example.com/pdf.tar.gz?raw=1",
                "download https://example.com/pdf.tar.gz?raw=1",
            ),
            ("https://example.com/pdf/SKILL.md", "download https://example.com/pdf/SKILL.md"),
            ("clawhub:pdf", "clawhub - - pdf -"),
            ("clawhub:pdf@1.2.0", "clawhub - - pdf 1.2.0"),
            ("clawhub:@acme/pdf@latest", "clawhub - acme pdf latest"),
            ("clawhub:acme/pdf", "clawhub - acme pdf -"),
            ("clawhub+https://hub.example.com/pdf", "clawhub https://hub.example.com/ - pdf -"),
            (
                "clawhub+https://hub.example.com/api/local/@acme/pdf@1.0",
                "clawhub https://hub.example.com/api/local acme pdf 1.0",
            ),
            ("npm:pdf-skill", "npm pdf-skill -"),
            ("npm:@acme/skills@^1.2.0", "npm @acme/skills ^1.2.0"),
            ("skills-sh:o/r/pdf", "git https://github.com/o/r - - @pdf"),
        ]);
    }
}

mod a_source_has_one_shortest_spelling {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn it_is_displayed_in_the_shortest_spelling() {
        for (text, shortest) in [
            ("https://github.com/o/r.git", "o/r"),
            ("https://github.com/o/r/tree/main/skills/pdf", "o/r/skills/pdf#main"),
            ("github:o/r#main@pdf", "o/r#main@pdf"),
            ("o/r/skills@pdf", "o/r/skills#@pdf"),
            ("https://github.com/o/r/tree/main/c%23", "o/r//c%23#main"),
            ("https://gitlab.com/g/s/r.git", "gitlab:g/s/r"),
            ("https://gitlab.com/g/r/-/tree/v1/pdf", "gitlab:g/r//pdf#v1"),
            (
                "https://git.example.com/o/r/src/branch/main/pdf",
                "https://git.example.com/o/r.git//pdf#main",
            ),
            ("git+https://git.example.com/o/r", "git+https://git.example.com/o/r"),
            ("git+https://git.example.com/o/r.git", "https://git.example.com/o/r.git"),
            ("git@github.com:o/r.git@pdf", "git@github.com:o/r.git#@pdf"),
            ("https://example.com/", "https://example.com"),
            ("./skills//pdf/./", "./skills/pdf"),
            ("clawhub:acme/pdf", "clawhub:@acme/pdf"),
            ("skills-sh:o/r/pdf", "o/r@pdf"),
        ] {
            assert_eq!(source(text).to_string(), shortest, "{text}");
            assert_eq!(source(shortest).to_string(), shortest);
        }
    }

    /// Something that looks like a source: parts that mean something, in any order.
    fn texts() -> impl Strategy<Value = String> {
        const PARTS: &[&str] = &[
            "o",
            "r",
            "skills",
            "pdf",
            "main",
            "v1.0",
            "/",
            "/",
            "/",
            "//",
            "@",
            "@",
            "#",
            "#",
            "#@",
            ":",
            ",",
            ".",
            "..",
            "./",
            "~/",
            "%20",
            "%23",
            "%2F",
            " ",
            "-",
            "?",
            "&",
            "=",
            "\\",
            "::",
            "[",
            "]",
            "https://",
            "http://",
            "ssh://",
            "git@",
            "git+",
            "file://",
            "github:",
            "gitlab:",
            "clawhub:",
            "clawhub+https://",
            "npm:",
            "skills-sh:",
            "github.com/",
            "gitlab.com/",
            "codeberg.org/",
            "bitbucket.org/",
            "gist.github.com/",
            "dev.azure.com/",
            "git.example.com",
            "localhost",
            ":22",
            "tree/",
            "blob/",
            "-/tree/",
            "src/branch/",
            "raw/",
            "archive/",
            "releases/tag/",
            "commit/",
            "_git/",
            "path=",
            "version=GB",
            ".git",
            ".zip",
            ".tar.gz",
            "SKILL.md",
            "é",
            "日",
            "C:",
            "skills.sh/",
            "clawhub.ai/",
            "www.npmjs.com/package/",
            ".well-known/agent-skills/index.json",
        ];
        let part = prop_oneof![
            9 => proptest::sample::select(PARTS).prop_map(str::to_owned),
            1 => "[ -~]{1,3}",
        ];
        proptest::collection::vec(part, 1..12).prop_map(|it| it.concat())
    }

    #[test]
    fn what_is_displayed_is_read_as_the_same() {
        let run = TestRunner::new(cases()).run(&texts(), |text| {
            if let Ok(source) = text.parse::<SkillSource>() {
                let shown = source.to_string();
                let again = shown.parse::<SkillSource>();
                prop_assert_eq!(again.as_ref(), Ok(&source), "`{}` is shown as `{}`", text, shown);
                prop_assert_eq!(again.unwrap().to_string(), shown);
                prop_assert!(!source.name().is_empty());
            }
            Ok(())
        });
        run.unwrap_or_else(|error| panic!("{error}"));
    }
}

mod what_is_not_a_source_is_refused {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn programs_and_options_are_not_run() {
        for text in [
            "ext::sh -c id",
            "fd::17",
            "hg::https://example.com/r",
            "-oProxyCommand=id/x",
            "--upload-pack=id",
            "ssh://-oProxyCommand=id/x",
            "git@-oProxyCommand=id:x",
            "-oProxyCommand=id@host:x",
            "git@host:-x",
            "git@host.example.com:--upload-pack=id",
            "o/r#--upload-pack=id",
            "https://github.com/-o/r",
        ] {
            let error = refused(text);
            assert!(!error.why.is_empty() && !error.hint().is_empty(), "{text}");
        }
        assert_eq!(
            refused("ext::sh -c id").to_string(),
            "`ext::sh -c id` is not a source: git would run the program `git-remote-ext` for it"
        );
    }

    #[test]
    fn passwords_and_tokens_are_refused_and_not_shown() {
        for text in [
            "https://user:s3cret@github.com/o/r",
            "https://s3cret@github.com/o/r",
            "git+https://x:s3cret@git.example.com/o/r",
            "https://x:s3cret@example.com/pdf.zip",
            "https://example.com/pdf.zip?token=s3cret",
            "https://example.com/pdf.zip?a=b&X-Amz-Signature=s3cret",
            "ssh://git:s3cret@git.example.com/o/r.git",
            "git:s3cret@git.example.com:o/r.git",
            "clawhub+https://x:s3cret@hub.example.com/pdf",
            "git://x:s3cret@git.example.com/o/r",
            "foo://x:s3cret@git.example.com/o/r",
        ] {
            let error = refused(text);
            let all = format!("{error} {error:?} {}", error.hint());
            assert!(!all.contains("s3cret"), "{all}");
        }
        // It says nothing about who may read it.
        assert_eq!(git("https://git@github.com/o/r").url, "https://github.com/o/r");
    }

    #[test]
    fn git_over_plain_http_is_for_this_machine_only() {
        let error = refused("http://git.example.com/o/r.git");
        assert_eq!(error.hint(), "write `https://git.example.com/o/r.git`");
        refused("git+http://git.example.com/o/r");
        refused("http://git.example.com/o/r/src/branch/main");
        refused("git://git.example.com/o/r.git");
        for host in ["localhost", "127.0.0.1", "[::1]", "git.localhost"] {
            git(&format!("http://{host}:8080/o/r.git"));
        }
        refused("http://localhost.example.com/o/r.git");
    }

    #[test]
    fn a_path_stays_in_its_repository() {
        for text in [
            "o/r/../etc",
            "o/r/a/..",
            "o/r//%2e%2e/etc",
            "https://github.com/o/r/tree/main/../../x",
            "https://github.com/o/r/tree/main/%2E%2E/x",
            "https://github.com/o/r/tree/main/a%2F..%2Fb",
            "https://gitlab.com/g/r/-/tree/main/../x",
            "https://dev.azure.com/o/p/_git/r?path=/../x",
            "git@git.example.com:o/../r.git",
            "ssh://git@git.example.com/o/r.git//../x",
            "file:///srv/../etc/r.git",
        ] {
            refused(text);
        }
        assert_eq!(refused("o/r/../etc").why, "its path contains `..`");
    }

    #[test]
    fn what_cannot_be_seen_is_refused() {
        for text in
            ["o/r\u{0}", "o/r\n@pdf", "o/r\u{1b}[2J", "o/\u{202E}r", "o/r@p\u{200B}df", "./a\u{7}"]
        {
            let error = refused(text);
            assert!(
                !error.to_string().contains(|c: char| c.is_control() || c == '\u{202E}'),
                "{error:?}"
            );
        }
        let long = refused(&"a/".repeat(4096));
        assert!(long.to_string().len() < 300, "{long}");
        assert_eq!(refused("  ").why, "it is empty");
    }

    #[test]
    fn a_mistyped_source_gets_the_nearest_form() {
        for (text, hint) in [
            (r"owner\repo", "`owner/repo`"),
            ("skills", "`owner/skills`"),
            ("skills", "`./skills`"),
            ("owner/", "`./owner`"),
            ("@acme/skills", "`npm:@acme/skills`"),
            ("pdf@marketplace", "`owner/repository@pdf`"),
            ("gihub:o/r", "`github:o/r`"),
            ("gh:o/r", "`github:o/r`"),
            ("clawhb:pdf", "`clawhub:pdf`"),
            ("work:o/r", "`git@host:path`"),
            ("git.example.com/o/r", "`https://git.example.com/o/r.git`"),
            ("https://git.example.com/o/r#main", "`git+https://git.example.com/o/r#main`"),
            ("https://git.example.com/o/r.git/skills", "`https://git.example.com/o/r.git//skills`"),
            ("https://github.com/o", "`o/repository`"),
            ("gitlab:repo", "`gitlab:group/repository`"),
            ("git://github.com/o/r", "`https://github.com/o/r`"),
            ("o/r#", "`o/r`"),
            ("o/r@a#main@b", "`@a,b`"),
            ("clawhub+https://hub.example.com", "`clawhub+https://hub.example.com/name`"),
            ("file://server/r.git", "`file:///home/me/skills.git`"),
            ("npm:Ünsafe", "`npm:name`"),
            ("ftp://example.com/r.zip", "https://"),
        ] {
            let error = refused(text);
            assert!(error.hint().contains(hint), "{text}: {}", error.hint());
        }
    }

    #[test]
    fn a_folder_without_a_dot_is_not_taken_for_a_repository() {
        let exists = |name: &str| name == "skills" || name == "docs/skills";
        let error = SkillSource::parse_in("skills", &exists).unwrap_err();
        assert_eq!(error.hint(), "write `./skills`");
        let error = SkillSource::parse_in("docs/skills", &exists).unwrap_err();
        let hint = "write `./docs/skills` for the path, or `github:docs/skills` for the repository";
        assert_eq!(error.hint(), hint);
        assert_eq!(SkillSource::parse_in("o/r", &exists), Ok(source("o/r")));
        assert_eq!(SkillSource::parse_in("./skills", &exists), Ok(source("./skills")));
        assert_eq!(SkillSource::parse_in("github:docs/skills", &exists), Ok(source("docs/skills")));
        assert!(
            SkillSource::parse_in("nothing", &exists)
                .unwrap_err()
                .hint()
                .contains("clawhub:nothing")
        );
    }

    #[test]
    fn no_text_breaks_it() {
        let run = TestRunner::new(cases()).run(&".{0,60}", |text| {
            if let Err(error) = text.parse::<SkillSource>() {
                prop_assert!(!error.why.is_empty() && !error.hint().is_empty());
                let shown = error.to_string();
                prop_assert!(!shown.contains(char::is_control), "{shown:?}");
            }
            let _ = SkillSource::parse_in(&text, &|_| true);
            let _ = GitSource::from_url(&text);
            Ok(())
        });
        run.unwrap_or_else(|error| panic!("{error}"));
    }
}

mod hosts_are_known {
    use super::*;

    #[test]
    fn an_archive_of_a_repository_has_the_url_of_its_host() {
        let at = |text: &str, reference: Option<&str>| {
            git(text).archive_url(reference).map(|it| it.to_string())
        };
        for (text, reference, url) in [
            ("o/r", None, "https://codeload.github.com/o/r/tar.gz/HEAD"),
            ("o/r", Some("feature/x"), "https://codeload.github.com/o/r/tar.gz/feature/x"),
            (
                "gitlab:g/s/r",
                Some("feature/x"),
                "https://gitlab.com/api/v4/projects/g%2Fs%2Fr/repository/archive.tar.gz?sha=feature%2Fx",
            ),
            (
                "gitlab:g/r",
                None,
                "https://gitlab.com/api/v4/projects/g%2Fr/repository/archive.tar.gz",
            ),
            ("codeberg.org/o/r", Some("v1"), "https://codeberg.org/o/r/archive/v1.tar.gz"),
            ("bitbucket.org/o/r", Some("main"), "https://bitbucket.org/o/r/get/main.tar.gz"),
            (
                "https://dev.azure.com/o/p/_git/r",
                Some("main"),
                "https://dev.azure.com/o/p/_apis/git/repositories/r/items?path=%2F&%24format=zip&api-version=7.1&versionDescriptor.versionType=branch&versionDescriptor.version=main",
            ),
        ] {
            assert_eq!(at(text, reference).as_deref(), Some(url), "{text}");
        }
        for text in
            ["git@github.com:o/r.git", "https://git.example.com/o/r.git", "file:///srv/r.git"]
        {
            assert_eq!(at(text, None), None, "{text}");
        }
    }

    #[test]
    fn a_host_is_known_however_it_is_reached() {
        for (text, host) in [
            ("o/r", KnownHost::GitHub),
            ("git@github.com:o/r.git", KnownHost::GitHub),
            ("ssh://git@ssh.github.com:443/o/r.git", KnownHost::GitHub),
            ("gitlab:g/r", KnownHost::GitLab),
            ("https://codeberg.org/o/r.git", KnownHost::Forgejo),
            ("git@bitbucket.org:o/r.git", KnownHost::Bitbucket),
            ("https://org.visualstudio.com/p/_git/r", KnownHost::Azure),
            ("https://github.com.example.com/o/r.git", KnownHost::Other),
            ("https://github.com:8443/o/r.git", KnownHost::Other),
            ("file:///srv/r.git", KnownHost::Other),
        ] {
            assert_eq!(git(text).host(), host, "{text}");
        }
        assert!(git("o/r").is_public_shorthand());
        assert!(!git("git@github.com:o/r.git").is_public_shorthand());
        assert!(git("O/R").is_same_repository(&git("https://github.com/o/r.git#main")));
        assert!(!git("o/r").is_same_repository(&git("o/r2")));
    }
}
