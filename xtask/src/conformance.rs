//! `cargo xtask conformance`: Kubernetes' own specs, on the simulator or a real control plane.

use anyhow::{Result, bail};
use innkeeper_controlplane::GoProgram;

use crate::command::{cargo, root};

/// Builds the program of the specs unless it is in the user's cache, as its tests do otherwise.
/// `say` gets a line before.
///
/// # Errors
/// If Go is missing, or the build fails.
pub(crate) fn build(say: &mut dyn FnMut(&str)) -> Result<()> {
    let source = root().join("tests/conformance/program");
    let what = "Kubernetes' specs";
    GoProgram { name: "conformance", what, source: &source, instead: "" }.find(say)?;
    Ok(())
}

/// Runs `innkeeper-conformance` with these arguments.
///
/// # Errors
/// If it does not build, or a result is not as the list expects.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let mut command = cargo(&["run", "--quiet", "--package", "innkeeper-conformance", "--"]);
    if !command.args(arguments).status()?.success() {
        bail!("the results are not as tests/conformance/specs.yaml expects, or the run failed");
    }
    Ok(())
}
