//! Programs of tests, several side by side: most of the time they wait.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;

use super::counts::TestCounts;
use super::durations::Durations;
use super::lanes::lanes;
use super::output::Run;
use super::times::{self, TestTime};
use super::which::Which;
use crate::command::{cargo, line, root};
use crate::progress::{complain, say};

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

/// How it was built. Cargo also builds programs that the tests only run, such as the binary of a
/// package.
#[derive(Deserialize)]
struct Profile {
    test: bool,
}

#[derive(Deserialize)]
struct Named {
    name: String,
}

/// Those that `cargo test` would run with these arguments, by name.
///
/// # Errors
/// If the tests do not build.
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

/// Result of programs: the tests in them, and how long each took.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub(super) counts: TestCounts,
    pub(super) times: Vec<TestTime>,
}

/// Runs all, also after one that fails, and shows the output of each when it has ended. Adds the
/// tests in them to `outcome`. The programs that took longest when they last ran start first.
///
/// # Errors
/// Which have failed.
pub(super) fn run(mut programs: Vec<Program>, which: Which, outcome: &mut Outcome) -> Result<()> {
    let mut durations = Durations::of_user()?;
    durations.sort(&mut programs, |program| program.key(which));
    let result = run_in_order(programs, which, outcome, &mut durations);
    // The next run is slower without the file, and no less right.
    if let Err(error) = durations.write() {
        complain(&format!("{error:#}"));
    }
    result
}

fn run_in_order(
    programs: Vec<Program>,
    which: Which,
    outcome: &mut Outcome,
    durations: &mut Durations,
) -> Result<()> {
    let left = Mutex::new(VecDeque::from(programs));
    let ended = Mutex::new((outcome, durations, Vec::new()));
    let work = || {
        loop {
            let next = left.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
            let Some(program) = next else { break };
            let start = Instant::now();
            let result = program.run_with_times(which);
            // Held while it is shown, so that lines of two programs do not mix.
            let mut ended = ended.lock().unwrap_or_else(PoisonError::into_inner);
            let (outcome, durations, failed) = &mut *ended;
            let (name, seconds) = (&program.name, start.elapsed().as_secs_f32());
            durations.set(program.key(which), seconds);
            say(&format!("     Running {name} ({}), {seconds:.1} s", program.folder.display()));
            let (is_success, times) = match result {
                Ok((run, times)) => {
                    for line in &run.lines {
                        say(&line.text);
                        outcome.counts.add_line(&line.text);
                    }
                    (run.is_success, times)
                }
                Err(error) => {
                    say(&format!("{error:#}"));
                    (false, Vec::new())
                }
            };
            outcome.times.extend(times);
            if !is_success {
                failed.push(name.clone());
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..lanes(which) {
            scope.spawn(work);
        }
    });
    let (.., failed) = ended.into_inner().unwrap_or_else(PoisonError::into_inner);
    if !failed.is_empty() {
        bail!("these programs of tests failed: {}", failed.join(", "));
    }
    Ok(())
}

impl Program {
    /// Its name, which no other program has: `tests/cluster/lease`.
    fn full_name(&self) -> String {
        let folder = self.folder.strip_prefix(root()).unwrap_or(&self.folder);
        format!("{}/{}", folder.display(), self.name)
    }

    /// The name under which its time is kept.
    fn key(&self, which: Which) -> String {
        [&[self.full_name().as_str()], which.arguments()].concat().join(" ")
    }

    /// The name of one of its tests that no test of another program has.
    pub(super) fn id(&self, test: &str) -> String {
        format!("{}::{test}", self.full_name())
    }

    /// Its tests, in the order in which it starts them.
    ///
    /// # Errors
    /// If the program cannot be run or does not list its tests.
    pub(super) fn list(&self, arguments: &[&str]) -> Result<Vec<String>> {
        let run = self.run(&[&["--list", "--format", "terse"], arguments].concat())?;
        if !run.is_success {
            bail!("{} does not list its tests: {}", self.path.display(), run.text());
        }
        Ok(times::listed(&run.text()))
    }

    fn run_with_times(&self, which: Which) -> Result<(Run, Vec<TestTime>)> {
        let order = self.list(which.arguments())?;
        let threads = which.threads();
        let number = threads.to_string();
        let run = self.run(&[which.arguments(), &["--test-threads", &number]].concat())?;
        let mut times = times::times(&order, threads, &run.lines);
        for time in &mut times {
            time.test = self.id(&time.test);
        }
        Ok((run, times))
    }

    /// Runs it with these arguments.
    ///
    /// # Errors
    /// If the program cannot be run.
    pub(super) fn run(&self, arguments: &[&str]) -> Result<Run> {
        let mut command = Command::new(&self.path);
        command.args(arguments).current_dir(&self.folder);
        // As cargo would.
        command.env("CARGO_MANIFEST_DIR", &self.folder);
        Run::of(&mut command, &self.name)
    }

    #[cfg(test)]
    pub(super) fn at(name: &str, path: &str, folder: &Path) -> Self {
        Self { name: name.to_owned(), path: path.into(), folder: folder.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn programs_are_found_in_what_cargo_says() {
        let messages = r#"{"reason":"compiler-artifact","manifest_path":"/w/a/Cargo.toml","target":{"name":"lib"},"profile":{"test":false},"executable":null}
{"reason":"compiler-artifact","manifest_path":"/w/b/Cargo.toml","target":{"name":"z"},"profile":{"test":true},"executable":"/t/z-1"}
{"reason":"compiler-artifact","manifest_path":"/w/b/Cargo.toml","target":{"name":"b"},"profile":{"test":false},"executable":"/t/b"}
{"reason":"compiler-artifact","manifest_path":"/w/b/Cargo.toml","target":{"name":"a"},"profile":{"test":true},"executable":"/t/a-1"}
{"reason":"build-finished","success":true}"#;
        let program = |name: &str| Program::at(name, &format!("/t/{name}-1"), Path::new("/w/b"));
        assert_eq!(named(messages).unwrap(), [program("a"), program("z")]);
    }

    #[test]
    fn programs_all_run_and_the_error_names_those_that_fail() {
        let folder = tempfile::tempdir().unwrap();
        let script = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, format!("#!/bin/sh\n{text}")).unwrap();
            std::fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
            Program::at(name, &path.display().to_string(), Path::new("/"))
        };
        let result = "test result: ok. 1 passed; 0 failed; 0 ignored";
        let good = format!(
            "[ $1 = --list ] && echo 'a: test' && exit; echo 'test a ... ok'; echo '{result}'"
        );
        let programs = vec![
            Program::at("bad", "/bin/false", Path::new("/")),
            script("good", &good),
            Program::at("none", "/no", Path::new("/")),
        ];
        let mut outcome = Outcome::default();
        let mut durations = Durations::at(&folder.path().join("durations.json"));
        let result = run_in_order(programs, Which::Usual, &mut outcome, &mut durations);
        let error = result.unwrap_err().to_string();
        assert!(error.contains("bad") && error.contains("none"), "{error}");
        assert!(!error.contains("good"), "{error}");
        assert_eq!(outcome.counts, TestCounts { passed: 1, failed: 0 });
        let timed: Vec<_> = outcome.times.iter().map(|time| &*time.test).collect();
        assert_eq!(timed, ["//good::a"]);
    }
}
