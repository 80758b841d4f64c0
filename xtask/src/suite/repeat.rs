//! `cargo xtask test --repeat N --load K FILTER`: chosen tests again and again on a busy machine.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context as _, Result, bail};

use super::load::Load;
use super::programs::{self, Program};
use crate::command::root;
use crate::progress::say;

/// What to run, and how often.
#[derive(clap::Args)]
pub(crate) struct Repeat {
    /// Instead of the suite, run the tests whose names hold a FILTER this many times each
    #[arg(long = "repeat", value_name = "N", requires = "filters")]
    runs: Option<u32>,
    /// Run that many spinning threads at the same time
    #[arg(long, value_name = "K", requires = "runs", default_value_t = 0)]
    load: usize,
    /// Parts of names such as `tests/cluster/lease::`; tests that are marked `ignored` run too
    #[arg(value_name = "FILTER", requires = "runs")]
    filters: Vec<String>,
}

/// A test of a program.
struct Test<'a> {
    program: &'a Program,
    name: String,
    /// `tests/cluster/lease::name_of_the_test`
    id: String,
    seconds: Vec<f32>,
    failures: Vec<Failure>,
}

/// A run that failed.
struct Failure {
    run: u32,
    /// As the test printed them: `INNKEEPER_TEST_SEED=7`.
    seeds: Vec<String>,
    log: PathBuf,
}

impl Repeat {
    /// How often, if the suite is not what is asked for.
    pub(crate) fn runs(&self) -> Option<u32> {
        self.runs
    }

    /// Builds all tests, and runs those that the filters choose.
    ///
    /// # Errors
    /// If no test has such a name, or a run failed.
    pub(crate) fn run(&self, runs: u32) -> Result<()> {
        let programs = programs::of(&["--tests"])?;
        let mut tests = self.choose(&programs)?;
        if tests.is_empty() {
            bail!("no test has a name with {}: `cargo test` lists names", self.filters.join(", "));
        }
        let folder = root().join("target/repeat");
        fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
        let load = Load::start(self.load);
        for run in 1..=runs {
            for test in &mut tests {
                test.run(run, &folder)?;
            }
        }
        drop(load);
        say("");
        tests.iter().flat_map(Test::report).for_each(|line| say(&line));
        let failed: usize = tests.iter().map(|test| test.failures.len()).sum();
        if failed > 0 {
            bail!("{failed} of {} runs failed", runs as usize * tests.len());
        }
        Ok(())
    }

    fn choose<'a>(&self, programs: &'a [Program]) -> Result<Vec<Test<'a>>> {
        let mut tests = Vec::new();
        for program in programs {
            for name in program.list(&[])? {
                let id = program.id(&name);
                if self.filters.iter().any(|filter| id.contains(filter)) {
                    let (seconds, failures) = (Vec::new(), Vec::new());
                    tests.push(Test { program, name, id, seconds, failures });
                }
            }
        }
        Ok(tests)
    }
}

impl Test<'_> {
    fn run(&mut self, run: u32, folder: &Path) -> Result<()> {
        let start = Instant::now();
        let ended = self.program.run(&[&self.name, "--exact", "--include-ignored"])?;
        let seconds = start.elapsed().as_secs_f32();
        self.seconds.push(seconds);
        let outcome = if ended.is_success { "ok" } else { "FAILED" };
        say(&format!("run {run}: {} ... {outcome} ({seconds:.1} s)", self.id));
        if !ended.is_success {
            let name = self.id.replace(['/', ':'], "-");
            let log = folder.join(format!("{name}.{run}.log"));
            fs::write(&log, ended.text()).with_context(|| log.display().to_string())?;
            self.failures.push(Failure { run, seeds: seeds(&ended.text()), log });
        }
        Ok(())
    }

    /// Result of its runs, with the failures.
    fn report(&self) -> Vec<String> {
        let bounds = self.seconds.iter().fold((f32::MAX, 0.0_f32), |(least, most), seconds| {
            (least.min(*seconds), most.max(*seconds))
        });
        let (runs, failed) = (self.seconds.len(), self.failures.len());
        let times = format!("{:.1} to {:.1} s", bounds.0, bounds.1);
        let mut lines = vec![format!("{}: {runs} runs, {failed} failed, {times}", self.id)];
        lines.extend(self.failures.iter().map(|failure| {
            let log = failure.log.display();
            format!("  run {}: {} {log}", failure.run, failure.seeds.join(" "))
        }));
        lines
    }
}

/// The seeds that a test printed.
fn seeds(text: &str) -> Vec<String> {
    let mut seeds: Vec<String> = text
        .split_whitespace()
        .filter(|word| word.starts_with("INNKEEPER_") && word.contains("SEED="))
        .map(|word| word.trim_end_matches(|char: char| !char.is_alphanumeric()).to_owned())
        .collect();
    seeds.dedup();
    seeds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_found_in_the_output_of_a_test() {
        let text = "seed 7: INNKEEPER_TEST_SEED=7 runs it again\nINNKEEPER_SEED=12:\nSEED=1\n";
        assert_eq!(seeds(text), ["INNKEEPER_TEST_SEED=7", "INNKEEPER_SEED=12"]);
    }

    #[test]
    fn failing_runs_are_counted_and_their_log_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let program = Program::at("lease", "/bin/sh", &root().join("tests/cluster"));
        // `sh a_test --exact` has no such script to run.
        let mut test = Test {
            program: &program,
            name: "a_test".to_owned(),
            id: program.id("a_test"),
            seconds: Vec::new(),
            failures: Vec::new(),
        };
        test.run(1, folder.path()).unwrap();
        test.run(2, folder.path()).unwrap();
        let report = test.report();
        assert!(report[0].starts_with("tests/cluster/lease::a_test: 2 runs, 2 failed, 0.0 to "));
        assert_eq!(report.len(), 3);
        let log = folder.path().join("tests-cluster-lease--a_test.2.log");
        assert!(fs::read_to_string(log).unwrap().contains("a_test"));
    }
}
