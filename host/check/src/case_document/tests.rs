use std::fmt::Write as _;

use innkeeper_faults::{CrashPoint, FaultPlan, Refusal};
use serde_json::json;

use super::*;
use crate::incident::PlannedIncident;

fn shop() -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Shop", "metadata": {"name": "a"},
        "spec": {"image": "a: b #c\n\u{1b}[1m", "replicas": 2, "list": [1.5, null, true, "y"]}})
}

fn case(steps: Vec<Step>, faults: Vec<PlannedFault>) -> Case {
    let scenario = Scenario::new(u64::MAX, steps).with_faults(FaultPlan { faults });
    Case { law: Law::FailedWrites, scenario, expectation: Expectation::AsWithoutFaults }
}

fn read(case: &Case) -> Result<Case, ReadCaseError> {
    Case::read(&serde_json::to_string(case).unwrap())
}

fn error(text: &str) -> String {
    Case::read(text).unwrap_err().to_string()
}

#[test]
fn case_is_read_as_it_was_printed() {
    let steps = vec![
        Step::Apply(shop()),
        Step::Settle,
        Step::Wait(60),
        Step::MergePatch(shop()),
        Step::Replace(shop()),
        Step::Restart,
        Step::Upgrade,
        Step::Delete(shop()),
    ];
    let faults = vec![
        PlannedFault::at_write(3, Fault::Crash { point: CrashPoint::BeforeRequest }),
        PlannedFault::at_write(1, Fault::DelayRequest { milliseconds: 5_000 }),
        PlannedFault::of_watches("pods", Fault::Watch(WatchFault::Expire { after_events: 2 })),
    ];
    let case = case(steps, faults);
    let value = serde_json::to_value(&case).unwrap();
    assert_eq!(value["law"], "failed-writes");
    assert_eq!(value["expectation"], "asWithoutFaults");
    for text in [
        value.to_string(),
        serde_json::to_string_pretty(&value).unwrap(),
        // YAML without braces around it.
        format!(
            "law: {}\nexpectation: {}\nscenario: {}\n",
            value["law"], value["expectation"], value["scenario"]
        ),
    ] {
        assert_eq!(Case::read(&text).as_ref(), Ok(&case), "{text}");
    }
}

#[test]
fn case_of_the_documentation_is_read() {
    let page = include_str!("../../../../docs/laws.md");
    let (_, rest) = page.split_once("```yaml\n").unwrap();
    let (text, _) = rest.split_once("```").unwrap();
    let case = Case::read(text).unwrap();
    assert_eq!((case.law, case.scenario.steps.len()), (Law::Crash, 4));
}

#[test]
fn every_law_is_read_by_the_name_with_which_it_is_printed() {
    for law in Law::ALL {
        let case = Case { law, ..case(Vec::new(), Vec::new()) };
        assert_eq!(read(&case).unwrap().law, law);
    }
}

#[test]
fn text_that_is_no_case_is_refused_with_the_reason() {
    for (text, why) in [
        ("", "no case"),
        ("3", "no case"),
        ("law: [", "no case"),
        ("{}", "missing field `law`"),
        ("law: crash\nlaw: crash", "\"law\" is there twice"),
        ("{\"law\": 1}", "no case"),
        ("law: crash\nscenario: 3\nexpectation: nothing", "no case"),
        ("? {a: b}\n: c", "no case"),
        ("a: .nan", "not finite"),
    ] {
        let error = error(text);
        assert!(error.contains(why), "{text}: {error}");
    }
    let mut document = serde_json::to_value(case(Vec::new(), Vec::new())).unwrap();
    document["law"] = "gravity".into();
    let unknown = error(&document.to_string());
    assert!(unknown.contains("no law \"gravity\"; the laws are totality, "), "{unknown}");
    document["law"] = "crash".into();
    document["scenario"]["fault"] = json!([]);
    assert!(error(&document.to_string()).contains("unknown field `fault`"));
}

#[test]
fn error_is_short_and_visible_whatever_it_quotes() {
    let long = "\u{1b}".repeat(100_000);
    let mut document = serde_json::to_value(case(Vec::new(), Vec::new())).unwrap();
    document["law"] = long.clone().into();
    let of_law = error(&document.to_string());
    document["law"] = "crash".into();
    document["scenario"][long] = json!([]);
    for error in [of_law, error(&document.to_string())] {
        assert!(error.len() < 2_000 && !error.contains('\u{1b}'), "{error}");
    }
}

