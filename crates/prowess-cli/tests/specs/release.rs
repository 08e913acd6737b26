//! Getting the program: its version, the install script, and what a release is made of.

use std::{fs, os::unix::fs::MetadataExt as _, path::Path};

use crate::{
    server::Server,
    world::{Ran, World},
};

const TARGET: &str = "x86_64-unknown-linux-musl";

/// Returns the folder of the workspace.
fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// Returns the value of a key in the manifest of the workspace.
fn of_workspace(key: &str) -> String {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let value = manifest.lines().find_map(|it| it.strip_prefix(&format!("{key} = \"")));
    value.unwrap().trim_end_matches('"').to_owned()
}

mod the_program_says_what_it_is {
    use super::*;

    #[test]
    fn the_version_names_the_commit_and_the_platform() {
        let world = World::new();
        let document = world.run(["--version", "--json"]).json();
        assert_eq!(document, world.run(["--json", "-V"]).json());
        assert_eq!(document["version"], env!("CARGO_PKG_VERSION"));
        let platform = document["platform"].as_str().unwrap();
        assert!(platform.starts_with(std::env::consts::ARCH), "{platform}");
        let features = document["features"].as_array().unwrap();
        assert!(features.iter().any(|it| it == "mcp") && features.iter().all(|it| it != "default"));
        let line = world.run(["--version"]);
        assert_eq!(line.code, Some(0));
        match document["commit"].as_str() {
            Some(commit) => {
                let date = document["date"].as_str().unwrap();
                // A later one may be checked out by now.
                let known = world.run_script(&format!(
                    "git -c safe.directory='*' -C '{}' log -1 --format='%H %cs' {commit}",
                    root().display()
                ));
                assert_eq!(known.stdout().trim(), format!("{commit} {date}"));
                let expected =
                    format!("prowess {} ({} {date})\n", env!("CARGO_PKG_VERSION"), &commit[..9]);
                assert_eq!(line.stdout(), expected);
            }
            None => {
                assert_eq!(line.stdout(), format!("prowess {}\n", env!("CARGO_PKG_VERSION")));
            }
        }
    }
}

/// Files of releases behind a local server, and a machine that installs them.
struct Machine {
    world: World,
    server: Server,
}

impl Machine {
    /// Publishes what a function has left in `assets/`, as release 1.2.3.
    fn new(make: impl FnOnce(&World)) -> Self {
        Self::of("1.2.3", make)
    }

    /// Publishes what a function has left in `assets/`, as release of this version.
    fn of(version: &str, make: impl FnOnce(&World)) -> Self {
        // Whatever the tested machine is, this one is known.
        let world = World::new()
            .file("bin/uname", "#!/bin/sh\n[ \"$1\" != -s ] && echo x86_64 || echo Linux\n");
        world.run_script("chmod +x bin/uname");
        make(&world);
        let (assets, given) = (world.path("assets"), format!("/download/v{version}/"));
        let server = Server::new(move |asked, client| {
            let path = asked.line.strip_prefix("GET ").unwrap();
            let name = ["/latest/download/", &given].iter().find_map(|it| path.strip_prefix(it));
            match name.and_then(|it| fs::read(assets.join(it)).ok()) {
                Some(bytes) => {
                    // What is called `.short` ends early.
                    let missing =
                        usize::from(assets.join(format!("{}.short", name.unwrap())).exists());
                    let length = bytes.len() + missing;
                    write!(
                        client,
                        "HTTP/1.1 200 OK\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
                    )?;
                    client.write_all(&bytes)
                }
                None => client.write_all(
                    b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
                ),
            }
        });
        Self { world, server }
    }

    /// Publishes an archive in which the program prints this version.
    fn publishing(version: &str) -> Self {
        Self::new(|world| archive(world, version, ""))
    }

    /// Runs the install script with more variables.
    fn install(&self, variables: &str) -> Ran {
        self.run("sh", variables)
    }

    fn run(&self, shell: &str, variables: &str) -> Ran {
        let script = root().join("packaging/install.sh");
        self.world.run_script(&format!(
            "env PATH=\"$PWD/bin:$PATH\" PROWESS_BASE_URL={} {variables} {shell} '{}'",
            self.server.url(""),
            script.display(),
        ))
    }

