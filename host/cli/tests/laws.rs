//! `innkeeper check guest.wasm`: the laws of a guest, cases played again, and reports.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

// Each test file uses a part of it.
#[allow(dead_code)]
mod support;

use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use innkeeper_modules::Digest;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use support::{Files, command, component, innkeeper, text};

/// A bug of the guest `faulty` that breaks `totality` with its first cases.
const BUG: [&str; 2] = ["--parameters", r#"{"bug":"trap-on-empty-image"}"#];

fn samples() -> String {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../guests/testing/faulty/samples/shop.yaml");
    path.to_str().unwrap().to_owned()
}

/// Checks the guest `faulty`.
fn check(more: &[&str]) -> Output {
    let (guest, samples) = (component("faulty"), samples());
    innkeeper(&[&["check", &guest, "--samples", &samples], more].concat())
}

/// The guest with this component plays a case from standard input.
fn play(guest: &str, more: &[&str], case: &str, while_it_reads: impl FnOnce()) -> Output {
    let samples = samples();
    let mut child = command()
        .args(["check", guest, "--samples", &samples, "--scenario", "-"])
        .args(more)
        .env("HOME", "/nonexistent")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // More than a pipe holds: the call returns when the command reads.
    let padding = " ".repeat(300 << 10);
    stdin.write_all(padding.as_bytes()).unwrap();
    while_it_reads();
    stdin.write_all(case.as_bytes()).unwrap();
    drop(stdin);
    child.wait_with_output().unwrap()
}

/// A case of `totality` that the bug breaks.
fn broken_case() -> Value {
    let shop = json!({"apiVersion": "example.innkeeper.dev/v1", "kind": "Shop",
        "metadata": {"name": "shop"}, "spec": {"image": "", "replicas": 1}});
    json!({"law": "totality", "expectation": "allAccepted",
        "scenario": {"seed": 7, "steps": [{"apply": shop}], "faults": {"faults": []}}})
}

fn assert_refused(output: &Output, why: &str) {
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(output.stdout.is_empty() && stderr.contains(why), "{stderr}");
}

#[test]
fn broken_law_is_printed_with_a_command_that_plays_its_case_again() {
    let output = check(&[&BUG[..], &["--law", "totality", "--seconds", "30"]].concat());
    let stdout = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{stdout}{}", text(&output.stderr));
    for part in [
        "FAIL  totality",
        "calls of the guest gave no usable answer",
        "A published bug of this kind: ",
        "Steps, with seed ",
        "       kind: Shop\n",
        "Writes of the host, with the answers, and what it read before each:",
        "1 law, 1 broken with seed 1; ",
        " simulated hours in ",
    ] {
        assert!(stdout.contains(part), "{part}: {stdout}");
    }
    let (_, rest) = stdout.split_once("To play this case again:\n").unwrap();
    let (again, rest) = rest.split_once(" <<'END'\n").unwrap();
    let (case, _) = rest.split_once("\nEND\n").unwrap();
    let words = shlex::split(again).unwrap();
    assert_eq!(words[..2], ["innkeeper", "check"]);
    assert_eq!(words[words.len() - 2..], ["--scenario", "-"]);
    let options: Vec<&str> = words[3..words.len() - 2].iter().map(String::as_str).collect();
    assert_eq!(options, [&["--samples", &samples()], &BUG[..]].concat());
    let output = play(&words[2], &BUG, case, || {});
    let stdout = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{stdout}{}", text(&output.stderr));
    assert!(stdout.contains("calls of the guest gave no usable answer"), "{stdout}");
    // Without the bug the case holds.
    let output = play(&words[2], &[], case, || {});
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stdout));
    assert!(text(&output.stdout).starts_with("ok  totality"), "{}", text(&output.stdout));
}

#[test]
fn component_that_is_overwritten_meanwhile_is_checked_as_it_was_read() {
    let files = Files::new();
    let guest = files.write("guest.wasm", std::fs::read(component("faulty")).unwrap());
    let overwrite = || std::fs::write(&guest, "no component").unwrap();
    let more = [&BUG[..], &["-o", "json"]].concat();
    let output = play(&guest, &more, &broken_case().to_string(), overwrite);
    let stdout = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{stdout}{}", text(&output.stderr));
    let answer: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((&answer["law"], &answer["holds"]), (&json!("totality"), &json!(false)));
    // The case that is printed is one that can be played.
    let mut again = answer["violation"]["case"].clone();
    again["scenario"].as_object_mut().unwrap().remove("isPatient");
    assert_eq!(again, broken_case());
}

#[test]
fn scenario_that_cannot_be_played_is_refused() {
    let files = Files::new();
    let refused = |case: &str, why: &str| {
        let file = files.write("case.yaml", case);
        assert_refused(&check(&["--scenario", &file]), why);
    };
    refused("a: [", "the document is no case");
    refused(&" ".repeat((1 << 20) + 1), "more than 1048576 bytes");
    let mut case = broken_case();
    case["law"] = json!("gravity");
    refused(&case.to_string(), "there is no law \"gravity\"");
    let mut case = broken_case();
    case["scenario"]["steps"] = json!([{"pass": u32::MAX}]);
    refused(&case.to_string(), "milliseconds of waits and delays; the most are 604800000");
    case["scenario"]["steps"] = json!(["upgrade"]);
    refused(&case.to_string(), "name the earlier component with --from");
    assert_refused(&check(&["--scenario", "/nonexistent/case"]), "the file cannot be opened");
    let output = check(&["--scenario", "case.yaml", "--law", "crash"]);
    assert_refused(&output, "cannot be used with");
}

