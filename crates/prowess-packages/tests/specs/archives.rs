//! The scenarios of `specs/archives.md`.

use std::{
    fs,
    io::Cursor,
    path::Path,
    process::{Command, Stdio},
};

use prowess_packages::{
    ArchiveError, ArchiveFormat, ArchiveLimits, ContentDigest, UnpackOptions, UnpackedArchive,
    unpack, unpack_with,
};
use prowess_testing::world::World;

const ALL: [(&str, ArchiveFormat); 3] =
    [("zip", ArchiveFormat::Zip), ("tar", ArchiveFormat::Tar), ("gz", ArchiveFormat::TarGz)];

/// A function `make(kind, entries)` that packs tuples of a name, content and mode with the modules
/// of Python. A mode with a type makes an entry of that type.
const MAKE: &str = r#"
import io, stat, sys, tarfile, zipfile

def make(kind, entries, format=tarfile.GNU_FORMAT):
    out = io.BytesIO()
    if kind == "zip":
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as z:
            for name, content, mode in entries:
                info = zipfile.ZipInfo(name)
                info.filename = name
                info.external_attr = mode << 16
                info.compress_type = zipfile.ZIP_DEFLATED
                info.create_system = 3
                z.writestr(info, content)
    else:
        types = {stat.S_IFLNK: tarfile.SYMTYPE, stat.S_IFIFO: tarfile.FIFOTYPE,
                 stat.S_IFCHR: tarfile.CHRTYPE, stat.S_IFDIR: tarfile.DIRTYPE}
        with tarfile.open(fileobj=out, mode="w:gz" if kind == "gz" else "w", format=format) as t:
            for name, content, mode in entries:
                info = tarfile.TarInfo(name)
                info.name = name
                info.mode = mode & 0o7777
                kind_of = stat.S_IFMT(mode)
                if kind_of in types:
                    info.type = types[kind_of]
                    info.linkname = content.decode()
                    content = b""
                info.size = len(content)
                t.addfile(info, io.BytesIO(content))
    return out.getvalue()

def show(data):
    sys.stdout.buffer.write(data)
"#;

/// Runs Python, and returns what it writes.
fn python(script: &str) -> Vec<u8> {
    let script = format!("{MAKE}\n{script}");
    let ran = Command::new("python3")
        .args(["-W", "ignore", "-c", &script])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    ran.stdout
}

/// Makes an archive of entries, written in Python.
fn made(kind: &str, entries: &str) -> Vec<u8> {
    python(&format!("show(make({kind:?}, {entries}))"))
}

fn unpacked(
    archive: &[u8],
    format: ArchiveFormat,
    world: &World,
) -> Result<UnpackedArchive, ArchiveError> {
    unpacked_within(archive, format, world, &ArchiveLimits::default())
}

fn unpacked_within(
    archive: &[u8],
    format: ArchiveFormat,
    world: &World,
    limits: &ArchiveLimits,
) -> Result<UnpackedArchive, ArchiveError> {
    let folder = fresh(world);
    unpack(Cursor::new(archive), format, limits, &folder)
}

/// Unpacks as a repository is: without its wrapper, and without what cannot be used.
fn repository(archive: &[u8], format: ArchiveFormat, world: &World) -> UnpackedArchive {
    let options =
        UnpackOptions { strip_wrapper: true, leave_out: true, ..UnpackOptions::default() };
    unpack_with(Cursor::new(archive), format, &options, &fresh(world)).unwrap()
}

