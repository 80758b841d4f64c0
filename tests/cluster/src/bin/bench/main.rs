//! The figures of docs/benchmarks.md on a real control plane: `cargo xtask bench`.
//!
//! Requests are counted at the server, from its audit log, by the host's user: without Events
//! and access reviews. CPU and memory are those of the host's process, from /proc.

mod bench;
mod figures;
mod neighbours;
mod peers;
mod workload;
mod writes;

use anyhow::Result;
use clap::Parser as _;

use crate::bench::{Arguments, Bench};

#[tokio::main]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    if let Some(programs) = &arguments.peers {
        return peers::run(programs, &arguments.rounds, arguments.size).await;
    }
    if arguments.writes {
        return writes::run(arguments.size).await;
    }
    let mut bench = Bench::new(arguments).await?;
    if bench.arguments.neighbours {
        bench.create().await?;
        return neighbours::measure(&bench).await;
    }
    bench.create().await?;
    bench.change().await?;
    bench.latency().await?;
    bench.drift().await?;
    bench.restart().await?;
    bench.swap().await
}
