//! Reporting: the primary's status and conditions, and Events on transitions.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use innkeeper_cluster::client::Force;
use innkeeper_cluster::events::{Published, Regarding};
use innkeeper_cluster::{ApiError, Caches};
use innkeeper_contract::{Condition, ConditionStatus, Event, EventType, ReadinessState};
use innkeeper_core::{
    LastRun, Manager, Object, ObjectRef, foreign, guest_status, readiness, status,
};
use serde_json::{Map, Value};

use crate::modules::active_module::ActiveModule;
use crate::modules::crds::StatusSchema;
use crate::modules::granted_secrets::GrantedSecrets;
use crate::primary_state::PrimaryState;
use crate::problem::{Problem, Problems, Retry};
use crate::queue::ReconcileRequest;
use crate::shared::{self, Shared};
use crate::stats::ObjectChange;

/// Conditions that the host writes on a primary.
pub mod condition {
    /// Everything that the guest wants is applied.
    pub const SYNCED: &str = "Synced";
    /// What was made works. The guest's word goes before the host's.
    pub const READY: &str = "Ready";
    /// All kinds that the guest can use are served; only on primaries whose guest has optional
    /// ones.
    pub const KINDS_AVAILABLE: &str = "KindsAvailable";
}

/// What a burst of rounds came to, of its last round.
#[derive(Debug, Default)]
pub struct StatusInput {
    /// What the guest gave for the status; `None` if it said nothing.
    pub status: Option<Map<String, Value>>,
    /// The guest's conditions.
    pub conditions: Vec<Condition>,
    /// The guest's events.
    pub events: Vec<Event>,
    /// What stands in the way.
    pub problems: Problems,
    /// What is left undone since the primary is paused; `None` if it is not.
    pub paused: Option<Vec<String>>,
    /// The objects that the primary owns.
    pub owned: Vec<(ObjectRef, Arc<Object>)>,
    /// Optional kinds that are not served.
    pub unserved: Vec<String>,
    /// Objects that were taken over.
    pub adopted: Vec<ObjectRef>,
    /// Objects that were created, changed or deleted, in all rounds.
    pub changed: BTreeMap<ObjectRef, ObjectChange>,
    /// How many of the objects that the guest wants are as it wants them.
    pub up_to_date: usize,
    /// What the last round granted, to be masked in whatever is said.
    pub granted: Arc<GrantedSecrets>,
}

impl StatusInput {
    fn figures(&self) -> LastRun {
        LastRun {
            ok: self.up_to_date,
            changed: self.changed.len(),
            failures: self.problems.0.len(),
        }
    }
}

/// The host's conditions and the guest's, the guest's word first. Types that differ in case only
/// are one type: `kubectl wait` compares them without regard to case, and would take the guest's
/// for the host's.
pub fn conditions(status_input: &StatusInput, has_optional: bool) -> Vec<Condition> {
    let mut all: BTreeMap<String, Condition> = BTreeMap::new();
    let mut add = |condition: Condition| {
        all.entry(condition.type_.to_ascii_lowercase()).or_insert(condition);
    };
    add(synced(status_input));
    for condition in &status_input.conditions {
        add(condition.clone());
    }
    if status_input.status.is_some() || status_input.problems.is_empty() {
        add(ready(status_input));
    }
    if has_optional {
        add(served(status_input));
    }
    all.into_values().collect()
}

/// Of several conditions of one type the first: a list has each type once, and the API server
/// refuses one that has not.
fn first_of_each_type(conditions: &[Condition]) -> Vec<Condition> {
    let mut types = BTreeSet::new();
    conditions.iter().filter(|one| types.insert(one.type_.to_ascii_lowercase())).cloned().collect()
}

fn synced(status_input: &StatusInput) -> Condition {
    let (type_, granted) = (condition::SYNCED, &status_input.granted);
    if let Some(undone) = &status_input.paused {
        let message = match undone.as_slice() {
            [] => "The primary is paused; nothing is left undone.".to_owned(),
            undone => format!("The primary is paused; left undone: {}.", undone.join("; ")),
        };
        return make(granted, type_, ConditionStatus::False, "Paused", &message);
    }
    match status_input.problems.reason() {
        Some(reason) => {
            make(granted, type_, ConditionStatus::False, reason, &status_input.problems.message())
        }
        None => {
            make(granted, type_, ConditionStatus::True, "Applied", "Everything wanted is applied.")
        }
    }
}

