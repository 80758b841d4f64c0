//! `cargo xtask conformance`.

#![allow(clippy::print_stdout, reason = "the output is the purpose")]

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use innkeeper_conformance::{Control, List, Options, Outcome, Report, Share, Verdict, run};

/// Runs Kubernetes' own specs that need no node, and compares the results with
/// tests/conformance/specs.yaml.
#[derive(Parser)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
#[command(name = "cargo xtask conformance", disable_version_flag = true)]
struct Arguments {
    /// Run on a real control plane instead of the simulator
    #[arg(long)]
    control: bool,
    /// Run the specs whose names match this regular expression, and show all failures
    #[arg(long, value_name = "REGEX")]
    focus: Option<String>,
    /// Print every spec with its expected result, and run nothing
    #[arg(long, exclusive = true)]
    list: bool,
    /// Also run the specs that differ and take long to fail
    #[arg(long)]
    all: bool,
    /// Write the results to specs.yaml and to the documentation (with --control: to control.json)
    #[arg(long)]
    write: bool,
    /// How many specs run at once
    #[arg(long, value_name = "NUMBER", default_value_t = 0, hide_default_value = true)]
    jobs: usize,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let result = if arguments.list { list().map(|()| true) } else { start(arguments) };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            println!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Runs specs, and says whether all is as expected.
fn start(arguments: Arguments) -> Result<bool> {
    let is_focused = arguments.focus.is_some();
    let options = Options {
        control: arguments.control,
        focus: arguments.focus,
        all: arguments.all,
        write: arguments.write,
        jobs: arguments.jobs,
    };
    let report = run(&options, &|line| println!("{line}"))?;
    if is_focused {
        show(&report);
    }
    for name in &report.repeated {
        println!("passed when repeated: {name}");
    }
    let failures = report.failures();
    for failure in &failures {
        println!("{failure}");
    }
    println!(
        "{} passed, {} failed, {} skipped; {} are not as expected",
        report.count(Outcome::Passed),
        report.count(Outcome::Failed),
        report.count(Outcome::Skipped),
        failures.len()
    );
    Ok(failures.is_empty())
}

/// Prints each result with its message.
fn show(report: &Report) {
    for (name, result) in &report.results {
        println!("{:?} after {} s: {name}", result.outcome, result.seconds);
        if result.outcome != Outcome::Passed {
            println!("  at {}\n  {}", result.place, result.message.replace('\n', "\n  "));
        }
    }
}

/// Prints the list and the share.
fn list() -> Result<()> {
    let (list, control) = (List::read()?, Control::read()?);
    for entry in &list.specs {
        let verdict = match &entry.verdict {
            Verdict::Passes { .. } => "passes ".to_owned(),
            Verdict::Differs { reason, .. } => format!("differs ({reason})"),
            Verdict::Skipped { reason } => format!("skipped ({reason})"),
        };
        println!("{verdict:<28} {}", entry.name);
    }
    println!();
    for (name, reason) in &list.reasons {
        println!("{name}: {}", reason.text);
    }
    println!("\n{}", Share::new(&list, &control).table());
    Ok(())
}
