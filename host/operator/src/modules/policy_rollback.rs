//! The rollback window of a policy: for some time after a swap the host counts the reviews that
//! fail with the new revision, on all replicas.
//!
//! The leader counts those of its own replica, and learns of the others by their reports. Requests
//! that it kept and that fail with the previous revision as well do not count: they would fail
//! after a rollback too.

use std::sync::Arc;
use std::time::Duration;

use innkeeper_core::counted;
use innkeeper_modules::{Digest, Event, Rejection, RetryPolicy};

use super::event::SupervisorEvent;
use super::supervisor::Supervisor;
use crate::policies::kept_request::KeptRequest;
use crate::policies::{ActivePolicy, Entry, PolicyStates, ReplicaPolicies};
use crate::preview::policy::replay;
use crate::shared::Shared;

/// How often the leader looks at the counts: reports of other replicas come every ten seconds.
const PERIOD: Duration = Duration::from_secs(2);

/// The most kept requests that the previous revision reviews in one look.
const REQUESTS_MAX: usize = 16;

/// The reviews that fail with the revision of a policy.
#[derive(Debug, Default, PartialEq, Eq)]
struct Failures {
    count: u64,
    example: String,
}

impl Supervisor {
    /// Counts the reviews that fail from now on with the policy of the revision `digest`, if it has
    /// one, until the window ends.
    pub(super) fn watch_policy(&mut self, name: &str, digest: Digest, failures_max: u32) {
        let previous = self.rollback.replaced_policy.take();
        let decided = self.policies.decided.get(name).filter(|record| record.digest == digest);
        let Some(record) = decided.map(|record| record.id()) else { return };
        let window = PolicyWindow {
            module: name.into(),
            digest,
            record,
            previous,
            replica: self.replica.clone(),
            states: self.policies.states.clone(),
        };
        let (shared, outbox) = (self.shared.clone(), self.outbox.clone());
        let task = self.shared.env.spawn("watch policy", async move {
            let rejection = window.until_exceeded(&shared, failures_max).await;
            let event = Event::FailureThresholdExceeded { digest, rejection };
            let _ = outbox.send(SupervisorEvent::input(&*window.module, event));
        });
        self.latest.policy_windows.insert(name.to_owned(), task);
    }
}

/// The window after the swap of a policy.
struct PolicyWindow {
    module: Arc<str>,
    digest: Digest,
    /// The id of the record that was decided at the swap.
    record: String,
    /// The policy that reviewed before, as this replica had it.
    previous: Option<Arc<ActivePolicy>>,
    /// The policies of this replica.
    replica: ReplicaPolicies,
    /// What the replicas report.
    states: PolicyStates,
}

impl PolicyWindow {
    /// Waits until more reviews fail than allowed that do not fail with the previous revision; says
    /// so. Never ends otherwise.
    async fn until_exceeded(&self, shared: &Shared, failures_max: u32) -> Rejection {
        let mut confirmed = Confirmed::default();
        loop {
            shared.env.sleep(PERIOD).await;
            let failures = self.failures();
            let is_exceeded =
                |excused: u64| failures.count.saturating_sub(excused) > u64::from(failures_max);
            if !is_exceeded(confirmed.excused) {
                continue;
            }
            self.confirm(shared, failures.count, &mut confirmed).await;
            if is_exceeded(confirmed.excused) {
                return rejection(&failures, confirmed.excused);
            }
        }
    }

    /// The failures on this replica, or on all replicas by their reports if these are more: the
    /// reports have those of this replica too, and are older.
    fn failures(&self) -> Failures {
        let reported = self.states.get(&self.module).filter(|state| state.record == self.record);
        let reported = reported.map(|state| Failures {
            count: state.failed_reviews,
            example: state.failure_example.unwrap_or_default(),
        });
        let own = self.active().map(|policy| Failures {
            count: policy.counts.failed(),
            example: policy.counts.example().unwrap_or_default(),
        });
        let all = [own, reported].into_iter().flatten();
        all.max_by_key(|failures| failures.count).unwrap_or_default()
    }

