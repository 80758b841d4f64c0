//! `cargo xtask fuzz`: libFuzzer on the readers of foreign bytes, for as long as one likes.
//!
//! The targets are built with coverage by the compiler's own pass, so that neither nightly nor
//! cargo-fuzz is needed; a C++ compiler is, for libFuzzer. `cargo fuzz run --fuzz-dir
//! tests/fuzz/libfuzzer TARGET` runs the same targets with a sanitizer.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::command::{cargo, root, run as run_command};
use crate::progress::Steps;

/// What makes the compiler count which code ran, and note what was compared.
const FLAGS: [&str; 7] = [
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "--cfg",
    "fuzzing",
];

/// A document that takes longer is reported as a hang, in seconds.
const DOCUMENT_SECONDS: u32 = 10;

/// The most memory that a target may take, in MiB.
const MEMORY_MIB: u32 = 2_048;

/// The longest document, in bytes.
const DOCUMENT_BYTES: u32 = 65_536;

/// Arguments of `cargo xtask fuzz`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Which target (default: all, one after the other)
    target: Option<String>,
    /// How long each target runs
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..))]
    seconds: u32,
    /// For libFuzzer: -jobs=N, -print_coverage=1
    #[arg(last = true)]
    options: Vec<String>,
}

/// Builds the targets and runs them.
///
/// # Errors
/// The target that found something; libFuzzer says where it put the document.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let all = targets()?;
    let targets = match &arguments.target {
        None => all,
        Some(one) if all.contains(one) => vec![one.clone()],
        Some(other) => bail!("there is no target {other}; there are {}", all.join(", ")),
    };
    let mut steps = Steps::new(1 + targets.len());
    steps.next("targets with coverage (about 6 min the first time)");
    let host = host()?;
    let mut build = cargo(&["build", "--locked", "--bins", "--target", &host]);
    build.current_dir(folder()).env("RUSTFLAGS", FLAGS.join(" ")).env("CARGO_TARGET_DIR", built());
    run_command(&mut build)?;
    steps.end("built");
    for target in &targets {
        steps.next(&format!("{target}, {} s", arguments.seconds));
        run_command(&mut program(&host, target, arguments)?)?;
        steps.end("nothing found");
    }
    Ok(())
}

/// The program of a target. New documents go to a folder of target/, what is in the repository
/// stays.
fn program(host: &str, target: &str, arguments: &Arguments) -> Result<Command> {
    let found = built().join("corpus").join(target);
    let findings = built().join("findings").join(target);
    for folder in [&found, &findings] {
        fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    }
    let mut program = Command::new(built().join(host).join("debug").join(target));
    program
        .arg(&found)
        .arg(root().join("tests/fuzz/corpus").join(target))
        .arg(format!("-max_total_time={}", arguments.seconds))
        .arg(format!("-timeout={DOCUMENT_SECONDS}"))
        .arg(format!("-rss_limit_mb={MEMORY_MIB}"))
        .arg(format!("-max_len={DOCUMENT_BYTES}"))
        .arg(format!("-artifact_prefix={}/", findings.display()))
        .arg("-print_final_stats=1")
        .args(&arguments.options);
    Ok(program)
}

fn folder() -> PathBuf {
    root().join("tests/fuzz/libfuzzer")
}

fn built() -> PathBuf {
    root().join("target/fuzz")
}

/// The targets, by the files that hold them.
fn targets() -> Result<Vec<String>> {
    let folder = folder().join("fuzz_targets");
    let entries = fs::read_dir(&folder).with_context(|| folder.display().to_string())?;
    let mut names = Vec::new();
    for entry in entries {
        let path = entry?.path();
        names.extend(path.file_stem().map(Path::new).map(|name| name.display().to_string()));
    }
    names.sort();
    Ok(names)
}

/// The machine's own target. Naming it keeps the flags from build scripts and macros.
fn host() -> Result<String> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc).arg("-vV").output().context("cannot run rustc -vV")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).context("rustc -vV names no host")
}

#[cfg(test)]
mod tests {
    #[test]
    fn targets_are_found_by_their_files() {
        let targets = super::targets().unwrap();
        assert!(targets.is_sorted() && targets.contains(&"manifest".to_owned()), "{targets:?}");
    }
}
