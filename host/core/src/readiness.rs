//! The readiness of an object, by the rules of kstatus (`sigs.k8s.io/cli-utils/pkg/kstatus`).
//!
//! The rules parse only the fields that they need from the object's text. One rule differs from
//! kstatus: a Pod that cannot be scheduled stays in progress instead of failing after 15 seconds,
//! since this crate has no clock, and a new node may still help.
//!
//! Guests show the message in a condition, so each other message costs a write of a status. While a
//! Deployment or StatefulSet only lacks replicas, its message counts the ready ones and nothing
//! else. That of a Deployment stays the same from the change of the object until a Pod is ready.

mod fields;

use std::borrow::Cow;

use innkeeper_contract::{Kind, Readiness, ReadinessState};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::{Object, counted};

pub use fields::fields;

/// Returns the readiness of an object of a kind.
///
/// It is `Unknown`, with the reason, if a field has not the type of its kind (replicas as a
/// string).
pub fn of(kind: &Kind, object: &Object) -> Readiness {
    evaluate(kind, object).unwrap_or_else(|error| {
        state(ReadinessState::Unknown, format!("the object cannot be read: {error}"))
    })
}

fn evaluate(kind: &Kind, object: &Object) -> Result<Readiness, serde_json::Error> {
    if object.is_terminating() {
        return Ok(state(ReadinessState::Terminating, "being deleted"));
    }
    // Many objects have no status, and a search in the text is cheaper than a parse.
    let text = object.text.read();
    let generic = if may_have_status(&text) {
        let parts: SpecAndStatus<NoSpec, GenericStatus<'_>> = serde_json::from_str(&text)?;
        parts.status.unwrap_or_default()
    } else {
        GenericStatus::default()
    };
    let conditions = generic.conditions.unwrap_or_default();
    if let Some(observed) = generic.observed_generation
        && object.generation != 0
        && observed != object.generation
    {
        if (kind.group(), kind.kind.as_str()) == ("apps", "Deployment")
            && let Ok(parts) = parse(&text)
            && let Some(wait) = short_of_replicas(&parts)
        {
            return Ok(wait);
        }
        return Ok(waiting(format!(
            "generation {} is not observed yet, only {observed}",
            object.generation
        )));
    }
    for condition in &conditions {
        match (&*condition.type_, &*condition.status) {
            ("Reconciling", "True") => return Ok(waiting(condition.text())),
            ("Stalled", "True") => return Ok(failed(condition.text())),
            _ => {}
        }
    }
    Ok(match (kind.group(), kind.kind.as_str()) {
        ("apps", "Deployment") => deployment(&parse(&text)?, &conditions),
        ("apps", "StatefulSet") => stateful_set(&parse(&text)?),
        ("apps", "DaemonSet") => daemon_set(&parse(&text)?, generic.observed_generation),
        ("apps", "ReplicaSet") => replica_set(&parse(&text)?, &conditions),
        ("", "Pod") => pod(&parse(&text)?, &conditions),
        ("", "PersistentVolumeClaim") => claim(&parse(&text)?),
        ("", "Service") => service(&parse(&text)?),
        ("batch", "Job") => job(&parse(&text)?, &conditions),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => definition(&conditions),
        // These kinds are ready when they exist, or their status shows no progress.
        ("", "ConfigMap" | "Secret") | ("batch", "CronJob") | ("policy", "PodDisruptionBudget") => {
            ready()
        }
        _ => by_ready_condition(&conditions),
    })
}

/// Whether the text of an object can have the member `status`, with or without escapes in its name.
fn may_have_status(text: &str) -> bool {
    let has = |part: &[u8]| memchr::memmem::find(text.as_bytes(), part).is_some();
    has(b"\"status\"") || has(b"\\u")
}

fn state(state: ReadinessState, message: impl Into<String>) -> Readiness {
    Readiness { state, message: message.into() }
}

fn ready() -> Readiness {
    state(ReadinessState::Ready, "")
}

fn waiting(message: impl Into<String>) -> Readiness {
    state(ReadinessState::InProgress, message)
}

fn failed(message: impl Into<String>) -> Readiness {
    state(ReadinessState::Failed, message)
}

/// The parts of an object from which the rules decide.
#[derive(Deserialize)]
#[serde(bound(deserialize = "Spec: Deserialize<'de>, Status: Deserialize<'de>"))]
struct SpecAndStatus<Spec, Status> {
    spec: Option<Spec>,
    status: Option<Status>,
}

