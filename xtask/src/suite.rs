//! `cargo xtask test`: everything that must hold, in the order of cost.

mod programs;

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};
use innkeeper_controlplane::Programs;

use crate::command::{cargo, line, root};
use crate::progress::{Steps, complain, say};
use crate::{demo, guests, schema, supply, tidy};

/// What the tests of all programs that ran said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tests {
    passed: u64,
    failed: u64,
}

/// The suite as it runs.
struct Suite {
    steps: Steps,
    tests: Tests,
    failures: Vec<String>,
}

/// Runs all steps, also after a failure; an error names the steps that failed.
pub(crate) fn run() -> Result<()> {
    let mut suite = Suite { steps: Steps::new(14), tests: Tests::default(), failures: Vec::new() };

    suite.step("format", |_| command(&mut cargo(&["fmt", "--all", "--check"]))?.result);
    suite.step("tidy", |_| tidy::run());
    suite.step("dependencies: licences, bans, sources, advisories", |_| supply::run());
    suite.step("schemas of the contract", |_| schema::run(true));
    suite.step("lints (about 4 min the first time)", |_| {
        let arguments = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
        command(&mut cargo(&arguments))?.result
    });
    suite.step("guests: format, lints, tests", |tests| {
        guests::checks(&root())?.iter_mut().try_for_each(|check| tests.add(command(check)?))
    });
    suite.step("guests: components", |_| guests::build(&root(), None).map(drop));
    suite.step("host: build with its tests (about 8 min the first time)", |_| {
        command(&mut cargo(&["build", "--workspace", "--all-targets"]))?.result
    });
    suite.step("host: unit tests", |tests| {
        // The same selection of packages as in the build, or features would differ and
        // everything would be compiled again.
        tests.add(command(&mut test(&["--lib", "--bins", "--examples"]))?)?;
        tests.add(command(&mut test(&["--doc"]))?)
    });
    suite.step("control plane (about 8 min the first time)", |_| {
        Programs::find(&mut |line| say(&format!("      {line}")))?;
        Ok(())
    });
    suite.step("host: tests on a real control plane", |tests| {
        programs::run(programs::of(&["--test", "*"])?, &[], tests)
    });
    suite.step("node (about 8 min the first time; needs root)", |_| {
        innkeeper_node::programs(&mut |line| say(&format!("      {line}"))).map(drop)
    });
    suite.step("host: tests on a real node (needs root)", |tests| {
        let which = programs::of(&["--test", "node", "--test", "acceptance_*"])?;
        // As many nodes at once as programs run at once, and no more: a node is much for a core.
        programs::run(which, &["--ignored", "--test-threads", "1"], tests)
    });
    // What the README promises; the host is there since the build above.
    suite.step("demo, once", |tests| {
        demo::built(demo::Where::Here, &["--once".to_owned(), "--fast".to_owned()])?;
        tests.passed += 1;
        Ok(())
    });
    suite.end()
}

impl Suite {
    fn step(&mut self, what: &str, work: impl FnOnce(&mut Tests) -> Result<()>) {
        self.steps.next(what);
        let mut tests = Tests::default();
        let result = work(&mut tests);
        if let Err(error) = result {
            complain(&format!("{error:#}"));
            self.steps.end("FAILED");
            self.failures.push(format!("{what}: {}", first_line(&format!("{error:#}"))));
            // A step that fails without a failing test (it does not compile, say) counts too.
            tests.failed = tests.failed.max(1);
        } else {
            self.steps.end("ok");
        }
        self.tests.passed += tests.passed;
        self.tests.failed += tests.failed;
    }

    fn end(self) -> Result<()> {
        if !self.failures.is_empty() {
            say("");
            say("These steps failed:");
            for failure in &self.failures {
                say(&format!("  {failure}"));
            }
        }
        say("");
        say(&format!("{} passed, {} failed", self.tests.passed, self.tests.failed));
        if self.failures.is_empty() && self.tests.passed > 0 {
            return Ok(());
        }
        bail!("the suite failed");
    }
}

