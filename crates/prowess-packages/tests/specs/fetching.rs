//! The scenarios of `specs/fetching.md`.

mod a_repository_is_fetched_with_git {
    use std::fs;

    use prowess_packages::Pin;

    use crate::hosts::*;

    #[test]
    fn the_default_branch_is_fetched_with_its_commit() {
        let place = Place::new();
        let repository = place.repository("r");
        let commit = repository.skill("skills/a", "a").write("run.sh", "#!/bin/sh\n").commit();
        let tree = fetch(&place.fetcher(), &repository.source()).unwrap();
        assert_eq!(paths(&tree), ["run.sh", "skills/a/SKILL.md"]);
        assert_eq!(text(&tree, "skills/a/SKILL.md"), skill("a"));
        assert_eq!(tree.commit, Some(commit));
        assert_eq!(tree.reference.as_deref(), Some("refs/heads/main"));
        assert_eq!(tree.published, Some(1_700_000_000));
        assert_eq!(tree.url, repository.url());
    }

    #[test]
    fn branches_tags_and_commits_can_be_named() {
        let place = Place::new();
        let repository = place.repository("r");
        let first = repository.write("a", "1").commit();
        repository.git(&["tag", "-a", "v1", "-m", "x"]);
        repository.git(&["branch", "side/way"]);
        repository.write("a", "2").commit();
        let fetcher = place.fetcher();
        for (named, reference) in [
            ("v1", Some("refs/tags/v1")),
            ("refs/tags/v1", Some("refs/tags/v1")),
            ("side/way", Some("refs/heads/side/way")),
            (&*first, None),
        ] {
            let source = git_source(&repository.url(), Some(named), None);
            let tree = fetch(&fetcher, &source).unwrap();
            assert_eq!(tree.commit.as_ref(), Some(&first), "{named}");
            assert_eq!(tree.reference.as_deref(), reference, "{named}");
            assert_eq!(text(&tree, "a"), "1");
        }
    }

    #[test]
    fn only_the_folder_that_is_asked_for_is_downloaded() {
        let place = Place::new();
        let repository = place.repository("r");
        repository.skill("skills/a", "a").write("big.bin", "never sent").commit();
        repository.lose("big.bin");
        let source = git_source(&repository.url(), None, Some("skills/a"));
        let tree = fetch(&place.fetcher(), &source).unwrap();
        assert_eq!(paths(&tree), ["skills/a/SKILL.md"]);
    }

    #[test]
    fn only_the_skills_that_are_asked_for_are_downloaded() {
        let place = Place::new();
        let repository = place.repository("r");
        repository.skill("skills/one", "first").write("skills/one/x.txt", "x");
        repository.skill("skills/two", "second").write("skills/two/y.txt", "never sent");
        repository.write(".claude-plugin/marketplace.json", "{}").commit();
        repository.lose("skills/two/y.txt");
        let source = with_skills(repository.source(), &["First"]);
        let tree = fetch(&place.fetcher(), &source).unwrap();
        let expected =
            [".claude-plugin/marketplace.json", "skills/one/SKILL.md", "skills/one/x.txt"];
        assert_eq!(paths(&tree), expected);
    }

    #[test]
    fn if_a_skill_is_not_there_everything_is_fetched() {
        let place = Place::new();
        let repository = place.repository("r");
        repository.skill("a", "a").skill("b", "b").commit();
        let source = with_skills(repository.source(), &["a", "c"]);
        let tree = fetch(&place.fetcher(), &source).unwrap();
        assert_eq!(paths(&tree), ["a/SKILL.md", "b/SKILL.md"]);
    }

    #[test]
    fn a_commit_that_the_server_does_not_give_out_by_itself_is_still_found() {
        let place = Place::new();
        let repository = place.repository("r");
        let first = repository.write("a", "1").commit();
        repository.write("a", "2").commit();
        repository.git(&["config", "uploadpack.allowFilter", "false"]);
        repository.git(&["config", "uploadpack.allowAnySHA1InWant", "false"]);
        // The older protocol has the stricter rules.
        let server = old_git_server(place.folder.path());
        let source = git_source(&server.url("/r"), Some(&first), None);
        assert_eq!(text(&fetch(&place.fetcher(), &source).unwrap(), "a"), "1");
        let wanted = server.asked().into_iter().filter(|it| it.body.contains(&first)).count();
        assert_eq!(wanted, 0, "it was advertised");
    }

    #[test]
    fn commits_may_be_named_by_sha_256() {
        let place = Place::new();
        let repository = place.repository("r");
        std::fs::remove_dir_all(repository.folder.join(".git")).unwrap();
        repository.git(&["init", "--quiet", "--initial-branch=main", "--object-format=sha256"]);
        let commit = repository.write("a", "1").commit();
        assert_eq!(commit.len(), 64);
        for reference in [None, Some(&*commit)] {
            let place = Place::new();
            let source = git_source(&repository.url(), reference, None);
            let tree = fetch(&place.fetcher(), &source).unwrap();
            assert_eq!((paths(&tree), tree.commit.as_deref()), (vec!["a"], Some(&*commit)));
        }
    }

    #[test]
    fn the_bytes_are_those_of_the_repository() {
        let place = Place::new();
        let repository = place.repository("r");
        let attributes = "* text eol=crlf ident filter=loud\nsecret export-ignore\n";
        repository.write("a.md", "$Id$\nx\n").write("secret", "s\n");
        repository.write(".gitattributes", attributes).commit();
        let settings = "[core]\n autocrlf = true\n[filter \"loud\"]\n smudge = tr a-z A-Z\n";
        fs::write(place.path("home/.gitconfig"), settings).unwrap();
        let tree = fetch(&place.fetcher(), &repository.source()).unwrap();
        assert_eq!(text(&tree, "a.md"), "$Id$\nx\n");
        assert_eq!(text(&tree, "secret"), "s\n");
    }

    #[test]
    fn nothing_of_a_repository_runs() {
        let place = Place::new();
        let repository = place.repository("r");
        let marker = place.path("ran");
        let script = format!("#!/bin/sh\ntouch {}\n", marker.display());
        for hook in ["post-checkout", "post-merge", "reference-transaction", "fsmonitor"] {
            let path = repository.folder.join(format!(".git/hooks/{hook}"));
            fs::write(&path, &script).unwrap();
            make_executable(&path);
        }
        let touch = format!("touch {}", marker.display());
        repository.write("a", "1").write(".gitattributes", "* filter=evil\n").commit();
        let _ = fs::remove_file(&marker);
        for setting in ["filter.evil.smudge", "uploadpack.packObjectsHook", "core.sshCommand"] {
            repository.git(&["config", setting, &touch]);
        }
        let template = place.path("template/hooks");
        fs::create_dir_all(&template).unwrap();
        fs::write(template.join("reference-transaction"), &script).unwrap();
        make_executable(&template.join("reference-transaction"));
        let template = place.path("template").display().to_string();
        let fetcher = place.fetcher_with(&[("GIT_TEMPLATE_DIR", &template)]);
        assert_eq!(paths(&fetch(&fetcher, &repository.source()).unwrap()), [".gitattributes", "a"]);
        assert!(!marker.exists());
    }

    fn make_executable(path: &std::path::Path) {
        let done = std::process::Command::new("chmod").arg("+x").arg(path).status().unwrap();
        assert!(done.success());
    }