    /// Returns what the installed program prints.
    fn installed(&self) -> String {
        self.world.run_script("home/.local/bin/prowess").stdout().to_owned()
    }

    /// Asserts that the script fails with this message and leaves the program that was there.
    fn assert_refuses(&self, message: &str) {
        self.world.write("home/.local/bin/prowess", "#!/bin/sh\necho old\n");
        self.world.run_script("chmod +x home/.local/bin/prowess");
        let ran = self.install("");
        assert_eq!(ran.code, Some(1), "{}", ran.stderr);
        assert!(ran.stderr.contains(message), "no `{message}` in {}", ran.stderr);
        assert_eq!(self.installed(), "old\n");
        assert_eq!(self.files(), ["prowess"]);
    }

    /// Returns the names in the directory of the program.
    fn files(&self) -> Vec<String> {
        let entries = fs::read_dir(self.world.path("home/.local/bin")).unwrap();
        entries.map(|it| it.unwrap().file_name().into_string().unwrap()).collect()
    }
}

/// Makes an archive of release 1.2.3 after a script has changed its files, and the checksums.
fn archive(world: &World, version: &str, change: &str) {
    let made = world.run_script(&format!(
        "set -e
        mkdir -p assets staged/prowess-1.2.3-{TARGET}
        cd staged
        printf '#!/bin/sh\\necho \"prowess {version}\"\\n' > prowess-1.2.3-{TARGET}/prowess
        {change}
        tar -czPf ../assets/prowess-1.2.3-{TARGET}.tar.gz *
        cd ../assets
        sha256sum * > SHA256SUMS"
    ));
    assert_eq!(made.code, Some(0), "{}", made.stderr);
}

mod the_install_script_verifies_what_it_installs {
    use super::*;

    #[test]
    fn the_latest_release_or_a_given_one_is_installed() {
        let machine = Machine::publishing("1.2.3");
        let ran = machine.install("");
        assert_eq!((ran.code, ran.stdout()), (Some(0), ""), "{}", ran.stderr);
        assert_eq!(machine.installed(), "prowess 1.2.3\n");
        assert!(ran.stderr.contains("installed prowess 1.2.3 as "), "{}", ran.stderr);
        assert!(ran.stderr.contains("hint: add it to your PATH: export PATH="), "{}", ran.stderr);
        let asked: Vec<String> = machine.server.asked().into_iter().map(|it| it.line).collect();
        let archive = format!("GET /download/v1.2.3/prowess-1.2.3-{TARGET}.tar.gz");
        assert_eq!(asked, ["GET /latest/download/SHA256SUMS", &archive]);

        for given in ["1.2.3", "v1.2.3"] {
            let ran = machine
                .install(&format!("PROWESS_VERSION={given} PROWESS_INSTALL_DIR=\"$PWD/bin\""));
            assert_eq!(ran.code, Some(0), "{}", ran.stderr);
            assert!(!ran.stderr.contains("hint:"), "{}", ran.stderr);
            assert!(
                machine
                    .server
                    .asked()
                    .iter()
                    .any(|it| it.line == "GET /download/v1.2.3/SHA256SUMS")
            );
        }
        assert_eq!(machine.world.run_script("bin/prowess").stdout(), "prowess 1.2.3\n");
        let other = machine.install("PROWESS_VERSION=9.9.9");
        assert!(
            other.code == Some(1) && other.stderr.contains("/download/v9.9.9/SHA256SUMS"),
            "{}",
            other.stderr
        );
        let odd = machine.install("PROWESS_VERSION=../x");
        assert!(
            odd.code == Some(1) && odd.stderr.contains("`../x` is not a version"),
            "{}",
            odd.stderr
        );

        // A machine with nothing but what is needed, and wget.
        few_programs(&machine.world);
        machine.world.write("few/wget", "#!/bin/sh\nexec /usr/bin/curl -fsS -o \"$4\" \"$5\"\n");
        machine.world.run_script("chmod +x few/wget; rm bin/prowess home/.local/bin/prowess");
        let ran = machine.run("sh", "PATH=\"$PWD/few\"");
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert_eq!(machine.installed(), "prowess 1.2.3\n");
    }

