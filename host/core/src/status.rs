//! The status of a primary, and whether the host has to write it.

use std::collections::BTreeSet;

use innkeeper_contract::{Condition, ConditionStatus};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::object::Operation;
use crate::{LastRun, Manager, Object, guest_status, last_run, schema};

/// The input of a status.
#[derive(Debug)]
pub struct Input<'a> {
    /// The live primary.
    pub object: &'a Object,
    /// The status of the guest; `None` keeps the one that it gave before.
    pub guest: Option<&'a Map<String, Value>>,
    /// The conditions of the host and of the guest, one for each type.
    pub conditions: &'a [Condition],
    /// Whether to write `observedGeneration`: not if the Module has `manageStatus: false`.
    pub manage: bool,
    /// The schema of `status`, if the host knows it: the host omits members that it would prune.
    pub schema: Option<&'a Value>,
    /// The counts of the last run, for a managed status whose schema has the field.
    pub last_run: LastRun,
    /// The current time, for transitions.
    pub now: Timestamp,
}

/// The reason of a condition that the guest gave before and no longer gives. The condition stays,
/// since the server refuses to remove one that another manager has changed.
pub const NOT_REPORTED: &str = "NotReported";

/// The most such conditions that stay: a guest that gives other types in each run would fill the
/// object. Twice as many as in one result, so that all conditions of a failed run stay.
const UNREPORTED_MAX: usize = 2 * guest_status::CONDITIONS_MAX;

/// Returns the whole status to apply; `None` if the live status is the same.
///
/// It compares statuses by value, since the API server stores the status of a custom resource as
/// sent.
pub fn status(input: &Input<'_>) -> Option<Value> {
    let live = live_status(input.object);
    let own = own_members(input.object);
    let mut desired = match input.guest {
        Some(guest) => guest.clone(),
        None => live
            .iter()
            .filter(|(name, _)| own.members.contains(*name))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect(),
    };
    desired.remove("conditions");
    desired.remove("observedGeneration");
    if input.manage {
        desired.insert("observedGeneration".to_owned(), input.object.generation.into());
        if input.schema.is_some_and(last_run::has_last_run) {
            desired.remove(last_run::MEMBER);
            let shown = input.last_run.to_status(live.get(last_run::MEMBER), &time(input.now));
            desired.extend(shown.map(|shown| (last_run::MEMBER.to_owned(), shown)));
        }
    }
    let conditions = conditions(input, live.get("conditions"), &own.conditions);
    if !conditions.is_empty() {
        desired.insert("conditions".to_owned(), conditions.into());
    }
    let mut desired = Value::Object(desired);
    if let Some(schema) = input.schema {
        schema::prune(schema, &mut desired);
    }
    (!is_live(&desired, &live, &own)).then_some(desired)
}

/// Whether the live status has every desired member with its value, and no other member of the
/// host.
fn is_live(desired: &Value, live: &Map<String, Value>, own: &OwnMembers) -> bool {
    let Some(desired) = desired.as_object() else { return true };
    own.members.iter().all(|name| desired.contains_key(name))
        && desired.iter().all(|(name, value)| match (name.as_str(), live.get(name)) {
            ("conditions", Some(live)) => {
                // Other managers may have conditions in the list.
                let live = live.as_array().map_or(&[][..], Vec::as_slice);
                value.as_array().is_some_and(|desired| desired.iter().all(|one| live.contains(one)))
            }
            (_, Some(live)) => live == value,
            (_, None) => false,
        })
}

