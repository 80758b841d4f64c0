//! Checks the laws of a guest that reconciles.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::value_parser;
use innkeeper_check::{Budget, Law, ScenarioRunner, Subject, check, smallest_sample};
use innkeeper_contract::Kind;
use innkeeper_lab::Guests;
use innkeeper_sandbox::Interruption;
use jiff::Timestamp;
use serde_json::json;
use tempfile::TempDir;

use super::check_result::Status;
use super::law_progress::LawProgress;
use super::law_report::{self, ReportFile};
use super::time_limit::TIME_MAX;
use super::{case_replay, given_objects, law_results};
use crate::component::Opened;
use crate::objects::InputObject;
use crate::out::Format;
use crate::parameter_kinds::ParameterArguments;
use crate::{code_cache, component, out, rbac};

/// How long one failing scenario is made smaller.
const SHRINK_TIME: Duration = Duration::from_mins(1);

/// Direct evaluation judges so many primaries for each case of `--cases`.
const PRIMARIES_PER_CASE: usize = 100;

/// The time of a check if neither a time nor a number of cases is given, in seconds.
const SECONDS: u64 = 60;

/// Options of the laws of a guest.
#[derive(clap::Args)]
pub(super) struct Options {
    /// Objects with which to check a guest, as YAML or JSON: primaries as users write them, and the
    /// objects that they refer to. A file, or a folder of such files (repeatable). The command
    /// makes further primaries from these by the schema of their kind.
    #[arg(long, value_name = "FILE_OR_DIR", conflicts_with = "policies", requires = "guest")]
    samples: Vec<PathBuf>,
    /// The law to check (repeatable) [default: all].
    #[arg(long = "law", value_name = "NAME", requires = "guest", value_parser = law_named)]
    laws: Vec<Law>,
    /// An earlier component of the guest: check the upgrade from it.
    #[arg(long, value_name = "FILE", requires = "guest")]
    from: Option<PathBuf>,
    /// A law that the guest breaks by design, and that is not checked (repeatable).
    #[arg(long = "skip", value_name = "NAME", requires = "guest", value_parser = law_named)]
    skipped: Vec<Law>,
    /// A field that holds a history and may differ, such as .status.lastRun (repeatable).
    #[arg(long = "history", value_name = "FIELD", requires = "guest")]
    history: Vec<String>,
    /// Time of the check, in parts for the laws; each law is checked with at least one scenario. A
    /// failing scenario takes up to a minute more, to make it smaller [default: 60; with --cases no
    /// limit].
    #[arg(long, value_name = "NUMBER", value_parser = value_parser!(u64).range(0..=TIME_MAX))]
    seconds: Option<u64>,
    /// The most cases of each law, listed and random ones [default: as many as there is time for].
    /// Before these, the guest is called without a host for up to 100 times as many primaries.
    /// Without --seconds a check plays the same cases on each machine.
    #[arg(
        long,
        value_name = "NUMBER",
        requires = "guest",
        value_parser = value_parser!(u64).range(1..)
    )]
    cases: Option<u64>,
    /// Play one case again, as a check prints it for a broken law: a file with YAML or JSON; `-` is
    /// standard input. Give the other options as for that check.
    #[arg(
        long,
        value_name = "FILE",
        requires = "guest",
        conflicts_with_all = ["laws", "skipped", "cases", "report"]
    )]
    scenario: Option<PathBuf>,
    /// Write a report to this file: an in-toto statement about the component, without a signature.
    #[arg(long, value_name = "FILE", requires = "guest")]
    report: Option<PathBuf>,
    #[command(flatten)]
    parameters: ParameterArguments,
}

fn law_named(name: &str) -> Result<Law, String> {
    Law::named(name).ok_or_else(|| {
        let names: Vec<&str> = Law::ALL.iter().map(|law| law.name()).collect();
        format!("no such law; the laws are {}", names.join(", "))
    })
}

