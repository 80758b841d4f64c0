use innkeeper_contract::Kind;

use super::*;

fn object(status: &Value, own: &Value) -> Object {
    let text = json!({
        "metadata": {"name": "a", "namespace": "n", "generation": 2, "managedFields": [{
            "manager": "innkeeper", "operation": "Apply", "subresource": "status", "fieldsV1": {"f:status": own}
        }]},
        "status": status,
    });
    let kind = Kind::namespaced("quay.io/v1alpha1", "Podroute", "podroutes");
    Object::decode(&kind, &text.to_string(), None).unwrap()
}

fn condition(type_: &str, status: ConditionStatus) -> Condition {
    Condition { type_: type_.into(), status, reason: "Because".into(), message: String::new() }
}

fn now() -> Timestamp {
    "2026-11-21T10:00:00.123Z".parse().unwrap()
}

fn make(object: &Object, guest: Option<Value>, conditions: &[Condition]) -> Option<Value> {
    let guest = guest.map(|guest| guest.as_object().unwrap().clone());
    status(&Input {
        object,
        guest: guest.as_ref(),
        conditions,
        manage: true,
        schema: None,
        last_run: LastRun::default(),
        run_result: None,
        now: now(),
    })
}

const COUNTS: LastRun = LastRun { ok: 2, changed: 0, skipped: 1, failures: 0 };

/// The status of a run with these counts, and no guest's status.
fn with_result(object: &Object, result: ResultRenewal, last_run: LastRun) -> Option<Value> {
    let running = run_result::condition(&last_run);
    status(&Input {
        object,
        guest: Some(&Map::new()),
        conditions: &[running],
        manage: true,
        schema: None,
        last_run,
        run_result: Some(result),
        now: now(),
    })
}

/// A primary whose live status the host wrote, with this condition `Running`.
fn running(condition: &Value) -> Object {
    let own = json!({"f:observedGeneration": {}, "f:conditions": {"k:{\"type\":\"Running\"}": {}}});
    object(&json!({"observedGeneration": 2, "conditions": [condition]}), &own)
}

fn running_since(completion: &str) -> Value {
    json!({"type": "Running", "status": "True", "reason": "Successful",
        "message": "Awaiting next reconciliation",
        "lastTransitionTime": "2020-01-01T00:00:00Z", "observedGeneration": 2,
        "ansibleResult": {"ok": 2, "changed": 1, "skipped": 1, "failures": 0,
            "completion": completion}})
}

fn ready(status: &str, since: &str) -> Value {
    json!({"type": "Ready", "status": status, "reason": "Because", "message": "", "lastTransitionTime": since, "observedGeneration": 2})
}

fn own_ready() -> Value {
    json!({"f:observedGeneration": {}, "f:conditions": {"k:{\"type\":\"Ready\"}": {}}})
}

#[test]
fn first_status_has_times_in_whole_seconds() {
    let made = make(
        &object(&json!({}), &json!({})),
        Some(json!({"replicas": 3})),
        &[condition("Ready", ConditionStatus::True)],
    );
    assert_eq!(
        made.unwrap(),
        json!({"replicas": 3, "observedGeneration": 2, "conditions": [ready("True", "2026-11-21T10:00:00Z")]})
    );
}

#[test]
fn status_is_not_written_when_it_is_live() {
    let live =
        json!({"observedGeneration": 2, "conditions": [ready("True", "2020-01-01T00:00:00Z")]});
    assert_eq!(
        make(
            &object(&live, &own_ready()),
            Some(json!({})),
            &[condition("Ready", ConditionStatus::True)]
        ),
        None
    );
}

#[test]
fn transition_time_changes_only_with_the_status() {
    let live =
        json!({"observedGeneration": 1, "conditions": [ready("True", "2020-01-01T00:00:00Z")]});
    let object = object(&live, &own_ready());
    let same =
        make(&object, Some(json!({})), &[condition("Ready", ConditionStatus::True)]).unwrap();
    assert_eq!(same["conditions"][0]["lastTransitionTime"], "2020-01-01T00:00:00Z");
    let other =
        make(&object, Some(json!({})), &[condition("Ready", ConditionStatus::False)]).unwrap();
    assert_eq!(other["conditions"][0]["lastTransitionTime"], "2026-11-21T10:00:00Z");
}

#[test]
fn member_is_removed_when_the_guest_no_longer_gives_it() {
    let live = json!({"observedGeneration": 2, "phase": "setup"});
    let own = json!({"f:observedGeneration": {}, "f:phase": {}});
    let made = make(&object(&live, &own), Some(json!({})), &[]).unwrap();
    assert_eq!(made, json!({"observedGeneration": 2}));
}

#[test]
fn status_and_conditions_are_kept_when_the_guest_gives_none() {
    let live = json!({"observedGeneration": 2, "phase": "setup", "conditions": [ready("True", "2020-01-01T00:00:00Z")]});
    let own = json!({"f:observedGeneration": {}, "f:phase": {}, "f:conditions": {"k:{\"type\":\"Ready\"}": {}}});
    let made =
        make(&object(&live, &own), None, &[condition("Synced", ConditionStatus::False)]).unwrap();
    assert_eq!(made["phase"], "setup");
    assert_eq!(made["conditions"][0], ready("True", "2020-01-01T00:00:00Z"));
    assert_eq!(made["conditions"][1]["type"], "Synced");
}

