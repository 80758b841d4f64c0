//! Results of laws, as text and JSON.

use std::time::Duration;

use innkeeper_check::{CheckReport, DirectFigures, LawResult, Trace};
use innkeeper_core::{counted_len, foreign};
use serde_json::{Value, json};

use crate::document::{Document, visible_json};
use crate::out::{self, Format, Page};

/// The most unchanged properties that are named.
const PROPERTIES_MAX: usize = 10;

/// Prints the results. `again` is the command that plays a case from standard input.
///
/// # Errors
/// If standard output is closed.
pub(super) fn print(
    report: &CheckReport,
    seed: u64,
    again: &str,
    format: Format,
) -> anyhow::Result<()> {
    if format == Format::Json {
        return out::document(&Document::json(&report_json(report, seed, again))?);
    }
    let mut page = Page::default();
    let rows: Vec<[String; 4]> = report.laws.iter().map(row).collect();
    page.table(&rows);
    for trace in report.laws.iter().filter_map(|law| law.broken.as_ref()) {
        page.line("");
        add_trace(&mut page, trace, again)?;
    }
    let properties = &report.properties;
    let changed = properties.changed;
    let all = counted_len(properties.properties, "property", "properties");
    let mut coverage = format!("{changed} of {all} changed");
    if !properties.unchanged.is_empty() {
        coverage = format!("{coverage}; not {}", unchanged(&properties.unchanged));
    }
    page.line(coverage);
    if !report.not_served.is_empty() {
        let kinds: Vec<&str> = report.not_served.iter().map(String::as_str).collect();
        page.line(format_args!(
            "not compared, since the simulated cluster does not serve them: {}; a definition among the samples changes that",
            kinds.join(", ")
        ));
    }
    let broken = report.laws.iter().filter(|law| law.broken.is_some()).count();
    let laws = counted_len(report.laws.len(), "law", "laws");
    let Speed { simulated, took, factor, per_second } = Speed::of(report);
    let hours = Duration::from_secs(simulated).as_secs_f64() / 3_600.0;
    page.line(format_args!(
        "{laws}, {broken} broken with seed {seed}; {} scenarios, {hours:.1} simulated hours in {took} s: {factor} times as fast, {per_second} scenarios/s",
        report.scenarios_run,
    ));
    add_direct(&mut page, &report.direct);
    out::page(&page)
}

/// Adds how much the calls of the guest alone have judged.
fn add_direct(page: &mut Page, direct: &DirectFigures) {
    if direct.primaries == 0 {
        return;
    }
    page.line(format_args!(
        "without a host: {} primaries, {} calls of the guest, {} evaluations of laws in {:.1} s: {} evaluations/s",
        direct.primaries,
        direct.calls,
        direct.all_evaluations(),
        direct.took.as_secs_f64(),
        evaluations_per_second(direct),
    ));
    if direct.unconfirmed > 0 {
        let first: Vec<String> =
            direct.suspicions.iter().map(|(law, what)| format!("{law}: {what}")).collect();
        page.line(format_args!(
            "{} that no scenario confirmed, so no law is broken by them: {}",
            counted_len(
                usize::try_from(direct.unconfirmed).unwrap_or(usize::MAX),
                "suspicion",
                "suspicions"
            ),
            first.join("; ")
        ));
    }
}

/// How many laws direct evaluation judges in a second.
fn evaluations_per_second(direct: &DirectFigures) -> u64 {
    let micros = direct.took.as_micros().max(1);
    let per_second = u128::from(direct.all_evaluations()) * 1_000_000 / micros;
    u64::try_from(per_second).unwrap_or(u64::MAX)
}

/// How much direct evaluation has judged, for programs.
pub(super) fn direct_json(direct: &DirectFigures) -> Value {
    let suspicions = direct.suspicions.iter();
    let suspicions: Vec<Value> =
        suspicions.map(|(law, what)| json!({"law": law.name(), "what": what})).collect();
    json!({"primaries": direct.primaries, "refused": direct.refused, "calls": direct.calls,
        "evaluations": direct.all_evaluations(), "unconfirmed": direct.unconfirmed,
        "suspicions": suspicions})
}