#[test]
fn document_that_is_too_large_is_refused() {
    let large = "a".repeat(CASE_BYTES_MAX + 1);
    assert_eq!(Case::read(&large), Err(ReadCaseError::TooLarge(CASE_BYTES_MAX + 1)));
    for part in
        ["[", "{\"a\":", "[{a: ", "- ", "? ", "- - a: ", "&a [*a, ", "\n- ", "a: ", "]", "'"]
    {
        let deep = part.repeat(CASE_BYTES_MAX / part.len());
        assert!(error(&deep).contains("no case"), "{part}");
    }
}

#[test]
fn aliases_that_name_more_than_the_largest_value_are_refused() {
    let mut text = format!("a0: &a0 {}\n", "x".repeat(1_000));
    for level in 1..10 {
        let before = level - 1;
        let items = vec![format!("*a{before}"); 10].join(", ");
        writeln!(text, "a{level}: &a{level} [{items}]").unwrap();
    }
    let error = error(&text);
    assert!(error.contains("more than 4194304 bytes") || error.contains("repetition"), "{error}");
}

#[test]
fn scenario_has_at_most_1000_steps_and_100_faults() {
    let hang = || PlannedFault::at_write(1, Fault::Hang {});
    let most = case(vec![Step::Settle; STEPS_MAX], vec![hang(); FAULTS_MAX]);
    assert!(read(&most).is_ok());
    let steps = read(&case(vec![Step::Settle; STEPS_MAX + 1], Vec::new())).unwrap_err();
    assert_eq!(steps.to_string(), "the scenario has 1001 steps; the most are 1000");
    let faults = read(&case(Vec::new(), vec![hang(); FAULTS_MAX + 1])).unwrap_err();
    assert_eq!(faults.to_string(), "the scenario has 101 faults and incidents; the most are 100");
}

#[test]
fn waits_and_delays_together_are_at_most_7_days() {
    let day = 24 * 3_600;
    let waits = |days: u32| vec![Step::Wait(day); days as usize];
    assert!(read(&case(waits(7), Vec::new())).is_ok());
    assert!(read(&case(waits(8), Vec::new())).is_err());
    assert!(read(&case(vec![Step::Wait(u32::MAX); STEPS_MAX], Vec::new())).is_err());
    let never = u64::MAX;
    for fault in [
        Fault::DelayAnswer { milliseconds: never },
        Fault::DelayRequest { milliseconds: never },
        Fault::Watch(WatchFault::Freeze { milliseconds: never }),
        Fault::Watch(WatchFault::Lag { events: 1, milliseconds: never }),
        Fault::Watch(WatchFault::Gap { events: 1, milliseconds: never }),
        Fault::Refuse(Refusal { code: 429, retry_after_seconds: Some(u32::MAX) }),
    ] {
        let faults = vec![PlannedFault::at_write(1, fault); 3];
        let error = read(&case(waits(1), faults)).unwrap_err().to_string();
        assert!(error.contains("milliseconds of waits and delays"), "{error}");
    }
}

#[test]
fn incidents_are_bounded_in_number_time_and_clock() {
    let with = |steps: &[Incident], planned: &[Incident]| {
        let steps = steps.iter().map(|one| Step::Incident(*one)).collect();
        let mut case = case(steps, Vec::new());
        let planned = planned.iter().map(|one| PlannedIncident { write: 1, incident: *one });
        case.scenario.incidents = planned.collect();
        read(&case)
    };
    let hour = 3_600;
    assert!(with(&[Incident::Pause { seconds: hour }], &[Incident::Backup {}]).is_ok());
    for incident in [
        Incident::Pause { seconds: u32::MAX },
        Incident::CutOff { seconds: u32::MAX },
        Incident::TakeOver { seconds: u32::MAX },
        Incident::SetClock { seconds: i64::MAX },
        Incident::SetClock { seconds: i64::MIN },
    ] {
        assert!(with(&[incident; 2], &[]).is_err(), "{incident:?}");
        assert!(with(&[], &[incident; 2]).is_err(), "{incident:?}");
    }
    assert!(with(&[], &[Incident::Swap {}; FAULTS_MAX + 1]).is_err());
}

