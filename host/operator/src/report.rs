//! Reporting: the primary's status and conditions, and Events on transitions.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use innkeeper_cluster::events::{Published, Regarding};
use innkeeper_cluster::session::Force;
use innkeeper_cluster::{ApiError, Caches};
use innkeeper_contract::{Condition, ConditionStatus, Event, EventType, ReadinessState};
use innkeeper_core::{Figures, Manager, Object, Target, foreign, readiness, said, status};
use serde_json::{Map, Value};

use crate::crds::Statuses;
use crate::deeds::Deed;
use crate::granted::Granted;
use crate::memory::Memory;
use crate::problem::{Problem, Problems, Retry};
use crate::queue::Work;
use crate::running::Running;
use crate::shared::{self, Shared};

/// Conditions that the host writes on a primary.
pub mod condition {
    /// Everything that the guest wants is applied.
    pub const SYNCED: &str = "Synced";
    /// What was made works. The guest's word goes before the host's.
    pub const READY: &str = "Ready";
    /// All kinds that the guest can use are served; only on primaries whose guest has optional ones.
    pub const KINDS_AVAILABLE: &str = "KindsAvailable";
}

/// What a burst of rounds came to, of its last round.
#[derive(Debug, Default)]
pub struct Findings {
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
    pub owned: Vec<(Target, Arc<Object>)>,
    /// Optional kinds that are not served.
    pub unserved: Vec<String>,
    /// Objects that were taken over.
    pub adopted: Vec<Target>,
    /// Objects that were created, changed or deleted, in all rounds.
    pub changed: BTreeMap<Target, Deed>,
    /// How many of the objects that the guest wants are as it wants them.
    pub in_order: usize,
    /// What the last round granted, to be masked in whatever is said.
    pub granted: Arc<Granted>,
}

impl Findings {
    fn figures(&self) -> Figures {
        Figures { ok: self.in_order, changed: self.changed.len(), failures: self.problems.0.len() }
    }
}

/// The host's conditions and the guest's, the guest's word first. Types that differ in case only are one
/// type: `kubectl wait` compares them without regard to case, and would take the guest's for the host's.
pub fn conditions(findings: &Findings, has_optional: bool) -> Vec<Condition> {
    let mut all: BTreeMap<String, Condition> = BTreeMap::new();
    let mut add = |condition: Condition| {
        all.entry(condition.type_.to_ascii_lowercase()).or_insert(condition);
    };
    add(synced(findings));
    for condition in &findings.conditions {
        add(condition.clone());
    }
    if findings.status.is_some() || findings.problems.is_empty() {
        add(ready(findings));
    }
    if has_optional {
        add(served(findings));
    }
    all.into_values().collect()
}

/// Of several conditions of one type the first: a list has each type once, and the API server refuses
/// one that has not.
fn first_of_each_type(conditions: &[Condition]) -> Vec<Condition> {
    let mut types = BTreeSet::new();
    conditions.iter().filter(|one| types.insert(one.type_.to_ascii_lowercase())).cloned().collect()
}

fn synced(findings: &Findings) -> Condition {
    let (type_, granted) = (condition::SYNCED, &findings.granted);
    if let Some(undone) = &findings.paused {
        let message = match undone.as_slice() {
            [] => "The primary is paused; nothing is left undone.".to_owned(),
            undone => format!("The primary is paused; left undone: {}.", undone.join("; ")),
        };
        return make(granted, type_, ConditionStatus::False, "Paused", &message);
    }
    match findings.problems.reason() {
        Some(reason) => {
            make(granted, type_, ConditionStatus::False, reason, &findings.problems.message())
        }
        None => {
            make(granted, type_, ConditionStatus::True, "Applied", "Everything wanted is applied.")
        }
    }
}

fn ready(findings: &Findings) -> Condition {
    let (type_, granted) = (condition::READY, &findings.granted);
    if !findings.problems.is_empty() {
        return make(
            granted,
            type_,
            ConditionStatus::False,
            "NotSynced",
            &findings.problems.message(),
        );
    }
    for (target, object) in &findings.owned {
        let readiness = readiness::of(&target.kind, object);
        if readiness.state != ReadinessState::Ready {
            let reason = match readiness.state {
                ReadinessState::InProgress => "InProgress",
                ReadinessState::Failed => "Failed",
                ReadinessState::Terminating => "Terminating",
                ReadinessState::Ready | ReadinessState::Unknown => "Unknown",
            };
            let message = format!("{target}: {}", readiness.message);
            return make(granted, type_, ConditionStatus::False, reason, &message);
        }
    }
    make(granted, type_, ConditionStatus::True, "ObjectsReady", "Everything made is ready.")
}