/// The folder that archives are unpacked into, now empty.
fn fresh(world: &World) -> std::path::PathBuf {
    let folder = world.path("out/draft");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn refused(result: Result<UnpackedArchive, ArchiveError>) -> String {
    match result.unwrap_err() {
        ArchiveError::Refused { reason, .. } => reason.to_owned(),
        other => panic!("{other:?}"),
    }
}

fn too_large(result: Result<UnpackedArchive, ArchiveError>) -> String {
    match result.unwrap_err() {
        ArchiveError::TooLarge { limit } => limit,
        other => panic!("{other:?}"),
    }
}

fn damaged(result: Result<UnpackedArchive, ArchiveError>) -> String {
    match result.unwrap_err() {
        ArchiveError::Damaged(error) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

fn paths(unpacked: &UnpackedArchive) -> Vec<&str> {
    unpacked.files.iter().map(|it| it.path.as_str()).collect()
}

/// Fails if there is anything but the folder that was unpacked into, or a link in it.
fn assert_confined(world: &World) {
    fn visit(folder: &Path) {
        for entry in fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let kind = entry.file_type().unwrap();
            assert!(kind.is_dir() || kind.is_file(), "{entry:?}");
            if kind.is_dir() {
                visit(&entry.path());
            }
        }
    }
    let beside: Vec<_> =
        fs::read_dir(world.path("out")).unwrap().map(|it| it.unwrap().file_name()).collect();
    assert_eq!(beside, ["draft"]);
    visit(&world.path("out/draft"));
}

mod an_archive_is_unpacked_as_it_was_packed {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn all_formats_of_the_same_files_have_one_digest() {
        let world = World::new();
        let entries = "[('SKILL.md', b'# a', 0o644), ('scripts/run.sh', b'#!/bin/sh', 0o755), \
                       ('data/x.bin', bytes(100000), 0o600), ('ünïcode/é.md', b'', 0o644)]";
        let digests = ALL.map(|(kind, format)| {
            let unpacked = unpacked(&made(kind, entries), format, &world).unwrap();
            let expected = ["SKILL.md", "data/x.bin", "scripts/run.sh", "ünïcode/é.md"];
            assert_eq!(paths(&unpacked), expected);
            assert_eq!(fs::read(world.path("out/draft/data/x.bin")).unwrap(), [0; 100_000]);
            ContentDigest::of(&unpacked.files)
        });
        assert_eq!(digests, [digests[0]; 3]);
    }

    #[test]
    fn of_the_permissions_only_the_executable_bit_is_kept() {
        let world = World::new();
        let entries = "[('a', b'', 0o4777), ('b', b'', 0o066), ('c', b'', 0o100)]";
        for (kind, format) in ALL {
            let unpacked = unpacked(&made(kind, entries), format, &world).unwrap();
            let executable: Vec<_> = unpacked.files.iter().map(|it| it.executable).collect();
            assert_eq!(executable, [true, false, true]);
            let modes = ["a", "b", "c"].map(|it| {
                let metadata = fs::metadata(world.path("out/draft").join(it)).unwrap();
                metadata.permissions().mode() & 0o7777
            });
            assert_eq!(modes, [0o755, 0o644, 0o755]);
        }
    }

    #[test]
    fn long_names_are_read_in_both_ways_in_which_tar_writes_them() {
        let world = World::new();
        for format in ["tarfile.GNU_FORMAT", "tarfile.PAX_FORMAT", "tarfile.USTAR_FORMAT"] {
            let entries = "[('d' * 90 + '/' + 'f' * 95, b'x', 0o644)]";
            let archive = python(&format!("show(make('tar', {entries}, {format}))"));
            let unpacked = unpacked(&archive, ArchiveFormat::Tar, &world).unwrap();
            assert_eq!(paths(&unpacked), [format!("{}/{}", "d".repeat(90), "f".repeat(95))]);
        }
    }

    #[test]
    fn an_archive_of_git_tells_its_commit_and_loses_its_wrapper() {
        let world = World::new()
            .file("repository/skills/a/SKILL.md", "# a")
            .file("repository/README.md", "read me");
        let git = |arguments: &[&str]| {
            let ran = Command::new("git")
                .args(["-c", "user.name=a", "-c", "user.email=a@b.c"])
                .args(arguments)
                .current_dir(world.path("repository"))
                .env("GIT_CONFIG_GLOBAL", "/dev/null")
                .output()
                .unwrap();
            assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
            ran.stdout
        };
        git(&["init", "-q"]);
        git(&["add", "."]);
        git(&["commit", "-qm", "first"]);
        let commit = String::from_utf8(git(&["rev-parse", "HEAD"])).unwrap();
        for (kind, format) in [
            ("tar.gz", ArchiveFormat::TarGz),
            ("zip", ArchiveFormat::Zip),
            ("tar", ArchiveFormat::Tar),
        ] {
            let archive =
                git(&["archive", "--prefix=repository-main/", &format!("--format={kind}"), "HEAD"]);
            let unpacked = repository(&archive, format, &world);
            assert_eq!(unpacked.comment.as_deref(), Some(commit.trim()));
            assert_eq!(paths(&unpacked), ["README.md", "skills/a/SKILL.md"]);
            let skill = world.path("out/draft/skills/a/SKILL.md");
            assert_eq!(fs::read_to_string(skill).unwrap(), "# a");
        }
    }

    #[test]
    fn a_wrapper_can_have_the_name_of_what_is_in_it() {
        let world = World::new();
        let archive = made("tar", "[('a/a/a', b'1', 0o644), ('a/b', b'2', 0o644)]");
        let unpacked = repository(&archive, ArchiveFormat::Tar, &world);
        assert_eq!(paths(&unpacked), ["a/a", "b"]);
        assert_eq!(fs::read(world.path("out/draft/a/a")).unwrap(), b"1");
        assert_eq!(fs::read_dir(world.path("out/draft")).unwrap().count(), 2);
    }

    #[test]
    fn without_a_wrapper_nothing_is_left_out_of_the_paths() {
        let world = World::new();
        for entries in ["[('a/b', b'', 0o644), ('c/d', b'', 0o644)]", "[('a', b'', 0o644)]"] {
            let archive = made("zip", entries);
            let strict = unpacked(&archive, ArchiveFormat::Zip, &world).unwrap();
            assert_eq!(repository(&archive, ArchiveFormat::Zip, &world).files, strict.files);
        }
    }

    #[test]
    fn what_only_macos_puts_into_archives_is_left_out() {
        let world = World::new();
        let entries = "[('__MACOSX/._SKILL.md', b'x', 0o644), ('SKILL.md', b'', 0o644), \
                       ('a/.DS_Store', b'x', 0o644), ('a/._b', b'x', 0o644)]";
        for (kind, format) in ALL {
            let unpacked = unpacked(&made(kind, entries), format, &world).unwrap();
            assert_eq!(paths(&unpacked), ["SKILL.md"]);
            assert_eq!(fs::read_dir(world.path("out/draft")).unwrap().count(), 1);
        }
    }

    #[test]
    fn archives_that_other_programs_write_in_their_own_way_are_read() {
        let world = World::new().file("in/SKILL.md", "# a").file("in/b/c.txt", "c");
        let inside = world.path("in");
        let ran = |program: &str, arguments: &[&str]| {
            let ran = Command::new(program).args(arguments).current_dir(&inside).output().unwrap();
            assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
            ran.stdout
        };
        // Names with `./` in front, and entries for folders.
        let archive = ran("tar", &["cz", "."]);
        let files = unpacked(&archive, ArchiveFormat::TarGz, &world).unwrap().files;
        // Sizes behind the content, and those for large files in each header.
        let streamed = python(
            "class Out(io.RawIOBase):\n\
             \x20   def writable(self): return True\n\
             \x20   def write(self, data): sys.stdout.buffer.write(data); return len(data)\n\
             with zipfile.ZipFile(Out(), 'w', zipfile.ZIP_DEFLATED) as z:\n\
             \x20   for name, content in [('SKILL.md', b'# a'), ('b/c.txt', b'c')]:\n\
             \x20       with z.open(name, 'w', force_zip64=True) as f: f.write(content)",
        );
        let streamed = unpacked(&streamed, ArchiveFormat::Zip, &world).unwrap().files;
        assert_eq!(streamed, files);
        assert_eq!(files.len(), 2);
    }

    #[test]
    fn the_first_bytes_tell_the_format_before_the_name_does() {
        use prowess_packages::format_of;
        for (kind, format) in ALL {
            let archive = made(kind, "[('a', b'', 0o644)]");
            assert_eq!(format_of("download", &archive), Some(format));
            assert_eq!(format_of("x.zip", &archive), Some(format));
        }
        assert_eq!(format_of("a.TGZ", b"?"), Some(ArchiveFormat::TarGz));
        assert_eq!(format_of("a.skill", b""), Some(ArchiveFormat::Zip));
        assert_eq!(format_of("SKILL.md", b"---\nname: a"), None);
    }
}

mod nothing_of_an_archive_is_outside_of_its_folder {
    use super::*;

    #[test]
    fn a_path_that_leads_out_is_refused() {
        let world = World::new();
        for name in ["../x", "/x", "a/../../x", "a/..", "..", "a\\..\\..\\x", "C:/x", "//x", "a//b"]
        {
            for (kind, format) in ALL {
                let entries = format!("[('SKILL.md', b'', 0o644), ({name:?}, b'x', 0o644)]");
                let result = unpacked(&made(kind, &entries), format, &world);
                assert!(matches!(result, Err(ArchiveError::Refused { .. })), "{name}: {result:?}");
                assert_confined(&world);
            }
        }
    }

    #[test]
    fn a_link_is_refused() {
        let world = World::new();
        let entries = "[('a', b'/etc/passwd', stat.S_IFLNK | 0o777)]";
        for (kind, format) in ALL {
            assert_eq!(refused(unpacked(&made(kind, entries), format, &world)), "a link");
        }
        let hard = python(
            "out = io.BytesIO()\n\
             with tarfile.open(fileobj=out, mode='w') as t:\n\
             \x20   info = tarfile.TarInfo('a'); info.type = tarfile.LNKTYPE; info.linkname = 'b'\n\
             \x20   t.addfile(info)\n\
             show(out.getvalue())",
        );
        assert_eq!(refused(unpacked(&hard, ArchiveFormat::Tar, &world)), "a hard link");
        assert_confined(&world);
    }

    #[test]
    fn a_file_behind_a_link_is_not_written_through_it() {
        let world = World::new();
        let entries = "[('a', b'..', stat.S_IFLNK | 0o777), ('a/x', b'x', 0o644)]";
        for (kind, format) in ALL {
            let unpacked = repository(&made(kind, entries), format, &world);
            assert_confined(&world);
            assert_eq!(unpacked.files.len(), 1);
            assert_eq!(unpacked.left_out.len(), 1, "{:?}", unpacked.left_out);
        }
    }

    #[test]
    fn devices_and_pipes_are_refused() {
        let world = World::new();
        for (kind, format) in ALL {
            for mode in ["stat.S_IFCHR", "stat.S_IFIFO"] {
                let archive = made(kind, &format!("[('a', b'', {mode} | 0o644)]"));
                assert_eq!(refused(unpacked(&archive, format, &world)), "a device or a pipe");
            }
        }
    }

    #[test]
    fn a_folder_that_is_not_empty_is_not_unpacked_into() {
        let world = World::new().file("out/draft/mine", "mine");
        let folder = world.path("out/draft");
        let archive = made("zip", "[('mine', b'theirs', 0o644)]");
        let result =
            unpack(Cursor::new(archive), ArchiveFormat::Zip, &ArchiveLimits::default(), &folder);
        assert!(matches!(result, Err(ArchiveError::Write { .. })));
        assert_eq!(fs::read(folder.join("mine")).unwrap(), b"mine");
    }

    #[test]
    fn in_a_repository_links_become_what_they_point_to() {
        let world = World::new();
        let entries = "[('r/skills/a/SKILL.md', b'# a', 0o755), \
                       ('r/.claude/skills', b'../skills', stat.S_IFLNK | 0o777), \
                       ('r/CLAUDE.md', b'skills/a/SKILL.md', stat.S_IFLNK | 0o777), \
                       ('r/out', b'../../etc', stat.S_IFLNK | 0o777), \
                       ('r/loop', b'loop', stat.S_IFLNK | 0o777), \
                       ('r/up', b'..', stat.S_IFLNK | 0o777), \
                       ('r/dead', b'nothing', stat.S_IFLNK | 0o777), \
                       ('r/abs', b'/etc', stat.S_IFLNK | 0o777)]";
        for (kind, format) in ALL {
            let unpacked = repository(&made(kind, entries), format, &world);
            let expected = [".claude/skills/a/SKILL.md", "CLAUDE.md", "skills/a/SKILL.md"];
            assert_eq!(paths(&unpacked), expected);
            assert!(unpacked.files.iter().all(|it| it.executable && it.size == 3));
            let mut left_out: Vec<_> =
                unpacked.left_out.iter().map(|it| (it.path.as_str(), it.reason)).collect();
            left_out.sort_unstable();
            assert_eq!(
                left_out,
                [
                    ("abs", "a link that leads out of the package"),
                    ("dead", "a link to nothing in the package"),
                    ("loop", "a link that leads to itself"),
                    ("out", "a link that leads out of the package"),
                    ("up", "a link to a folder that it is in"),
                ]
            );
            assert_confined(&world);
        }
    }

    #[test]
    fn links_that_multiply_end_at_the_limits() {
        let world = World::new();
        let archive = made(
            "tar",
            "[('d0/f', b'x', 0o644)] + [(f'd{n}/{side}', f'../d{n - 1}'.encode(), stat.S_IFLNK | 0o777) \
             for n in range(1, 30) for side in 'ab']",
        );
        let options = UnpackOptions {
            limits: ArchiveLimits { files: 1000, ..ArchiveLimits::default() },
            leave_out: true,
            ..UnpackOptions::default()
        };
        let result =
            unpack_with(Cursor::new(archive), ArchiveFormat::Tar, &options, &fresh(&world));
        assert_eq!(too_large(result), "1000 files and folders");
    }
}

mod a_name_means_the_same_file_on_every_system {
    use super::*;

    #[test]
    fn names_that_differ_only_in_case_or_form_are_refused() {
        let world = World::new();
        for (one, other) in [
            ("README.md", "readme.md"),
            ("Docs/a", "docs/b"),
            ("\u{e9}", "e\u{301}"),
            ("straße", "STRASSE"),
            ("same", "same"),
        ] {
            for (kind, format) in ALL {
                let entries = format!("[({one:?}, b'', 0o644), ({other:?}, b'', 0o644)]");
                let entries = entries.replace("\\u{", "\\u0").replace('}', "");
                let reason = refused(unpacked(&made(kind, &entries), format, &world));
                assert_eq!(
                    reason,
                    "a name that is there already, as it is or in another case or form"
                );
            }
        }
    }

    #[test]
    fn a_file_that_is_also_a_folder_is_refused() {
        let world = World::new();
        for entries in
            ["[('a', b'', 0o644), ('A/b', b'', 0o644)]", "[('a/b', b'', 0o644), ('a', b'', 0o644)]"]
        {
            for (kind, format) in ALL {
                let reason = refused(unpacked(&made(kind, entries), format, &world));
                assert_eq!(reason, "a name that is there already, as a file and as a folder");
            }
        }
    }

    #[test]
    fn names_that_a_system_takes_for_something_else_are_refused() {
        let world = World::new();
        for name in [
            "CON",
            "a/nul.txt",
            "com1",
            "a.",
            "a ",
            "a:b",
            "a\\b",
            "a\\nb",
            "a\\u202eb",
            "\\u200b",
            ".git/config",
            "a/.GIT/hooks/post-checkout",
            "git~1/config",
        ] {
            for (kind, format) in ALL {
                let archive = made(kind, &format!("[('{name}', b'', 0o644)]"));
                let result = unpacked(&archive, format, &world);
                assert!(matches!(result, Err(ArchiveError::Refused { .. })), "{name}: {result:?}");
            }
        }
    }

    #[test]
    fn the_message_shows_a_name_without_its_control_characters() {
        let world = World::new();
        let archive = made("tar", "[('a\\x1b[31m\\u202e' + 'x' * 500, b'', 0o644)]");
        let error = unpacked(&archive, ArchiveFormat::Tar, &world).unwrap_err().to_string();
        assert!(!error.contains(['\x1b', '\u{202e}']), "{error:?}");
        assert!(error.chars().count() < 400, "{error}");
    }

    #[test]
    fn in_a_repository_such_files_are_left_out_and_reported() {
        let world = World::new();
        let entries =
            "[('r/SKILL.md', b'', 0o644), ('r/skill.MD', b'', 0o644), ('r/aux.c', b'', 0o644)]";
        for (kind, format) in ALL {
            let unpacked = repository(&made(kind, entries), format, &world);
            assert_eq!(paths(&unpacked), ["SKILL.md"]);
            let left_out: Vec<_> = unpacked.left_out.iter().map(|it| it.path.as_str()).collect();
            assert_eq!(left_out, ["skill.MD", "aux.c"]);
        }
    }
}

mod an_archive_cannot_fill_the_disk {
    use super::*;

    /// Unpacks within limits that are small.
    fn limited(entries: &str, limits: ArchiveLimits) -> Vec<String> {
        let world = World::new();
        ALL.into_iter()
            .map(|(kind, format)| {
                too_large(unpacked_within(&made(kind, entries), format, &world, &limits))
            })
            .collect()
    }

    #[test]
    fn each_limit_holds_in_each_format() {
        let small = ArchiveLimits::default();
        let files = "[(f'{n}', b'12345678', 0o644) for n in range(20)]";
        assert_eq!(
            limited(files, ArchiveLimits { files: 19, ..small }),
            ["19 files and folders"; 3]
        );
        assert_eq!(limited(files, ArchiveLimits { unpacked: 159, ..small }), ["159 bytes"; 3]);
        assert_eq!(limited(files, ArchiveLimits { file: 7, ..small }), ["7 bytes in a file"; 3]);
        let packed = ArchiveLimits { packed: 50, ..small };
        assert_eq!(limited(files, packed), ["50 bytes before unpacking"; 3]);
        let world = World::new();
        for (kind, format) in ALL {
            let deep = made(kind, "[('a/' * 5 + 'b', b'', 0o644)]");
            let shallow = ArchiveLimits { depth: 4, ..small };
            let reason = refused(unpacked_within(&deep, format, &world, &shallow));
            assert_eq!(reason, "a path with too many folders");
            let short = ArchiveLimits { name: 10, ..small };
            let reason = refused(unpacked_within(&deep, format, &world, &short));
            assert_eq!(reason, "a path that is too long");
            let enough = ArchiveLimits { depth: 5, name: 11, files: 6, unpacked: 0, ..small };
            assert!(unpacked_within(&deep, format, &world, &enough).is_ok());
        }
    }

    #[test]
    fn folders_count_too() {
        let limits = ArchiveLimits { files: 9, ..ArchiveLimits::default() };
        let folders = "[(f'{n}/', b'', stat.S_IFDIR | 0o755) for n in range(10)]";
        assert_eq!(limited(folders, limits), ["9 files and folders"; 3]);
        let nested = "[('a/b/c/d/e/f/g/h/i/j', b'', 0o644)]";
        assert_eq!(limited(nested, limits), ["9 files and folders"; 3]);
    }

    #[test]
    fn a_file_that_unpacks_to_very_much_is_refused() {
        let world = World::new();
        for (kind, format) in [("zip", ArchiveFormat::Zip), ("gz", ArchiveFormat::TarGz)] {
            let archive = made(kind, "[('a', bytes(20 << 20), 0o644)]");
            assert_eq!(too_large(unpacked(&archive, format, &world)), "200 times its packed size");
        }
    }

    #[test]
    fn many_files_that_share_one_content_are_refused() {
        // Both entries of the list point to the same file.
        let archive = python(
            "data = make('zip', [('a', b'x' * 1000, 0o644), ('b', b'x' * 1000, 0o644)])\n\
             second = data.index(b'PK\\x01\\x02', data.index(b'PK\\x01\\x02') + 4)\n\
             show(data[:second + 42] + bytes(4) + data[second + 46:])",
        );
        let message = damaged(unpacked(&archive, ArchiveFormat::Zip, &World::new()));
        assert!(message.contains("overlap"), "{message}");
    }

    #[test]
    fn a_size_that_is_a_lie_does_not_help() {
        let world = World::new();
        let limits = ArchiveLimits { file: 100, ..ArchiveLimits::default() };
        // Both headers say 10 bytes, but there are 1,000.
        let archive = python(
            "data = make('zip', [('a', b'x' * 1000, 0o644)])\n\
             show(data.replace((1000).to_bytes(4, 'little'), (10).to_bytes(4, 'little')))",
        );
        damaged(unpacked_within(&archive, ArchiveFormat::Zip, &world, &limits));
        assert!(fs::read(world.path("out/draft/a")).unwrap().len() <= 10);
        // The header says nothing, and a record before it says how many there are.
        let archive = python(
            "out = io.BytesIO()\n\
             with tarfile.open(fileobj=out, mode='w', format=tarfile.PAX_FORMAT) as t:\n\
             \x20   info = tarfile.TarInfo('a'); info.size = 0; info.pax_headers = {'size': '1024'}\n\
             \x20   t.addfile(info)\n\
             show(out.getvalue())",
        );
        let message = damaged(unpacked(&archive, ArchiveFormat::Tar, &world));
        assert_eq!(message, "two sizes of one file");
    }

    #[test]
    fn a_name_of_a_gigabyte_is_not_read() {
        let archive = python(
            "out = io.BytesIO()\n\
             info = tarfile.TarInfo('././@LongLink'); info.type = b'L'; info.size = 1 << 30\n\
             show(info.tobuf(tarfile.GNU_FORMAT))",
        );
        let limit = too_large(unpacked(&archive, ArchiveFormat::Tar, &World::new()));
        assert_eq!(limit, "65536 bytes of a name");
    }
}

mod a_damaged_archive_is_not_half_a_package {
    use super::*;

    const ENTRIES: &str =
        "[('SKILL.md', b'# a skill' * 50, 0o644), ('b/run.sh', bytes(range(256)), 0o755)]";

    #[test]
    fn an_archive_that_is_cut_off_anywhere_fails() {
        let world = World::new();
        for (kind, format) in ALL {
            let archive = made(kind, ENTRIES);
            // A tar archive ends with two empty blocks, of which one is enough, and padding.
            let needed = if kind == "tar" { 512 * 5 } else { archive.len() };
            for length in (0..needed).step_by(if kind == "tar" { 64 } else { 1 }) {
                let result = unpacked(&archive[..length], format, &world);
                assert!(result.is_err(), "{kind} of {length} bytes: {result:?}");
            }
        }
    }

    #[test]
    fn something_behind_the_end_makes_it_damaged() {
        let world = World::new();
        for (kind, format) in ALL {
            let mut archive = made(kind, ENTRIES);
            archive.extend(b"more");
            damaged(unpacked(&archive, format, &world));
        }
        let mut first = b"#!/bin/sh\n".to_vec();
        first.extend(made("zip", ENTRIES));
        damaged(unpacked(&first, ArchiveFormat::Zip, &world));
    }

    #[test]
    fn a_changed_byte_is_noticed_wherever_there_is_a_checksum() {
        let world = World::new();
        for (kind, format) in [("zip", ArchiveFormat::Zip), ("gz", ArchiveFormat::TarGz)] {
            let archive = made(kind, ENTRIES);
            let original = unpacked(&archive, format, &world).unwrap();
            let contents = |it: &UnpackedArchive| -> Vec<_> {
                it.files.iter().map(|it| (it.path.clone(), it.digest)).collect()
            };
            let (mut noticed, mut harmless) = (0, 0);
            for at in 0..archive.len() {
                let mut changed = archive.clone();
                changed[at] ^= 0x5a;
                match unpacked(&changed, format, &world) {
                    Err(_) => noticed += 1,
                    // Times, modes and versions have no checksum in a zip archive.
                    Ok(it) => {
                        harmless += 1;
                        assert_eq!(contents(&it), contents(&original), "byte {at} of {kind}");
                    }
                }
            }
            assert!(noticed > 4 * harmless, "{kind}: {noticed} noticed, {harmless} harmless");
        }
    }

    #[test]
    fn headers_of_a_zip_archive_that_disagree_are_refused() {
        let world = World::new();
        let changed = |change: &str| {
            let script = format!("data = bytearray(make('zip', {ENTRIES}))\n{change}\nshow(data)");
            damaged(unpacked(&python(&script), ArchiveFormat::Zip, &world))
        };
        let differs = "a header does not agree with the list of files";
        // The name, the method, the checksum and the size before the content.
        assert_eq!(changed("data[30] ^= 1"), differs);
        assert_eq!(changed("data[8] ^= 8"), differs);
        assert_eq!(changed("data[14] ^= 1"), differs);
        assert_eq!(changed("data[22] ^= 1"), differs);
        // A second name in an extra field, which some programs prefer.
        let message = changed(
            "data = io.BytesIO()\n\
             with zipfile.ZipFile(data, 'w') as z:\n\
             \x20   info = zipfile.ZipInfo('a'); info.extra = b'\\x75\\x70\\x06\\0\\x01\\0\\0\\0\\0b'\n\
             \x20   z.writestr(info, b'')\n\
             data = data.getvalue()",
        );
        assert_eq!(message, "a header is malformed");
        // A file that is not in the list.
        let hidden = changed(
            "at = data.index(b'PK\\x01\\x02')\n\
             data[at:at] = data[:at]\n\
             end = len(data) - 22\n\
             offset = int.from_bytes(data[end + 16:end + 20], 'little') + at\n\
             data[end + 16:end + 20] = offset.to_bytes(4, 'little')",
        );
        assert_eq!(hidden, "there is something between entries");
    }

    #[test]
    fn what_cannot_be_read_is_refused_by_its_reason() {
        let world = World::new();
        let encrypted = python(&format!(
            "data = bytearray(make('zip', {ENTRIES}))\n\
             data[6] |= 1; data[data.index(b'PK\\x01\\x02') + 8] |= 1\nshow(data)"
        ));
        assert_eq!(refused(unpacked(&encrypted, ArchiveFormat::Zip, &world)), "an encrypted file");
        let method = python(
            "out = io.BytesIO()\n\
             with zipfile.ZipFile(out, 'w', zipfile.ZIP_LZMA) as z: z.writestr('a', b'a')\n\
             show(out.getvalue())",
        );
        let reason = refused(unpacked(&method, ArchiveFormat::Zip, &world));
        assert_eq!(reason, "a file that is packed by an unknown method");
        let sparse = python(
            "out = io.BytesIO()\n\
             with tarfile.open(fileobj=out, mode='w', format=tarfile.PAX_FORMAT) as t:\n\
             \x20   info = tarfile.TarInfo('a'); info.pax_headers = {'GNU.sparse.major': '1'}\n\
             \x20   t.addfile(info)\n\
             show(out.getvalue())",
        );
        assert_eq!(refused(unpacked(&sparse, ArchiveFormat::Tar, &world)), "a sparse file");
    }

    #[test]
    fn whatever_the_bytes_are_nothing_leaves_the_folder_or_its_limits() {
        let world = World::new();
        let limits = ArchiveLimits {
            packed: 1 << 20,
            unpacked: 20_000,
            file: 10_000,
            files: 20,
            depth: 4,
            ratio: 100,
            name: 100,
        };
        let entries = "[('a/b', b'x' * 3000, 0o644), ('../../x', b'y', 0o644), ('l', b'/etc', \
                       stat.S_IFLNK | 0o777), ('l/x', b'z' * 500, 0o644), ('.././x' * 5, b'', 0o644)]";
        let mut state = 2026_u64;
        let mut random = move |below: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % below
        };
        let mut unpacked_some = 0;
        for (kind, format) in ALL {
            let archive = made(kind, entries);
            for _ in 0..400 {
                let mut changed = archive.clone();
                for _ in 0..random(8) {
                    let at = random(changed.len());
                    match random(4) {
                        0 => changed[at] = random(256) as u8,
                        1 => drop(changed.remove(at)),
                        2 => changed.insert(at, b"/.\0\xff"[random(4)]),
                        _ => {
                            let end = (at + random(200)).min(changed.len());
                            let part = changed[at..end].to_vec();
                            let place = random(changed.len());
                            changed.splice(place..place, part);
                        }
                    }
                }
                let options =
                    UnpackOptions { limits, leave_out: true, strip_wrapper: random(2) == 0 };
                let result = unpack_with(Cursor::new(&changed), format, &options, &fresh(&world));
                assert_confined(&world);
                if let Ok(it) = result {
                    unpacked_some += 1;
                    assert!(it.files.len() <= 20);
                    assert!(it.files.iter().map(|it| it.size).sum::<u64>() <= 20_000);
                    for file in &it.files {
                        let path = world.path("out/draft").join(&file.path);
                        assert_eq!(fs::metadata(path).unwrap().len(), file.size);
                    }
                }
            }
        }
        assert!(unpacked_some > 100, "{unpacked_some}");
    }
}

mod a_local_folder_is_copied_like_an_archive {
    use super::*;
    use prowess_packages::{CopyError, copy_folder};

    fn copied(world: &World) -> UnpackedArchive {
        copy_folder(&world.path("from"), &ArchiveLimits::default(), &fresh(world)).unwrap()
    }

    #[test]
    fn git_and_node_modules_are_no_part_of_it() {
        let world = World::new()
            .file("from/SKILL.md", "# a")
            .file("from/.git/config", "x")
            .file("from/node_modules/x/SKILL.md", "x")
            .file("from/sub/.git", "gitdir: x")
            .file("from/.claude/skills/b/SKILL.md", "# b");
        let copied = copied(&world);
        assert_eq!(paths(&copied), [".claude/skills/b/SKILL.md", "SKILL.md"]);
        assert_eq!(copied.left_out, []);
    }

    #[test]
    fn links_inside_become_files_and_others_are_reported() {
        let world = World::new()
            .file("secret", "secret")
            .file("from/SKILL.md", "# a")
            .link("from/AGENTS.md", "SKILL.md")
            .link("from/outside", "../secret")
            .link("from/absolute", world_root())
            .pipe("from/pipe")
            .file("from/a:b", "x");
        let copied = copied(&world);
        assert_eq!(paths(&copied), ["AGENTS.md", "SKILL.md"]);
        let mut left_out: Vec<_> = copied.left_out.iter().map(|it| it.path.as_str()).collect();
        left_out.sort_unstable();
        assert_eq!(left_out, ["a:b", "absolute", "outside", "pipe"]);
        assert_confined(&world);
    }

    fn world_root() -> &'static str {
        "/etc/passwd"
    }

    #[test]
    fn a_copy_and_an_archive_of_the_same_folder_have_one_digest() {
        let world =
            World::new().file("from/SKILL.md", "# a").file("from/b/c", "c").link("from/d", "b");
        let copied = copied(&world);
        let ran =
            Command::new("tar").args(["c", "from"]).current_dir(world.path(".")).output().unwrap();
        let unpacked = repository(&ran.stdout, ArchiveFormat::Tar, &world);
        assert_eq!(unpacked.files, copied.files);
        assert_eq!(paths(&copied), ["SKILL.md", "b/c", "d/c"]);
    }

    #[test]
    fn a_folder_that_is_too_large_or_missing_is_an_error() {
        let world = World::new().file("from/a", "a").file("from/b", "b");
        let limits = ArchiveLimits { files: 1, ..ArchiveLimits::default() };
        let error = copy_folder(&world.path("from"), &limits, &fresh(&world)).unwrap_err();
        assert!(matches!(error, CopyError::TooLarge { .. }), "{error:?}");
        let error = copy_folder(&world.path("none"), &limits, &fresh(&world)).unwrap_err();
        assert!(matches!(error, CopyError::Read { .. }), "{error:?}");
    }
}

