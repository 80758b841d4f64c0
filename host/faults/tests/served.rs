//! Faults at a served API: our own plans and test plans of Sieve, in virtual time.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail by it")]

use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body_util::BodyExt as _;
use innkeeper_faults::{AnswerBody, PlanFile, Restart, ServedEvents, ServedFaults};
use innkeeper_simulator::Simulator;
use serde_json::{Value, json};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const LEADING: &str = "kind-control-plane";

/// A served simulator with a plan.
struct Fixture {
    served: ServedFaults<Simulator>,
    events: ServedEvents,
}

impl Fixture {
    fn new(plan: &Value) -> Self {
        let simulator = Simulator::new(1, "2026-01-01T00:00:00Z".parse().unwrap());
        let plan = PlanFile::parse(plan.to_string().as_bytes()).unwrap();
        let (served, events) = ServedFaults::new(simulator, plan);
        Self { served, events }
    }

    async fn open(
        &self,
        server: &str,
        is_of_client: bool,
        request: Request<Bytes>,
    ) -> Result<http::Response<AnswerBody>, String> {
        self.served.call(server, is_of_client, request).await.map_err(|error| error.to_string())
    }

    /// Answers a request of the client under test at an API server.
    async fn at(&self, server: &str, request: Request<Bytes>) -> Result<(u16, Value), String> {
        let response = self.open(server, true, request).await?;
        let code = response.status().as_u16();
        let body = response.into_body().collect().await.map_err(|error| error.to_string())?;
        Ok((code, serde_json::from_slice(&body.to_bytes()).unwrap()))
    }

    async fn client(&self, request: Request<Bytes>) -> Result<(u16, Value), String> {
        self.at(LEADING, request).await
    }

    /// A request of another client, such as kubectl.
    async fn other(&self, request: Request<Bytes>) -> (u16, Value) {
        let response = self.open(LEADING, false, request).await.unwrap();
        let code = response.status().as_u16();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (code, serde_json::from_slice(&body).unwrap())
    }

    /// What `data.x` of the map is in a list of the cache of an API server, with the version of the
    /// list; nothing if the map is not there.
    async fn listed(&self, server: &str) -> (Option<String>, String) {
        let (code, list) =
            self.at(server, get(&format!("{MAPS}?resourceVersion=0"))).await.unwrap();
        assert_eq!(code, 200, "{list}");
        let items = list["items"].as_array().unwrap();
        let map = items.iter().find(|item| item["metadata"]["name"] == "a");
        let data = map.map(|map| map["data"]["x"].as_str().unwrap().to_owned());
        (data, list["metadata"]["resourceVersion"].as_str().unwrap().to_owned())
    }

    fn reports(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.events.reports.try_recv().ok()).collect()
    }
}

fn request(method: &str, path: &str, body: &Value) -> Request<Bytes> {
    let request = Request::builder().method(method).uri(path);
    let body = if body.is_null() { Bytes::new() } else { body.to_string().into() };
    request.header("content-type", "application/json").body(body).unwrap()
}

fn get(path: &str) -> Request<Bytes> {
    request("GET", path, &Value::Null)
}

fn map(x: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"x": x}})
}

fn create(x: &str) -> Request<Bytes> {
    request("POST", MAPS, &map(x))
}

fn update(x: &str) -> Request<Bytes> {
    request("PUT", &format!("{MAPS}/a"), &map(x))
}

fn delete() -> Request<Bytes> {
    request("DELETE", &format!("{MAPS}/a"), &Value::Null)
}

/// The type and `data.x` of the next event of a watch; nothing if none comes for a second.
async fn event(body: &mut AnswerBody) -> Option<(String, String)> {
    let frame = tokio::time::timeout(Duration::from_secs(1), body.frame()).await.ok()??.unwrap();
    let event: Value = serde_json::from_slice(&frame.into_data().unwrap()).unwrap();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let detail = if event["type"] == "ERROR" {
        event["object"]["code"].to_string()
    } else {
        text(&event["object"]["data"]["x"])
    };
    Some((text(&event["type"]), detail))
}

