//! `cargo xtask test`: everything that must hold, in the order of cost.

mod counts;
mod dependencies;
mod disk;
mod durations;
mod lanes;
mod load;
mod output;
mod parts;
mod programs;
mod repeat;
mod times;
mod which;

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail};
use innkeeper_controlplane::Programs;

use self::counts::TestCounts;
use self::dependencies::Dependencies;
use self::disk::Disk;
use self::parts::Part;
use self::programs::Outcome;
pub(crate) use self::repeat::Repeat;
use self::times::slowest;
use self::which::Which;
use crate::command::{cargo, line, root};
use crate::progress::{Steps, complain, say};
use crate::{conformance, demo, guests, schema, supply, tidy};

const LINTS: [&str; 6] = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
const BUILD: [&str; 3] = ["build", "--workspace", "--all-targets"];

/// Steps that compile dependencies that are kept for later runs.
const GUESTS_STEP: &str = "guests in Rust: format, lints, tests";
const LINTS_STEP: &str = "lints (about 4 min the first time)";
const BUILD_STEP: &str = "host: build with its tests (about 8 min the first time)";

/// The suite as it runs.
struct Suite {
    steps: Steps,
    disk: Disk,
    tests: Outcome,
    failures: Vec<String>,
}

/// Runs all steps, also after a failure; an error names the steps that failed.
///
/// # Errors
/// The steps that failed.
pub(crate) fn run() -> Result<()> {
    let mut suite = Suite {
        steps: Steps::new(15),
        disk: Disk::new()?,
        tests: Outcome::default(),
        failures: Vec::new(),
    };
    suite.disk.start().iter().for_each(|line| say(line));

    suite.step("format", |_| command(&mut cargo(&["fmt", "--all", "--check"]))?.1);
    suite.step("tidy", |_| tidy::run());
    suite.step("dependencies: licences, bans, sources, advisories", |_| supply::run());
    suite.step("schemas of the contract", |_| schema::run(true));
    suite.compile();
    suite.step("host: unit tests", |tests| {
        // The same selection of packages as in the build, or features would differ and
        // everything would be compiled again.
        let units = programs::of(&["--lib", "--bins", "--examples"])?;
        programs::run(units, Which::Usual, tests)?;
        tests.add(command(&mut test(&["--doc"]))?)
    });
    suite.step("control plane and Kubernetes' specs (about 13 min the first time)", |_| {
        let mut tell = |line: &str| say(&format!("      {line}"));
        Programs::find(&mut tell)?;
        conformance::build(&mut tell)
    });
    suite.step("host: tests on a real control plane", |tests| {
        programs::run(programs::of(&["--test", "*"])?, Which::Usual, tests)
    });
    suite.step("node (about 8 min the first time; needs root)", |_| {
        innkeeper_node::programs(&mut |line| say(&format!("      {line}"))).map(drop)
    });
    suite.step("host: tests on a real node (needs root)", |tests| {
        let which = programs::of(&["--test", "node", "--test", "acceptance_*"])?;
        // One test of a program at a time: a node is much for a core.
        programs::run(which, Which::Ignored, tests)
    });
    // What the README promises; the host is there since the build above.
    suite.step("demo, once", |tests| {
        demo::built(demo::Where::Here, &["--once".to_owned(), "--fast".to_owned()])?;
        tests.counts.passed += 1;
        Ok(())
    });
    suite.end()
}

impl Suite {
    /// Compiles and checks what the tests need, with the dependencies that earlier runs compiled.
    fn compile(&mut self) {
        let host = Dependencies::new("host", root(), &[&LINTS, &BUILD]);
        let in_rust = Dependencies::new("guests", root().join("guests"), &guests::RUST_BUILDS);
        host.restore();
        in_rust.restore();
        let compiled = self.steps_at_once(vec![
            vec![Part::new(GUESTS_STEP, Ok(guests::rust_checks(&root())))],
            vec![
                Part::new("guests in other languages: types, tests", guests::other_checks(&root())),
                Part::new("guests: components", xtask(&["guests"]).map(|one| vec![one])),
            ],
            vec![
                Part::new(LINTS_STEP, Ok(vec![cargo(&LINTS)])),
                Part::new(BUILD_STEP, Ok(vec![cargo(&BUILD)])),
            ],
        ]);
        // After a failure units may be missing.
        let is_new = |steps: &[&str]| {
            self.failures.is_empty() && steps.iter().any(|&step| compiled.contains(step))
        };
        if is_new(&[GUESTS_STEP]) {
            in_rust.keep();
        }
        if is_new(&[LINTS_STEP, BUILD_STEP]) {
            host.keep();
        }
    }

    fn step(&mut self, what: &str, work: impl FnOnce(&mut Outcome) -> Result<()>) {
        self.steps.next(what);
        let mut tests = Outcome::default();
        let result = work(&mut tests);
        self.tests.times.append(&mut tests.times);
        self.ended(what, None, tests.counts, result);
    }

