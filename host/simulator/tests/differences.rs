//! Where the simulator knowingly differs from a real API server: docs/simulator.md has the reasons.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

use bytes::Bytes;
use http::Request;
use innkeeper_simulator::{Controllers, Simulator};
use serde_json::{Value, json};

const CORE: &str = "/api/v1/namespaces/default";
const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

fn simulator() -> Simulator {
    Simulator::new(1, "2026-11-22T00:00:00Z".parse().unwrap())
}

fn send(simulator: &Simulator, method: &str, path: &str, kind: &str, body: &Value) -> (u16, Value) {
    let body = if body.is_null() { Bytes::new() } else { Bytes::from(body.to_string()) };
    let request =
        Request::builder().method(method).uri(path).header("content-type", kind).body(body);
    let response = simulator.request(request.unwrap());
    let code = response.status().as_u16();
    let text = response.into_body().try_next().unwrap();
    (code, serde_json::from_slice(&text).unwrap())
}

fn post(simulator: &Simulator, path: &str, body: &Value) -> (u16, Value) {
    send(simulator, "POST", path, "application/json", body)
}

/// Defines a kind whose spec has this schema.
fn define(simulator: &Simulator, spec: &Value) {
    let schema = json!({"type": "object", "properties": {"spec": spec}});
    let definition = json!({"metadata": {"name": "things.x.dev"},
        "spec": {"group": "x.dev", "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]}});
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let (code, answer) = post(simulator, definitions, &definition);
    assert_eq!(code, 201, "{answer}");
}

fn thing(size: i64) -> Value {
    json!({"apiVersion": "x.dev/v1", "kind": "Thing", "metadata": {"name": "a"}, "spec": {"size": size}})
}

const THINGS: &str = "/apis/x.dev/v1/namespaces/default/things";

#[test]
fn unknown_rule_of_a_built_in_kind_is_not_enforced() {
    // A real server warns of it.
    let twice = json!([{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]);
    let pod = json!({"metadata": {"name": "a"}, "spec": {"containers": [{"name": "a", "image": "x:1", "env": twice}]}});
    let request = Request::builder().method("POST").uri(format!("{CORE}/pods"));
    let request = request.header("content-type", "application/json");
    let response = simulator().request(request.body(Bytes::from(pod.to_string())).unwrap());
    assert_eq!((response.status().as_u16(), response.headers().get("warning")), (201, None));
    let template =
        json!({"spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": "x:1"}]}});
    let job = json!({"metadata": {"name": "a"}, "spec": {"schedule": "@hourly", "timeZone": "Nowhere/Town", "jobTemplate": {"spec": {"template": template}}}});
    let (code, _) = post(&simulator(), "/apis/batch/v1/namespaces/default/cronjobs", &job);
    assert_eq!(code, 201, "a real server knows no such time zone");
}

#[test]
fn value_of_a_wrong_type_is_refused_in_other_words_than_those_of_go() {
    let (code, answer) = post(
        &simulator(),
        &format!("{CORE}/configmaps"),
        &json!({"metadata": {"name": "a"}, "data": 7}),
    );
    assert_eq!((code, answer["reason"].as_str().unwrap()), (400, "BadRequest"));
    assert!(answer["message"].as_str().unwrap().contains("json: cannot unmarshal"), "{answer}");
}

#[test]
fn apply_with_several_mistakes_reports_all_of_them() {
    let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": 7, "odd": 1});
    let path = format!("{CORE}/configmaps/a?fieldManager=m");
    let (code, answer) = send(&simulator(), "PATCH", &path, "application/apply-patch+yaml", &body);
    let message = answer["message"].as_str().unwrap();
    assert_eq!(code, 500);
    assert!(
        message.contains(".data: expected map") && message.contains(".odd: field not declared"),
        "{message}"
    );
}

#[test]
fn empty_list_of_rules_keeps_the_generation_of_a_network_policy() {
    let simulator = simulator();
    let policies = "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies";
    post(&simulator, policies, &json!({"metadata": {"name": "a"}, "spec": {"podSelector": {}}}));
    let change = json!({"spec": {"ingress": []}});
    let one = format!("{policies}/a?fieldManager=m");
    let (_, same) = send(&simulator, "PATCH", &one, "application/merge-patch+json", &change);
    assert_eq!(same["metadata"]["generation"], 1, "a real server counts it, each time");
}

#[test]
fn dry_run_of_a_delete_that_removes_the_last_finalizer_returns_an_empty_object() {
    let simulator = simulator();
    let made = json!({"metadata": {"name": "a", "finalizers": ["foregroundDeletion"]}});
    post(&simulator, &format!("{CORE}/configmaps"), &made);
    let options = json!({"dryRun": ["All"], "propagationPolicy": "Background"});
    let path = format!("{CORE}/configmaps/a");
    let (code, answer) = send(&simulator, "DELETE", &path, "application/json", &options);
    assert_eq!((code, &answer["metadata"]), (200, &json!({})));
    // A real server's has `replicas: 0` and `selector: null` in its spec.
    let path = "/apis/apps/v1/namespaces/default/statefulsets?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let (code, bookmark) = send(&simulator, "GET", path, "", &Value::Null);
    assert_eq!((code, &bookmark["type"]), (200, &json!("BOOKMARK")));
    assert!(bookmark["object"]["spec"].get("replicas").is_none(), "{bookmark}");
}

#[test]
fn addresses_are_the_same_in_each_run() {
    let service = json!({"metadata": {"name": "a"}, "spec": {"ports": [{"port": 80}]}});
    let address =
        || post(&simulator(), &format!("{CORE}/services"), &service).1["spec"]["clusterIP"].clone();
    assert_eq!(address(), address());
}

#[test]
fn pod_gets_no_volume_of_its_service_account() {
    let pod =
        json!({"metadata": {"name": "a"}, "spec": {"containers": [{"name": "a", "image": "x:1"}]}});
    let (code, pod) = post(&simulator(), &format!("{CORE}/pods"), &pod);
    assert_eq!((code, pod["spec"].get("volumes")), (201, None));
    let account = format!("{CORE}/serviceaccounts/default");
    let (code, _) = send(&simulator(), "GET", &account, "", &Value::Null);
    assert_eq!(code, 404, "a real cluster has one in each namespace");
}

#[test]
fn cel_rule_that_does_not_parse_is_reported_with_the_first_object() {
    let simulator = simulator();
    let rules = json!([{"rule": "self.size >"}]);
    define(
        &simulator,
        &json!({"type": "object", "properties": {"size": {"type": "integer"}}, "x-kubernetes-validations": rules}),
    );
    let (code, answer) = post(&simulator, THINGS, &thing(1));
    assert_eq!(code, 422, "{answer}");
    assert!(answer["message"].as_str().unwrap().contains("the rule cannot be read"), "{answer}");
}

#[test]
fn hostile_cel_rule_fails_without_harm_to_the_simulator() {
    let all = "lists.range(1000).all(x, ".repeat(4) + "true" + &")".repeat(4);
    for rule in ["Foo{}", "Foo{a: 1}.a == 1", &all, &("1".to_owned() + &"+1".repeat(8_000))] {
        let simulator = simulator();
        let rules = json!([{"rule": rule}]);
        define(&simulator, &json!({"type": "object", "x-kubernetes-validations": rules}));
        let (code, answer) = post(&simulator, THINGS, &thing(1));
        assert_eq!(code, 422, "{answer}");
        assert_eq!(send(&simulator, "GET", THINGS, "", &Value::Null).0, 200, "{rule}");
    }
}

#[test]
fn controllers_run_when_time_advances_and_not_before() {
    let simulator = simulator();
    let owner = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "gone", "uid": "11111111-1111-4111-8111-111111111111"});
    post(
        &simulator,
        &format!("{CORE}/configmaps"),
        &json!({"metadata": {"name": "a", "ownerReferences": [owner]}}),
    );
    let path = format!("{CORE}/configmaps/a");
    assert_eq!(send(&simulator, "GET", &path, "", &Value::Null).0, 200);
    simulator.settle();
    assert_eq!(send(&simulator, "GET", &path, "", &Value::Null).0, 404);
}