/// The conditions to apply: the given ones, and those that are no longer reported.
fn conditions(input: &Input<'_>, live: Option<&Value>, own: &BTreeSet<String>) -> Vec<Value> {
    let live = live.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let find = |type_: &str| live.iter().find(|condition| condition["type"] == type_);
    let mut all: Vec<Condition> = input.conditions.to_vec();
    let reported: BTreeSet<&str> = input.conditions.iter().map(|one| &*one.type_).collect();
    let unreported = own.iter().filter(|type_| !reported.contains(&***type_));
    for type_ in unreported.take(UNREPORTED_MAX) {
        all.push(no_longer_reported(type_, find(type_), input.guest.is_none()));
    }
    all.sort_by(|a, b| a.type_.cmp(&b.type_));
    all.iter()
        .map(|condition| {
            let status = condition.status.as_str();
            let since = find(&condition.type_)
                .filter(|live| live["status"] == status)
                .and_then(|live| live["lastTransitionTime"].as_str())
                .map_or_else(|| time(input.now), str::to_owned);
            let mut value = json!({
                "type": condition.type_,
                "status": status,
                "reason": condition.reason,
                "message": condition.message,
                "lastTransitionTime": since,
            });
            if input.manage {
                value["observedGeneration"] = input.object.generation.into();
            }
            value
        })
        .collect()
}

/// A condition that the guest gave before: it keeps its value while the guest gives no status (it
/// failed), and becomes Unknown when the guest gives a status without it.
fn no_longer_reported(type_: &str, live: Option<&Value>, keeps_value: bool) -> Condition {
    if keeps_value && let Some(condition) = live.and_then(live_condition) {
        return condition;
    }
    Condition {
        type_: type_.to_owned(),
        status: ConditionStatus::Unknown,
        reason: NOT_REPORTED.to_owned(),
        message: "The module no longer reports this condition.".to_owned(),
    }
}

/// Formats a time as Kubernetes does: RFC 3339 in whole seconds.
pub fn time(at: Timestamp) -> String {
    Timestamp::from_second(at.as_second()).unwrap_or(at).to_string()
}

/// The live status of an object; empty if it has none.
pub fn live_status(object: &Object) -> Map<String, Value> {
    #[derive(serde::Deserialize)]
    struct Head {
        #[serde(default)]
        status: Option<Map<String, Value>>,
    }
    serde_json::from_str::<Head>(&object.text).ok().and_then(|head| head.status).unwrap_or_default()
}

/// The conditions in the live status of an object, without their times. Items that are no
/// conditions are omitted.
pub fn live_conditions(object: &Object) -> Vec<Condition> {
    let status = live_status(object);
    let conditions = status.get("conditions").and_then(Value::as_array);
    conditions.into_iter().flatten().filter_map(live_condition).collect()
}

fn live_condition(value: &Value) -> Option<Condition> {
    let text = |name: &str| value[name].as_str().map(str::to_owned);
    Some(Condition {
        type_: text("type")?,
        status: match value["status"].as_str()? {
            "True" => ConditionStatus::True,
            "False" => ConditionStatus::False,
            _ => ConditionStatus::Unknown,
        },
        reason: text("reason").unwrap_or_default(),
        message: text("message").unwrap_or_default(),
    })
}

/// The members and the types of conditions that the host's entry for the status holds.
#[derive(Default)]
struct OwnMembers {
    members: BTreeSet<String>,
    conditions: BTreeSet<String>,
}

fn own_members(object: &Object) -> OwnMembers {
    let entry = object.entries.iter().find(|entry| {
        entry.manager == Manager::Host
            && entry.operation == Operation::Apply
            && &*entry.subresource == "status"
    });
    let Some(fields) = entry.and_then(|entry| serde_json::from_str::<Value>(&entry.fields).ok())
    else {
        return OwnMembers::default();
    };
    let keys = |value: &Value, prefix: &str| -> BTreeSet<String> {
        let names = value.as_object().into_iter().flat_map(Map::keys);
        names.filter_map(|name| name.strip_prefix(prefix)).map(str::to_owned).collect()
    };
    let status = &fields["f:status"];
    OwnMembers {
        members: keys(status, "f:"),
        conditions: keys(&status["f:conditions"], "k:")
            .iter()
            .filter_map(|key| serde_json::from_str::<Value>(key).ok())
            .filter_map(|key| key["type"].as_str().map(str::to_owned))
            .collect(),
    }
}

#[cfg(test)]
mod tests {
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
            now: now(),
        })
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
        let made = make(&object(&live, &own), None, &[condition("Synced", ConditionStatus::False)])
            .unwrap();
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
            last_run: LastRun { ok: 1, changed: 1, failures: 0 },
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
                last_run: LastRun { ok: 2, changed, failures: 0 },
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
}