/// Checks a guest.
///
/// # Errors
/// If the files cannot be used, or the guest does not run.
pub(super) fn run(
    file: &Path,
    options: &Options,
    seed: u64,
    format: Format,
) -> anyhow::Result<Status> {
    let laws = options.chosen_laws()?;
    let is_field = |field: &String| field.starts_with('.') && field.len() > 1;
    if let Some(field) = options.history.iter().find(|field| !is_field(field)) {
        bail!("--history {field}: a field begins with a dot and has a name, as in .status.lastRun");
    }
    let of_parameters = options.parameters.files();
    let inputs = options.samples.iter().chain(&options.from).chain(&of_parameters);
    let inputs = inputs.map(PathBuf::as_path).chain([file]);
    let inputs: Vec<&Path> = inputs.collect();
    let report_file =
        options.report.as_deref().map(|path| ReportFile::at(path, &inputs)).transpose()?;
    let folder = tempfile::tempdir()?;
    let cache = code_cache::open_or_temporary(&folder)?;
    // With the code that the simulated host runs, so that it is compiled once.
    let opened = component::open_with(file, Interruption::Fuel, Some(cache.clone()))?;
    let earlier = options.from.as_deref();
    let earlier = earlier
        .map(|from| component::open_with(from, Interruption::Fuel, Some(cache.clone())))
        .transpose()?;
    let given = given_objects::read(&options.samples)?;
    let samples = given.iter().map(law_report::sample).collect();
    let subject = subject(&opened, earlier.as_ref(), given, options, &folder)?;
    let runner = ScenarioRunner::new(Guests::with_cache(cache)?, subject);
    let cannot_be_checked = || format!("the guest {} cannot be checked", runner.subject().name);
    let again = options.replay_command(file)?;
    if let Some(scenario) = &options.scenario {
        let replay = case_replay::run(&runner, scenario).with_context(cannot_be_checked)?;
        return case_replay::print(&replay, &again, format);
    }
    let cases_max =
        options.cases.map_or(usize::MAX, |cases| usize::try_from(cases).unwrap_or(usize::MAX));
    let time = Duration::from_secs(options.seconds());
    let primaries_max = cases_max.saturating_mul(PRIMARIES_PER_CASE);
    let shrink_time = SHRINK_TIME;
    let budget = Budget { seed, laws, time, cases_max, primaries_max, shrink_time };
    let started = Timestamp::now();
    let mut progress = LawProgress::begin();
    let report = check(&runner, &budget, |reached| progress.show(reached));
    progress.end();
    let report = report.with_context(cannot_be_checked)?;
    // Whatever becomes of the report.
    out::or_closed(law_results::print(&report, seed, &again, format))?;
    if let Some(file) = &report_file {
        let subject = runner.subject();
        let inputs = law_report::Inputs {
            component: law_report::component(&opened),
            earlier: earlier.as_ref().map(law_report::component),
            samples,
            guest: json!({"name": subject.name, "version": subject.manifest.version}),
            parameters: subject.module["spec"]["parameters"].clone(),
            skipped: options.skipped.iter().map(|law| law.name()).collect(),
            history: options.history.clone(),
            seed,
        };
        file.write(&law_report::statement(&inputs, &report, started, Timestamp::now()))?;
    }
    let is_broken = report.laws.iter().any(|law| law.broken.is_some());
    Ok(if is_broken { Status::Found } else { Status::Ok })
}

impl Options {
    /// The time of the check.
    fn seconds(&self) -> u64 {
        // A number of cases ends the check, however slow the machine is.
        let default = if self.cases.is_some() { TIME_MAX } else { SECONDS };
        self.seconds.unwrap_or(default)
    }

    fn chosen_laws(&self) -> anyhow::Result<Vec<Law>> {
        let mut laws = if self.laws.is_empty() { Law::ALL.to_vec() } else { self.laws.clone() };
        laws.retain(|law| !self.skipped.contains(law));
        if laws.is_empty() {
            bail!("--skip leaves out all laws; name one to check with --law");
        }
        if self.laws.contains(&Law::Upgrade) && self.from.is_none() {
            bail!("the law upgrade needs an earlier component: name it with --from");
        }
        Ok(laws)
    }

