//! Innkeeper's own commands. `cargo xtask help` lists them.

mod bench;
mod cluster;
mod command;
mod crds;
mod demo;
mod fuzz;
mod guests;
mod image;
mod metadata;
mod openapi;
mod progress;
mod sbom;
mod schema;
mod suite;
mod supply;
mod tidy;

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
    /// Build the guests into guests/target/components: all, or those named
    Guests {
        /// Which (default: all)
        names: Vec<String>,
        /// Instead write the guests' CRDs and golden files anew
        #[arg(long, conflicts_with = "names")]
        update: bool,
        /// Build those that deploy/guests installs, and put them there
        #[arg(long, conflicts_with_all = ["names", "update"])]
        deploy: bool,
    },
    /// Make Innkeeper's image, without a container engine
    Image(image::Task),
    /// Write deploy/crds from the types of host/modules
    Crds,
    /// Show Innkeeper: build it and its guests, and run `innkeeper demo`
    Demo {
        /// End by itself when everything has been shown; the exit status tells success
        #[arg(long)]
        once: bool,
        /// Play it on a real control plane that is started for it, instead of on a simulated
        /// cluster
        #[arg(long)]
        cluster: bool,
        /// Start a node too, on which pods run; needs root
        #[arg(long, requires = "cluster")]
        node: bool,
        /// For `innkeeper demo`: --fast, --plain, --seed, --kubeconfig
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Write host/simulator/data from what a real API server publishes
    Openapi,
    /// Run everything that must hold: format, lints, tests of host and guests, on a real control
    /// plane too. Or run chosen tests again and again on a busy machine
    Test(suite::Repeat),
    /// Measure what docs/benchmarks.md says: the host on a control plane, then the sandbox
    Bench {
        /// For the host's part: --resources, --samples, --swaps
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Write docs/screens, what a user sees in a terminal, by running the stories on a real node:
    /// needs root
    Screens,
    /// Check licences, bans, sources and advisories of all dependencies against deny.toml
    Deny,
    /// Write what the program innkeeper is made of, as CycloneDX
    Sbom(sbom::Arguments),
    /// Search for documents that break the properties of tests/fuzz, with libFuzzer:
    /// docs/fuzzing.md
    Fuzz(fuzz::Arguments),
    /// Check the rules that no compiler holds: dependencies, imports, files, words, links
    Tidy {
        /// Instead write the exceptions that are left: counts only shrink
        #[arg(long)]
        lower: bool,
        /// Instead write all exceptions as they are, for a merge of work done without these rules
        #[arg(long, conflicts_with = "lower", hide = true)]
        raise: bool,
    },
    /// Write wit/schema/*.json from the contract's types
    Schema {
        /// Change nothing; fail if a file differs
        #[arg(long)]
        check: bool,
        /// Also keep them and the WIT under wit/released, as those of the present version
        #[arg(long, conflicts_with = "check")]
        freeze: bool,
    },
}

fn main() -> ExitCode {
    let result = match Arguments::parse().task {
        Task::Cluster(task) => cluster::run(&task),
        Task::Guests { update: true, .. } => guests::update(&command::root()),
        Task::Guests { deploy: true, .. } => guests::deploy(&command::root()),
        Task::Guests { names, .. } => {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let names = (!names.is_empty()).then_some(names.as_slice());
            guests::build(&command::root(), names).map(|_| ())
        }
        Task::Image(task) => image::run(&task),
        Task::Crds => crds::run(),
        Task::Demo { once, cluster, node, mut arguments } => {
            arguments.extend(once.then(|| "--once".to_owned()));
            let place = match (cluster, node) {
                (false, _) => demo::Where::Here,
                (true, false) => demo::Where::ControlPlane,
                (true, true) => demo::Where::Node,
            };
            demo::run(place, &arguments)
        }
        Task::Openapi => openapi::run(),
        Task::Test(repeat) => match repeat.runs() {
            Some(runs) => repeat.run(runs),
            None => suite::run(),
        },
        Task::Bench { arguments } => bench::run(&arguments),
        Task::Screens => suite::screens(),
        Task::Deny => supply::run(),
        Task::Sbom(arguments) => sbom::run(&arguments),
        Task::Fuzz(arguments) => fuzz::run(&arguments),
        Task::Tidy { lower: true, .. } => tidy::update(tidy::Update::Lower),
        Task::Tidy { raise: true, .. } => tidy::update(tidy::Update::Raise),
        Task::Tidy { .. } => tidy::run(),
        Task::Schema { freeze: true, .. } => schema::freeze(),
        Task::Schema { check, .. } => schema::run(check),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            progress::complain(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}