fn ready(status_input: &StatusInput) -> Condition {
    let (type_, granted) = (condition::READY, &status_input.granted);
    if !status_input.problems.is_empty() {
        return make(
            granted,
            type_,
            ConditionStatus::False,
            "NotSynced",
            &status_input.problems.message(),
        );
    }
    for (object_ref, object) in &status_input.owned {
        let readiness = readiness::of(&object_ref.kind, object);
        if readiness.state != ReadinessState::Ready {
            let reason = match readiness.state {
                ReadinessState::InProgress => "InProgress",
                ReadinessState::Failed => "Failed",
                ReadinessState::Terminating => "Terminating",
                ReadinessState::Ready | ReadinessState::Unknown => "Unknown",
            };
            let message = format!("{object_ref}: {}", readiness.message);
            return make(granted, type_, ConditionStatus::False, reason, &message);
        }
    }
    make(granted, type_, ConditionStatus::True, "ObjectsReady", "Everything made is ready.")
}

fn served(status_input: &StatusInput) -> Condition {
    let (type_, granted) = (condition::KINDS_AVAILABLE, &status_input.granted);
    let unserved = &status_input.unserved;
    if unserved.is_empty() {
        return make(
            granted,
            type_,
            ConditionStatus::True,
            "AllKindsServed",
            "All kinds are served.",
        );
    }
    let message = format!(
        "This cluster does not serve {}; objects of it are made as soon as it does.",
        unserved.join(", ")
    );
    make(granted, type_, ConditionStatus::False, "NotServed", &message)
}

/// A condition; one message may name a thousand objects, and is cut to what can be written. What
/// was granted is masked first: a value that is escaped and cut is hard to find.
fn make(
    granted: &GrantedSecrets,
    type_: &str,
    status: ConditionStatus,
    reason: &str,
    message: &str,
) -> Condition {
    let message = foreign::message(granted.mask(message), guest_status::MESSAGE_BYTES_MAX);
    Condition { type_: type_.to_owned(), status, reason: reason.to_owned(), message }
}

/// A condition, of the guest too, with a message that a terminal shows as it is.
fn visible(condition: Condition) -> Condition {
    if foreign::is_message(&condition.message) {
        return condition;
    }
    let message = foreign::message(&condition.message, usize::MAX);
    // Escaped it is longer, and three dots come behind it if it is cut.
    let message = foreign::message(&message, guest_status::CONDITION_MESSAGE_BYTES_MAX - 3);
    Condition { message, ..condition }
}

/// Writes the status, if it is not what is there, and Events for what changed.
///
/// Gives whether the status was written, or the problem if it cannot be.
pub async fn report(
    shared: &Shared,
    caches: &Caches,
    active: &ActiveModule,
    request: &ReconcileRequest,
    primary: &Object,
    status_input: &StatusInput,
    primary_state: &mut PrimaryState,
) -> Result<bool, Problem> {
    if active.decorates {
        events(shared, active, request, primary, status_input, primary_state).await;
        return Ok(false);
    }
    let manage = active.settings().manage_status;
    let mut conditions = if manage {
        let has_optional = active.guest().manifest().owned.iter().any(|owned| owned.optional);
        conditions(status_input, has_optional)
    } else {
        first_of_each_type(&status_input.conditions)
    };
    status_input.granted.mask_conditions(&mut conditions);
    let conditions: Vec<Condition> = conditions.into_iter().map(visible).collect();
    let object_ref = ObjectRef::new(active.primary.clone(), primary.key.clone());
    events(shared, active, request, primary, status_input, primary_state).await;

    let statuses = shared.status_schema(&object_ref.kind);
    let schema = match &*statuses {
        StatusSchema::Absent
            if manage || status_input.status.is_some() || !conditions.is_empty() =>
        {
            return Err(no_subresource(object_ref));
        }
        StatusSchema::Absent => return Ok(false),
        StatusSchema::Whole => None,
        StatusSchema::Pruned(schema) => Some(schema),
    };
    let Some(wanted) = status::status(&status::Input {
        object: primary,
        guest: status_input.status.as_ref(),
        conditions: &conditions,
        manage,
        schema,
        last_run: status_input.figures(),
        now: shared.env.now(),
    }) else {
        return Ok(false);
    };
    let mut body = object_ref.body();
    body["metadata"]["resourceVersion"] = (&*primary.resource_version).into();
    body["status"] = wanted;
    let client = &active.client;
    let _writing = caches.begin_write(&object_ref.kind, &object_ref.key);
    match client
        .apply_status(&object_ref.kind, &object_ref.key, &Manager::Host, &body, Force::Yes)
        .await
    {
        Ok(applied) => {
            shared.count_write(request, "status");
            shared::record_write(shared, caches, &object_ref, applied.object, request);
            Ok(true)
        }
        // It changed meanwhile, or is gone: that change runs the key again.
        Err(
            ApiError::Conflict { .. } | ApiError::NotFound { .. } | ApiError::ObjectDeleted { .. },
        ) => Ok(false),
        Err(error) => {
            let why = status_input.granted.mask(&error.to_string());
            tracing::warn!(module = %active.name(), primary = %request.key, "the status cannot be written: {why}");
            Err(Problem {
                object_ref: Some(object_ref),
                reason: error.reason().to_owned(),
                message: format!("the status cannot be written: {why}"),
                retry: Retry::Backoff,
            })
        }
    }
}