fn served(findings: &Findings) -> Condition {
    let (type_, granted) = (condition::KINDS_AVAILABLE, &findings.granted);
    let unserved = &findings.unserved;
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

/// A condition; one message may name a thousand objects, and is cut to what can be written. What was granted
/// is masked first: a value that is escaped and cut is hard to find.
fn make(
    granted: &Granted,
    type_: &str,
    status: ConditionStatus,
    reason: &str,
    message: &str,
) -> Condition {
    let message = foreign::message(granted.mask(message), said::MESSAGE_BYTES_MAX);
    Condition { type_: type_.to_owned(), status, reason: reason.to_owned(), message }
}

/// A condition, of the guest too, with a message that a terminal shows as it is.
fn visible(condition: Condition) -> Condition {
    if foreign::is_message(&condition.message) {
        return condition;
    }
    let message = foreign::message(&condition.message, usize::MAX);
    // Escaped it is longer, and three dots come behind it if it is cut.
    let message = foreign::message(&message, said::CONDITION_MESSAGE_BYTES_MAX - 3);
    Condition { message, ..condition }
}

/// Writes the status, if it is not what is there, and Events for what changed.
///
/// Gives whether the status was written, or the problem if it cannot be.
pub async fn report(
    shared: &Shared,
    caches: &Caches,
    running: &Running,
    work: &Work,
    primary: &Object,
    findings: &Findings,
    memory: &mut Memory,
) -> Result<bool, Problem> {
    if running.decorates {
        events(shared, running, work, primary, findings, memory).await;
        return Ok(false);
    }
    let manage = running.settings().manage_status;
    let mut conditions = if manage {
        let has_optional = running.guest().manifest().owned.iter().any(|owned| owned.optional);
        conditions(findings, has_optional)
    } else {
        first_of_each_type(&findings.conditions)
    };
    findings.granted.mask_conditions(&mut conditions);
    let conditions: Vec<Condition> = conditions.into_iter().map(visible).collect();
    let target = Target::new(running.primary.clone(), primary.key.clone());
    events(shared, running, work, primary, findings, memory).await;

    let statuses = shared.statuses(&target.kind);
    let schema = match &*statuses {
        Statuses::Absent if manage || findings.status.is_some() || !conditions.is_empty() => {
            return Err(no_subresource(target));
        }
        Statuses::Absent => return Ok(false),
        Statuses::Whole => None,
        Statuses::Pruned(schema) => Some(schema),
    };
    let Some(wanted) = status::status(&status::Input {
        object: primary,
        guest: findings.status.as_ref(),
        conditions: &conditions,
        manage,
        schema,
        figures: findings.figures(),
        now: shared.env.now(),
    }) else {
        return Ok(false);
    };
    let mut body = target.body();
    body["metadata"]["resourceVersion"] = (&*primary.resource_version).into();
    body["status"] = wanted;
    let session = &running.session;
    let _writing = caches.writing(&target.kind, &target.key);
    match session.apply_status(&target.kind, &target.key, &Manager::Host, &body, Force::Yes).await {
        Ok(applied) => {
            shared.count_write(work, "status");
            shared::wrote(shared, caches, &target, applied.object, work);
            Ok(true)
        }
        // It changed meanwhile, or is gone: that change runs the key again.
        Err(
            ApiError::VersionConflict { .. } | ApiError::NotFound { .. } | ApiError::Gone { .. },
        ) => Ok(false),
        Err(error) => {
            let why = findings.granted.mask(&error.to_string());
            tracing::warn!(module = %running.name(), primary = %work.key, "the status cannot be written: {why}");
            Err(Problem {
                target: Some(target),
                reason: error.reason().to_owned(),
                message: format!("the status cannot be written: {why}"),
                retry: Retry::Backoff,
            })
        }
    }
}

/// A status cannot be written where there is none, and conditions cannot say so either: the
/// Module does.
fn no_subresource(target: Target) -> Problem {
    let (resource, version) = (target.kind.resource(), target.kind.version().to_owned());
    Problem {
        target: Some(target),
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
    running: &Running,
    work: &Work,
    primary: &Object,
    findings: &Findings,
    memory: &mut Memory,
) {
    let mut events: Vec<Event> = findings
        .adopted
        .iter()
        .map(|target| Event {
            type_: EventType::Normal,
            reason: "Adopted".to_owned(),
            message: format!("Took over {target}, which nobody owned."),
        })
        .collect();
    let reason = findings.problems.reason().unwrap_or_default();
    if memory.reported.is_none() {
        // A host that just started repeats no Event: what was said stands in the condition.
        memory.reported = said_before(primary);
    }
    match memory.reported.as_deref() {
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
            message: findings.problems.message(),
        }),
    }
    memory.reported = Some(reason.to_owned());
    events.extend(findings.events.iter().cloned());
    for mut event in events {
        findings.granted.mask_event(&mut event);
        let regarding = Regarding::object(&running.primary, primary);
        let (session, module) = (&running.session, running.name());
        let published = shared.events.publish(session, module, &regarding, "Reconcile", &event);
        match published.await {
            Ok(Published::Written) => shared.count_write(work, "event"),
            Ok(Published::Counted(_) | Published::TooMany) => {}
            // An Event is a courtesy: what it says stands in the conditions too.
            Err(error) => tracing::warn!(
                module = %running.name(), primary = %primary.key, "an Event cannot be written: {}",
                findings.granted.mask(&error.to_string())
            ),
        }
    }
}

