//! A run of specs on a cluster, several at once.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::thread;

use anyhow::{Context as _, Result, bail};
use regex::Regex;

use crate::compare::{Deviation, compare};
use crate::control::Control;
use crate::files;
use crate::list::{List, UNEXPLAINED, Verdict};
use crate::program::{Program, Target};
use crate::report::{Outcome, Spec, SpecResult};
use crate::schedule::Schedule;
use crate::share::Share;
use crate::side::{Side, Which};

/// How many specs run at once by default: most of the time they wait.
pub(crate) const JOBS: usize = 6;
/// How many specs that fail are repeated alone, when no other spec takes their time.
const REPEATED: usize = 10;

/// What to run.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Run on a real control plane instead of the simulator.
    pub control: bool,
    /// Run the specs whose names match this regular expression, also those that are left out
    /// otherwise.
    pub focus: Option<String>,
    /// Also run the specs that differ slowly.
    pub all: bool,
    /// Write the results to `specs.yaml` and to the documentation, or to `control.json`.
    pub write: bool,
    /// How many specs run at once; 0 means [`JOBS`].
    pub jobs: usize,
}

/// The results of a run.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The results, by spec.
    pub results: BTreeMap<String, SpecResult>,
    /// The results that the list does not expect; of the control plane, that `control.json` has
    /// otherwise.
    pub deviations: Vec<Deviation>,
    /// The specs that passed only when they were repeated.
    pub repeated: Vec<String>,
    /// What is wrong with the list itself.
    pub problems: Vec<String>,
}

impl Report {
    /// How many specs ended so.
    pub fn count(&self, outcome: Outcome) -> usize {
        self.results.values().filter(|result| result.outcome == outcome).count()
    }

    /// All that must not be, one line each.
    pub fn failures(&self) -> Vec<String> {
        self.deviations.iter().map(ToString::to_string).chain(self.problems.clone()).collect()
    }
}

/// What is wrong with the list and `control.json`, without running a spec.
///
/// # Errors
/// If the program does not build, or a file cannot be read.
pub fn check_list(say: &mut dyn FnMut(&str)) -> Result<Vec<String>> {
    let specs = Program::find(say)?.specs()?;
    Ok(List::read()?.problems(&specs, &Control::read()?, &Program::kubernetes()?))
}

/// Runs specs and compares their results with the list. `say` gets a line for each spec that
/// deviates, and before something takes long.
///
/// # Errors
/// If the program or a cluster does not start, or a file cannot be read or written.
pub fn run(options: &Options, say: &(dyn Fn(&str) + Sync)) -> Result<Report> {
    let program = Program::find(&mut |line| say(line))?;
    let kubernetes = Program::kubernetes()?;
    let specs = program.specs()?;
    let mut list = if options.write { List::read().unwrap_or_default() } else { List::read()? };
    let mut control =
        if options.write { Control::read().unwrap_or_default() } else { Control::read()? };
    let names = chosen(options, &specs, &list)?;
    let which = if options.control { Which::Control } else { Which::Simulator };
    let runner = Runner {
        program,
        side: Side::start(which, &mut |line| say(line))?,
        folder: folder(which)?,
        specs: specs.iter().map(|spec| spec.name.clone()).collect(),
    };
    let jobs = if options.jobs == 0 { JOBS } else { options.jobs };
    let schedule = Schedule::new(names, &list);
    say(&format!(
        "{} specs on the {}, {jobs} at once; outputs: {}",
        schedule.len(),
        which.name(),
        runner.folder.display()
    ));
    let mut report = Report { results: runner.run(&schedule, jobs)?, ..Report::default() };
    let deviations = |results: &BTreeMap<String, SpecResult>| match which {
        Which::Simulator => compare(&list, results),
        Which::Control => changed(&control, results),
    };
    let failed: Vec<String> = deviations(&report.results)
        .into_iter()
        .filter(|deviation| deviation.is_failure)
        .map(|deviation| deviation.name)
        .take(REPEATED)
        .collect();
    let again = Schedule { together: Vec::new(), alone: failed };
    for (name, result) in runner.run(&again, 1)? {
        if result.outcome == Outcome::Passed {
            report.repeated.push(name.clone());
        }
        report.results.insert(name, result);
    }
    report.deviations = deviations(&report.results);
    if options.write {
        match which {
            Which::Control => {
                control.record(&kubernetes, &specs, &report.results);
                control.write()?;
            }
            Which::Simulator => {
                list.kubernetes.clone_from(&kubernetes);
                list.record(&specs, &report.results, &control);
                list.write()?;
                Share::new(&list, &control).write()?;
            }
        }
        report.deviations.clear();
    }
    if which == Which::Simulator {
        report.problems = list.problems(&specs, &control, &kubernetes);
    }
    Ok(report)
}