    /// The policy of the revision on this replica.
    fn active(&self) -> Option<Arc<ActivePolicy>> {
        let active = self.replica.active().get(&self.module, self.replica.env().instant())?;
        match active {
            Entry::Active(policy) if policy.digest == self.digest => Some(policy),
            Entry::Active(_) | Entry::Removed { .. } => None,
        }
    }

    /// Reviews kept requests that failed again, with the previous revision: each of them once.
    /// `failures` is the number of failures so far.
    async fn confirm(&self, shared: &Shared, failures: u64, confirmed: &mut Confirmed) {
        let Some((previous, active)) = self.previous.as_ref().zip(self.active()) else {
            return;
        };
        let requests = self.replica.active().requests().of(&self.module);
        confirmed.forget_all_but(&requests);
        let failing = requests.iter().filter(|request| request.failed_with(&active.id));
        let failing: Vec<_> = failing.filter(|request| !confirmed.has(request)).collect();
        let (mut failing_too, mut others) = (0, 0);
        for request in failing.into_iter().take(REQUESTS_MAX) {
            let time = previous.guest.limits().time;
            match replay(shared, previous, request, time).await {
                Err(failure) if failure.is_of_revision() => failing_too += 1,
                _ => others += 1,
            }
            confirmed.requests.push(request.clone());
        }
        confirmed.add(failures, failing_too, others);
    }
}

/// What reviews with the previous revision have shown so far.
#[derive(Debug, Default)]
struct Confirmed {
    /// The kept requests that it has reviewed.
    requests: Vec<Arc<KeptRequest>>,
    /// How many failures do not count.
    excused: u64,
    /// For how many requests it does not fail.
    others: u64,
}

impl Confirmed {
    fn has(&self, request: &Arc<KeptRequest>) -> bool {
        self.requests.iter().any(|one| Arc::ptr_eq(one, request))
    }

    /// Forgets requests that are not kept any more.
    fn forget_all_but(&mut self, kept: &[Arc<KeptRequest>]) {
        self.requests.retain(|one| kept.iter().any(|other| Arc::ptr_eq(one, other)));
    }

    /// Notes for how many further requests the previous revision fails too, and does not. If it
    /// fails for all of them, so it would for those that were not kept.
    fn add(&mut self, failures: u64, failing_too: u64, others: u64) {
        self.others = self.others.saturating_add(others);
        self.excused = match (failing_too, others) {
            (1.., 0) => failures.saturating_sub(self.others),
            (count, _) => self.excused.saturating_add(count),
        };
    }
}

fn rejection(failures: &Failures, excused: u64) -> Rejection {
    let count = failures.count.saturating_sub(excused);
    let (reviews, example) = (counted(count, "review fails", "reviews fail"), &failures.example);
    let example =
        if example.is_empty() { String::new() } else { format!(", for example: {example}") };
    let message = format!("{reviews} since it is active{example}");
    Rejection::new("ReviewsFail", message, RetryPolicy::Later)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failure_that_the_previous_revision_has_not_stays_counted() {
        let mut confirmed = Confirmed::default();
        confirmed.add(6, 4, 2);
        assert_eq!(confirmed.excused, 4);
        // Later ones that fail with both revisions excuse none of the two.
        confirmed.add(20, 14, 0);
        assert_eq!(confirmed.excused, 18);
        confirmed.add(21, 0, 0);
        assert_eq!(confirmed.excused, 18, "one that was not kept counts");
    }

    #[test]
    fn rollback_says_how_many_reviews_count_and_why_one_failed() {
        let failures = Failures { count: 5, example: "the guest trapped".to_owned() };
        let rejection = rejection(&failures, 2);
        assert_eq!(
            rejection.message,
            "3 reviews fail since it is active, for example: the guest trapped"
        );
        assert_eq!(rejection.reason, "ReviewsFail");
    }
}
