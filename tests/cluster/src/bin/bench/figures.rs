//! What the benchmark measures, and how it prints it.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, Result};
use innkeeper_cluster_tests::stage::HOST;
use innkeeper_cluster_tests::{AuditFilter, Stage};

/// CPU seconds and resident MiB of a process.
#[derive(Clone, Copy)]
pub(crate) struct Usage {
    pub(crate) cpu_s: f64,
    pub(crate) rss_mib: f64,
}

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
    let kib: f64 = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .and_then(|rest| rest.trim().strip_suffix(" kB"))
        .context("VmRSS")?
        .trim()
        .parse()?;
    Ok(Usage { cpu_s, rss_mib: kib / 1024.0 })
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

/// The host's requests since a mark: how many, how many were answered 409, and by verb and
/// resource. Without Events, access reviews, and watches, which are opened again every minute.
pub(crate) fn requests(
    stage: &Stage,
    mark: u64,
) -> Result<(usize, usize, BTreeMap<String, usize>)> {
    let events = stage.plane.audit()?.since(mark, &AuditFilter::new().user(HOST))?;
    let mut by = BTreeMap::new();
    let (mut count, mut conflicts) = (0, 0);
    for event in events {
        let counted = event.verb != "watch"
            && event.resource != "events"
            && !event.resource.starts_with("selfsubject");
        if counted {
            count += 1;
            conflicts += usize::from(event.code == 409);
            let of = if event.subresource.is_empty() {
                event.resource.clone()
            } else {
                format!("{}/{}", event.resource, event.subresource)
            };
            *by.entry(format!("{} {of} {}", event.verb, event.code)).or_default() += 1;
        }
    }
    Ok((count, conflicts, by))
}
