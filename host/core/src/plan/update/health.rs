//! Whether a live object of an update group is available.

use std::borrow::Cow;
use std::time::Duration;

use innkeeper_contract::{Kind, ReadinessState, UpdateGroup};
use jiff::Timestamp;
use serde::Deserialize;

use super::super::input::Input;
use crate::{Object, readiness};

/// Conditions from whose last change an object has been ready, in addition to the checked ones.
const READY_TYPES: [&str; 2] = ["Ready", "Available"];

/// Whether a live object of an update group is available.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Health {
    /// It is ready, its conditions meet the checks, and both for long enough.
    Available,
    /// It is not, for this reason. After the time, if there is one, the time alone may change that.
    Waiting(String, Option<Duration>),
    /// It has failed, for this reason.
    Failed(String),
}

impl Health {
    pub(super) fn is_available(&self) -> bool {
        *self == Self::Available
    }
}

/// Returns whether a live object is available by the rules of its group.
pub(super) fn of(group: &UpdateGroup, kind: &Kind, object: &Object, input: &Input<'_>) -> Health {
    let applied = object.applied_at(&input.primary.manager);
    let problem = match unready(group, kind, object) {
        Unready::Failed(problem) => return Health::Failed(problem),
        Unready::Waiting(problem) => problem,
        Unready::No(conditions) => {
            let since = ready_since(group, &conditions, applied);
            return match remaining(since, group.min_ready_seconds, input.now) {
                None => Health::Available,
                remaining => Health::Waiting(
                    format!("it is not ready for {} s yet", group.min_ready_seconds),
                    remaining,
                ),
            };
        }
    };
    let (Some(deadline), Some(applied)) = (group.progress_deadline_seconds, applied) else {
        return Health::Waiting(problem, None);
    };
    match remaining(applied, deadline, input.now) {
        None => Health::Failed(format!("it is not available after {deadline} s: {problem}")),
        remaining => Health::Waiting(problem, remaining),
    }
}

/// Whether a live object is ready and meets the checks of its group, however short a time.
pub(super) fn serves(group: &UpdateGroup, kind: &Kind, object: &Object) -> bool {
    matches!(unready(group, kind, object), Unready::No(_))
}

/// Why an object is not ready, or does not meet the checks.
enum Unready<'a> {
    Failed(String),
    Waiting(String),
    /// It is ready; these are its conditions.
    No(Vec<Condition<'a>>),
}

fn unready<'a>(group: &UpdateGroup, kind: &Kind, object: &'a Object) -> Unready<'a> {
    let readiness = readiness::of(kind, object);
    match readiness.state {
        ReadinessState::Ready => {}
        ReadinessState::Failed => return Unready::Failed(readiness.message),
        ReadinessState::InProgress | ReadinessState::Terminating | ReadinessState::Unknown => {
            return Unready::Waiting(readiness.message);
        }
    }
    let status = match serde_json::from_str::<WithStatus<'a>>(&object.text) {
        Ok(object) => object.status.unwrap_or_default(),
        Err(error) => return Unready::Waiting(format!("its status cannot be read: {error}")),
    };
    // kstatus counts every ended Pod as current, also a failed one.
    if (kind.group(), kind.kind.as_str()) == ("", "Pod")
        && status.phase.as_deref() == Some("Failed")
    {
        return Unready::Failed("its phase is Failed".to_owned());
    }
    let conditions = status.conditions.unwrap_or_default();
    for check in &group.status_checks {
        let expected = (check.status.as_str(), check.reason.as_deref());
        let Some(condition) = conditions.iter().find(|one| one.type_ == check.type_) else {
            return Unready::Waiting(format!("it has no condition {}", check.type_));
        };
        if condition.observed_generation.is_some_and(|observed| observed < object.generation) {
            return Unready::Waiting(format!(
                "its condition {} is not of its present generation",
                check.type_
            ));
        }
        if condition.status != expected.0 {
            return Unready::Waiting(format!(
                "its condition {} is not {}: {}",
                check.type_,
                expected.0,
                condition.text()
            ));
        }
        if let (_, Some(reason)) = expected
            && condition.reason.as_deref() != Some(reason)
        {
            return Unready::Waiting(format!(
                "its condition {} has not the reason {reason}: {}",
                check.type_,
                condition.text()
            ));
        }
    }
    Unready::No(conditions)
}

/// Since when, in seconds of Unix time, a ready object can have been ready in its present form.
fn ready_since(group: &UpdateGroup, conditions: &[Condition<'_>], applied: Option<i64>) -> i64 {
    let counts = |condition: &&Condition<'_>| {
        READY_TYPES.contains(&&*condition.type_)
            || group.status_checks.iter().any(|check| check.type_ == condition.type_)
    };
    let changes = conditions.iter().filter(counts).filter_map(|condition| {
        let time: Timestamp = condition.last_transition_time.as_ref()?.parse().ok()?;
        Some(time.as_second())
    });
    changes.chain(applied).max().unwrap_or(0)
}

/// How long it takes until `seconds` have passed since a time; `None` if they have. A time in the
/// future counts as the present.
fn remaining(since: i64, seconds: u32, now: Timestamp) -> Option<Duration> {
    let passed = now.as_duration().as_secs().saturating_sub(since).max(0);
    let left = u64::try_from(i64::from(seconds) - passed).ok().filter(|left| *left > 0)?;
    Some(Duration::from_secs(left))
}

#[derive(Deserialize)]
struct WithStatus<'a> {
    #[serde(borrow)]
    status: Option<Status<'a>>,
}

#[derive(Default, Deserialize)]
struct Status<'a> {
    #[serde(borrow)]
    phase: Option<Cow<'a, str>>,
    #[serde(borrow)]
    conditions: Option<Vec<Condition<'a>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Condition<'a> {
    #[serde(rename = "type", borrow, default)]
    type_: Cow<'a, str>,
    #[serde(borrow, default)]
    status: Cow<'a, str>,
    #[serde(borrow)]
    reason: Option<Cow<'a, str>>,
    #[serde(borrow)]
    message: Option<Cow<'a, str>>,
    observed_generation: Option<i64>,
    #[serde(borrow)]
    last_transition_time: Option<Cow<'a, str>>,
}

impl Condition<'_> {
    /// The message; if it is empty, the reason; if that is empty, the status.
    fn text(&self) -> &str {
        [self.message.as_deref(), self.reason.as_deref()]
            .into_iter()
            .flatten()
            .find(|text| !text.is_empty())
            .unwrap_or(&self.status)
    }
}
