//! ValidatingAdmissionPolicies.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

// Each test file uses a part of it.
#[allow(dead_code)]
mod cluster;

use cluster::Cluster;
use serde_json::{Value, json};

const REGISTRATION: &str = "/apis/admissionregistration.k8s.io/v1";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// A cluster with a policy about ConfigMaps, and a binding of it.
fn cluster(policy: &Value, binding: &Value) -> Cluster {
    let cluster = Cluster::new();
    let rule = json!({"operations": ["CREATE", "UPDATE", "DELETE"], "apiGroups": [""],
        "apiVersions": ["v1"], "resources": ["configmaps"]});
    let mut spec = policy.clone();
    spec["matchConstraints"] = json!({"resourceRules": [rule]});
    create(
        &cluster,
        "validatingadmissionpolicies",
        &json!({"metadata": {"name": "p"}, "spec": spec}),
    );
    let mut spec = json!({"policyName": "p", "validationActions": ["Deny"]});
    for (name, value) in binding.as_object().unwrap() {
        spec[name] = value.clone();
    }
    let binding = json!({"metadata": {"name": "b"}, "spec": spec});
    create(&cluster, "validatingadmissionpolicybindings", &binding);
    cluster
}

fn create(cluster: &Cluster, plural: &str, object: &Value) {
    let (code, answer) = cluster.send("POST", &format!("{REGISTRATION}/{plural}"), object);
    assert_eq!(code, 201, "{answer:#}");
}

/// Creates a ConfigMap: code, and message if it is refused.
fn post(cluster: &Cluster, name: &str, data: &Value) -> (u16, String) {
    let map = json!({"metadata": {"name": name}, "data": data});
    let (code, answer) = cluster.send("POST", MAPS, &map);
    (code, answer["message"].as_str().unwrap_or_default().to_owned())
}

#[test]
fn validation_that_does_not_hold_refuses_the_request_with_its_message() {
    let policy = json!({"validations": [
        {"expression": "object == null || has(object.data)"},
        {"expression": "object == null || object.data.size.matches('^[0-9]+$')",
            "messageExpression": "'size of ' + object.metadata.name + ' is ' + object.data.size"},
        {"expression": "request.operation != 'DELETE' || oldObject.metadata.name != 'kept'",
            "message": "it is kept", "reason": "Forbidden"},
    ]});
    let cluster = cluster(&policy, &json!({}));
    let head = "is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: ";
    let (code, message) = post(&cluster, "a", &json!({"size": "big"}));
    assert_eq!((code, message), (422, format!("configmaps \"a\" {head}size of a is big")));
    let (code, message) = post(&cluster, "a", &Value::Null);
    let failed = "failed expression: object == null || has(object.data)";
    assert_eq!((code, message), (422, format!("configmaps \"a\" {head}{failed}")));
    assert_eq!(post(&cluster, "kept", &json!({"size": "1"})).0, 201);
    let (code, answer) = cluster.send("DELETE", &format!("{MAPS}/kept"), &Value::Null);
    assert_eq!((code, &answer["reason"]), (403, &json!("Forbidden")), "{answer:#}");
    assert!(answer["message"].as_str().unwrap().ends_with("denied request: it is kept"));
    // An expression that cannot be evaluated refuses as well.
    let (code, message) = post(&cluster, "b", &json!({"other": "1"}));
    assert!(code == 422 && message.contains("resulted in error: no such key: size"), "{message}");
}

#[test]
fn match_conditions_and_selectors_decide_whether_a_policy_applies() {
    let policy = json!({
        "matchConditions": [{"name": "not-b", "expression": "object.metadata.name != 'b'"}],
        "validations": [{"expression": "false"}],
    });
    let selector = json!({"namespaceSelector": {"matchLabels": {"strict": "yes"}}});
    let everywhere = cluster(&policy, &json!({}));
    assert_eq!(post(&everywhere, "a", &json!({})).0, 422);
    assert_eq!(post(&everywhere, "b", &json!({})).0, 201);
    let selected = cluster(&policy, &json!({ "matchResources": selector }));
    assert_eq!(post(&selected, "a", &json!({})).0, 201);
    let labels = json!({"apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": "default", "labels": {"strict": "yes"}}});
    selected.send("PATCH", "/api/v1/namespaces/default?fieldManager=test", &labels);
    assert_eq!(post(&selected, "c", &json!({})).0, 422);
    let others = json!([{"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"],
        "resources": ["configmaps"], "resourceNames": ["a"]}]);
    let excluded = json!({"matchResources": {"excludeResourceRules": others}});
    let excluded = cluster(&policy, &excluded);
    assert_eq!(post(&excluded, "a", &json!({})).0, 201);
    assert_eq!(post(&excluded, "c", &json!({})).0, 422);
}

#[test]
fn params_and_variables_are_given_to_the_expressions() {
    let policy = json!({
        "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
        "variables": [
            {"name": "max", "expression": "int(params.data.max)"},
            {"name": "size", "expression": "int(object.data.size)"},
        ],
        "matchConditions": [{"name": "sized", "expression": "has(object.data) && has(object.data.size)"}],
        "validations": [{"expression": "variables.size <= variables.max",
            "messageExpression": "'at most ' + string(variables.max) + ' in ' + namespaceObject.metadata.name"}],
    });
    let param = json!({"paramRef": {"name": "limits", "parameterNotFoundAction": "Deny"}});
    let cluster = cluster(&policy, &param);
    let (code, message) = post(&cluster, "a", &json!({"size": "1"}));
    let missing = "failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction";
    assert!(code == 422 && message.ends_with(missing), "{message}");
    // Its own creation finds no parameters either, so that it is created before the binding.
    cluster.send(
        "DELETE",
        &format!("{REGISTRATION}/validatingadmissionpolicybindings/b"),
        &Value::Null,
    );
    assert_eq!(post(&cluster, "limits", &json!({"max": "5"})).0, 201);
    let mut spec = param.clone();
    spec["policyName"] = "p".into();
    spec["validationActions"] = json!(["Deny"]);
    let binding = json!({"metadata": {"name": "b"}, "spec": spec});
    create(&cluster, "validatingadmissionpolicybindings", &binding);
    assert_eq!(post(&cluster, "a", &json!({"size": "5"})).0, 201);
    let (code, message) = post(&cluster, "b", &json!({"size": "6"}));
    assert!(code == 422 && message.ends_with("denied request: at most 5 in default"), "{message}");
}

#[test]
fn warning_and_failure_policy_let_the_request_pass() {
    let policy = json!({"failurePolicy": "Ignore", "validations": [
        {"expression": "object.data.missing == 'x'"}]});
    let ignoring = cluster(&policy, &json!({}));
    assert_eq!(post(&ignoring, "a", &json!({})).0, 201);
    let policy = json!({"validations": [{"expression": "false", "message": "careful"}]});
    let warning = cluster(&policy, &json!({"validationActions": ["Warn", "Audit"]}));
    let map = json!({"metadata": {"name": "a"}}).to_string();
    let request = http::Request::post(MAPS).header("content-type", "application/json");
    let response = warning.simulator.request(request.body(map.into()).unwrap());
    assert_eq!(response.status(), 201);
    let header = response.headers()["warning"].to_str().unwrap();
    let text = "Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b': careful";
    assert!(header.contains(text), "{header}");
}
