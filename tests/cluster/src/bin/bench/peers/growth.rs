//! How the cost of the host grows with the number of resources.

use std::path::Path;

use anyhow::Result;

use crate::figures::say;
use crate::peers::controller::Peer;
use crate::peers::measurement::Measurement;
use crate::peers::trial::Trial;
use crate::workload::Size;

/// The columns of the table. CPU times are those of each resource.
const COLUMNS: [&str; 15] = [
    "resources",
    "s until all are created",
    "CPU ms, created",
    "CPU ms, changed",
    "CPU ms of a restart",
    "CPU ms of the API server, created",
    "reference ms, created",
    "reference ms, changed",
    "requests, created",
    "requests, changed",
    "memory MiB, idle",
    "memory MiB, created",
    "memory MiB, changed",
    "memory MiB after a restart",
    "KiB more than idle for each resource",
];

/// Measures the host with each of these numbers of resources, each on a control plane of its own,
/// and prints a table in Markdown.
///
/// # Errors
/// If the host does not converge; the rows until then are printed.
pub(crate) async fn run(programs: &Path, numbers: &[usize], samples: usize) -> Result<()> {
    say(&format!("| {} |", COLUMNS.join(" | ")));
    say(&format!("|{}", "---|".repeat(COLUMNS.len())));
    for resources in numbers {
        let size = Size { resources: *resources, samples };
        let trial = Trial { peer: Peer::Innkeeper, round: 0, controller_manager: false };
        say(&row(&trial.run(programs, size).await?));
    }
    Ok(())
}

fn row(measured: &Measurement) -> String {
    let Measurement { idle, created, changed, restart, .. } = measured;
    let restart_cpu = restart.as_ref().map_or(f64::NAN, |restart| restart.cpu_s);
    let restarted = restart.as_ref().map_or(f64::NAN, |restart| restart.memory.rss_mib);
    format!(
        "| {} | {:.0} | {:.2} | {:.2} | {:.2} | {:.1} | {:.2} | {:.2} | {:.2} | {:.2} | {:.1} | {:.1} | {:.1} | {restarted:.1} | {:.1} |",
        created.resources,
        created.seconds,
        created.each(created.cpu_s * 1000.0),
        changed.each(changed.cpu_s * 1000.0),
        created.each(restart_cpu * 1000.0),
        created.each(created.api_server_cpu_s * 1000.0),
        created.reference_ms.unwrap_or(f64::NAN),
        changed.reference_ms.unwrap_or(f64::NAN),
        created.requests_each(),
        changed.requests_each(),
        idle.rss_mib,
        created.memory.rss_mib,
        changed.memory.rss_mib,
        created.each((restarted - idle.rss_mib) * 1024.0),
    )
}
