//! A control group for one run: the kernel's own accounting of its memory and processes.
//!
//! Both versions are used as they are found: version 2 below the nearest group that has the
//! controllers enabled for its children and is writable, such as a delegated subtree of systemd;
//! version 1 below our own groups of `memory` and `pids`.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Write as _},
    os::fd::{AsFd as _, BorrowedFd},
    path::{Path, PathBuf},
    process, thread,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use rustix::process::{Pid, Signal};

use super::{messages::Enforcement, tree};
use crate::{limits::RunLimits, platform::open_folder_lock};

/// A control group with the limits of one run. Removed when this is dropped, which has to be after
/// every process in it has ended.
#[derive(Debug)]
pub(crate) struct ControlGroup {
    version: Version,
    /// The same folder for both in version 2.
    memory: PathBuf,
    pids: PathBuf,
    /// Open and locked for as long as the group is in use.
    locks: Vec<File>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

/// The way in which a process enters a group.
#[derive(Debug)]
pub(crate) enum GroupEntry<'g> {
    /// It is created in the group.
    Create(BorrowedFd<'g>),
    /// It writes itself into these files, which is immediate as long as it has a single thread.
    Write(Vec<File>),
}

impl ControlGroup {
    /// Creates a group with these limits; `None` if this machine does not allow that.
    pub(crate) fn new(limits: &RunLimits) -> Option<Self> {
        let parent = GroupParent::find(&Kernel::read()?)?;
        // A concurrent sweep may have removed it as abandoned.
        (0..2).find_map(|_| parent.create_group(limits).ok())
    }

    pub(crate) fn enforcement(&self) -> Enforcement {
        match self.version {
            Version::One => Enforcement::CgroupV1,
            Version::Two => Enforcement::CgroupV2,
        }
    }

    /// Returns the way in which a process enters the group.
    pub(crate) fn entry(&self) -> io::Result<GroupEntry<'_>> {
        match (self.version, &*self.locks) {
            (Version::Two, [group, ..]) => Ok(GroupEntry::Create(group.as_fd())),
            _ => {
                let tasks = [&self.memory, &self.pids].map(|it| it.join("tasks"));
                Ok(GroupEntry::Write(
                    tasks
                        .iter()
                        .map(|it: &PathBuf| OpenOptions::new().write(true).open(it))
                        .collect::<io::Result<_>>()?,
                ))
            }
        }
    }

    /// Returns the processes of the group, without their holder.
    pub(crate) fn processes(&self, first: Pid) -> Vec<Pid> {
        let text = fs::read_to_string(self.pids.join("cgroup.procs")).unwrap_or_default();
        let pids = text.lines().filter_map(|it| it.parse().ok()).filter_map(Pid::from_raw);
        pids.filter(|it| *it != first).collect()
    }

    /// Whether the kernel has killed a process because the group ran out of memory.
    pub(crate) fn ran_out_of_memory(&self) -> bool {
        let file = match self.version {
            Version::One => "memory.oom_control",
            Version::Two => "memory.events",
        };
        let text = fs::read_to_string(self.memory.join(file)).unwrap_or_default();
        let killed = text.lines().find_map(|it| it.strip_prefix("oom_kill "));
        killed.is_some_and(|it| it.trim() != "0")
    }

    /// Returns the bytes that are charged to the group.
    pub(crate) fn memory_usage(&self) -> u64 {
        let file = match self.version {
            Version::One => "memory.usage_in_bytes",
            Version::Two => "memory.current",
        };
        let text = fs::read_to_string(self.memory.join(file)).unwrap_or_default();
        text.trim().parse().unwrap_or(0)
    }

    /// Kills all processes at once, or all but the holder, after forbidding them to fork.
    pub(crate) fn kill(&self, first: Pid) {
        if write(&self.pids, "cgroup.kill", 1).is_err() {
            let _ = write(&self.pids, "pids.max", 0);
            tree::signal(&self.processes(first), Signal::KILL);
        }
    }

    fn folders(&self) -> Vec<&Path> {
        match self.version {
            Version::One => vec![&self.memory, &self.pids],
            Version::Two => vec![&self.memory],
        }
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        for folder in self.folders() {
            // A process that has ended leaves the group a moment later.
            for _ in 0..100 {
                match fs::remove_dir(folder) {
                    Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                        thread::sleep(Duration::from_millis(1));
                    }
                    _ => break,
                }
            }
        }
    }
}