/// The names of the specs to run.
fn chosen(options: &Options, specs: &[Spec], list: &List) -> Result<Vec<String>> {
    let names = specs.iter().map(|spec| spec.name.clone());
    if let Some(focus) = &options.focus {
        let pattern = Regex::new(focus).with_context(|| format!("the pattern `{focus}`"))?;
        let names: Vec<String> = names.filter(|name| pattern.is_match(name)).collect();
        if names.is_empty() {
            bail!("no spec matches `{focus}`; `cargo xtask conformance --list` shows all");
        }
        return Ok(names);
    }
    let runs = |name: &String| match list.verdict(name) {
        // Nobody has looked yet.
        Some(verdict) if verdict.reason() == Some(UNEXPLAINED) => true,
        Some(Verdict::Passes { .. }) | None => true,
        Some(Verdict::Differs { slow, .. }) => options.all || !slow,
        Some(Verdict::Skipped { .. }) => false,
    };
    Ok(names.filter(|name| options.control || runs(name)).collect())
}

/// The results of the control plane that differ from the kept ones.
fn changed(control: &Control, results: &BTreeMap<String, SpecResult>) -> Vec<Deviation> {
    let deviation = |(name, result): (&String, &SpecResult)| {
        let kept = control.specs.get(name);
        (kept != Some(&result.outcome)).then(|| Deviation {
            name: name.clone(),
            what: format!("ended {:?}, and control.json has {kept:?}", result.outcome),
            is_failure: kept == Some(&Outcome::Passed),
        })
    };
    results.iter().filter_map(deviation).collect()
}

/// The folder of the outputs of a run.
fn folder(which: Which) -> Result<PathBuf> {
    let folder = files::of_repository("target/conformance").join(which.name());
    fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
    folder.canonicalize().with_context(|| folder.display().to_string())
}

/// What a run needs.
struct Runner {
    program: Program,
    side: Side,
    folder: PathBuf,
    /// All specs; the place of a spec here is the name of its output.
    specs: Vec<String>,
}

impl Runner {
    fn run(&self, schedule: &Schedule, jobs: usize) -> Result<BTreeMap<String, SpecResult>> {
        let results = Mutex::new(BTreeMap::new());
        let work = |name: &String| {
            let result = self.one(name)?;
            lock(&results).insert(name.clone(), result);
            Ok(())
        };
        side_by_side(&schedule.together, jobs, work)?;
        side_by_side(&schedule.alone, 1, work)?;
        Ok(results.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    fn one(&self, name: &str) -> Result<SpecResult> {
        let target = Target {
            kubeconfig: self.side.kubeconfig(),
            kubectl: self.side.kubectl(),
            home: self.side.folder(),
            folder: &self.folder,
        };
        let index = self.specs.iter().position(|spec| spec == name).unwrap_or_default();
        self.program.run(name, &target, &format!("{index:03}"))
    }
}

/// Calls `work` with each item in their order, up to `jobs` at once.
fn side_by_side<T: Sync>(
    items: &[T],
    jobs: usize,
    work: impl Fn(&T) -> Result<()> + Sync,
) -> Result<()> {
    let left = Mutex::new(items.iter());
    let worker = || -> Result<()> {
        loop {
            // A guard in the condition of a loop would last as long as its body.
            let next = lock(&left).next();
            let Some(item) = next else { return Ok(()) };
            work(item)?;
        }
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..jobs.max(1)).map(|_| scope.spawn(worker)).collect();
        threads.into_iter().try_for_each(|thread| match thread.join() {
            Ok(result) => result,
            Err(_) => bail!("a thread that runs specs panicked"),
        })
    })
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::Condvar;
    use std::time::Duration;

