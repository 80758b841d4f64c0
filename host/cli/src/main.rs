//! The command `innkeeper`.
//!
//! Exit statuses: 0 done, 1 failed (the reason is on standard error), 2 wrong usage.
//! What was asked for goes to standard output, everything else to standard error.

mod build;
mod code_cache;
mod component;
mod connections;
mod demo;
mod dev;
mod document;
mod golden;
mod inspect;
mod kube;
mod lead;
mod logs;
mod metrics_access;
mod modules;
mod new;
mod objects;
mod out;
mod push;
mod rbac;
mod renamed;
mod render;
mod run;
mod serve;
mod simulate;
mod test;
mod uninstall;
mod watchdog;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use document::Document;

/// Runs Kubernetes reconcile logic that is WebAssembly.
#[derive(Parser)]
#[command(name = "innkeeper", version, about, after_help = EXIT_STATUSES, max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

const EXIT_STATUSES: &str =
    "Exit statuses: 0 done, 1 failed (standard error says why), 2 wrong usage.";

#[derive(Subcommand)]
enum Command {
    /// Make the crate of a guest, to begin with: builds, has tests, a definition and a sample.
    New(new::Arguments),
    /// Build the crate of a guest in Rust to a component, and check it.
    ///
    /// Needs a Rust that compiles for wasm32-unknown-unknown: that of rustup with the target added,
    /// or that of Debian's packages rustc-web, cargo-web and rust-web-src.
    Build(build::Arguments),
    /// Build a guest whenever its sources are saved, and swap it into a running host.
    ///
    /// A version that would delete something, or fails where the present one does not, is held:
    /// what it would do is shown. One that does not build changes nothing.
    Dev(dev::Arguments),
    /// Run the operator: the modules of a cluster, or of a folder.
    Run(run::Arguments),
    /// Say what a guest describes, imports and weighs.
    Inspect(inspect::Arguments),
    /// Print the least rights that a guest needs, as YAML.
    Rbac(rbac::Arguments),
    /// Put a guest into the cluster and point a Module at it.
    ///
    /// The guest lies in a ConfigMap of the namespace innkeeper-modules that is named by its
    /// content and never changed. One that has more than 1 MiB packed is split over several: NAME,
    /// and NAME-chunk-2 and so on, written before it.
    Push(push::Arguments),
    /// Show the modules of a cluster, and say which of their versions may serve.
    Modules(modules::Arguments),
    /// Delete all Modules, and take the host's finalizers off what they reconciled.
    Uninstall(uninstall::Arguments),
    /// Run an empty simulated cluster that kubectl can use, until Ctrl-C.
    ///
    /// It answers as a Kubernetes API server does, and keeps everything in memory. Deployments and
    /// Jobs make Pods, which are soon ready or done, though nothing runs in them. Nothing is left
    /// of it at the end.
    Simulate(simulate::Arguments),
    /// Show what a guest desires for objects from files, without a cluster, or how that differs
    /// from a golden file.
    Render(render::Arguments),
    /// Play scenarios on a simulated cluster, with virtual time, or on a real one.
    ///
    /// A scenario is a folder of numbered files, as KUTTL has them: 00-install.yaml is applied,
    /// then 00-assert.yaml must come true, and 00-errors.yaml must not be there; then 01-... See
    /// docs/testing.md.
    Test(test::Arguments),
    /// Show Innkeeper at work: its guests on a simulated cluster or a real one, and how they react
    /// to changes.
    ///
    /// It needs only the guests' components. kubectl works on the cluster meanwhile. On a terminal
    /// it shows tables, otherwise lines.
    Demo(demo::Arguments),
    /// Print the CustomResourceDefinition of Module, as YAML.
    Crd,
    /// Compile a component for the host that starts this process.
    #[command(hide = true)]
    Compile,
}

fn main() -> ExitCode {
    let result = match renamed::parse::<Arguments>().command {
        Command::Compile => return innkeeper_sandbox::compile_child(),
        Command::New(arguments) => new::run(&arguments),
        Command::Build(arguments) => build::run(&arguments),
        Command::Dev(arguments) => dev::run(&arguments),
        Command::Run(arguments) => run::run(&arguments),
        Command::Inspect(arguments) => inspect::run(&arguments),
        Command::Rbac(arguments) => rbac::run(&arguments),
        Command::Push(arguments) => push::run(&arguments),
        Command::Modules(arguments) => modules::run(&arguments),
        Command::Uninstall(arguments) => uninstall::run(&arguments),
        Command::Simulate(arguments) => simulate::run(&arguments),
        Command::Render(arguments) => render::run(&arguments),
        Command::Demo(arguments) => demo::run(&arguments),
        Command::Test(arguments) => test::run(&arguments),
        Command::Crd => innkeeper_modules::crd_yaml()
            .map_err(Into::into)
            .and_then(|text| out::document(&Document::built_in(text))),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever reads our output has had enough: `innkeeper inspect ... | head`.
        Err(error) if out::is_closed(&error) => ExitCode::SUCCESS,
        Err(error) => {
            out::eprint(&format!("innkeeper: {}", out::error_chain(&error)));
            ExitCode::FAILURE
        }
    }
}
