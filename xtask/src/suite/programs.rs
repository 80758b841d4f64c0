//! Programs of tests, several side by side: most of the time they wait.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;

use super::Tests;
use crate::command::{cargo, line};
use crate::progress::say;

/// A program of tests.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Program {
    /// As cargo calls it.
    name: String,
    path: PathBuf,
    /// That of its package, in which it runs.
    folder: PathBuf,
}

/// What cargo says of something that it has built.
#[derive(Deserialize)]
struct Built {
    reason: String,
    executable: Option<PathBuf>,
    manifest_path: Option<PathBuf>,
    target: Option<Named>,
    profile: Option<Profile>,
}

/// How it was built: what tests only use, as the program of a package, is built beside them.
#[derive(Deserialize)]
struct Profile {
    test: bool,
}

#[derive(Deserialize)]
struct Named {
    name: String,
}

/// Those that `cargo test` would run with these arguments, by name.
pub(super) fn of(which: &[&str]) -> Result<Vec<Program>> {
    let mut command =
        cargo(&["test", "--workspace", "--no-run", "--message-format=json-render-diagnostics"]);
    let output = command.args(which).stdin(Stdio::null()).stderr(Stdio::inherit()).output();
    let output = output.with_context(|| format!("cannot run `{}`", line(&command)))?;
    if !output.status.success() {
        bail!("`{}` failed ({})", line(&command), output.status);
    }
    named(&String::from_utf8_lossy(&output.stdout))
}

fn named(messages: &str) -> Result<Vec<Program>> {
    let mut programs = Vec::new();
    for message in messages.lines() {
        let built: Built =
            serde_json::from_str(message).context("cargo says something unreadable")?;
        let is_test = built.profile.is_some_and(|profile| profile.test);
        if built.reason != "compiler-artifact" || !is_test {
            continue;
        }
        let (Some(path), Some(manifest), Some(target)) =
            (built.executable, built.manifest_path, built.target)
        else {
            continue;
        };
        let folder = manifest.parent().map(Path::to_owned).unwrap_or_default();
        programs.push(Program { name: target.name, path, folder });
    }
    programs.sort();
    Ok(programs)
}

/// How many run side by side.
fn lanes() -> usize {
    // With fewer the machine idles; with many each is slow, and what has a bound may miss it.
    thread::available_parallelism().map_or(2, usize::from).clamp(2, 4)
}

/// Runs all, also after one that fails, and shows what each said when it has ended. Gives the tests in them.
///
/// # Errors
/// Which have failed.
pub(super) fn run(programs: Vec<Program>, arguments: &[&str], tests: &mut Tests) -> Result<()> {
    let left = Mutex::new(VecDeque::from(programs));
    let ended = Mutex::new((Tests::default(), Vec::new()));
    let work = || {
        loop {
            let next = left.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
            let Some(program) = next else { break };
            let begun = Instant::now();
            let said = one(&program, arguments);
            // Held while it is shown, so that lines of two programs do not mix.
            let mut ended = ended.lock().unwrap_or_else(PoisonError::into_inner);
            let (name, seconds) = (&program.name, begun.elapsed().as_secs_f32());
            say(&format!("     Running {name} ({}), {seconds:.1} s", program.folder.display()));
            let (text, ok) = said.unwrap_or_else(|error| (format!("{error:#}"), false));
            for line in text.lines() {
                say(line);
                ended.0.add_line(line);
            }
            if !ok {
                ended.1.push(name.clone());
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..lanes() {
            scope.spawn(work);
        }
    });
    let (found, failed) = ended.into_inner().unwrap_or_else(PoisonError::into_inner);
    tests.passed += found.passed;
    tests.failed += found.failed;
    if !failed.is_empty() {
        bail!("these programs of tests failed: {}", failed.join(", "));
    }
    Ok(())
}

/// What it says, and whether all is well.
fn one(program: &Program, arguments: &[&str]) -> Result<(String, bool)> {
    let (mut reader, writer) = io::pipe()?;
    let mut command = Command::new(&program.path);
    command.args(arguments).current_dir(&program.folder).stdin(Stdio::null());
    // As cargo would.
    command.env("CARGO_MANIFEST_DIR", &program.folder);
    command.stdout(writer.try_clone()?).stderr(writer);
    let mut child = command.spawn().with_context(|| format!("cannot run `{}`", line(&command)))?;
    // Else our ends of the pipe keep it open.
    drop(command);
    let mut said = Vec::new();
    reader.read_to_end(&mut said)?;
    let status = child.wait()?;
    let mut text = String::from_utf8_lossy(&said).into_owned();
    if !status.success() {
        // Writing into a String cannot fail.
        let _ = writeln!(text, "{} failed ({status})", program.name);
    }
    Ok((text, status.success()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_in_what_cargo_says() {
        let messages = r#"{"reason":"compiler-artifact","manifest_path":"/w/a/Cargo.toml","target":{"name":"lib"},"profile":{"test":false},"executable":null}
{"reason":"compiler-artifact","manifest_path":"/w/b/Cargo.toml","target":{"name":"z"},"profile":{"test":true},"executable":"/t/z-1"}
{"reason":"compiler-artifact","manifest_path":"/w/b/Cargo.toml","target":{"name":"b"},"profile":{"test":false},"executable":"/t/b"}
{"reason":"compiler-artifact","manifest_path":"/w/b/Cargo.toml","target":{"name":"a"},"profile":{"test":true},"executable":"/t/a-1"}
{"reason":"build-finished","success":true}"#;
        let program = |name: &str| Program {
            name: name.to_owned(),
            path: format!("/t/{name}-1").into(),
            folder: "/w/b".into(),
        };
        assert_eq!(named(messages).unwrap(), [program("a"), program("z")]);
    }

    #[test]
    fn all_run_and_those_that_fail_are_named() {
        let program = |name: &str, path: &str| Program {
            name: name.to_owned(),
            path: path.into(),
            folder: "/".into(),
        };
        let programs = vec![
            program("bad", "/bin/false"),
            program("good", "/bin/echo"),
            program("none", "/no"),
        ];
        let mut tests = Tests::default();
        let line = "test result: ok. 2 passed; 0 failed; 0 ignored";
        let error = run(programs, &[line], &mut tests).unwrap_err().to_string();
        assert!(error.contains("bad") && error.contains("none"), "{error}");
        assert!(!error.contains("good"), "{error}");
        assert_eq!(tests, Tests { passed: 2, failed: 0 });
    }
}
