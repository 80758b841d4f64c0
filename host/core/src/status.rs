//! The status of a primary: what to write, if anything (rule 11).

use std::collections::BTreeSet;

use innkeeper_contract::{Condition, ConditionStatus};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::object::Operation;
use crate::{LastRun, Manager, Object, guest_status, last_run, schema};

/// All that a status is made from.
#[derive(Debug)]
pub struct Input<'a> {
    /// The primary as it is.
    pub object: &'a Object,
    /// What the guest gave; `None` keeps what it gave before.
    pub guest: Option<&'a Map<String, Value>>,
    /// The conditions, the host's and the guest's, one of a type.
    pub conditions: &'a [Condition],
    /// Write `observedGeneration`: the Module did not say `manageStatus: false`.
    pub manage: bool,
    /// The schema of `status`, where it is known: what it would prune is not sent.
    pub schema: Option<&'a Value>,
    /// The figures of the run, which a managed status shows if its schema has room for them.
    pub last_run: LastRun,
    /// The time, for transitions.
    pub now: Timestamp,
}

/// The reason of a condition that was given once and is given no longer. It stays in the
/// list, since dropping one that another manager touched is refused by the server.
pub const NOT_REPORTED: &str = "NotReported";

/// So many conditions stay that are given no longer: a guest that gives other types in each run
/// would fill the object. Twice as many as it may give at once, so that those of a run that fails
/// all stay.
const UNREPORTED_MAX: usize = 2 * guest_status::CONDITIONS_MAX;

/// The status to apply, whole; `None` if the live one is that already.
///
/// Statuses are compared by value: nobody normalises the status of a custom resource.
pub fn status(input: &Input<'_>) -> Option<Value> {
    let live = live_status(input.object);
    let ours = own_members(input.object);
    let mut wanted = match input.guest {
        Some(guest) => guest.clone(),
        None => live
            .iter()
            .filter(|(name, _)| ours.members.contains(*name))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect(),
    };
    wanted.remove("conditions");
    wanted.remove("observedGeneration");
    if input.manage {
        wanted.insert("observedGeneration".to_owned(), input.object.generation.into());
        if input.schema.is_some_and(last_run::has_last_run) {
            wanted.remove(last_run::MEMBER);
            let shown = input.last_run.to_status(live.get(last_run::MEMBER), &time(input.now));
            wanted.extend(shown.map(|shown| (last_run::MEMBER.to_owned(), shown)));
        }
    }
    let conditions = conditions(input, live.get("conditions"), &ours.conditions);
    if !conditions.is_empty() {
        wanted.insert("conditions".to_owned(), conditions.into());
    }
    let mut wanted = Value::Object(wanted);
    if let Some(schema) = input.schema {
        schema::prune(schema, &mut wanted);
    }
    (!is_live(&wanted, &live, &ours)).then_some(wanted)
}

/// The live status is what is wanted: every wanted member is there with that value, and
/// nothing else that we wrote.
fn is_live(wanted: &Value, live: &Map<String, Value>, ours: &OwnMembers) -> bool {
    let Some(wanted) = wanted.as_object() else { return true };
    ours.members.iter().all(|name| wanted.contains_key(name))
        && wanted.iter().all(|(name, value)| match (name.as_str(), live.get(name)) {
            ("conditions", Some(live)) => {
                // Others may have conditions of their own in the list.
                let live = live.as_array().map_or(&[][..], Vec::as_slice);
                value.as_array().is_some_and(|wanted| wanted.iter().all(|one| live.contains(one)))
            }
            (_, Some(live)) => live == value,
            (_, None) => false,
        })
}

