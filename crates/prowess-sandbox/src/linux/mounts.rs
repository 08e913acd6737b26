//! The root of a script at the level *strong*: the system read-only, its own files, and nothing
//! else.

use std::{
    collections::HashMap,
    ffi::CString,
    fs::{self, File},
    io,
    os::{
        fd::AsRawFd as _,
        unix::{ffi::OsStrExt as _, fs::symlink},
    },
    path::{Path, PathBuf},
};

use rustix::mount::{MountFlags, UnmountFlags, mount, mount_bind_recursive, unmount};

use super::{
    messages::{Component, StartFailure},
    sys,
};
use crate::{order::Order, system::SYSTEM};

/// The parts of `/etc` that programs need: nothing that identifies this machine or its users.
pub(crate) const ETC: &[&str] = &[
    "/etc/alternatives",
    "/etc/ca-certificates",
    "/etc/crypto-policies",
    "/etc/fonts",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/pki/ca-trust",
    "/etc/pki/tls/certs",
    "/etc/protocols",
    "/etc/services",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
];

/// The devices that programs need.
pub(crate) const DEVICES: &[&str] =
    &["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// The user id of a script inside.
pub(crate) const USER: u32 = 1000;

/// Builds the root and enters it. The process has namespaces of its own.
pub(crate) fn enter(order: &Order) -> Result<(), StartFailure> {
    let root = order.root();
    let tree = Tree { root: &root };
    tree.mount_tmpfs("/", "mode=0755,size=4m,nr_inodes=16k")
        .map_err(Component::Root.failed("mount a root"))?;
    tree.mount_system().map_err(Component::Root.failed("mount the system"))?;
    tree.mount_proc().map_err(Component::Root.failed("mount /proc"))?;
    tree.mount_devices().map_err(Component::Root.failed("mount devices"))?;
    tree.bind(&order.temporary(), Path::new("/tmp"), WRITE)
        .map_err(Component::Root.failed("mount /tmp"))?;
    let mut layers = Layers::new(order);
    for (path, attributes) in given_paths(order) {
        let is_layered = attributes == READ && order.layered.iter().any(|it| *it == *path);
        if is_layered && layers.mount(&path, &tree).is_ok() {
            continue;
        }
        let what = format!("mount `{}`", path.display());
        tree.bind(&path, &path, attributes).map_err(Component::Job.failed(what))?;
    }
    for path in order.hidden.iter().chain(&order.withheld) {
        let what = format!("hide `{}`", Path::new(path).display());
        tree.hide(Path::new(path)).map_err(Component::Job.failed(what))?;
    }
    for (path, target) in &order.links {
        // If the link cannot be created, the target is still accessible.
        let _ = tree.link(Path::new(target), Path::new(path));
    }
    sys::mount_setattr(&c_path(&root), READ, false)
        .map_err(Component::Root.failed("make the root read-only"))?;
    pivot(&root).map_err(Component::Root.failed("change the root"))
}

/// Returns all paths that the script is given, each directory before its content.
fn given_paths(order: &Order) -> Vec<(PathBuf, u64)> {
    let mut all: Vec<_> = order.reads.iter().map(|it| (PathBuf::from(it), READ)).collect();
    all.push((order.given_dir(), READ));
    all.push((order.work(), WRITE));
    all.extend(order.writes.iter().map(|it| (PathBuf::from(it), WRITE)));
    // Read-only paths inside of writable ones stay in place too. Of equal paths, the last is on
    // top.
    let mut known: HashMap<PathBuf, u64> = all.iter().cloned().collect();
    for path in order.withheld.iter().chain(&order.reads) {
        anchor(Path::new(path), &mut known, &mut all);
    }
    // A stable sort: if a path is given for both, writing comes last and so is on top.
    all.sort_by_key(|it| it.0.components().count());
    all
}

/// Mounts each directory above a path separately: a mount point cannot be moved, so nothing else
/// can take the place of the path.
fn anchor(path: &Path, known: &mut HashMap<PathBuf, u64>, all: &mut Vec<(PathBuf, u64)>) {
    for above in path.ancestors().skip(1) {
        let nearest = above.ancestors().find_map(|it| Some((it, *known.get(it)?)));
        if nearest.is_some_and(|it| it.0 != above && it.1 == WRITE) {
            known.insert(above.to_owned(), WRITE);
            all.push((above.to_owned(), WRITE));
        }
    }
}

/// The layers in which a script can write over directories that are not its own. They are in
/// memory, outside of its root: reachable only through the directories that they cover, and
/// discarded with the script.
struct Layers<'o> {
    order: &'o Order,
    /// Their folder, once there is a layer.
    folder: Option<File>,
    count: usize,
}

