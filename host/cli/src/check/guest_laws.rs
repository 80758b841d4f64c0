//! Checks the laws of a guest that reconciles.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail};
use innkeeper_check::{
    Budget, CheckReport, Law, LawResult, Player, Subject, check, smallest_sample,
};
use innkeeper_core::counted_len;
use innkeeper_lab::Guests;
use innkeeper_sandbox::Interruption;
use serde_json::{Value, json};

use super::check_result::Status;
use super::given_objects;
use crate::document::Document;
use crate::out::{self, Format, Page};
use crate::parameter_kinds::ParameterArguments;
use crate::{code_cache, component, rbac};

/// How long one failing scenario is made smaller.
const SHRINK_TIME: Duration = Duration::from_mins(1);

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
    /// failing scenario takes up to a minute more, to make it smaller.
    #[arg(long, value_name = "NUMBER", default_value_t = 60)]
    seconds: u64,
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
    let folder = tempfile::tempdir()?;
    let cache = code_cache::open_or_temporary(&folder)?;
    // With the code that the simulated host runs, so that it is compiled once.
    let opened = component::open_with(file, Interruption::Fuel, Some(cache.clone()))?;
    let manifest = opened.guest.manifest().clone();
    let Some(primary) = manifest.primary.clone() else {
        bail!(
            "the guest {} only reviews requests: check a set of policies with --policies",
            manifest.name
        )
    };
    let name = manifest.name.clone();
    let (parameters, _) = options.parameters.resolve_or(None, &opened.guest)?;
    let groups = manifest.crds.iter().filter_map(|one| one.pointer("/spec/group"));
    let mut module = json!({
        "apiVersion": "innkeeper.dev/v1alpha1", "kind": "Module", "metadata": {"name": name},
        "spec": {"source": {"file": file.canonicalize()?}, "serviceAccountName": name,
            "allowedCRDGroups": groups.collect::<Vec<_>>()},
    });
    if !parameters.is_null() {
        module["spec"]["parameters"] = parameters;
    }
    let mut before = rbac::minimal_rules(&manifest, &name, &name);
    let mut earlier_module = None;
    if let Some(from) = &options.from {
        let earlier = component::open_with(from, Interruption::Fuel, Some(cache.clone()))?;
        before.extend(rbac::minimal_rules(earlier.guest.manifest(), &name, &name));
        let mut of_earlier = module.clone();
        of_earlier["spec"]["source"]["file"] = json!(from.canonicalize()?);
        earlier_module = Some(of_earlier);
    }
    let mut subject = Subject {
        before,
        name,
        manifest,
        module,
        earlier_module,
        samples: Vec::new(),
        history: options.history.clone(),
    };
    for object in given_objects::read(&options.samples)? {
        if object.is(&primary) {
            subject.samples.push(object.value);
        } else {
            subject.before.push(object.value);
        }
    }
    if subject.samples.is_empty() {
        let sample = smallest_sample(&subject);
        subject.samples.push(sample.with_context(|| {
            format!("no {} is given, and none can be made by the schema of its kind: give primaries with --samples", primary.kind)
        })?);
    }
    let mut laws = if options.laws.is_empty() { Law::ALL.to_vec() } else { options.laws.clone() };
    laws.retain(|law| !options.skipped.contains(law));
    if laws.is_empty() {
        bail!("--skip leaves out all laws; name one to check with --law");
    }
    if options.laws.contains(&Law::Upgrade) && options.from.is_none() {
        bail!("the law upgrade needs an earlier component: name it with --from");
    }
    if let Some(field) = options.history.iter().find(|field| !field.starts_with('.')) {
        bail!("--history {field}: a field begins with a dot, as in .status.lastRun");
    }
    let time = Duration::from_secs(options.seconds);
    let budget = Budget { seed, laws, time, cases_max: usize::MAX, shrink_time: SHRINK_TIME };
    let player = Player::new(Guests::with_cache(cache)?, subject);
    let report = check(&player, &budget, |_, _, _| {})
        .with_context(|| format!("the guest {} cannot be checked", player.subject().name))?;
    print(&report, seed, format)?;
    let is_broken = report.laws.iter().any(|law| law.broken.is_some());
    Ok(if is_broken { Status::Found } else { Status::Ok })
}

fn print(report: &CheckReport, seed: u64, format: Format) -> anyhow::Result<()> {
    if format == Format::Json {
        let laws: Vec<Value> = report.laws.iter().map(law_json).collect();
        let document = json!({"laws": laws, "seed": seed, "scenarios": report.played,
            "properties": {"all": report.properties.properties,
                "changed": report.properties.changed, "unchanged": report.properties.unchanged}});
        return out::document(&Document::json(&document)?);
    }
    let mut page = Page::default();
    let rows: Vec<[String; 4]> = report.laws.iter().map(row).collect();
    page.table(&rows);
    for trace in report.laws.iter().filter_map(|law| law.broken.as_ref()) {
        page.line("");
        page.lines(&trace.to_string());
    }
    let broken = report.laws.iter().filter(|law| law.broken.is_some()).count();
    let laws = counted_len(report.laws.len(), "law", "laws");
    let properties = &report.properties;
    page.line(format_args!(
        "{laws}, {broken} broken; {} scenarios played with seed {seed}; {} of {} changed",
        report.played,
        properties.changed,
        counted_len(properties.properties, "property", "properties"),
    ));
    out::page(&page)
}

/// A law, how much of it was checked, and what it says.
fn row(result: &LawResult) -> [String; 4] {
    let word = match (&result.broken, result.checked) {
        (Some(_), _) => "FAIL",
        (None, checked) if checked == result.not_judged => "none",
        (None, _) => "ok",
    };
    let mut checked = match result.checked.checked_sub(result.cases) {
        Some(random @ 1..) => format!("{} and {random} random", result.cases),
        _ => format!("{} of {}", result.checked, result.cases),
    };
    if result.not_judged > 0 {
        checked = format!("{checked}, {} not judged", result.not_judged);
    }
    [word.into(), result.law.name().into(), checked, result.law.sentence().into()]
}

fn law_json(result: &LawResult) -> Value {
    let mut law = json!({"law": result.law.name(), "sentence": result.law.sentence(),
        "cases": result.cases, "checked": result.checked, "notJudged": result.not_judged,
        "holds": result.broken.is_none() && result.checked > result.not_judged});
    if let Some(trace) = &result.broken {
        law["violation"] = json!({"what": trace.violation.what,
            "details": trace.violation.details, "scenario": trace.case.scenario,
            "writes": trace.writes});
    }
    law
}
