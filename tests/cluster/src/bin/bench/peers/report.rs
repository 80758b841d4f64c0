//! The part of docs/benchmarks-peers.md that is made of the results, and its charts.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use innkeeper_cluster_tests::stage::root;

use crate::figures::say;
use crate::peers::chart::{Bar, Chart};
use crate::peers::controller::Peer;
use crate::peers::figure::Figure;
use crate::peers::measurement::{Measurement, Phase, Results};

/// The line before the part that is made.
const BEGIN: &str = "<!-- Made by `cargo xtask bench --peers --report` from here -->";
/// The line after it.
const END: &str = "<!-- Made by `cargo xtask bench --peers --report` up to here -->";

/// A row of the table: its name, its decimals, and its value if a measurement has it.
type Row = (&'static str, usize, fn(&Measurement) -> Option<f64>);

/// All rows. Measurements without the controller manager have each.
const ROWS: [Row; 21] = [
    ("requests per resource, created", 2, |one| Some(one.created.requests_each())),
    ("requests per resource, changed", 2, |one| Some(one.changed.requests_each())),
    ("responses 409, created, % of resources", 1, |one| Some(one.created.conflicts_percent())),
    ("responses 409, changed, % of resources", 1, |one| Some(one.changed.conflicts_percent())),
    ("CPU s, created", 2, |one| Some(one.created.cpu_s)),
    ("CPU s, changed", 2, |one| Some(one.changed.cpu_s)),
    ("CPU s of the API server, created", 1, |one| Some(one.created.api_server_cpu_s)),
    ("CPU s of the API server, changed", 1, |one| Some(one.changed.api_server_cpu_s)),
    ("memory MiB, idle", 1, |one| Some(one.idle.rss_mib)),
    ("memory MiB, created", 1, |one| Some(one.created.memory.rss_mib)),
    ("memory MiB, changed", 1, |one| Some(one.changed.memory.rss_mib)),
    ("anonymous memory MiB, idle", 1, |one| Some(one.idle.anonymous_mib)),
    ("anonymous memory MiB, created", 1, |one| Some(one.created.memory.anonymous_mib)),
    ("change to Deployment ms, p50", 1, |one| Some(one.latency.as_ref()?.p50_ms)),
    ("change to Deployment ms, p99", 1, |one| Some(one.latency.as_ref()?.p99_ms)),
    ("drift repair ms, p50", 1, |one| Some(one.repair.as_ref()?.p50_ms)),
    ("requests per drift repair", 2, |one| one.repair.as_ref().map(each)),
    ("CPU s in 15 s of idleness", 2, |one| Some(one.idle_cpu_s)),
    ("writes after a restart", 0, writes),
    ("CPU s of a restart", 2, |one| Some(one.restart.as_ref()?.cpu_s)),
    ("memory MiB after a restart", 1, |one| Some(one.restart.as_ref()?.memory.rss_mib)),
];

/// The rows of [`ROWS`] that measurements with the controller manager have.
const MANAGED: [&str; 9] = [
    "requests per resource, created",
    "requests per resource, changed",
    "responses 409, created, % of resources",
    "responses 409, changed, % of resources",
    "CPU s, created",
    "CPU s, changed",
    "CPU s of the API server, created",
    "CPU s of the API server, changed",
    "memory MiB, created",
];

/// The charts: file, title, unit, and the rows of [`ROWS`] in it by their names.
const CHARTS: [(&str, &str, &str, &[&str]); 5] = [
    ("cpu", "CPU of the controller", "s", &["CPU s, created", "CPU s, changed"]),
    (
        "api-server",
        "CPU of the API server",
        "s",
        &["CPU s of the API server, created", "CPU s of the API server, changed"],
    ),
    ("memory", "Resident memory", "MiB", &["memory MiB, idle", "memory MiB, created"]),
    (
        "requests",
        "Requests per resource",
        "",
        &["requests per resource, created", "requests per resource, changed"],
    ),
    (
        "latency",
        "Change to Deployment",
        "ms",
        &["change to Deployment ms, p50", "change to Deployment ms, p99"],
    ),
];

#[expect(clippy::cast_precision_loss, reason = "small counts")]
fn each(repair: &crate::peers::measurement::Repair) -> f64 {
    repair.requests as f64 / repair.drifts as f64
}

#[expect(clippy::cast_precision_loss, reason = "small counts")]
fn writes(one: &Measurement) -> Option<f64> {
    Some(one.restart.as_ref()?.writes as f64)
}

/// Writes the charts, and the tables between the markers of the page. CPU times are those of one
/// speed of the machine.
///
/// # Errors
/// If the page has no markers.
pub(crate) fn write(mut results: Results) -> Result<()> {
    let slowness = results.at_one_speed();
    let page = root().join("docs/benchmarks-peers.md");
    let text = fs::read_to_string(&page).with_context(|| page.display().to_string())?;
    let (before, rest) = text.split_once(BEGIN).with_context(|| format!("no line {BEGIN}"))?;
    let (_, after) = rest.split_once(END).with_context(|| format!("no line {END}"))?;
    fs::write(&page, format!("{before}{BEGIN}\n\n{}\n{END}{after}", made(&results, &slowness)?))?;
    say(&format!("wrote {}", page.display()));
    Ok(())
}

fn made(results: &Results, slowness: &[f64]) -> Result<String> {
    let mut text = caption(results, slowness);
    text.push_str("\nWithout the controller manager:\n\n");
    text.push_str(&table(results, false, ROWS.iter()));
    text.push_str(
        "\nWith the controller manager, whose writes of statuses wake each controller:\n\n",
    );
    text.push_str(&table(results, true, MANAGED.iter().filter_map(|name| row(name))));
    text.push_str("\nRequests by verb per resource, without the controller manager:\n\n");
    text.push_str(&verbs(results));
    text.push('\n');
    for (file, title, unit, rows) in CHARTS {
        let path = chart_folder().join(format!("peers-{file}.svg"));
        fs::create_dir_all(chart_folder())?;
        fs::write(&path, chart(results, title, unit, rows))
            .with_context(|| path.display().to_string())?;
        let _ = writeln!(text, "![{title}](charts/peers-{file}.svg)");
    }
    Ok(text)
}

fn chart_folder() -> PathBuf {
    root().join("docs/charts")
}

/// What was measured where, and how much slower the machine was than in the fastest phases.
fn caption(results: &Results, slowness: &[f64]) -> String {
    let machine = &results.machine;
    let version = |name: &str| results.versions.get(name).map_or("unknown", String::as_str);
    let rounds = results.measurements.iter().map(|one| one.round + 1).max().unwrap_or(0);
    let rounds = if rounds == 1 { "1 round".to_owned() } else { format!("{rounds} rounds") };
    let load = Figure::new(results.measurements.iter().map(|one| one.load), 1);
    let versions: Vec<String> = peers(results)
        .into_iter()
        .map(|peer| format!("{peer} {}", version(peer.name())))
        .chain(["kubernetes", "go", "rust"].map(|name| format!("{name} {}", version(name))))
        .collect();
    let speed = if slowness.is_empty() {
        String::new()
    } else {
        format!(
            " CPU times, but for idleness, are divided by how much more CPU time a small fixed \
             piece of work took in the same phase than in the fastest phase of that name: {}.",
            Figure::new(slowness.iter().copied(), 2)
        )
    };
    let paragraph = format!(
        "{}, {} resources, {rounds}, {} changes and {} drifts one by one. {}, {} cores, \
         {:.0} GiB; load average before a measurement {load}. Versions: {}. Each cell is the median \
         of the rounds, with the lowest and the highest in brackets.{speed}",
        version("date"),
        results.resources,
        results.samples,
        results.samples,
        machine.processor,
        machine.cores,
        machine.memory_gib,
        versions.join(", ")
    );
    wrap(&paragraph)
}

/// The controllers that were measured, in the order of the tables.
fn peers(results: &Results) -> Vec<Peer> {
    let measured: BTreeSet<Peer> = results.measurements.iter().map(|one| one.peer).collect();
    Peer::ALL.into_iter().filter(|peer| measured.contains(peer)).collect()
}

fn measurements(
    results: &Results,
    peer: Peer,
    controller_manager: bool,
) -> impl Iterator<Item = &Measurement> {
    let all = results.measurements.iter();
    all.filter(move |one| one.peer == peer && one.controller_manager == controller_manager)
}

/// The row of this name.
fn row(name: &str) -> Option<&'static Row> {
    ROWS.iter().find(|(one, ..)| *one == name)
}

