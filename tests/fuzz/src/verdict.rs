//! Verdicts of policies, and the objects that they return.

use innkeeper_admission::patch::patch;
use innkeeper_contract::{Operation, PolicyKind, User, Verdict};
use innkeeper_core::foreign;
use innkeeper_core::review::{ChangeContext, Gvk, Gvr, ReviewInput, check, check_change};
use serde_json::{Value, json};

/// Reads a verdict. What is read is printed as it was; texts are bounded and visible; an object
/// that the host accepts is the reviewed one in all that no policy changes, and a patch makes it.
pub fn fuzz_entry(data: &[u8]) {
    let Ok(verdict) = serde_json::from_slice::<Verdict>(data) else { return };
    let text = serde_json::to_string(&verdict).expect("a verdict is printed");
    let again: Verdict = serde_json::from_str(&text).expect("a printed verdict is read");
    assert_eq!(verdict, again, "a verdict changes when it is printed and read");

    let checked = check(verdict.clone(), PolicyKind::Mutate, Operation::Update);
    let Ok(checked) = checked else { return };
    assert_eq!(checked.denial.is_none(), verdict.allowed);
    let mut texts: Vec<&String> = checked.warnings.iter().collect();
    texts.extend(checked.audit_annotations.values());
    if let Some(denial) = &checked.denial {
        assert!(!denial.message.trim().is_empty() && (400..600).contains(&denial.code));
        texts.push(&denial.message);
        texts.extend(denial.causes.iter().map(|cause| &cause.message));
        assert!(denial.lines().len() <= 1 + denial.causes.len());
    }
    let bytes: usize = texts.iter().map(|text| text.len()).sum();
    assert!(bytes <= 64 << 10, "{bytes} bytes of texts");
    for text in texts {
        assert!(
            text.chars().all(|one| matches!(one, '\n' | '\t') || foreign::is_visible(one)),
            "{text:?}"
        );
    }
    if let Some(object) = checked.object {
        change(object);
    }
}

/// The object that is reviewed.
fn reviewed() -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "a", "namespace": "n", "uid": "u", "labels": {"app": "a"},
            "annotations": {"innkeeper.dev/adopt": "x"}, "finalizers": ["example.com/a"]},
        "data": {"key": "value"}})
}

fn change(object: Value) {
    let before = reviewed();
    let user = User::default();
    let input = ReviewInput {
        operation: Operation::Update,
        kind: Gvk { group: "", version: "v1", kind: "ConfigMap" },
        resource: Gvr { group: "", version: "v1", resource: "configmaps" },
        subresource: "",
        request_kind: None,
        request_resource: None,
        name: "a",
        namespace: "n",
        user: &user,
        object: None,
        old_object: None,
        options: None,
        dry_run: false,
        background: false,
        parameters: "",
    };
    let Ok(after) = check_change(&before, object, &ChangeContext::of(&input, false)) else {
        return;
    };
    for pointer in [
        "/apiVersion",
        "/kind",
        "/metadata/name",
        "/metadata/namespace",
        "/metadata/uid",
        "/metadata/finalizers",
        "/metadata/annotations/innkeeper.dev~1adopt",
    ] {
        assert_eq!(before.pointer(pointer), after.pointer(pointer), "{pointer}");
    }
    if let Ok(patch) = patch(&before, &after) {
        let mut made = before.clone();
        patch.apply(&mut made).expect("a patch fits");
        assert_eq!(made, after, "the patch makes another object");
    }
}
