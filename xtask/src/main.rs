//! Innkeeper's own commands. `cargo xtask help` lists them.

mod cluster;
mod command;
mod progress;
mod schema;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Builds, tests and shows Innkeeper.
#[derive(Parser)]
#[command(name = "cargo xtask", disable_version_flag = true)]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Start or end a control plane (etcd, API server, controller manager) in the background
    #[command(subcommand)]
    Cluster(cluster::Task),
    /// Write wit/schema/*.json from the contract's types
    Schema {
        /// Change nothing; fail if a file differs
        #[arg(long)]
        check: bool,
    },
}

fn main() -> ExitCode {
    let result = match Arguments::parse().task {
        Task::Cluster(task) => cluster::run(&task),
        Task::Schema { check } => schema::run(check),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            progress::complain(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}
