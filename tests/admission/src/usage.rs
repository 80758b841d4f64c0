//! What a process uses, from /proc.

use std::fs;

use anyhow::{Context as _, Result};

/// Ticks of the clock of `/proc/PID/stat` in a second: Linux shows 100 to user space.
const TICKS_PER_SECOND: f64 = 100.0;

/// What a process has used so far, and the memory that it has now.
#[derive(Clone, Copy, Debug)]
pub struct Usage {
    /// CPU seconds, user and system.
    pub cpu_s: f64,
    /// Resident memory, in MiB.
    pub rss_mib: f64,
    /// The highest resident memory since [`reset_peak`], in MiB.
    pub peak_mib: f64,
    /// The part of the resident memory that no file backs, in MiB.
    pub anonymous_mib: f64,
}

impl Usage {
    /// Reads the usage of the process `pid`.
    ///
    /// # Errors
    /// If there is no such process.
    pub fn of(pid: u32) -> Result<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat"))
            .with_context(|| format!("the process {pid} has ended"))?;
        let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
        // The second field is a name in parentheses, which may have spaces.
        let fields: Vec<&str> =
            stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        let ticks = |index: usize| -> Result<f64> {
            Ok(fields.get(index).context("a field of /proc/PID/stat")?.parse()?)
        };
        let mib = |name: &str| -> Result<f64> {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            let kib = line.and_then(|rest| rest.trim().strip_suffix(" kB"));
            Ok(kib.with_context(|| format!("{name} of /proc/PID/status"))?.parse::<f64>()? / 1024.0)
        };
        Ok(Self {
            // utime and stime are fields 14 and 15.
            cpu_s: (ticks(11)? + ticks(12)?) / TICKS_PER_SECOND,
            rss_mib: mib("VmRSS:")?,
            peak_mib: mib("VmHWM:")?,
            anonymous_mib: mib("RssAnon:")?,
        })
    }
}

/// Lets the highest resident memory of a process begin with what it has now.
///
/// # Errors
/// If there is no such process of this user.
pub fn reset_peak(pid: u32) -> Result<()> {
    fs::write(format!("/proc/{pid}/clear_refs"), "5")
        .with_context(|| format!("the peak of the process {pid} cannot be reset"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may fail by it")]

    use super::*;

    #[test]
    fn usage_of_this_process_has_memory_and_a_peak() {
        let pid = std::process::id();
        reset_peak(pid).unwrap();
        let usage = Usage::of(pid).unwrap();
        assert!(usage.anonymous_mib > 0.0 && usage.rss_mib >= usage.anonymous_mib, "{usage:?}");
        assert!(usage.peak_mib > 0.0, "{usage:?}");
    }
}