mod a_skill_is_packed_the_same_everywhere {
    use super::*;
    use prowess_packages::{FileDigest, PackError, PackOptions, pack};
    use prowess_testing::configured_server::executable;

    fn skill() -> World {
        let world = World::new()
            .file("from/SKILL.md", "---\nname: a\ndescription: b\n---\n\n# A\n".repeat(20))
            .file("from/references/é.md", "text\n")
            .file(format!("from/{}/x.txt", "long-name-".repeat(12)), "x")
            .file("from/.env", "SECRET=1")
            .file("from/.git/config", "x")
            .file("from/node_modules/x/index.js", "x")
            .link("from/link.md", "SKILL.md");
        executable(&world.path("from/run.sh"), "#!/bin/sh\n");
        world
    }

    fn packed(world: &World, format: ArchiveFormat) -> Vec<u8> {
        let options = PackOptions { format, ..PackOptions::default() };
        pack(&world.path("from"), &options).unwrap().bytes
    }

    #[test]
    fn the_bytes_depend_on_the_files_alone() {
        let digests = [ArchiveFormat::Zip, ArchiveFormat::TarGz].map(|format| {
            let world = skill();
            let bytes = packed(&world, format);
            let again = skill();
            let changed = Command::new("sh")
                .args(["-c", "chmod 600 SKILL.md && touch -d 2001-01-01 SKILL.md"])
                .current_dir(again.path("from"))
                .status();
            assert!(changed.unwrap().success());
            assert_eq!(packed(&again, format), bytes);
            FileDigest::of(&bytes).to_string()
        });
        // On every system, and until the format of packages changes.
        assert_eq!(digests, [ZIP, TAR_GZ]);
    }

