use innkeeper_admission::patch::patch;
use innkeeper_core::audit::FIELDS_MAX;
use innkeeper_core::diff::changed_fields;
use serde_json::{Value, json};

use super::*;
use crate::policies::decision::Change;
use crate::policies::decision_kind::DecisionKind;

fn denial(message: &str) -> Decision {
    let denial = CheckedDenial {
        message: message.to_owned(),
        reason: "Invalid".to_owned(),
        code: 422,
        causes: Vec::new(),
    };
    let verdict = CheckedVerdict {
        denial: Some(denial),
        warnings: vec!["own".to_owned()],
        audit_annotations: BTreeMap::from([("own".to_owned(), "x".to_owned())]),
        ..CheckedVerdict::default()
    };
    Decision { verdict, change: None }
}

fn change(before: &Value, after: &Value) -> Decision {
    let fields = changed_fields(before, after, FIELDS_MAX + 1);
    let change = Change { patch: patch(before, after).unwrap(), fields };
    Decision { verdict: CheckedVerdict::default(), change: Some(change) }
}

fn annotations(response: &AdmissionResponse) -> Vec<(&str, &str)> {
    response.audit_annotations.iter().map(|(key, value)| (&**key, &**value)).collect()
}

#[test]
fn denial_denies_in_enforce_only() {
    assert_eq!(denial("no").kind(), DecisionKind::Denied);
    let response = denial("no").into_response("m", Mode::Enforce);
    let denied = response.denial.unwrap();
    assert_eq!((&*denied.message, &*denied.reason, denied.code), ("no", "Invalid", 422));
    assert_eq!(response.warnings, ["own"]);

    let response = denial("no\nway").into_response("m", Mode::Warn);
    assert_eq!(response.denial, None);
    assert_eq!(response.warnings, [r"policy m would deny: no\nway", "own"]);
    assert_eq!(annotations(&response), [("own", "x")]);

    let response = denial("no").into_response("m", Mode::Audit);
    assert_eq!((response.denial.is_none(), response.warnings.len()), (true, 0));
    assert_eq!(annotations(&response), [("own", "x"), ("would-deny", "deny: no")]);
}

#[test]
fn change_is_made_in_enforce_and_named_in_the_others() {
    let (before, after) = (json!({"spec": {}}), json!({"spec": {"x": 1, "y": 2}}));
    assert_eq!(change(&before, &after).kind(), DecisionKind::Changed);
    let response = change(&before, &after).into_response("m", Mode::Enforce);
    assert!(response.patch.unwrap().contains("/spec/x"));
    let response = change(&before, &after).into_response("m", Mode::Warn);
    assert_eq!(
        (response.patch, &*response.warnings[0]),
        (None, "policy m would change .spec.x, .spec.y")
    );
    let response = change(&before, &after).into_response("m", Mode::Audit);
    assert_eq!(response.patch, None);
    assert_eq!(annotations(&response), [("would-change", "change .spec.x, .spec.y")]);
}

#[test]
fn many_changed_fields_are_named_in_part() {
    let after = json!({"a": 1, "b": 1, "c": 1, "d": 1, "e": 1, "f": 1, "g": 1});
    let response = change(&json!({}), &after).into_response("m", Mode::Warn);
    assert_eq!(response.warnings, ["policy m would change .a, .b, .c, .d, .e and more"]);
}

#[test]
fn texts_of_the_host_stay_within_the_limits_of_a_verdict() {
    let mut full = denial(&"x".repeat(4_000));
    full.verdict.warnings = vec!["w".to_owned(); WARNINGS_MAX];
    let keys = (0..AUDIT_ANNOTATIONS_MAX).map(|at| (format!("k{at:02}"), String::new()));
    full.verdict.audit_annotations = keys.collect();
    let response = full.clone().into_response("m", Mode::Warn);
    assert_eq!(response.warnings.len(), WARNINGS_MAX);
    assert_eq!(response.warnings[0].len(), WARNING_BYTES_MAX);
    let response = full.into_response("m", Mode::Audit);
    assert_eq!(response.audit_annotations.len(), AUDIT_ANNOTATIONS_MAX);
    assert_eq!(response.audit_annotations["would-deny"].len(), AUDIT_ANNOTATION_BYTES_MAX);
}

#[test]
fn failure_fails_the_request_in_enforce_only() {
    let why = || "policy m failed".to_owned();
    assert_eq!(failed(Mode::Enforce, why(), false), Reviewed::Failed(why()));
    assert_eq!(failed(Mode::Enforce, why(), true), Reviewed::Overloaded(why()));
    for is_overloaded in [false, true] {
        let Reviewed::Answer(response) = failed(Mode::Warn, why(), is_overloaded) else {
            panic!("the mode Warn fails no request")
        };
        assert_eq!((response.denial, response.warnings), (None, vec![why()]));
        let Reviewed::Answer(response) = failed(Mode::Audit, why(), is_overloaded) else {
            panic!("the mode Audit fails no request")
        };
        assert_eq!(annotations(&response), [("failed", "policy m failed")]);
        assert_eq!((&response.denial, response.warnings.len()), (&None, 0));
    }
}
