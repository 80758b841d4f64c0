//! Runs the commands of documents for authors of guests.

#![allow(clippy::unwrap_used, unreachable_pub, reason = "helpers of tests")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use innkeeper_toolchain::Toolchain;

use crate::support::{CODE_CACHE, text};

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The commands in the shell blocks of a section.
pub(crate) fn commands(document: &str, heading: &str) -> Vec<String> {
    let section = document.split_once(&format!("{heading}\n")).unwrap().1;
    let section = section.split("\n## ").next().unwrap();
    let blocks = section.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    blocks.flat_map(str::lines).map(str::to_owned).collect()
}

/// Runs a line of a document, and returns its output. Nothing may go wrong.
pub(crate) fn shell(folder: &Path, line: &str) -> String {
    let (stdout, stderr) = shell_output(folder, line);
    assert!(!stderr.contains("warning"), "{line}\n{stderr}");
    stdout
}

/// Runs a line of a document, and returns its output and errors.
pub(crate) fn shell_output(folder: &Path, line: &str) -> (String, String) {
    let output = shell_command(folder, line).output().unwrap();
    let stderr = text(&output.stderr);
    assert!(output.status.success(), "{line}\n{}{stderr}", text(&output.stdout));
    (text(&output.stdout), stderr)
}

/// The call of a line of a document in a shell that knows `innkeeper`. Builds in the target folder
/// of the repository's own guests, which has the common dependencies already.
pub(crate) fn shell_command(folder: &Path, line: &str) -> Command {
    let guests = root().join("guests");
    let builds = ["innkeeper build", "exec innkeeper dev"].iter().any(|one| line.starts_with(one));
    let target = if builds {
        Toolchain::find(&guests).unwrap().shared_target_dir(&guests).unwrap()
    } else {
        guests.join("target")
    };
    let programs = Path::new(env!("CARGO_BIN_EXE_innkeeper")).parent().unwrap();
    let path = std::env::var("PATH").unwrap();
    let mut command = Command::new("sh");
    command
        .args(["-ec", line])
        .current_dir(folder)
        .env("PATH", format!("{}:{path}", programs.display()))
        .env_remove("INNKEEPER_SDK")
        .env("INNKEEPER_CACHE_DIR", CODE_CACHE)
        .env("CARGO_TARGET_DIR", target)
        .stdin(Stdio::null());
    command
}

/// The folder with the tools of a language, which `cargo xtask guests` has installed.
pub(crate) fn tools(program: &str) -> PathBuf {
    let all = innkeeper_toolchain::cache_folder().unwrap().join("languages");
    let folders = fs::read_dir(&all).into_iter().flatten().map(|entry| entry.unwrap().path());
    let mut complete = folders.filter(|one| one.join("complete").is_file());
    let found = complete.find(|one| one.join(program).exists());
    found.ok_or(format!("no {program} in {}; run `cargo xtask guests`", all.display())).unwrap()
}