/// A status cannot be written where there is none, and conditions cannot say so either: the
/// Module does.
fn no_subresource(object_ref: ObjectRef) -> Problem {
    let (resource, version) = (object_ref.kind.resource(), object_ref.kind.version().to_owned());
    Problem {
        object_ref: Some(object_ref),
        reason: "NoStatusSubresource".to_owned(),
        message: format!(
            "statuses cannot be written: version {version} of the CustomResourceDefinition {resource} has no status subresource; add `subresources: {{status: {{}}}}` to it, or set spec.manageStatus to false and give no status"
        ),
        retry: Retry::OnChange,
    }
}

/// Events on transitions: when something begins to stand in the way, and when nothing does
/// any more; what was adopted; and the guest's own.
async fn events(
    shared: &Shared,
    active: &ActiveModule,
    request: &ReconcileRequest,
    primary: &Object,
    status_input: &StatusInput,
    primary_state: &mut PrimaryState,
) {
    let mut events: Vec<Event> = status_input
        .adopted
        .iter()
        .map(|object_ref| Event {
            type_: EventType::Normal,
            reason: "Adopted".to_owned(),
            message: format!("Took over {object_ref}, which nobody owned."),
        })
        .collect();
    let reason = status_input.problems.reason().unwrap_or_default();
    if primary_state.reported.is_none() {
        // A host that just started repeats no Event: what was said stands in the condition.
        primary_state.reported = reported_reason(primary);
    }
    match primary_state.reported.as_deref() {
        Some(before) if before == reason => {}
        None if reason.is_empty() => {}
        Some(_) if reason.is_empty() => events.push(Event {
            type_: EventType::Normal,
            reason: "Applied".to_owned(),
            message: "Everything wanted is applied.".to_owned(),
        }),
        _ => events.push(Event {
            type_: EventType::Warning,
            reason: reason.to_owned(),
            message: status_input.problems.message(),
        }),
    }
    primary_state.reported = Some(reason.to_owned());
    events.extend(status_input.events.iter().cloned());
    for mut event in events {
        status_input.granted.mask_event(&mut event);
        let regarding = Regarding::object(&active.primary, primary);
        let (client, module) = (&active.client, active.name());
        let published = shared.events.publish(client, module, &regarding, "Reconcile", &event);
        match published.await {
            Ok(Published::Written) => shared.count_write(request, "event"),
            Ok(Published::Counted(_) | Published::TooMany) => {}
            // An Event is a courtesy: what it says stands in the conditions too.
            Err(error) => tracing::warn!(
                module = %active.name(), primary = %primary.key, "an Event cannot be written: {}",
                status_input.granted.mask(&error.to_string())
            ),
        }
    }
}