/// Adds what happens in a case that breaks a law, and the command that plays it again.
///
/// # Errors
/// If the case cannot be serialized.
pub(super) fn add_trace(page: &mut Page, trace: &Trace, again: &str) -> anyhow::Result<()> {
    page.lines(&trace.to_string());
    let case = visible_json(&serde_json::to_string(&trace.case)?);
    if case.len() > foreign::LINE_BYTES_MAX {
        page.line("The case is too long to be shown: -o json prints it, and --scenario plays it.");
        return Ok(());
    }
    page.line("To play this case again:");
    page.line(format_args!("{again} <<'END'"));
    page.line(case);
    page.line("END");
    Ok(())
}

/// A case that breaks a law, for programs.
pub(super) fn violation_json(trace: &Trace, again: &str) -> Value {
    let Trace { case, violation, writes, read_last, more_writes, tried, took } = trace;
    json!({"what": violation.what, "details": violation.details,
        "case": case,
        "writes": writes, "readLast": read_last, "moreWrites": more_writes, "command": again,
        "shrink": {"tried": tried, "seconds": took.as_secs_f64()}})
}

fn report_json(report: &CheckReport, seed: u64, again: &str) -> Value {
    let laws: Vec<Value> = report.laws.iter().map(|law| law_json(law, again)).collect();
    let Speed { simulated, took, factor, per_second } = Speed::of(report);
    let mut direct = direct_json(&report.direct);
    direct["seconds"] = report.direct.took.as_secs_f64().into();
    direct["evaluationsPerSecond"] = evaluations_per_second(&report.direct).into();
    json!({"laws": laws, "seed": seed, "scenarios": report.scenarios_run, "direct": direct,
        "simulatedSeconds": simulated, "seconds": took, "speedFactor": factor,
        "scenariosPerSecond": per_second,
        "properties": {"all": report.properties.properties,
            "changed": report.properties.changed, "unchanged": report.properties.unchanged},
        "notServed": report.not_served})
}

fn law_json(result: &LawResult, again: &str) -> Value {
    let (bug, source) = result.law.published_bug();
    let mut law = json!({"law": result.law.name(), "sentence": result.law.sentence(),
        "publishedBug": {"what": bug, "source": source},
        "cases": result.cases, "checked": result.checked, "notJudged": result.inconclusive,
        "direct": result.direct, "signatureParts": result.signature_parts,
        "holds": result.broken.is_none() && result.is_judged()});
    if let Some(trace) = &result.broken {
        law["violation"] = violation_json(trace, again);
    }
    law
}

/// A law, how much of it was checked, and what it says.
fn row(result: &LawResult) -> [String; 4] {
    let word = match &result.broken {
        Some(_) => "FAIL",
        None if result.is_judged() => "ok",
        None => "none",
    };
    let mut checked = match result.checked.checked_sub(result.cases) {
        Some(random @ 1..) => format!("{} and {random} random", result.cases),
        _ => format!("{} of {}", result.checked, result.cases),
    };
    if result.inconclusive > 0 {
        checked = format!("{checked}, {} not judged", result.inconclusive);
    }
    if result.direct > 0 {
        checked = format!("{checked}; {} without a host", result.direct);
    }
    [word.into(), result.law.name().into(), checked, result.law.sentence().into()]
}

fn unchanged(names: &[String]) -> String {
    let first = names[..names.len().min(PROPERTIES_MAX)].join(", ");
    match names.len().saturating_sub(PROPERTIES_MAX) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

/// How much virtual time was played, and how fast.
pub(super) struct Speed {
    /// The virtual time, in seconds.
    pub(super) simulated: u64,
    /// The time of the check, in seconds.
    pub(super) took: f64,
    /// Virtual time by time.
    pub(super) factor: u64,
    /// Scenarios by seconds.
    pub(super) per_second: f64,
}

impl Speed {
    /// The speed of a check.
    pub(super) fn of(report: &CheckReport) -> Self {
        // No check is that fast.
        let took = report.took.as_secs_f64().max(0.001);
        let rounded = |value: f64| (value * 10.0).round() / 10.0;
        let factor = report.simulated.as_millis() / report.took.as_millis().max(1);
        let scenarios = u32::try_from(report.scenarios_run).unwrap_or(u32::MAX);
        Self {
            simulated: report.simulated.as_secs(),
            took: rounded(took),
            factor: u64::try_from(factor).unwrap_or(u64::MAX),
            per_second: rounded(f64::from(scenarios) / took),
        }
    }
}
