//! Reviews the requests of the API server with the active policies: [`PolicyReviewer`].

use std::borrow::Cow;
use std::time::{Duration, Instant as StdInstant};

use innkeeper_admission::admission_review::{
    GroupVersionKind, GroupVersionResource, Operation as AdmissionOperation, UserInfo,
};
use innkeeper_admission::{
    AdmissionRequest, AdmissionResponse, Mode, Reviewed, Reviewer, WebhookRef,
};
use innkeeper_contract::{Operation, User};
use innkeeper_core::ObjectKey;
use innkeeper_core::review::{Gvk, Gvr, ReviewInput, is_excluded};
use innkeeper_sandbox::Permit;
use tokio::time::Instant;

use super::active_policies::Entry;
use super::active_policy::ActivePolicy;
use super::decision::Decision;
use super::decision_kind::DecisionKind;
use super::kept_request::KeptRequest;
use super::replica::ReplicaPolicies;
use super::response;
use super::review_call::{self, ShownObjects};
use super::review_failure::ReviewFailure;

/// The time before the deadline that is left for the answer itself.
const ANSWER_TIME: Duration = Duration::from_millis(100);

/// Reviews the requests of the API server with the active policies of a replica. Clones are the
/// same.
#[derive(Clone)]
pub struct PolicyReviewer {
    policies: ReplicaPolicies,
}

impl PolicyReviewer {
    /// A reviewer with the policies of a replica.
    pub fn new(policies: ReplicaPolicies) -> Self {
        Self { policies }
    }

    /// Reviews a request with the policy that was active when it came. A swap meanwhile changes
    /// nothing for it.
    async fn review_with(
        &self,
        policy: &ActivePolicy,
        mode: Mode,
        input: &ReviewInput<'_>,
        deadline: Instant,
    ) -> Reviewed {
        let started = self.policies.env().instant();
        let request = review_call::name_of(input);
        let decision = match self.permit(policy, input.namespace, deadline).await {
            Ok(permit) => {
                let run = || self.decide(policy, input, &request, deadline);
                let decision = self.policies.execution().run(run);
                drop(permit);
                decision
            }
            Err(failure) => Err(failure),
        };
        let time = self.policies.env().instant().saturating_duration_since(started);
        let metrics = self.policies.reviews();
        match decision {
            Ok(decision) => {
                metrics.count(&policy.module, decision.kind(), mode, time);
                policy.counts.count();
                Reviewed::Answer(decision.into_response(&policy.module, mode))
            }
            Err(failure) => {
                metrics.count(&policy.module, DecisionKind::Failed, mode, time);
                metrics.count_failure(&policy.module, failure.reason());
                let line = failure.line();
                if failure.is_of_revision() {
                    policy.counts.count_failure(&line);
                }
                policy.log.write_failure(self.policies.env(), &policy.module, &request, &line);
                response::failed(mode, failure.message(&policy.module), failure.is_overload())
            }
        }
    }

    /// Waits for a permit until the deadline. A free permit is taken without a wait, so that a
    /// review on the loop's own thread ends at its first poll.
    async fn permit(
        &self,
        policy: &ActivePolicy,
        namespace: &str,
        deadline: Instant,
    ) -> Result<Permit, ReviewFailure> {
        let permits = self.policies.permits();
        if let Some(permit) = permits.try_acquire(&policy.module, namespace) {
            return Ok(permit);
        }
        let time = self.time_left(deadline).ok_or(ReviewFailure::NoTime)?;
        let permit = permits.acquire(&policy.module, namespace);
        self.policies.env().timeout(time, permit).await.map_err(|_| ReviewFailure::NoTime)
    }

    fn time_left(&self, deadline: Instant) -> Option<Duration> {
        let left = deadline.saturating_duration_since(self.policies.env().instant());
        left.checked_sub(ANSWER_TIME).filter(|left| !left.is_zero())
    }

    /// Keeps the request for previews, unless the policy saw nothing of it.
    fn keep(
        &self,
        policy: &ActivePolicy,
        input: &ReviewInput<'_>,
        shown: ShownObjects,
        failure: Option<&ReviewFailure>,
    ) {
        let has_objects = shown.object.is_some() || shown.old_object.is_some();
        if !has_objects || failure.is_some_and(ReviewFailure::is_overload) {
            return;
        }
        let failed_with = failure.map(|_| &*policy.id);
        if let Some(request) = KeptRequest::of(input, shown, failed_with) {
            self.policies.active().keep(&policy.module, request);
        }
    }

