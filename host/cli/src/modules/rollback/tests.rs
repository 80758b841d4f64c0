//! Which rollbacks are planned, and why others are refused.

use expect_test::{Expect, expect};
use serde_json::Value;

use super::*;

fn digest(name: &str) -> String {
    name.repeat(64)
}

fn earlier(name: &str, version: &str) -> Value {
    json!({"digest": digest(name), "configMap": format!("web-copy-{name}"), "version": version})
}

fn rejected(name: &str, message: &str) -> Value {
    json!({"digest": digest(name), "reason": "Rejected", "message": message})
}

fn module(status: &Value) -> Module {
    Module::from_value(&json!({
        "apiVersion": "innkeeper.dev/v1alpha1", "kind": "Module",
        "metadata": {"name": "web", "annotations": {APPROVE_ANNOTATION: digest("e")}},
        "spec": {"source": {"configMap": {"name": "web"}}, "serviceAccountName": "web"},
        "status": status,
    }))
    .unwrap()
}

fn refusal(status: &Value, digest: Option<&str>, expected: &Expect) {
    let refused = Rollback::plan(&module(status), digest).unwrap_err();
    expected.assert_eq(&format!("{refused}\n"));
}

#[test]
fn rollback_returns_to_the_previous_revision_or_to_a_named_one() {
    let status = json!({"digest": digest("c"), "previous": earlier("b", "0.2.0"),
        "history": [earlier("b", "0.2.0"), earlier("a", "0.1.0")]});
    for (named, expected) in [(None, "b"), (Some("aaaaaaaaaaaa"), "a"), (Some("BBBBBBBBBBBB"), "b")]
    {
        let Rollback { from, to } = Rollback::plan(&module(&status), named).unwrap();
        assert_eq!((from, to.digest), (digest("c"), digest(expected)));
    }
    // The status of an older host.
    let status =
        json!({"digest": digest("c"), "previous": {"digest": digest("b"), "configMap": "x"}});
    let rollback = Rollback::plan(&module(&status), Some("bbbbbbbbbbbb")).unwrap();
    assert_eq!(rollback.to.config_map, "x");
}

#[test]
fn second_rollback_lists_the_revisions_and_does_not_go_forward() {
    let status = json!({"digest": digest("a"), "history": [earlier("b", "0.2.0")],
        "rejected": [rejected("b", "a user has rejected it")]});
    refusal(
        &status,
        None,
        &expect![[r#"
        cannot roll back web: no revision that was active before is left to return to; name one of these, or run `innkeeper push` with another component:
          DIGEST        VERSION  STATE
          bbbbbbbbbbbb  0.2.0    rejected (a user has rejected it), needs an approval first
    "#]],
    );
    refusal(
        &status,
        Some(&digest("d")),
        &expect![[r#"
        cannot roll back web to dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd: the host keeps no such revision; name one of these, or run `innkeeper push` with another component:
          DIGEST        VERSION  STATE
          bbbbbbbbbbbb  0.2.0    rejected (a user has rejected it), needs an approval first
    "#]],
    );
    refusal(
        &json!({"digest": digest("a")}),
        None,
        &expect![[r#"
        cannot roll back web: no revision that was active before is left to return to; the host keeps no earlier revision; run `innkeeper push` with another component
    "#]],
    );
    refusal(
        &json!({}),
        None,
        &expect![[r#"
        cannot roll back web: no revision is active; run `innkeeper push`
    "#]],
    );
    refusal(
        &status,
        Some("aaaaaaaaaaaa"),
        &expect![[r#"
        cannot roll back web to aaaaaaaaaaaa: this revision is active
    "#]],
    );
}

#[test]
fn rejected_revision_needs_an_approval_that_the_host_has_taken() {
    let status = json!({"digest": digest("a"), "history": [earlier("b", "0.2.0"), earlier("e", "")],
        "rejected": [rejected("b", "it failed"), rejected("e", "it failed")]});
    refusal(
        &status,
        Some(&digest("b")),
        &expect![[r#"
        cannot roll back web to bbbbbbbbbbbb: it is rejected (it failed); run `innkeeper modules approve web bbbbbbbbbbbb` first, then this command again
    "#]],
    );
    refusal(
        &status,
        Some(&digest("e")),
        &expect![[r#"
        cannot roll back web to eeeeeeeeeeee: the operator has not observed its approval; check that it runs
    "#]],
    );
}

#[test]
fn candidate_on_its_way_is_dropped_by_reject_and_not_by_a_rollback() {
    let status = |state: &str| {
        json!({"digest": digest("b"), "previous": earlier("a", "0.1.0"),
            "candidate": {"digest": digest("c"), "state": state, "version": "0.3.0"}})
    };
    refusal(
        &status("Held"),
        None,
        &expect![[r#"
        cannot roll back web: revision cccccccccccc (0.3.0) is held and not active; run `innkeeper modules reject web` to drop it, or `innkeeper modules approve web` to activate it
    "#]],
    );
    refusal(
        &status("Held"),
        Some(&digest("a")),
        &expect![[r#"
        cannot roll back web: revision cccccccccccc (0.3.0) is held and not active; run `innkeeper modules reject web` to drop it, or `innkeeper modules approve web` to activate it
    "#]],
    );
    refusal(
        &status("Previewing"),
        None,
        &expect![[r#"
        cannot roll back web: revision cccccccccccc (0.3.0) is on its way (Previewing); wait until it is active, or run `innkeeper modules reject web cccccccccccc` to drop it
    "#]],
    );
    assert!(Rollback::plan(&module(&status("Rejected")), None).is_ok());
}