/// The reason that the live condition gives for not being synced; empty if it is.
fn said_before(primary: &Object) -> Option<String> {
    let conditions = status::live_conditions(primary);
    let synced = conditions.into_iter().find(|one| one.type_ == condition::SYNCED)?;
    Some(if synced.status == ConditionStatus::True { String::new() } else { synced.reason })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings() -> Findings {
        Findings { status: Some(Map::new()), ..Findings::default() }
    }

    fn told(findings: &Findings, has_optional: bool) -> Vec<String> {
        conditions(findings, has_optional)
            .into_iter()
            .map(|one| {
                format!("{}={} {}: {}", one.type_, one.status.as_str(), one.reason, one.message)
            })
            .collect()
    }

    #[test]
    fn all_is_well() {
        assert_eq!(
            told(&findings(), false),
            [
                "Ready=True ObjectsReady: Everything made is ready.",
                "Synced=True Applied: Everything wanted is applied."
            ]
        );
    }

    #[test]
    fn the_guests_word_on_readiness_goes_before_the_hosts() {
        let mut findings = findings();
        findings.conditions.push(make(
            &Granted::nothing(),
            "Ready",
            ConditionStatus::False,
            "Warming",
            "up",
        ));
        assert_eq!(told(&findings, false)[0], "Ready=False Warming: up");
    }

    #[test]
    fn the_host_alone_says_whether_all_is_applied() {
        let mut findings = findings();
        findings.conditions.push(make(
            &Granted::nothing(),
            "Synced",
            ConditionStatus::True,
            "Sure",
            "it is",
        ));
        findings.problems.push(Problem {
            target: None,
            reason: "Conflict".into(),
            message: "m".into(),
            retry: Retry::OnChange,
        });
        assert_eq!(
            told(&findings, false),
            ["Ready=False NotSynced: m", "Synced=False Conflict: m"]
        );
    }

    #[test]
    fn kinds_that_are_not_served_are_named() {
        let mut findings = findings();
        findings.unserved.push("route.openshift.io/v1 Route".into());
        assert_eq!(
            told(&findings, true)[0],
            "KindsAvailable=False NotServed: This cluster does not serve route.openshift.io/v1 Route; objects of it are made as soon as it does."
        );
    }

    #[test]
    fn a_guest_that_failed_says_nothing_about_readiness() {
        let mut findings = Findings::default();
        findings.problems.push(Problem {
            target: None,
            reason: "Trap".into(),
            message: "m".into(),
            retry: Retry::Backoff,
        });
        assert_eq!(told(&findings, false), ["Synced=False Trap: m"]);
    }

    #[test]
    fn a_message_about_a_thousand_objects_can_still_be_written() {
        let mut findings = findings();
        findings.paused = Some(vec!["create Service web/a".into(); 1000]);
        let told = conditions(&findings, false).remove(1);
        assert_eq!(told.reason, "Paused");
        assert_eq!(told.message.len(), said::MESSAGE_BYTES_MAX + 3);
    }

    #[test]
    fn what_a_pause_leaves_undone_is_told() {
        let mut findings = findings();
        findings.paused = Some(vec!["create Service web/a".into()]);
        assert_eq!(
            told(&findings, false)[1],
            "Synced=False Paused: The primary is paused; left undone: create Service web/a."
        );
    }

    #[test]
    fn what_was_granted_is_masked_before_a_message_is_cut() {
        let value = "correct horse \u{200b} battery staple";
        let problem = |message: String| Problem {
            target: None,
            reason: "Because".into(),
            message,
            retry: Retry::OnChange,
        };
        for before in said::MESSAGE_BYTES_MAX - 100..said::MESSAGE_BYTES_MAX {
            let text = format!("{}{value}", "-".repeat(before));
            let granted = Arc::new(Granted::of_value(value.as_bytes()));
            let paused = Findings {
                paused: Some(vec![text.clone()]),
                granted: granted.clone(),
                ..findings()
            };
            let stuck =
                Findings { problems: Problems(vec![problem(text.clone())]), granted, ..findings() };
            for told in [told(&paused, false), told(&stuck, false)].concat() {
                for part in ["corr", "hors", "batt", "stap", "200b"] {
                    assert!(!told.contains(part), "{before}: {part} in {told:.9}");
                }
            }
        }
    }
}
