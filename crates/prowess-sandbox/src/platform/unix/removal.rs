//! Removes whole directories.

use std::{
    ffi::{CStr, CString},
    io,
    os::fd::OwnedFd,
    path::Path,
};

use rustix::{
    fs::{AtFlags, Dir, FileType, Mode},
    io::Errno,
};

use super::folder::{LIST, open_folder, open_list, set_mode};

/// Removes a directory with everything in it, at any depth and with any permissions. Subfolders are
/// moved up and removed there, so that no path gets long; no link is followed. Concurrent removal
/// is not an error.
pub fn remove_folder(base: &Path) -> io::Result<()> {
    let top = match rustix::fs::open(base, LIST, Mode::empty()) {
        Err(Errno::NOENT) => return Ok(()),
        top => top?,
    };
    let mut number = 0;
    loop {
        let folders = remove_files(&top, &top, &mut number)?;
        if folders.is_empty() {
            return ignore_missing(rustix::fs::rmdir(base));
        }
        for name in folders {
            let Some(folder) = open_writable(&top, &name)? else { continue };
            remove_files(&folder, &top, &mut number)?;
            ignore_missing(rustix::fs::unlinkat(&top, &name, AtFlags::REMOVEDIR))?;
        }
    }
}

/// Removes the files of a folder. Subfolders of the top folder are returned, others are moved
/// there.
fn remove_files(folder: &OwnedFd, top: &OwnedFd, number: &mut u64) -> io::Result<Vec<CString>> {
    let mut folders = Vec::new();
    for entry in Dir::read_from(folder)? {
        let name = entry?.file_name().to_owned();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        match rustix::fs::unlinkat(folder, &name, AtFlags::empty()) {
            Err(Errno::ISDIR | Errno::PERM) if is_folder(folder, &name) => {
                if std::ptr::eq(folder, top) {
                    folders.push(name);
                } else {
                    move_up(folder, &name, top, number)?;
                }
            }
            removed => ignore_missing(removed)?,
        }
    }
    Ok(folders)
}

fn move_up(folder: &OwnedFd, name: &CStr, top: &OwnedFd, number: &mut u64) -> io::Result<()> {
    // Moving a folder writes to it, because its `..` changes.
    let Some(_) = open_writable(folder, name)? else { return Ok(()) };
    loop {
        *number += 1;
        match rustix::fs::renameat(folder, name, top, number.to_string()) {
            Err(Errno::EXIST | Errno::NOTEMPTY) => {}
            moved => return ignore_missing(moved),
        }
    }
}

fn is_folder(parent: &OwnedFd, name: &CStr) -> bool {
    rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|it| FileType::from_raw_mode(it.st_mode) == FileType::Directory)
}

/// Opens a folder and grants us all permissions on it; returns `None` if it is gone. The script may
/// still be alive, and put a link in its place.
fn open_writable(parent: &OwnedFd, name: &CStr) -> io::Result<Option<OwnedFd>> {
    let folder = match open_folder(parent, name) {
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(None),
        folder => folder?,
    };
    let _ = set_mode(&folder, Mode::RWXU);
    Ok(Some(open_list(&folder)?))
}

/// Treats a missing file as removed.
fn ignore_missing(removed: Result<(), Errno>) -> io::Result<()> {
    match removed {
        Err(Errno::NOENT) => Ok(()),
        removed => Ok(removed?),
    }
}
