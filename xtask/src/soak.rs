//! `cargo xtask soak`: checks the laws of all guests with new seeds, for as long as one likes.

mod check_result;
mod subject;
mod tally;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use self::check_result::CheckResult;
use self::subject::Subject;
use self::tally::Tally;
use crate::command::{cargo, line, root, run as run_command, target};
use crate::guests;
use crate::progress::{Steps, complain, say};

/// The exit status of `innkeeper check` if a law is broken.
const BROKEN: i32 = 1;

/// The longest run, in hours: a year.
const HOURS_MAX: f64 = 8_760.0;

/// Arguments of `cargo xtask soak`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// How long to run, such as 8 or 0.1
    #[arg(long, value_name = "NUMBER", default_value_t = 1.0, value_parser = hours)]
    hours: f64,
    /// How long each check of a guest takes, in seconds
    #[arg(long, value_name = "NUMBER", default_value_t = 60,
        value_parser = clap::value_parser!(u64).range(1..=86_400))]
    seconds: u64,
    /// How many checks run at once [default: the number of cores]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(1..=256))]
    jobs: Option<u16>,
    /// The names of the guests [default: those of guests/laws.yaml]
    #[arg(value_name = "GUEST")]
    guests: Vec<String>,
    /// Forget the runs before: begin with seed 1 again
    #[arg(long)]
    fresh: bool,
}

fn hours(text: &str) -> Result<f64, String> {
    let hours: f64 = text.parse().map_err(|error| format!("{error}"))?;
    if hours > 0.0 && hours <= HOURS_MAX {
        return Ok(hours);
    }
    Err(format!("more than 0 hours, and at most {HOURS_MAX}"))
}

/// Builds the host in release and the guests, and checks them one after the other, each time with
/// the next seed. A later run goes on where this one ends.
///
/// # Errors
/// If something does not build, a check does not run, or a law is broken.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let subjects = Subject::named(&arguments.guests)?;
    let mut steps = Steps::new(3);
    steps.next("guests");
    let names: Vec<&str> = subjects.iter().map(|subject| subject.guest.as_str()).collect();
    guests::build(&root(), Some(&names))?;
    steps.end("built");
    steps.next("innkeeper, in release (about 6 min the first time)");
    run_command(&mut cargo(&[
        "build",
        "--release",
        "--package",
        "innkeeper-cli",
        "--bin",
        "innkeeper",
    ]))?;
    steps.end("built");
    steps.next(&format!("checks, for {} h", arguments.hours));
    let soak = Soak::begin(arguments, subjects)?;
    soak.check_until(Instant::now() + Duration::from_secs_f64(arguments.hours * 3_600.0))?;
    steps.end("checked");
    soak.end()
}

/// A run.
struct Soak {
    program: PathBuf,
    folder: PathBuf,
    subjects: Vec<Subject>,
    seconds: u64,
    jobs: usize,
    /// How many checks of earlier runs broke a law.
    failures_before: u64,
    /// The tally, and which guest is next.
    tally: Mutex<(Tally, usize)>,
}

impl Soak {
    fn begin(arguments: &Arguments, subjects: Vec<Subject>) -> Result<Self> {
        let folder = target().join("soak");
        if arguments.fresh && folder.exists() {
            fs::remove_dir_all(&folder).with_context(|| folder.display().to_string())?;
        }
        fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
        let tally = Tally::read(&folder.join("tally.json"))?;
        let cores = || thread::available_parallelism().map_or(1, usize::from);
        Ok(Self {
            program: target().join("release/innkeeper"),
            folder,
            subjects,
            seconds: arguments.seconds,
            jobs: arguments.jobs.map_or_else(cores, usize::from),
            failures_before: tally.failures(),
            tally: Mutex::new((tally, 0)),
        })
    }

    fn tally(&self) -> MutexGuard<'_, (Tally, usize)> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks guests until the time, and each guest that has been begun to the end. The first check
    /// that cannot be run is the last one.
    fn check_until(&self, end: Instant) -> Result<()> {
        let is_stopped = AtomicBool::new(false);
        let work = || -> Result<()> {
            while Instant::now() < end && !is_stopped.load(Ordering::Relaxed) {
                let (subject, seed) = self.next();
                self.check(subject, seed).inspect_err(|error| {
                    complain(&format!("{}, seed {seed}: {error:#}", subject.guest));
                    is_stopped.store(true, Ordering::Relaxed);
                })?;
            }
            Ok(())
        };
        thread::scope(|scope| {
            let workers: Vec<_> = (0..self.jobs).map(|_| scope.spawn(work)).collect();
            let mut results = workers.into_iter().map(|worker| worker.join().ok());
            results.try_for_each(|result| result.context("a check panicked")?)
        })
    }

    /// The guest whose turn it is, and its next seed.
    fn next(&self) -> (&Subject, u64) {
        let (tally, turn) = &mut *self.tally();
        let subject = &self.subjects[*turn % self.subjects.len()];
        *turn += 1;
        let next = tally.next_seed.entry(subject.guest.clone()).or_insert(1);
        let seed = *next;
        *next += 1;
        (subject, seed)
    }

    fn check(&self, subject: &Subject, seed: u64) -> Result<()> {
        let mut command = subject.check(&self.program);
        let (seconds, text) = (self.seconds.to_string(), seed.to_string());
        command.args(["--seed", &text, "--seconds", &seconds, "-o", "json"]);
        let began = Instant::now();
        let output =
            command.output().with_context(|| format!("cannot run `{}`", line(&command)))?;
        self.record(subject, seed, &output, began.elapsed()).with_context(|| line(&command))
    }