/// The maximum number of files in all layers.
const LAYER_FILES: u64 = 32 << 10;

impl<'o> Layers<'o> {
    fn new(order: &'o Order) -> Self {
        Self { order, folder: None, count: 0 }
    }

    /// Mounts a layer over a directory, with overlayfs. Fails if the kernel allows that only to
    /// root, or if the file system of the directory does not support it.
    fn mount(&mut self, path: &Path, tree: &Tree<'_>) -> io::Result<()> {
        let lower = File::open(path)?;
        let folder = match &self.folder {
            Some(folder) => folder,
            None => self.folder.insert(self.make_folder()?),
        };
        // By descriptor, because a path may contain the separators of options.
        let layers = format!("/proc/self/fd/{}/{}", folder.as_raw_fd(), self.count);
        self.count += 1;
        let [upper, work] = ["upper", "work"].map(|it| format!("{layers}-{it}"));
        fs::create_dir(&upper)?;
        fs::create_dir(&work)?;
        tree.make_directory(path)?;
        let lower = lower.as_raw_fd();
        // The layer is discarded, so nothing has to be written to disk.
        let options = format!(
            "lowerdir=/proc/self/fd/{lower},upperdir={upper},workdir={work},userxattr,volatile"
        );
        let flags = MountFlags::NOSUID | MountFlags::NODEV;
        let options = CString::new(options)?;
        Ok(mount("overlay", tree.inside(path), "overlay", flags, options.as_c_str())?)
    }

    /// Creates the folder for layers, no larger than the script may write in total.
    fn make_folder(&self) -> io::Result<File> {
        let limits = &self.order.limits;
        let size = limits.work.min(limits.memory / 2).max(64 << 10);
        let options = format!("mode=0700,size={size},nr_inodes={LAYER_FILES}");
        let folder = self.order.base().join("layers");
        fs::create_dir(&folder)?;
        let flags = MountFlags::NOSUID | MountFlags::NODEV;
        mount("tmpfs", &folder, "tmpfs", flags, CString::new(options)?.as_c_str())?;
        File::open(folder)
    }
}

/// A root under construction.
struct Tree<'r> {
    root: &'r Path,
}

