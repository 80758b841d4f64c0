//! The files of the repository.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::command::{line, root};

/// A file that git knows or would take up.
pub(super) struct File {
    /// Its path in the repository.
    pub(super) name: String,
    pub(super) bytes: Vec<u8>,
}

/// All of them, by name.
///
/// # Errors
/// If git cannot list the files, or one cannot be read.
pub(super) fn all() -> Result<Vec<File>> {
    let mut command = Command::new("git");
    command.current_dir(root()).args([
        "ls-files",
        "-z",
        "--cached",
        "--others",
        "--exclude-standard",
    ]);
    let output = command.output().with_context(|| format!("cannot run `{}`", line(&command)))?;
    if !output.status.success() {
        bail!("`{}` failed: {}", line(&command), String::from_utf8_lossy(&output.stderr));
    }
    let mut files = Vec::new();
    for name in String::from_utf8_lossy(&output.stdout).split('\0').filter(|name| !name.is_empty())
    {
        let path = root().join(name);
        // Deleted, but not yet from the index.
        if !path.is_file() {
            continue;
        }
        let bytes = fs::read(&path).with_context(|| path.display().to_string())?;
        files.push(File { name: name.to_owned(), bytes });
    }
    files.sort_by(|a, b| a.name.cmp(&b.name));
    files.dedup_by(|a, b| a.name == b.name);
    Ok(files)
}

/// How the name of a file ends, without the dot.
pub(super) fn extension(name: &str) -> &str {
    Path::new(name).extension().and_then(|extension| extension.to_str()).unwrap_or_default()
}
