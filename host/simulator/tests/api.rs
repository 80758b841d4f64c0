//! The simulator as a client sees it.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

use bytes::Bytes;
use http::{Request, Response};
use innkeeper_simulator::{Body, Simulator};
use jiff::SignedDuration;
use serde_json::{Value, json};

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
const APPLY: &str = "application/apply-patch+yaml";

fn simulator(seed: u64) -> Simulator {
    Simulator::new(seed, "2026-11-22T00:00:00Z".parse().unwrap())
}

fn ask(
    simulator: &Simulator,
    method: &str,
    path: &str,
    kind: &str,
    body: &Value,
    user: &str,
) -> Response<Body> {
    let mut request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", kind)
        .header("user-agent", "test/1");
    if !user.is_empty() {
        request = request.header("impersonate-user", user);
    }
    let body = if body.is_null() { Bytes::new() } else { Bytes::from(body.to_string()) };
    simulator.request(request.body(body).unwrap())
}

fn json_of(response: Response<Body>) -> (u16, Value) {
    let code = response.status().as_u16();
    let text = response.into_body().try_next().unwrap();
    (code, serde_json::from_slice(&text).unwrap_or_default())
}

fn send(simulator: &Simulator, method: &str, path: &str, body: &Value) -> (u16, Value) {
    let kind = if method == "PATCH" { APPLY } else { "application/json" };
    json_of(ask(simulator, method, path, kind, body, ""))
}

fn apply(simulator: &Simulator, name: &str, manager: &str, data: &Value) -> (u16, Value) {
    let object =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data});
    send(simulator, "PATCH", &format!("{CONFIG_MAPS}/{name}?fieldManager={manager}"), &object)
}

fn lines(body: &mut Body) -> Vec<Value> {
    std::iter::from_fn(|| body.try_next())
        .map(|line| serde_json::from_slice(&line).unwrap())
        .collect()
}

/// The types and names of events.
fn summaries(events: &[Value]) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    events
        .iter()
        .map(|event| {
            format!("{} {}", text(&event["type"]), text(&event["object"]["metadata"]["name"]))
        })
        .collect()
}

#[test]
fn watch_sends_existing_objects_then_changes() {
    let simulator = simulator(1);
    apply(&simulator, "a", "m", &json!({"x": "1"}));
    let path = format!(
        "{CONFIG_MAPS}?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=120"
    );
    let mut body = ask(&simulator, "GET", &path, "", &Value::Null, "").into_body();
    let first = lines(&mut body);
    assert_eq!(summaries(&first), ["ADDED a", "BOOKMARK "]);
    assert_eq!(
        first[1]["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"], "true",
        "{first:?}"
    );
    apply(&simulator, "a", "m", &json!({"x": "2"}));
    apply(&simulator, "b", "m", &json!({}));
    send(&simulator, "DELETE", &format!("{CONFIG_MAPS}/a"), &Value::Null);
    assert_eq!(summaries(&lines(&mut body)), ["MODIFIED a", "ADDED b", "DELETED a"]);
    simulator.advance(SignedDuration::from_secs(61));
    assert_eq!(summaries(&lines(&mut body)), ["BOOKMARK "]);
    simulator.advance(SignedDuration::from_secs(60));
    apply(&simulator, "c", "m", &json!({}));
    assert!(lines(&mut body).is_empty(), "the watch ends after its time");
}

#[test]
fn watch_begins_after_its_version_and_gets_410_when_that_is_compacted() {
    let simulator = simulator(1);
    let (_, first) = apply(&simulator, "a", "m", &json!({"x": "1"}));
    apply(&simulator, "b", "m", &json!({}));
    let since = first["metadata"]["resourceVersion"].as_str().unwrap();
    let path = format!("{CONFIG_MAPS}?watch=true&resourceVersion={since}");
    let mut body = ask(&simulator, "GET", &path, "", &Value::Null, "").into_body();
    assert_eq!(summaries(&lines(&mut body)), ["ADDED b"]);
    simulator.compact();
    let mut body = ask(&simulator, "GET", &path, "", &Value::Null, "").into_body();
    let events = lines(&mut body);
    assert_eq!(events[0]["type"], "ERROR");
    assert_eq!(events[0]["object"]["code"], 410);
    // A kind without any object has no history either.
    let path = format!("/api/v1/namespaces/default/secrets?watch=true&resourceVersion={since}");
    let mut body = ask(&simulator, "GET", &path, "", &Value::Null, "").into_body();
    assert_eq!(lines(&mut body)[0]["object"]["code"], 410);
}

#[test]
fn watch_with_a_selector_sends_added_and_deleted_when_an_object_starts_and_stops_matching() {
    let simulator = simulator(1);
    let path = format!("{CONFIG_MAPS}?watch=true&labelSelector=app%3Da");
    let mut body = ask(&simulator, "GET", &path, "", &Value::Null, "").into_body();
    let labelled = |value: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "labels": {"app": value}}});
    for value in ["b", "a", "a", "b"] {
        let path = format!("{CONFIG_MAPS}/a?fieldManager=m");
        send(&simulator, "PATCH", &path, &labelled(value));
    }
    assert_eq!(summaries(&lines(&mut body)), ["ADDED a", "DELETED a"]);
}

