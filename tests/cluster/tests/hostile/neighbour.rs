//! What hostile modules cost a good one: the time until its changes reach the cluster,
//! and memory of the host after they are gone.

use std::fmt::Write as _;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use innkeeper_cluster_tests::{Host, Kind, Stage, eventually};

use crate::case::Case;

/// How long namespaces, Modules and their caches may take to go.
const GONE_WITHIN: Duration = Duration::from_mins(3);
/// What the C library's allocator may keep of freed memory, in KiB. That the host itself gives all
/// of it back is counted at the allocator, in tests/hostile/tests/memory.rs.
const KEPT_KIB_MAX: u64 = 128 << 10;

/// How long changes of the good module took to reach the cluster, alone and during each case.
#[derive(Default)]
pub(crate) struct Reactions {
    alone: Vec<Duration>,
    during: Vec<(String, Duration)>,
}

impl Reactions {
    /// Notes a change that was made while no hostile module was there.
    pub(crate) fn alone(&mut self, took: Duration) {
        self.alone.push(took);
    }

    /// Notes a change that was made while a case went on.
    pub(crate) fn during(&mut self, case: &str, took: Duration) {
        self.during.push((case.to_owned(), took));
    }

    /// The figures for docs/benchmarks.md: never asserted, since the machine is shared with the API
    /// server and with other tests.
    pub(crate) fn summary(&mut self) -> String {
        self.alone.sort();
        self.during.sort_by_key(|(_, took)| *took);
        let alone = self.alone.get(self.alone.len() / 2).copied().unwrap_or_default();
        let ratio = |took: Duration| took.as_secs_f64() / alone.as_secs_f64().max(1e-9);
        let mut text = format!("a change of the good module alone: {} ms", alone.as_millis());
        for (percent, what) in [(50, "p50"), (99, "p99"), (100, "most")] {
            let index = (self.during.len() * percent / 100).min(self.during.len() - 1);
            if let Some((case, took)) = self.during.get(index) {
                // A String takes any text.
                let _ =
                    write!(text, "; {what} {} ms = {:.1} ({case})", took.as_millis(), ratio(*took));
            }
        }
        text
    }
}

/// A line of the host's memory figures, in KiB: `RssAnon` is what it has now without mapped files,
/// `VmHWM` the most ever.
pub(crate) fn kib(host: &Host, figure: &str) -> Result<u64> {
    let text = std::fs::read_to_string(format!("/proc/{}/status", host.pid()))?;
    let line = text.lines().find(|line| line.starts_with(figure));
    let line = line.with_context(|| format!("no {figure} in /proc"))?;
    let number = line.split_whitespace().nth(1).context("no number")?;
    Ok(number.parse()?)
}

/// Deletes all hostile Modules with their namespaces, and waits until the host has given memory
/// back.
pub(crate) async fn memory_returns(
    stage: &Stage,
    host: &Host,
    cases: &[Case],
    before_kib: u64,
) -> Result<()> {
    for case in cases {
        stage.admin.delete(Kind::MODULE, "", case.name).await?;
        if case.namespace.is_none() {
            stage.admin.delete(Kind::NAMESPACE, "", &case.home()).await?;
        }
    }
    for case in cases {
        stage.admin.until_gone(GONE_WITHIN, (Kind::MODULE, "", case.name)).await?;
    }
    let most = before_kib + KEPT_KIB_MAX;
    let what = format!("the host has at most {most} KiB ({before_kib} before)");
    eventually(&what, GONE_WITHIN, async || {
        let now = kib(host, "RssAnon")?;
        Ok(if now <= most { Ok(now) } else { Err(format!("{now} KiB")) })
    })
    .await?;
    let now = kib(host, "RssAnon")?;
    println!("the host had {before_kib} KiB before, {now} KiB after the hostile modules were gone");
    ensure!(now > 0, "the host is gone");
    Ok(())
}