#[test]
fn cluster_starts_without_roles() {
    let (_, roles) = send(&simulator(), "GET", &format!("{RBAC}/clusterroles"), "", &Value::Null);
    assert_eq!(roles["items"], json!([]));
}

#[test]
fn dependents_of_an_object_with_a_finalizer_are_deleted_in_the_foreground() {
    let all = Controllers { garbage_collector: true, ..Controllers::default() };
    let simulator = Simulator::with(1, "2026-11-22T00:00:00Z".parse().unwrap(), all);
    let maps = format!("{CORE}/configmaps");
    let held = json!({"metadata": {"name": "a", "finalizers": ["x.dev/a"]}});
    let (_, held) = post(&simulator, &maps, &held);
    let owner = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": held["metadata"]["uid"]});
    post(&simulator, &maps, &json!({"metadata": {"name": "b", "ownerReferences": [owner]}}));
    for policy in ["Background", "Foreground"] {
        let options = json!({ "propagationPolicy": policy });
        send(&simulator, "DELETE", &format!("{maps}/a"), "application/json", &options);
        simulator.settle();
    }
    let (code, _) = send(&simulator, "GET", &format!("{maps}/b"), "", &Value::Null);
    assert_eq!(code, 404, "a real collector leaves it after the second delete");
}

#[test]
fn response_is_never_protobuf() {
    let simulator = simulator();
    let only = |accept: &str| {
        let request = Request::get("/api/v1/namespaces").header("accept", accept);
        simulator.request(request.body(Bytes::new()).unwrap()).status().as_u16()
    };
    assert_eq!(only("application/vnd.kubernetes.protobuf"), 406);
    assert_eq!(only("application/vnd.kubernetes.protobuf,application/json"), 200);
}