fn table<'a>(
    results: &Results,
    controller_manager: bool,
    rows: impl Iterator<Item = &'a Row>,
) -> String {
    let peers = peers(results);
    let mut text = head("", &peers);
    for (name, decimals, value) in rows {
        let cells = peers.iter().map(|peer| {
            let values = measurements(results, *peer, controller_manager).filter_map(value);
            Figure::new(values, *decimals).to_string()
        });
        let _ = writeln!(text, "| {name} | {} |", cells.collect::<Vec<_>>().join(" | "));
    }
    text
}

/// Requests by verb, resource and HTTP status if it is none of success.
fn verbs(results: &Results) -> String {
    let peers = peers(results);
    let mut text = head("request", &peers);
    for (phase, of) in PHASES {
        let mut requests = BTreeSet::new();
        for one in results.measurements.iter().filter(|one| !one.controller_manager) {
            requests.extend(of(one).by_verb.keys().map(|request| without_success(request)));
        }
        for request in requests {
            let cells = peers.iter().map(|peer| {
                let counts = measurements(results, *peer, false).map(|one| count(of(one), request));
                let figure = Figure::new(counts, 2);
                if figure.range() == Some((0.0, 0.0)) { String::new() } else { figure.to_string() }
            });
            let cells = cells.collect::<Vec<_>>().join(" | ");
            let _ = writeln!(text, "| {phase}: {request} | {cells} |");
        }
    }
    text
}

