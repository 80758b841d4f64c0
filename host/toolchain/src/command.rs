//! Runs other programs.

use std::process::Command;

use anyhow::{Context as _, Result, bail};

/// Runs a program and returns its standard output.
///
/// # Errors
/// If the program is missing, fails, or prints no text.
pub fn ask(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("cannot run `{}`", line(command)))?;
    if !output.status.success() {
        bail!(
            "`{}` failed:\n{}",
            line(command),
            String::from_utf8_lossy(&output.stderr).trim_end()
        );
    }
    String::from_utf8(output.stdout)
        .with_context(|| format!("`{}` printed bytes that are no text", line(command)))
}

/// The command as a user would type it.
pub fn line(command: &Command) -> String {
    std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(|word| word.to_string_lossy().into_owned())
        .collect::<Vec<_>>()
        .join(" ")
}
