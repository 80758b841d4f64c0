//! The comparison of Innkeeper with the controllers of tests/bench/peers: the same resources, each
//! controller on a control plane of its own, one after the other, in rounds.

mod chart;
mod controller;
mod figure;
mod growth;
mod measurement;
mod report;
mod speed_reference;
mod trial;

use std::path::{Path, PathBuf};

use anyhow::Result;
use innkeeper_cluster_tests::stage::root;

use crate::figures::say;
use crate::peers::controller::Peer;
use crate::peers::measurement::{Machine, Results};
use crate::peers::trial::Trial;
use crate::workload::Size;

/// What the comparison measures.
#[derive(clap::Args)]
pub(crate) struct PeerArguments {
    /// With --peers: how many times each controller is measured.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// With --peers: only these controllers [default: all that are built].
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    only: Vec<Peer>,
    /// With --peers: the file of the results [default: tests/bench/peers/results.json].
    #[arg(long, value_name = "FILE")]
    results: Option<PathBuf>,
    /// With --peers: measure nothing; write the page and the charts from the results.
    #[arg(long)]
    report: bool,
    /// With --peers: measure, and leave the page and the charts as they are.
    #[arg(long, conflicts_with = "report")]
    no_report: bool,
    /// With --peers: measure the host alone, with each of these numbers of resources.
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "NUMBERS",
        conflicts_with_all = ["report", "only", "results"]
    )]
    growth: Vec<usize>,
}

/// Measures each controller in each round, without and with the controller manager, and writes the
/// page. Results are kept after each measurement.
///
/// # Errors
/// If a controller does not converge; the results until then are kept.
pub(crate) async fn run(programs: &Path, rounds: &PeerArguments, size: Size) -> Result<()> {
    if !rounds.growth.is_empty() {
        return growth::run(programs, &rounds.growth, size.samples).await;
    }
    let path =
        rounds.results.clone().unwrap_or_else(|| root().join("tests/bench/peers/results.json"));
    if rounds.report {
        return report::write(Results::read(&path)?);
    }
    let mut peers =
        if rounds.only.is_empty() { Peer::built(programs) } else { rounds.only.clone() };
    let mut results = Results {
        machine: Machine::read()?,
        versions: measurement::versions(programs)?,
        resources: size.resources,
        samples: size.samples,
        measurements: Vec::new(),
    };
    for round in 0..rounds.rounds {
        for controller_manager in [false, true] {
            for peer in &peers {
                let trial = Trial { peer: *peer, round, controller_manager };
                say(&format!("round {}: {trial}", round + 1));
                results.measurements.push(trial.run(programs, size).await?);
                results.write(&path)?;
            }
        }
        // Each controller follows another one in the next round.
        peers.rotate_left(1);
    }
    if rounds.no_report { Ok(()) } else { report::write(results) }
}
