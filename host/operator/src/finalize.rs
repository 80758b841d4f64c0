//! Writing a module's finalizer on a primary, and taking it off.

use std::borrow::Cow;
use std::sync::Arc;

use innkeeper_cluster::client::Force;
use innkeeper_cluster::{ApiClient, ApiError, Caches};
use innkeeper_core::{Finalizer, Object, ObjectRef};

use crate::modules::active_module::ActiveModule;
use crate::primary_state::PrimaryState;
use crate::problem::{Problem, Retry};
use crate::queue::ReconcileRequest;
use crate::shared::{self, Shared};

/// What taking a finalizer off is counted as.
pub const RELEASE: &str = "remove_finalizer";

/// How a write of finalizers ended.
pub enum WriteOutcome {
    /// As it should.
    Applied,
    /// The primary has changed: it is looked at anew.
    Conflict,
    /// It cannot be written.
    Failed(Problem),
}

/// One primary whose finalizers are written.
pub struct Finalizers<'a> {
    /// The shared things.
    pub shared: &'a Shared,
    /// The caches, to be told of writes.
    pub caches: &'a Caches,
    /// The module.
    pub active: &'a ActiveModule,
    /// The primary's key.
    pub request: &'a ReconcileRequest,
    /// The primary, as it was seen.
    pub primary: &'a Arc<Object>,
}

/// Takes a module's finalizers off a primary: gives up those that another module has written as
/// well, and removes the others. Gives the primary as it is after that.
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

impl Finalizers<'_> {
    /// Writes the module's finalizer.
    pub async fn add(&self, primary_state: &mut PrimaryState) -> WriteOutcome {
        let object_ref = self.object_ref();
        let finalizer = &self.active.finalizer;
        let body = finalizer.body(&object_ref, &self.primary.uid);
        let client = &self.active.client;
        let _writing = self.caches.begin_write(&object_ref.kind, &object_ref.key);
        let result = client
            .apply(&object_ref.kind, &object_ref.key, finalizer.manager(), &body, Force::Yes)
            .await
            .map(|applied| applied.object);
        self.ended(object_ref, result, primary_state, ("add_finalizer", "added"))
    }

    /// Takes the module's finalizers off. `is_done`: the guest has nothing left to do.
    pub async fn release(&self, is_done: bool, primary_state: &mut PrimaryState) -> WriteOutcome {
        let object_ref = self.object_ref();
        let active = self.active;
        let _writing = self.caches.begin_write(&object_ref.kind, &object_ref.key);
        let result =
            remove_finalizer(&active.client, &active.finalizer, &object_ref, self.primary, is_done)
                .await;
        self.ended(object_ref, result, primary_state, (RELEASE, "removed"))
    }

    fn object_ref(&self) -> ObjectRef {
        ObjectRef::new(self.active.primary.clone(), self.primary.key.clone())
    }

    fn ended(
        &self,
        object_ref: ObjectRef,
        result: Result<Object, ApiError>,
        primary_state: &mut PrimaryState,
        (verb, what): (&str, &str),
    ) -> WriteOutcome {
        let error = match result {
            Ok(object) => {
                tracing::info!(module = %self.active.name(), primary = %self.request.key, "finalizer {what}");
                self.shared.count_write(self.request, verb);
                shared::record_write(self.shared, self.caches, &object_ref, object, self.request);
                return WriteOutcome::Applied;
            }
            Err(error) => error,
        };
        match error {
            ApiError::Conflict { .. }
            | ApiError::ObjectDeleted { .. }
            | ApiError::UidMismatch { .. }
            | ApiError::NotFound { .. } => {
                self.caches.mark_unknown(&object_ref.kind, &object_ref.key);
                primary_state.needs_read.insert(object_ref);
                WriteOutcome::Conflict
            }
            error => {
                if error.makes_unknown() {
                    self.caches.mark_unknown(&object_ref.kind, &object_ref.key);
                    primary_state.needs_read.insert(object_ref.clone());
                }
                WriteOutcome::Failed(Problem {
                    object_ref: Some(object_ref),
                    reason: error.reason().to_owned(),
                    message: format!("the finalizer cannot be {what}: {error}"),
                    retry: Retry::Backoff,
                })
            }
        }
    }
}