    #[test]
    fn links_submodules_and_names_that_clash_are_no_files() {
        let place = Place::new();
        let repository = place.repository("r");
        repository.skill("s", "s").write("LICENSE", "free").commit();
        repository.stage("120000", "s/LICENSE", "../LICENSE");
        repository.stage("120000", "s/passwd", "/etc/passwd");
        repository.stage("120000", "s/up", "../../..");
        repository.stage("160000", "s/module", &"1".repeat(40));
        repository.stage("100644", "s/skill.MD", "other");
        repository.stage("100644", "s/bell\u{7}", "ding");
        repository.stage("100644", "s/large.bin", "version https://git-lfs.github.com/spec/v1\n");
        repository.commit_staged();
        let source = git_source(&repository.url(), None, Some("s"));
        let tree = fetch(&place.fetcher(), &source).unwrap();
        let expected = ["LICENSE", "s/LICENSE", "s/SKILL.md", "s/large.bin"];
        assert_eq!(paths(&tree), expected);
        assert_eq!(text(&tree, "s/LICENSE"), "free");
        let notes = tree.notes.join("\n");
        for part in ["s/passwd", "s/up", "s/module", "submodule", "s/skill.MD", "Git LFS"] {
            assert!(notes.contains(part), "{part}: {notes}");
        }
        assert!(!notes.contains('\u{7}'));
    }

    #[test]
    fn variables_of_another_repository_change_nothing() {
        let place = Place::new();
        let repository = place.repository("r");
        repository.write("a", "1").commit();
        let other = place.repository("other");
        let before = other.git(&["count-objects", "-v"]);
        let folder = other.folder.join(".git").display().to_string();
        let fetcher = place.fetcher_with(&[
            ("GIT_DIR", &folder),
            ("GIT_OBJECT_DIRECTORY", &format!("{folder}/objects")),
            ("GIT_INDEX_FILE", "/nowhere"),
        ]);
        assert_eq!(paths(&fetch(&fetcher, &repository.source()).unwrap()), ["a"]);
        assert_eq!(other.git(&["count-objects", "-v"]), before);
    }

    #[test]
    fn a_server_over_http_is_asked_for_what_is_needed() {
        let place = Place::new();
        let repository = place.repository("r");
        let commit = repository.skill("skills/a", "a").write("b", "never sent").commit();
        repository.lose("b");
        let server = git_server(place.folder.path());
        let source = git_source(&server.url("/r"), None, Some("skills/a"));
        let tree = fetch(&place.fetcher(), &source).unwrap();
        assert_eq!(paths(&tree), ["skills/a/SKILL.md"]);
        assert_eq!(tree.commit, Some(commit));
    }

    #[test]
    #[cfg_attr(not(feature = "external"), ignore = "needs `sshd`")]
    fn a_server_over_ssh_is_asked_with_the_key_of_the_user() {
        let place = Place::new();
        let repository = place.repository("r");
        repository.skill("a", "a").commit();
        let server = crate::ssh_server::SshServer::start(&place.path("ssh"));
        let url = format!(
            "ssh://{}@127.0.0.1:{}{}",
            server.user,
            server.port,
            repository.folder.display()
        );
        let fetcher = place.fetcher_with(&[("GIT_SSH_COMMAND", &server.command)]);
        let tree = fetch(&fetcher, &git_source(&url, None, None)).unwrap();
        assert_eq!(paths(&tree), ["a/SKILL.md"]);
        let stranger = place.fetcher_with(&[("GIT_SSH_COMMAND", &server.command_without_key)]);
        let source = git_source(&url, Some("other"), None);
        let error = told(&fetch(&stranger, &source).unwrap_err());
        assert!(error.contains("you have no access to it"), "{error}");
        assert!(error.contains("SSH agent"), "{error}");
        let careful = place.fetcher_with(&[("GIT_SSH_COMMAND", &server.command_without_host)]);
        let error = told(&fetch(&careful, &source).unwrap_err());
        assert!(
            error.contains("its key is not known; connect to it once with `ssh 127.0.0.1`"),
            "{error}"
        );
        let pinned = fetch_pinned(
            &stranger,
            &git_source(&url, None, None),
            Pin::Commit(tree.commit.unwrap()),
        );
        assert!(pinned.is_ok());
    }
}

mod a_repository_that_cannot_be_fetched_is_explained {
    use prowess_packages::FetchPackageError;
    use prowess_testing::server::{Server, answer, nowhere};

    use crate::hosts::*;

    fn failure(source: &prowess_packages::SkillSource) -> String {
        let place = Place::new();
        let error = told(&fetch(&place.fetcher(), source).unwrap_err());
        assert_eq!(place.left_over(), [""; 0]);
        error
    }

    #[test]
    fn a_repository_that_is_not_there() {
        let error = failure(&git_source("file:///nowhere/at/all", None, None));
        assert!(error.contains("`file:///nowhere/at/all` does not exist"), "{error}");
        assert!(error.contains("check the path"), "{error}");
    }

    #[test]
    fn a_host_that_does_not_answer() {
        let error = failure(&git_source(&format!("http://{}/r", nowhere()), None, None));
        assert!(error.starts_with("cannot reach `127.0.0.1`"), "{error}");
        assert!(error.contains("check the spelling of the host"), "{error}");
    }

