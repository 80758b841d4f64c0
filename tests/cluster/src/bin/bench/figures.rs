//! What the benchmark measures, and how it prints it.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, Result};
use innkeeper_cluster_tests::{AuditFilter, Stage};

/// CPU seconds and resident MiB of a process, or of several together.
#[derive(Clone, Copy, Default)]
pub(crate) struct Usage {
    pub(crate) cpu_s: f64,
    pub(crate) rss_mib: f64,
    /// The part of the resident memory that no file backs.
    pub(crate) anonymous_mib: f64,
}

impl std::ops::Add for Usage {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            cpu_s: self.cpu_s + other.cpu_s,
            rss_mib: self.rss_mib + other.rss_mib,
            anonymous_mib: self.anonymous_mib + other.anonymous_mib,
        }
    }
}

/// Reads what a process has used from /proc.
pub(crate) fn usage(pid: u32) -> Result<Usage> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let fields: Vec<&str> =
        stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |index: usize| -> Result<f64> {
        Ok(fields.get(index).context("a field of /proc/PID/stat")?.parse::<f64>()?)
    };
    // utime and stime are fields 14 and 15; the first two stand before the last parenthesis.
    let cpu_s = (ticks(11)? + ticks(12)?) / 100.0;
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let mib = |name: &str| -> Result<f64> {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let kib = line.and_then(|rest| rest.trim().strip_suffix(" kB")).context("a field in kB")?;
        Ok(kib.trim().parse::<f64>()? / 1024.0)
    };
    Ok(Usage { cpu_s, rss_mib: mib("VmRSS:")?, anonymous_mib: mib("RssAnon:")? })
}

pub(crate) fn quantile(times: &mut [Duration], part: f64) -> f64 {
    times.sort();
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "small counts"
    )]
    let index = ((times.len() as f64 - 1.0) * part).round() as usize;
    times.get(index).map_or(f64::NAN, |time| time.as_secs_f64() * 1000.0)
}

#[allow(clippy::print_stdout, reason = "this program prints figures")]
pub(crate) fn say(line: &str) {
    println!("{line}");
}

/// The requests of a controller.
#[derive(Default)]
pub(crate) struct Requests {
    pub(crate) count: usize,
    /// How many were answered 409.
    pub(crate) conflicts: usize,
    /// By verb, resource and HTTP status.
    pub(crate) by_verb: BTreeMap<String, usize>,
}

/// Counts the requests of a user since a mark of the audit log. Without Events, access reviews, and
/// watches, which are opened again every minute.
pub(crate) fn requests(stage: &Stage, user: &str, mark: u64) -> Result<Requests> {
    let events = stage.plane.audit()?.since(mark, &AuditFilter::new().user(user))?;
    let mut requests = Requests::default();
    for event in events {
        let counted = event.verb != "watch"
            && event.resource != "events"
            && !event.resource.starts_with("selfsubject");
        if counted {
            requests.count += 1;
            requests.conflicts += usize::from(event.code == 409);
            let of = if event.subresource.is_empty() {
                event.resource.clone()
            } else {
                format!("{}/{}", event.resource, event.subresource)
            };
            let what = format!("{} {of} {}", event.verb, event.code);
            *requests.by_verb.entry(what).or_default() += 1;
        }
    }
    Ok(requests)
}