    /// Makes links to the programs that the script needs, without those that download.
    fn few_programs(world: &World) {
        let all = "sh uname sed mkdir mktemp rm grep head tail cut tar gzip chmod mv cat sha256sum";
        let made = world.run_script(&format!(
            "set -e; mkdir few; for it in {all}; do ln -s \"$(PATH=\"$PWD/bin:$PATH\" command -v $it)\" few/$it; done"
        ));
        assert_eq!(made.code, Some(0), "{}", made.stderr);
    }

    #[test]
    fn a_second_install_replaces_the_program_in_one_step() {
        let machine = Machine::publishing("1.2.3");
        machine.world.write("home/.local/bin/prowess", "#!/bin/sh\necho old\n");
        let old = fs::File::open(machine.world.path("home/.local/bin/prowess")).unwrap();
        assert_eq!(machine.install("").code, Some(0));
        let new = fs::metadata(machine.world.path("home/.local/bin/prowess")).unwrap();
        assert_ne!(old.metadata().unwrap().ino(), new.ino());
        assert_eq!(
            (new.mode() & 0o777, machine.installed()),
            (0o755, "prowess 1.2.3\n".to_owned())
        );
        assert_eq!(std::io::read_to_string(old).unwrap(), "#!/bin/sh\necho old\n");
        assert_eq!(machine.files(), ["prowess"]);
    }

    #[test]
    fn a_damaged_download_is_not_installed() {
        let name = format!("prowess-1.2.3-{TARGET}.tar.gz");
        let published = || Machine::publishing("1.2.3");

        let short = published();
        short.world.write(format!("assets/{name}.short"), "");
        short.assert_refuses("ended early");
        let other = published();
        other.world.write(format!("assets/{name}"), "something else");
        other.assert_refuses(&format!("the checksum of `{name}` is wrong: expected "));
        let gone = published();
        gone.world.remove(&format!("assets/{name}"));
        gone.assert_refuses(&format!(
            "cannot download `{}/download/v1.2.3/{name}`",
            gone.server.url("")
        ));
        let unlisted = published();
        unlisted.world.write("assets/SHA256SUMS", "<html>Please log in</html>\n");
        unlisted.assert_refuses(&format!("this release has no archive for {TARGET}"));
        let none = published();
        none.world.remove("assets/SHA256SUMS");
        none.assert_refuses("/latest/download/SHA256SUMS`");

        let without = Machine::new(|it| {
            archive(it, "1.2.3", &format!("mv prowess-1.2.3-{TARGET} elsewhere"));
        });
        without.assert_refuses("does not contain the program");
        let program = format!("prowess-1.2.3-{TARGET}/prowess");
        let broken = Machine::new(|it| {
            archive(
                it,
                "",
                &format!("printf '#!/bin/sh\\necho needs GLIBC_9 >&2; exit 1' > {program}"),
            );
        });
        broken.assert_refuses("the program does not run on this machine: needs GLIBC_9");
    }

    #[test]
    fn only_the_program_is_taken_out_of_an_archive() {
        let change =
            "echo stolen > ../outside; ln -s ../outside link; echo more > \"$(echo prowess-1.2.3-*)/more\"
            tar -czPf ../evil.tar.gz ../outside";
        let machine = Machine::new(|world| {
            archive(world, "1.2.3", change);
            let repacked = world.run_script(&format!(
                "set -e; cd staged; tar -czPf ../assets/prowess-1.2.3-{TARGET}.tar.gz ../outside link prowess-1.2.3-{TARGET}
                rm ../outside; cd ../assets; rm SHA256SUMS; sha256sum * > SHA256SUMS"
            ));
            assert_eq!(repacked.code, Some(0), "{}", repacked.stderr);
        });
        assert_eq!(machine.install("").code, Some(0));
        assert_eq!(
            (machine.files(), machine.installed()),
            (vec!["prowess".to_owned()], "prowess 1.2.3\n".to_owned())
        );
        assert!(
            !machine.world.path("outside").exists()
                && !machine.world.path("home/.local/outside").exists()
        );

        let program = format!("prowess-1.2.3-{TARGET}/prowess");
        let link = Machine::new(|it| {
            archive(it, "1.2.3", &format!("rm {program}; ln -s /bin/ls {program}"));
        });
        link.assert_refuses("does not contain prowess 1.2.3");
        Machine::publishing("1.2.4").assert_refuses("does not contain prowess 1.2.3");
    }

