use std::time::Duration;

use innkeeper_contract::Kind;
use innkeeper_core::{Manager, ObjectKey};
use serde_json::{Value, json};

use crate::scripted::{Reply, Server, resources, status};
use crate::{
    Account, ApiError, ApplyResponse, Cluster, Deleted, Force, Propagation, Revocation,
    SecretDigestKey, ServedKind, Settings,
};

const MAP: &str = "/api/v1/namespaces/n/configmaps/x";

fn maps() -> Kind {
    Kind::namespaced("v1", "ConfigMap", "configmaps")
}

fn key() -> ObjectKey {
    ObjectKey::new("n", "x")
}

fn answer(version: u64) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": {
        "namespace": "n", "name": "x", "uid": "u1", "resourceVersion": version.to_string(),
    }})
}

fn found() -> Reply {
    Reply::Json(200, answer(5))
}

async fn apply(server: &Server, guard: &Value) -> Result<ApplyResponse, ApiError> {
    let mut body = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "x" } });
    body["metadata"].as_object_mut().unwrap().extend(guard.as_object().unwrap().clone());
    let manager = Manager::primary("m", "u0");
    server.client("a").apply(&maps(), &key(), &manager, &body, Force::Yes).await
}

/// Seconds at which a request was made.
fn times(server: &Server) -> Vec<f64> {
    server.log().iter().map(|line| line.split(' ').next().unwrap().parse().unwrap()).collect()
}

#[tokio::test(start_paused = true)]
async fn read_is_repeated_until_the_server_answers() {
    let server = Server::new();
    for reply in [Reply::Refused, Reply::Broken, Reply::Busy(503, 1), Reply::Busy(429, 3)] {
        server.once(&format!("GET {MAP}"), reply);
    }
    server.always(&format!("GET {MAP}"), found());
    let object = server.client("a").get(&maps(), &key()).await.unwrap();
    assert_eq!(object.uid.as_ref(), "u1");
    let times = times(&server);
    assert_eq!(times.len(), 5);
    assert!(times[2] - times[1] < 1.0, "a short wait of our own: {times:?}");
    assert!((1.0..1.3).contains(&(times[3] - times[2])), "as the server asked: {times:?}");
    assert!((3.0..3.3).contains(&(times[4] - times[3])), "as the server asked: {times:?}");
}

#[tokio::test(start_paused = true)]
async fn read_without_a_response_ends_at_its_time_limit() {
    let server = Server::new();
    server.always(&format!("GET {MAP}"), Reply::Hang);
    let error = server.client("a").get(&maps(), &key()).await.unwrap_err();
    assert_eq!(error.to_string(), "the API server did not answer in time: no answer within 35 s");
    assert_eq!(server.log().len(), 5, "once and four repeats");
}

#[tokio::test(start_paused = true)]
async fn refused_connection_is_unavailable() {
    let server = Server::new();
    server.always(&format!("GET {MAP}"), Reply::Refused);
    server.always(&format!("PATCH {MAP}"), Reply::Refused);
    let read = server.client("a").get(&maps(), &key()).await.unwrap_err();
    assert_eq!(read.to_string(), "the API server is unavailable: connection refused");
    let write = apply(&server, &json!({ "resourceVersion": "1" })).await.unwrap_err();
    assert_eq!(write.reason(), "Unavailable", "it never arrived");
}

