//! The preview of a policy: the candidate and the active policy review existing objects and recent
//! requests, and the host compares their decisions. It writes nothing.

use std::sync::Arc;
use std::time::Duration;

use innkeeper_cluster::{ApiClient, ApiError, Caches};
use innkeeper_core::{ObjectKey, ObjectRef, foreign};
use innkeeper_modules::module::PolicyMode;
use innkeeper_modules::{PolicyPreview, ReviewChange};
use innkeeper_sandbox::CallError;
use tokio::time::Instant;

use super::sample;
use super::{PREVIEW_TIME, READ_TIME, count};
use crate::policies::background_review::review_existing;
use crate::policies::decision::Decision;
use crate::policies::existing_objects::{ExistingObject, ExistingObjects};
use crate::policies::kept_request::KeptRequest;
use crate::policies::review_call;
use crate::policies::review_failure::ReviewFailure;
use crate::policies::review_scope::ReviewScope;
use crate::policies::{ActivePolicy, ReplicaPolicies};
use crate::shared::Shared;

/// How often a candidate may run out of time before the preview ends.
pub const TIMEOUTS_MAX: u32 = 5;

/// The part of [`PREVIEW_TIME`] for recent requests.
const REQUESTS_TIME: Duration = Duration::from_secs(20);

/// The most details of one example.
const DETAILS_MAX: usize = 5;

/// The longest detail, in bytes.
const DETAIL_BYTES_MAX: usize = 300;

/// A candidate with what its preview reads.
pub struct PolicyCandidate {
    /// The policy.
    pub policy: Arc<ActivePolicy>,
    /// The caches with existing objects.
    pub caches: Caches,
    /// Requests as its account, for these caches.
    pub reader: ApiClient,
    /// Requests as the host.
    pub host: ApiClient,
    /// The policies of this replica, which keep recent requests.
    pub replica: ReplicaPolicies,
}

/// Compares a candidate with the active policy. Without one, every request is allowed now.
///
/// Takes at most [`PREVIEW_TIME`] and the time that the caches need, [`READ_TIME`] each for those
/// that the policy reads and those with the existing objects.
///
/// # Errors
/// If discovery does not say which kinds there are.
pub async fn preview_policy(
    shared: &Shared,
    candidate: &PolicyCandidate,
    active: Option<&Arc<ActivePolicy>>,
) -> Result<PolicyPreview, ApiError> {
    let PolicyCandidate { policy, caches, reader, host, replica } = candidate;
    let (new, old) = (Side::of(policy), active.map(|active| Side::of(active)));
    let other = old.as_ref().map(|side| &side.scope);
    let existing = ExistingObjects::open_with(caches, host, reader, policy, other).await?;
    if let Some(view) = &policy.view {
        let _ = shared.env.timeout(READ_TIME, view.settled()).await;
    }
    // The preview names the kinds that cannot be read by then, and leaves them out.
    let _ = shared.env.timeout(READ_TIME, existing.settled()).await;
    let (objects, left_out) = existing.list();
    let began = shared.env.instant();
    let mut comparison = Comparison {
        shared,
        existing: &existing,
        candidate: new,
        active: old,
        deadline: began + REQUESTS_TIME,
        timeouts: 0,
        preview: PolicyPreview {
            objects: count(objects.len()),
            enforces: policy.settings.policy.enforces(),
            ..PolicyPreview::default()
        },
    };
    for one in left_out {
        comparison.preview.leave_out(format!("{}: {}", one.what, one.why));
    }
    for request in replica.active().requests().of(&policy.module) {
        if !comparison.request(&request).await {
            break;
        }
    }
    comparison.deadline = began + PREVIEW_TIME;
    let group = |one: &ExistingObject| (one.kind.clone(), one.object.key.namespace().to_owned());
    for object in sample::choose_by(&objects, group) {
        if !comparison.object(object).await {
            break;
        }
    }
    Ok(comparison.preview)
}

