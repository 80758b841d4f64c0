//! How many programs of tests run at once.

use std::fs;
use std::thread;

use super::which::Which;

const GIB: u64 = 1024 * 1024 * 1024;

/// How many programs run at once on this machine: most of the time they wait.
pub(super) fn lanes(which: Which) -> usize {
    let cores = thread::available_parallelism().map_or(2, usize::from);
    let memory = fs::read_to_string("/proc/meminfo").ok();
    of(which, cores, memory.as_deref().and_then(available))
}

/// The same on a machine with these cores, and bytes of memory that programs may use if known.
fn of(which: Which, cores: usize, available: Option<u64>) -> usize {
    // What one program needs: for each core a test with a control plane and a host, or one test
    // with a node that runs pods.
    let (most, bytes) = match which {
        Which::Usual => (2 * cores, (cores as u64).saturating_mul(3 * GIB / 4)),
        // A node works also while its test waits.
        Which::Ignored => (cores + 1, 2 * GIB),
    };
    let fit =
        available.map_or(most, |available| usize::try_from(available / bytes).unwrap_or(most));
    // More than 8 were not tried.
    most.min(fit).clamp(2, 8)
}

/// Reads the available memory in bytes: `MemAvailable:  12345 kB`.
fn available(meminfo: &str) -> Option<u64> {
    let rest = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = rest.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_follow_the_cores_and_fit_into_the_memory() {
        assert_eq!(of(Which::Usual, 2, Some(20 * GIB)), 4);
        assert_eq!(of(Which::Ignored, 2, Some(20 * GIB)), 3);
        assert_eq!(of(Which::Usual, 2, Some(5 * GIB)), 3);
        assert_eq!(of(Which::Usual, 1, None), 2);
        assert_eq!(of(Which::Usual, 8, Some(20 * GIB)), 3, "8 tests in each");
        assert_eq!(of(Which::Ignored, 8, Some(20 * GIB)), 8, "one test in each");
        assert_eq!(of(Which::Usual, 4, Some(GIB)), 2, "at least two");
        assert_eq!(of(Which::Usual, 64, None), 8);
    }

    #[test]
    fn available_memory_is_read_from_meminfo() {
        let meminfo = "MemTotal:       24683940 kB\nMemAvailable:   22750000 kB\n";
        assert_eq!(available(meminfo), Some(22_750_000 * 1024));
        assert_eq!(available("MemTotal: 1 kB\n"), None);
    }
}
