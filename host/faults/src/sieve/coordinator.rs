//! Which action of a plan is waited for, and when it happens.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use crate::sieve::action::{Action, ActionKind};
use crate::sieve::condition::{Condition, Observer, TriggerDefinition};
use crate::sieve::plan::SievePlan;
use crate::sieve::resource_key::ResourceKey;
use crate::sieve::state_diff;

/// A change of an object. It is created if it has no previous state, and deleted if it has no
/// current one.
pub(crate) struct ObjectChange<'a> {
    pub(crate) key: &'a ResourceKey,
    pub(crate) previous: Option<&'a Value>,
    pub(crate) current: Option<&'a Value>,
}

/// Waits for the triggers of one action after the other.
pub(crate) struct Coordinator {
    actions: Vec<Action>,
    next: usize,
    phase: Phase,
    /// The satisfied triggers of the next action.
    satisfied: BTreeSet<usize>,
    /// How often the condition of each of its triggers held.
    counts: BTreeMap<usize, u32>,
    /// Since when each of its times is waited for.
    begun: BTreeMap<usize, Instant>,
}

enum Phase {
    Triggers,
    Before(Instant),
    After(Instant),
}

impl Coordinator {
    pub(crate) fn new(plan: SievePlan) -> Self {
        Self {
            actions: plan.actions,
            next: 0,
            phase: Phase::Triggers,
            satisfied: BTreeSet::new(),
            counts: BTreeMap::new(),
            begun: BTreeMap::new(),
        }
    }

    /// Whether all actions have happened.
    pub(crate) fn is_over(&self) -> bool {
        self.next >= self.actions.len()
    }

    /// The actions that have not happened, in order.
    pub(crate) fn pending(&self) -> impl Iterator<Item = &ActionKind> {
        let happened = self.next + usize::from(matches!(self.phase, Phase::After(_)));
        self.actions.iter().skip(happened).map(|action| &action.kind)
    }

    /// Takes a change as somebody observes it. Gives the actions that happen now.
    pub(crate) fn observe(
        &mut self,
        observer: &Observer,
        change: &ObjectChange<'_>,
        now: Instant,
    ) -> Vec<ActionKind> {
        let mut happen = self.advance(now);
        if let (Phase::Triggers, Some(action)) = (&self.phase, self.actions.get(self.next)) {
            let mut waited = BTreeSet::new();
            action.expression.waits_for(&self.satisfied, &mut waited);
            for place in waited {
                let trigger = &action.triggers[place];
                if !holds(trigger, observer, change) {
                    continue;
                }
                let count = self.counts.entry(place).or_default();
                *count += 1;
                if *count >= trigger.occurrence {
                    self.satisfied.insert(place);
                }
            }
        }
        happen.extend(self.advance(now));
        happen
    }

    /// Lets time pass. Gives the actions that happen now.
    pub(crate) fn advance(&mut self, now: Instant) -> Vec<ActionKind> {
        let mut happen = Vec::new();
        while let Some(action) = self.actions.get(self.next) {
            match self.phase {
                Phase::Triggers => {
                    let mut waited = BTreeSet::new();
                    action.expression.waits_for(&self.satisfied, &mut waited);
                    for place in waited {
                        let Condition::Timeout(time) = action.triggers[place].condition else {
                            continue;
                        };
                        if now >= *self.begun.entry(place).or_insert(now) + time {
                            self.satisfied.insert(place);
                        }
                    }
                    if !action.expression.holds(&self.satisfied) {
                        break;
                    }
                    self.phase = Phase::Before(now + action.wait_before);
                }
                Phase::Before(due) if now >= due => {
                    happen.push(action.kind.clone());
                    self.phase = Phase::After(now + action.wait_after);
                }
                Phase::After(due) if now >= due => {
                    self.next += 1;
                    self.phase = Phase::Triggers;
                    self.satisfied.clear();
                    self.counts.clear();
                    self.begun.clear();
                }
                Phase::Before(_) | Phase::After(_) => break,
            }
        }
        happen
    }
}

/// Whether the condition of a trigger holds.
fn holds(trigger: &TriggerDefinition, observer: &Observer, change: &ObjectChange<'_>) -> bool {
    let is_here = trigger.observer.as_ref() == Some(observer)
        && trigger.condition.key().is_some_and(|key| key.names(change.key));
    is_here
        && match (&trigger.condition, change.previous, change.current) {
            (Condition::Create(_), None, Some(_))
            | (Condition::Delete(_), Some(_), None)
            | (Condition::Update { change: None, .. }, Some(_), Some(_)) => true,
            (Condition::Update { change: Some((before, after)), .. }, Some(old), Some(new)) => {
                state_diff::is_change(old, new, before, after)
            }
            (Condition::AnyFieldModification { members, .. }, Some(_), Some(new)) => {
                !state_diff::has(new, members)
            }
            _ => false,
        }
}

/// How often times are looked at.
pub(crate) const TICK: Duration = Duration::from_millis(25);

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may fail by it")]
mod tests {
    use serde_json::json;

    use super::*;

    fn plan() -> SievePlan {
        let trigger = |name: &str, condition: Value, when: &str, by: &str| {
            json!({"triggerName": name, "condition": condition,
                "observationPoint": {"when": when, "by": by}})
        };
        let created = json!({"conditionType": "onObjectCreate", "resourceKey": "pod/a/p",
            "occurrence": 2});
        let plan = json!({"actions": [
            {"actionType": "reconnectController", "reconnectAPIServer": "second",
                "async": true, "waitBefore": 10,
                "trigger": {"expression": "t", "definitions":
                    [trigger("t", created, "afterControllerRecv", "informer")]}},
            {"actionType": "resumeAPIServer", "apiServerName": "second",
                "pauseScope": "pod/a/p",
                "trigger": {"expression": "t", "definitions": [{"triggerName": "t",
                    "condition": {"conditionType": "onTimeout", "timeoutValue": 20}}]}},
        ]});
        SievePlan::parse(&plan).unwrap()
    }

    #[test]
    fn action_happens_after_its_occurrence_its_wait_and_the_next_after_its_time() {
        let mut coordinator = Coordinator::new(plan());
        let begin = Instant::now();
        let at = |seconds: u64| begin + Duration::from_secs(seconds);
        let key = ResourceKey::new("Pod", "a", "p");
        let object = json!({});
        let created = ObjectChange { key: &key, previous: None, current: Some(&object) };
        let after = Observer::Informer { before: false };
        let other = Observer::Informer { before: true };
        assert_eq!(coordinator.observe(&after, &created, at(0)), []);
        assert_eq!(coordinator.observe(&other, &created, at(1)), [], "another observer");
        assert_eq!(coordinator.observe(&after, &created, at(2)), [], "it waits");
        assert_eq!(coordinator.advance(at(11)), []);
        assert_eq!(coordinator.pending().count(), 2);
        let reconnect = ActionKind::ReconnectController { api_server: "second".to_owned() };
        assert_eq!(coordinator.advance(at(12)), [reconnect]);
        assert_eq!(coordinator.advance(at(31)), []);
        let pending: Vec<_> = coordinator.pending().map(ToString::to_string).collect();
        assert_eq!(pending, ["the API server second resumes for pod/a/p"]);
        let happened = coordinator.advance(at(32));
        assert!(matches!(happened.as_slice(), [ActionKind::ResumeApiServer { .. }]));
        assert!(coordinator.is_over());
        assert_eq!(coordinator.pending().count(), 0);
    }
}
