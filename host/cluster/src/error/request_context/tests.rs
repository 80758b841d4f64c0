//! Responses of a real API server (1.35), from `answers.json`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use expect_test::expect;
use innkeeper_contract::Kind;

use super::*;
use crate::Account;

#[derive(serde::Deserialize)]
struct Answer {
    name: String,
    code: u16,
    body: serde_json::Value,
}

fn read(answer: &Answer) -> ApiError {
    let identity = Identity::Account(Account::new("default", "x"));
    let kind = if answer.name.starts_with("list of") {
        Kind::namespaced("apps/v1", "Deployment", "deployments")
    } else {
        Kind::namespaced("v1", "ConfigMap", "configmaps")
    };
    let (verb, namespace) = match answer.name.split(' ').next().unwrap() {
        "get" => ("get", "default"),
        "list" => ("list", ""),
        "delete" => ("delete", "default"),
        "create" => ("create", "default"),
        _ => ("patch", "term"),
    };
    let guard = match &answer.name {
        name if name.contains("guarded by version 1") => Guard::Absent,
        name if name.contains("guarded by an old version") => Guard::Version,
        name if name.contains("guarded by uid") => Guard::Uid,
        _ => Guard::None,
    };
    let context = RequestContext {
        identity: &identity,
        verb,
        kind: &kind,
        subresource: "",
        namespace,
        guard,
    };
    let body = match &answer.body {
        serde_json::Value::String(text) => text.clone(),
        body => body.to_string(),
    };
    context.refused(answer.code, body.as_bytes())
}

#[test]
fn responses_of_a_real_server_give_an_error_each() {
    let answers: Vec<Answer> = serde_json::from_str(include_str!("answers.json")).unwrap();
    let mut table = String::new();
    for answer in &answers {
        let error = read(answer);
        let more = match &error {
            ApiError::Immutable { field, .. } => field.clone(),
            ApiError::FieldConflict { conflicts, .. } => conflicts[0].to_string(),
            ApiError::NamespaceNotFound { namespace }
            | ApiError::NamespaceTerminating { namespace } => namespace.clone(),
            ApiError::Forbidden { denial, .. } => denial.to_string(),
            ApiError::NotServed { kind } => kind.clone(),
            _ => String::new(),
        };
        writeln!(table, "{}: {} {more}", answer.name, error.reason()).unwrap();
        assert!(!error.is_transient(), "{}: the same request fails again", answer.name);
    }
    expect![[r"
        create guarded by version 1, the name is taken: AlreadyExists
        apply guarded by uid, nothing there: ObjectDeleted
        apply guarded by uid, another there: UidMismatch
        apply guarded by an old version: VersionConflict
        apply without force, another manager has the field: FieldConflict innkeeper/m/u1 holds .data.a
        apply in an absent namespace: NamespaceNotFound nons
        get of an absent object: NotFound
        get of an unknown group: NotServed v1 ConfigMap
        get of an unknown resource of a known group: NotServed v1 ConfigMap
        get without the right: Forbidden ServiceAccount default/x may not get configmaps in namespace default
        list of the whole cluster without the right: Forbidden ServiceAccount default/x may not list deployments.apps in the whole cluster
        the host may not impersonate: Forbidden the host may not impersonate serviceaccounts in namespace default
        an unknown field: Malformed
        a wrong type: Malformed
        no JSON: Malformed
        a name that breaks a rule: Invalid
        another name than in the path: Malformed
        another selector of a Deployment: Immutable spec.selector
        another clusterIP of a Service: Immutable spec.clusterIPs[0]
        another command of a Pod: Immutable spec
        another serviceName of a StatefulSet: Immutable spec
        another storage class of a PersistentVolumeClaim: Immutable spec
        another value in an immutable Secret: Immutable data
        another role of a RoleBinding: Immutable roleRef
        delete guarded by uid, another there: UidMismatch
        delete of an absent object: NotFound
        apply in a terminating namespace: NamespaceTerminating term
        a token that is not accepted: Unauthorized
        create of a name that is taken: AlreadyExists
        create by a verb that is not there: Invalid
    "]].assert_eq(&table.replace(" \n", "\n"));
}

fn context<'a>(identity: &'a Identity, kind: &'a Kind, verb: &'a str) -> RequestContext<'a> {
    RequestContext { identity, verb, kind, subresource: "", namespace: "n", guard: Guard::None }
}

#[test]
fn busy_server_and_lost_write_give_different_errors() {
    let kind = Kind::namespaced("v1", "ConfigMap", "configmaps");
    let reason = |verb, code| {
        let error = context(&Identity::Host, &kind, verb).refused(code, b"<html>of a proxy</html>");
        assert!(error.is_transient(), "{verb} {code}");
        error.reason()
    };
    let reasons: BTreeMap<_, _> =
        [("get", 429), ("get", 503), ("get", 504), ("patch", 503), ("patch", 504), ("patch", 500)]
            .map(|(verb, code)| ((verb, code), reason(verb, code)))
            .into();
    assert_eq!(
        reasons,
        BTreeMap::from([
            (("get", 429), "TooManyRequests"),
            (("get", 503), "Unavailable"),
            (("get", 504), "Timeout"),
            (("patch", 500), "ServerError"),
            (("patch", 503), "Unavailable"),
            (("patch", 504), "OutcomeUnknown"),
        ])
    );
}

#[test]
fn long_message_is_cut_where_a_character_ends() {
    let kind = Kind::namespaced("v1", "ConfigMap", "configmaps");
    let body = "ü".repeat(MESSAGE_BYTES_MAX);
    let error = context(&Identity::Host, &kind, "get").refused(418, body.as_bytes());
    let ApiError::Other { code: 418, message } = error else { panic!("{error:?}") };
    assert!(message.len() <= MESSAGE_BYTES_MAX + 3 && message.ends_with("ü..."));
}

#[test]
fn manager_of_a_conflict_includes_its_subresource() {
    for (message, manager) in [
        (r#"conflict with "kubectl""#, "kubectl"),
        (r#"conflict with "kubectl" using apps/v1"#, "kubectl"),
        (
            r#"conflict with "kubectl" with subresource "scale" using autoscaling/v1"#,
            r#"kubectl with subresource "scale""#,
        ),
        ("something else", "something else"),
    ] {
        assert_eq!(manager_of(message), manager);
    }
}