    #[test]
    fn a_platform_without_a_program_is_named() {
        let machine = Machine::publishing("1.2.3");
        for (system, processor, message) in [
            ("Linux", "i686", "there is no program for Linux on i686"),
            ("FreeBSD", "amd64", "there is no program for FreeBSD on x86_64"),
            ("MINGW64_NT-10.0", "x86_64", "does not install on Windows"),
        ] {
            let uname =
                format!("#!/bin/sh\n[ \"$1\" != -s ] && echo {processor} || echo {system}\n");
            machine.world.write("bin/uname", uname);
            let ran = machine.install("");
            assert_eq!(ran.code, Some(1), "{}", ran.stderr);
            assert!(
                ran.stderr.contains(message) && ran.stderr.contains("hint: "),
                "{}",
                ran.stderr
            );
        }
        assert_eq!(machine.server.connections(), 0);
        machine
            .world
            .write("bin/uname", "#!/bin/sh\n[ \"$1\" != -s ] && echo arm64 || echo Darwin\n");
        let ran = machine.install("");
        assert!(ran.stderr.contains("no archive for aarch64-apple-darwin"), "{}", ran.stderr);
    }

    #[test]
    fn what_a_machine_lacks_is_named() {
        let machine = Machine::publishing("1.2.3");
        few_programs(&machine.world);
        let ran = machine.run("sh", "PATH=\"$PWD/few\"");
        assert!(ran.stderr.contains("neither curl nor wget is installed"), "{}", ran.stderr);
        machine.world.write("file", "");
        let ran = machine.install("PROWESS_INSTALL_DIR=\"$PWD/file/bin\"");
        assert!(ran.stderr.contains("/file/bin`\nhint: set PROWESS_INSTALL_DIR"), "{}", ran.stderr);
        for address in [
            "http://example.org/x",
            "http://127.0.0.1.example.org:80/x",
            "ftp://localhost:1",
            "file:///etc",
        ] {
            let ran = machine.install(&format!("PROWESS_BASE_URL={address}"));
            assert_eq!(ran.code, Some(1));
            assert!(ran.stderr.contains("` is not an https address"), "{}", ran.stderr);
        }
        if of_workspace("repository").starts_with("https://example.com/") {
            let ran = machine.install("PROWESS_BASE_URL=");
            assert!(
                ran.code == Some(1) && ran.stderr.contains("there is no release yet"),
                "{}",
                ran.stderr
            );
        }
        assert_eq!(machine.server.connections(), 0);
        assert!(!machine.world.path("home/.local/bin/prowess").exists());
    }

    #[test]
    fn a_script_that_was_cut_off_does_nothing() {
        let machine = Machine::publishing("1.2.3");
        let script = fs::read(root().join("packaging/install.sh")).unwrap();
        // All but the last line, which calls `main`, and an end within it.
        let end = script.len() - "main \"$@\"\n".len();
        for length in (0..end).step_by(97).chain([end, end + 3]) {
            machine.world.write("part.sh", &script[..length]);
            machine
                .world
                .run_script(&format!("PROWESS_BASE_URL={} sh part.sh", machine.server.url("")));
        }
        assert_eq!(machine.server.connections(), 0);
        assert!(!machine.world.path("home/.local").exists());
    }

