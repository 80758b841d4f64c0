//! Running other programs.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
pub(crate) use innkeeper_toolchain::command::line;

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    // The package lies one folder below it.
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map(Path::to_owned).unwrap_or_default()
}

/// The folder of build results.
pub(crate) fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// Cargo, in the root of the repository, with `args`.
pub(crate) fn cargo(args: &[&str]) -> Command {
    // Set by cargo when it runs us: the same toolchain.
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root()).args(args);
    command
}

/// Runs `command` with its output shown; an error unless it succeeds.
///
/// # Errors
/// If the program is missing or fails.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let line = line(command);
    let status = command.status().with_context(|| format!("cannot run `{line}`"))?;
    if !status.success() {
        bail!("`{line}` failed ({status})");
    }
    Ok(())
}