/// A request without its HTTP status if that is 200 or 201.
fn without_success(request: &str) -> &str {
    request.strip_suffix(" 200").or_else(|| request.strip_suffix(" 201")).unwrap_or(request)
}

/// How to get a phase of a measurement.
type GetPhase = fn(&Measurement) -> &Phase;

/// The phases by their names.
const PHASES: [(&str, GetPhase); 2] =
    [("created", |one| &one.created), ("changed", |one| &one.changed)];

#[expect(clippy::cast_precision_loss, reason = "small counts")]
fn count(phase: &Phase, request: &str) -> f64 {
    let counts = phase.by_verb.iter().filter(|(one, _)| without_success(one) == request);
    phase.each(counts.map(|(_, count)| *count).sum::<usize>() as f64)
}

fn head(first: &str, peers: &[Peer]) -> String {
    let names: Vec<&str> = peers.iter().map(|peer| peer.name()).collect();
    format!("| {first} | {} |\n|---|{}\n", names.join(" | "), "---|".repeat(peers.len()))
}

fn chart(results: &Results, title: &str, unit: &str, rows: &[&str]) -> String {
    let mut bars = Vec::new();
    for peer in peers(results) {
        for (series, row) in rows.iter().enumerate() {
            let Some((_, decimals, value)) = self::row(row) else {
                continue;
            };
            let values = measurements(results, peer, false).filter_map(value);
            let figure = Figure::new(values, *decimals);
            let name = if series == 0 { peer.name().to_owned() } else { String::new() };
            bars.push(Bar { name, series, figure });
        }
    }
    let legend = rows.iter().map(|row| row.rsplit_once(", ").map_or(*row, |(_, last)| last));
    Chart { title, unit, legend: legend.collect(), bars }.svg()
}

/// Wraps a paragraph at 100 columns.
fn wrap(paragraph: &str) -> String {
    let (mut text, mut column) = (String::new(), 0);
    for word in paragraph.split_whitespace() {
        let width = word.chars().count();
        if column > 0 && column + 1 + width > 100 {
            text.push('\n');
            column = 0;
        } else if column > 0 {
            text.push(' ');
            column += 1;
        }
        text.push_str(word);
        column += width;
    }
    text + "\n"
}
