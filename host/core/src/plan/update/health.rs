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

/// How far ahead of the host's clock a time may be before its object waits for a correction.
const SKEW_MAX: i64 = 60;

/// After which time the host looks again at the latest while a time is ahead of its clock, which
/// somebody may correct meanwhile.
const LOOK_AGAIN_MAX: Duration = Duration::from_hours(1);

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
    let text = object.text.read();
    let (problem, look_again) = match serving(group, kind, (object, &text)) {
        Serving::Failed(problem) => return Health::Failed(problem),
        Serving::NotYet(problem) => (problem, None),
        Serving::Yes(conditions) => {
            let seconds = group.min_ready_seconds;
            let since = ReadySince::of(group, &conditions, applied);
            let remaining = remaining(since.time, seconds, input.now);
            if seconds == 0 || remaining.is_none() {
                return Health::Available;
            }
            let Some(problem) = since.problem(input.now) else {
                return Health::Waiting(format!("it is not ready for {seconds} s yet"), remaining);
            };
            (problem, remaining)
        }
    };
    let (Some(deadline), Some(applied)) = (group.progress_deadline_seconds, applied) else {
        return Health::Waiting(problem, look_again);
    };
    match remaining(applied, deadline, input.now) {
        None => Health::Failed(format!("it is not available after {deadline} s: {problem}")),
        remaining => Health::Waiting(problem, remaining.into_iter().chain(look_again).min()),
    }
}

/// Whether a live object is ready and meets the checks of its group, however short a time.
pub(super) fn serves(group: &UpdateGroup, kind: &Kind, object: &Object) -> bool {
    matches!(serving(group, kind, (object, &object.text.read())), Serving::Yes(_))
}

/// Whether an object is ready and meets the checks of its group.
enum Serving<'a> {
    /// It does; these are its conditions.
    Yes(Vec<Condition<'a>>),
    /// It does not, for this reason.
    NotYet(String),
    /// It has failed, for this reason.
    Failed(String),
}

fn serving<'a>(
    group: &UpdateGroup,
    kind: &Kind,
    (object, text): (&Object, &'a str),
) -> Serving<'a> {
    let readiness = readiness::of(kind, object);
    match readiness.state {
        ReadinessState::Ready => {}
        ReadinessState::Failed => return Serving::Failed(readiness.message),
        ReadinessState::InProgress | ReadinessState::Terminating | ReadinessState::Unknown => {
            return Serving::NotYet(readiness.message);
        }
    }
    let status = match serde_json::from_str::<WithStatus<'a>>(text) {
        Ok(object) => object.status.unwrap_or_default(),
        Err(error) => return Serving::NotYet(format!("its status cannot be read: {error}")),
    };
    // kstatus counts every ended Pod as current, also a failed one.
    if (kind.group(), kind.kind.as_str()) == ("", "Pod")
        && status.phase.as_deref() == Some("Failed")
    {
        return Serving::Failed("its phase is Failed".to_owned());
    }
    let conditions = status.conditions.unwrap_or_default();
    for check in &group.status_checks {
        let expected = (check.status.as_str(), check.reason.as_deref());
        let Some(condition) = conditions.iter().find(|one| one.type_ == check.type_) else {
            return Serving::NotYet(format!("it has no condition {}", check.type_));
        };
        if condition.observed_generation.is_some_and(|observed| observed < object.generation) {
            return Serving::NotYet(format!(
                "its condition {} is not of its present generation",
                check.type_
            ));
        }
        if condition.status != expected.0 {
            return Serving::NotYet(format!(
                "its condition {} is not {}: {}",
                check.type_,
                expected.0,
                condition.text()
            ));
        }
        if let (_, Some(reason)) = expected
            && condition.reason.as_deref() != Some(reason)
        {
            return Serving::NotYet(format!(
                "its condition {} has not the reason {reason}: {}",
                check.type_,
                condition.text()
            ));
        }
    }
    Serving::Yes(conditions)
}

/// Since when a ready object can have been ready in its present form.
struct ReadySince<'a> {
    /// In seconds of Unix time.
    time: i64,
    /// The condition that changed then; without one, the host applied the object.
    condition: Option<&'a str>,
}

impl<'a> ReadySince<'a> {
    /// The latest of the apply and the changes of the conditions that count.
    fn of(group: &'a UpdateGroup, conditions: &[Condition<'_>], applied: Option<i64>) -> Self {
        let checked = group.status_checks.iter().map(|check| check.type_.as_str());
        let counted =
            |type_: &str| READY_TYPES.into_iter().chain(checked.clone()).find(|one| *one == type_);
        let changes = conditions.iter().filter_map(|condition| {
            let type_ = counted(&condition.type_)?;
            let time: Timestamp = condition.last_transition_time.as_ref()?.parse().ok()?;
            Some(Self { time: time.as_second(), condition: Some(type_) })
        });
        let applied = applied.map(|time| Self { time, condition: None });
        let latest = changes.chain(applied).max_by_key(|since| since.time);
        latest.unwrap_or(Self { time: 0, condition: None })
    }

    /// What is wrong with the time, if it is further ahead than clocks differ.
    fn problem(&self, now: Timestamp) -> Option<String> {
        let time = Timestamp::from_second(self.time).ok();
        let time =
            time.filter(|time| time.as_second() > now.as_second().saturating_add(SKEW_MAX))?;
        Some(self.condition.map_or_else(
            || {
                format!(
                    "the host applied it at {time}, which is in the future: the clocks of the host \
                     and the API server differ"
                )
            },
            |condition| {
                format!(
                    "its condition {condition} changed at {time}, which is in the future; correct \
                     the clock of the controller that writes it, or delete the object"
                )
            },
        ))
    }
}

/// How long it takes until `seconds` have passed since a time; `None` if they have.
fn remaining(since: i64, seconds: u32, now: Timestamp) -> Option<Duration> {
    let now = now.as_second();
    let left = since.saturating_add(seconds.into()).saturating_sub(now);
    let left = u64::try_from(left).ok().filter(|left| *left > 0).map(Duration::from_secs)?;
    Some(if since > now { left.min(LOOK_AGAIN_MAX) } else { left })
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