fn conditions(input: &Input<'_>, live: Option<&Value>, ours: &BTreeSet<String>) -> Vec<Value> {
    let live = live.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let find = |type_: &str| live.iter().find(|condition| condition["type"] == type_);
    let mut all: Vec<Condition> = input.conditions.to_vec();
    let reported: BTreeSet<&str> = input.conditions.iter().map(|one| &*one.type_).collect();
    let unreported = ours.iter().filter(|type_| !reported.contains(&***type_));
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

/// A condition that was given before: it keeps its value while the guest says nothing (it
/// failed), and is unknown once the guest has spoken without it.
fn no_longer_reported(type_: &str, live: Option<&Value>, guest_is_silent: bool) -> Condition {
    if guest_is_silent && let Some(condition) = live.and_then(live_condition) {
        return condition;
    }
    Condition {
        type_: type_.to_owned(),
        status: ConditionStatus::Unknown,
        reason: NOT_REPORTED.to_owned(),
        message: "The module no longer reports this condition.".to_owned(),
    }
}

/// Kubernetes' form of a time: RFC 3339 in whole seconds.
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

/// The conditions in the live status of an object, without their times; what is no condition is
/// left out.
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

/// What our entry on the status subresource holds.
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

    fn object(status: &Value, ours: &Value) -> Object {
        let text = json!({
            "metadata": {"name": "a", "namespace": "n", "generation": 2, "managedFields": [{
                "manager": "innkeeper", "operation": "Apply", "subresource": "status", "fieldsV1": {"f:status": ours}
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

    fn ours_ready() -> Value {
        json!({"f:observedGeneration": {}, "f:conditions": {"k:{\"type\":\"Ready\"}": {}}})
    }

    #[test]
    fn a_first_status_has_times_in_whole_seconds() {
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
    fn a_status_that_is_live_is_not_written() {
        let live =
            json!({"observedGeneration": 2, "conditions": [ready("True", "2020-01-01T00:00:00Z")]});
        assert_eq!(
            make(
                &object(&live, &ours_ready()),
                Some(json!({})),
                &[condition("Ready", ConditionStatus::True)]
            ),
            None
        );
    }

    #[test]
    fn the_time_of_a_transition_changes_with_the_status_only() {
        let live =
            json!({"observedGeneration": 1, "conditions": [ready("True", "2020-01-01T00:00:00Z")]});
        let object = object(&live, &ours_ready());
        let same =
            make(&object, Some(json!({})), &[condition("Ready", ConditionStatus::True)]).unwrap();
        assert_eq!(same["conditions"][0]["lastTransitionTime"], "2020-01-01T00:00:00Z");
        let other =
            make(&object, Some(json!({})), &[condition("Ready", ConditionStatus::False)]).unwrap();
        assert_eq!(other["conditions"][0]["lastTransitionTime"], "2026-11-21T10:00:00Z");
    }

    #[test]
    fn a_member_that_is_no_longer_given_is_taken_away() {
        let live = json!({"observedGeneration": 2, "phase": "setup"});
        let ours = json!({"f:observedGeneration": {}, "f:phase": {}});
        let made = make(&object(&live, &ours), Some(json!({})), &[]).unwrap();
        assert_eq!(made, json!({"observedGeneration": 2}));
    }

    #[test]
    fn a_silent_guest_keeps_its_status_and_its_conditions() {
        let live = json!({"observedGeneration": 2, "phase": "setup", "conditions": [ready("True", "2020-01-01T00:00:00Z")]});
        let ours = json!({"f:observedGeneration": {}, "f:phase": {}, "f:conditions": {"k:{\"type\":\"Ready\"}": {}}});
        let made =
            make(&object(&live, &ours), None, &[condition("Synced", ConditionStatus::False)])
                .unwrap();
        assert_eq!(made["phase"], "setup");
        assert_eq!(made["conditions"][0], ready("True", "2020-01-01T00:00:00Z"));
        assert_eq!(made["conditions"][1]["type"], "Synced");
    }

    #[test]
    fn a_condition_once_given_stays_as_unknown() {
        let live =
            json!({"observedGeneration": 2, "conditions": [ready("True", "2020-01-01T00:00:00Z")]});
        let made = make(&object(&live, &ours_ready()), Some(json!({})), &[]).unwrap();
        assert_eq!(made["conditions"][0]["status"], "Unknown");
        assert_eq!(made["conditions"][0]["reason"], NOT_REPORTED);
    }

    #[test]
    fn what_others_write_into_the_status_is_theirs() {
        let live = json!({"observedGeneration": 2, "theirs": 1, "conditions": [
            ready("True", "2020-01-01T00:00:00Z"), {"type": "Theirs", "status": "True"}]});
        assert_eq!(
            make(
                &object(&live, &ours_ready()),
                Some(json!({})),
                &[condition("Ready", ConditionStatus::True)]
            ),
            None
        );
    }

    #[test]
    fn what_the_schema_would_prune_is_not_sent() {
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
    fn the_figures_of_a_run_are_shown_where_the_schema_has_room() {
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
        let told = object(&first, &json!({"f:observedGeneration": {}, "f:lastRun": {}}));
        assert_eq!(of(&told, 0, true), None, "a run that changes nothing writes nothing");
        assert_eq!(of(&told, 1, true).unwrap()["lastRun"]["changed"], 1);
        assert_eq!(of(&object(&json!({}), &json!({})), 2, false), None, "not the host's to write");
    }
}
