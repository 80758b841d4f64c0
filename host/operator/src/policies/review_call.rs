//! One call of a policy about a request: makes its document, calls the guest, and checks the
//! verdict. Reviews of requests, of existing objects and of kept requests all use it.

use std::time::Duration;

use innkeeper_cluster::Env;
use innkeeper_core::object::SecretDigest;
use innkeeper_core::review::{ReviewInput, document};
use innkeeper_core::{ObjectKey, foreign};
use innkeeper_sandbox::{Limits, ReviewOutcome};

use super::active_policy::ActivePolicy;
use super::decision::Decision;
use super::policy_observation::PolicyObservation;
use super::review_failure::ReviewFailure;
use crate::watch::read_record::ReadRecord;

/// The longest name of a request in the log, in bytes.
const REQUEST_BYTES_MAX: usize = 400;

/// The result of a call.
pub struct ReviewCall {
    /// The decision, or why there is none.
    pub result: Result<Decision, ReviewFailure>,
    /// The reads of the guest.
    pub reads: ReadRecord,
    /// The objects of the request as the guest saw them; none if the host did not call it.
    pub shown: ShownObjects,
}

/// The objects of a request as a policy sees them: a Secret has digests in place of its values.
#[derive(Clone, Debug, Default)]
pub struct ShownObjects {
    /// The object.
    pub object: Option<String>,
    /// The stored object.
    pub old_object: Option<String>,
}

/// Calls the guest of a policy about a request, and checks its verdict. Blocks the thread for at
/// most the time that `time_left` gives, and the limit of the policy; the caller holds a permit.
///
/// `digest` replaces the values of Secrets in the objects of the request, and `request` names it in
/// the log.
pub fn call(
    policy: &ActivePolicy,
    env: &Env,
    (input, request): (&ReviewInput<'_>, &str),
    digest: &SecretDigest<'_>,
    time_left: impl FnOnce() -> Result<Duration, ReviewFailure>,
) -> ReviewCall {
    let mut call = ReviewCall {
        result: Err(ReviewFailure::NoTime),
        reads: ReadRecord::default(),
        shown: ShownObjects::default(),
    };
    let limits = *policy.guest.limits();
    let document = match document(input, digest, limits.memory_bytes) {
        Ok(document) => document,
        Err(error) => return ReviewCall { result: Err(error.into()), ..call },
    };
    let time = match time_left() {
        Ok(left) => limits.time.min(left),
        Err(failure) => return ReviewCall { result: Err(failure), ..call },
    };
    let guest = policy.guest.with_limits(Limits { time, ..limits });
    let mut observation = PolicyObservation::new(policy, env, request);
    let outcome = guest.review(&document.text, &mut observation);
    call.reads = observation.into_reads();
    call.result = outcome.map_err(ReviewFailure::from).and_then(|review| match review.outcome {
        ReviewOutcome::Decided(verdict) => {
            let (shown, finalizers) =
                (document.object.as_deref(), policy.settings.allow_finalizers);
            Decision::of(verdict, policy.kind, input, shown, finalizers)
        }
        ReviewOutcome::Failed(why) => Err(ReviewFailure::Undecided(why)),
    });
    call.shown = ShownObjects { object: document.object, old_object: document.old_object };
    call
}

/// A request as the log names it: `CREATE pods default/web-1`.
pub fn name_of(input: &ReviewInput<'_>) -> String {
    let key = ObjectKey::new(input.namespace, input.name);
    let text = format!("{} {} {key}", input.operation, input.resource_path());
    foreign::one_line(text, REQUEST_BYTES_MAX)
}