#[test]
fn last_value_of_a_field_that_a_body_has_twice_replaces_the_others() {
    let simulator = simulator();
    let body = r#"{"metadata": {"name": "a", "labels": {"a": "1"}}, "data": {"x": "1"},
        "metadata": {"name": "b"}, "data": {"y": "2"}}"#;
    let request = Request::post(format!("{CORE}/configmaps"));
    let request = request.header("content-type", "application/json");
    let response = simulator.request(request.body(Bytes::from(body)).unwrap());
    assert_eq!(
        (response.status(), response.headers().get_all("warning").iter().count()),
        (201.try_into().unwrap(), 2)
    );
    let made = send(&simulator, "GET", &format!("{CORE}/configmaps/b"), "", &Value::Null).1;
    // A real server also has the label, and both data.
    assert_eq!((made["metadata"].get("labels"), &made["data"]), (None, &json!({"y": "2"})));
}

#[test]
fn policy_whose_expression_has_a_wrong_type_gets_no_status() {
    let simulator = Simulator::with(1, "2026-11-22T00:00:00Z".parse().unwrap(), Controllers::all());
    let path = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";
    let rules = json!([{"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE"],
        "resources": ["deployments"]}]);
    let spec = json!({"matchConstraints": {"resourceRules": rules},
        "validations": [{"expression": "object.spec.replicas > '1'"}]});
    let (code, policy) = post(&simulator, path, &json!({"metadata": {"name": "a"}, "spec": spec}));
    assert_eq!(code, 201, "{policy}");
    simulator.advance(jiff::SignedDuration::from_secs(60));
    let (_, policy) = send(&simulator, "GET", &format!("{path}/a"), "", &Value::Null);
    // A real one warns in `typeChecking` that no operator compares these.
    assert_eq!(policy["status"], json!({}), "{policy}");
}