/// The kernel's information about control groups, as text.
#[derive(Debug, Default)]
struct Kernel {
    /// The content of `/proc/self/cgroup`: our own groups.
    groups: String,
    /// The content of `/proc/self/mountinfo`: their mount points.
    mounts: String,
    /// The content of `/proc/cmdline`.
    options: String,
}

impl Kernel {
    fn read() -> Option<Self> {
        Some(Self {
            groups: fs::read_to_string("/proc/self/cgroup").ok()?,
            mounts: fs::read_to_string("/proc/self/mountinfo").ok()?,
            options: fs::read_to_string("/proc/cmdline").unwrap_or_default(),
        })
    }

    /// Returns our own group of a controller of version 1, or of version 2 if none is named: the
    /// mount point of all groups, and ours below it.
    fn own_group(&self, controller: Option<&str>) -> Option<(PathBuf, PathBuf)> {
        let group = self.groups.lines().find_map(|line| {
            let mut parts = line.splitn(3, ':').skip(1);
            let (controllers, path) = (parts.next()?, parts.next()?);
            let fits = match controller {
                Some(controller) => lists(controllers, controller),
                None => controllers.is_empty(),
            };
            fits.then_some(path)
        })?;
        self.mounts.lines().find_map(|line| {
            let (mount, kind) = line.split_once(" - ")?;
            let mut mount = mount.split(' ').skip(3);
            let (root, point) = (mount.next()?, mount.next()?);
            let mut kind = kind.split(' ');
            let fits = match kind.next()? {
                "cgroup" => lists(kind.nth(1)?, controller?),
                "cgroup2" => controller.is_none(),
                _ => false,
            };
            let below = Path::new(group).strip_prefix(root).ok()?;
            fits.then(|| (PathBuf::from(point), Path::new(point).join(below)))
        })
    }
}

/// Whether a comma-separated list contains a controller.
fn lists(controllers: &str, controller: &str) -> bool {
    controllers.split(',').any(|it| it == controller)
}

/// The parent folder for groups of runs.
#[derive(Debug, PartialEq, Eq)]
struct GroupParent {
    version: Version,
    memory: PathBuf,
    pids: PathBuf,
}

/// The prefix of our groups' names.
const PREFIX: &str = "prowess-run-";
/// The memory of the process that holds a script.
const HOLDER: u64 = 4 << 20;

impl GroupParent {
    fn find(kernel: &Kernel) -> Option<Self> {
        // With this option, kernel memory such as page tables is not counted.
        if kernel.options.split_whitespace().any(|it| it == "cgroup.memory=nokmem") {
            return None;
        }
        if let (Some(memory), Some(pids)) =
            (kernel.own_group(Some("memory")), kernel.own_group(Some("pids")))
        {
            return Some(Self { version: Version::One, memory: memory.1, pids: pids.1 });
        }
        let (top, own) = kernel.own_group(None)?;
        let above = own.ancestors().take_while(|it| it.starts_with(&top));
        let nearest = above.filter(|it| controls_children(it)).find(|it| is_writable(it))?;
        Some(Self { version: Version::Two, memory: nearest.into(), pids: nearest.into() })
    }

    fn create_group(&self, limits: &RunLimits) -> io::Result<ControlGroup> {
        sweep(&self.memory);
        if self.pids != self.memory {
            sweep(&self.pids);
        }
        // Another process with this PID may have left one, or be in another namespace.
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let name = format!("{PREFIX}{}-{}", process::id(), now.as_nanos());
        let mut group = ControlGroup {
            version: self.version,
            memory: self.memory.join(&name),
            pids: self.pids.join(&name),
            locks: Vec::new(),
        };
        let made = group.folders().into_iter().map(|folder| {
            DirBuilder::new().create(folder)?;
            let lock = open_folder_lock(folder)?;
            lock.try_lock_shared()?;
            Ok(lock)
        });
        group.locks = made.collect::<io::Result<_>>()?;
        // Swap counts as well.
        let most = limits.memory.saturating_add(HOLDER).min(i64::MAX as u64);
        match self.version {
            Version::One => {
                write(&group.memory, "memory.limit_in_bytes", most)?;
                if group.memory.join("memory.memsw.limit_in_bytes").exists() {
                    write(&group.memory, "memory.memsw.limit_in_bytes", most)?;
                }
            }
            Version::Two => {
                write(&group.memory, "memory.max", most)?;
                if group.memory.join("memory.swap.max").exists() {
                    write(&group.memory, "memory.swap.max", 0)?;
                }
                write(&group.memory, "memory.oom.group", 1)?;
            }
        }
        // The holder counts as well.
        write(&group.pids, "pids.max", limits.processes.saturating_add(1).min(1 << 22))?;
        Ok(group)
    }
}

