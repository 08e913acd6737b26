//! Marks, which reliably tell one state of a file from another.

use std::time::{Duration, SystemTime};

use crate::spec::SKILL_FILE;

/// The identity and state of a file or folder. The system sets `changed` at every change of
/// content, name or permissions, whatever time the file is given; on Windows, where it cannot be
/// asked for, it is the time of creation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Mark {
    pub(crate) device: u64,
    pub(crate) inode: u64,
    pub(crate) size: u64,
    pub(crate) modified: Time,
    pub(crate) changed: Time,
}

/// The longest time for which a file timestamp may not advance, on the coarsest of file systems.
pub(crate) const SETTLED: Duration = Duration::from_secs(2);

/// Seconds since 1970, and nanoseconds.
type Time = (i64, u32);

/// The files that a visit looked at, by their paths within the visited folder.
#[derive(Debug, Default)]
pub(crate) struct VisitMarks {
    pub(crate) marks: Vec<(Box<str>, Mark)>,
    /// Whether there was something that marks do not cover, such as a link.
    pub(crate) is_more: bool,
}

impl VisitMarks {
    /// Returns the mark of the `SKILL.md`.
    pub(crate) fn document(&self) -> Option<&Mark> {
        self.marks.iter().find(|it| it.0.eq_ignore_ascii_case(SKILL_FILE)).map(|it| &it.1)
    }
}

impl Mark {
    /// Whether the file was changed long enough before `moment` that any change after it gives
    /// another mark. File timestamps may not advance for a while.
    pub(crate) fn is_settled(&self, moment: SystemTime, settled: Duration) -> bool {
        let Some(before) = moment.checked_sub(settled) else { return false };
        let Ok(before) = before.duration_since(SystemTime::UNIX_EPOCH) else { return false };
        let before = (before.as_secs().cast_signed(), before.subsec_nanos());
        self.modified < before && self.changed < before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_settled_once_its_clock_has_moved_on() {
        let at = |seconds: i64| Mark {
            device: 1,
            inode: 1,
            size: 1,
            modified: (0, 0),
            changed: (seconds, 0),
        };
        let moment = SystemTime::UNIX_EPOCH + Duration::from_secs(100);
        let settled = Duration::from_secs(2);
        assert!(at(97).is_settled(moment, settled));
        for seconds in [98, 99, 100, 101, i64::MAX] {
            assert!(!at(seconds).is_settled(moment, settled), "{seconds}");
            assert!(!Mark { modified: (seconds, 0), ..at(0) }.is_settled(moment, settled));
        }
        assert!(!at(-1).is_settled(SystemTime::UNIX_EPOCH, settled));
    }
}
