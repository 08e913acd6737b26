//! Cost without a clock: how the CPU time of a thread grows with its input, however busy the
//! machine is.

use std::{fs, time::Duration};

/// The tolerance of a measurement.
const GRACE: Duration = Duration::from_millis(200);

/// Does work of a size and of an eighth of it, and fails if the whole takes much more than eight
/// times the CPU time. The work must be done on the calling thread.
pub fn assert_linear(what: &str, size: usize, mut work: impl FnMut(usize)) {
    let [short, long] = [size / 8, size].map(|size| {
        let start = cpu_time();
        work(size);
        cpu_time() - start
    });
    // A quadratic cost would be 64 times as high.
    assert!(long < short * 32 + GRACE, "{what}: {short:?}, then {long:?}");
}

/// Returns the CPU time of this thread.
fn cpu_time() -> Duration {
    let stat = fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(stat.split(' ').next().unwrap().parse().unwrap())
}
