//! The module's finalizer on a primary: added before the first write, removed at the end.

use std::borrow::Cow;
use std::ops::ControlFlow;
use std::sync::Arc;

use innkeeper_cluster::client::Force;
use innkeeper_cluster::{ApiClient, ApiError};
use innkeeper_core::consent::{self, PAUSED_ANNOTATION};
use innkeeper_core::finalizer::FinalizerAction;
use innkeeper_core::{Finalizer, Object, ObjectRef};

use crate::modules::health::RunOutcome;
use crate::queue::ReconcileResult;
use crate::reconcile::context::Context;
use crate::reconcile::primary_state::PrimaryState;
use crate::reconcile::problem::{Problem, Retry};
use crate::reconcile::refusal::RefusalCause;
use crate::reconcile::round::{AfterRound, RoundEnd, RoundReport};
use crate::reconcile::write_error::WriteErrorClass;

/// The label of a removed finalizer in the metrics of writes.
pub const REMOVE_FINALIZER: &str = "remove_finalizer";

/// How a write of finalizers ended.
enum WriteOutcome {
    /// The API server did it.
    Applied,
    /// The primary has changed since the snapshot: the next round reads it live.
    Conflict,
    /// The API server refused it.
    Failed(Problem),
}

/// Removes a module's finalizers from a primary: gives up the ownership of those that another
/// module has written as well, and removes the others. Gives the primary after that.
///
/// `is_done`: the guest has nothing left to do for it.
///
/// # Errors
/// What the API server answers.
pub async fn remove_finalizer(
    client: &ApiClient,
    finalizer: &Finalizer,
    object_ref: &ObjectRef,
    primary: &Object,
    is_done: bool,
) -> Result<Object, ApiError> {
    let (kind, key, manager) = (&object_ref.kind, &object_ref.key, finalizer.manager());
    let mut primary = Cow::Borrowed(primary);
    if let Some(body) = finalizer.relinquish_body(object_ref, &primary) {
        let applied = client.apply(kind, key, manager, &body, Force::Yes).await?;
        primary = Cow::Owned(applied.object);
    }
    match finalizer.removal_patch(&primary, is_done) {
        Some(body) => client.merge_patch(kind, key, manager, &body).await,
        None => Ok(primary.into_owned()),
    }
}

/// The finalizers of a module on one primary.
pub struct Finalizers<'a> {
    /// The round.
    pub context: Context<'a>,
    /// The primary in the round's snapshot.
    pub primary: &'a Arc<Object>,
}

impl Finalizers<'_> {
    /// Adds or removes the module's finalizer where that comes before a run of the guest. Breaks if
    /// the guest is not to run in this round. `is_paused`: the finalizer is not added.
    pub async fn before_run(
        &self,
        is_paused: bool,
        state: &mut PrimaryState,
    ) -> ControlFlow<RoundEnd> {
        let report = || RoundReport::new(self.primary);
        match self.context.revision.finalizer_action(self.primary) {
            FinalizerAction::Reconcile | FinalizerAction::Finalize => ControlFlow::Continue(()),
            FinalizerAction::Add if is_paused => ControlFlow::Continue(()),
            FinalizerAction::Add => ControlFlow::Break(match self.add(state).await {
                WriteOutcome::Applied | WriteOutcome::Conflict => {
                    RoundEnd::ToReport(report(), AfterRound::AnotherRound)
                }
                WriteOutcome::Failed(problem) => report().blocked(problem),
            }),
            FinalizerAction::Remove => {
                ControlFlow::Break(self.remove(false, report(), state).await)
            }
            FinalizerAction::Nothing => ControlFlow::Break(self.nothing_left()),
        }
    }

    /// Removes the module's finalizers. `is_done`: the guest has nothing left to do.
    pub async fn remove(
        &self,
        is_done: bool,
        report: Box<RoundReport>,
        state: &mut PrimaryState,
    ) -> RoundEnd {
        let object_ref = self.object_ref();
        let active = self.context.revision;
        let _in_flight = self.context.begin_write(&object_ref);
        let result =
            remove_finalizer(&active.client, &active.finalizer, &object_ref, self.primary, is_done)
                .await;
        match self.record_result(&object_ref, result, state, (REMOVE_FINALIZER, "removed")) {
            WriteOutcome::Applied => self.nothing_left(),
            WriteOutcome::Conflict => RoundEnd::ToReport(report, AfterRound::AnotherRound),
            WriteOutcome::Failed(problem) => report.blocked(problem),
        }
    }

    fn nothing_left(&self) -> RoundEnd {
        self.context.shared.health.record(self.context.request, RunOutcome::default());
        RoundEnd::NothingToReport(ReconcileResult::Ok(None))
    }

    async fn add(&self, state: &mut PrimaryState) -> WriteOutcome {
        let object_ref = self.object_ref();
        let finalizer = &self.context.revision.finalizer;
        let body = finalizer.body(&object_ref, &self.primary.uid);
        let client = &self.context.revision.client;
        let _in_flight = self.context.begin_write(&object_ref);
        let result = client
            .apply(&object_ref.kind, &object_ref.key, finalizer.manager(), &body, Force::Yes)
            .await
            .map(|applied| applied.object);
        self.record_result(&object_ref, result, state, ("add_finalizer", "added"))
    }

    fn object_ref(&self) -> ObjectRef {
        ObjectRef::new(self.context.revision.primary_kind.clone(), self.primary.key.clone())
    }

    fn record_result(
        &self,
        object_ref: &ObjectRef,
        result: Result<Object, ApiError>,
        state: &mut PrimaryState,
        (verb, what): (&str, &str),
    ) -> WriteOutcome {
        let error = match result {
            Ok(object) => {
                let (module, primary) = (self.context.revision.name(), &self.context.request.key);
                tracing::info!(%module, %primary, "finalizer {what}");
                self.context.count_write(verb);
                self.context.record_write(object_ref, object);
                return WriteOutcome::Applied;
            }
            Err(error) => error,
        };
        let class = WriteErrorClass::of(&error);
        if class.makes_unknown() || matches!(error, ApiError::NotFound { .. }) {
            self.context.mark_unknown(object_ref, state);
        }
        let is_taken = matches!(error, ApiError::AlreadyExists { .. });
        let is_outdated = class == WriteErrorClass::Outdated && !is_taken;
        if is_outdated || matches!(error, ApiError::NotFound { .. }) {
            return WriteOutcome::Conflict;
        }
        WriteOutcome::Failed(Problem {
            refusal: RefusalCause::of(&error, object_ref),
            object_ref: Some(object_ref.clone()),
            reason: error.reason().to_owned(),
            message: format!("the finalizer cannot be {what}: {error}"),
            retry: Retry::Backoff,
        })
    }
}

/// Whether a user paused a primary by its annotation.
pub fn has_paused_annotation(primary: &Object) -> bool {
    consent::of_user(primary, PAUSED_ANNOTATION).as_deref() == Some("true")
}
