//! Cost without a clock: how the work of a thread grows with its input, however busy the machine is.

use std::{fs, time::Duration};

/// What any measurement may be off by.
const GRACE: Duration = Duration::from_millis(200);

/// Does something of a size and of an eighth of it, and fails if the whole takes much more than eight
/// times as long on a processor. It is to be done on the thread that calls.
pub fn assert_linear(what: &str, size: usize, mut work: impl FnMut(usize)) {
    let mut taken = |size: usize| {
        let start = cpu_time();
        work(size);
        cpu_time() - start
    };
    let (short, long) = (taken(size / 8), taken(size));
    // It would take 64 times as long if every part looked at all others.
    assert!(long < short * 32 + GRACE, "{what}: {short:?}, then {long:?}");
}

/// How long this thread has been on a processor.
fn cpu_time() -> Duration {
    let stat = fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(stat.split(' ').next().unwrap().parse().unwrap())
}