#[test]
fn condition_becomes_unknown_when_the_guest_no_longer_gives_it() {
    let live =
        json!({"observedGeneration": 2, "conditions": [ready("True", "2020-01-01T00:00:00Z")]});
    let made = make(&object(&live, &own_ready()), Some(json!({})), &[]).unwrap();
    assert_eq!(made["conditions"][0]["status"], "Unknown");
    assert_eq!(made["conditions"][0]["reason"], NOT_REPORTED);
}

#[test]
fn members_and_conditions_of_others_are_ignored() {
    let live = json!({"observedGeneration": 2, "theirs": 1, "conditions": [
        ready("True", "2020-01-01T00:00:00Z"), {"type": "Theirs", "status": "True"}]});
    assert_eq!(
        make(
            &object(&live, &own_ready()),
            Some(json!({})),
            &[condition("Ready", ConditionStatus::True)]
        ),
        None
    );
}

#[test]
fn members_that_the_schema_would_prune_are_not_sent() {
    let object = object(&json!({"nodes": ["a"]}), &json!({"f:nodes": {}}));
    let schema = json!({"type": "object", "properties": {"nodes": {"type": "array", "items": {"type": "string"}}}});
    let guest = json!({"nodes": ["a"]});
    let made = status(&Input {
        object: &object,
        guest: guest.as_object(),
        conditions: &[condition("Ready", ConditionStatus::True)],
        manage: true,
        schema: Some(&schema),
        last_run: LastRun { ok: 1, changed: 1, ..LastRun::default() },
        run_result: None,
        now: now(),
    });
    assert_eq!(made, None);
}

#[test]
fn last_run_is_shown_when_the_schema_has_the_field() {
    let schema = json!({"type": "object", "properties": {
        "observedGeneration": {"type": "integer"},
        "lastRun": {"type": "object", "properties": {
            "ok": {"type": "integer"}, "changed": {"type": "integer"},
            "failures": {"type": "integer"}, "completionTime": {"type": "string"}}}}});
    let of = |object: &Object, changed, manage| {
        status(&Input {
            object,
            guest: Some(&Map::new()),
            conditions: &[],
            manage,
            schema: Some(&schema),
            last_run: LastRun { ok: 2, changed, ..LastRun::default() },
            run_result: None,
            now: now(),
        })
    };
    let first = of(&object(&json!({}), &json!({})), 2, true).unwrap();
    assert_eq!(
        first["lastRun"],
        json!({"ok": 2, "changed": 2, "failures": 0, "completionTime": "2026-11-21T10:00:00Z"})
    );
    let shown = object(&first, &json!({"f:observedGeneration": {}, "f:lastRun": {}}));
    assert_eq!(of(&shown, 0, true), None, "a run without changes writes nothing");
    assert_eq!(of(&shown, 1, true).unwrap()["lastRun"]["changed"], 1);
    assert_eq!(
        of(&object(&json!({}), &json!({})), 2, false),
        None,
        "the host does not manage this status"
    );
}

#[test]
fn result_of_the_run_is_written_once_and_renewed_when_it_is_due() {
    let quiet = ResultRenewal::default();
    let first = with_result(&object(&json!({}), &json!({})), quiet, COUNTS).unwrap();
    assert_eq!(
        first["conditions"][0]["ansibleResult"],
        json!({"ok": 2, "changed": 0, "skipped": 1, "failures": 0,
            "completion": "2026-11-21T10:00:00Z"})
    );
    let live = running(&running_since("2026-11-21T09:58:30Z"));
    assert_eq!(with_result(&live, quiet, COUNTS), None);
    let due = |seconds| ResultRenewal { age_min: Some(std::time::Duration::from_secs(seconds)) };
    assert_eq!(with_result(&live, due(91), COUNTS), None);
    let renewed = with_result(&live, due(90), COUNTS).unwrap();
    let mut expected = running_since("2026-11-21T10:00:00Z");
    expected["ansibleResult"]["changed"] = json!(0);
    assert_eq!(renewed["conditions"], json!([expected]));
}

#[test]
fn result_is_renewed_with_any_other_change_of_the_status() {
    let mut condition = running_since("2026-11-21T09:58:30Z");
    condition["observedGeneration"] = json!(1);
    let made = with_result(&running(&condition), ResultRenewal::default(), COUNTS).unwrap();
    let result = &made["conditions"][0]["ansibleResult"];
    assert_eq!(result["completion"], "2026-11-21T10:00:00Z");
    assert_eq!(result["changed"], 0);
}

#[test]
fn result_is_removed_when_it_is_no_longer_shown_unless_another_manager_has_a_status() {
    let live = running(&running_since("2026-11-21T09:58:30Z"));
    let made = make(&live, Some(json!({})), &[]).unwrap();
    assert_eq!(made, json!({"observedGeneration": 2}));

    let mut shared = live;
    shared.other_managers = [crate::object::OtherManager {
        time: "".into(),
        name: "ansible-operator".into(),
        subresource: "status".into(),
    }]
    .into();
    let made = make(&shared, Some(json!({})), &[]).unwrap();
    assert_eq!(made["conditions"][0]["status"], "Unknown");
    assert_eq!(made["conditions"][0].get("ansibleResult"), None);
}
