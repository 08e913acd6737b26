//! The resource usage of a run's processes: memory, and files that are in no folder.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::{OsStr, OsString},
    fs::{self, Metadata},
    io,
    os::unix::{
        ffi::OsStrExt as _,
        fs::{FileTypeExt as _, MetadataExt as _},
    },
    path::{Path, PathBuf},
};

use rustix::{fs::StatFs, process::Pid};

use super::{
    mounts::ETC,
    tree::{folder, number_field, status},
};
use crate::{level::SandboxLevel, limits::RunLimits, system::SYSTEM};

/// The settings for measuring the processes of a run.
#[derive(Debug)]
pub(crate) struct View<'r> {
    pub(crate) level: SandboxLevel,
    pub(crate) limits: &'r RunLimits,
    /// The directory of the run's files.
    pub(crate) base: &'r Path,
    /// Directories covered by layers, if the machine supports them.
    pub(crate) layered: &'r [OsString],
    /// The data for counting memory; `None` if a control group counts it.
    pub(crate) memory: Option<UncountedMemory<'r>>,
}

/// External knowledge about memory that no process shows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct UncountedMemory<'r> {
    /// The sizes of shared anonymous mappings that were requested, largest first.
    pub(crate) shared: &'r [u64],
    /// The number of system call filters that a script begins with.
    pub(crate) filters: u64,
}

/// The resource usage of processes.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ProcessUsage {
    /// Bytes of memory; with a control group, only those that it does not count.
    pub(crate) memory: u64,
    /// Bytes on disk, of deleted files.
    pub(crate) deleted: u64,
    /// Bytes in the layers.
    pub(crate) layers: u64,
    /// Whether a process cannot be inspected.
    pub(crate) hidden: bool,
}

/// Returns the total usage of these processes. Their files count if they are deleted and on the
/// same disk as the base.
pub(crate) fn usage(processes: &[Pid], view: &View<'_>) -> ProcessUsage {
    let disk = fs::metadata(view.base).map(|it| it.dev()).ok();
    let mut seen = ProcessTotals { disk, ..ProcessTotals::default() };
    let mut spaces = Vec::new();
    for pid in processes {
        let Some((place, status)) = find_living(*pid) else { continue };
        let folders = if view.level == SandboxLevel::None {
            thread_folders(*pid)
        } else {
            vec![place.clone()]
        };
        for place in &folders {
            seen.add_descriptors(place, view);
        }
        seen.add_program(&place);
        seen.layers = seen.layers.or_else(|| layers_size(&place, view.layered));
        seen.add_mappings(*pid, &place, view);
        if let Some(counting) = view.memory {
            let space = ProcessMemory::new(place, &status);
            seen.kernel += space.kernel_memory(&status, counting.filters);
            spaces.push(space);
        }
    }
    ProcessUsage {
        memory: view.memory.map_or(seen.kernel, |it| seen.memory(&spaces, it, view)),
        deleted: seen.deleted_size(view.limits.file),
        layers: seen.layers.unwrap_or(0),
        hidden: seen.hidden && view.level > SandboxLevel::None,
    }
}

/// Returns the size of `count` shared anonymous mappings. It is known how many still exist, but not
/// which: the largest are counted.
pub(crate) fn sum_largest(sizes: &[u64], count: usize) -> u64 {
    let known: u64 = sizes.iter().take(count).sum();
    let beyond = count.saturating_sub(sizes.len()) as u64;
    known.saturating_add(beyond.saturating_mul(sizes.last().copied().unwrap_or(0)))
}

/// Returns the number of shared anonymous mappings of these processes.
pub(crate) fn shared_mappings(processes: &[Pid]) -> usize {
    let mut all = BTreeSet::new();
    for place in processes.iter().filter_map(|it| find_living(*it)).map(|it| it.0) {
        let text = fs::read(place.join("maps")).unwrap_or_default();
        all.extend(deleted_mappings(&text).filter(Mapping::is_shared_memory).map(|it| it.file));
    }
    all.len()
}

/// The totals of all processes.
#[derive(Debug, Default)]
struct ProcessTotals {
    disk: Option<u64>,
    /// Deleted files: inode number, and size on disk.
    deleted: BTreeMap<u64, u64>,
    /// Deleted files of which only a mapping is left, with their size on disk if known.
    mapped: BTreeMap<u64, Option<u64>>,
    /// Bytes in the layers, once a process with layers was found.
    layers: Option<u64>,
    /// Shared anonymous mappings.
    shared: BTreeSet<(Vec<u8>, u64)>,
    sockets: BTreeSet<u64>,
    pipes: BTreeSet<u64>,
    /// Kernel memory for processes, descriptors and mappings, in bytes.
    kernel: u64,
    hidden: bool,
}