/// An event with a type and a value of `data.x`.
fn seen(type_: &str, detail: &str) -> (String, String) {
    (type_.to_owned(), detail.to_owned())
}

/// An action with one trigger about the map.
fn action(type_: &str, condition: &str, when: &str, by: &str) -> Value {
    json!({"actionType": type_, "controllerLabel": "c", "trigger": {"expression": "t", "definitions": [
        {"triggerName": "t", "observationPoint": {"when": when, "by": by}, "condition":
            {"conditionType": condition, "resourceKey": "configmap/default/a", "occurrence": 1}}]}})
}

/// The same, after a time.
fn later(type_: &str, seconds: u32) -> Value {
    json!({"actionType": type_, "trigger": {"expression": "t", "definitions": [
        {"triggerName": "t", "condition": {"conditionType": "onTimeout", "timeoutValue": seconds}}]}})
}

fn with(mut action: Value, members: &Value) -> Value {
    action.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    action
}

/// A plan that freezes a second API server at a change of the map from `x` to `y`.
fn freeze(when: &str) -> Value {
    let scope = json!({"apiServerName": "second", "pauseScope": "configmap/default/a"});
    let mut pause = with(action("pauseAPIServer", "onObjectUpdate", when, "second"), &scope);
    let condition = &mut pause["trigger"]["definitions"][0]["condition"];
    condition["prevStateDiff"] = r#"{"data": {"x": "x"}}"#.into();
    condition["curStateDiff"] = r#"{"data": {"x": "y"}}"#.into();
    json!({"workload": "w", "actions": [pause, with(later("resumeAPIServer", 20), &scope)]})
}