#[test]
fn crash_of_each_request_is_refused() {
    let crash = |count| PlannedFault {
        count,
        ..PlannedFault::at_write(1, Fault::Crash { point: CrashPoint::BeforeRequest })
    };
    assert!(read(&case(Vec::new(), vec![crash(6), crash(994)])).is_ok());
    assert!(read(&case(Vec::new(), vec![crash(7), crash(994)])).is_err());
    assert!(read(&case(Vec::new(), vec![crash(u32::MAX), crash(u32::MAX)])).is_err());
    let error = read(&case(Vec::new(), vec![crash(1), crash(0)])).unwrap_err().to_string();
    assert!(error.starts_with("fault 2: a host that crashes at each request"), "{error}");
}

#[test]
fn end_of_each_watch_at_once_is_refused() {
    for (fault, is_ok) in [
        (WatchFault::Close { after_events: 0 }, false),
        (WatchFault::Expire { after_events: 0 }, false),
        (WatchFault::Gap { events: 0, milliseconds: 5_000 }, false),
        (WatchFault::Gap { events: 1, milliseconds: 999 }, false),
        (WatchFault::Gap { events: 1, milliseconds: 1_000 }, true),
        (WatchFault::Expire { after_events: 1 }, true),
        (WatchFault::Freeze { milliseconds: 0 }, true),
    ] {
        let each = PlannedFault::of_watches("", Fault::Watch(fault));
        let once = PlannedFault { count: 1, ..each.clone() };
        assert_eq!(read(&case(Vec::new(), vec![each])).is_ok(), is_ok, "{fault:?}");
        assert!(read(&case(Vec::new(), vec![once])).is_ok(), "{fault:?}");
    }
}

#[test]
fn refusal_without_an_error_status_is_refused() {
    for (code, is_ok) in [(0, false), (200, false), (399, false), (400, true), (599, true)] {
        let fault = Fault::Refuse(Refusal { code, retry_after_seconds: None });
        let result = read(&case(Vec::new(), vec![PlannedFault::at_write(1, fault)]));
        assert_eq!(result.is_ok(), is_ok, "{code}: {result:?}");
    }
}

#[test]
fn step_whose_object_has_no_kind_or_name_is_refused() {
    for object in [
        json!("text"),
        json!([]),
        json!({"apiVersion": "v1", "kind": "ConfigMap"}),
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": "text"}),
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": ""}}),
        json!({"apiVersion": "v1", "metadata": {"name": "a"}}),
        json!({"apiVersion": 1, "kind": "ConfigMap", "metadata": {"name": "a"}}),
    ] {
        for step in [Step::Apply, Step::Replace, Step::Delete, Step::MergePatch, Step::Recreate] {
            let case = case(vec![Step::Settle, step(object.clone())], Vec::new());
            let error = read(&case).unwrap_err().to_string();
            assert!(error.starts_with("step 2 ("), "{object}: {error}");
        }
    }
}

#[test]
fn random_bytes_between_the_parts_of_a_case_never_panic() {
    let text = serde_json::to_string(&case(
        vec![Step::Apply(shop()), Step::Wait(1)],
        vec![PlannedFault::at_write(1, Fault::Hang {})],
    ))
    .unwrap();
    println!("seed 1");
    let mut random = fastrand::Rng::with_seed(1);
    let mut read = 0;
    for _ in 0..5_000 {
        let mut bytes = text.clone().into_bytes();
        for _ in 0..random.usize(1..4) {
            let at = random.usize(..bytes.len());
            match random.u8(..3) {
                0 => bytes[at] = random.u8(..),
                1 => drop(bytes.remove(at)),
                _ => bytes.insert(at, *random.choice(b"{}[]:,\"-&*!|>'\n 9").unwrap()),
            }
        }
        if let Ok(text) = std::str::from_utf8(&bytes)
            && let Ok(case) = Case::read(text)
        {
            read += 1;
            assert!(case.scenario.steps.len() <= STEPS_MAX);
        }
    }
    assert!(read > 0, "no change left a case");
}