/// The maximum kernel memory for a task, a mapping, a system call filter, and a pipe.
const TASK: u64 = 32 * KIB;
const MAPPING: u64 = 512;
const FILTER: u64 = 128 * KIB;
const PIPE: u64 = 64 * KIB;
/// The kernel memory for a descriptor, per byte of its `fdinfo`, which lists watches and locks.
const DESCRIPTOR_INFO: u64 = 8;
const KIB: u64 = 1024;

impl ProcessTotals {
    fn add_descriptors(&mut self, place: &Path, view: &View<'_>) {
        for entry in self.list(&place.join("fd")) {
            // Following the link leads to the file, even if its name does not.
            let Ok(metadata) = fs::metadata(&entry) else { continue };
            if metadata.file_type().is_socket() {
                self.sockets.insert(metadata.ino());
            } else if metadata.file_type().is_fifo() {
                self.pipes.insert(metadata.ino());
            } else {
                self.add_file(&metadata);
            }
            // No control group counts locks on files.
            if view.memory.is_some() || metadata.is_file() {
                let number = entry.file_name().unwrap_or_default();
                let info = fs::read(place.join("fdinfo").join(number)).unwrap_or_default();
                self.kernel += DESCRIPTOR_INFO * info.len() as u64;
            }
        }
    }

    /// Counts the program file, which exists on disk as long as it runs.
    fn add_program(&mut self, place: &Path) {
        if let Ok(metadata) = fs::metadata(place.join("exe")) {
            self.add_file(&metadata);
        }
    }

    fn add_file(&mut self, metadata: &Metadata) {
        if metadata.is_file() && metadata.nlink() == 0 && Some(metadata.dev()) == self.disk {
            self.deleted.insert(metadata.ino(), metadata.blocks() * 512);
        }
    }

    fn add_mappings(&mut self, pid: Pid, place: &Path, view: &View<'_>) {
        let text = match fs::read(place.join("maps")) {
            Ok(text) => text,
            Err(error) => {
                self.hidden |= error.kind() == io::ErrorKind::PermissionDenied;
                return;
            }
        };
        if view.memory.is_some() {
            self.kernel += MAPPING * text.iter().filter(|it| **it == b'\n').count() as u64;
        }
        for mapping in deleted_mappings(&text) {
            if mapping.is_shared_memory() {
                self.shared.insert(mapping.file);
            } else if !mapping.is_elsewhere(view.layered) {
                self.mapped.entry(mapping.file.1).or_insert_with(|| mapping.size(pid));
            }
        }
    }

    /// Returns the size on disk of all deleted files, each counted once. An unknown size counts as
    /// the largest possible one.
    fn deleted_size(&self, largest: u64) -> u64 {
        let mapped = self.mapped.iter().filter(|it| !self.deleted.contains_key(it.0));
        let mapped = mapped.map(|it| it.1.unwrap_or(largest));
        self.deleted.values().copied().chain(mapped).fold(0, u64::saturating_add)
    }

    /// Returns the bytes of memory: first as a fast upper bound, and exactly if that exceeds the
    /// limit, because shared memory is counted for each process.
    fn memory(
        &self,
        spaces: &[ProcessMemory],
        counting: UncountedMemory<'_>,
        view: &View<'_>,
    ) -> u64 {
        let buffers =
            self.sockets.len() as u64 * socket_buffer_size() + self.pipes.len() as u64 * PIPE;
        let objects = sum_largest(counting.shared, self.shared.len());
        let files = if view.level == SandboxLevel::Strong { shared_files(spaces) } else { 0 };
        let files = files.saturating_add(self.layers.unwrap_or(0));
        let total = |anonymous: u64, shared: u64| {
            let shared = shared.max(objects.saturating_add(files));
            [anonymous, self.kernel, buffers].into_iter().fold(shared, u64::saturating_add)
        };
        let bound = total(
            spaces.iter().map(|it| it.anonymous).sum(),
            spaces.iter().map(|it| it.shared).sum(),
        );
        if bound <= view.limits.memory {
            return bound;
        }
        let exact: Vec<(u64, u64)> = spaces.iter().map(ProcessMemory::share).collect();
        total(exact.iter().map(|it| it.0).sum(), exact.iter().map(|it| it.1).sum())
    }

