//! The evaluation of one primary in the operator: waits for a permit of the sandbox, and measures.

use std::time::Duration;

use innkeeper_core::ownership::PrimaryOwner;
use innkeeper_sandbox::{Guest, Limits};

use crate::evaluate::{
    self, Evaluation, EvaluationError, EvaluationResult, REVISION_DIGEST_PURPOSE, Subject,
};
use crate::queue::module_queue;
use crate::reconcile::observe::Observation;
use crate::reconcile::primary_state::PrimaryState;
use crate::shared::Shared;

/// Evaluates a primary as soon as its module and namespace have a permit for the sandbox.
pub async fn evaluate_with_permit(
    shared: &Shared,
    observation: &mut Observation<'_>,
    owner: &PrimaryOwner,
    state: &PrimaryState,
) -> Evaluation {
    let (active, primary) = (observation.revision(), observation.primary().clone());
    let asked = shared.elapsed();
    let tenant = module_queue::tenant_of(&primary.key);
    let call = |time: Option<Duration>| {
        observation.begin_call();
        let waited = shared.elapsed().saturating_sub(asked);
        let digest = |text: &str| active.client.digest_text(REVISION_DIGEST_PURPOSE, text);
        let guest = within(active.guest(), time);
        let subject = Subject {
            guest: &guest,
            known_masks: &active.known_masks,
            primary: &primary,
            owner,
            grants: active.grants(),
            digest: &digest,
            unapplied: &state.unapplied,
            state: &state.planner,
            now: observation.now(),
        };
        (evaluate::evaluate(&subject, observation), waited)
    };
    let caller = (&**active.name(), tenant);
    let (evaluation, waited) = shared.guest_calls.run_paced(caller, &active.pace, call).await;
    observation.write_log();
    shared.metrics.permit_wait_seconds.observe(waited.as_secs_f64());
    for (index, figures) in evaluation.figures.iter().enumerate() {
        let seconds = figures.time.as_secs_f64();
        shared.metrics.sandbox_seconds.with_label_values(&[&**active.name()]).observe(seconds);
        if index == 0
            && figures.clock_read
            && !asks_for_requeue(&evaluation)
            && active.resync(&primary).is_none()
        {
            tracing::warn!(
                module = %active.name(),
                "the guest reads the clock but asks for no requeueAfterSeconds and has no resync period: time alone does not run it again"
            );
        }
    }
    evaluation
}

/// The guest, with calls that end after this time at the latest, if there is one.
fn within(guest: &Guest, time: Option<Duration>) -> Guest {
    let limits = *guest.limits();
    let time = time.map_or(limits.time, |time| time.min(limits.time));
    guest.with_limits(Limits { time, ..limits })
}

/// Whether the guest asks to run again after a time. An answer that is not used asks for nothing
/// that a warning would help with.
fn asks_for_requeue(evaluation: &Evaluation) -> bool {
    match &evaluation.result {
        EvaluationResult::Planned(evaluated) => evaluated.answer.requeue_after_seconds.is_some(),
        EvaluationResult::Failed(EvaluationError::Failed(failure)) => {
            failure.requeue_after_seconds.is_some()
        }
        EvaluationResult::Failed(_) | EvaluationResult::NeedsRead(_) => true,
    }
}
