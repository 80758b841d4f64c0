use innkeeper_contract::{GroupVersionKind, ReviewRequest};
use serde_json::{Value, json};

use super::*;
use crate::ObjectKey;

/// The value of a Secret, in base64 and in clear.
const SECRETS: [&str; 2] = ["aHVudGVyMg==", "hunter2"];

fn digest(key: &ObjectKey, name: &str, _: &str) -> String {
    format!("digest of {key} {name}")
}

fn raw(value: &Value) -> Box<RawValue> {
    RawValue::from_string(value.to_string()).unwrap()
}

fn input<'a>(user: &'a User, object: Option<&'a RawValue>) -> ReviewInput<'a> {
    ReviewInput {
        operation: Operation::Create,
        kind: Gvk { group: "", version: "v1", kind: "ConfigMap" },
        resource: Gvr { group: "", version: "v1", resource: "configmaps" },
        subresource: "",
        request_kind: None,
        request_resource: None,
        name: "a",
        namespace: "n",
        user,
        object,
        old_object: None,
        options: None,
        dry_run: false,
        background: false,
        parameters: "",
    }
}

fn secret() -> Value {
    json!({"apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "a", "namespace": "n",
            "managedFields": [{"manager": "kubectl"}],
            "annotations": {
                "kubectl.kubernetes.io/last-applied-configuration":
                    r#"{"data":{"p":"aHVudGVyMg=="}}"#,
                "kapp.k14s.io/original": "hunter2",
                "example.com/backup": r#" {"kind":"Secret","stringData":{"p":"hunter2"}}"#,
                "example.com/none": r#"{"data":null}"#,
                "innkeeper.dev/applied": "0123456789abcdef",
                "team": "a"}},
        "data": {"p": "aHVudGVyMg=="}, "stringData": {"q": "hunter2"}})
}

