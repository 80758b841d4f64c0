//! An operator of Benches, written with kube-rs as its documentation teaches.

mod bench;
mod controller;

use clap::Parser;
use kube::Client;

/// Reconciles Benches.
#[derive(Parser)]
struct Arguments {
    /// Benches at the same time.
    #[arg(long, default_value_t = 0)]
    max_concurrent_reconciles: u16,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    tracing_subscriber::fmt::init();
    let client = Client::try_default().await?;
    controller::run(client, arguments.max_concurrent_reconciles).await;
    Ok(())
}