/// A part that a rule does not read.
#[derive(Default)]
struct NoSpec;

impl<'de> Deserialize<'de> for NoSpec {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        serde::de::IgnoredAny::deserialize(deserializer).map(|_| Self)
    }
}

/// Parses the spec and status of an object's text; a missing part or null gives the default.
fn parse<Spec, Status>(text: &str) -> Result<(Spec, Status), serde_json::Error>
where
    Spec: DeserializeOwned + Default,
    Status: DeserializeOwned + Default,
{
    let parts: SpecAndStatus<Spec, Status> = serde_json::from_str(text)?;
    Ok((parts.spec.unwrap_or_default(), parts.status.unwrap_or_default()))
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct GenericStatus<'a> {
    observed_generation: Option<i64>,
    #[serde(borrow)]
    conditions: Option<Vec<Condition<'a>>>,
}

#[derive(Deserialize)]
struct Condition<'a> {
    #[serde(rename = "type", borrow, default)]
    type_: Cow<'a, str>,
    #[serde(borrow, default)]
    status: Cow<'a, str>,
    #[serde(borrow)]
    reason: Option<Cow<'a, str>>,
    #[serde(borrow)]
    message: Option<Cow<'a, str>>,
}

impl Condition<'_> {
    fn reason(&self) -> &str {
        self.reason.as_deref().unwrap_or_default()
    }

    /// The message; if it is empty, the reason; if that is empty, the type.
    fn text(&self) -> &str {
        let texts = [self.message.as_deref().unwrap_or_default(), self.reason(), &self.type_];
        texts.into_iter().find(|text| !text.is_empty()).unwrap_or_default()
    }
}

/// The condition of a type, if it has this status.
fn with_status<'a, 'b>(
    conditions: &'a [Condition<'b>],
    type_: &str,
    status: &str,
) -> Option<&'a Condition<'b>> {
    conditions.iter().find(|condition| condition.type_ == type_ && condition.status == status)
}

/// The first count that is too low, as a readiness. A count is what it counts, the number, and the
/// expected number.
fn too_few(counts: &[(&str, i64, i64)]) -> Option<Readiness> {
    counts
        .iter()
        .find(|(_, are, should)| are < should)
        .map(|(what, are, should)| waiting(format!("{are} of {should} replicas {what}")))
}

