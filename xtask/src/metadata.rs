//! What `cargo metadata` says of a workspace.

use std::path::Path;

use anyhow::{Context as _, Result, bail};
use serde::de::DeserializeOwned;

use crate::command::{cargo, line};

/// Asks cargo for the packages of the workspace in `folder`, those of its lock file. `T` has the
/// members that the caller reads.
///
/// # Errors
/// What cargo says, for instance if the lock file is out of date.
pub(crate) fn metadata<T: DeserializeOwned>(folder: &Path, options: &[&str]) -> Result<T> {
    let mut command = cargo(&["metadata", "--format-version", "1", "--locked"]);
    command.args(options).current_dir(folder);
    let output = command.output().with_context(|| format!("cannot run `{}`", line(&command)))?;
    if !output.status.success() {
        bail!(
            "`{}` in {} failed:\n{}",
            line(&command),
            folder.display(),
            String::from_utf8_lossy(&output.stderr)
        );
    }
    serde_json::from_slice(&output.stdout)
        .with_context(|| format!("cannot read the output of `{}`", line(&command)))
}