#[test]
fn kinds_of_administrators_are_only_stored() {
    let simulator = Simulator::with(1, "2026-11-22T00:00:00Z".parse().unwrap(), Controllers::all());
    for path in [
        "apiregistration.k8s.io/v1/apiservices",
        "flowcontrol.apiserver.k8s.io/v1/flowschemas",
        "scheduling.k8s.io/v1/priorityclasses",
    ] {
        let (_, list) = send(&simulator, "GET", &format!("/apis/{path}"), "", &Value::Null);
        assert_eq!(list["items"], json!([]), "a real server has some from the start");
    }
    let request = Request::get("/api/v1/namespaces").body(Bytes::new()).unwrap();
    let response = simulator.request(request);
    let class = response.headers().get("x-kubernetes-pf-flowschema-uid");
    assert_eq!(class, None, "a real server says which flow schema a request belongs to");
    let requests = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
    let spec = json!({"request": "YQ==", "signerName": "kubernetes.io/kube-apiserver-client",
        "usages": ["client auth"]});
    let request = json!({"metadata": {"name": "a"}, "spec": spec});
    assert_eq!(post(&simulator, requests, &request).0, 201, "a real server wants a request");
}

#[test]
fn new_namespace_has_no_service_account_and_no_certificates() {
    let simulator = simulator();
    post(&simulator, "/api/v1/namespaces", &json!({"metadata": {"name": "new"}}));
    simulator.settle();
    for path in ["serviceaccounts/default", "configmaps/kube-root-ca.crt"] {
        let path = format!("/api/v1/namespaces/new/{path}");
        assert_eq!(send(&simulator, "GET", &path, "", &Value::Null).0, 404, "{path}");
    }
}

#[test]
fn container_log_is_empty_and_connections_are_refused() {
    let simulator = Simulator::with(1, "2026-11-22T00:00:00Z".parse().unwrap(), Controllers::all());
    let pod =
        json!({"metadata": {"name": "a"}, "spec": {"containers": [{"name": "a", "image": "x:1"}]}});
    assert_eq!(post(&simulator, &format!("{CORE}/pods"), &pod).0, 201);
    simulator.advance(jiff::SignedDuration::from_secs(5));
    let (_, pod) = send(&simulator, "GET", &format!("{CORE}/pods/a"), "", &Value::Null);
    assert_eq!(pod["status"]["phase"], "Running", "{pod}");
    let log = Request::builder().uri(format!("{CORE}/pods/a/log")).body(Bytes::new()).unwrap();
    let answer = simulator.request(log);
    assert_eq!(answer.status(), 204);
    assert_eq!(answer.into_body().try_next().unwrap(), "");
    let exec = format!("{CORE}/pods/a/exec?command=date");
    assert_eq!(send(&simulator, "POST", &exec, "", &Value::Null).0, 503);
}

#[test]
fn old_version_of_an_autoscaler_leaves_fields_to_managers_of_the_new_one() {
    let simulator = simulator();
    let scalers = |version: &str| {
        format!("/apis/autoscaling/{version}/namespaces/default/horizontalpodautoscalers")
    };
    let target = json!({"type": "AverageValue", "averageValue": "1"});
    let spec = json!({"maxReplicas": 4, "scaleTargetRef": {"kind": "Deployment", "name": "a"},
        "metrics": [{"type": "Pods", "pods": {"metric": {"name": "m"}, "target": target}}]});
    let create = scalers("v2") + "?fieldManager=ann";
    assert_eq!(post(&simulator, &create, &json!({"metadata": {"name": "a"}, "spec": spec})).0, 201);
    let patch = json!({"spec": {"targetCPUUtilizationPercentage": 60}});
    let old = scalers("v1") + "/a?fieldManager=bob";
    let (code, scaler) = send(&simulator, "PATCH", &old, "application/merge-patch+json", &patch);
    assert_eq!(code, 200, "{scaler}");
    let managers = scaler["metadata"]["managedFields"].as_array().unwrap();
    let ann = managers.iter().find(|one| one["manager"] == "ann").unwrap();
    assert!(ann["fieldsV1"]["f:spec"]["f:metrics"].is_object(), "{ann:#}");
}