    #[test]
    fn who_built_the_archive_is_verified_where_that_is_possible() {
        let machine = Machine::publishing("1.2.3");
        let script = fs::read_to_string(root().join("packaging/install.sh")).unwrap();
        let own =
            script.replace("\nREPOSITORY=\n", "\nREPOSITORY=https://github.com/owner/prowess\n");
        assert_ne!(own, script);
        machine.world.write("install.sh", own);
        let install = |variables: &str| {
            machine.world.run_script(&format!(
                "env PATH=\"$PWD/bin:$PATH\" PROWESS_BASE_URL={} {variables} sh install.sh",
                machine.server.url("")
            ))
        };
        let gh = |token: u8, verified: u8| {
            let script = format!(
                "#!/bin/sh\ncase \"$*\" in\n*--help) echo ' --source-ref REF'; exit;;\n'auth token') exit {token};;\nesac\n\
                echo \"$*\" > asked\necho 'no attestation' >&2\nexit {verified}\n"
            );
            machine.world.write("bin/gh", script);
            machine.world.run_script("chmod +x bin/gh");
        };
        gh(0, 0);
        let ran = install("");
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert!(
            ran.stderr.contains("verified: built by the release workflow of owner/prowess"),
            "{}",
            ran.stderr
        );
        let asked = fs::read_to_string(machine.world.path("asked")).unwrap();
        let expected = "--repo owner/prowess --signer-workflow owner/prowess/.github/workflows/release.yml --source-ref refs/tags/v1.2.3";
        assert!(
            asked.starts_with("attestation verify ") && asked.trim().ends_with(expected),
            "{asked}"
        );

        machine.world.run_script("rm home/.local/bin/prowess");
        gh(0, 1);
        let ran = install("");
        assert!(
            ran.code == Some(1) && ran.stderr.contains("cannot be verified: no attestation"),
            "{}",
            ran.stderr
        );
        gh(1, 1);
        let ran = install("PROWESS_REQUIRE_PROVENANCE=1");
        assert!(
            ran.code == Some(1) && ran.stderr.contains("`gh` is not logged in"),
            "{}",
            ran.stderr
        );
        assert_eq!(machine.files(), Vec::<String>::new());
        let ran = install("");
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert!(ran.stderr.contains("was not verified: `gh` is not logged in"), "{}", ran.stderr);
    }
}

mod a_release_comes_from_a_commit_alone {
    use super::*;

    /// Copies a file of the workspace into `repo/`.
    fn copy(world: &World, path: &str) {
        world.write(format!("repo/{path}"), "");
        fs::copy(root().join(path), world.path(format!("repo/{path}"))).unwrap();
    }

    #[test]
    fn the_same_files_come_to_the_same_archive() {
        let world = World::new();
        let pack = |order: &str, time: &str, name: &str| {
            let made = world.run_script(&format!(
                "set -e; rm -rf staged; mkdir -p staged/man out
                for it in {order}; do echo $it > staged/$it; chmod 600 staged/$it; touch -d @{time} staged/$it; done
                SOURCE_DATE_EPOCH=1700000000 python3 '{}' staged {name} out; cat out/{name}.* | sha256sum",
                root().join("packaging/archive.py").display()
            ));
            assert_eq!(made.code, Some(0), "{}", made.stderr);
            made.stdout().to_owned()
        };
        for (name, program) in
            [("prowess-1-x-linux", "prowess"), ("prowess-1-x-windows-msvc", "prowess.exe")]
        {
            let first = pack(&format!("{program} man/a.1 LICENSE"), "1", name);
            assert_eq!(first, pack(&format!("LICENSE {program} man/a.1"), "900000000", name));
            assert_ne!(first, pack(&format!("other {program} man/a.1"), "1", name));
        }
        pack("prowess man/a.1 LICENSE", "1", "n-linux");
        let listed = world.run_script("TZ=UTC tar -tvzf out/n-linux.tar.gz --numeric-owner");
        let expected = [
            ("-rw-r--r--", "n-linux/LICENSE"),
            ("-rw-r--r--", "n-linux/man/a.1"),
            ("-rwxr-xr-x", "n-linux/prowess"),
        ];
        assert_eq!(listed.stdout().lines().count(), expected.len(), "{}", listed.stdout());
        for (line, (mode, name)) in listed.stdout().lines().zip(expected) {
            assert!(line.starts_with(mode) && line.ends_with(name), "{line}");
            assert!(line.contains(" 0/0 ") && line.contains(" 2023-11-14 22:13 "), "{line}");
        }
    }

