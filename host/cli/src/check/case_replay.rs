//! Plays one case again that a check has printed.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use anyhow::{Context as _, bail};
use innkeeper_check::{
    CASE_BYTES_MAX, Case, Incident, Judgement, Replay, ScenarioRunner, Step, replay,
};
use serde_json::json;

use super::check_result::Status;
use super::law_results;
use crate::document::Document;
use crate::out::{self, Format, Page};

/// Reads a case from a file, or from standard input if it is `-`, and runs it.
///
/// # Errors
/// If the file is no case, or the case cannot be run.
pub(super) fn run(runner: &ScenarioRunner, file: &Path) -> anyhow::Result<(Case, Replay)> {
    let case = read(file).with_context(|| format!("--scenario {}", file.display()))?;
    let upgrades = case.scenario.steps.contains(&Step::Upgrade);
    if upgrades && runner.subject().earlier_module.is_none() {
        bail!("the scenario upgrades the guest: name the earlier component with --from");
    }
    let is_neighbor = |step: &Step| *step == Step::Incident(Incident::Neighbor {});
    if case.scenario.steps.iter().any(is_neighbor) && runner.hostile_module().is_none() {
        bail!("the scenario has the incident neighbor: this command has no hostile guest to start");
    }
    let replay = replay(runner, case.clone())?;
    Ok((case, replay))
}

fn read(file: &Path) -> anyhow::Result<Case> {
    let text = if file == Path::new("-") {
        bounded(io::stdin().lock()).context("standard input cannot be read")?
    } else {
        let opened = File::open(file).context("the file cannot be opened")?;
        bounded(opened).context("the file cannot be read")?
    };
    Ok(Case::read(&text)?)
}

fn bounded(source: impl Read) -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    source.take(CASE_BYTES_MAX as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > CASE_BYTES_MAX {
        bail!("it has more than {CASE_BYTES_MAX} bytes; a case has fewer");
    }
    String::from_utf8(bytes).context("it is no UTF-8")
}

/// Prints what a case shows. `again` is the command that plays a case from standard input.
///
/// # Errors
/// If standard output is closed.
pub(super) fn print(
    (case, replay): &(Case, Replay),
    again: &str,
    format: Format,
) -> anyhow::Result<Status> {
    let law = case.law;
    let (word, holds, status) = match replay.judgement {
        Judgement::Holds => ("ok", true, Status::Ok),
        Judgement::Inconclusive => ("none", false, Status::Failed),
        Judgement::Broken(_) => ("FAIL", false, Status::Found),
    };
    if format == Format::Json {
        let is_judged = replay.judgement != Judgement::Inconclusive;
        let mut document = json!({"law": law, "sentence": law.sentence(), "holds": holds,
            "judged": is_judged, "seed": case.scenario.seed, "scenarios": replay.scenarios_run,
            "simulatedSeconds": replay.simulated.as_secs(),
            "unusedFaults": replay.unused_faults});
        if let Some(trace) = &replay.trace {
            document["violation"] = law_results::violation_json(trace, again);
        }
        out::or_closed(out::document(&Document::json(&document)?))?;
        return Ok(status);
    }
    let mut page = Page::default();
    page.table(&[[word.to_owned(), law.name().to_owned(), law.sentence().to_owned()]]);
    if replay.judgement == Judgement::Inconclusive {
        page.line("The law says nothing about this case: the API server refused a step, the guest answered partially, or no fault or incident happened.");
    }
    for fault in &replay.unused_faults {
        page.line(format_args!("This fault affected no request: {fault}"));
    }
    if let Some(trace) = &replay.trace {
        page.line("");
        law_results::add_trace(&mut page, trace, again)?;
    }
    out::or_closed(out::page(&page))?;
    Ok(status)
}