    #[test]
    fn a_host_that_wants_a_password_is_not_asked_at_the_terminal() {
        for status in ["401 Unauthorized", "403 Forbidden", "404 Not Found"] {
            let server = Server::new(move |_, client| {
                let headers = "www-authenticate: Basic realm=\"x\"\r\n";
                client.write_all(answer(status, headers, "").as_bytes())
            });
            let url = server.url("/r").replace("127.0.0.1", "user:secret@127.0.0.1");
            let error = failure(&git_source(&url, None, None));
            assert!(error.contains("does not exist, or you have no access to it"), "{error}");
            assert!(error.contains("sign in to git"), "{error}");
            assert!(!error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn a_branch_that_is_not_there_is_told_with_the_nearest() {
        let place = Place::new();
        let repository = place.repository("r");
        repository.write("a", "1").commit();
        repository.git(&["branch", "develop"]);
        let error = failure(&git_source(&repository.url(), Some("devlop"), None));
        assert!(error.contains("has no branch, tag or commit `devlop`"), "{error}");
        assert!(error.contains("there are `develop`"), "{error}");
        let error = failure(&git_source(&repository.url(), Some("abc1234"), None));
        assert!(error.contains("there are `develop`, `main`"), "{error}");
        let error = failure(&git_source(&repository.url(), Some(&"1".repeat(40)), None));
        assert!(error.contains("has no branch, tag or commit `1111"), "{error}");
    }

    #[test]
    fn a_name_that_git_would_take_for_an_option_is_refused() {
        let place = Place::new();
        let repository = place.repository("r");
        repository.write("a", "1").commit();
        for name in ["-x", "--upload-pack=touch x", "a b", "a\nb", "../x"] {
            let error = failure(&git_source(&repository.url(), Some(name), None));
            assert!(error.contains("is not the name of a branch, tag or commit"), "{error}");
        }
        for url in [
            "--upload-pack=touch x",
            "ext::sh -c touch% x",
            "git://example.com/a",
            "http://example.com/a",
        ] {
            let error = fetch(&place.fetcher(), &git_source(url, None, None)).unwrap_err();
            assert!(matches!(error, FetchPackageError::Refused { .. }), "{error}");
        }
    }

    #[test]
    fn a_folder_that_is_not_there_is_told_with_the_nearest() {
        let place = Place::new();
        let repository = place.repository("r");
        repository.skill("skills/pdf", "pdf").commit();
        let error = failure(&git_source(&repository.url(), None, Some("pdf")));
        assert!(error.contains("has no folder `pdf`"), "{error}");
        assert!(error.contains("did you mean `skills/pdf`?"), "{error}");
    }

    #[test]
    fn a_repository_without_a_commit() {
        let place = Place::new();
        let error = failure(&place.repository("r").source());
        assert!(error.ends_with("is empty"), "{error}");
    }

    #[test]
    fn a_repository_that_is_too_large() {
        let place = Place::new();
        let repository = place.repository("r");
        repository.write("a", "12345").write("b", "12345").commit();
        let limits = prowess_packages::ArchiveLimits { unpacked: 8, ..Default::default() };
        let error = fetch(&place.fetcher().with_limits(limits), &repository.source()).unwrap_err();
        assert!(told(&error).contains("has more than 8 bytes"), "{}", told(&error));
        let limits = prowess_packages::ArchiveLimits { files: 1, ..Default::default() };
        let error = fetch(&place.fetcher().with_limits(limits), &repository.source()).unwrap_err();
        assert!(told(&error).contains("has more than 1 files"), "{}", told(&error));
    }

    #[test]
    fn a_server_that_goes_silent() {
        let (sender, receiver) = std::sync::mpsc::channel::<()>();
        let receiver = std::sync::Mutex::new(receiver);
        let server = Server::new(move |_, _| {
            // Until the test ends.
            let _ = receiver.lock().map(|it| it.recv());
            Ok(())
        });
        let place = Place::new();
        let fetcher = place.fetcher().with_timeouts(impatient());
        let error = fetch(&fetcher, &git_source(&server.url("/r"), None, None)).unwrap_err();
        assert!(matches!(error, FetchPackageError::Stalled { .. }), "{}", told(&error));
        assert_eq!(place.left_over(), [""; 0]);
        drop(sender);
    }

    #[test]
    fn a_redirect_to_another_place_is_followed_only_to_the_internet() {
        let place = Place::new();
        let repository = place.repository("r");
        repository.write("a", "1").commit();
        let real = git_server(place.folder.path());
        let same = Server::new({
            let port = real.port();
            move |asked, client| {
                let target = asked.line.split(' ').nth(1).unwrap();
                let to = format!("location: http://127.0.0.1:{port}{target}\r\n");
                client.write_all(answer("301 Moved", &to, "").as_bytes())
            }
        });
        let error = failure(&git_source(&same.url("/r"), None, None));
        assert!(error.contains("requests to it are not allowed"), "{error}");
        assert_eq!(real.connections(), 0);
        let file = Server::new(|_, client| {
            client.write_all(answer("302 Found", "location: file:///etc\r\n", "").as_bytes())
        });
        let error = failure(&git_source(&file.url("/r"), None, None));
        assert!(error.contains("redirects to `file:///etc"), "{error}");
    }
}

mod what_is_locked_is_what_comes {
    use prowess_packages::{ContentDigest, FetchPackageError, Pin};

    use crate::hosts::*;

    #[test]
    fn a_locked_commit_is_fetched_though_the_branch_has_moved_on() {
        let place = Place::new();
        let repository = place.repository("r");
        let first = repository.write("a", "1").commit();
        repository.write("a", "2").commit();
        let source = git_source(&repository.url(), Some("main"), None);
        let pinned = fetch_pinned(&place.fetcher(), &source, Pin::Commit(first)).unwrap();
        assert_eq!(text(&pinned, "a"), "1");
    }

    #[test]
    fn a_tag_that_was_moved_is_an_error() {
        let place = Place::new();
        let repository = place.repository("r");
        let first = repository.write("a", "1").commit();
        let second = repository.write("a", "2").commit();
        repository.git(&["tag", "v1"]);
        let source = git_source(&repository.url(), Some("v1"), None);
        let error =
            fetch_pinned(&place.fetcher(), &source, Pin::Commit(first.clone())).unwrap_err();
        let FetchPackageError::Moved { what, expected, found } = error else { panic!("{error}") };
        assert_eq!((&*what, expected, found), ("refs/tags/v1", first, second));
    }

    #[test]
    fn a_source_with_another_digest_is_an_error() {
        let place = Place::new();
        let folder = place.path("skill");
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("SKILL.md"), skill("a")).unwrap();
        let source = source(prowess_packages::SourceKind::Folder(folder.clone()));
        let fetcher = place.fetcher();
        let first = fetch(&fetcher, &source).unwrap();
        std::fs::write(folder.join("SKILL.md"), skill("b")).unwrap();
        let again = fetch_pinned(&fetcher, &source, Pin::Digest(first.digest)).unwrap();
        assert_eq!(text(&again, "SKILL.md"), skill("a"));
        let other = ContentDigest([7; 32]);
        let error = fetch_pinned(&fetcher, &source, Pin::Digest(other)).unwrap_err();
        assert!(matches!(error, FetchPackageError::Moved { .. }), "{error}");
    }

    #[test]
    fn the_newest_commit_is_known_without_its_files() {
        let place = Place::new();
        let repository = place.repository("r");
        let commit = repository.write("a", "never sent").commit();
        repository.lose("a");
        let newest = wait(place.fetcher().newest(&repository.source())).unwrap();
        assert_eq!(newest.commit, Some(commit));
        assert_eq!(newest.reference.as_deref(), Some("refs/heads/main"));
    }
}

mod the_cache_answers_first {
    use prowess_packages::Pin;

    use crate::hosts::*;

    #[test]
    fn a_commit_in_the_cache_needs_no_host() {
        let place = Place::new();
        let repository = place.repository("r");
        let commit = repository.skill("a", "a").commit();
        let first = fetch(&place.fetcher(), &repository.source()).unwrap();
        std::fs::remove_dir_all(&repository.folder).unwrap();
        let again =
            fetch_pinned(&place.fetcher(), &repository.source(), Pin::Commit(commit.clone()));
        assert_eq!(again.unwrap().digest, first.digest);
        let named = git_source(&repository.url(), Some(&commit), Some("a"));
        assert_eq!(fetch(&place.fetcher(), &named).unwrap().digest, first.digest);
    }

    #[test]
    fn a_branch_that_has_not_moved_is_not_downloaded_again() {
        let place = Place::new();
        let repository = place.repository("r");
        repository.write("a", "1").commit();
        let first = fetch(&place.fetcher(), &repository.source()).unwrap();
        repository.lose("a");
        let again = fetch(&place.fetcher(), &repository.source()).unwrap();
        assert_eq!(again, first);
    }

    #[test]
    fn offline_the_last_known_is_used() {
        let place = Place::new();
        let repository = place.repository("r");
        let first = repository.write("a", "1").commit();
        fetch(&place.fetcher(), &repository.source()).unwrap();
        let second = repository.write("a", "2").commit();
        let offline = place.fetcher().with_offline(true);
        assert_eq!(fetch(&offline, &repository.source()).unwrap().commit, Some(first));
        let error = fetch_pinned(&offline, &repository.source(), Pin::Commit(second)).unwrap_err();
        assert!(told(&error).contains("is not in the cache, and you are offline"));
        assert!(told(&error).contains("run it once without `--offline`"));
    }
}

mod without_git_archives_of_the_host_are_used {
    use prowess_packages::FetchPackageError;
    use prowess_testing::server::{Server, answer};

    use crate::hosts::*;

    #[test]
    fn the_same_files_come_as_with_git() {
        let place = Place::new();
        let repository = place.repository("r");
        repository.skill("skills/a", "a").write("b", "2");
        repository.commit();
        repository.git(&["tag", "-a", "v1", "-m", "x"]);
        let server = git_server(place.folder.path());
        for reference in [None, Some("v1"), Some("main")] {
            let source = git_source(&server.url("/r"), reference, None);
            let plain = Place::new();
            let without = fetch(&plain.plain_fetcher(), &source).unwrap();
            let with = fetch(&place.fetcher(), &source).unwrap();
            assert_eq!(without.digest, with.digest, "{reference:?}");
            assert_eq!(without.commit, with.commit, "{reference:?}");
            assert_eq!(without.reference, with.reference, "{reference:?}");
            assert_eq!(without.published, with.published, "{reference:?}");
            let old = old_git_server(place.folder.path());
            let source = git_source(&old.url("/r"), reference, None);
            let listed = fetch(&plain.plain_fetcher(), &source).unwrap();
            assert_eq!(listed.commit, with.commit, "{reference:?}");
            assert_eq!(listed.reference, with.reference, "{reference:?}");
        }
    }

    #[test]
    fn an_archive_of_another_commit_is_refused() {
        let place = Place::new();
        let repository = place.repository("r");
        let first = repository.write("a", "1").commit();
        repository.write("a", "2").commit();
        let real = git_server(place.folder.path());
        let port = real.port();
        let lying = Server::new(move |asked, client| {
            let target = asked.line.split(' ').nth(1).unwrap().to_owned();
            let target = match target.split_once("/archive/") {
                Some((above, _)) => format!("{above}/archive/{first}.tar.gz"),
                None => target,
            };
            let method = asked.line.split(' ').next().unwrap();
            let mut request = format!("{method} {target} HTTP/1.1\r\nhost: x\r\n");
            for name in ["git-protocol", "content-type", "content-length"] {
                if let Some(value) = asked.header(name) {
                    request += &format!("{name}: {value}\r\n");
                }
            }
            let mut stream = std::net::TcpStream::connect(("127.0.0.1", port))?;
            std::io::Write::write_all(&mut stream, format!("{request}\r\n").as_bytes())?;
            std::io::Write::write_all(&mut stream, &asked.bytes)?;
            std::io::copy(&mut stream, client).map(drop)
        });
        let source = git_source(&lying.url("/r"), None, None);
        let error = fetch(&place.plain_fetcher(), &source).unwrap_err();
        assert!(matches!(error, FetchPackageError::WrongDigest { .. }), "{}", told(&error));
    }

    #[test]
    fn other_hosts_need_git() {
        let place = Place::new();
        for url in ["git@example.com:a/b", "ssh://git@example.com/a", "file:///nowhere"] {
            let error = fetch(&place.plain_fetcher(), &git_source(url, None, None)).unwrap_err();
            assert!(told(&error).contains("only with the program `git` (install git)"), "{error}");
        }
        let page = Server::saying(answer("200 OK", "", "<html>hello</html>"));
        let error =
            fetch(&place.plain_fetcher(), &git_source(&page.url("/r"), None, None)).unwrap_err();
        assert!(told(&error).contains("it is not a git repository"), "{error}");
    }

    #[test]
    fn a_token_goes_only_to_its_host() {
        let place = Place::new();
        let repository = place.repository("r");
        repository.write("a", "1").commit();
        let server = git_server(place.folder.path());
        let source = git_source(&server.url("/r"), None, None);
        let fetcher = || place.plain_fetcher().with_token("github.com", "secret".to_owned());
        fetch(&fetcher(), &source).unwrap();
        assert!(server.asked().iter().all(|it| it.header("authorization").is_none()));
        let own = fetcher().with_token("127.0.0.1", "mine".to_owned());
        wait(own.newest(&source)).unwrap();
        assert!(server.last().header("authorization").is_some_and(|it| it.starts_with("basic ")));
    }
}

mod files_are_downloaded_from_a_url {
    use prowess_packages::{ArchiveLimits, FetchPackageError, SkillSource, SourceKind};
    use prowess_testing::server::{Names, Server, answer, nowhere, redirect};

    use crate::hosts::*;

    fn download(server: &Server, path: &str) -> SkillSource {
        source(SourceKind::Download(url(&server.url(path))))
    }

    #[test]
    fn archives_and_skills_are_recognized_by_their_content() {
        let files = [("pdf/SKILL.md", &*skill("pdf")), ("pdf/a.txt", "a")];
        let server = site(vec![
            page("/a", zip(&files)),
            page("/b.zip", tar_gz(&files)),
            page("/c.zip", skill("pdf")),
        ]);
        let place = Place::new();
        for path in ["/a", "/b.zip"] {
            let tree = fetch(&place.fetcher(), &download(&server, path)).unwrap();
            assert_eq!(paths(&tree), ["SKILL.md", "a.txt"], "{path}");
        }
        let tree = fetch(&place.fetcher(), &download(&server, "/c.zip")).unwrap();
        assert_eq!(paths(&tree), ["SKILL.md"]);
        assert_eq!(text(&tree, "SKILL.md"), skill("pdf"));
        let offline = place.fetcher().with_offline(true);
        assert_eq!(fetch(&offline, &download(&server, "/c.zip")).unwrap(), tree);
    }

    #[test]
    fn what_is_neither_is_refused() {
        let mut cut = zip(&[("SKILL.md", &*skill("pdf")), ("b", "b")]);
        cut.truncate(cut.len() - 30);
        let server = site(vec![
            page("/page", "<!DOCTYPE html><title>Log in</title>"),
            page("/empty", ""),
            page("/program", b"\x7fELF\xff\xfe\x00".to_vec()),
            page("/cut", cut),
        ]);
        let place = Place::new();
        for (path, part) in [
            ("/page", "is a page of HTML"),
            ("/empty", "is empty"),
            ("/program", "is a file of another format"),
            ("/cut", "damaged or incomplete"),
            ("/none", "does not exist"),
        ] {
            let error = told(&fetch(&place.fetcher(), &download(&server, path)).unwrap_err());
            assert!(error.contains(part), "{path}: {error}");
        }
    }

    #[test]
    fn a_body_that_is_cut_off_or_endless_is_not_used() {
        let place = Place::new();
        let cut = Server::saying("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n---\nname: a\n");
        let error = fetch(&place.fetcher(), &download(&cut, "/")).unwrap_err();
        assert!(told(&error).contains("was cut off"), "{}", told(&error));
        let endless = Server::new(|_, client| {
            client.write_all(b"HTTP/1.1 200 OK\r\n\r\n")?;
            loop {
                client.write_all(&[b'x'; 4096])?;
            }
        });
        let limits = ArchiveLimits { packed: 1 << 20, ..ArchiveLimits::default() };
        let fetcher = place.fetcher().with_limits(limits);
        let error = fetch(&fetcher, &download(&endless, "/")).unwrap_err();
        assert!(told(&error).contains("has more than 1 MiB"), "{}", told(&error));
    }

    #[test]
    fn redirects_lead_to_the_internet_or_stay_at_the_host() {
        let place = Place::new();
        let files = site(vec![page("/skill", skill("a"))]);
        let port = files.port();
        for to in
            ["file:///etc/passwd", "http://10.0.0.1/x", "http://169.254.169.254/", "ftp://a/b"]
        {
            let server = Server::saying(redirect(302, to));
            let error = fetch(&place.fetcher(), &download(&server, "/")).unwrap_err();
            assert!(matches!(error, FetchPackageError::Refused { .. }), "{to}: {}", told(&error));
        }
        let other = Server::saying(redirect(302, &format!("http://127.0.0.1:{port}/skill")));
        let error = fetch(&place.fetcher(), &download(&other, "/")).unwrap_err();
        assert!(matches!(error, FetchPackageError::Refused { .. }), "{}", told(&error));
        assert_eq!(files.connections(), 0);
        let own = site(vec![
            ("/a".to_owned(), "302 Found", b"/b".to_vec()),
            page("/b", skill("a")),
            ("/loop".to_owned(), "302 Found", b"/loop".to_vec()),
        ]);
        let tree = fetch(&place.fetcher(), &download(&own, "/a")).unwrap();
        assert_eq!(tree.url, own.url("/b"));
        let error = fetch(&place.fetcher(), &download(&own, "/loop")).unwrap_err();
        assert!(told(&error).contains("redirects more than 5 times"), "{}", told(&error));
    }

    #[test]
    fn https_never_becomes_http() {
        let place = Place::new();
        let secure = Server::secure(|_, client| {
            client.write_all(redirect(302, "http://secure.test/skill").as_bytes())
        });
        let authority = include_bytes!("../../../../fixtures/tls/ca.pem");
        let fetcher = place.fetcher().with_resolver(Names::new(&[&["127.0.0.1"]]));
        let fetcher = fetcher.with_certificates(authority).unwrap();
        let to = format!("https://secure.test:{}/", secure.port());
        let error = fetch(&fetcher, &source(SourceKind::Download(url(&to)))).unwrap_err();
        let error = told(&error);
        assert!(error.contains("redirects from `https:` to `http://secure.test/skill`"), "{error}");
    }

    #[test]
    fn a_host_that_fails_for_a_moment_is_asked_again() {
        let place = Place::new();
        let count = std::sync::atomic::AtomicUsize::new(0);
        let server = Server::new(move |_, client| {
            match count.fetch_add(1, std::sync::atomic::Ordering::Relaxed) {
                0 => client.write_all(answer("503 Busy", "retry-after: 0\r\n", "").as_bytes()),
                1 => client.write_all(answer("429 Many", "retry-after: 0\r\n", "").as_bytes()),
                _ => client.write_all(answer("200 OK", "", &skill("a")).as_bytes()),
            }
        });
        fetch(&place.fetcher(), &download(&server, "/")).unwrap();
        assert_eq!(server.connections(), 3);
        let busy = Server::saying(answer("429 Many", "retry-after: 3600\r\n", ""));
        let error = fetch(&place.fetcher(), &download(&busy, "/")).unwrap_err();
        assert!(told(&error).contains("try again in 3600 seconds"), "{}", told(&error));
        assert_eq!(busy.connections(), 1);
    }

    #[test]
    fn a_host_that_is_not_there_is_named() {
        let place = Place::new();
        let place_without = format!("http://{}/x", nowhere());
        let source = source(SourceKind::Download(url(&place_without)));
        let error = told(&fetch(&place.fetcher(), &source).unwrap_err());
        assert!(error.starts_with("cannot reach `127.0.0.1:"), "{error}");
        let source = crate::hosts::source(SourceKind::Download(url("http://example.com/x")));
        let error = told(&fetch(&place.fetcher(), &source).unwrap_err());
        assert!(error.contains("use `https:`"), "{error}");
    }
}

mod sites_list_their_skills {
    use prowess_packages::{FetchPackageError, FileDigest, Pin, SkillSource, SourceKind};
    use prowess_testing::server::Server;
    use serde_json::json;

    use crate::hosts::*;

    const FORMAT: &str = "https://schemas.agentskills.io/discovery/0.2.0/schema.json";
    const INDEX: &str = "/.well-known/agent-skills/index.json";

    fn of(server: &Server, path: &str) -> SkillSource {
        source(SourceKind::Site(url(&server.url(path))))
    }

    fn entry(name: &str, kind: &str, url: &str, body: &[u8]) -> serde_json::Value {
        let digest = FileDigest::of(body).to_string();
        json!({ "name": name, "type": kind, "description": "d", "url": url, "digest": digest })
    }

    fn index(entries: &[serde_json::Value]) -> String {
        json!({ "$schema": FORMAT, "skills": entries }).to_string()
    }

    #[test]
    fn an_index_with_digests_is_verified() {
        let archive = tar_gz(&[("SKILL.md", &*skill("one")), ("x/y.txt", "y")]);
        let document = skill("two");
        let server = site(vec![
            page(
                INDEX,
                index(&[
                    entry("one", "archive", "one.tar.gz", &archive),
                    entry("two", "skill-md", "/two/SKILL.md", document.as_bytes()),
                ]),
            ),
            page("/.well-known/agent-skills/one.tar.gz", archive),
            page("/two/SKILL.md", document),
        ]);
        let place = Place::new();
        let tree = fetch(&place.fetcher(), &of(&server, "/")).unwrap();
        assert_eq!(paths(&tree), ["one/SKILL.md", "one/x/y.txt", "two/SKILL.md"]);
        assert_eq!(tree.notes, [""; 0]);
        let one = with_skills(of(&server, "/"), &["one"]);
        let tree = fetch(&place.fetcher(), &one).unwrap();
        assert_eq!(paths(&tree), ["one/SKILL.md", "one/x/y.txt"]);
        let before = server.connections();
        assert_eq!(fetch(&place.fetcher(), &one).unwrap(), tree);
        assert_eq!(server.connections(), before + 1);
        let newest = wait(place.fetcher().newest(&one)).unwrap();
        assert_eq!(newest.version, tree.version);
        let locked = Pin::Version(newest.version.unwrap());
        let offline = place.fetcher().with_offline(true);
        assert_eq!(fetch_pinned(&offline, &one, locked).unwrap(), tree);
        let other = Pin::Version(FileDigest::of(b"older").to_string());
        let error = fetch_pinned(&place.fetcher(), &one, other).unwrap_err();
        assert!(matches!(error, FetchPackageError::Moved { .. }), "{}", told(&error));
    }

    #[test]
    fn an_older_index_lists_files() {
        let server =
            site(vec![
            page("/.well-known/skills/index.json", json!({ "skills": [
                { "name": "one", "description": "d", "files": ["SKILL.md", "scripts/a b.sh"] },
                { "name": "two", "description": "d", "files": ["SKILL.md", "../../secret"] },
                { "name": "three", "description": "d", "files": ["a"] },
            ]}).to_string()),
            page("/.well-known/skills/one/SKILL.md", skill("one")),
            page("/.well-known/skills/one/scripts/a%20b.sh", "#!/bin/sh\n"),
            page("/secret", "s"),
        ]);
        let place = Place::new();
        let tree = fetch(&place.fetcher(), &of(&server, "/")).unwrap();
        assert_eq!(paths(&tree), ["one/SKILL.md", "one/scripts/a b.sh"]);
        assert_eq!(tree.notes.len(), 2, "{:?}", tree.notes);
        assert!(tree.notes[0].contains("`two` was left out"), "{:?}", tree.notes);
    }

    #[test]
    fn one_bad_entry_is_reported_and_the_others_are_used() {
        let document = skill("good");
        let bytes = document.as_bytes();
        let mut entries = vec![
            entry("good", "skill-md", "/good.md", bytes),
            entry("wrong", "skill-md", "/good.md", b"other"),
            entry("gone", "skill-md", "/gone.md", bytes),
            entry("../up", "skill-md", "/good.md", bytes),
            entry("good", "skill-md", "/good.md", bytes),
            entry("file", "skill-md", "file:///etc/passwd", bytes),
            entry("private", "skill-md", "http://10.0.0.1/x", bytes),
            entry("kind", "program", "/good.md", bytes),
            json!("nonsense"),
        ];
        entries.push(json!({ "name": "bare" }));
        let server = site(vec![page(INDEX, index(&entries)), page("/good.md", document.clone())]);
        let place = Place::new();
        let tree = fetch(&place.fetcher(), &of(&server, "/")).unwrap();
        assert_eq!(paths(&tree), ["good/SKILL.md"]);
        assert_eq!(tree.notes.len(), 9, "{:#?}", tree.notes);
        let asked = with_skills(of(&server, "/"), &["wrong"]);
        let error = fetch(&place.fetcher(), &asked).unwrap_err();
        assert!(matches!(error, FetchPackageError::WrongDigest { .. }), "{}", told(&error));
        let asked = with_skills(of(&server, "/"), &["private"]);
        let error = told(&fetch(&place.fetcher(), &asked).unwrap_err());
        assert!(error.contains("leads out of"), "{error}");
        let asked = with_skills(of(&server, "/"), &["god"]);
        let error = told(&fetch(&place.fetcher(), &asked).unwrap_err());
        assert!(error.contains("did you mean `good`?"), "{error}");
    }

    #[test]
    fn entries_stay_in_the_folder_of_their_site() {
        let document = skill("a");
        let server = site(vec![
            page(
                &format!("/team{INDEX}"),
                index(&[entry("a", "skill-md", "/other/SKILL.md", document.as_bytes())]),
            ),
            page("/other/SKILL.md", document),
        ]);
        let place = Place::new();
        let error = told(&fetch(&place.fetcher(), &of(&server, "/team")).unwrap_err());
        assert!(error.contains("leads out of"), "{error}");
    }

    #[test]
    fn the_index_of_a_whole_site_is_not_that_of_a_folder() {
        let server = site(vec![page(INDEX, index(&[]))]);
        let place = Place::new();
        let error = told(&fetch(&place.fetcher(), &of(&server, "/team")).unwrap_err());
        assert!(error.contains("its index is of all of the site"), "{error}");
    }

    #[test]
    fn a_site_without_an_index_may_be_a_skill_itself() {
        let server = site(vec![page("/pdf", skill("pdf")), page("/page", "<html></html>")]);
        let place = Place::new();
        let tree = fetch(&place.fetcher(), &of(&server, "/pdf")).unwrap();
        assert_eq!(paths(&tree), ["SKILL.md"]);
        for path in ["/page", "/none"] {
            let error = told(&fetch(&place.fetcher(), &of(&server, path)).unwrap_err());
            assert!(error.contains("has no skills"), "{error}");
        }
    }

    #[test]
    fn an_index_that_is_not_one_is_an_error() {
        let place = Place::new();
        let huge = format!("{{\"skills\":[\"{}\"]}}", "x".repeat(5 << 20));
        for (body, part) in [
            ("{\"skills\": 7}".to_owned(), "cannot be understood"),
            ("{".to_owned(), "cannot be understood"),
            ("{\"$schema\":\"https://example.com/9\",\"skills\":[]}".to_owned(), "is unknown"),
            (huge, "has more than 4 MiB"),
        ] {
            let server = site(vec![page(INDEX, body)]);
            let error = told(&fetch(&place.fetcher(), &of(&server, "/")).unwrap_err());
            assert!(error.contains(part), "{error}");
        }
    }
}

mod registries_that_speak_clawhub {
    use std::sync::{Arc, Mutex};

    use prowess_packages::{FetchPackageError, FileDigest, Pin, SkillSource, SourceKind};
    use prowess_testing::server::{Server, answer};
    use serde_json::{Value, json};

    use crate::hosts::*;

    /// A registry with one skill, `@ann/pdf`, of versions 1.0.0 and 1.1.0.
    struct Registry {
        server: Server,
        moderation: Arc<Mutex<Value>>,
    }

    fn registry() -> Registry {
        let moderation = Arc::new(Mutex::new(Value::Null));
        let own = moderation.clone();
        let server = Server::new(move |asked, client| {
            let target = asked.line.split(' ').nth(1).unwrap();
            let target = url(&format!("http://x{target}"));
            let query = |name: &str| {
                let found = target.query_pairs().find(|it| it.0 == name);
                found.map(|it| it.1.into_owned())
            };
            let owner = query("ownerHandle");
            let text = |version: &str| format!("{}{version}", skill("pdf"));
            let version = |version: &str| {
                let digest = FileDigest::of(text(version).as_bytes()).to_string();
                let digest =
                    if version == "0.9.0" { "0".repeat(64) } else { digest[7..].to_owned() };
                json!({ "version": { "version": version, "createdAt": 1_700_000_000_000_u64,
                    "files": [{ "path": "SKILL.md", "size": 1, "sha256": digest }] } })
            };
            let (status, body) = match target.path() {
                "/.well-known/clawhub.json" => {
                    ("200 OK", json!({ "apiBase": "/hub/api/v1" }).to_string().into_bytes())
                }
                "/hub/api/v1/skills/two" => (
                    "409 Conflict",
                    json!({ "code": "AMBIGUOUS_SKILL_SLUG",
                    "message": "several", "slug": "two", "matches": [
                        { "ownerHandle": "ann", "slug": "two", "ref": "@ann/two", "url": "x" },
                        { "ownerHandle": "bob", "slug": "two", "ref": "@bob/two", "url": "x" },
                    ] })
                    .to_string()
                    .into_bytes(),
                ),
                "/hub/api/v1/skills/gone" => ("410 Gone", b"removed by its author".to_vec()),
                "/hub/api/v1/skills/new" => ("423 Locked", b"being scanned".to_vec()),
                "/hub/api/v1/skills/bad" => ("403 Forbidden", b"hidden by a moderator".to_vec()),
                "/hub/api/v1/skills/pdf" if owner.as_deref().is_none_or(|it| it == "ann") => (
                    "200 OK",
                    json!({
                        "skill": { "slug": "pdf", "displayName": "PDF", "stats": {},
                            "tags": { "latest": "1.1.0", "stable": "1.0.0" } },
                        "latestVersion": { "version": "1.1.0", "createdAt": 1_700_000_000_000_u64 },
                        "owner": { "handle": "ann" },
                        "moderation": *own.lock().unwrap(),
                    })
                    .to_string()
                    .into_bytes(),
                ),
                "/hub/api/v1/skills/pdf/versions" => (
                    "200 OK",
                    json!({ "items": [
                    { "version": "1.1.0" }, { "version": "1.0.0" } ] })
                    .to_string()
                    .into_bytes(),
                ),
                "/hub/api/v1/skills/pdf/versions/0.8.0" => {
                    ("410 Gone", b"yanked: leaks keys".to_vec())
                }
                path if path.starts_with("/hub/api/v1/skills/pdf/versions/") => {
                    match path.rsplit('/').next().unwrap() {
                        it @ ("1.0.0" | "1.1.0" | "0.9.0") => {
                            ("200 OK", version(it).to_string().into_bytes())
                        }
                        _ => ("404 Not Found", b"no such version".to_vec()),
                    }
                }
                "/hub/api/v1/download" => {
                    let version = query("version").unwrap();
                    let body = text(&version);
                    ("200 OK", zip(&[("SKILL.md", &*body), ("_meta.json", "{}")]))
                }
                "/hub/api/v1/search" => (
                    "200 OK",
                    json!({ "results": [
                    { "score": 3.5, "slug": "pdf", "displayName": "PDF", "summary": "Reads PDFs",
                      "version": "1.1.0", "ownerHandle": "ann", "downloads": 7 },
                    { "score": 1.0, "slug": "../evil" },
                    { "score": 0.5, "name": "jfrog-like", "description": "d" },
                ] })
                    .to_string()
                    .into_bytes(),
                ),
                _ => ("404 Not Found", b"nothing here".to_vec()),
            };
            client.write_all(&bytes(status, "", &body))
        });
        Registry { server, moderation }
    }

    impl Registry {
        fn source(&self, owner: Option<&str>, slug: &str, version: Option<&str>) -> SkillSource {
            source(SourceKind::ClawHub {
                registry: Some(url(&self.server.url(""))),
                owner: owner.map(str::to_owned),
                slug: slug.to_owned(),
                version: version.map(str::to_owned),
            })
        }

        fn failure(&self, source: &SkillSource) -> FetchPackageError {
            fetch(&Place::new().fetcher(), source).unwrap_err()
        }
    }

    #[test]
    fn the_latest_version_is_fetched_and_verified() {
        let registry = registry();
        let place = Place::new();
        let source = registry.source(Some("ann"), "pdf", None);
        let tree = fetch(&place.fetcher(), &source).unwrap();
        assert_eq!(paths(&tree), ["SKILL.md"]);
        assert_eq!(tree.version.as_deref(), Some("1.1.0"));
        assert_eq!(tree.published, Some(1_700_000_000));
        assert_eq!(tree.warning, None);
        let newest = wait(place.fetcher().newest(&source)).unwrap();
        assert_eq!(newest.version, tree.version);
        let error = registry.failure(&registry.source(Some("ann"), "pdf", Some("0.9.0")));
        assert!(matches!(error, FetchPackageError::WrongDigest { .. }), "{}", told(&error));
    }

    #[test]
    fn versions_and_tags_can_be_named() {
        let registry = registry();
        let place = Place::new();
        for named in ["1.0.0", "stable"] {
            let source = registry.source(None, "pdf", Some(named));
            let tree = fetch(&place.fetcher(), &source).unwrap();
            assert_eq!(tree.version.as_deref(), Some("1.0.0"), "{named}");
        }
        let error = told(&registry.failure(&registry.source(None, "pdf", Some("2.0.0"))));
        assert!(error.contains("has no version `2.0.0`"), "{error}");
        assert!(error.contains("there are `1.1.0`, `1.0.0`"), "{error}");
    }

    #[test]
    fn a_locked_version_comes_from_the_cache() {
        let registry = registry();
        let place = Place::new();
        let source = registry.source(Some("ann"), "pdf", None);
        let pin = Pin::Version("1.0.0".to_owned());
        let tree = fetch_pinned(&place.fetcher(), &source, pin.clone()).unwrap();
        assert_eq!(tree.version.as_deref(), Some("1.0.0"));
        let offline = place.fetcher().with_offline(true);
        assert_eq!(fetch_pinned(&offline, &source, pin).unwrap(), tree);
        let error = fetch(&offline, &source).unwrap_err();
        assert!(matches!(error, FetchPackageError::Offline { .. }), "{}", told(&error));
    }

    #[test]
    fn a_name_of_several_owners_is_a_choice() {
        let registry = registry();
        let error = registry.failure(&registry.source(None, "two", None));
        assert!(
            told(&error).contains("choose one of `clawhub:ann/two`, `clawhub:bob/two`"),
            "{}",
            told(&error)
        );
    }

    #[test]
    fn what_a_registry_holds_back_is_told_with_its_reason() {
        let registry = registry();
        for (slug, version, part) in [
            ("gone", None, "was withdrawn from its registry: removed by its author"),
            ("new", None, "is not available yet: being scanned"),
            ("bad", None, "is blocked by its registry: hidden by a moderator"),
            ("pdf", Some("0.8.0"), "was withdrawn from its registry: yanked: leaks keys"),
            ("none", None, "does not exist"),
        ] {
            let error = told(&registry.failure(&registry.source(None, slug, version)));
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn malware_is_refused_and_suspicion_is_shown() {
        let registry = registry();
        *registry.moderation.lock().unwrap() = json!({ "isSuspicious": true,
            "isMalwareBlocked": false, "verdict": "suspicious", "summary": "Sends files away" });
        let source = registry.source(None, "pdf", None);
        let tree = fetch(&Place::new().fetcher(), &source).unwrap();
        assert_eq!(tree.warning.as_deref(), Some("Sends files away"));
        *registry.moderation.lock().unwrap() =
            json!({ "isSuspicious": true, "isMalwareBlocked": true, "verdict": "malicious" });
        let error = told(&registry.failure(&source));
        assert!(error.contains("is blocked by its registry"), "{error}");
    }

    #[test]
    fn an_outage_is_never_an_empty_search() {
        let registry = registry();
        let place = Place::new();
        let named = url(&registry.server.url(""));
        let found = wait(place.fetcher().search(Some(&named), "pdf files", 10)).unwrap();
        assert_eq!(found.len(), 2);
        assert_eq!((&*found[0].slug, found[0].owner.as_deref()), ("pdf", Some("ann")));
        assert!(registry.server.last().line.contains("q=pdf+files&limit=10"));
        for broken in ["500 Broken", "404 Not Found"] {
            let server = Server::saying(answer(broken, "", "out of order"));
            let named = url(&server.url("/"));
            assert!(wait(place.fetcher().search(Some(&named), "pdf", 10)).is_err());
        }
        let page = Server::saying(answer("200 OK", "", "<html></html>"));
        assert!(wait(place.fetcher().search(Some(&url(&page.url("/"))), "pdf", 10)).is_err());
    }
}

mod packages_of_npm {
    use base64::{Engine as _, prelude::BASE64_STANDARD};
    use prowess_packages::{FetchPackageError, PackageFetcher, SkillSource, SourceKind};
    use prowess_testing::server::Server;
    use serde_json::json;
    use sha2::{Digest as _, Sha512};

    use crate::hosts::*;

    fn of(range: Option<&str>) -> SkillSource {
        source(SourceKind::Npm { name: "@team/pdf".to_owned(), range: range.map(str::to_owned) })
    }

    /// Starts a registry; `tarball` makes the URL of a version.
    fn registry(tarball: impl Fn(&str, &str) -> String + Send + Sync + 'static) -> Server {
        Server::new(move |asked, client| {
            let target = asked.line.split(' ').nth(1).unwrap();
            let host = asked.header("host").unwrap().trim();
            let archive = |version: &str| {
                tar_gz(&[("package/SKILL.md", &*skill(version)), ("package/package.json", "{}")])
            };
            if target == "/@team%2fpdf" {
                let mut versions = serde_json::Map::new();
                for version in ["1.0.0", "1.2.0", "2.0.0", "3.0.0-beta.1"] {
                    let sum = BASE64_STANDARD.encode(Sha512::digest(archive(version)));
                    let mut row = json!({ "dist": { "tarball": tarball(host, version),
                        "integrity": format!("sha512-{sum}") } });
                    if version == "1.0.0" {
                        row["deprecated"] = json!("use 1.2");
                    }
                    versions.insert(version.to_owned(), row);
                }
                let body = json!({ "name": "@team/pdf", "versions": versions,
                    "dist-tags": { "latest": "2.0.0", "next": "3.0.0-beta.1" },
                    "time": { "2.0.0": "2023-11-14T22:13:20.000Z" } });
                return client.write_all(&bytes("200 OK", "", body.to_string().as_bytes()));
            }
            match target.strip_prefix("/files/") {
                Some(version) => client.write_all(&bytes("200 OK", "", &archive(version))),
                None => client.write_all(&bytes("404 Not Found", "", b"{\"error\":\"no\"}")),
            }
        })
    }

    fn honest() -> Server {
        registry(|host, version| format!("http://{host}/files/{version}"))
    }

    fn fetcher(place: &Place, server: &Server) -> PackageFetcher {
        place.fetcher().with_npm_registry(&url(&server.url("")))
    }

    #[test]
    fn versions_tags_and_ranges_can_be_named() {
        let server = honest();
        let place = Place::new();
        for (range, version) in [
            (None, "2.0.0"),
            (Some("^1.0.0"), "1.2.0"),
            (Some("next"), "3.0.0-beta.1"),
            (Some("1.0.0"), "1.0.0"),
        ] {
            let tree = fetch(&fetcher(&place, &server), &of(range)).unwrap();
            assert_eq!(tree.version.as_deref(), Some(version));
            assert_eq!(paths(&tree), ["SKILL.md", "package.json"]);
            assert_eq!(text(&tree, "SKILL.md"), skill(version));
            assert_eq!(tree.notes.len(), usize::from(version == "1.0.0"), "{:?}", tree.notes);
        }
        let newest = wait(fetcher(&place, &server).newest(&of(None))).unwrap();
        assert_eq!(
            (newest.version.as_deref(), newest.published),
            (Some("2.0.0"), Some(1_700_000_000))
        );
        let error = told(&fetch(&fetcher(&place, &server), &of(Some("^4"))).unwrap_err());
        assert!(
            error.contains("has no version `^4` (there are `3.0.0-beta.1`, `2.0.0`"),
            "{error}"
        );
    }

    #[test]
    fn bytes_with_another_digest_are_refused() {
        let server = registry(|host, _| format!("http://{host}/files/other"));
        let place = Place::new();
        let error = fetch(&fetcher(&place, &server), &of(None)).unwrap_err();
        assert!(matches!(error, FetchPackageError::WrongDigest { .. }), "{}", told(&error));
    }

    #[test]
    fn archives_are_at_the_registry() {
        let place = Place::new();
        for elsewhere in
            ["http://10.0.0.1/x.tgz", "file:///etc/passwd", "https://example.com/x.tgz"]
        {
            let server = registry(move |_, _| elsewhere.to_owned());
            let error = fetch(&fetcher(&place, &server), &of(None)).unwrap_err();
            assert!(matches!(error, FetchPackageError::Refused { .. }), "{}", told(&error));
        }
    }

    #[test]
    fn a_package_that_is_not_there() {
        let place = Place::new();
        let missing = source(SourceKind::Npm { name: "nothing".to_owned(), range: None });
        let error = told(&fetch(&fetcher(&place, &honest()), &missing).unwrap_err());
        assert!(error.contains("`npm:nothing` does not exist"), "{error}");
        let bad = source(SourceKind::Npm { name: "../x".to_owned(), range: None });
        assert!(fetch(&fetcher(&place, &honest()), &bad).is_err());
    }
}

mod folders_and_files_of_this_machine {
    use std::fs;

    use prowess_packages::SourceKind;

    use crate::hosts::*;

    #[test]
    fn they_are_copied_to_the_cache() {
        let place = Place::new();
        let folder = place.path("skill");
        fs::create_dir_all(folder.join(".git")).unwrap();
        fs::write(folder.join("SKILL.md"), skill("a")).unwrap();
        fs::write(folder.join(".git/config"), "x").unwrap();
        let tree = fetch(&place.fetcher(), &source(SourceKind::Folder(folder))).unwrap();
        assert_eq!(paths(&tree), ["SKILL.md"]);
        for (name, bytes) in [
            ("a.skill", zip(&[("a/SKILL.md", &*skill("a"))])),
            ("b.tgz", tar_gz(&[("SKILL.md", &*skill("a"))])),
            ("c.md", skill("a").into_bytes()),
        ] {
            fs::write(place.path(name), bytes).unwrap();
            let file = source(SourceKind::File(place.path(name)));
            assert_eq!(fetch(&place.fetcher(), &file).unwrap().digest, tree.digest, "{name}");
        }
    }

    #[test]
    fn what_is_not_there_is_named() {
        let place = Place::new();
        for kind in [SourceKind::Folder, SourceKind::File] {
            let error = fetch(&place.fetcher(), &source(kind(place.path("none")))).unwrap_err();
            assert!(told(&error).ends_with("none` does not exist"), "{}", told(&error));
        }
    }
}

mod progress_is_counted_and_a_stop_leaves_nothing {
    use prowess_testing::server::Server;

    use crate::hosts::*;

    #[test]
    fn bytes_and_files_are_counted() {
        let place = Place::new();
        let repository = place.repository("r");
        repository.skill("a", "a").skill("b", "b").commit();
        let fetcher = place.fetcher();
        fetch(&fetcher, &repository.source()).unwrap();
        let counts = fetcher.progress().counts();
        assert_eq!((counts.files, counts.total_files), (2, 2));
        assert!(counts.requests > 0);
        let body = skill("a");
        let server = site(vec![page("/a", body.clone())]);
        let fetcher = place.fetcher();
        let source = source(prowess_packages::SourceKind::Download(url(&server.url("/a"))));
        fetch(&fetcher, &source).unwrap();
        let counts = fetcher.progress().counts();
        assert_eq!((counts.bytes, counts.total_bytes), (body.len() as u64, body.len() as u64));
    }

    #[test]
    fn dropping_it_ends_git_and_removes_what_came() {
        let place = Place::new();
        let (asked, was_asked) = std::sync::mpsc::channel();
        let (left, has_left) = std::sync::mpsc::channel();
        let server = Server::new(move |_, client| {
            let _ = asked.send(());
            // Until the client is gone.
            while client.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").is_ok() {
                std::thread::yield_now();
            }
            let _ = left.send(());
            Ok(())
        });
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let fetcher = place.fetcher();
        let source = git_source(&server.url("/r"), None, None);
        let fetching = runtime.spawn(async move { fetcher.fetch(&source, None).await.is_ok() });
        was_asked.recv().unwrap();
        fetching.abort();
        assert!(runtime.block_on(fetching).is_err());
        has_left.recv().unwrap();
        drop(runtime);
        assert_eq!(place.left_over(), [""; 0]);
    }
}