/// A policy with the objects that it reviews.
struct Side<'a> {
    policy: &'a ActivePolicy,
    scope: ReviewScope,
}

impl<'a> Side<'a> {
    fn of(policy: &'a ActivePolicy) -> Self {
        Self { policy, scope: ReviewScope::of(policy) }
    }
}

/// The outcome of the review of one object or request.
enum Outcome {
    /// The request is allowed; with the decision if that changes the object.
    Allowed(Option<Box<Decision>>),
    Denied(Box<Decision>),
    /// The review gives no verdict; the text says why.
    Failed(String),
}

struct Comparison<'a> {
    shared: &'a Shared,
    existing: &'a ExistingObjects,
    candidate: Side<'a>,
    active: Option<Side<'a>>,
    deadline: Instant,
    /// How often the candidate ran out of time.
    timeouts: u32,
    preview: PolicyPreview,
}

impl Comparison<'_> {
    /// Compares the decisions about an existing object. Returns whether the preview continues.
    async fn object(&mut self, existing: &ExistingObject) -> bool {
        let ExistingObject { kind, object, mode } = existing;
        let Some(time) = self.time_left().filter(|_| self.continues()) else { return false };
        let review = review_existing(self.shared, self.candidate.policy, kind, object, time).await;
        let Some(new) = review.map(|one| one.result) else { return true };
        let Some(new) = self.outcome_of_candidate(new, time) else { return self.continues() };
        let mode_now =
            self.active.as_ref().and_then(|side| self.existing.mode_in(&side.scope, existing));
        let old = match (&self.active, mode_now) {
            (Some(active), Some(now)) if !is_stricter(*mode, now) => {
                let Some(time) = self.time_left() else { return false };
                let review = review_existing(self.shared, active.policy, kind, object, time).await;
                let Some(old) = review.and_then(|one| outcome(one.result)) else { return true };
                old
            }
            // The active policy denies and changes nothing there.
            _ => Outcome::Allowed(None),
        };
        self.preview.reviewed += 1;
        self.compare(ObjectRef::new(kind.clone(), object.key.clone()).to_string(), new, old);
        self.continues()
    }

    /// Compares the decisions about a recent request. Returns whether the preview continues.
    async fn request(&mut self, request: &KeptRequest) -> bool {
        let Some(time) = self.time_left().filter(|_| self.continues()) else { return false };
        let new = match self.replay(&self.candidate, request, time).await {
            None => Outcome::Allowed(None),
            Some(new) => match self.outcome_of_candidate(new, time) {
                Some(new) => new,
                None => return self.continues(),
            },
        };
        let Some(time) = self.time_left() else { return false };
        let mode_of =
            |side: &Side<'_>| self.existing.mode_in_namespace(&side.scope, request.namespace());
        let old = match &self.active {
            Some(active) => match (mode_of(&self.candidate), mode_of(active)) {
                (Some(new), Some(old)) if is_stricter(new, old) => None,
                _ => self.replay(active, request, time).await,
            },
            None => None,
        };
        let old = match old {
            None => Outcome::Allowed(None),
            Some(old) => match outcome(old) {
                Some(old) => old,
                None => return true,
            },
        };
        self.preview.requests += 1;
        self.compare(request.title(), new, old);
        self.continues()
    }

    /// Reviews a recent request again; `None` if the policy would not get it.
    async fn replay(
        &self,
        side: &Side<'_>,
        request: &KeptRequest,
        time: Duration,
    ) -> Option<Result<Decision, ReviewFailure>> {
        let (operation, resource, subresource, namespace) = request.matched_members();
        let mut rules = side.scope.rules().iter();
        let is_matched =
            rules.any(|rule| rule.matches(operation, resource, subresource, namespace));
        if !is_matched || self.existing.leaves_out(&side.scope, namespace) {
            return None;
        }
        Some(replay(self.shared, side.policy, request, time).await)
    }

    /// The outcome of a review by the candidate; `None` if the preview has no use for it.
    fn outcome_of_candidate(
        &mut self,
        result: Result<Decision, ReviewFailure>,
        time: Duration,
    ) -> Option<Outcome> {
        if let Err(ReviewFailure::Call(CallError::Timeout { .. })) = &result {
            // The candidate could have answered in the whole time of its limit.
            if time < self.candidate.policy.guest.limits().time {
                return None;
            }
            self.timeouts += 1;
        }
        outcome(result)
    }

    fn compare(&mut self, object: String, new: Outcome, old: Outcome) {
        let (change, details) = match (new, old) {
            (Outcome::Failed(_), Outcome::Failed(_)) | (Outcome::Denied(_), Outcome::Denied(_)) => {
                return;
            }
            (Outcome::Failed(why), _) => (ReviewChange::Fail, vec![why]),
            (Outcome::Denied(decision), _) => (ReviewChange::Deny, denial(&decision)),
            (Outcome::Allowed(_), Outcome::Denied(decision)) => {
                (ReviewChange::Allow, denial(&decision))
            }
            // It is unknown whether a failed review would have changed the object.
            (Outcome::Allowed(_), Outcome::Failed(_)) => return,
            (Outcome::Allowed(new), Outcome::Allowed(old)) => {
                let patch = |one: &Option<Box<Decision>>| {
                    one.as_ref().and_then(|one| one.change.as_ref()).map(|one| one.patch.clone())
                };
                if patch(&new) == patch(&old) {
                    return;
                }
                let fields = new.or(old).and_then(|one| one.change).map(|one| one.fields);
                (ReviewChange::Change, fields.unwrap_or_default())
            }
        };
        self.preview.add(change, object, details);
    }

    /// The time until the deadline; `None` if it is over.
    fn time_left(&self) -> Option<Duration> {
        let left = self.deadline.saturating_duration_since(self.shared.env.instant());
        (!left.is_zero()).then_some(left)
    }

    /// Whether there is time left, and the candidate did not run out of time too often.
    fn continues(&self) -> bool {
        self.time_left().is_some() && self.timeouts < TIMEOUTS_MAX
    }
}

