//! The disk usage of files, however a script has arranged them.

use std::{
    collections::BTreeSet,
    ffi::{CStr, CString},
    os::fd::OwnedFd,
    path::Path,
};

use rustix::{
    fs::{AtFlags, Dir, FileType, Mode, Stat},
    io::Errno,
};

use super::folder::{open_folder, open_list, open_top, set_mode};

/// The size of a folder that cannot be read: above any limit.
const TOO_MUCH: u64 = u64::MAX / 4;

/// The minimum size counted for each entry of a folder.
const ENTRY: u64 = 4096;

/// Returns the disk usage of a directory, with a minimum for each of its entries. Walks by open
/// folders rather than by paths, which can exceed the maximum path length; a folder without
/// permissions for its owner is opened temporarily. Anything that still cannot be read counts as
/// too much.
pub fn folder_size(path: &Path, most: u64) -> u64 {
    let mut walk = Walk { total: 0, linked: BTreeSet::new() };
    match open_top(path) {
        Ok(top) => match walk.add_folder(top, most) {
            Ok(()) => walk.total,
            Err(_) => TOO_MUCH,
        },
        // Only this process and the engine can remove it.
        Err(Errno::NOENT) => 0,
        Err(_) => TOO_MUCH,
    }
}

struct Walk {
    total: u64,
    /// Files with several names, which count once.
    linked: BTreeSet<(u64, u64)>,
}

/// A folder on the current path, and its subfolders that are still to be visited.
struct PendingFolder {
    folder: OwnedFd,
    subfolders: Vec<CString>,
}

impl Walk {
    /// Adds up a folder and everything below it, until the total exceeds `most`.
    fn add_folder(&mut self, top: OwnedFd, most: u64) -> Result<(), Errno> {
        let subfolders = self.add_entries(&top)?;
        let mut path = vec![PendingFolder { folder: top, subfolders }];
        while let Some(step) = path.last_mut()
            && self.total <= most
        {
            let Some(name) = step.subfolders.pop() else {
                path.pop();
                continue;
            };
            let opened = with_permissions(&step.folder, || open_folder(&step.folder, &name));
            let folder = match opened {
                Ok(folder) => folder,
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => continue,
                Err(errno) => return Err(errno),
            };
            let subfolders = self.add_entries(&folder)?;
            path.push(PendingFolder { folder, subfolders });
        }
        Ok(())
    }

    /// Adds up the entries of a folder; returns the folders among them.
    fn add_entries(&mut self, folder: &OwnedFd) -> Result<Vec<CString>, Errno> {
        with_permissions(folder, || {
            let mut folders = Vec::new();
            for entry in Dir::new(open_list(folder)?)? {
                let entry = entry?;
                let name = entry.file_name();
                if matches!(name.to_bytes(), b"." | b"..") {
                    continue;
                }
                match rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
                    Ok(stat) => self.add_entry(name, &stat, &mut folders),
                    Err(Errno::NOENT) => {}
                    Err(errno) => return Err(errno),
                }
            }
            Ok(folders)
        })
    }

    fn add_entry(&mut self, name: &CStr, stat: &Stat, folders: &mut Vec<CString>) {
        self.total = self.total.saturating_add(ENTRY);
        let is_folder = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
        if is_folder {
            folders.push(name.to_owned());
        } else if stat.st_nlink > 1 && !self.linked.insert((stat.st_dev as _, stat.st_ino)) {
            return;
        }
        self.total = self.total.saturating_add(u64::try_from(stat.st_blocks).unwrap_or(0) * 512);
    }
}

/// Runs an action on a folder; if its owner lacks permissions, they are granted meanwhile.
fn with_permissions<T>(
    folder: &OwnedFd,
    mut act: impl FnMut() -> Result<T, Errno>,
) -> Result<T, Errno> {
    match act() {
        Err(Errno::ACCESS) => {}
        done => return done,
    }
    let mode = Mode::from_raw_mode(rustix::fs::fstat(folder)?.st_mode);
    set_mode(folder, mode | Mode::RWXU)?;
    let done = act();
    let _ = set_mode(folder, mode);
    done
}
