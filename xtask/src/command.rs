//! Running other programs.

use std::ffi::OsStr;
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
    target_of(&root())
}

/// The folder of build results of a workspace.
pub(crate) fn target_of(workspace: &Path) -> PathBuf {
    let named = std::env::var_os("CARGO_TARGET_DIR");
    named.map_or_else(|| workspace.join("target"), PathBuf::from)
}

/// Cargo, in the root of the repository, with `args`.
pub(crate) fn cargo(args: &[&str]) -> Command {
    // Set by cargo when it runs us: the same toolchain.
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root()).args(args);
    for (name, _) in std::env::vars_os() {
        if is_of_package(&name) {
            command.env_remove(name);
        }
    }
    command
}

/// Whether `cargo run` sets this variable for the program that it runs, from the program's package.
/// The build script of `ring` reads these names: a cargo that gets them compiles `ring`, and
/// everything that depends on it, once more than a cargo that a shell runs.
fn is_of_package(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") || name == "OUT_DIR"
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cargo_gets_no_variable_of_the_package_that_runs_it() {
        // Cargo runs this test, and sets them.
        for name in ["CARGO_PKG_NAME", "CARGO_MANIFEST_DIR"] {
            assert!(std::env::var_os(name).is_some(), "{name}");
            let removed = (OsStr::new(name), None);
            assert!(cargo(&[]).get_envs().any(|one| one == removed), "{name}");
        }
        for name in ["CARGO", "CARGO_HOME", "CARGO_TARGET_DIR", "CARGO_INCREMENTAL", "PATH"] {
            assert!(!is_of_package(OsStr::new(name)), "{name}");
        }
    }
}