#[test]
fn document_is_read_by_the_type_of_the_contract() {
    let user = User {
        username: "ann".to_owned(),
        groups: vec!["dev".to_owned()],
        extra: [("k".to_owned(), vec!["v".to_owned()])].into(),
        ..User::default()
    };
    let (object, old) = (raw(&json!({"a": 1})), raw(&json!({"a": 0})));
    let options = raw(&json!({"kind": "UpdateOptions"}));
    let of_client = Gvk { version: "v2", ..input(&user, None).kind };
    let input = ReviewInput {
        operation: Operation::Update,
        subresource: "status",
        request_kind: Some(of_client),
        request_resource: Some(input(&user, None).resource),
        old_object: Some(&old),
        options: Some(&options),
        dry_run: true,
        parameters: r#"{"p":[1]}"#,
        ..input(&user, Some(&object))
    };
    let made = document(&input, &digest, 10_000).unwrap();
    let read: ReviewRequest = serde_json::from_str(&made.text).unwrap();
    assert_eq!((read.operation, &*read.subresource), (Operation::Update, "status"));
    let of_client = GroupVersionKind {
        group: String::new(),
        version: "v2".to_owned(),
        kind: "ConfigMap".to_owned(),
    };
    assert_eq!((read.request_kind, read.request_resource), (Some(of_client), None));
    assert_eq!((&*read.namespace, &*read.name, read.user), ("n", "a", user));
    assert_eq!((read.object, read.old_object), (Some(json!({"a": 1})), Some(json!({"a": 0}))));
    assert_eq!(read.options, json!({"kind": "UpdateOptions"}));
    assert!(read.dry_run && !read.background);
    assert_eq!(read.parameters, json!({"p": [1]}));
    assert_eq!(made.object.as_deref(), Some(r#"{"a":1}"#));
}

#[test]
fn managed_fields_and_last_applied_are_not_shown() {
    // Also if the name is written with escapes.
    for name in [
        "kubectl.kubernetes.io/last-applied-configuration",
        r"kubectl.kubernetes.io\/last-applied-configuration",
        r"\u006bubectl.kubernetes.io/last-applied-configuration",
    ] {
        let text = format!(
            r#"{{"metadata":{{"annotations":{{"{name}":"{{}}","team":"a"}},"managedFields":[{{}}],"name":"a"}},"spec":[1]}}"#
        );
        let object = RawValue::from_string(text).unwrap();
        let user = User::default();
        let made = document(&input(&user, Some(&object)), &digest, 10_000).unwrap();
        let expected = r#"{"metadata":{"annotations":{"team":"a"},"name":"a"},"spec":[1]}"#;
        assert_eq!(made.object.as_deref(), Some(expected));
    }
    let user = User::default();
    let without = raw(&json!({"metadata": null, "kind": "Scale"}));
    let made = document(&input(&user, Some(&without)), &digest, 10_000).unwrap();
    assert_eq!(made.object.as_deref(), Some(r#"{"kind":"Scale","metadata":null}"#));
}

#[track_caller]
fn assert_hides_secrets(text: &str) {
    for value in SECRETS.into_iter().chain(["0123456789abcdef"]) {
        assert!(!text.contains(value), "{value} in {text}");
    }
}

#[test]
fn secret_is_shown_as_digests_also_in_old_object_and_under_another_version() {
    let user = User::default();
    let (own, mut other) = (raw(&secret()), secret());
    // It names itself something else, and the request says what it is.
    other["kind"] = json!("Password");
    let other = raw(&other);
    let core = |version| Gvr { group: "", version, resource: "secrets" };
    let none = input(&user, None);
    for input in [
        ReviewInput { object: Some(&own), ..none },
        ReviewInput { old_object: Some(&own), ..none },
        ReviewInput { resource: core("v1"), object: Some(&other), ..none },
        ReviewInput { resource: core("v7"), old_object: Some(&other), ..none },
        ReviewInput { request_resource: Some(core("v1")), object: Some(&other), ..none },
        ReviewInput { kind: Gvk { kind: "Secret", ..none.kind }, object: Some(&other), ..none },
        ReviewInput {
            request_kind: Some(Gvk { kind: "Secret", ..none.kind }),
            old_object: Some(&other),
            ..none
        },
    ] {
        let made = document(&input, &digest, 10_000).unwrap();
        assert_hides_secrets(&made.text);
        let read: ReviewRequest = serde_json::from_str(&made.text).unwrap();
        let shown = read.object.or(read.old_object).unwrap();
        assert_eq!(shown["data"], json!({"p": "digest of n/a p"}));
        assert_eq!(shown["stringData"], json!({"q": "digest of n/a q"}));
        let annotations = json!({"example.com/none": r#"{"data":null}"#, "team": "a"});
        assert_eq!(shown["metadata"]["annotations"], annotations);
    }
}

#[test]
fn secret_with_escapes_in_its_kind_and_without_a_name_is_shown_as_digests() {
    let user = User::default();
    let text = r#"{"kind":"\u0053ecret","metadata":{"generateName":"a-"},"data":{"p":"hunter2"}}"#;
    let object = RawValue::from_string(text.to_owned()).unwrap();
    let made = document(&input(&user, Some(&object)), &digest, 10_000).unwrap();
    assert_hides_secrets(&made.text);
    assert!(made.text.contains("digest of n/a p"), "{}", made.text);
}

#[test]
fn copied_values_of_a_secret_have_no_digest() {
    let user = User::default();
    let object = raw(&json!({"kind": "Secret", "data": {"p": "x", "q": "y"}, "metadata":
        {"name": "a", "namespace": "n", "annotations": {"innkeeper.dev/copied-keys": r#"["p"]"#}}}));
    let made = document(&input(&user, Some(&object)), &digest, 10_000).unwrap();
    let shown: Value = serde_json::from_str(&made.object.unwrap()).unwrap();
    assert_eq!(shown["data"], json!({"p": "copied", "q": "digest of n/a q"}));
}

#[test]
fn object_that_cannot_be_read_is_named_and_not_quoted() {
    let user = User::default();
    for (object, reason) in [
        (json!({"kind": "Secret", "data": {"p": ["hunter2"]}}), "a Secret whose data is not a map"),
        (json!({"kind": "Secret", "data": "hunter2"}), "a Secret whose data is not a map"),
        (json!({"kind": "Secret", "metadata": "hunter2"}), "a member has another type"),
        (json!({"kind": {"hunter2": 1}}), "a member has another type"),
        (json!("hunter2"), "a member has another type"),
    ] {
        let object = raw(&object);
        let input = ReviewInput { old_object: Some(&object), ..input(&user, None) };
        let error = document(&input, &digest, 10_000).unwrap_err();
        assert_eq!(error.reason(), "RequestUnreadable");
        let error = error.to_string();
        assert!(error.contains("`oldObject`") && error.contains(reason), "{error}");
        assert_hides_secrets(&error);
    }
    let input = ReviewInput { parameters: "{", ..input(&user, None) };
    let error = document(&input, &digest, 10_000).unwrap_err().to_string();
    assert!(error.contains("`parameters`"), "{error}");
}

#[test]
fn document_beyond_the_limit_is_refused_with_its_size() {
    let user = User::default();
    let object = raw(&json!({"data": {"a": "x".repeat(1_000)}}));
    let input = input(&user, Some(&object));
    let bytes = document(&input, &digest, 10_000).unwrap().text.len();
    assert!(document(&input, &digest, bytes).is_ok());
    let error = document(&input, &digest, bytes - 1).unwrap_err();
    assert_eq!(error, DocumentError::TooLarge { bytes, limit: bytes - 1 });
}