    /// Calls the guest and checks its verdict. Blocks the thread.
    fn decide(
        &self,
        policy: &ActivePolicy,
        input: &ReviewInput<'_>,
        request: &str,
        deadline: Instant,
    ) -> Result<Decision, ReviewFailure> {
        let digest =
            |key: &ObjectKey, name: &str, value: &str| policy.client.digest_value(key, name, value);
        let left = || self.time_left(deadline).ok_or(ReviewFailure::NoTime);
        let env = self.policies.env();
        let call = review_call::call(policy, env, (input, request), &digest, left);
        self.keep(policy, input, call.shown, call.result.as_ref().err());
        let decision = call.result?;
        if decision.verdict.left_out > 0 {
            tracing::debug!(
                module = %policy.module,
                request,
                left_out = decision.verdict.left_out,
                "warnings, causes or audit annotations of a verdict left out"
            );
        }
        Ok(decision)
    }
}

impl Reviewer for PolicyReviewer {
    async fn review(
        &self,
        webhook: WebhookRef,
        request: AdmissionRequest<'_>,
        deadline: StdInstant,
    ) -> Reviewed {
        let now = self.policies.env().instant();
        let policy = match self.policies.active().get(&webhook.module, now) {
            Some(Entry::Active(policy)) => policy,
            Some(Entry::Removed { .. }) => return Reviewed::Answer(AdmissionResponse::allowed()),
            None => return Reviewed::UnknownPolicy,
        };
        // While overrides change, an API server may call a webhook that this replica has not yet,
        // or no longer. The review then has the mode of the Module.
        let mode = policy.mode(webhook.index).unwrap_or_else(|| policy.default_mode());
        let user = user(&request.user_info);
        let input = input(&request, &user, &policy.parameters);
        if is_excluded(&input, policy.client.host_namespace()) {
            let metrics = self.policies.reviews();
            metrics.count(&policy.module, DecisionKind::Excluded, mode, Duration::ZERO);
            return Reviewed::Answer(AdmissionResponse::allowed());
        }
        self.review_with(&policy, mode, &input, Instant::from_std(deadline)).await
    }
}

fn user(info: &UserInfo<'_>) -> User {
    let owned = |texts: &[Cow<'_, str>]| -> Vec<String> {
        texts.iter().map(|text| text.clone().into_owned()).collect()
    };
    User {
        username: info.username.clone().into_owned(),
        uid: info.uid.clone().into_owned(),
        groups: owned(&info.groups),
        extra: info
            .extra
            .iter()
            .map(|(key, values)| (key.clone().into_owned(), owned(values)))
            .collect(),
    }
}

fn input<'a>(
    request: &'a AdmissionRequest<'a>,
    user: &'a User,
    parameters: &'a str,
) -> ReviewInput<'a> {
    ReviewInput {
        operation: match request.operation {
            AdmissionOperation::Create => Operation::Create,
            AdmissionOperation::Update => Operation::Update,
            AdmissionOperation::Delete => Operation::Delete,
            AdmissionOperation::Connect => Operation::Connect,
        },
        kind: gvk(&request.kind),
        resource: gvr(&request.resource),
        subresource: &request.sub_resource,
        request_kind: request.request_kind.as_ref().map(gvk),
        request_resource: request.request_resource.as_ref().map(gvr),
        name: &request.name,
        namespace: &request.namespace,
        user,
        object: request.object,
        old_object: request.old_object,
        options: request.options,
        dry_run: request.dry_run,
        background: false,
        parameters,
    }
}

fn gvk<'a>(kind: &'a GroupVersionKind<'_>) -> Gvk<'a> {
    Gvk { group: &kind.group, version: &kind.version, kind: &kind.kind }
}

fn gvr<'a>(resource: &'a GroupVersionResource<'_>) -> Gvr<'a> {
    Gvr { group: &resource.group, version: &resource.version, resource: &resource.resource }
}
