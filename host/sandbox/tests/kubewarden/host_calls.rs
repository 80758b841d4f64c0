//! The host calls of policies.

use expect_test::expect;
use innkeeper_sandbox::{Level, ReadError, ReviewOutcome};
use serde_json::{Value, json};

use super::Load;
use super::guests::Cluster;
use super::guests::kubewarden::Kubewarden;

const OBJECT: &str = r#"{"object":{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"cm","namespace":"ns"},"data":{"a":"b"}},"readiness":{"state":"Ready"}}"#;

fn reading(operation: &str, payload: &Value) -> Kubewarden {
    let name = ["kubewarden", "kubernetes", operation];
    Kubewarden::default().answering_with_host_call(name, &payload.to_string())
}

/// What the guest got for a host call: it answers with it, which is no verdict.
fn answer(policy: &Kubewarden, cluster: &mut Cluster) -> Result<String, String> {
    match policy.review(cluster) {
        Ok(ReviewOutcome::Failed(why)) => Err(why),
        other => Ok(format!("{other:?}")),
    }
}

#[test]
fn object_of_the_policy_s_own_view_is_answered() {
    let payload = json!({"api_version": "v1", "kind": "ConfigMap", "namespace": "ns",
        "name": "cm", "disable_cache": true, "field_masks": null});
    let mut cluster = Cluster::answering(Ok(OBJECT));
    let answered = answer(&reading("get_resource", &payload), &mut cluster).unwrap();
    assert_eq!(cluster.asked, ["get v1 ConfigMap ns/cm"]);
    // The object is no verdict.
    assert!(answered.contains("missing field `accepted`"), "{answered}");
    for (error, text) in [
        // Policies of Kubewarden look for the words of its own policy server.
        (
            ReadError::NotFound,
            r#"Cannot find v1/ConfigMap named 'cm' inside of namespace 'Some("ns")'"#,
        ),
        (ReadError::NotServed, "Cannot find resource v1/ConfigMap"),
        (
            ReadError::Forbidden("get configmaps".to_owned()),
            "v1 ConfigMap ns/cm cannot be read: the policy may not: get configmaps",
        ),
    ] {
        let mut cluster = Cluster { answer: Some(Err(error)), ..Cluster::default() };
        let refused = answer(&reading("get_resource", &payload), &mut cluster).unwrap_err();
        assert_eq!(refused, text);
    }
}

/// The bytes of an answer, which the policy ends with as an error.
fn bytes(operation: &str, payload: &Value, document: &str) -> String {
    let name = ["kubewarden", "kubernetes", operation];
    let mut policy = Kubewarden::default();
    let call = policy.host_call(name, &payload.to_string());
    let at = super::guests::kubewarden::ANSWER_AT;
    let policy = policy.validate(&format!(
        "(drop {call}) (call $host_response (i32.const {at}))
         (call $guest_error (i32.const {at}) (call $host_response_len)) (i32.const 0)"
    ));
    answer(&policy, &mut Cluster::answering(Ok(document))).unwrap_err()
}

#[test]
fn answers_are_objects_and_lists_of_kubernetes() {
    let payload =
        json!({"api_version": "v1", "kind": "ConfigMap", "namespace": "ns", "name": "cm"});
    expect![[
        r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"cm","namespace":"ns"},"data":{"a":"b"}}"#
    ]]
    .assert_eq(&bytes("get_resource", &payload, OBJECT));
    let list = format!(r#"{{"items":[{OBJECT},{}]}}"#, OBJECT.replace("\"cm\"", "\"other\""));
    expect![[
        r#"{"apiVersion":"v1","kind":"ConfigMapList","metadata":{},"items":[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"cm","namespace":"ns"},"data":{"a":"b"}},{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"other","namespace":"ns"},"data":{"a":"b"}}]}"#
    ]]
    .assert_eq(&bytes("list_resources_by_namespace", &payload, &list));
    let fields = json!({"api_version": "v1", "kind": "ConfigMap",
        "field_selector": "metadata.name!=cm", "field_masks": ["data.b"]});
    expect![[
        r#"{"apiVersion":"v1","kind":"ConfigMapList","metadata":{},"items":[{"apiVersion":"v1","data":{},"kind":"ConfigMap","metadata":{"name":"other","namespace":"ns"}}]}"#
    ]]
    .assert_eq(&bytes("list_resources_all", &fields, &list));
}

