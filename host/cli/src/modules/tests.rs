//! Descriptions of Modules, and the revisions that users name.

use expect_test::expect;
use innkeeper_core::foreign;
use serde_json::json;

use super::*;

fn module(status: &Value) -> Module {
    Module::from_value(&json!({
        "apiVersion": "innkeeper.dev/v1alpha1", "kind": "Module",
        "metadata": {"name": "web"},
        "spec": {"source": {"configMap": {"name": "web"}}, "serviceAccountName": "web"},
        "status": status,
    }))
    .unwrap()
}

fn held() -> Module {
    module(&json!({
        "digest": "a".repeat(64),
        "guest": {"name": "podroute", "version": "0.1.0"},
        "preview": {"digest": "a".repeat(64), "primaries": 6, "previewed": 6, "creates": 0,
            "changes": 2, "deletes": 0, "failures": 0, "examples": [
            {"action": "Change", "object": "Deployment web/b", "fields": [".spec.replicas"]}]},
        "previous": {"digest": "b".repeat(64), "configMap": "web-copy-bbbbbbbbbbbb"},
        "history": [
            {"digest": "e".repeat(64), "configMap": "web-copy-eeeeeeeeeeee", "version": "0.3.0"},
            {"digest": "b".repeat(64), "configMap": "web-copy-bbbbbbbbbbbb", "version": "0.0.9"}],
        "candidate": {"digest": "c".repeat(64), "state": "Held", "reason": "WouldDelete",
            "version": "0.2.0",
            "message": "it would delete 1 object", "primaries": 7, "previewed": 7,
            "creates": 0, "changes": 7, "deletes": 1, "failures": 0, "examples": [
            {"action": "Delete", "object": "Service web/a"},
            {"action": "Change", "object": "Deployment web/a", "fields": [".spec.replicas"]}]},
        "rejected": [
            {"digest": "d".repeat(64), "reason": "RolledBack", "message": "it failed"},
            {"digest": "e".repeat(64), "reason": "Rejected", "message": "a user has rejected it",
                "version": "0.3.0"}],
        "conditions": [{"type": "Ready", "status": "False", "lastTransitionTime": "2026-01-01T00:00:00Z",
            "reason": "Held", "message": "it is held"}],
    }))
}