impl Tests {
    /// Adds what a line of a program says of its tests, if it does.
    fn add_line(&mut self, line: &str) {
        if let Some(found) = summary(line) {
            self.passed += found.passed;
            self.failed += found.failed;
        }
    }

    /// Adds what a program said; an error if a test failed.
    fn add(&mut self, outcome: Outcome) -> Result<()> {
        self.passed += outcome.tests.passed;
        self.failed += outcome.tests.failed;
        outcome.result
    }
}

/// What came of a program.
struct Outcome {
    tests: Tests,
    result: Result<()>,
}

/// Runs the stories on a real node, which write their pages of docs/screens.
///
/// # Errors
/// The story that failed: its page is as it was.
pub(crate) fn screens() -> Result<()> {
    guests::build(&root(), None)?;
    command(&mut cargo(&["build", "--workspace", "--all-targets"]))?.result?;
    let mut stories = test(&["--test", "acceptance_*", "--", "--ignored"]);
    command(stories.env("INNKEEPER_SCREENS", "write"))?.result
}

fn test(what: &[&str]) -> Command {
    let mut command = cargo(&["test", "--workspace", "--no-fail-fast"]);
    command.args(what);
    command
}

/// Runs `command`, shows its output, and counts the tests in it.
fn command(command: &mut Command) -> Result<Outcome> {
    let name = line(command);
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot run `{name}`"))?;
    let mut tests = Tests::default();
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
    Ok(Outcome { tests, result })
}

/// Reads what a program says of its tests: cargo (`test result: ok. 4 passed; 0 failed; ...`), node
/// (`# pass 4`), or Python's unittest, of each test (`test_it (...) ... ok`).
fn summary(line: &str) -> Option<Tests> {
    let number = |rest: &str| rest.trim().parse().ok();
    if let Some(passed) = line.strip_prefix("# pass ").and_then(number) {
        return Some(Tests { passed, failed: 0 });
    }
    if let Some(failed) = line.strip_prefix("# fail ").and_then(number) {
        return Some(Tests { passed: 0, failed });
    }
    if let Some((_, result)) = line.strip_prefix("test_").and_then(|rest| rest.rsplit_once(" ... "))
    {
        return match result {
            "ok" => Some(Tests { passed: 1, failed: 0 }),
            "FAIL" | "ERROR" => Some(Tests { passed: 0, failed: 1 }),
            _ => None,
        };
    }
    let counts = line.strip_prefix("test result: ")?.split_once(". ")?.1;
    let count = |what: &str| counts.split("; ").find_map(|part| number(part.strip_suffix(what)?));
    Some(Tests { passed: count("passed")?, failed: count("failed")? })
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summaries_of_test_programs_are_read() {
        let line = "test result: FAILED. 4 passed; 2 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s";
        assert_eq!(summary(line), Some(Tests { passed: 4, failed: 2 }));
        assert_eq!(summary("# pass 5"), Some(Tests { passed: 5, failed: 0 }));
        assert_eq!(summary("# fail 2"), Some(Tests { passed: 0, failed: 2 }));
        let python = |result: &str| summary(&format!("test_a (test_x.X.test_a) ... {result}"));
        assert_eq!(python("ok"), Some(Tests { passed: 1, failed: 0 }));
        assert_eq!(python("FAIL"), Some(Tests { passed: 0, failed: 1 }));
        assert_eq!(python("skipped 'no'"), None);
        assert_eq!(summary("test a ... ok"), None);
        assert_eq!(summary("test result: none"), None);
    }

    #[test]
    fn a_step_without_tests_that_fails_counts_as_one_failure() {
        let mut suite =
            Suite { steps: Steps::new(2), tests: Tests::default(), failures: Vec::new() };
        suite.step("broken", |_| bail!("no"));
        suite.step("fine", |tests| {
            tests.passed = 3;
            Ok(())
        });
        assert_eq!(suite.tests, Tests { passed: 3, failed: 1 });
        assert!(suite.end().is_err());
    }
}
