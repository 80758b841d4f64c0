//! `cargo xtask crds`: the CRDs in deploy/, from their Rust types.

use std::fs;

use anyhow::{Context as _, Result, bail};

use crate::command::{cargo, line, root};
use crate::progress::say;

/// Writes deploy/crds/modules.innkeeper.dev.yaml. A test of `innkeeper-modules` holds it to the
/// types; this program does not link that crate, which would bring a compiler along.
///
/// # Errors
/// If the definitions cannot be written.
pub(crate) fn run() -> Result<()> {
    let mut command = cargo(&["run", "--package", "innkeeper-modules", "--example", "crd"]);
    command.stderr(std::process::Stdio::inherit());
    let output = command.output().with_context(|| format!("cannot run `{}`", line(&command)))?;
    if !output.status.success() {
        bail!("`{}` failed ({})", line(&command), output.status);
    }
    let path = root().join("deploy/crds/modules.innkeeper.dev.yaml");
    fs::write(&path, output.stdout).with_context(|| path.display().to_string())?;
    say("wrote deploy/crds/modules.innkeeper.dev.yaml");
    Ok(())
}