#[test]
fn list_with_a_continue_token_returns_the_next_page() {
    let simulator = simulator(1);
    for name in ["a", "b", "c"] {
        apply(&simulator, name, "m", &json!({}));
    }
    let (_, first) = send(&simulator, "GET", &format!("{CONFIG_MAPS}?limit=2"), &Value::Null);
    assert_eq!(first["items"].as_array().unwrap().len(), 2);
    assert_eq!(first["metadata"]["remainingItemCount"], 1);
    let next = first["metadata"]["continue"].as_str().unwrap();
    let (_, rest) =
        send(&simulator, "GET", &format!("{CONFIG_MAPS}?limit=2&continue={next}"), &Value::Null);
    assert_eq!(rest["items"][0]["metadata"]["name"], "c");
    assert_eq!(rest["metadata"].get("continue"), None);
}

#[test]
fn dependents_are_deleted_as_the_propagation_policy_says() {
    let simulator = simulator(1);
    let path = |name: &str| format!("{CONFIG_MAPS}/{name}");
    for policy in ["Background", "Foreground", "Orphan"] {
        let (_, owner) = apply(&simulator, "owner", "m", &json!({}));
        let child = json!({"metadata": {"name": "child", "ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap",
            "name": "owner", "uid": owner["metadata"]["uid"], "blockOwnerDeletion": true}]}});
        assert_eq!(send(&simulator, "POST", CONFIG_MAPS, &child).0, 201);
        send(&simulator, "DELETE", &path("owner"), &json!({"propagationPolicy": policy}));
        if policy == "Foreground" {
            let (_, owner) = send(&simulator, "GET", &path("owner"), &Value::Null);
            assert_eq!(owner["metadata"]["finalizers"], json!(["foregroundDeletion"]));
        }
        simulator.settle();
        assert_eq!(send(&simulator, "GET", &path("owner"), &Value::Null).0, 404, "{policy}");
        let (code, child) = send(&simulator, "GET", &path("child"), &Value::Null);
        if policy == "Orphan" {
            assert_eq!((code, child["metadata"].get("ownerReferences")), (200, None));
            send(&simulator, "DELETE", &path("child"), &Value::Null);
        } else {
            assert_eq!(code, 404, "{policy}");
        }
    }
}

#[test]
fn deleted_namespace_deletes_its_objects_and_refuses_creates() {
    let simulator = simulator(1);
    send(&simulator, "POST", "/api/v1/namespaces", &json!({"metadata": {"name": "gone"}}));
    let inside = "/api/v1/namespaces/gone/configmaps";
    send(
        &simulator,
        "POST",
        inside,
        &json!({"metadata": {"name": "a", "finalizers": ["x.dev/a"]}}),
    );
    let (_, namespace) = send(&simulator, "DELETE", "/api/v1/namespaces/gone", &Value::Null);
    assert_eq!(namespace["status"]["phase"], "Terminating");
    let (code, refused) = send(&simulator, "POST", inside, &json!({"metadata": {"name": "b"}}));
    assert_eq!(
        (code, &refused["details"]["causes"][0]["reason"]),
        (403, &json!("NamespaceTerminating"))
    );
    simulator.settle();
    assert_eq!(send(&simulator, "GET", "/api/v1/namespaces/gone", &Value::Null).0, 200);
    let unfinal = json!([{"op": "remove", "path": "/metadata/finalizers"}]);
    let patch = ask(
        &simulator,
        "PATCH",
        &format!("{inside}/a"),
        "application/json-patch+json",
        &unfinal,
        "",
    );
    assert_eq!(patch.status(), 200);
    simulator.settle();
    assert_eq!(send(&simulator, "GET", "/api/v1/namespaces/gone", &Value::Null).0, 404);
}

#[test]
fn requests_are_allowed_by_roles_and_bindings() {
    let simulator = simulator(1);
    let jane = "system:serviceaccount:default:jane";
    let get = |name: &str| {
        json_of(ask(&simulator, "GET", &format!("{CONFIG_MAPS}/{name}"), "", &Value::Null, jane))
    };
    apply(&simulator, "a", "m", &json!({}));
    let (code, refused) = get("a");
    assert_eq!(code, 403);
    assert_eq!(
        refused["message"],
        "configmaps \"a\" is forbidden: User \"system:serviceaccount:default:jane\" cannot get resource \"configmaps\" in API group \"\" in the namespace \"default\""
    );
    let rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/default";
    let role = json!({"metadata": {"name": "r"}, "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"], "resourceNames": ["a"]}]});
    assert_eq!(send(&simulator, "POST", &format!("{rbac}/roles"), &role).0, 201);
    let binding = json!({"metadata": {"name": "b"}, "roleRef": {"kind": "Role", "name": "r"},
        "subjects": [{"kind": "ServiceAccount", "name": "jane", "namespace": "default"}]});
    assert_eq!(send(&simulator, "POST", &format!("{rbac}/rolebindings"), &binding).0, 201);
    assert_eq!((get("a").0, get("b").0), (200, 403));
    let review = json!({"spec": {"resourceAttributes": {"verb": "get", "resource": "configmaps", "namespace": "default", "name": "a"}}});
    let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let (code, answer) = json_of(ask(&simulator, "POST", path, "application/json", &review, jane));
    assert_eq!((code, &answer["status"]["allowed"]), (201, &json!(true)));
}

