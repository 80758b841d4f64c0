//! `cargo xtask operators`: unmodified operators of others, on the simulator and with faults.
//!
//! Builds the operators of tests/operators from the Go module proxy at the versions of its go.mod,
//! and runs each without faults and with each plan of tests/operators/plans. It is no part of CI
//! (docs/other-operators.md).

mod operator;
mod trial;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use innkeeper_controlplane::Programs;

use crate::command::{cargo, root, run as run_command};
use crate::operators::operator::Operator;
use crate::operators::trial::Trial;
use crate::progress::say;

/// Which operators to run, and with which plan.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Names of folders in tests/operators [default: all]
    names: Vec<String>,
    /// Use this plan only
    #[arg(long, value_name = "FILE")]
    plan: Option<PathBuf>,
}

/// Builds the operators, and runs each without and with faults.
///
/// # Errors
/// If Go or an operator is missing, a build fails, or an operator does not converge.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let source = root().join("tests/operators");
    let operators = operators(&source, &arguments.names)?;
    let plans = match &arguments.plan {
        Some(plan) => vec![std::path::absolute(plan)?],
        None => files(&source.join("plans"))?,
    };
    run_command(&mut cargo(&[
        "build",
        "--quiet",
        "--package",
        "innkeeper-cli",
        "--bin",
        "innkeeper",
    ]))?;
    let kubectl = kubectl()?;
    let mut failed = 0;
    for operator in &operators {
        say(&format!("{}: building {}", operator.name, operator.package));
        let program = operator.build(&source)?;
        for plan in std::iter::once(None).chain(plans.iter().map(Some)) {
            let trial = Trial { operator, program: &program, kubectl: &kubectl, plan };
            let what = match plan.and_then(|plan| plan.file_stem()) {
                Some(plan) => plan.to_string_lossy().into_owned(),
                None => "without faults".to_owned(),
            };
            match trial.run(&source) {
                Ok(outcome) => say(&format!("  {what}: {outcome}")),
                Err(error) => {
                    failed += 1;
                    say(&format!("  {what}: {error:#}"));
                }
            }
        }
    }
    if failed > 0 {
        bail!("{failed} runs did not converge; the output of each operator is above");
    }
    Ok(())
}

fn operators(source: &Path, names: &[String]) -> Result<Vec<Operator>> {
    let mut operators = Vec::new();
    for folder in files(source)? {
        if !folder.join("operator.yaml").exists() {
            continue;
        }
        let operator = Operator::read(&folder)?;
        if names.is_empty() || names.contains(&operator.name) {
            operators.push(operator);
        }
    }
    if let Some(name) = names.iter().find(|name| operators.iter().all(|one| one.name != **name)) {
        bail!("there is no operator `{name}`; the folders of {} have names", source.display());
    }
    Ok(operators)
}

/// The content of a folder, in the order of the names.
fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let mut files =
        entries.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<PathBuf>>>()?;
    files.sort();
    Ok(files)
}

/// kubectl: the installed one, or that of the control plane's program.
fn kubectl() -> Result<Vec<String>> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    if std::env::split_paths(&path).any(|folder| folder.join("kubectl").is_file()) {
        return Ok(vec!["kubectl".to_owned()]);
    }
    let command = Programs::find(&mut |line| say(line))?.command("kubectl")?;
    let parts = std::iter::once(command.get_program()).chain(command.get_args());
    Ok(parts.map(|part| part.to_string_lossy().into_owned()).collect())
}