    /// Runs lanes of steps at once; shows the output of each step at its end. Gives the steps that
    /// compiled dependencies.
    fn steps_at_once(&mut self, lanes: Vec<Vec<Part>>) -> BTreeSet<String> {
        let mut compiled = BTreeSet::new();
        say("The next steps run at the same time, and are shown when they end:");
        lanes.iter().flatten().for_each(|part| say(&format!("      {}", part.what)));
        parts::run(lanes, |part| {
            self.steps.next(&part.what);
            part.lines.iter().for_each(|line| say(line));
            if part.lines.iter().any(|line| dependencies::is_compiled(line)) {
                compiled.insert(part.what.clone());
            }
            let result = part.error.map_or(Ok(()), |error| Err(anyhow!(error)));
            self.ended(&part.what, Some(part.time), part.counts, result);
        });
        compiled
    }

    /// Notes what came of a step that began before; with the time that it took, if it began much
    /// earlier than it was shown.
    fn ended(
        &mut self,
        what: &str,
        time: Option<Duration>,
        mut counts: TestCounts,
        result: Result<()>,
    ) {
        self.disk.look();
        let outcome = if let Err(error) = result {
            complain(&format!("{error:#}"));
            self.failures.push(format!("{what}: {}", first_line(&format!("{error:#}"))));
            // A step that fails without a failing test (it does not compile, say) counts too.
            counts.failed = counts.failed.max(1);
            "FAILED"
        } else {
            "ok"
        };
        match time {
            Some(time) => self.steps.end_after(outcome, time),
            None => self.steps.end(outcome),
        }
        self.tests.counts.add(counts);
    }

    fn end(self) -> Result<()> {
        say("");
        say("The steps, in seconds:");
        for line in self.steps.table() {
            say(&line);
        }
        say("");
        self.disk.end().iter().for_each(|line| say(line));
        say("");
        for line in slowest(self.tests.times) {
            say(&line);
        }
        if !self.failures.is_empty() {
            say("");
            say("These steps failed:");
            for failure in &self.failures {
                say(&format!("  {failure}"));
            }
            self.disk.scarce().iter().for_each(|line| say(&format!("  {line}")));
        }
        say("");
        let counts = self.tests.counts;
        say(&format!("{} passed, {} failed", counts.passed, counts.failed));
        if self.failures.is_empty() && counts.passed > 0 {
            return Ok(());
        }
        bail!("the suite failed");
    }
}

impl Outcome {
    /// Adds the tests of a command; an error if it failed.
    fn add(&mut self, (counts, result): (TestCounts, Result<()>)) -> Result<()> {
        self.counts.add(counts);
        result
    }
}

/// Runs the scenarios on a real node, which write their pages of docs/screens.
///
/// # Errors
/// The scenario that failed: its page is as it was.
pub(crate) fn screens() -> Result<()> {
    guests::build(&root(), None)?;
    command(&mut cargo(&BUILD))?.1?;
    let mut scenarios = test(&["--test", "acceptance_*", "--", "--ignored"]);
    command(scenarios.env("INNKEEPER_SCREENS", "write"))?.1
}

/// Another command of this program, as one of its own: its output can be kept.
fn xtask(what: &[&str]) -> Result<Command> {
    let mut command = Command::new(std::env::current_exe().context("cannot find xtask")?);
    command.current_dir(root()).args(what);
    Ok(command)
}

fn test(what: &[&str]) -> Command {
    let mut command = cargo(&["test", "--workspace", "--no-fail-fast"]);
    command.args(what);
    command
}

/// Runs `command`, shows its output, and counts the tests in it.
fn command(command: &mut Command) -> Result<(TestCounts, Result<()>)> {
    let name = line(command);
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot run `{name}`"))?;
    let mut tests = TestCounts::default();
    if let Some(stdout) = child.stdout.take() {
        for line in BufReader::new(stdout).lines() {
            let line = line.with_context(|| format!("reading from `{name}`"))?;
            say(&line);
            tests.add_line(&line);
        }
    }
    let status = child.wait().with_context(|| format!("waiting for `{name}`"))?;
    let result =
        if status.success() { Ok(()) } else { Err(anyhow::anyhow!("`{name}` failed ({status})")) };
    Ok((tests, result))
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn step_without_tests_counts_as_one_failure_when_it_fails() {
        let mut suite = Suite {
            steps: Steps::new(2),
            disk: Disk::new().unwrap(),
            tests: Outcome::default(),
            failures: Vec::new(),
        };
        suite.step("broken", |_| bail!("no"));
        suite.step("fine", |tests| {
            tests.counts.passed = 3;
            Ok(())
        });
        assert_eq!(suite.tests.counts, TestCounts { passed: 3, failed: 1 });
        assert!(suite.end().is_err());
    }
}