impl Tree<'_> {
    fn inside(&self, path: &Path) -> PathBuf {
        self.root.join(path.strip_prefix("/").unwrap_or(path))
    }

    fn mount_tmpfs(&self, path: &str, options: &str) -> io::Result<()> {
        let flags = MountFlags::NOSUID | MountFlags::NODEV;
        let options = CString::new(options)?;
        Ok(mount("tmpfs", self.inside(Path::new(path)), "tmpfs", flags, options.as_c_str())?)
    }

    /// Mounts a path from outside at a path inside.
    fn bind(&self, source: &Path, path: &Path, attributes: u64) -> io::Result<()> {
        let target = self.inside(path);
        if fs::metadata(source)?.is_dir() {
            self.make_directory(path)?;
        } else {
            self.make_parent(path)?;
            // It may exist already, in a directory that is read-only.
            if !target.exists() {
                File::create_new(&target)?;
            }
        }
        mount_bind_recursive(source, &target)?;
        sys::mount_setattr(&c_path(&target), attributes, true)
    }

    /// Covers a path with something empty.
    fn hide(&self, path: &Path) -> io::Result<()> {
        let target = self.inside(path);
        match fs::symlink_metadata(&target) {
            Ok(metadata) if metadata.is_dir() => {
                let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::RDONLY;
                Ok(mount("tmpfs", &target, "tmpfs", flags, c"mode=0555,size=4k,nr_inodes=1")?)
            }
            Ok(_) => {
                mount_bind_recursive("/dev/null", &target)?;
                sys::mount_setattr(&c_path(&target), DEVICE, false)
            }
            // It is not in any path that is given.
            Err(_) => Ok(()),
        }
    }

    fn link(&self, target: &Path, path: &Path) -> io::Result<()> {
        self.make_parent(path)?;
        symlink(target, self.inside(path))
    }

    fn make_parent(&self, path: &Path) -> io::Result<()> {
        self.make_directory(path.parent().unwrap_or(path))
    }

    /// Creates a directory and its parents. A link on the path is not followed: at this point it
    /// would still lead outside.
    fn make_directory(&self, path: &Path) -> io::Result<()> {
        let mut made = self.root.to_owned();
        for name in path.components().skip(1) {
            made.push(name);
            match fs::symlink_metadata(&made) {
                Ok(metadata) if metadata.is_dir() => {}
                Ok(_) => return Err(io::ErrorKind::NotADirectory.into()),
                Err(_) => fs::create_dir(&made)?,
            }
        }
        Ok(())
    }

    /// Mounts the system directories, as they are outside: a link stays a link.
    fn mount_system(&self) -> io::Result<()> {
        for path in SYSTEM.iter().chain(ETC).map(Path::new) {
            let Ok(metadata) = fs::symlink_metadata(path) else { continue };
            if metadata.is_symlink() {
                self.link(&fs::read_link(path)?, path)?;
            } else {
                self.bind(path, path, READ)?;
            }
        }
        let etc = self.inside(Path::new("/etc"));
        fs::create_dir_all(&etc)?;
        let who = format!("skill:x:{USER}:{USER}:skill:/:/bin/sh\n");
        fs::write(etc.join("passwd"), who)?;
        fs::write(etc.join("group"), format!("skill:x:{USER}:\n"))?;
        fs::write(etc.join("hosts"), "127.0.0.1 localhost\n::1 localhost\n")
    }

    fn mount_proc(&self) -> io::Result<()> {
        let path = self.inside(Path::new("/proc"));
        fs::create_dir(&path)?;
        // Read-only, because a user who is root outside owns the settings in there. Processes that
        // cannot be inspected are hidden.
        let flags =
            MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC | MountFlags::RDONLY;
        Ok(mount("proc", &path, "proc", flags, c"hidepid=4")?)
    }

    fn mount_devices(&self) -> io::Result<()> {
        let dev = self.inside(Path::new("/dev"));
        fs::create_dir(&dev)?;
        for device in DEVICES.iter().map(Path::new) {
            let target = self.inside(device);
            File::create_new(&target)?;
            mount_bind_recursive(device, &target)?;
            sys::mount_setattr(&c_path(&target), DEVICE, false)?;
        }
        let links = [("fd", ""), ("stdin", "/0"), ("stdout", "/1"), ("stderr", "/2")];
        for (name, rest) in links {
            symlink(format!("/proc/self/fd{rest}"), dev.join(name))?;
        }
        fs::create_dir(dev.join("shm"))?;
        self.mount_tmpfs("/dev/shm", "mode=1777,size=64m,nr_inodes=4k")
    }
}

/// Makes a directory the root, and detaches the previous one.
fn pivot(root: &Path) -> io::Result<()> {
    rustix::process::chdir(root)?;
    rustix::process::pivot_root(".", ".")?;
    unmount(".", UnmountFlags::DETACH)?;
    Ok(rustix::process::chdir("/")?)
}

/// Attributes of a mount: `MOUNT_ATTR_RDONLY`, `_NOSUID`, `_NODEV` and `_NOEXEC`.
const WRITE: u64 = 0x2 | 0x4;
const READ: u64 = 0x1 | WRITE;
/// A device can still be written to, but its mode and times are those outside, and root owns it.
const DEVICE: u64 = 0x1 | 0x2 | 0x8;

fn c_path(path: &Path) -> CString {
    CString::new(path.as_os_str().as_bytes()).expect("a path that was opened has no NUL")
}