    fn list(&mut self, folder: &Path) -> Vec<PathBuf> {
        match fs::read_dir(folder) {
            Ok(entries) => entries.flatten().map(|it| it.path()).collect(),
            Err(error) => {
                self.hidden |= error.kind() == io::ErrorKind::PermissionDenied;
                Vec::new()
            }
        }
    }
}

/// The memory of a process.
#[derive(Debug)]
struct ProcessMemory {
    place: PathBuf,
    /// Bytes that are its own, or shared copy-on-write with its parent.
    anonymous: u64,
    /// Bytes of shared mappings that it has touched.
    shared: u64,
}

impl ProcessMemory {
    fn new(place: PathBuf, status: &str) -> Self {
        let sum = |keys: &[&str]| {
            keys.iter().filter_map(|it| number_field(status, it)).sum::<u64>() * KIB
        };
        let anonymous = sum(&["RssAnon:", "VmSwap:", "HugetlbPages:"]);
        Self { place, anonymous, shared: sum(&["RssShmem:"]) }
    }

    /// Returns the kernel memory for the process itself: its threads, page tables and filters.
    fn kernel_memory(&self, status: &str, filters: u64) -> u64 {
        let number = |key| number_field(status, key).unwrap_or(0);
        let own = number("Seccomp_filters:").saturating_sub(filters);
        number("Threads:") * TASK + number("VmPTE:") * KIB + own * FILTER
    }

    /// Returns its proportional share of memory. A process that cannot be inspected counts in full.
    fn share(&self) -> (u64, u64) {
        let whole = (self.anonymous, self.shared);
        let Ok(text) = fs::read_to_string(self.place.join("smaps_rollup")) else { return whole };
        let figure = |key| number_field(&text, key).map(|it| it * KIB);
        match (figure("Pss_Anon:"), figure("Pss_Shmem:")) {
            (Some(anonymous), Some(shared)) => {
                let other = ["SwapPss:", "Private_Hugetlb:", "Shared_Hugetlb:"];
                (anonymous + other.into_iter().filter_map(figure).sum::<u64>(), shared)
            }
            _ => whole,
        }
    }
}

/// Returns the bytes of files in the shared memory of processes at the level *strong*.
fn shared_files(spaces: &[ProcessMemory]) -> u64 {
    let stat = spaces.iter().find_map(|it| rustix::fs::statfs(it.place.join("root/dev/shm")).ok());
    stat.map_or(0, |it| used_bytes(&it))
}

/// Returns the bytes in the layers of a process, which are all in the same memory; `None` without
/// layers.
fn layers_size(place: &Path, layered: &[OsString]) -> Option<u64> {
    layered.iter().map(Path::new).find_map(|path| {
        let inside = place.join("root").join(path.strip_prefix("/").ok()?);
        // Without a layer, both paths are the same directory.
        let device = |it: &Path| fs::metadata(it).map(|it| it.dev()).ok();
        if device(path) == Some(device(&inside)?) {
            return None;
        }
        let stat = rustix::fs::statfs(&inside).ok()?;
        let files = stat.f_files.saturating_sub(stat.f_ffree);
        Some(used_bytes(&stat).saturating_add(files.saturating_mul(KIB)))
    })
}

/// Returns the bytes used in a file system.
fn used_bytes(stat: &StatFs) -> u64 {
    let blocks = stat.f_blocks.saturating_sub(stat.f_bfree);
    blocks.saturating_mul(u64::try_from(stat.f_bsize).unwrap_or(4 * KIB))
}

/// Returns the number of bytes that a socket can buffer by default.
fn socket_buffer_size() -> u64 {
    const USUAL: u64 = 212_992;
    let text = fs::read_to_string("/proc/sys/net/core/wmem_default").ok();
    text.and_then(|it| it.trim().parse().ok()).unwrap_or(USUAL)
}

