//! Innkeeper's own commands. `cargo xtask help` lists them.

mod bench;
mod cluster;
mod command;
mod conformance;
mod crds;
mod demo;
mod fuzz;
mod guests;
mod image;
mod metadata;
mod openapi;
mod operators;
mod program;
mod progress;
mod reference;
mod sbom;
mod schema;
mod soak;
mod suite;
mod supply;
mod tidy;
mod user_folder;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Builds, tests and demonstrates Innkeeper.
#[derive(Parser)]
#[command(name = "cargo xtask", disable_version_flag = true)]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Start or stop a control plane (etcd, API server, controller manager) in the background
    #[command(subcommand)]
    Cluster(cluster::Task),
    /// Build guests into guests/target/components
    Guests {
        /// Names of the guests [default: all]
        names: Vec<String>,
        /// Update the guests' CRDs and golden files instead
        #[arg(long, conflicts_with = "names")]
        update: bool,
        /// Build the guests of deploy/guests, and copy them there
        #[arg(long, conflicts_with_all = ["names", "update"])]
        deploy: bool,
    },
    /// Build the program of images twice, the second time with a profile of its work: less CPU time
    /// and memory (about 45 min)
    Program,
    /// Build the container image of Innkeeper, without a container engine
    Image(image::Task),
    /// Write deploy/crds from the types of host/modules
    Crds,
    /// Build Innkeeper and its guests, and run `innkeeper demo`
    Demo {
        /// End after the last scenario; the exit status says whether all succeeded
        #[arg(long)]
        once: bool,
        /// Start a real control plane for the demo, instead of a simulated cluster
        #[arg(long)]
        cluster: bool,
        /// Also start a node that runs pods; needs root
        #[arg(long, requires = "cluster")]
        node: bool,
        /// Flags for `innkeeper demo`: --fast, --plain, --seed, --kubeconfig
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Write host/simulator/data from the documents of a real API server
    Openapi,
    /// Run all checks: format, lints, tests of host and guests, also on a real control plane. Or
    /// repeat chosen tests on a busy machine
    Test(suite::Repeat),
    /// Measure the figures of docs/benchmarks.md: the host on a control plane, then the sandbox,
    /// then admission
    Bench {
        /// Flags for the benchmark of the host: --resources, --samples, --swaps. Or --admission
        /// and flags for that of admission: --rounds, --seconds, --policies, --bindings. Or --peers
        /// and flags for the comparison with other controllers: --resources, --samples, --rounds,
        /// --only, --report
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Run Kubernetes' own specs that need no node on the simulator, and compare the results with
    /// tests/conformance/specs.yaml
    Conformance {
        /// --control, --focus REGEX, --list, --all, --write, --jobs NUMBER; --help explains them
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Build operators of others from the Go module proxy, and run them on the simulator without
    /// and with faults (docs/other-operators.md); no part of CI
    Operators(operators::Arguments),
    /// Write docs/screens, the pages with terminal output, from test runs on a real node; needs
    /// root
    Screens,
    /// Check licences, bans, sources and advisories of all dependencies against deny.toml
    Deny,
    /// Write the software bill of materials of the program innkeeper, as CycloneDX
    Sbom(sbom::Arguments),
    /// Search for inputs that break the properties of tests/fuzz, with libFuzzer (docs/fuzzing.md)
    Fuzz(fuzz::Arguments),
    /// Check the laws of the guests in guests/laws.yaml with new seeds (docs/laws.md)
    Soak(soak::Arguments),
    /// Check the rules that no compiler checks: dependencies, imports, files, words, links
    Tidy {
        /// Write the remaining exceptions instead: counts only shrink
        #[arg(long)]
        lower: bool,
        /// Write all exceptions as they are instead, for a merge of work without these rules
        #[arg(long, conflicts_with = "lower", hide = true)]
        raise: bool,
    },
    /// Write docs/reference, the pages of all fields, from wit/schema and deploy/crds
    Reference {
        /// Change no file; fail if one differs
        #[arg(long)]
        check: bool,
    },
    /// Write wit/schema/*.json from the types of the contract, and from them the types of the SDKs
    /// of other languages
    Schema {
        /// Change no file; fail if one differs
        #[arg(long)]
        check: bool,
        /// Also copy the schemas and the WIT to wit/released, as those of the present version
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
        Task::Program => program::run(),
        Task::Image(task) => image::run(&task),
        Task::Crds => crds::run(),
        Task::Demo { once, cluster, node, mut arguments } => {
            arguments.extend(once.then(|| "--once".to_owned()));
            let target = match (cluster, node) {
                (false, _) => demo::Where::Here,
                (true, false) => demo::Where::ControlPlane,
                (true, true) => demo::Where::Node,
            };
            demo::run(target, &arguments)
        }
        Task::Openapi => openapi::run(),
        Task::Test(repeat) => match repeat.runs() {
            Some(runs) => repeat.run(runs),
            None => suite::run(),
        },
        Task::Bench { arguments } => bench::run(&arguments),
        Task::Conformance { arguments } => conformance::run(&arguments),
        Task::Operators(arguments) => operators::run(&arguments),
        Task::Screens => suite::screens(),
        Task::Deny => supply::run(),
        Task::Sbom(arguments) => sbom::run(&arguments),
        Task::Fuzz(arguments) => fuzz::run(&arguments),
        Task::Soak(arguments) => soak::run(&arguments),
        Task::Tidy { lower: true, .. } => tidy::update(tidy::Update::Lower),
        Task::Tidy { raise: true, .. } => tidy::update(tidy::Update::Raise),
        Task::Tidy { .. } => tidy::run(),
        Task::Reference { check } => reference::run(check),
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