    use super::*;

    fn list() -> List {
        let text = "
kubernetes: 1.2.3
reasons: {r: {text: t}}
specs:
- {name: differs, verdict: differs, reason: r}
- {name: passes, verdict: passes}
- {name: skipped, verdict: skipped, reason: r}
- {name: slow, verdict: differs, reason: r, slow: true}
- {name: unexplained, verdict: skipped, reason: unexplained}
";
        serde_yaml_ng::from_str(text).unwrap()
    }

    fn names(options: &Options) -> Vec<String> {
        let specs = ["differs", "new", "passes", "skipped", "slow", "unexplained"]
            .map(|name| Spec { name: name.to_owned() });
        chosen(options, &specs, &list()).unwrap()
    }

    #[test]
    fn run_leaves_out_skipped_and_slow_specs_unless_asked_for() {
        let usual = ["differs", "new", "passes", "unexplained"];
        assert_eq!(names(&Options::default()), usual);
        let all = ["differs", "new", "passes", "slow", "unexplained"];
        assert_eq!(names(&Options { all: true, ..Options::default() }), all);
        let focus = Options { focus: Some("^s".to_owned()), ..Options::default() };
        assert_eq!(names(&focus), ["skipped", "slow"]);
        assert_eq!(names(&Options { control: true, ..Options::default() }).len(), 6);
    }

    #[test]
    fn as_many_specs_run_at_once_as_there_are_jobs() {
        const BOUND: Duration = Duration::from_secs(30);
        let (running, changed) = (Mutex::new(0), Condvar::new());
        let meet = |_: &u8| {
            let mut count = lock(&running);
            *count += 1;
            changed.notify_all();
            let met = changed.wait_timeout_while(count, BOUND, |count| *count < 3);
            assert!(!met.unwrap().1.timed_out(), "the three did not run at once in {BOUND:?}");
            Ok(())
        };
        side_by_side(&[1, 2, 3], 3, meet).unwrap();
    }

    #[test]
    fn every_spec_runs_once_and_an_error_is_returned() {
        let seen = Mutex::new(Vec::new());
        let note = |item: &u8| {
            lock(&seen).push(*item);
            Ok(())
        };
        side_by_side(&[1, 2, 3, 4, 5], 2, note).unwrap();
        lock(&seen).sort_unstable();
        assert_eq!(*lock(&seen), [1, 2, 3, 4, 5]);
        assert!(side_by_side(&[1], 2, |_| bail!("broken")).is_err());
    }

    #[test]
    fn focus_that_matches_no_spec_is_an_error() {
        for focus in ["nothing", "("] {
            let options = Options { focus: Some(focus.to_owned()), ..Options::default() };
            assert!(chosen(&options, &[Spec { name: "a".to_owned() }], &list()).is_err());
        }
    }

    #[test]
    fn control_result_that_changed_is_a_deviation() {
        let result = |outcome| SpecResult {
            outcome,
            message: String::new(),
            place: String::new(),
            seconds: 1,
        };
        let specs = BTreeMap::from([("a".to_owned(), Outcome::Passed)]);
        let control = Control { kubernetes: "1.2.3".to_owned(), specs };
        let results = |outcome| BTreeMap::from([("a".to_owned(), result(outcome))]);
        assert_eq!(changed(&control, &results(Outcome::Passed)), []);
        assert!(changed(&control, &results(Outcome::Failed))[0].is_failure);
        assert_eq!(changed(&Control::default(), &results(Outcome::Passed)).len(), 1);
    }
}
