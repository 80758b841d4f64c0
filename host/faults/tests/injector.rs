//! Faults between a client and the simulator.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use innkeeper_faults::{
    ConcurrentWrite, Connection, CrashPoint, Fault, FaultInjector, FaultPlan, LogEntry,
    PlannedFault, Refusal, WatchFault,
};
use innkeeper_simulator::Simulator;
use serde_json::{Value, json};
use tower::ServiceExt as _;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn simulator() -> Simulator {
    Simulator::new(1, "2026-01-01T00:00:00Z".parse().unwrap())
}

fn injector(faults: Vec<PlannedFault>) -> (Simulator, FaultInjector<Simulator>) {
    let simulator = simulator();
    let injector = FaultInjector::new(simulator.clone());
    injector.set_plan(FaultPlan { faults });
    (simulator, injector)
}

fn create(name: &str) -> Request<Full<Bytes>> {
    let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
    let request = Request::builder().method("POST").uri(MAPS);
    request.header("content-type", "application/json").body(body.to_string().into()).unwrap()
}

/// The code and the document of an answer; the message of the error if there is none.
async fn send(
    connection: &Connection<Simulator>,
    request: Request<Full<Bytes>>,
) -> Result<(u16, Value), String> {
    let response = connection.clone().oneshot(request).await.map_err(|error| error.to_string())?;
    let code = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    Ok((code, serde_json::from_slice(&body).unwrap()))
}

/// The names of the ConfigMaps of the cluster, without the one that every namespace has.
fn names(simulator: &Simulator) -> Vec<String> {
    let request = Request::builder().uri(MAPS).body(Bytes::new()).unwrap();
    let mut response = simulator.request(request);
    let list: Value = serde_json::from_slice(&response.body_mut().try_next().unwrap()).unwrap();
    let names = list["items"].as_array().unwrap().iter();
    names
        .map(|item| item["metadata"]["name"].as_str().unwrap().to_owned())
        .filter(|name| name != "kube-root-ca.crt")
        .collect()
}

#[tokio::test(start_paused = true)]
async fn second_write_is_refused_and_changes_nothing() {
    let refusal = Refusal { code: 429, retry_after_seconds: Some(3) };
    let (simulator, injector) = injector(vec![PlannedFault::at_write(2, Fault::Refuse(refusal))]);
    let connection = Connection::through(&injector);
    assert_eq!(send(&connection, create("a")).await.unwrap().0, 201);
    let (code, status) = send(&connection, create("b")).await.unwrap();
    assert_eq!((code, &status["reason"]), (429, &json!("TooManyRequests")));
    assert_eq!(status["details"]["retryAfterSeconds"], 3);
    assert_eq!(send(&connection, create("c")).await.unwrap().0, 201);
    assert_eq!(names(&simulator), ["a", "c"]);
    let log = injector.take_log();
    let requests = log.iter().filter_map(LogEntry::request);
    let codes: Vec<_> = requests.map(|one| (one.fault, one.code)).collect();
    assert_eq!(codes, [(None, Some(201)), (Some(0), Some(429)), (None, Some(201))]);
    assert!(injector.unused().is_empty());
}