#[tokio::test(start_paused = true)]
async fn paused_api_server_shows_an_earlier_state_until_it_resumes() {
    let mut fixture = Fixture::new(&freeze("afterAPIServerRecv"));
    fixture.other(create("x")).await;
    fixture.other(update("y")).await;
    fixture.other(update("z")).await;
    assert_eq!(fixture.listed(LEADING).await.0.as_deref(), Some("z"));
    let (data, version) = fixture.listed("second").await;
    assert_eq!(data.as_deref(), Some("y"));
    // Given a client that watches the paused API server from its list.
    let watch = get(&format!("{MAPS}?watch=true&resourceVersion={version}"));
    let mut body = fixture.open("second", true, watch).await.unwrap().into_body();
    fixture.other(delete()).await;
    assert_eq!(event(&mut body).await, None);
    assert_eq!(fixture.listed("second").await.0.as_deref(), Some("y"));
    // A list without a version is answered by the storage.
    let (_, list) = fixture.at("second", get(MAPS)).await.unwrap();
    assert!(list["items"].as_array().unwrap().iter().all(|item| item["metadata"]["name"] != "a"));
    // When the time of the pause is over, the client gets all that it missed.
    tokio::time::advance(Duration::from_secs(20)).await;
    assert_eq!(fixture.listed("second").await.0, None);
    assert_eq!(event(&mut body).await, Some(seen("MODIFIED", "z")));
    assert_eq!(event(&mut body).await, Some(seen("DELETED", "z")));
    assert_eq!(
        fixture.reports(),
        [
            "the API server second pauses for configmap/default/a",
            "the API server second resumes for configmap/default/a",
            "all actions of the plan have happened",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn api_server_that_is_paused_before_a_change_does_not_show_it() {
    let fixture = Fixture::new(&freeze("beforeAPIServerRecv"));
    fixture.other(create("x")).await;
    let watch =
        get(&format!("{MAPS}?watch=true&resourceVersion=0&fieldSelector=metadata.name%3Da"));
    let mut body = fixture.open("second", true, watch).await.unwrap().into_body();
    assert_eq!(event(&mut body).await, Some(seen("ADDED", "x")));
    fixture.other(update("y")).await;
    assert_eq!(event(&mut body).await, None, "an open watch is paused too");
    let (data, version) = fixture.listed("second").await;
    assert_eq!(data.as_deref(), Some("x"));
    let newer = get(&format!("{MAPS}?resourceVersion={}", version.parse::<u64>().unwrap() + 1));
    assert_eq!(fixture.at("second", newer).await.unwrap().0, 504);
    tokio::time::advance(Duration::from_secs(20)).await;
    assert_eq!(event(&mut body).await, Some(seen("MODIFIED", "y")));
}

#[tokio::test(start_paused = true)]
async fn client_restarts_after_its_write_and_other_writes_do_not_restart_it() {
    let plan = json!({"actions": [action("restartController", "onObjectDelete", "afterControllerWrite", "R")]});
    let mut fixture = Fixture::new(&plan);
    fixture.other(create("x")).await;
    fixture.other(delete()).await;
    fixture.client(create("x")).await.unwrap();
    let watch = get(&format!("{MAPS}?watch=true"));
    let mut body = fixture.open(LEADING, true, watch).await.unwrap().into_body();
    assert!(fixture.events.restarts.try_recv().is_err());
    // The API server carries the write out; the client does not get the answer.
    fixture.client(delete()).await.unwrap_err();
    let restart = Restart { api_server: LEADING.to_owned() };
    assert_eq!(fixture.events.restarts.try_recv(), Ok(restart));
    assert_eq!(fixture.other(get(&format!("{MAPS}/a"))).await.0, 404);
    // Until it is started again, nothing reaches the API server, and its watches are broken.
    fixture.client(create("y")).await.unwrap_err();
    assert_eq!(fixture.other(get(&format!("{MAPS}/a"))).await.0, 404);
    while let Some(frame) = body.frame().await {
        if frame.is_err() {
            break;
        }
    }
    fixture.served.client_started(LEADING);
    assert_eq!(fixture.client(create("y")).await.unwrap().0, 201);
}

#[tokio::test(start_paused = true)]
async fn client_that_is_paused_before_reads_sees_only_the_last_state() {
    let scope = json!({"pauseAt": "beforeControllerRead", "pauseScope": "configmap/default/a"});
    let pause = action("pauseController", "onObjectUpdate", "beforeControllerRecv", "informer");
    let when = "afterControllerRecv";
    let mut resume = action("resumeController", "onAnyFieldModification", when, "informer");
    resume["trigger"]["definitions"][0]["condition"]["prevStateDiff"] =
        r#"{"data": {"x": "3"}}"#.into();
    let plan = json!({"actions": [with(pause, &scope), with(resume, &scope)]});
    let fixture = Fixture::new(&plan);
    fixture.other(create("1")).await;
    let watch =
        get(&format!("{MAPS}?watch=true&resourceVersion=0&fieldSelector=metadata.name%3Da"));
    let mut body = fixture.open(LEADING, true, watch).await.unwrap().into_body();
    assert_eq!(event(&mut body).await, Some(seen("ADDED", "1")));
    fixture.other(update("3")).await;
    assert_eq!(event(&mut body).await, None);
    let list = fixture.client(get(MAPS));
    tokio::time::timeout(Duration::from_mins(1), list).await.unwrap_err();
    // The next change ends the pause: the client has to list again, and never saw `3`.
    fixture.other(update("2")).await;
    assert_eq!(event(&mut body).await, Some(seen("ERROR", "410")));
    assert!(body.frame().await.is_none());
    assert_eq!(fixture.listed(LEADING).await.0.as_deref(), Some("2"));
}

#[tokio::test(start_paused = true)]
async fn answer_of_a_paused_write_comes_when_the_client_resumes() {
    let scope = json!({"pauseAt": "afterControllerWrite", "pauseScope": "configmap/default/a"});
    let pause = action("pauseController", "onObjectCreate", "afterControllerWrite", "R");
    let plan =
        json!({"actions": [with(pause, &scope), with(later("resumeController", 3), &scope)]});
    let fixture = Fixture::new(&plan);
    let served = fixture.served.clone();
    let running =
        tokio::spawn(async move { served.run().await.map_err(|error| error.to_string()) });
    let begun = tokio::time::Instant::now();
    assert_eq!(fixture.client(create("x")).await.unwrap().0, 201);
    let waited = begun.elapsed();
    assert!((3000..3100).contains(&waited.as_millis()), "{waited:?}");
    running.abort();
}

#[tokio::test(start_paused = true)]
async fn client_reconnects_to_the_api_server_that_the_plan_names() {
    let reconnect = action("reconnectController", "onObjectCreate", "afterAPIServerRecv", LEADING);
    let plan = json!({"actions": [
        with(reconnect, &json!({"reconnectAPIServer": "second", "async": true, "waitBefore": 10})),
        with(later("restartController", 5), &json!({})),
    ]});
    let mut fixture = Fixture::new(&plan);
    fixture.other(create("x")).await;
    let served = fixture.served.clone();
    let running =
        tokio::spawn(async move { served.run().await.map_err(|error| error.to_string()) });
    let begun = tokio::time::Instant::now();
    let restart = Restart { api_server: "second".to_owned() };
    assert_eq!(fixture.events.restarts.recv().await, Some(restart.clone()));
    assert!((10_000..10_100).contains(&begun.elapsed().as_millis()), "{:?}", begun.elapsed());
    fixture.served.client_started("second");
    // A restart keeps the API server.
    assert_eq!(fixture.events.restarts.recv().await, Some(restart));
    running.abort();
}

#[tokio::test(start_paused = true)]
async fn faults_of_our_own_plan_affect_the_client_under_test_only() {
    let plan = json!({"faults": [
        {"fault": {"refuse": {"code": 409}}},
        {"from": 2, "fault": {"crash": {"point": "beforeAnswer"}}},
    ]});
    let mut fixture = Fixture::new(&plan);
    assert_eq!(fixture.other(create("x")).await.0, 201);
    assert_eq!(fixture.client(update("y")).await.unwrap().0, 409);
    // Several requests end with the crash, which starts the client once.
    let (first, second) =
        tokio::join!(fixture.client(update("z")), fixture.client(get("/api/v1/pods?watch=true")));
    first.unwrap_err();
    second.unwrap_err();
    let restart = Restart { api_server: LEADING.to_owned() };
    assert_eq!(fixture.events.restarts.try_recv(), Ok(restart));
    assert!(fixture.events.restarts.try_recv().is_err());
    assert_eq!(fixture.listed_by_others().await, "z");
    fixture.served.client_started(LEADING);
    assert_eq!(fixture.client(update("w")).await.unwrap().0, 200);
    assert_eq!(
        fixture.reports(),
        [
            "update configmaps default/a: the API server answers 409 Conflict",
            "update configmaps default/a: the client crashes after it, before the answer",
        ]
    );
}

impl Fixture {
    async fn listed_by_others(&self) -> String {
        let (_, map) = self.other(get(&format!("{MAPS}/a"))).await;
        map["data"]["x"].as_str().unwrap().to_owned()
    }
}

#[tokio::test(start_paused = true)]
async fn watch_whose_waiting_events_are_too_large_ends_with_410() {
    let plan = json!({"faults": [{"requests": {"verbs": ["watch"]}, "count": 0,
        "fault": {"watch": {"freeze": {"milliseconds": 3_600_000}}}}]});
    let fixture = Fixture::new(&plan);
    let watch =
        get(&format!("{MAPS}?watch=true&resourceVersion=0&fieldSelector=metadata.name%3Da"));
    let mut body = fixture.open(LEADING, true, watch).await.unwrap().into_body();
    let large = |index: usize| format!("{index}{}", "x".repeat(900_000));
    fixture.other(create(&large(0))).await;
    for index in 1..9 {
        fixture.other(update(&large(index))).await;
        assert_eq!(event(&mut body).await, None, "{index}");
    }
    fixture.other(update(&large(9))).await;
    assert_eq!(event(&mut body).await, Some(seen("ERROR", "410")));
    assert!(body.frame().await.is_none());
}
