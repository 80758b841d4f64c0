//! One review of the audit.

use std::sync::Arc;
use std::time::Duration;

use innkeeper_core::Object;
use innkeeper_core::audit::AuditOutcome;

use super::audited_object::AuditedObject;
use super::auditor::PolicyAudit;
use super::object_results::ObjectResults;
use crate::policies::active_policy::ActivePolicy;
use crate::policies::background_review::{BackgroundReview, review_now};
use crate::policies::decision::Decision;
use crate::policies::review_failure::ReviewFailure;
use crate::watch::dependency_index::RunStart;
use crate::watch::read_record::ReadRecord;
use crate::watch::read_scope::Unread;

/// The most bytes of the records of the reviews of one policy.
pub const READS_BYTES_MAX: usize = 16 << 20;

/// How long the audit waits for a free permit of live reviews before it looks again.
const LIVE_WAIT: Duration = Duration::from_millis(20);

impl PolicyAudit {
    /// Reviews the next object of a module's policy, unless its last result still holds.
    pub(super) async fn review(&mut self, module: &Arc<str>) {
        let Some(audited) = self.audited.get_mut(module) else { return };
        let Some((id, trigger)) = audited.results.next() else { return };
        let Some(object) = self.find(&id) else { return self.forget(&id) };
        let Some(audited) = self.audited.get_mut(module) else { return };
        if audited.results.keep_result(&id, &object, trigger) {
            return;
        }
        if audited.results.has_given_up() {
            return audited.results.record(&id, &object, &ObjectResults::given_up());
        }
        let policy = audited.policy.clone();
        self.wait_for_live_reviews().await;
        let permit = self.permits.acquire(module, id.key.namespace()).await;
        // In this order: a change after the lookup wakes the object again.
        let start = self.events.index().begin(&id);
        let Some(object) = self.find(&id) else {
            self.events.index().abandon(start);
            return self.forget(&id);
        };
        let env = self.host.env().clone();
        let begun = env.instant();
        let review = self.policies.execution().run(|| {
            let time = policy.guest.limits().time;
            review_now(&policy, &env, &id.kind, &object, time)
        });
        drop(permit);
        let now = env.instant();
        let took = now.saturating_duration_since(begun);
        self.pace.spend(now, took);
        let Some(BackgroundReview { result, reads }) = review else {
            self.events.index().abandon(start);
            return self.forget(&id);
        };
        let is_outdated = self.record_reads(&id, start, reads);
        self.record(&policy, (&id, &object), &result, took);
        if is_outdated && let Some(audited) = self.audited.get_mut(module) {
            audited.results.wake(&id);
        }
    }

    /// Records the result of a review that took this time.
    fn record(
        &mut self,
        policy: &ActivePolicy,
        (id, object): (&AuditedObject, &Object),
        result: &Result<Decision, ReviewFailure>,
        took: Duration,
    ) {
        let now = self.host.env().instant();
        let Some(audited) = self.audited.get_mut(&id.module) else { return };
        audited.pace.spend_of_policy(now, took);
        if result.as_ref().is_err_and(ReviewFailure::is_overload) {
            return audited.results.queue_again(id);
        }
        let outcome = match result {
            Ok(Decision { verdict, change }) => {
                let changed = change.as_ref().map(|change| &*change.fields).unwrap_or_default();
                AuditOutcome::of_verdict(&id.module, verdict, changed)
            }
            Err(failure) => AuditOutcome::failed(failure.reason(), failure.line()),
        };
        self.policies.audit_metrics().count(&id.module, outcome.result, took);
        if let Err(failure) = result {
            let request = format!("existing {} {}", id.kind.resource(), id.key);
            policy.log.write_failure(self.host.env(), &id.module, &request, &failure.line());
        }
        audited.results.record(id, object, &outcome);
    }

    /// Records what a review read. Returns whether some of it has changed since the review started.
    fn record_reads(&self, id: &AuditedObject, start: RunStart, reads: ReadRecord) -> bool {
        let mut index = self.events.index();
        if reads.bytes() > 0 {
            return index.record(id, start, reads, READS_BYTES_MAX, |_, _| Unread::default());
        }
        // Most reviews read nothing, and take no memory.
        index.abandon(start);
        index.forget(id);
        false
    }

    /// The object as the policy reviews it now.
    fn find(&self, id: &AuditedObject) -> Option<Arc<Object>> {
        let objects = self.audited.get(&id.module)?.objects.as_ref()?;
        objects.find(&id.kind, &id.key).map(|one| one.object)
    }

    fn forget(&mut self, id: &AuditedObject) {
        self.events.index().forget(id);
        if let Some(audited) = self.audited.get_mut(&id.module) {
            audited.results.remove(id);
        }
    }

    /// Waits while live reviews hold all of their permits: they need the cores.
    async fn wait_for_live_reviews(&self) {
        while self.policies.permits().available() == 0 {
            self.host.env().sleep(LIVE_WAIT).await;
        }
    }
}
