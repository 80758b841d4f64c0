use std::time::Duration;

use innkeeper_contract::Kind;
use innkeeper_core::{Key, Manager};
use serde_json::{Value, json};

use crate::scripted::{Reply, Server, resources, status};
use crate::{ApiError, Applied, Deleted, Force, Propagation, Served};

const MAP: &str = "/api/v1/namespaces/n/configmaps/x";

fn maps() -> Kind {
    Kind::namespaced("v1", "ConfigMap", "configmaps")
}

fn key() -> Key {
    Key::new("n", "x")
}

fn answer(version: u64) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": {
        "namespace": "n", "name": "x", "uid": "u1", "resourceVersion": version.to_string(),
    }})
}

fn found() -> Reply {
    Reply::Json(200, answer(5))
}

async fn apply(server: &Server, guard: &Value) -> Result<Applied, ApiError> {
    let mut body = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "x" } });
    body["metadata"].as_object_mut().unwrap().extend(guard.as_object().unwrap().clone());
    let manager = Manager::primary("m", "u0");
    server.session("a").apply(&maps(), &key(), &manager, &body, Force::Yes).await
}

/// Seconds at which a request was made.
fn times(server: &Server) -> Vec<f64> {
    server.log().iter().map(|line| line.split(' ').next().unwrap().parse().unwrap()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_read_is_repeated_until_it_is_answered() {
    let server = Server::new();
    for reply in [Reply::Refused, Reply::Broken, Reply::Busy(503, 1), Reply::Busy(429, 3)] {
        server.once(&format!("GET {MAP}"), reply);
    }
    server.always(&format!("GET {MAP}"), found());
    let object = server.session("a").get(&maps(), &key()).await.unwrap();
    assert_eq!(object.uid.as_ref(), "u1");
    let times = times(&server);
    assert_eq!(times.len(), 5);
    assert!(times[2] - times[1] < 1.0, "a short wait of our own: {times:?}");
    assert!((1.0..1.3).contains(&(times[3] - times[2])), "as the server asked: {times:?}");
    assert!((3.0..3.3).contains(&(times[4] - times[3])), "as the server asked: {times:?}");
}

#[tokio::test(start_paused = true)]
async fn a_read_that_is_not_answered_ends_in_time() {
    let server = Server::new();
    server.always(&format!("GET {MAP}"), Reply::Hang);
    let error = server.session("a").get(&maps(), &key()).await.unwrap_err();
    assert_eq!(error.to_string(), "the API server did not answer in time: no answer within 35 s");
    assert_eq!(server.log().len(), 5, "once and four repeats");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_gone_is_unavailable() {
    let server = Server::new();
    server.always(&format!("GET {MAP}"), Reply::Refused);
    server.always(&format!("PATCH {MAP}"), Reply::Refused);
    let read = server.session("a").get(&maps(), &key()).await.unwrap_err();
    assert_eq!(read.to_string(), "the API server is unavailable: connection refused");
    let write = apply(&server, &json!({ "resourceVersion": "1" })).await.unwrap_err();
    assert_eq!(write.reason(), "Unavailable", "it never arrived");
}

#[tokio::test(start_paused = true)]
async fn a_guarded_create_whose_answer_is_lost_is_not_repeated() {
    for reply in [Reply::Broken, Reply::Hang, Reply::Busy(504, 1)] {
        let server = Server::new();
        server.always(&format!("PATCH {MAP}"), reply.clone());
        let error = apply(&server, &json!({ "resourceVersion": "1" })).await.unwrap_err();
        assert_eq!(error.reason(), "Lost", "{reply:?}");
        assert!(error.makes_unknown() && error.is_transient());
        assert_eq!(server.log().len(), 1, "{reply:?}");
    }
    // What the server did not do may be done again.
    let server = Server::new();
    server.once(&format!("PATCH {MAP}"), Reply::Busy(429, 1));
    server.once(&format!("PATCH {MAP}"), Reply::Refused);
    server.always(&format!("PATCH {MAP}"), Reply::Json(201, answer(9)));
    let applied = apply(&server, &json!({ "resourceVersion": "1" })).await.unwrap();
    assert!(applied.created);
}

#[tokio::test(start_paused = true)]
async fn an_apply_that_does_the_same_twice_is_repeated() {
    let server = Server::new();
    server.once(&format!("PATCH {MAP}"), Reply::Broken);
    server.once(&format!("PATCH {MAP}"), Reply::Hang);
    server.always(&format!("PATCH {MAP}"), Reply::Json(200, answer(9)));
    let applied = apply(&server, &json!({ "uid": "u1" })).await.unwrap();
    assert!(!applied.created);
    assert_eq!(applied.object.version(), 9);
    assert_eq!(
        server.log()[0],
        "0.0 a PATCH /api/v1/namespaces/n/configmaps/x?fieldManager=innkeeper%2Fm%2Fu0&force=true&fieldValidation=Strict"
    );

    // Unless no attempt is answered: then it may have been done.
    let server = Server::new();
    server.once(&format!("PATCH {MAP}"), Reply::Broken);
    server.always(&format!("PATCH {MAP}"), Reply::Refused);
    let error = apply(&server, &json!({ "uid": "u1" })).await.unwrap_err();
    assert_eq!(error.reason(), "Lost");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_asks_for_a_long_wait_is_not_waited_for() {
    let server = Server::new();
    server.always(&format!("GET {MAP}"), Reply::Busy(429, 120));
    let error = server.session("a").get(&maps(), &key()).await.unwrap_err();
    assert_eq!(error.reason(), "TooManyRequests");
    assert_eq!(server.log().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn requests_are_counted_by_method_and_status() {
    let server = Server::new();
    server.once(&format!("GET {MAP}"), Reply::Broken);
    server.once(&format!("GET {MAP}"), Reply::Busy(503, 1));
    server.always(&format!("GET {MAP}"), found());
    let cluster = server.cluster();
    cluster.host().get(&maps(), &key()).await.unwrap();
    let counted: Vec<_> = cluster.requests().into_iter().collect();
    assert_eq!(
        counted,
        [(("GET".into(), 0), 1), (("GET".into(), 200), 1), (("GET".into(), 503), 1)]
    );
}

#[tokio::test(start_paused = true)]
async fn what_a_delete_did_is_told_apart() {
    let path = format!("DELETE {MAP}");
    let mut terminating = answer(9);
    terminating["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    let details = json!({ "name": "x", "kind": "configmaps" });
    for (reply, expected) in [
        (Reply::Json(200, json!({ "kind": "Status", "status": "Success" })), "gone"),
        (Reply::Json(200, answer(9)), "gone"),
        (Reply::Json(200, terminating), "terminating"),
        (Reply::Json(404, status(404, "NotFound", "x", &details)), "gone"),
        (Reply::Json(409, status(409, "Conflict", "x", &details)), "UidMismatch"),
    ] {
        let server = Server::new();
        server.always(&path, reply.clone());
        let session = server.session("a");
        let deleted = session.delete(&maps(), &key(), "u1", Propagation::Background).await;
        let did = match deleted {
            Ok(Deleted::Gone) => "gone",
            Ok(Deleted::Terminating(_)) => "terminating",
            Err(error) => error.reason(),
        };
        assert_eq!(did, expected, "{reply:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_secret_is_read_as_digests() {
    let server = Server::new();
    let secrets = Kind::namespaced("v1", "Secret", "secrets");
    let secret =
        json!({ "metadata": { "namespace": "n", "name": "x" }, "data": { "p": "aHVudGVyMg==" } });
    server.always("GET /api/v1/namespaces/n/secrets/x", Reply::Json(200, secret));
    let object = server.session("a").get(&secrets, &key()).await.unwrap();
    let digest = crate::SecretKey::new(b"k").digest(&key(), "p", "aHVudGVyMg==");
    assert!(object.text.contains(&digest) && !object.text.contains("aHVudGVyMg"));
}

#[tokio::test(start_paused = true)]
async fn whether_a_kind_is_served_is_asked_of_its_group() {
    let server = Server::new();
    let routes = Kind::namespaced("route.openshift.io/v1", "Route", "routes");
    let session = server.session("a");
    let group = "GET /apis/route.openshift.io/v1";
    for (document, expected) in [
        (None, Served::Not),
        (Some(json!({ "resources": [] })), Served::Not),
        (Some(resources(&[("routes", "Route", true)])), Served::AsDeclared),
    ] {
        if let Some(document) = document {
            server.always(group, Reply::Json(200, document));
        }
        tokio::time::sleep(Duration::from_secs(2)).await;
        let answer = session.discovery().served(&routes, Duration::MAX).await;
        assert_eq!(answer.unwrap(), expected);
    }
    assert_eq!(server.count("host GET /apis/route.openshift.io/v1"), 3, "the host itself asks");
}

#[tokio::test(start_paused = true)]
async fn an_event_is_written_once_and_counted_after_that() {
    use crate::events::{Events, Published, QUIET, Regarding};
    let server = Server::new();
    let post = "POST /apis/events.k8s.io/v1/namespaces/n/events";
    server.once(post, Reply::Json(403, status(403, "Forbidden", "no", &json!({}))));
    server.always(post, Reply::Json(201, json!({})));
    let events = Events::new(Server::env(), "host-1");
    let session = server.session("a");
    let (kind, key) = (maps(), key());
    let regarding = Regarding { kind: &kind, key: &key, uid: "u1" };
    let event = innkeeper_contract::Event {
        type_: innkeeper_contract::EventType::Warning,
        reason: "Conflict".into(),
        message: "taken".into(),
    };
    let publish = || events.publish(&session, &regarding, "Reconcile", &event);
    assert_eq!(publish().await.unwrap_err().reason(), "Forbidden");
    assert_eq!(publish().await.unwrap(), Published::Written, "what failed is tried again");
    assert_eq!(publish().await.unwrap(), Published::Counted(1));
    assert_eq!(publish().await.unwrap(), Published::Counted(2));
    tokio::time::sleep(QUIET + Duration::from_secs(1)).await;
    assert_eq!(publish().await.unwrap(), Published::Written);
    assert_eq!(server.log().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn one_object_has_so_many_events_at_once_and_then_one_each_five_minutes() {
    use crate::events::{AT_ONCE_MAX, Events, Published, Regarding, SPARE};
    let server = Server::new();
    server.always("POST /apis/events.k8s.io/v1/namespaces/n/events", Reply::Json(201, json!({})));
    let events = Events::new(Server::env(), "host-1");
    let session = server.session("a");
    let (kind, key) = (maps(), key());
    let publish = async |uid: &str, message: u32| {
        let event = innkeeper_contract::Event {
            type_: innkeeper_contract::EventType::Normal,
            reason: "Flood".into(),
            message: message.to_string(),
        };
        let regarding = Regarding { kind: &kind, key: &key, uid };
        events.publish(&session, &regarding, "Reconcile", &event).await.unwrap()
    };
    for message in 0..AT_ONCE_MAX {
        assert_eq!(publish("u1", message).await, Published::Written);
    }
    assert_eq!(publish("u1", 100).await, Published::TooMany);
    assert_eq!(publish("u2", 100).await, Published::Written, "another object has its own");
    assert_eq!(publish("u1", 0).await, Published::Counted(1), "what is counted costs nothing");
    tokio::time::sleep(SPARE).await;
    assert_eq!(publish("u1", 100).await, Published::Written, "what was dropped may come later");
    assert_eq!(publish("u1", 101).await, Published::TooMany);
    tokio::time::sleep(2 * SPARE).await;
    assert_eq!(publish("u1", 101).await, Published::Written);
    assert_eq!(publish("u1", 102).await, Published::Written);
    assert_eq!(publish("u1", 103).await, Published::TooMany);
}
