//! Changes mode and times of a file for a script, at the level *landlock*.
//!
//! Landlock does not guard them, so the filter blocks every such call. They are done here instead:
//! on an open file, so that the changed file is the one that was checked, and only if it is the
//! script's own.

use std::{
    ffi::{CStr, c_long},
    fs::{self, File},
    os::{
        fd::{AsRawFd as _, OwnedFd},
        unix::fs::FileExt as _,
    },
    path::{Path, PathBuf},
};

use rustix::{
    fs::{AtFlags, CWD, Mode, OFlags, Timespec, Timestamps, UTIME_NOW},
    io::Errno,
};

use super::sys::Notification;

/// The files that are the script's own.
#[derive(Debug)]
pub(crate) struct OwnFiles {
    /// The directories that contain them.
    pub(crate) directories: Vec<PathBuf>,
    /// The paths that are excluded, with everything in them.
    pub(crate) except: Vec<PathBuf>,
}

impl OwnFiles {
    fn contains(&self, path: &Path) -> bool {
        self.directories.iter().any(|it| path.starts_with(it))
            && !self.except.iter().any(|it| path.starts_with(it))
    }
}

/// Does what a call asks for, if the file is one of these.
pub(crate) fn change(call: &Notification, own: &OwnFiles) -> Result<(), Errno> {
    let caller = Caller(call.pid);
    let [a, b, c, d, ..] = call.data.args;
    let (file, what) = match c_long::from(call.data.nr) {
        libc::SYS_fchmod => (caller.open_descriptor(a)?, MetadataChange::Mode(b)),
        libc::SYS_fchmodat => (caller.open_path(a, b, false)?, MetadataChange::Mode(c)),
        libc::SYS_fchown => (caller.open_descriptor(a)?, MetadataChange::Owner(b, c)),
        libc::SYS_fchownat => (caller.open_path(a, b, true)?, MetadataChange::Owner(c, d)),
        libc::SYS_utimensat if b == 0 => {
            (caller.open_descriptor(a)?, MetadataChange::Times(caller.read_times(c)?))
        }
        libc::SYS_utimensat => {
            let is_link = d as i32 & libc::AT_SYMLINK_NOFOLLOW != 0;
            (caller.open_path(a, b, is_link)?, MetadataChange::Times(caller.read_times(c)?))
        }
        #[cfg(target_arch = "x86_64")]
        libc::SYS_chmod => (caller.open_path(HERE, a, false)?, MetadataChange::Mode(b)),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_chown | libc::SYS_lchown => {
            (caller.open_path(HERE, a, true)?, MetadataChange::Owner(b, c))
        }
        _ => return Err(Errno::PERM),
    };
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    let place = fs::read_link(&path).map_err(|_| Errno::PERM)?;
    if !own.contains(&place) {
        return Err(Errno::PERM);
    }
    match what {
        MetadataChange::Mode(mode) => {
            let mode = Mode::from_bits_truncate(mode as u32 & 0o1777);
            rustix::fs::chmodat(CWD, &path, mode, AtFlags::empty())
        }
        MetadataChange::Times(times) => rustix::fs::utimensat(CWD, &path, &times, AtFlags::empty()),
        // Its files are its own already, and it cannot give any away.
        MetadataChange::Owner(user, group) => {
            let users = [rustix::process::getuid().as_raw(), u32::MAX];
            let groups = [rustix::process::getgid().as_raw(), u32::MAX];
            let same = users.contains(&(user as u32)) && groups.contains(&(group as u32));
            if same { Ok(()) } else { Err(Errno::PERM) }
        }
    }
}

/// The descriptor number that means the caller's working directory.
#[cfg(target_arch = "x86_64")]
const HERE: u64 = libc::AT_FDCWD as u64;

enum MetadataChange {
    Mode(u64),
    Times(Timestamps),
    Owner(u64, u64),
}

/// The thread whose call is pending.
struct Caller(u32);

impl Caller {
    /// Opens the file of one of its descriptors.
    fn open_descriptor(&self, number: u64) -> Result<OwnedFd, Errno> {
        let path = format!("/proc/{}/fd/{}", self.0, number as i32);
        rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
    }

    /// Opens a path, resolved from the caller's directory.
    fn open_path(&self, directory: u64, path: u64, is_link: bool) -> Result<OwnedFd, Errno> {
        let mut bytes = [0; libc::PATH_MAX as usize];
        let count = self.open_memory()?.read_at(&mut bytes, path).map_err(|_| Errno::FAULT)?;
        let path = CStr::from_bytes_until_nul(&bytes[..count]).map_err(|_| Errno::NAMETOOLONG)?;
        // The C library uses this path for a descriptor; here it would be one of ours.
        let own = path.to_str().ok().and_then(|it| it.strip_prefix("/proc/self/fd/"));
        if let Some(number) = own.and_then(|it| it.parse().ok()) {
            return self.open_descriptor(number);
        }
        let mut flags = OFlags::PATH | OFlags::CLOEXEC;
        let from = match directory as i32 {
            libc::AT_FDCWD => {
                rustix::fs::open(format!("/proc/{}/cwd", self.0), flags, Mode::empty())?
            }
            _ => self.open_descriptor(directory)?,
        };
        flags.set(OFlags::NOFOLLOW, is_link);
        rustix::fs::openat(&from, path, flags, Mode::empty())
    }

    /// Reads two times, or now if none are given.
    fn read_times(&self, at: u64) -> Result<Timestamps, Errno> {
        let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
        if at == 0 {
            return Ok(Timestamps { last_access: now, last_modification: now });
        }
        let mut bytes = [0; 32];
        self.open_memory()?.read_exact_at(&mut bytes, at).map_err(|_| Errno::FAULT)?;
        let (numbers, _) = bytes.as_chunks::<8>();
        let [a, b, c, d] = [0, 1, 2, 3].map(|it| i64::from_ne_bytes(numbers[it]));
        Ok(Timestamps {
            last_access: Timespec { tv_sec: a, tv_nsec: b },
            last_modification: Timespec { tv_sec: c, tv_nsec: d },
        })
    }

    fn open_memory(&self) -> Result<File, Errno> {
        File::open(format!("/proc/{}/mem", self.0)).map_err(|_| Errno::PERM)
    }
}
