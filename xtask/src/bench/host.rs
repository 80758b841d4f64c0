//! The host that is measured.

use std::path::PathBuf;

use anyhow::Result;

use crate::command::{cargo, run as run_command, target};
use crate::progress::Steps;

/// The profile of the program of the image.
const IMAGE: &str = "image";

/// Builds the host in release, and the program of its image.
///
/// # Errors
/// If it does not build.
pub(super) fn build(steps: &mut Steps) -> Result<()> {
    steps.next("host, in release and for the image (about 25 min the first time)");
    let package = ["--package", "innkeeper-cli", "--bin"];
    run_command(cargo(&["build", "--release"]).args(package).arg("innkeeper"))?;
    run_command(cargo(&["build", "--profile", IMAGE]).args(package).arg("innkeeper-operator"))?;
    steps.end("built");
    Ok(())
}

/// The release build of the host.
pub(super) fn program() -> PathBuf {
    target().join("release/innkeeper")
}

/// The release build of the host, and the program of its image, by the variables that choose them.
pub(super) fn programs() -> [(&'static str, PathBuf); 2] {
    let operator = target().join(IMAGE).join("innkeeper-operator");
    [("INNKEEPER_BIN", program()), ("INNKEEPER_OPERATOR_BIN", operator)]
}