/// Whether verdicts deny and change in the new mode, and do not in the old one.
fn is_stricter(new: PolicyMode, old: PolicyMode) -> bool {
    new == PolicyMode::Enforce && old != PolicyMode::Enforce
}

/// Reviews a kept request again with a policy, as soon as its module has a permit for reviews in
/// the background.
///
/// # Errors
/// If the review fails, or there is no time left for it.
pub async fn replay(
    shared: &Shared,
    policy: &ActivePolicy,
    request: &KeptRequest,
    time: Duration,
) -> Result<Decision, ReviewFailure> {
    let call = || {
        let input = request.input(&policy.parameters);
        let title = format!("recent {}", request.title());
        // Digests have replaced the values before the request was kept.
        let digest = |_: &ObjectKey, _: &str, value: &str| value.to_owned();
        review_call::call(policy, &shared.env, (&input, &title), &digest, || Ok(time)).result
    };
    shared.guest_calls.run(&policy.module, request.namespace(), call).await
}

/// The outcome of a review; `None` if other reviews left it no time.
fn outcome(result: Result<Decision, ReviewFailure>) -> Option<Outcome> {
    match result {
        Ok(decision) if decision.verdict.denial.is_some() => {
            Some(Outcome::Denied(Box::new(decision)))
        }
        Ok(decision) => {
            Some(Outcome::Allowed(decision.change.is_some().then(|| Box::new(decision))))
        }
        Err(failure) if failure.is_overload() => None,
        Err(failure) => Some(Outcome::Failed(failure.line())),
    }
}

/// The message of a denial and the fields at fault.
fn denial(decision: &Decision) -> Vec<String> {
    let Some(denial) = &decision.verdict.denial else { return Vec::new() };
    let lines = denial.lines().into_iter().take(DETAILS_MAX);
    lines.map(|line| foreign::one_line(line, DETAIL_BYTES_MAX)).collect()
}