fn too_many(are: i64, should: i64) -> Option<Readiness> {
    let surplus = u64::try_from(are - should).ok().filter(|surplus| *surplus > 0)?;
    let surplus = counted(surplus, "surplus replica is", "surplus replicas are");
    Some(waiting(format!("{surplus} still to end")))
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ReplicasSpec {
    replicas: Option<i64>,
    progress_deadline_seconds: Option<i64>,
    update_strategy: Option<UpdateStrategy>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct UpdateStrategy {
    #[serde(rename = "type")]
    type_: Option<String>,
    rolling_update: Option<RollingUpdate>,
}

#[derive(Deserialize)]
struct RollingUpdate {
    partition: Option<i64>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ReplicasStatus {
    replicas: Option<i64>,
    updated_replicas: Option<i64>,
    ready_replicas: Option<i64>,
    available_replicas: Option<i64>,
    current_replicas: Option<i64>,
    fully_labeled_replicas: Option<i64>,
    current_revision: Option<String>,
    update_revision: Option<String>,
}

/// The deadline with which the controller sets no condition Progressing.
const NO_DEADLINE: i64 = i32::MAX as i64;

/// Whether a Deployment waits for ready replicas only: all that exist are updated.
fn short_of_replicas((spec, status): &(ReplicasSpec, ReplicasStatus)) -> Option<Readiness> {
    let should = spec.replicas.unwrap_or(1);
    let are = status.replicas.unwrap_or(0).min(should);
    let is_updated = status.updated_replicas.unwrap_or(0) >= are;
    let ready = ("are ready", status.ready_replicas.unwrap_or(0), should);
    is_updated.then(|| too_few(&[ready])).flatten()
}

fn deployment(parts: &(ReplicasSpec, ReplicasStatus), conditions: &[Condition<'_>]) -> Readiness {
    let (spec, status) = parts;
    let progress = conditions.iter().find(|condition| condition.type_ == "Progressing");
    if let Some(condition) = progress
        && condition.reason() == "ProgressDeadlineExceeded"
    {
        return failed(condition.text());
    }
    let should = spec.replicas.unwrap_or(1);
    let are = status.replicas.unwrap_or(0);
    let updated = status.updated_replicas.unwrap_or(0);
    let wait = short_of_replicas(parts)
        .or_else(|| too_few(&[("exist", are, should), ("are updated", updated, should)]))
        .or_else(|| too_many(are, should))
        .or_else(|| {
            too_few(&[
                ("are available", status.available_replicas.unwrap_or(0), updated),
                ("are ready", status.ready_replicas.unwrap_or(0), should),
            ])
        });
    if let Some(wait) = wait {
        return wait;
    }
    let rolled_out = spec.progress_deadline_seconds.unwrap_or(NO_DEADLINE) == NO_DEADLINE
        || progress.is_some_and(|condition| {
            condition.status == "True" && condition.reason() == "NewReplicaSetAvailable"
        });
    if !rolled_out {
        return waiting("the new ReplicaSet is not available");
    }
    match with_status(conditions, "Available", "True") {
        Some(_) => ready(),
        None => waiting("the condition Available is not True"),
    }
}

fn stateful_set((spec, status): &(ReplicasSpec, ReplicasStatus)) -> Readiness {
    let strategy = spec.update_strategy.as_ref();
    if strategy.and_then(|strategy| strategy.type_.as_deref()) == Some("OnDelete") {
        // The controller replaces a Pod only after a user deletes it, so there is no progress.
        return ready();
    }
    let should = spec.replicas.unwrap_or(1);
    let are = status.replicas.unwrap_or(0);
    let are_ready = status.ready_replicas.unwrap_or(0);
    let wait = too_few(&[("are ready", are_ready, should), ("exist", are, should)])
        .or_else(|| too_many(are, should));
    if let Some(wait) = wait {
        return wait;
    }
    let partition = strategy
        .and_then(|strategy| strategy.rolling_update.as_ref())
        .and_then(|rolling| rolling.partition);
    if let Some(partition) = partition {
        let updated = status.updated_replicas.unwrap_or(0);
        return too_few(&[("above the partition are updated", updated, should - partition)])
            .unwrap_or_else(ready);
    }
    let current = status.current_replicas.unwrap_or(0);
    if let Some(wait) = too_few(&[("are of the current revision", current, should)]) {
        return wait;
    }
    if status.current_revision.as_deref().unwrap_or_default()
        != status.update_revision.as_deref().unwrap_or_default()
    {
        return waiting("the current revision is not the updated one yet");
    }
    ready()
}

fn replica_set(
    (spec, status): &(ReplicasSpec, ReplicasStatus),
    conditions: &[Condition<'_>],
) -> Readiness {
    if let Some(condition) = with_status(conditions, "ReplicaFailure", "True") {
        return waiting(condition.text());
    }
    let should = spec.replicas.unwrap_or(1);
    too_few(&[
        ("are labelled", status.fully_labeled_replicas.unwrap_or(0), should),
        ("are available", status.available_replicas.unwrap_or(0), should),
        ("are ready", status.ready_replicas.unwrap_or(0), should),
    ])
    .or_else(|| too_many(status.replicas.unwrap_or(0), should))
    .unwrap_or_else(ready)
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct DaemonSetStatus {
    desired_number_scheduled: Option<i64>,
    current_number_scheduled: Option<i64>,
    updated_number_scheduled: Option<i64>,
    number_available: Option<i64>,
    number_ready: Option<i64>,
}

fn daemon_set(
    (_, status): &(NoSpec, DaemonSetStatus),
    observed_generation: Option<i64>,
) -> Readiness {
    let (Some(_), Some(should)) = (observed_generation, status.desired_number_scheduled) else {
        return waiting("its controller has not seen it yet");
    };
    too_few(&[
        ("are scheduled", status.current_number_scheduled.unwrap_or(0), should),
        ("are updated", status.updated_number_scheduled.unwrap_or(0), should),
        ("are available", status.number_available.unwrap_or(0), should),
        ("are ready", status.number_ready.unwrap_or(0), should),
    ])
    .unwrap_or_else(ready)
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PodStatus {
    phase: Option<String>,
    container_statuses: Option<Vec<ContainerStatus>>,
}

#[derive(Deserialize)]
struct ContainerStatus {
    #[serde(default)]
    name: String,
    state: Option<ContainerState>,
}

#[derive(Deserialize)]
struct ContainerState {
    waiting: Option<Waiting>,
}

#[derive(Deserialize)]
struct Waiting {
    reason: Option<String>,
}

fn pod((_, status): &(NoSpec, PodStatus), conditions: &[Condition<'_>]) -> Readiness {
    match status.phase.as_deref().unwrap_or_default() {
        // kstatus counts every ended Pod as current, also a failed one.
        "Succeeded" | "Failed" => ready(),
        "Running" if with_status(conditions, "Ready", "True").is_some() => ready(),
        "Running" => {
            let crashing: Vec<&str> = status
                .container_statuses
                .iter()
                .flatten()
                .filter(|container| {
                    let waiting = container.state.as_ref().and_then(|state| state.waiting.as_ref());
                    waiting.and_then(|waiting| waiting.reason.as_deref())
                        == Some("CrashLoopBackOff")
                })
                .map(|container| container.name.as_str())
                .collect();
            if crashing.is_empty() {
                waiting("it runs but is not ready")
            } else {
                failed(format!("containers crash again and again: {}", crashing.join(", ")))
            }
        }
        "Pending" => match with_status(conditions, "PodScheduled", "False") {
            Some(condition) if condition.reason() == "Unschedulable" => {
                waiting(format!("it cannot be scheduled: {}", condition.text()))
            }
            _ => waiting("it is pending"),
        },
        "" => waiting("it has no phase yet"),
        other => state(ReadinessState::Unknown, format!("its phase is {other}")),
    }
}

#[derive(Default, Deserialize)]
struct Phase {
    phase: Option<String>,
}

fn claim((_, status): &(NoSpec, Phase)) -> Readiness {
    match status.phase.as_deref() {
        Some("Bound") => ready(),
        Some(phase) => waiting(format!("it is not bound: its phase is {phase}")),
        None => waiting("it is not bound: it has no phase yet"),
    }
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ServiceSpec {
    #[serde(rename = "type")]
    type_: Option<String>,
    #[serde(rename = "clusterIP")]
    cluster_ip: Option<String>,
}

fn service((spec, _): &(ServiceSpec, NoSpec)) -> Readiness {
    let has_address = spec.cluster_ip.as_deref().is_some_and(|address| !address.is_empty());
    if spec.type_.as_deref() == Some("LoadBalancer") && !has_address {
        return waiting("it is a LoadBalancer without a cluster IP");
    }
    ready()
}

#[derive(Default, Deserialize)]
struct JobSpec {
    parallelism: Option<i64>,
    completions: Option<i64>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct JobStatus {
    failed: Option<i64>,
    start_time: Option<String>,
}

fn job((spec, status): &(JobSpec, JobStatus), conditions: &[Condition<'_>]) -> Readiness {
    for condition in conditions.iter().filter(|condition| condition.status == "True") {
        match &*condition.type_ {
            "Complete" | "Suspended" => return ready(),
            "Failed" => {
                let should = spec.completions.or(spec.parallelism).unwrap_or(1);
                return failed(format!(
                    "{} of {should} failed: {}",
                    status.failed.unwrap_or(0),
                    condition.text()
                ));
            }
            _ => {}
        }
    }
    // kstatus counts a Job as current from its start; its conditions show its end.
    if status.start_time.as_deref().unwrap_or_default().is_empty() {
        return waiting("it has not started");
    }
    ready()
}

fn definition(conditions: &[Condition<'_>]) -> Readiness {
    for condition in conditions {
        match (&*condition.type_, &*condition.status) {
            ("NamesAccepted", "False") => return failed(condition.text()),
            ("Established", "False") if condition.reason() != "Installing" => {
                return failed(condition.text());
            }
            ("Established", "True") => return ready(),
            _ => {}
        }
    }
    waiting("it is being installed")
}

/// The readiness of a kind without rules of its own: the condition Ready, if the object has one.
fn by_ready_condition(conditions: &[Condition<'_>]) -> Readiness {
    match conditions.iter().find(|condition| condition.type_ == "Ready") {
        Some(condition) if matches!(&*condition.status, "False" | "Unknown") => {
            waiting(condition.text())
        }
        _ => ready(),
    }
}

#[cfg(test)]
mod tests;