    /// The command that plays a case from standard input with this guest.
    fn replay_command(&self, file: &Path) -> anyhow::Result<String> {
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let mut words = vec!["innkeeper".to_owned(), "check".to_owned(), text(file)];
        let mut add = |option: &str, value: String| words.extend([option.to_owned(), value]);
        self.samples.iter().for_each(|path| add("--samples", text(path)));
        self.from.iter().for_each(|path| add("--from", text(path)));
        self.history.iter().for_each(|field| add("--history", field.clone()));
        self.parameters.options().into_iter().for_each(|(option, value)| add(option, value));
        add("--scenario", "-".to_owned());
        Ok(shlex::try_join(words.iter().map(String::as_str))?)
    }
}

/// The guest, and what a cluster needs to run it. Copies the components into the folder: the hosts
/// of all scenarios run what was read once, even if the file changes meanwhile.
fn subject(
    opened: &Opened,
    earlier: Option<&Opened>,
    given: Vec<InputObject>,
    options: &Options,
    folder: &TempDir,
) -> anyhow::Result<Subject> {
    let manifest = opened.guest.manifest().clone();
    let Some(primary) = manifest.primary.clone() else {
        bail!(
            "the guest {} only reviews requests: check a set of policies with --policies",
            manifest.name
        )
    };
    let name = manifest.name.clone();
    let (parameters, _) = options.parameters.resolve_or(None, &opened.guest)?;
    let groups = manifest.definitions().filter_map(|one| one.pointer("/spec/group").cloned());
    let mut module = json!({
        "apiVersion": "innkeeper.dev/v1alpha1", "kind": "Module", "metadata": {"name": name},
        "spec": {"source": {"file": copied(opened, folder, "guest.wasm")?},
            "serviceAccountName": name, "allowedCRDGroups": groups.collect::<Vec<_>>()},
    });
    if !parameters.is_null() {
        module["spec"]["parameters"] = parameters;
    }
    let mut preexisting = rbac::minimal_rules(&manifest, &name, &name);
    let mut earlier_module = None;
    if let Some(earlier) = earlier {
        let of_earlier = earlier.guest.manifest().primary.as_ref();
        if of_earlier.is_none_or(|of_earlier| {
            (of_earlier.group(), &*of_earlier.kind) != (primary.group(), &*primary.kind)
        }) {
            bail!("--from names another guest, which does not reconcile {}", primary.kind);
        }
        preexisting.extend(rbac::minimal_rules(earlier.guest.manifest(), &name, &name));
        let mut of_earlier = module.clone();
        of_earlier["spec"]["source"]["file"] =
            json!(copied(earlier, folder, "earlier-guest.wasm")?);
        earlier_module = Some(of_earlier);
    }
    let mut subject = Subject {
        preexisting,
        name,
        manifest,
        module,
        earlier_module,
        samples: Vec::new(),
        history: options.history.clone(),
    };
    add_samples(&mut subject, &primary, given)?;
    Ok(subject)
}

/// Writes the bytes of a component that were checked into the folder, and returns their path.
fn copied(opened: &Opened, folder: &TempDir, name: &str) -> anyhow::Result<PathBuf> {
    let path = folder.path().canonicalize()?.join(name);
    std::fs::write(&path, &opened.component.bytes)
        .with_context(|| format!("cannot copy the component to {}", path.display()))?;
    Ok(path)
}

fn add_samples(
    subject: &mut Subject,
    primary: &Kind,
    given: Vec<InputObject>,
) -> anyhow::Result<()> {
    for object in given {
        if object.is(primary) {
            subject.samples.push(object.value);
        } else {
            subject.preexisting.push(object.value);
        }
    }
    if subject.samples.is_empty() {
        let sample = smallest_sample(subject);
        subject.samples.push(sample.with_context(|| {
            format!("no {} is given, and none can be made by the schema of its kind: give primaries with --samples", primary.kind)
        })?);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::super::Arguments;
    use super::*;

    #[derive(clap::Parser)]
    struct Command {
        #[command(flatten)]
        check: Arguments,
    }

    #[test]
    fn check_is_limited_by_a_minute_unless_seconds_or_cases_are_given() {
        for (more, seconds) in [
            (&[][..], SECONDS),
            (&["--seconds", "5"], 5),
            (&["--cases", "9"], TIME_MAX),
            (&["--cases", "9", "--seconds", "5"], 5),
        ] {
            let given = [&["check", "guest.wasm"], more].concat();
            assert_eq!(Command::parse_from(given).check.laws.seconds(), seconds, "{more:?}");
        }
    }
}
