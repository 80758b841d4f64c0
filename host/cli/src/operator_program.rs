//! The program `innkeeper-operator`: `innkeeper run` alone.
//!
//! A host in a cluster needs no simulator and none of the other commands, and their code would take
//! memory: the kernel reads a program in pieces of 64 KiB, and keeps those of which a part was
//! used. So images contain this program (docs/install.md).
#![allow(dead_code, reason = "the other program uses the rest of these files")]

mod admission;
mod compiler;
mod connections;
mod document;
mod kube;
mod lead;
mod logs;
mod metrics_access;
mod operators;
mod out;
mod renamed;
mod run;
mod serve;
mod signals;
mod watchdog;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Runs the operator of Innkeeper. The program `innkeeper` has the other commands.
#[derive(Parser)]
#[command(name = "innkeeper", version, max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the operator with the Modules of a cluster or of a folder.
    Run(Box<run::Arguments>),
    /// Compile a component for the host that starts this process.
    #[command(hide = true)]
    Compile,
}

fn main() -> ExitCode {
    match renamed::parse::<Arguments>().command {
        Command::Compile => innkeeper_sandbox::compile_child(),
        Command::Run(arguments) => out::exit(run::run(&arguments)),
    }
}