#[tokio::test(start_paused = true)]
async fn crash_ends_the_process_before_or_after_the_write() {
    for (point, expected) in
        [(CrashPoint::BeforeRequest, vec!["b"]), (CrashPoint::BeforeAnswer, vec!["a", "b"])]
    {
        let (simulator, injector) =
            injector(vec![PlannedFault::at_write(1, Fault::Crash { point })]);
        let connection = Connection::through(&injector);
        let answer = tokio::time::timeout(Duration::from_mins(1), send(&connection, create("a")));
        assert!(answer.await.is_err(), "the process is not there any more");
        connection.crashed().await;
        let late = tokio::time::timeout(Duration::from_mins(1), send(&connection, create("c")));
        assert!(late.await.is_err(), "nor does it send anything");
        assert_eq!(send(&Connection::through(&injector), create("b")).await.unwrap().0, 201);
        assert_eq!(names(&simulator), expected, "{point:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn lost_and_late_requests_are_carried_out() {
    let (simulator, injector) = injector(vec![
        PlannedFault::at_write(1, Fault::LoseAnswer {}),
        PlannedFault::at_write(2, Fault::DelayRequest { milliseconds: 500 }),
        PlannedFault::at_write(3, Fault::Duplicate {}),
    ]);
    let connection = Connection::through(&injector);
    assert!(send(&connection, create("a")).await.is_err());
    assert_eq!(names(&simulator), ["a"]);
    assert!(send(&connection, create("b")).await.is_err());
    assert_eq!(names(&simulator), ["a"]);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(names(&simulator), ["a", "b"]);
    assert_eq!(send(&connection, create("c")).await.unwrap().0, 409, "it exists already");
}

#[tokio::test(start_paused = true)]
async fn other_client_writes_before_or_after() {
    let delete = |after_request| {
        Fault::ConcurrentWriter(ConcurrentWrite {
            after_request,
            method: "DELETE".to_owned(),
            path: format!("{MAPS}/a"),
            content_type: String::new(),
            body: Value::Null,
        })
    };
    let (simulator, injector) = injector(vec![
        PlannedFault::at_write(2, delete(false)),
        PlannedFault::at_write(3, delete(true)),
    ]);
    let connection = Connection::through(&injector);
    let codes = [
        send(&connection, create("a")).await.unwrap().0,
        send(&connection, create("a")).await.unwrap().0,
        send(&connection, create("b")).await.unwrap().0,
    ];
    assert_eq!(codes, [201, 201, 201]);
    assert_eq!(names(&simulator), ["b"]);
}

/// The types and names of the events that a watch gives in this time, and whether it has ended.
async fn events(
    connection: &Connection<Simulator>,
    simulator: &Simulator,
    time: Duration,
    writes: &[&str],
) -> (Vec<String>, bool) {
    let version = simulator.version();
    let uri = format!("{MAPS}?watch=true&resourceVersion={version}");
    let request = Request::builder().uri(uri).body(Full::<Bytes>::default()).unwrap();
    let response = connection.clone().oneshot(request).await.unwrap();
    let mut body = response.into_body();
    for name in writes {
        let request = create(name);
        assert_eq!(send(connection, request).await.unwrap().0, 201);
    }
    let end = tokio::time::Instant::now() + time;
    let mut seen = Vec::new();
    loop {
        match tokio::time::timeout_at(end, body.frame()).await {
            Err(_) => return (seen, false),
            Ok(None) => return (seen, true),
            Ok(Some(frame)) => {
                let data = frame.unwrap().into_data().unwrap();
                for line in data.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
                    let event: Value = serde_json::from_slice(line).unwrap();
                    let name = event["object"]["metadata"]["name"].as_str().unwrap_or("-");
                    seen.push(format!("{} {name}", event["type"].as_str().unwrap()));
                }
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn watch_is_behind_closed_expired_or_has_a_gap() {
    let second = Duration::from_secs(1);
    let cases: [(WatchFault, &[&str], bool); 6] = [
        (WatchFault::Lag { events: 2, milliseconds: 5_000 }, &["ADDED a"], false),
        (
            WatchFault::Lag { events: 2, milliseconds: 500 },
            &["ADDED a", "ADDED b", "ADDED c"],
            false,
        ),
        (WatchFault::Freeze { milliseconds: 2_000 }, &[], false),
        (WatchFault::Close { after_events: 2 }, &["ADDED a", "ADDED b"], true),
        (WatchFault::Expire { after_events: 1 }, &["ADDED a", "ERROR -"], true),
        (WatchFault::Gap { events: 3, milliseconds: 5_000 }, &["ERROR -"], true),
    ];
    for (fault, expected, ends) in cases {
        let (simulator, injector) =
            injector(vec![PlannedFault::of_watches("configmaps", Fault::Watch(fault))]);
        let connection = Connection::through(&injector);
        let seen = events(&connection, &simulator, second, &["a", "b", "c"]).await;
        assert_eq!(seen, (expected.iter().map(|&one| one.to_owned()).collect(), ends), "{fault}");
    }
}