#[test]
fn report_is_an_in_toto_statement_about_the_component() {
    let files = Files::new();
    let path = files.write("report.json", "an earlier report");
    let laws = ["--law", "convergence", "--law", "no-leak", "--cases", "2", "--seed", "5"];
    let output = check(&[&laws[..], &["--report", &path, "-o", "json"]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(text(&output.stderr), "");
    let answer: Value = serde_json::from_str(&text(&output.stdout)).unwrap();
    let report: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    assert_eq!(report["_type"], "https://in-toto.io/Statement/v1");
    assert_eq!(report["predicateType"], "https://innkeeper.dev/laws/v1");
    let digest = Digest::of(&std::fs::read(component("faulty")).unwrap()).to_string();
    assert_eq!(report["subject"], json!([{"name": "faulty.wasm", "digest": {"sha256": digest}}]));
    let predicate = &report["predicate"];
    assert_eq!((&predicate["verdict"], &predicate["seed"]), (&json!("passed"), &json!(5)));
    for (law, printed) in [(0, "convergence"), (1, "no-leak")] {
        assert_eq!(predicate["laws"][law]["law"], printed);
        assert_eq!(predicate["laws"][law]["checked"], answer["laws"][law]["checked"]);
    }
    assert_eq!(predicate["laws"][0]["result"], "holds");
    assert_eq!(answer["laws"][0]["checked"], 2);
    assert_eq!(predicate["scenarios"], answer["scenarios"]);
    assert!(answer["simulatedSeconds"].as_u64().unwrap() > 15, "{answer}");
    let sample = &predicate["samples"][0];
    assert_eq!(sample["name"], "example.innkeeper.dev/v1 Shop shop");
    assert_eq!(sample["digest"]["sha256"].as_str().unwrap().len(), 64);
    assert!(predicate["startedOn"].as_str().unwrap() <= predicate["endedOn"].as_str().unwrap());
    let left = std::fs::read_dir(files.0.path()).unwrap().count();
    assert_eq!(left, 1, "a temporary file is left");
}

#[test]
fn report_of_a_broken_law_has_the_verdict_and_the_case() {
    let files = Files::new();
    let path = files.0.path().join("report.json");
    let path = path.to_str().unwrap();
    let more = ["--law", "totality", "--seconds", "30", "--report", path];
    let output = check(&[&BUG[..], &more].concat());
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let report: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let predicate = &report["predicate"];
    assert_eq!(predicate["verdict"], "failed");
    assert_eq!(predicate["laws"][0]["result"], "broken");
    let case = predicate["laws"][0]["violation"]["case"].to_string();
    let case = files.write("case.json", case);
    let output = check(&[&BUG[..], &["--scenario", &case]].concat());
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
}

#[test]
fn report_that_is_replaced_keeps_its_permissions() {
    let files = Files::new();
    let path = files.write("report.json", "an earlier report");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    let output = check(&["--law", "no-leak", "--cases", "1", "--report", &path]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn broken_law_is_an_exit_status_also_if_nobody_reads_the_output() {
    let (guest, samples) = (component("faulty"), samples());
    let more = ["--law", "totality", "--seconds", "30"];
    for format in ["text", "json"] {
        let mut child = command()
            .args(
                [&["check", &guest, "--samples", &samples, "-o", format], &BUG[..], &more].concat(),
            )
            .env("HOME", "/nonexistent")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    }
}

#[test]
fn case_whose_faults_affect_nothing_is_not_judged() {
    let mut case = broken_case();
    case["law"] = "crash".into();
    case["expectation"] = "asWithoutFaults".into();
    case["scenario"]["steps"][0]["apply"]["spec"]["image"] = "shop:1".into();
    let crash = json!({"from": 100_000, "fault": {"crash": {"point": "beforeAnswer"}}});
    case["scenario"]["faults"]["faults"] = json!([crash]);
    let output = play(&component("faulty"), &[], &case.to_string(), || {});
    let stdout = text(&output.stdout);
    assert_eq!(output.status.code(), Some(3), "{stdout}{}", text(&output.stderr));
    assert!(stdout.contains("This fault affected no request: write number 100000"), "{stdout}");
    let first = json!({"from": 1, "fault": {"crash": {"point": "beforeAnswer"}}});
    case["scenario"]["faults"]["faults"] = json!([first]);
    let output = play(&component("faulty"), &[], &case.to_string(), || {});
    assert_eq!(output.status.code(), Some(0), "{}{}", text(&output.stdout), text(&output.stderr));
}

#[test]
fn interrupted_check_leaves_no_temporary_files() {
    // Given a check that runs for long.
    let temporary = tempfile::tempdir().unwrap();
    let (guest, samples) = (component("faulty"), samples());
    let mut child = command()
        .args(["check", &guest, "--samples", &samples, "--seconds", "600"])
        .env("HOME", "/nonexistent")
        .env("TMPDIR", temporary.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let entries = |folder: &Path| std::fs::read_dir(folder).into_iter().flatten().flatten();
    let has_files = || entries(temporary.path()).any(|one| entries(&one.path()).next().is_some());
    let began = Instant::now();
    while !has_files() {
        assert!(began.elapsed() < Duration::from_mins(2), "the check makes temporary files");
        assert_eq!(child.try_wait().unwrap(), None, "the check runs");
        thread::yield_now();
    }
    // When a user presses Ctrl-C, then nothing is left.
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(std::fs::read_dir(temporary.path()).unwrap().count(), 0);
}

#[test]
fn report_that_cannot_be_written_is_refused_before_the_check() {
    let files = Files::new();
    let folder = files.0.path().to_str().unwrap().to_owned();
    assert_refused(&check(&["--report", &folder]), "this is a folder; name a file");
    assert_refused(&check(&["--report", "/dev/null"]), "this is no regular file");
    let sample = files.write("shop.yaml", std::fs::read_to_string(samples()).unwrap());
    let more = ["--samples", &sample, "--report", &sample];
    assert_refused(&check(&more), "the command reads this file");
    let path = format!("{folder}/none/report.json");
    assert_refused(&check(&["--report", &path]), "no file can be made in its folder");
    assert_refused(&check(&["--report", &format!("{path}/")]), "this is a folder; name a file");
}

#[test]
fn report_replaces_no_link_no_device_and_no_input() {
    let files = Files::new();
    let folder = files.0.path().to_str().unwrap().to_owned();
    for device in ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"] {
        assert_refused(&check(&["--report", device]), "this is no regular file");
    }
    let lost = format!("{folder}/lost");
    std::os::unix::fs::symlink(format!("{folder}/none"), &lost).unwrap();
    assert_refused(&check(&["--report", &lost]), "this link leads to no file");
    // What a folder of samples and a file of parameters hold is read, too.
    files.write("shop.yaml", std::fs::read_to_string(samples()).unwrap());
    for name in ["shop.yaml", "report.json"] {
        let path = format!("{folder}/{name}");
        let more = ["--samples", &folder, "--report", &path];
        assert_refused(&check(&more), "the command reads the files of this folder");
    }
    let parameters = files.write("parameters", "bug: none");
    let more = ["--parameters", &format!("@{parameters}"), "--report", &parameters];
    assert_refused(&check(&more), "the command reads this file");
    // A link to a report stays, and leads to the new one.
    let (report, link) = (files.write("report", "an earlier one"), format!("{folder}/link"));
    std::os::unix::fs::symlink(&report, &link).unwrap();
    let output = check(&["--law", "no-leak", "--cases", "1", "--report", &link]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(std::fs::read_link(&link).unwrap().to_str().unwrap(), report);
    assert!(std::fs::read_to_string(&report).unwrap().contains("in-toto"));
}

#[test]
fn sample_of_which_aliases_make_much_more_is_refused() {
    let files = Files::new();
    let text = "a".repeat(1_000);
    let (texts, aliases) = (vec![&*text; 300].join(","), vec!["*a"; 500].join(","));
    let path = files.write("shop.yaml", format!("a: &a [{texts}]\nb: [{aliases}]\n"));
    assert_refused(&check(&["--samples", &path]), "the document is too large");
}

#[test]
fn scenario_that_cannot_happen_is_refused_or_not_judged() {
    let mut case = broken_case();
    let steps = case["scenario"]["steps"].clone();
    let guest = component("faulty");
    for (incident, error) in [
        ("neighbor", "has no hostile guest to start"),
        ("restore", "there is no step with the incident backup before"),
    ] {
        let bump = if incident == "restore" { json!({"bump": true}) } else { json!({}) };
        let mut all = steps.as_array().unwrap().clone();
        all.push(json!({"incident": {incident: bump}}));
        case["scenario"]["steps"] = all.into();
        let output = play(&guest, &[], &case.to_string(), || {});
        assert_refused(&output, error);
    }
    case["scenario"]["steps"] = steps;
    case["scenario"]["steps"][0]["apply"]["spec"]["image"] = "shop:1".into();
    case["scenario"]["wakesForEveryField"] = true.into();
    case["expectation"] = "asWithEveryField".into();
    let output = play(&guest, &[], &case.to_string(), || {});
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
}

#[test]
fn numbers_out_of_range_are_refused() {
    for number in ["2592001", "18446744073709551615", "18446744073709551616", "-1", "1e3"] {
        let seconds = format!("--seconds={number}");
        assert_refused(&check(&[&seconds]), "invalid value");
        let timeout = format!("--timeout={number}");
        let output = innkeeper(&["check", "--policies", "none", "-f", "none", &timeout]);
        assert_refused(&output, "invalid value");
    }
    assert_refused(&check(&["--seconds", "2592001"]), "2592001 is not in 0..=2592000");
    assert_refused(&check(&["--cases", "0"]), "invalid value");
}
