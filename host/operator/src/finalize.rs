//! Writing a module's finalizer on a primary, and taking it off.

use std::borrow::Cow;
use std::sync::Arc;

use innkeeper_cluster::session::Force;
use innkeeper_cluster::{ApiError, Caches, Session};
use innkeeper_core::{Finalizer, Object, Target};

use crate::memory::Memory;
use crate::problem::{Problem, Retry};
use crate::queue::Work;
use crate::running::Running;
use crate::shared::{self, Shared};

/// What taking a finalizer off is counted as.
pub const RELEASE: &str = "remove_finalizer";

/// How a write of finalizers ended.
pub enum Written {
    /// As it should.
    Yes,
    /// The primary has changed: it is looked at anew.
    Overtaken,
    /// It cannot be written.
    No(Problem),
}

/// One primary whose finalizers are written.
pub struct Finalizers<'a> {
    /// The shared things.
    pub shared: &'a Shared,
    /// The caches, to be told of writes.
    pub caches: &'a Caches,
    /// The module.
    pub running: &'a Running,
    /// The primary's key.
    pub work: &'a Work,
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
pub async fn take_off(
    session: &Session,
    finalizer: &Finalizer,
    target: &Target,
    primary: &Object,
    is_done: bool,
) -> Result<Object, ApiError> {
    let (kind, key, manager) = (&target.kind, &target.key, finalizer.manager());
    let mut primary = Cow::Borrowed(primary);
    if let Some(body) = finalizer.disclaim(target, &primary) {
        let applied = session.apply(kind, key, manager, &body, Force::Yes).await?;
        primary = Cow::Owned(applied.object);
    }
    match finalizer.release(&primary, is_done) {
        Some(body) => session.merge_patch(kind, key, manager, &body).await,
        None => Ok(primary.into_owned()),
    }
}

impl Finalizers<'_> {
    /// Writes the module's finalizer.
    pub async fn add(&self, memory: &mut Memory) -> Written {
        let target = self.target();
        let finalizer = &self.running.finalizer;
        let body = finalizer.body(&target, &self.primary.uid);
        let session = &self.running.session;
        let _writing = self.caches.writing(&target.kind, &target.key);
        let result = session
            .apply(&target.kind, &target.key, finalizer.manager(), &body, Force::Yes)
            .await
            .map(|applied| applied.object);
        self.ended(target, result, memory, ("add_finalizer", "added"))
    }

    /// Takes the module's finalizers off. `is_done`: the guest has nothing left to do.
    pub async fn release(&self, is_done: bool, memory: &mut Memory) -> Written {
        let target = self.target();
        let running = self.running;
        let _writing = self.caches.writing(&target.kind, &target.key);
        let result =
            take_off(&running.session, &running.finalizer, &target, self.primary, is_done).await;
        self.ended(target, result, memory, (RELEASE, "removed"))
    }

    fn target(&self) -> Target {
        Target::new(self.running.primary.clone(), self.primary.key.clone())
    }

    fn ended(
        &self,
        target: Target,
        result: Result<Object, ApiError>,
        memory: &mut Memory,
        (verb, what): (&str, &str),
    ) -> Written {
        let error = match result {
            Ok(object) => {
                tracing::info!(module = %self.running.name(), primary = %self.work.key, "finalizer {what}");
                self.shared.count_write(self.work, verb);
                shared::wrote(self.shared, self.caches, &target, object, self.work);
                return Written::Yes;
            }
            Err(error) => error,
        };
        match error {
            ApiError::VersionConflict { .. }
            | ApiError::Gone { .. }
            | ApiError::UidMismatch { .. }
            | ApiError::NotFound { .. } => {
                self.caches.mark_unknown(&target.kind, &target.key);
                memory.unsettled.insert(target);
                Written::Overtaken
            }
            error => {
                if error.makes_unknown() {
                    self.caches.mark_unknown(&target.kind, &target.key);
                    memory.unsettled.insert(target.clone());
                }
                Written::No(Problem {
                    target: Some(target),
                    reason: error.reason().to_owned(),
                    message: format!("the finalizer cannot be {what}: {error}"),
                    retry: Retry::Backoff,
                })
            }
        }
    }
}
