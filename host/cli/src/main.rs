//! The command `innkeeper`.
//!
//! Exit statuses: 0 success, 1 failure (the reason is on standard error), 2 wrong usage.
//! The result goes to standard output, everything else to standard error.

mod admission;
mod audit;
mod build;
mod check;
mod code_cache;
mod compiler;
mod component;
mod connections;
mod definitions;
mod demo;
mod dev;
mod document;
mod file_objects;
mod given_module;
mod golden;
mod history;
mod inspect;
mod kube;
mod lead;
mod logs;
mod metrics_access;
mod modules;
mod new;
mod objects;
mod operators;
mod out;
mod parameter_kinds;
mod policy_consent;
mod preview;
mod primary_revisions;
mod push;
mod rbac;
mod renamed;
mod render;
mod review;
mod run;
mod serve;
mod signals;
mod simulate;
mod temporary;
mod test;
mod undo;
mod uninstall;
mod watchdog;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use document::Document;

/// Runs Kubernetes reconcile logic and admission policies that are compiled to WebAssembly.
#[derive(Parser)]
#[command(name = "innkeeper", version, about = ABOUT, after_help = AFTER_HELP, max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

const ABOUT: &str =
    "Runs Kubernetes reconcile logic and admission policies that are compiled to WebAssembly";

const AFTER_HELP: &str = "\
Environment:
  INNKEEPER_CACHE_DIR  Folder for compiled guests, so that the commands compile each guest only
                       once. Only its owner may have access to it. If it is empty, the commands
                       keep none [default: innkeeper/code in XDG_CACHE_HOME or ~/.cache]
  INNKEEPER_CACHE_MIB  Maximum size of the compiled guests in that folder, in MiB [default: 1024]

Exit statuses: 0 success, 1 failure (standard error has the reason), 2 wrong usage.";

