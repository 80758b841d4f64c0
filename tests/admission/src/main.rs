//! `cargo xtask bench --admission`: the figures of docs/benchmarks.md about admission.

use anyhow::Result;
use clap::Parser as _;
use innkeeper_admission_load::bench::{self, Arguments};

#[tokio::main]
async fn main() -> Result<()> {
    bench::run(&Arguments::parse()).await
}