#[test]
fn describe_shows_revisions_previews_and_conditions() {
    expect![[r#"
        Name:       web
        Active:     podroute 0.1.0 (aaaaaaaaaaaa)
          preview before its activation for 6 of 6 primaries: 0 to create, 2 to change, 0 to delete, 0 failing
          change   Deployment web/b .spec.replicas
        Earlier:    eeeeeeeeeeee 0.3.0 (ConfigMap innkeeper-modules/web-copy-eeeeeeeeeeee)
        Previous:   bbbbbbbbbbbb 0.0.9 (ConfigMap innkeeper-modules/web-copy-bbbbbbbbbbbb)
        Candidate:  cccccccccccc 0.2.0 Held WouldDelete: it would delete 1 object
          digest cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc
          preview for 7 of 7 primaries: 0 to create, 7 to change, 1 to delete, 0 failing
          delete   Service web/a
          change   Deployment web/a .spec.replicas
        Rejected:   dddddddddddd RolledBack: it failed
        Rejected:   eeeeeeeeeeee 0.3.0: a user has rejected it
        Conditions:
          Ready=False Held: it is held
    "#]]
    .assert_eq(describe(&held()).text());
}

#[test]
fn active_revision_cannot_be_rejected() {
    let error = check_rejectable(&held(), &"a".repeat(64)).unwrap_err().to_string();
    assert!(error.starts_with("cannot reject aaaaaaaaaaaa: it is the active revision"), "{error}");
    assert!(error.contains("`innkeeper modules rollback web`"), "{error}");
    check_rejectable(&held(), &"c".repeat(64)).unwrap();
}

#[test]
fn table_has_a_row_for_each_module_with_its_active_and_candidate_revision() {
    let mut new = module(&json!({"candidate": {"digest": "f".repeat(64), "state": "Rejected",
        "reason": "Rejected", "message": "a user has rejected it"}}));
    new.metadata.name = "new".to_owned();
    let mut quiet = module(&json!({"digest": "a".repeat(64),
        "guest": {"name": "labels", "version": ""},
        "conditions": [{"type": "Ready", "status": "True", "reason": "RevisionActive",
            "message": "m", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}));
    quiet.metadata.name = "quiet".to_owned();
    expect![[r#"
        NAME   GUEST     VERSION  DIGEST        READY    REASON          CANDIDATE
        web    podroute  0.1.0    aaaaaaaaaaaa  False    Held            cccccccccccc 0.2.0 Held WouldDelete
        new                                     Unknown                  ffffffffffff Rejected
        quiet  labels             aaaaaaaaaaaa  True     RevisionActive
    "#]]
    .assert_eq(table(vec![held(), new, quiet]).text());
}

#[test]
fn preview_of_one_primary_is_counted_in_the_singular() {
    let one = module(&json!({"candidate": {"digest": "c".repeat(64), "state": "Previewing",
        "primaries": 1, "previewed": 0, "creates": 0, "changes": 0, "deletes": 0,
        "failures": 0}}));
    let text = describe(&one).text().to_owned();
    assert!(text.contains("  preview for 0 of 1 primary: 0 to create, "), "{text}");
}

#[test]
fn state_and_reason_are_shown_once_when_they_are_the_same() {
    let rejected = module(&json!({"candidate": {"digest": "c".repeat(64), "state": "Rejected",
        "reason": "Rejected", "message": "a user has rejected it"}}));
    expect![[r#"
        Name:       web
        Active:     <none>
        Candidate:  cccccccccccc Rejected: a user has rejected it
          digest cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc
        Conditions:
    "#]]
    .assert_eq(describe(&rejected).text());
    let candidate = rejected.status.unwrap().candidate.unwrap();
    assert_eq!(state_and_reason(&candidate), "Rejected");
}

#[test]
fn revision_is_found_by_its_first_digits_or_when_it_is_held() {
    let resolve =
        |digest: Option<&str>| resolve_digest(&held(), digest).map_err(|error| error.to_string());
    assert_eq!(resolve(None), Ok("c".repeat(64)));
    assert_eq!(resolve(Some("dddddddddddd")), Ok("d".repeat(64)));
    assert_eq!(resolve(Some("eeeeeeeeeeee")), Ok("e".repeat(64)));
    assert_eq!(resolve(Some(&"f".repeat(64))), Ok("f".repeat(64)));
    assert!(resolve(Some("ffffffffffff")).unwrap_err().contains("all 64 digits"));
    assert!(resolve(Some("d")).unwrap_err().contains("first 12 hex digits"));
    assert!(resolve(Some(&"d".repeat(65))).unwrap_err().contains("first 12 hex digits"));
    assert_eq!(resolve(Some("DDDDDDDDDDDD")), Ok("d".repeat(64)));
    let nothing = resolve_digest(&module(&json!({})), None).unwrap_err();
    assert!(nothing.to_string().contains("no revision of web is held"));
}

#[test]
fn held_change_of_definitions_is_what_is_approved_unless_a_revision_is_held_too() {
    let change = "f".repeat(64);
    let of = |reason: &str| {
        held_change(&module(&json!({"heldCRDChange": change,
            "candidate": {"digest": "c".repeat(64), "state": "Held", "reason": reason}})))
    };
    assert_eq!(of("WouldNarrowCRD").unwrap(), Some(change.clone()));
    let error = of("WouldDelete").unwrap_err().to_string();
    assert!(error.contains(&change) && error.contains(&"c".repeat(64)), "{error}");
    assert_eq!(held_change(&held()).unwrap(), None);
}

#[test]
fn held_settings_of_a_policy_are_shown_and_approved_by_their_own_digest() {
    let digest = "d".repeat(64);
    let preview = json!({"objects": 40, "reviewed": 40, "requests": 3, "newlyDenied": 2,
        "newlyAllowed": 0, "newlyChanged": 0, "newlyFailing": 0,
        "leftOut": ["secrets: the account may not list it"],
        "examples": [{"decision": "Deny", "object": "Deployment web/a",
            "details": ["the label team is missing"]}]});
    let status = json!({"policy": {"kind": "Validate", "mode": "Warn",
        "heldSettings": {"digest": digest, "reason": "WouldDeny", "message": "it would deny 2",
            "preview": preview}}});
    let held = module(&status);
    expect![[r#"
        Name:       web
        Active:     <none>
        Policy:     Validate, Warn
        Settings:   Held WouldDeny: it would deny 2
          digest dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd
          reviews of 40 of 40 existing objects and 3 recent requests: 2 newly denied, 0 newly allowed, 0 changed differently, 0 newly failing
          deny     Deployment web/a the label team is missing
          left out secrets: the account may not list it
        Conditions:
    "#]]
    .assert_eq(describe(&held).text());
    assert_eq!(held_change(&held).unwrap(), Some(digest.clone()));
    let mut both = status;
    both["heldCRDChange"] = json!("e".repeat(64));
    let error = held_change(&module(&both)).unwrap_err().to_string();
    assert!(error.contains(&digest) && error.contains(&"e".repeat(64)), "{error}");
}

#[test]
fn policy_is_shown_with_its_mode_and_what_the_audit_has_found() {
    let policy = json!({"kind": "Validate", "mode": "Enforce", "failurePolicy": "Fail",
        "replicas": "2/2", "webhooks": "validatingwebhookconfigurations/innkeeper-policy-web",
        "audit": {"passed": 40, "denied": 2, "warned": 0, "failed": 1, "problem": "no right",
            "completed": "2026-01-01T00:00:00Z"}});
    expect![[r#"
        Name:       web
        Active:     <none>
        Policy:     Validate, Enforce, failurePolicy Fail, on 2/2 replicas
          validatingwebhookconfigurations/innkeeper-policy-web
        Audit:      40 passed, 2 denied, 0 warned, 1 failed; completed 2026-01-01T00:00:00Z
          no right
        Conditions:
    "#]]
    .assert_eq(describe(&module(&json!({ "policy": policy }))).text());
}

#[test]
fn first_digits_are_refused_when_several_revisions_have_them() {
    let (one, other) = (format!("{}1", "c".repeat(63)), format!("{}2", "c".repeat(63)));
    let module = module(&json!({
        "candidate": {"digest": one, "state": "Held"},
        "rejected": [{"digest": other, "reason": "Rejected", "message": "no"}]}));
    for digits in [12, 63] {
        let error = resolve_digest(&module, Some(&one[..digits])).unwrap_err().to_string();
        assert!(error.contains(&one) && error.contains(&other), "{error}");
    }
    assert_eq!(resolve_digest(&module, Some(&one)).unwrap(), one);
    assert_eq!(resolve_digest(&module, Some(&other)).unwrap(), other);
}

#[test]
fn status_is_shown_as_text_when_it_has_commands_for_terminals() {
    let text = "a\nName:       other\u{1b}[2J\u{9b}1A\u{202e}";
    let hostile = module(&json!({
        "digest": "a".repeat(64),
        "guest": {"name": text, "version": text},
        "previous": {"digest": "b".repeat(64), "configMap": text, "version": text},
        "candidate": {"digest": "c".repeat(64), "state": text, "reason": text, "message": text,
            "version": text,
            "primaries": 1, "previewed": 1, "examples": [
            {"action": text, "object": text, "fields": [text]}]},
        "rejected": [{"digest": text, "reason": text, "message": text, "version": text}],
        "policy": {"kind": text, "mode": text, "failurePolicy": text, "replicas": text,
            "webhooks": text, "audit": {"completed": text, "problem": text}},
        "conditions": [{"type": text, "status": text, "reason": text, "message": text,
            "lastTransitionTime": "2026-01-01T00:00:00Z"}],
    }));
    let page = describe(&hostile);
    let lines: Vec<&str> = page.text().lines().collect();
    assert_eq!(lines.len(), 14, "{lines:#?}");
    assert_eq!(lines.iter().filter(|line| line.starts_with("Name:")).count(), 1);
    assert!(page.text().chars().all(|c| c == '\n' || foreign::is_visible(c)), "{lines:#?}");
}

#[test]
fn approval_is_refused_when_the_definition_is_incompatible() {
    let refused = module(&json!({"candidate": {"digest": "c".repeat(64), "state": "Rejected",
        "reason": "CRDIncompatible", "message": ".spec.color is gone"}}));
    assert_eq!(
        check_approvable(&refused, &"c".repeat(64)).unwrap_err().to_string(),
        "cannot approve cccccccccccc (CRDIncompatible): .spec.color is gone"
    );
    assert!(check_approvable(&refused, &"d".repeat(64)).is_ok());
    assert!(check_approvable(&held(), &"c".repeat(64)).is_ok());
}