#[derive(Subcommand)]
enum Command {
    /// Create the crate of a guest: a working example with tests, a CRD and a sample.
    New(new::Arguments),
    /// Build the component of a guest in Rust, and check it.
    ///
    /// Needs a Rust toolchain that compiles for wasm32-unknown-unknown: rustup's after `rustup
    /// target add wasm32-unknown-unknown`, or Debian's packages rustc-web, cargo-web and
    /// rust-web-src.
    Build(build::Arguments),
    /// Build a guest whenever its sources change, and swap it into a running host.
    ///
    /// The host holds a candidate that would delete objects, or that fails where the active
    /// revision does not; the command then shows the preview. A build that fails changes nothing.
    Dev(dev::Arguments),
    /// Run the operator with the Modules of a cluster or of a folder.
    Run(run::Arguments),
    /// Show the manifest, the imports and the size of a guest.
    Inspect(inspect::Arguments),
    /// Print the ServiceAccount and the minimal RBAC rules that a guest needs, as YAML.
    Rbac(rbac::Arguments),
    /// Store a guest in the cluster and make it the source of a Module.
    ///
    /// The command writes an immutable ConfigMap in the namespace innkeeper-modules, whose name
    /// contains the digest of the component. It splits a component of more than 1 MiB (gzip) into
    /// several ConfigMaps: NAME, NAME-chunk-2 and so on.
    Push(push::Arguments),
    /// Show the Modules of a cluster; approve, reject and roll back their revisions.
    Modules(modules::Arguments),
    /// List the stored revisions of a primary, newest first.
    ///
    /// The host stores them as ControllerRevisions if the desired state of the guest has
    /// revisionHistory. The command needs the rights to list ControllerRevisions and to read the
    /// primary.
    History(history::Arguments),
    /// Return a primary to a stored revision, as the user of the kubeconfig.
    ///
    /// The command shows the difference and the managers of the changed fields. It cannot check who
    /// wrote a revision, so it replaces the stored fields only with --to-revision; without it the
    /// command changes nothing and shows the command line that does.
    Undo(undo::Arguments),
    /// Delete all Modules and wait until the host has removed its finalizers. Their objects stay.
    Uninstall(uninstall::Arguments),
    /// Run an empty simulated cluster for kubectl until Ctrl-C.
    ///
    /// The simulator answers as a Kubernetes API server does, and keeps all objects in memory.
    /// Deployments and Jobs create Pods, which become ready or succeed although no container runs.
    /// The simulator does not connect to admission webhooks: `innkeeper test` runs policies.
    Simulate(simulate::Arguments),
    /// Show the desired objects of a guest for objects from files, or compare them with a golden
    /// file. Needs no cluster.
    Render(render::Arguments),
    /// Ask a policy about objects from files, or compare its answers with a golden file. Needs no
    /// cluster.
    ///
    /// The command makes the same document of each request as the host, checks the verdict by the
    /// same rules, and prints the text that kubectl shows and the changes. Exit statuses: 0 the
    /// policy allows all requests, 1 it denies one, 2 the files or options cannot be used, 3 a
    /// review failed.
    Review(review::Arguments),
    /// Check the laws of a guest under faults, or that policies give one result in every order.
    /// Needs no cluster.
    ///
    /// Of a guest that reconciles (`innkeeper check guest.wasm --samples DIR`), the command plays
    /// scenarios on a simulated cluster, from the creation of primaries to their deletion, with
    /// crashes, lost answers and late caches, and prints a line for each law (docs/laws.md).
    ///
    /// Of a set of policies (`innkeeper check --policies DIR -f objects.yaml`), the command asks
    /// for each object the policies that may change it in all orders (of more than six: all
    /// pairs), and once more about each result: the results must be equal, and the second pass
    /// must change nothing. Policies that only decide must decide equally about all results. If
    /// guests in the folder reconcile, the command also runs all of them on a simulated cluster
    /// until nobody writes any more. It checks each policy as the mode Enforce applies it. Exit
    /// statuses: 0 all checks hold, 1 a policy breaks a rule, 2 the files or options cannot be
    /// used, 3 a check has no result, for example since a review failed.
    Check(check::Arguments),
    /// Show which existing objects policies would deny, of a cluster or of files.
    ///
    /// Of a cluster the command shows the results of the host: how many objects do not pass and, if
    /// the API server serves reports of openreports.io, which ones. With components and -f it
    /// reviews the objects of files itself, without a cluster. Exit statuses: 0 nothing is denied,
    /// 1 something is, 2 the files or options cannot be used, 3 a review failed or the audit cannot
    /// be read.
    Audit(audit::Arguments),
    /// Run test cases on a simulated cluster with virtual time, or on a real cluster.
    ///
    /// A case is a folder of numbered files in KUTTL's format. The command applies 00-install.yaml,
    /// then waits until the cluster has the objects of 00-assert.yaml and none of 00-errors.yaml;
    /// then it continues with 01-... See docs/testing.md.
    Test(test::Arguments),
    /// Run a demo: the guests of the repository react to changes on a simulated or a live cluster.
    ///
    /// The demo needs only the guests' components. You can use kubectl on the cluster meanwhile. On
    /// a terminal the demo shows tables, otherwise plain lines. It runs until Ctrl-C.
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
        Command::Review(arguments) => return review::run(&arguments),
        Command::Check(arguments) => return check::run(&arguments),
        Command::Audit(arguments) => return audit::run(&arguments),
        Command::New(arguments) => new::run(&arguments),
        Command::Build(arguments) => build::run(&arguments),
        Command::Dev(arguments) => dev::run(&arguments),
        Command::Run(arguments) => run::run(&arguments),
        Command::Inspect(arguments) => inspect::run(&arguments),
        Command::Rbac(arguments) => rbac::run(&arguments),
        Command::Push(arguments) => push::run(&arguments),
        Command::Modules(arguments) => modules::run(&arguments),
        Command::History(arguments) => history::run(&arguments),
        Command::Undo(arguments) => undo::run(&arguments),
        Command::Uninstall(arguments) => uninstall::run(&arguments),
        Command::Simulate(arguments) => simulate::run(&arguments),
        Command::Render(arguments) => render::run(&arguments),
        Command::Demo(arguments) => demo::run(&arguments),
        Command::Test(arguments) => test::run(&arguments),
        Command::Crd => innkeeper_modules::crd_yaml()
            .map_err(Into::into)
            .and_then(|text| out::document(&Document::built_in(text))),
    };
    out::exit(result)
}