    /// Adds what a check printed.
    fn record(&self, subject: &Subject, seed: u64, output: &Output, wall: Duration) -> Result<()> {
        if !output.status.success() && output.status.code() != Some(BROKEN) {
            let error = String::from_utf8_lossy(&output.stderr);
            bail!("the check failed ({}): {}", output.status, error.trim());
        }
        let guest = subject.guest.as_str();
        let result = CheckResult::parse(&output.stdout)?;
        say(&format!(
            "      {guest}, seed {seed}: {} scenarios, {:.1} simulated hours, {} broken",
            result.scenarios,
            result.simulated_seconds / 3_600.0,
            result.broken.len()
        ));
        for (law, case) in &result.broken {
            self.keep(subject, seed, law, case)?;
        }
        let (tally, _) = &mut *self.tally();
        tally.add(guest, &result, wall);
        tally.write(&self.folder.join("tally.json"))
    }

    /// Keeps the smallest case that breaks a law, and says how to play it again.
    fn keep(
        &self,
        subject: &Subject,
        seed: u64,
        law: &str,
        case: &serde_json::Value,
    ) -> Result<()> {
        let path = self.folder.join(format!("{}-{seed}-{law}.json", subject.guest));
        fs::write(&path, serde_json::to_vec_pretty(case)?)
            .with_context(|| path.display().to_string())?;
        complain(&format!("{} breaks {law}: to play it again:", subject.guest));
        complain(&replay(subject, &self.program, &path));
        Ok(())
    }

    /// Prints the sums. Only a failure of this run is an error.
    fn end(&self) -> Result<()> {
        let (tally, _) = &*self.tally();
        tally.table().iter().for_each(|line| say(line));
        match tally.failures() - self.failures_before {
            0 => Ok(()),
            failures => bail!(
                "checks of this run that broke a law: {failures}; the cases are in {}",
                self.folder.display()
            ),
        }
    }
}

/// The command that plays a case again, for a shell in any folder.
fn replay(subject: &Subject, program: &Path, case: &Path) -> String {
    let mut command: Command = subject.check(program);
    command.arg("--scenario").arg(case);
    format!("    (cd guests && {})", line(&command))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn soak(folder: &Path) -> Soak {
        Soak {
            program: "innkeeper".into(),
            folder: folder.to_owned(),
            subjects: Subject::named(&[]).unwrap(),
            seconds: 1,
            jobs: 2,
            failures_before: 0,
            tally: Mutex::new((Tally::default(), 0)),
        }
    }

    /// What a program printed that ended with this code.
    fn output(code: i32, stdout: &str, stderr: &str) -> Output {
        use std::os::unix::process::ExitStatusExt as _;
        let status = std::process::ExitStatus::from_raw(code << 8);
        Output { status, stdout: stdout.into(), stderr: stderr.into() }
    }

    #[test]
    fn guests_take_turns_and_each_has_seeds_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let soak = soak(folder.path());
        let count = soak.subjects.len();
        let turns: Vec<(String, u64)> = (0..2 * count)
            .map(|_| soak.next())
            .map(|(subject, seed)| (subject.guest.clone(), seed))
            .collect();
        assert!(turns[..count].iter().all(|(_, seed)| *seed == 1), "{turns:?}");
        assert!(turns[count..].iter().all(|(_, seed)| *seed == 2), "{turns:?}");
        assert_eq!(turns[0].0, turns[count].0);
    }

    #[test]
    fn broken_law_is_kept_and_counted_and_the_run_fails() {
        let folder = tempfile::tempdir().unwrap();
        let soak = soak(folder.path());
        let (subject, seed) = soak.next();
        let printed = r#"{"scenarios": 3, "simulatedSeconds": 60, "laws": [{"law": "crash",
            "violation": {"what": "x", "case": {"law": "crash"}}}]}"#;
        let output = output(BROKEN, printed, "");
        soak.record(subject, seed, &output, Duration::from_secs(1)).unwrap();
        let kept = folder.path().join(format!("{}-1-crash.json", subject.guest));
        assert_eq!(fs::read_to_string(kept).unwrap(), "{\n  \"law\": \"crash\"\n}");
        let error = soak.end().unwrap_err().to_string();
        assert!(error.starts_with("checks of this run that broke a law: 1;"), "{error}");
        assert_eq!(Tally::read(&folder.path().join("tally.json")).unwrap(), soak.tally().0);
    }

    #[test]
    fn failure_of_an_earlier_run_does_not_fail_this_one() {
        let folder = tempfile::tempdir().unwrap();
        let soak = Soak { failures_before: 0, ..soak(folder.path()) };
        let (subject, seed) = soak.next();
        let printed = r#"{"scenarios": 3, "simulatedSeconds": 60, "laws": [{"law": "crash",
            "violation": {"what": "x", "case": {"law": "crash"}}}]}"#;
        let output = output(BROKEN, printed, "");
        soak.record(subject, seed, &output, Duration::from_secs(1)).unwrap();
        Soak { failures_before: 1, ..soak }.end().unwrap();
    }

    #[test]
    fn check_that_does_not_run_is_an_error_with_its_message() {
        let folder = tempfile::tempdir().unwrap();
        let soak = soak(folder.path());
        let (subject, seed) = soak.next();
        let output = output(2, "", "no such sample\n");
        let error = soak.record(subject, seed, &output, Duration::ZERO).unwrap_err().to_string();
        assert!(error.contains("no such sample"), "{error}");
    }

    #[test]
    fn time_of_a_run_is_bounded() {
        for text in ["0", "-1", "nan", "1e300", "x"] {
            assert!(hours(text).is_err(), "{text}");
        }
        assert!((hours("0.5").unwrap() - 0.5).abs() < f64::EPSILON);
    }
}