/// Whether a group of version 2 has the controllers enabled for its children.
fn controls_children(group: &Path) -> bool {
    let text = fs::read_to_string(group.join("cgroup.subtree_control")).unwrap_or_default();
    ["memory", "pids"].iter().all(|it| text.split_whitespace().any(|own| own == *it))
}

/// Whether a child group can be created in a group, and a process be moved there from another of
/// its children.
fn is_writable(group: &Path) -> bool {
    [group, &group.join("cgroup.procs")]
        .iter()
        .all(|it| rustix::fs::access(*it, rustix::fs::Access::WRITE_OK).is_ok())
}

/// Removes our groups whose supervisor was killed. One that is in use is locked, and has processes.
fn sweep(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        if entry.file_name().as_encoded_bytes().starts_with(PREFIX.as_bytes())
            && open_folder_lock(&entry.path()).is_ok_and(|it| it.try_lock().is_ok())
        {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

fn write(group: &Path, file: &str, value: u64) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).open(group.join(file))?;
    file.write_all(value.to_string().as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    const V1: &str = "24 1 0:20 / /sys/fs/cgroup rw shared:1 - tmpfs tmpfs rw\n\
                      25 24 0:21 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n\
                      26 24 0:22 / /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids\n\
                      27 24 0:23 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";

    fn kernel(groups: &str, mounts: &str) -> Kernel {
        Kernel { groups: groups.into(), mounts: mounts.into(), ..Kernel::default() }
    }

    #[test]
    fn version_1_is_used_where_it_has_the_controllers() {
        let parent = GroupParent::find(&kernel("8:pids:/a\n4:memory:/b/c\n0::/\n", V1)).unwrap();
        assert_eq!(parent.version, Version::One);
        assert_eq!(parent.memory, Path::new("/sys/fs/cgroup/memory/b/c"));
        assert_eq!(parent.pids, Path::new("/sys/fs/cgroup/pids/a"));
    }

    #[test]
    fn a_group_is_found_below_what_is_mounted_of_it() {
        let mounts = "30 24 0:26 /docker/x /sys/fs/cgroup ro - cgroup2 cgroup rw,nsdelegate\n";
        let own = kernel("0::/docker/x/y\n", mounts).own_group(None).unwrap();
        assert_eq!(own.1, Path::new("/sys/fs/cgroup/y"));
        assert_eq!(kernel("0::/other\n", mounts).own_group(None), None);
        assert_eq!(kernel("", mounts).own_group(None), None);
        assert_eq!(kernel("0::/\n", "nonsense - \n\n- -\n").own_group(None), None);
    }

    #[test]
    fn version_2_is_used_below_the_nearest_group_with_the_controllers() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path();
        let own = top.join("slice/app/scope");
        fs::create_dir_all(&own).unwrap();
        for (path, controllers) in
            [("", "cpu memory pids"), ("slice", "memory pids\n"), ("slice/app", "memory")]
        {
            fs::write(top.join(path).join("cgroup.subtree_control"), controllers).unwrap();
            fs::write(top.join(path).join("cgroup.procs"), "").unwrap();
        }
        let mounts = format!("30 24 0:26 / {} rw - cgroup2 cgroup rw\n", top.display());
        let kernel = kernel("0::/slice/app/scope\n", &mounts);
        let parent = GroupParent::find(&kernel).unwrap();
        assert_eq!((parent.version, &*parent.memory), (Version::Two, &*top.join("slice")));
        let options = "quiet cgroup.memory=nokmem".to_owned();
        assert_eq!(GroupParent::find(&Kernel { options, ..kernel }), None);
    }
}
