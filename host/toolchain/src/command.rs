//! Running other programs.

use std::process::Command;

use anyhow::{Context as _, Result, bail};

/// What a program prints; an error if it is missing or fails.
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
        .with_context(|| format!("`{}` printed what is not text", line(command)))
}

/// The command as one would type it.
pub fn line(command: &Command) -> String {
    std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(|word| word.to_string_lossy().into_owned())
        .collect::<Vec<_>>()
        .join(" ")
}