/// Returns the `/proc` folder of a living process or thread, and its status: the first thread may
/// have ended before others.
fn find_living(pid: Pid) -> Option<(PathBuf, String)> {
    let place = folder(pid);
    let text = status(&place)?;
    let lives = |text: &str| number_field(text, "RssAnon:").is_some();
    if lives(&text) {
        return Some((place, text));
    }
    if number_field(&text, "Threads:")? <= 1 {
        return None;
    }
    thread_folders(pid)
        .into_iter()
        .find_map(|it| status(&it).filter(|text| lives(text)).map(|text| (it, text)))
}

fn thread_folders(pid: Pid) -> Vec<PathBuf> {
    let threads = fs::read_dir(folder(pid).join("task")).into_iter().flatten().flatten();
    threads.map(|it| it.path()).collect()
}

/// A mapping of a deleted file.
#[derive(Debug)]
struct Mapping<'t> {
    range: &'t [u8],
    rights: &'t [u8],
    /// Device and inode number.
    file: (Vec<u8>, u64),
    path: &'t [u8],
}

/// Returns the mappings of deleted files.
fn deleted_mappings(maps: &[u8]) -> impl Iterator<Item = Mapping<'_>> {
    maps.split(|it| *it == b'\n').filter(|it| it.ends_with(b" (deleted)")).filter_map(|line| {
        let mut fields = line.splitn(6, |it| *it == b' ');
        let (range, rights, _, device) =
            (fields.next()?, fields.next()?, fields.next()?, fields.next()?);
        let number = std::str::from_utf8(fields.next()?).ok()?.parse().ok()?;
        let path = fields.next()?.trim_ascii_start();
        Some(Mapping { range, rights, file: (device.to_owned(), number), path })
    })
}

impl Mapping<'_> {
    /// Whether it is shared anonymous memory, which has no file at all.
    fn is_shared_memory(&self) -> bool {
        self.path == b"/dev/zero (deleted)" && self.rights.ends_with(b"s")
    }

    /// Whether the file was in a place that a script cannot write, or in memory, as layers are.
    fn is_elsewhere(&self, layered: &[OsString]) -> bool {
        let path = Path::new(OsStr::from_bytes(self.path));
        if layered.iter().any(|it| path.starts_with(it)) {
            return true;
        }
        let system = SYSTEM.iter().chain(ETC).chain(&["/dev", "/memfd:", "/SYSV", "/[aio]"]);
        system.into_iter().any(|it| self.path.starts_with(it.as_bytes()))
    }

    /// Returns the size on disk of the file, if it can be read: only root may.
    fn size(&self, pid: Pid) -> Option<u64> {
        let link = folder(pid).join("map_files").join(self.range()?);
        fs::metadata(link).ok().map(|it| it.blocks() * 512)
    }

    /// Returns its name in `map_files`.
    fn range(&self) -> Option<String> {
        let (start, end) = std::str::from_utf8(self.range).ok()?.split_once('-')?;
        Some(format!("{}-{}", start.trim_start_matches('0'), end.trim_start_matches('0')))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_of_files_without_a_name_are_found() {
        let maps = b"00400000-00401000 r--p 00000000 fd:01 7    /tmp/a b (deleted)\n\
                     7f00-7f01 rw-s 00000000 00:01 1029                       /dev/zero (deleted)\n\
                     7f02-7f03 r-xp 00000000 fd:01 8 /usr/lib/x.so (deleted)\n\
                     7f04-7f05 r-xp 00000000 fd:01 9 /tmp/there\n\
                     7f06-7f07 rw-p 00000000 00:00 0\nnonsense (deleted)\n";
        let all: Vec<_> = deleted_mappings(maps).collect();
        assert_eq!(all.len(), 3);
        assert_eq!((all[0].path, all[0].file.1), (&b"/tmp/a b (deleted)"[..], 7));
        assert_eq!(all[0].range().unwrap(), "400000-401000");
        let kinds: Vec<_> =
            all.iter().map(|it| (it.is_shared_memory(), it.is_elsewhere(&[]))).collect();
        assert_eq!(kinds, [(false, false), (true, true), (false, true)]);
        assert!(all[0].is_elsewhere(&["/tmp".into()]));
        assert!(!all[0].is_elsewhere(&["/tm".into()]));
    }

    #[test]
    fn of_shared_mappings_the_largest_are_counted() {
        assert_eq!(sum_largest(&[5, 3, 1], 0), 0);
        assert_eq!(sum_largest(&[5, 3, 1], 2), 8);
        assert_eq!(sum_largest(&[5, 3, 1], 5), 11);
        assert_eq!(sum_largest(&[], 5), 0);
    }
}
