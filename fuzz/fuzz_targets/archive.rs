//! Whatever an archive is made of, nothing leaves the folder or its limits.
#![no_main]

use std::{fs, io::Cursor, path::Path};

use libfuzzer_sys::fuzz_target;
use prowess_packages::{ArchiveFormat, ArchiveLimits, UnpackOptions, unpack_with};

fuzz_target!(|input: (u8, &[u8])| {
    let (choice, archive) = input;
    let format = match choice % 3 {
        0 => ArchiveFormat::Zip,
        1 => ArchiveFormat::TarGz,
        _ => ArchiveFormat::Tar,
    };
    let limits = ArchiveLimits {
        packed: 1 << 20,
        unpacked: 1 << 16,
        file: 1 << 15,
        files: 32,
        depth: 4,
        ratio: 100,
        name: 200,
    };
    let options =
        UnpackOptions { limits, strip_wrapper: choice & 8 != 0, leave_out: choice & 16 != 0 };
    let root = tempfile::tempdir().expect("there is a folder for temporary files");
    let folder = root.path().join("draft");
    fs::create_dir(&folder).expect("it is new");
    let result = unpack_with(Cursor::new(archive), format, &options, &folder);
    assert_eq!(fs::read_dir(root.path()).expect("it is there").count(), 1);
    let (files, bytes) = count(&folder);
    assert!(files <= 32 && bytes <= 1 << 16);
    if let Ok(unpacked) = result {
        assert_eq!(unpacked.files.len(), files);
        assert!(unpacked.files.is_sorted_by(|a, b| a.path < b.path));
        assert_eq!(unpacked.files.iter().map(|it| it.size).sum::<u64>(), bytes);
    }
});

/// Returns the number of files, and their bytes. There is nothing but files and folders.
fn count(folder: &Path) -> (usize, u64) {
    let (mut files, mut bytes) = (0, 0);
    for entry in fs::read_dir(folder).expect("it is there") {
        let entry = entry.expect("it can be read");
        let metadata = entry.metadata().expect("it is there");
        if metadata.is_dir() {
            let (inner_files, inner_bytes) = count(&entry.path());
            files += inner_files;
            bytes += inner_bytes;
        } else {
            assert!(metadata.is_file());
            files += 1;
            bytes += metadata.len();
        }
    }
    (files, bytes)
}