    #[test]
    fn notes_are_cut_from_the_changelog() {
        let world = World::new().file(
            "repo/CHANGELOG.md",
            "# Changelog\n\n## 1.1.0 (unreleased)\n\nNew.\n\n## 1.0.0 - 2026-01-02\n\n### Fixed\n- A.\n\n## 0.9.0\n\nOld.\n",
        );
        copy(&world, "packaging/notes");
        let notes = |version: &str| world.run_script(&format!("repo/packaging/notes {version}"));
        assert_eq!(notes("1.0.0").stdout(), "\n### Fixed\n- A.\n\n");
        assert_eq!(notes("0.9.0").stdout(), "\nOld.\n");
        for other in ["1.0", "2.0.0", "1.0.0x", "''"] {
            let ran = notes(other);
            assert_eq!((ran.code, ran.stdout()), (Some(1), ""), "{other}");
            assert!(ran.stderr.contains("error: CHANGELOG.md has no section"), "{}", ran.stderr);
        }
    }

    #[test]
    fn a_program_that_has_grown_is_pointed_out() {
        let world = World::new()
            .file("repo/Cargo.toml", "version = \"0.3.0\"\n")
            .file(
                "repo/docs/release-sizes.md",
                "| 0.1.0 | t | 1 | 1 |\n| 0.2.0 | t | 1000 | 3000 |\n",
            )
            .sparse("repo/out/prowess-0.3.0-t.tar.gz", 1100);
        copy(&world, "packaging/sizes");
        let compare = |program: &str, variables: &str| {
            world.write("repo/out/t.size", format!("t {program}\n"));
            world.run_script(&format!("cd repo && {variables} packaging/sizes out"))
        };
        let ran = compare("3300", "");
        assert_eq!(
            (ran.code, ran.stdout()),
            (Some(0), "| 0.3.0 | t | 1100 | 3300 |\n"),
            "{}",
            ran.stderr
        );
        let ran = compare("3301", "");
        assert_eq!(ran.code, Some(1));
        assert!(
            ran.stderr.contains("error: the program for t has grown from 3000 to 3301 bytes"),
            "{}",
            ran.stderr
        );
        assert_eq!(compare("3301", "ALLOW_GROWTH=1").code, Some(0));
        world.write("repo/docs/release-sizes.md", "");
        let ran = compare("3301", "");
        assert!(
            ran.code == Some(0) && ran.stderr.contains("no release of t to compare with"),
            "{}",
            ran.stderr
        );
    }

    #[test]
    fn a_version_that_is_not_ready_is_refused() {
        let world = World::new();
        copy(&world, "scripts/release");
        let release = |repository: &str, changelog: &str, arguments: &str| {
            let manifest = format!(
                "[workspace.package]\nversion = \"1.2.3\"\nrepository = \"{repository}\"\n"
            );
            world.write("repo/Cargo.toml", manifest);
            world.write("repo/CHANGELOG.md", changelog);
            let ran = world
                .run_script(&format!("cd repo && git init -q 2>&1; scripts/release {arguments}"));
            assert!(!world.path("repo/target").exists());
            assert_eq!(ran.code, Some(1), "{}", ran.stderr);
            ran.stderr
        };
        let (address, dated) = ("https://git.test/owner/prowess", "## 1.2.3 - 2026-01-02\n");
        for (repository, changelog, arguments, message) in [
            (address, dated, "1.2.4", "the version in Cargo.toml is 1.2.3, not 1.2.4"),
            ("https://example.com/x", dated, "1.2.3", "the repository has no public address"),
            (
                address,
                "## 1.2.3 (unreleased)\n",
                "1.2.3",
                "CHANGELOG.md does not say when 1.2.3 was released",
            ),
            (address, dated, "1.2.3", "there are changes that are not committed"),
            (address, dated, "", "no version was given"),
            (address, dated, "--dry", "unexpected argument `--dry`"),
        ] {
            let said = release(repository, changelog, arguments);
            assert!(said.contains(message) && said.contains("hint: "), "no `{message}` in {said}");
        }
    }