#[test]
fn custom_kind_is_served_and_shown_as_a_table_until_its_definition_is_deleted() {
    let simulator = simulator(1);
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.x.dev"},
        "spec": {"group": "x.dev", "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}}}},
                "additionalPrinterColumns": [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}]}]}});
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    assert_eq!(send(&simulator, "POST", path, &definition).0, 201);
    let (_, resources) = send(&simulator, "GET", "/apis/x.dev/v1", &Value::Null);
    assert_eq!(resources["resources"][0]["name"], "things");
    let things = "/apis/x.dev/v1/namespaces/default/things";
    let thing = json!({"apiVersion": "x.dev/v1", "kind": "Thing", "metadata": {"name": "a"}, "spec": {"size": 3, "odd": 1}});
    let (code, stored) = send(&simulator, "POST", things, &thing);
    assert_eq!((code, &stored["spec"]), (201, &json!({"size": 3})));
    let request = Request::builder()
        .uri(things)
        .header("accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
        .body(Bytes::new())
        .unwrap();
    let (_, table) = json_of(simulator.request(request));
    assert_eq!(table["rows"][0]["cells"], json!(["a", 3]));
    send(&simulator, "DELETE", &format!("{path}/things.x.dev"), &Value::Null);
    assert_eq!(ask(&simulator, "GET", things, "", &Value::Null, "").status(), 404);
}

/// Runs some requests and returns their log.
fn life(seed: u64) -> Vec<String> {
    let simulator = simulator(seed);
    simulator.keep_log();
    let mut watch =
        ask(&simulator, "GET", &format!("{CONFIG_MAPS}?watch=true"), "", &Value::Null, "")
            .into_body();
    for round in 0..20 {
        let manager = format!("m{}", round % 3);
        apply(&simulator, &format!("a{}", round % 5), &manager, &json!({"x": round.to_string()}));
        let made = json!({"metadata": {"generateName": "g-"}});
        send(&simulator, "POST", CONFIG_MAPS, &made);
        send(&simulator, "GET", CONFIG_MAPS, &Value::Null);
        simulator.advance(SignedDuration::from_secs(7));
    }
    send(&simulator, "DELETE", CONFIG_MAPS, &Value::Null);
    let mut log = simulator.log();
    log.extend(lines(&mut watch).iter().map(Value::to_string));
    log
}

#[test]
fn log_is_the_same_for_the_same_seed_and_differs_for_another() {
    let (one, again, other) = (life(7), life(7), life(8));
    assert!(one.len() > 100, "{} lines", one.len());
    assert_eq!(one, again);
    assert_ne!(one, other);
}

#[test]
fn timeout_that_is_no_duration_is_refused() {
    let simulator = simulator(1);
    let get = |path: &str| send(&simulator, "GET", path, &Value::Null);
    for path in ["/version", "/api/v1/namespaces/default", "/openapi/v2"] {
        let (code, status) = get(&format!("{path}?timeout=invalid"));
        assert_eq!((code, &status["reason"]), (400, &json!("BadRequest")), "{path}");
        let message =
            "invalid timeout specified in the request URL - time: invalid duration \"invalid\"";
        assert_eq!(status["message"], message, "{path}");
        for timeout in ["0s", "3m", ""] {
            assert_eq!(get(&format!("{path}?timeout={timeout}")).0, 200, "{path} {timeout}");
        }
    }
}

#[test]
fn health_check_lists_the_checks_of_a_real_server() {
    let simulator = simulator(1);
    let text = |path: &str| {
        let response = ask(&simulator, "GET", path, "", &Value::Null, "");
        let code = response.status().as_u16();
        let text = response.into_body().try_next().unwrap();
        (code, String::from_utf8(text.to_vec()).unwrap())
    };
    for endpoint in ["healthz", "livez", "readyz"] {
        assert_eq!(text(&format!("/{endpoint}")), (200, "ok".to_owned()));
        assert_eq!(text(&format!("/{endpoint}/poststarthook/crd-informer-synced")).1, "ok");
        assert_eq!(text(&format!("/{endpoint}/none")).0, 404);
        let (_, checks) = text(&format!("/{endpoint}?verbose=1"));
        assert!(checks.starts_with("[+]ping ok\n[+]log ok\n[+]etcd ok\n"), "{checks}");
        assert!(checks.ends_with(&format!("\n{endpoint} check passed\n")), "{checks}");
        assert_eq!(checks.contains("[+]informer-sync ok"), endpoint == "readyz", "{checks}");
    }
    let (_, checks) = text("/readyz?verbose&exclude=etcd&exclude=none");
    assert!(checks.contains("[+]etcd excluded: ok\n"), "{checks}");
    assert!(checks.contains("cannot be excluded: no matches for \"none\"\n"), "{checks}");
}
