use serde_json::json;

use super::*;

fn denied(verdict: Verdict) -> CheckedVerdict {
    let verdict = Verdict { allowed: false, ..verdict };
    check(verdict, PolicyKind::Validate, Operation::Create).unwrap()
}

fn allowed(verdict: Verdict) -> CheckedVerdict {
    let verdict = Verdict { allowed: true, ..verdict };
    check(verdict, PolicyKind::Mutate, Operation::Create).unwrap()
}

#[test]
fn verdict_within_the_limits_counts_as_it_is() {
    let cause = Cause {
        field: "spec.x".to_owned(),
        message: "größer".to_owned(),
        reason: "FieldValueInvalid".to_owned(),
    };
    let checked = denied(Verdict {
        message: "no:\n\tbecause".to_owned(),
        reason: "Invalid".to_owned(),
        code: Some(422),
        causes: vec![cause.clone()],
        warnings: vec!["old".to_owned()],
        audit_annotations: [("rule".to_owned(), "7".to_owned())].into(),
        ..Verdict::default()
    });
    let denial = CheckedDenial {
        message: "no:\n\tbecause".to_owned(),
        reason: "Invalid".to_owned(),
        code: 422,
        causes: vec![cause],
    };
    assert_eq!(checked.denial, Some(denial));
    assert_eq!((&*checked.warnings, checked.left_out), (&["old".to_owned()][..], 0));
    assert_eq!(checked.audit_annotations["rule"], "7");
}

#[test]
fn long_denial_stays_a_denial() {
    let long = "\"\\\n\u{1b}".repeat(1 << 11);
    let cause = Cause { field: long.clone(), message: long.clone(), reason: long.clone() };
    let checked = denied(Verdict {
        message: long.clone(),
        reason: long.clone(),
        code: Some(i64::MAX),
        causes: vec![cause; 1_000],
        warnings: vec![long.clone(); 1_000],
        audit_annotations: (0..1_000).map(|at| (format!("k{at}"), long.clone())).collect(),
        object: Some(json!({"a": 1})),
        ..Verdict::default()
    });
    let denial = checked.denial.clone().unwrap();
    assert!(denial.message.len() <= MESSAGE_BYTES_MAX && denial.message.ends_with("..."));
    assert_eq!((&*denial.reason, denial.code), ("Forbidden", 403));
    assert!(denial.causes.len() <= CAUSES_MAX && checked.warnings.len() == WARNINGS_MAX);
    assert!(checked.warnings.iter().all(|one| one.len() <= WARNING_BYTES_MAX));
    assert!(checked.audit_annotations.len() <= AUDIT_ANNOTATIONS_MAX);
    assert_eq!(checked.object, None, "an object does not make a denial invalid");
    let kept = denial.causes.len() + checked.warnings.len() + checked.audit_annotations.len();
    assert_eq!(checked.left_out, 3_000 - kept);
    let response = json!({"message": denial.message, "causes": denial.causes,
        "warnings": checked.warnings, "annotations": checked.audit_annotations});
    assert!(response.to_string().len() < 64 << 10, "{}", response.to_string().len());
}

#[test]
fn denial_without_a_message_says_so() {
    for message in ["", " \n"] {
        let verdict = Verdict { message: message.to_owned(), ..Verdict::default() };
        assert_eq!(denied(verdict).denial.unwrap().message, "the policy gives no reason");
    }
}

#[test]
fn control_characters_of_a_warning_become_codes() {
    let warnings = vec!["a\r\nWarning: b\u{1b}[2J\u{202e}".to_owned(), String::new()];
    let checked = allowed(Verdict { warnings, ..Verdict::default() });
    assert_eq!(checked.warnings, [r"a\r\nWarning: b\u{1b}[2J\u{202e}"]);
    assert_eq!(checked.left_out, 1, "an empty line says nothing");
}

#[test]
fn reason_and_status_that_kubernetes_does_not_know_become_the_defaults() {
    for (reason, code) in [
        ("", None),
        ("forbidden", Some(399)),
        ("Not Found", Some(600)),
        ("Fo\u{430}", Some(-403)),
        ("X1", Some(65_536 + 403)),
    ] {
        let verdict = Verdict { reason: reason.to_owned(), code, ..Verdict::default() };
        let denial = denied(verdict).denial.unwrap();
        assert_eq!((&*denial.reason, denial.code), ("Forbidden", 403), "{reason} {code:?}");
    }
}

#[test]
fn audit_annotation_that_the_api_server_would_drop_is_left_out() {
    let keys = ["a", "a.b_c-D", "", "a/b", "-a", "a b", "\u{e4}"];
    let audit_annotations = keys.map(|key| (key.to_owned(), "x\ny".to_owned())).into();
    let checked = allowed(Verdict { audit_annotations, ..Verdict::default() });
    let kept: Vec<_> = checked.audit_annotations.iter().collect();
    let value = &r"x\ny".to_owned();
    assert_eq!(kept, [(&"a".to_owned(), value), (&"a.b_c-D".to_owned(), value)]);
    assert_eq!(checked.left_out, 5);
}

#[test]
fn object_counts_only_where_one_is_stored_by_a_policy_that_mutates() {
    let verdict = || Verdict { allowed: true, object: Some(json!({"a": 1})), ..Verdict::default() };
    assert_eq!(allowed(verdict()).object, Some(json!({"a": 1})));
    for (kind, operation, why) in [
        (PolicyKind::Validate, Operation::Create, "`Validate`"),
        (PolicyKind::Mutate, Operation::Delete, "DELETE"),
    ] {
        let error = check(verdict(), kind, operation).unwrap_err();
        assert_eq!(error.reason(), "UnexpectedObject");
        assert!(error.to_string().contains(why), "{error}");
    }
    let none = Verdict { object: None, ..verdict() };
    assert!(check(none, PolicyKind::Validate, Operation::Delete).is_ok());
}