#[test]
fn list_calls_read_one_namespace_or_all() {
    for (operation, payload, asked) in [
        (
            "list_resources_by_namespace",
            json!({"api_version": "v1", "kind": "ConfigMap", "namespace": "ns",
                "label_selector": "a=b"}),
            "list v1 ConfigMap ns?a=b",
        ),
        (
            "list_resources_all",
            // A namespace is no part of this call.
            json!({"api_version": "v1", "kind": "ConfigMap", "namespace": "ns"}),
            "list v1 ConfigMap ?",
        ),
    ] {
        let mut cluster = Cluster::answering(Ok(r#"{"items":[]}"#));
        answer(&reading(operation, &payload), &mut cluster).unwrap();
        assert_eq!(cluster.asked, [asked]);
    }
    // Without a namespace the call would read all of them.
    for namespace in [json!(null), json!("")] {
        let payload = json!({"api_version": "v1", "kind": "ConfigMap", "namespace": namespace});
        let mut cluster = Cluster::default();
        let policy = reading("list_resources_by_namespace", &payload);
        let refused = answer(&policy, &mut cluster).unwrap_err();
        assert_eq!(refused, "the host call names no namespace");
        assert_eq!(cluster.asked, [""; 0]);
    }
}

#[test]
fn kind_that_the_metadata_does_not_name_is_not_read() {
    let payload = json!({"api_version": "v1", "kind": "Secret", "namespace": "ns", "name": "s"});
    let mut cluster = Cluster::answering(Ok(OBJECT));
    let refused = answer(&reading("get_resource", &payload), &mut cluster).unwrap_err();
    expect![
        "v1 Secret ns/s cannot be read: contextAwareResources of its metadata does not name the kind"
    ]
    .assert_eq(&refused);
    assert_eq!(cluster.asked, [""; 0]);
}

#[test]
fn host_calls_that_are_not_offered_are_refused_by_name_and_logged() {
    for (name, expected) in [
        (
            ["kubewarden", "oci", "v1/manifest_digest"],
            "host call kubewarden/oci/v1/manifest_digest is not offered: policies have no network",
        ),
        (
            ["kubewarden", "net", "v1/dns_lookup_host"],
            "host call kubewarden/net/v1/dns_lookup_host is not offered: policies have no network",
        ),
        (
            ["kubewarden", "crypto", "v1/is_certificate_trusted"],
            "host call kubewarden/crypto/v1/is_certificate_trusted is not offered: policies bring \
             their own cryptography",
        ),
        (
            ["kubewarden", "kubernetes", "can_i"],
            "host call kubewarden/kubernetes/can_i is not offered: a policy reads objects and asks \
             nothing about rights",
        ),
        (["a", "b", "c"], "host call a/b/c is not offered: the host does not know it"),
    ] {
        let policy = Kubewarden::default().answering_with_host_call(name, "{}");
        let mut cluster = Cluster::default();
        assert_eq!(answer(&policy, &mut cluster).unwrap_err(), expected);
        assert_eq!(cluster.lines, [(Level::Warn, expected.to_owned())]);
    }
}

#[test]
fn payload_of_a_read_that_cannot_be_read_is_an_error_for_the_guest() {
    for payload in ["", "{}", "[]", r#"{"api_version":1,"kind":"ConfigMap"}"#] {
        for operation in ["get_resource", "list_resources_by_namespace", "list_resources_all"] {
            let name = ["kubewarden", "kubernetes", operation];
            let policy = Kubewarden::default().answering_with_host_call(name, payload);
            let refused = answer(&policy, &mut Cluster::default()).unwrap_err();
            assert!(
                refused.starts_with("the request of the host call cannot be read"),
                "{refused}"
            );
        }
    }
}

#[test]
fn events_of_the_logger_reach_the_log_of_the_guest() {
    let mut policy = Kubewarden::default();
    let name = ["kubewarden", "tracing", "log"];
    let event =
        r#"{"level":"warning","message":"odd","file":"a.rs","line":1,"column":2,"pod":"x"}"#;
    let calls = [
        policy.host_call(name, event),
        policy.host_call(name, r#"{"level":"error","message":"bad"}"#),
        policy.host_call(name, "no JSON"),
    ];
    let (at, length) = policy.text("a line");
    let code = calls.map(|call| format!("(drop {call})")).concat();
    let policy = policy.before_accepting(&format!(
        "{code} (call $console_log (i32.const {at}) (i32.const {length}))"
    ));
    let mut cluster = Cluster::default();
    policy.review(&mut cluster).unwrap();
    let expected = [
        (Level::Warn, r#"odd {"pod":"x"}"#),
        (Level::Error, "bad"),
        (Level::Info, "no JSON"),
        (Level::Info, "a line"),
    ];
    assert_eq!(cluster.lines, expected.map(|(level, line)| (level, line.to_owned())));
}