#[tokio::test(start_paused = true)]
async fn guarded_create_with_a_lost_response_is_not_repeated() {
    for reply in [Reply::Broken, Reply::Hang, Reply::Busy(504, 1)] {
        let server = Server::new();
        server.always(&format!("PATCH {MAP}"), reply.clone());
        let error = apply(&server, &json!({ "resourceVersion": "1" })).await.unwrap_err();
        assert_eq!(error.reason(), "OutcomeUnknown", "{reply:?}");
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
async fn apply_with_the_same_effect_twice_is_repeated() {
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
    assert_eq!(error.reason(), "OutcomeUnknown");
}

#[tokio::test(start_paused = true)]
async fn long_retry_after_is_an_error_without_a_wait() {
    let server = Server::new();
    server.always(&format!("GET {MAP}"), Reply::Busy(429, 120));
    let error = server.client("a").get(&maps(), &key()).await.unwrap_err();
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
async fn delete_is_removed_or_terminating_by_its_response() {
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
        let client = server.client("a");
        let deleted = client.delete(&maps(), &key(), "u1", Propagation::Background).await;
        let did = match deleted {
            Ok(Deleted::Removed) => "gone",
            Ok(Deleted::Terminating(_)) => "terminating",
            Err(error) => error.reason(),
        };
        assert_eq!(did, expected, "{reply:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn secret_is_read_as_digests() {
    let server = Server::new();
    let secrets = Kind::namespaced("v1", "Secret", "secrets");
    let secret =
        json!({ "metadata": { "namespace": "n", "name": "x" }, "data": { "p": "aHVudGVyMg==" } });
    server.always("GET /api/v1/namespaces/n/secrets/x", Reply::Json(200, secret));
    let object = server.client("a").get(&secrets, &key()).await.unwrap();
    let digest = crate::SecretDigestKey::new(b"k").digest(&key(), "p", "aHVudGVyMg==");
    assert!(object.text.read().contains(&digest) && !object.text.read().contains("aHVudGVyMg"));
}

#[tokio::test(start_paused = true)]
async fn missing_resource_of_a_served_group_is_not_served() {
    let server = Server::new();
    let routes = Kind::namespaced("route.openshift.io/v1", "Route", "routes");
    let client = server.client("a");
    let group = "GET /apis/route.openshift.io/v1";
    for (document, expected) in [
        (None, ServedKind::NotServed),
        (Some(json!({ "resources": [] })), ServedKind::NotServed),
        (Some(resources(&[("routes", "Route", true)])), ServedKind::AsDeclared),
    ] {
        if let Some(document) = document {
            server.always(group, Reply::Json(200, document));
        }
        tokio::time::sleep(Duration::from_secs(2)).await;
        let answer = client.discovery().check(&routes, Duration::MAX).await;
        assert_eq!(answer.unwrap(), expected);
    }
    assert_eq!(server.count("host GET /apis/route.openshift.io/v1"), 3, "the host itself asks");
}

#[tokio::test(start_paused = true)]
async fn repeated_event_is_written_once_and_then_counted() {
    use crate::events::{EVENT_DEDUP, Events, Published, Regarding};
    let server = Server::new();
    let post = "POST /apis/events.k8s.io/v1/namespaces/n/events";
    server.once(post, Reply::Json(403, status(403, "Forbidden", "no", &json!({}))));
    server.always(post, Reply::Json(201, json!({})));
    let events = Events::new(Server::env(), "host-1");
    let client = server.client("a");
    let (kind, key) = (maps(), key());
    let regarding = Regarding { kind: &kind, key: &key, uid: "u1" };
    let event = innkeeper_contract::Event {
        type_: innkeeper_contract::EventType::Warning,
        reason: "Conflict".into(),
        message: "taken".into(),
    };
    let publish = || events.publish(&client, "m", &regarding, "Reconcile", &event);
    assert_eq!(publish().await.unwrap_err().reason(), "Forbidden");
    assert_eq!(publish().await.unwrap(), Published::Written, "what failed is tried again");
    assert_eq!(publish().await.unwrap(), Published::Counted(1));
    assert_eq!(publish().await.unwrap(), Published::Counted(2));
    tokio::time::sleep(EVENT_DEDUP + Duration::from_secs(1)).await;
    assert_eq!(publish().await.unwrap(), Published::Written);
    assert_eq!(server.log().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn events_of_one_object_are_limited_to_a_burst_and_one_per_refill() {
    use crate::events::{BURST, Events, Published, REFILL, Regarding};
    let server = Server::new();
    server.always("POST /apis/events.k8s.io/v1/namespaces/n/events", Reply::Json(201, json!({})));
    let events = Events::new(Server::env(), "host-1");
    let client = server.client("a");
    let (kind, key) = (maps(), key());
    let publish = async |uid: &str, message: u32| {
        let event = innkeeper_contract::Event {
            type_: innkeeper_contract::EventType::Normal,
            reason: "Flood".into(),
            message: message.to_string(),
        };
        let regarding = Regarding { kind: &kind, key: &key, uid };
        events.publish(&client, "m", &regarding, "Reconcile", &event).await.unwrap()
    };
    for message in 0..BURST {
        assert_eq!(publish("u1", message).await, Published::Written);
    }
    assert_eq!(publish("u1", 100).await, Published::TooMany);
    assert_eq!(publish("u2", 100).await, Published::Written, "another object has its own");
    assert_eq!(publish("u1", 0).await, Published::Counted(1), "what is counted costs nothing");
    tokio::time::sleep(REFILL).await;
    assert_eq!(publish("u1", 100).await, Published::Written, "what was dropped may come later");
    assert_eq!(publish("u1", 101).await, Published::TooMany);
    tokio::time::sleep(2 * REFILL).await;
    assert_eq!(publish("u1", 101).await, Published::Written);
    assert_eq!(publish("u1", 102).await, Published::Written);
    assert_eq!(publish("u1", 103).await, Published::TooMany);
}

#[tokio::test(start_paused = true)]
async fn events_of_a_module_do_not_limit_those_of_another_and_end_with_their_object() {
    use crate::events::{BURST, Events, Published, REFILL, REMEMBERED_MAX, Regarding};
    let server = Server::new();
    server.always("POST /apis/events.k8s.io/v1/namespaces/n/events", Reply::Json(201, json!({})));
    let events = Events::new(Server::env(), "host-1");
    let client = server.client("a");
    let (kind, key) = (maps(), key());
    let publish = async |module: &str, uid: &str, message: &str| {
        let event = innkeeper_contract::Event {
            type_: innkeeper_contract::EventType::Normal,
            reason: "Flood".into(),
            message: message.into(),
        };
        let regarding = Regarding { kind: &kind, key: &key, uid };
        events.publish(&client, module, &regarding, "Reconcile", &event).await.unwrap()
    };
    for message in 0..BURST {
        publish("hostile", "u1", &message.to_string()).await;
    }
    assert_eq!(publish("hostile", "u1", "more").await, Published::TooMany);
    assert_eq!(publish("good", "u1", "more").await, Published::Written);

    // Two Events that differ only in the part that is cut off are the same.
    let long = "x".repeat(4 << 20);
    assert_eq!(publish("good", "u1", &long).await, Published::Written);
    assert_eq!(publish("good", "u1", &format!("{long}y")).await, Published::Counted(1));

    // Many Events about one object: the writer keeps the newest ones.
    for message in 0..4 * REMEMBERED_MAX {
        tokio::time::sleep(REFILL / 8).await;
        publish("hostile", "u2", &format!("late {message}")).await;
    }
    assert_eq!(events.remembered_objects(), 3);
    for object in 0..100 {
        publish("hostile", &format!("v{object}"), "once").await;
    }
    assert_eq!(events.remembered_objects(), 103);
    events.forget("hostile", "v7");
    assert_eq!(events.remembered_objects(), 102);
    events.forget_reporter("hostile");
    assert_eq!(events.remembered_objects(), 1);
    events.forget("good", "u1");
    assert_eq!(events.remembered_objects(), 0);
}

#[tokio::test(start_paused = true)]
async fn events_about_many_objects_are_forgotten_when_none_counts_any_more() {
    use crate::events::{EVENT_DEDUP, Events, Regarding};
    let server = Server::new();
    server.always("POST /apis/events.k8s.io/v1/namespaces/n/events", Reply::Json(201, json!({})));
    let events = Events::new(Server::env(), "host-1");
    let client = server.client("a");
    let (kind, key) = (maps(), key());
    let event = innkeeper_contract::Event {
        type_: innkeeper_contract::EventType::Normal,
        reason: "Flood".into(),
        message: "x".repeat(1 << 10),
    };
    for object in 0..10_000 {
        let uid = format!("u{object}");
        let regarding = Regarding { kind: &kind, key: &key, uid: &uid };
        events.publish(&client, "m", &regarding, "Reconcile", &event).await.unwrap();
        tokio::time::sleep(EVENT_DEDUP / 1_000).await;
    }
    assert!(events.remembered_objects() <= 4_096, "{}", events.remembered_objects());
}

#[tokio::test(start_paused = true)]
async fn revoked_client_sends_nothing_and_repeats_nothing() {
    let server = Server::new();
    server.once(&format!("GET {MAP}"), Reply::Busy(503, 5));
    server.always(&format!("GET {MAP}"), found());
    let revocation = Revocation::default();
    let cluster = server.cluster();
    let client = cluster.as_account_until(&Account::new("m", "a"), &revocation);
    let (maps, key) = (maps(), key());
    let (result, ()) = tokio::join!(client.get(&maps, &key), async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        revocation.revoke();
    });
    assert!(result.unwrap_err().to_string().contains("nothing is sent"));
    assert_eq!(server.log().len(), 1, "the repeat is not sent");
    assert!(client.get(&maps, &key).await.is_err());
    assert_eq!(server.log().len(), 1);
    // Another client of the account still sends.
    assert!(cluster.as_account(&Account::new("m", "a")).get(&maps, &key).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn access_review_grants_only_the_reviewed_right_without_a_denial() {
    let asked =
        json!({ "verb": "list", "version": "v1", "resource": "configmaps", "namespace": "n" });
    let with = |member: &str, value: &str| {
        let mut asked = asked.clone();
        asked[member] = value.into();
        asked
    };
    let allowed = json!({ "allowed": true });
    for (attributes, status, expected) in [
        (&asked, allowed.clone(), Some(true)),
        (&asked, json!({ "allowed": true, "evaluationError": "one of two failed" }), Some(true)),
        (&asked, json!({ "allowed": false }), Some(false)),
        (&asked, json!({ "allowed": true, "denied": true }), Some(false)),
        (&asked, json!({ "allowed": false, "evaluationError": "webhook" }), Some(false)),
        (&asked, json!({ "evaluationError": "webhook" }), None),
        (&with("resource", "secrets"), allowed.clone(), None),
        (&with("verb", "get"), allowed.clone(), None),
        (&with("namespace", ""), allowed.clone(), None),
        (&with("group", "apps"), allowed.clone(), None),
        (&with("subresource", "status"), allowed.clone(), None),
    ] {
        let server = Server::new();
        let answer = json!({ "spec": { "resourceAttributes": attributes }, "status": status });
        let review = "POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
        server.always(review, Reply::Json(201, answer.clone()));
        let granted = server.client("a").can_i("list", &maps(), "", Some("n")).await;
        assert_eq!(granted.ok(), expected, "{answer}");
    }
}

/// The `Impersonate-*` headers of what leaves, in order.
async fn impersonation(user: Option<&str>, sent: &[(&str, &str)]) -> Vec<String> {
    let (out, mut left) = tokio::sync::mpsc::unbounded_channel();
    let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
        let all = request.headers().iter();
        let found = all.filter(|(name, _)| name.as_str().starts_with("impersonate"));
        let mut found: Vec<String> =
            found.map(|(name, value)| format!("{name}: {}", value.to_str().unwrap())).collect();
        found.sort();
        let _ = out.send(found);
        std::future::ready(Ok::<_, tower::BoxError>(http::Response::new(
            http_body_util::Full::new(bytes::Bytes::from_static(b"{}")),
        )))
    });
    let cluster =
        Cluster::over(service, Server::env(), Settings::default(), SecretDigestKey::new(b"k"));
    let client = match user {
        Some(name) => cluster.as_account(&Account::new("m", name)),
        None => cluster.host(),
    };
    let mut request = http::Request::get("/api/v1/namespaces/n/configmaps/x");
    for (name, value) in sent {
        request = request.header(*name, *value);
    }
    client.send(request.body(Vec::new()).unwrap()).await.unwrap();
    left.recv().await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn request_impersonates_its_account_and_nothing_else() {
    let foreign = [
        ("Impersonate-User", "system:admin"),
        ("Impersonate-User", "jane"),
        ("Impersonate-Group", "system:masters"),
        ("Impersonate-Group", "dev"),
        ("Impersonate-Uid", "1"),
        ("Impersonate-Extra-Scopes", "all"),
    ];
    let account = ["impersonate-user: system:serviceaccount:m:a"];
    assert_eq!(impersonation(Some("a"), &[]).await, account);
    assert_eq!(impersonation(Some("a"), &foreign).await, account);
    assert_eq!(impersonation(None, &foreign).await, Vec::<String>::new());
    // A name that is invalid in a header adds no header, and impersonates a user without rights.
    let nobody = ["impersonate-user: system:serviceaccount::"];
    assert_eq!(impersonation(Some("a\r\nImpersonate-Group: system:masters"), &[]).await, nobody);
}

#[tokio::test(start_paused = true)]
async fn page_with_too_many_bytes_is_requested_with_fewer_objects() {
    let server = Server::new();
    let page = |objects: usize| {
        let one = json!({"metadata": {"name": "x"}, "data": {"a": "b".repeat(1 << 10)}});
        Reply::Json(200, json!({"metadata": {"continue": "c"}, "items": vec![one; objects]}))
    };
    let list = "GET /api/v1/namespaces/n/configmaps";
    for objects in [8, 4, 2] {
        server.once(list, page(objects));
    }
    let client = server.client("a").for_module();
    let read = client.list_raw_page(&maps(), "n", 8, 3 << 10, "").await.unwrap();
    assert_eq!((read.items.len(), read.limit, &*read.next), (2, 2, "c"));
    let limits = ["limit=8", "limit=4", "limit=2"];
    assert!(limits.iter().all(|limit| server.count(limit) == 1), "{:?}", server.log());

    server.always(list, page(1));
    let error = client.list_raw_page(&maps(), "n", 8, 1 << 10, "").await.unwrap_err();
    assert!(error.to_string().contains("one object of the kind ConfigMap has more than 1 KiB"));
}

#[tokio::test(start_paused = true)]
async fn create_and_page_of_a_mismatched_kind_send_nothing() {
    let server = Server::new();
    let client = server.client("a").for_module();
    let wrong = Kind::namespaced("v1", "Secret", "configmaps");
    let body = json!({"metadata": {"name": "x"}});
    let created = client.create(&wrong, "n", &body).await.unwrap_err();
    let listed = client.list_raw_page(&wrong, "n", 1, 1 << 20, "").await.unwrap_err();
    assert_eq!((created.reason(), listed.reason()), ("KindMismatch", "KindMismatch"));
    let reserved = client.create(&maps(), "innkeeper-system", &body).await.unwrap_err();
    assert_eq!(reserved.reason(), "Invalid");
    assert_eq!(server.count("configmaps"), 0, "{:?}", server.log());
}

#[tokio::test(start_paused = true)]
async fn module_does_not_write_the_namespace_of_the_host() {
    let server = Server::new();
    let service = {
        let server = server.clone();
        tower::service_fn(move |request| server.clone().serve(request))
    };
    let key = SecretDigestKey::new(b"k").kept_in("operators");
    let cluster = Cluster::over(service, Server::env(), Settings::default(), key);
    let client = cluster.as_account(&Account::new("m", "a")).for_module();
    let namespaces = Kind::cluster("v1", "Namespace", "namespaces");
    for (kind, key) in [
        (&namespaces, ObjectKey::new("", "operators")),
        (&namespaces, ObjectKey::new("", "innkeeper-system")),
        (&maps(), ObjectKey::new("operators", "x")),
    ] {
        let body = json!({"metadata": {"name": key.name()}});
        let manager = Manager::primary("m", "u0");
        let applied = client.apply(kind, &key, &manager, &body, Force::Yes).await.unwrap_err();
        let deleted = client.delete(kind, &key, "u", Propagation::Background).await.unwrap_err();
        assert_eq!((applied.reason(), deleted.reason()), ("Invalid", "Invalid"), "{key}");
    }
    assert!(server.log().is_empty(), "{:?}", server.log());
}