    const ZIP: &str = "sha256:b371968baaf3744be3cf50b5347dcdeac956619840194eee14e05a1b213b7610";
    const TAR_GZ: &str = "sha256:902833b959fc663c5c1f72911bb50c924c3645ab0ff0d7572157a08430b412de";

    #[test]
    fn what_is_packed_unpacks_to_the_same_files_here_and_elsewhere() {
        let world = skill();
        for (format, list) in [
            (
                ArchiveFormat::Zip,
                "zipfile.ZipFile(f).testzip(); names = zipfile.ZipFile(f).namelist()",
            ),
            (ArchiveFormat::TarGz, "names = tarfile.open(fileobj=f).getnames()"),
            (ArchiveFormat::Tar, "names = tarfile.open(fileobj=f).getnames()"),
        ] {
            let options = PackOptions { format, ..PackOptions::default() };
            let packed = pack(&world.path("from"), &options).unwrap();
            let unpacked = unpacked(&packed.bytes, format, &world).unwrap();
            assert_eq!(unpacked.files, packed.files);
            assert_eq!(packed.digest, ContentDigest::of(&unpacked.files));
            let long = format!("{}/x.txt", "long-name-".repeat(12));
            assert_eq!(
                paths(&unpacked),
                ["SKILL.md", "link.md", &long, "references/é.md", "run.sh"]
            );
            assert!(unpacked.files[4].executable);
            world.write("packed", &packed.bytes);
            let path = world.path("packed");
            let listed = python(&format!(
                "f = open({path:?}, 'rb')\n{list}\nshow('\\n'.join(names).encode())"
            ));
            assert_eq!(String::from_utf8(listed).unwrap(), paths(&unpacked).join("\n"));
        }
    }

    #[test]
    fn what_cannot_be_packed_is_an_error() {
        let error =
            |world: &World, options: PackOptions| pack(&world.path("from"), &options).unwrap_err();
        let all = PackOptions::default();
        let no_skill = World::new().file("from/README.md", "");
        assert!(matches!(error(&no_skill, all), PackError::NoSkill(_)));
        let linked = World::new().file("from/SKILL.md", "").link("from/x", "/etc/passwd");
        let refused = error(&linked, all);
        assert!(matches!(&refused, PackError::Refused { path, .. } if path == "x"), "{refused:?}");
        let large = World::new().file("from/SKILL.md", "12345").file("from/b", "12345");
        let small = error(&large, PackOptions { file: 4, ..all });
        assert_eq!(small.to_string(), "the skill has more than 4 bytes in a file");
        let small = error(&large, PackOptions { total: 9, ..all });
        assert_eq!(small.to_string(), "the skill has more than 9 bytes");
    }

    #[test]
    fn the_limits_are_those_of_registries() {
        let options = PackOptions::default();
        assert_eq!((options.file, options.total), (10 << 20, 50 << 20));
    }
}