/// The reason that the live condition gives for not being synced; empty if it is.
fn reported_reason(primary: &Object) -> Option<String> {
    let conditions = status::live_conditions(primary);
    let synced = conditions.into_iter().find(|one| one.type_ == condition::SYNCED)?;
    Some(if synced.status == ConditionStatus::True { String::new() } else { synced.reason })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status_input() -> StatusInput {
        StatusInput { status: Some(Map::new()), ..StatusInput::default() }
    }

    fn told(status_input: &StatusInput, has_optional: bool) -> Vec<String> {
        conditions(status_input, has_optional)
            .into_iter()
            .map(|one| {
                format!("{}={} {}: {}", one.type_, one.status.as_str(), one.reason, one.message)
            })
            .collect()
    }

    #[test]
    fn conditions_are_true_when_everything_is_applied() {
        assert_eq!(
            told(&status_input(), false),
            [
                "Ready=True ObjectsReady: Everything made is ready.",
                "Synced=True Applied: Everything wanted is applied."
            ]
        );
    }

    #[test]
    fn readiness_of_the_guest_overrides_that_of_the_host() {
        let mut status_input = status_input();
        status_input.conditions.push(make(
            &GrantedSecrets::nothing(),
            "Ready",
            ConditionStatus::False,
            "Warming",
            "up",
        ));
        assert_eq!(told(&status_input, false)[0], "Ready=False Warming: up");
    }

    #[test]
    fn the_host_alone_says_whether_all_is_applied() {
        let mut status_input = status_input();
        status_input.conditions.push(make(
            &GrantedSecrets::nothing(),
            "Synced",
            ConditionStatus::True,
            "Sure",
            "it is",
        ));
        status_input.problems.push(Problem {
            object_ref: None,
            reason: "Conflict".into(),
            message: "m".into(),
            retry: Retry::OnChange,
        });
        assert_eq!(
            told(&status_input, false),
            ["Ready=False NotSynced: m", "Synced=False Conflict: m"]
        );
    }

    #[test]
    fn kinds_that_are_not_served_are_named() {
        let mut status_input = status_input();
        status_input.unserved.push("route.openshift.io/v1 Route".into());
        assert_eq!(
            told(&status_input, true)[0],
            "KindsAvailable=False NotServed: This cluster does not serve route.openshift.io/v1 Route; objects of it are made as soon as it does."
        );
    }

    #[test]
    fn a_failed_guest_leaves_readiness_unknown() {
        let mut status_input = StatusInput::default();
        status_input.problems.push(Problem {
            object_ref: None,
            reason: "Trap".into(),
            message: "m".into(),
            retry: Retry::Backoff,
        });
        assert_eq!(told(&status_input, false), ["Synced=False Trap: m"]);
    }

    #[test]
    fn a_message_about_a_thousand_objects_can_still_be_written() {
        let mut status_input = status_input();
        status_input.paused = Some(vec!["create Service web/a".into(); 1000]);
        let told = conditions(&status_input, false).remove(1);
        assert_eq!(told.reason, "Paused");
        assert_eq!(told.message.len(), guest_status::MESSAGE_BYTES_MAX + 3);
    }

    #[test]
    fn skipped_changes_of_a_paused_primary_are_reported() {
        let mut status_input = status_input();
        status_input.paused = Some(vec!["create Service web/a".into()]);
        assert_eq!(
            told(&status_input, false)[1],
            "Synced=False Paused: The primary is paused; left undone: create Service web/a."
        );
    }

    #[test]
    fn what_was_granted_is_masked_before_a_message_is_cut() {
        let value = "correct horse \u{200b} battery staple";
        let problem = |message: String| Problem {
            object_ref: None,
            reason: "Because".into(),
            message,
            retry: Retry::OnChange,
        };
        for before in guest_status::MESSAGE_BYTES_MAX - 100..guest_status::MESSAGE_BYTES_MAX {
            let text = format!("{}{value}", "-".repeat(before));
            let granted = Arc::new(GrantedSecrets::of_value(value.as_bytes()));
            let paused = StatusInput {
                paused: Some(vec![text.clone()]),
                granted: granted.clone(),
                ..status_input()
            };
            let stuck = StatusInput {
                problems: Problems(vec![problem(text.clone())]),
                granted,
                ..status_input()
            };
            for told in [told(&paused, false), told(&stuck, false)].concat() {
                for part in ["corr", "hors", "batt", "stap", "200b"] {
                    assert!(!told.contains(part), "{before}: {part} in {told:.9}");
                }
            }
        }
    }
}