    #[test]
    fn the_address_of_the_repository_is_in_one_place() {
        let address = of_workspace("repository");
        let mut folders = vec![root().to_owned()];
        let mut found = Vec::new();
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                let name = path.file_name().unwrap().to_str().unwrap().to_owned();
                if path.is_dir() && !matches!(&*name, "target" | ".git" | "shared") {
                    folders.push(path);
                } else if path.is_file() && fs::read(&path).is_ok_and(|it| contains(&it, &address))
                {
                    found.push(path.strip_prefix(root()).unwrap().to_owned());
                }
            }
        }
        assert_eq!(found, [Path::new("Cargo.toml")]);
    }

    fn contains(bytes: &[u8], text: &str) -> bool {
        bytes.windows(text.len()).any(|it| it == text.as_bytes())
    }
}

mod the_action_and_the_hook_use_a_release {
    use super::*;

    #[test]
    fn a_checkout_takes_the_release_that_was_made_from_it() {
        let version = of_workspace("version");
        let checkout = |world: &World| {
            for path in [
                "scripts/hook",
                "packaging/released",
                "packaging/sources",
                "packaging/install.sh",
                "Cargo.toml",
            ] {
                world.write(format!("hook/{path}"), "");
                fs::copy(root().join(path), world.path(format!("hook/{path}"))).unwrap();
            }
            world.write("hook/Cargo.lock", "");
            world.write("hook/crates/a/src/lib.rs", "// the sources\n");
            // What a build would leave.
            let cargo = "#!/bin/sh\nmkdir -p target/release\nprintf '#!/bin/sh\\necho built \"$@\"\\n' > target/release/prowess\nchmod +x target/release/prowess\n";
            world.write("bin/cargo", cargo);
            let made = world.run_script(&format!(
                "set -e; chmod +x bin/cargo; mkdir -p assets staged/prowess-{version}-{TARGET}
                printf '#!/bin/sh\\n[ \"$1\" = --version ] && echo prowess {version} || echo released \"$@\"\\n' > staged/prowess-{version}-{TARGET}/prowess
                tar -C staged -czf assets/prowess-{version}-{TARGET}.tar.gz prowess-{version}-{TARGET}
                hook/packaging/sources > assets/prowess-{version}.sources
                cd assets; sha256sum * > SHA256SUMS"
            ));
            assert_eq!(made.code, Some(0), "{}", made.stderr);
        };
        let check = |machine: &Machine| {
            let url = machine.server.url("");
            machine.world.run_script(&format!(
                "PATH=\"$PWD/bin:$PATH\" PROWESS_BASE_URL={url} hook/scripts/hook --fix a/SKILL.md"
            ))
        };
        let same = Machine::of(&version, checkout);
        let ran = check(&same);
        assert_eq!(
            (ran.code, ran.stdout()),
            (Some(0), "released check --fix a/SKILL.md\n"),
            "{}",
            ran.stderr
        );
        // It is kept.
        let requests = same.server.connections();
        assert_eq!(check(&same).stdout(), "released check --fix a/SKILL.md\n");
        assert_eq!(same.server.connections(), requests);

        let other = Machine::of(&version, checkout);
        other.world.write("hook/crates/a/src/lib.rs", "// other sources\n");
        let ran = check(&other);
        assert_eq!(ran.stdout(), "built check --fix a/SKILL.md\n", "{}", ran.stderr);
        assert!(
            ran.stderr.contains(&format!("prowess {version} was made from other sources")),
            "{}",
            ran.stderr
        );
        assert!(ran.stderr.contains("note: building prowess"), "{}", ran.stderr);

        let none = Machine::of("9.9.9", checkout);
        let ran = check(&none);
        assert_eq!(ran.stdout(), "built check --fix a/SKILL.md\n", "{}", ran.stderr);
        assert!(ran.stderr.contains("cannot download"), "{}", ran.stderr);
    }

    #[test]
    #[cfg_attr(not(feature = "external"), ignore = "needs Python's YAML")]
    fn the_action_takes_a_release_or_builds() {
        let world = World::new();
        let script = root().join("scripts/try-action");
        let ran = world.run_script(&format!("/usr/bin/python3 '{}' \"$0\"", script.display()));
        assert_eq!(ran.code, Some(0), "{}{}", ran.stdout(), ran.stderr);
        let cases: Vec<&str> = ran.stdout().lines().filter_map(|it| it.split(':').next()).collect();
        let all =
            ["released", "a skill at fault", "no skills", "another commit", "a changed archive"];
        assert_eq!(cases, all);
    }
}
