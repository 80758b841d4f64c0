//! The status of a primary, and whether the host has to write it.

use std::collections::BTreeSet;

use innkeeper_contract::{Condition, ConditionStatus};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::object::Operation;
use crate::{LastRun, Manager, Object, ResultRenewal, guest_status, last_run, run_result, schema};

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
    /// How the host shows the result of the last run; `None` if it does not. With it, the condition
    /// [`run_result::CONDITION`] must be one of the conditions.
    pub run_result: Option<ResultRenewal>,
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
    let renewed = input.last_run.to_result(&time(input.now));
    let kept = input
        .run_result
        .and_then(|result| result.kept(live_result(&live), input.last_run, input.now));
    let mut desired = Value::Object(desired);
    if input.run_result.is_some() {
        set_result(&mut desired, kept.as_ref().unwrap_or(&renewed));
    }
    if let Some(schema) = input.schema {
        schema::prune(schema, &mut desired);
    }
    if is_live(&desired, &live, &own) {
        return None;
    }
    // A write costs the same with the time of this run.
    if kept.is_some() {
        set_result(&mut desired, &renewed);
    }
    Some(desired)
}

/// The result of the last run in a live status.
fn live_result(live: &Map<String, Value>) -> Option<&Value> {
    let conditions = live.get("conditions")?.as_array()?;
    conditions.iter().find(|one| one["type"] == run_result::CONDITION)?.get(run_result::MEMBER)
}

/// Sets the result of the last run in the condition for it.
fn set_result(status: &mut Value, result: &Value) {
    let conditions = status.get_mut("conditions").and_then(Value::as_array_mut);
    let condition = conditions.and_then(|conditions| {
        conditions.iter_mut().find(|one| one["type"] == run_result::CONDITION)
    });
    if let Some(condition) = condition {
        condition[run_result::MEMBER] = result.clone();
    }
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
                let is_result = |one: &Value| one["type"] == run_result::CONDITION;
                value.as_array().is_some_and(|desired| {
                    desired.iter().all(|one| live.contains(one))
                        && (!own.conditions.contains(run_result::CONDITION)
                            || desired.iter().any(is_result))
                })
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
    let unreported = own
        .iter()
        .filter(|type_| !reported.contains(&***type_))
        .filter(|type_| !is_removable_result(input.object, type_, find(type_)));
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

/// Whether a condition holds a result that the host no longer shows, and the server removes it with
/// the host's fields: no other manager has written a status.
fn is_removable_result(object: &Object, type_: &str, live: Option<&Value>) -> bool {
    type_ == run_result::CONDITION
        && live.is_some_and(|live| live.get(run_result::MEMBER).is_some())
        && object.other_managers.iter().all(|other| &*other.subresource != "status")
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
    let head = serde_json::from_str::<Head>(&object.text.read()).ok();
    head.and_then(|head| head.status).unwrap_or_default()
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
    let Some(fields) =
        entry.and_then(|entry| serde_json::from_str::<Value>(&entry.fields.read()).ok())
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
mod tests;
