//! What the guest desires for an earlier revision of the primary: a missing object over the limit
//! of its update group is created so.

use std::sync::Arc;

use innkeeper_core::desired::DesiredState;
use innkeeper_core::primary_revision::{
    self, EARLIER_CALLS_MAX, GroupOverLimit, PrimaryRevision, PrimaryRevisions,
};
use innkeeper_core::{Object, ObjectRef, plan};
use innkeeper_sandbox::{Figures, Host, Level, Outcome, ReadError, ResourceKind};

use super::subject::Subject;
use super::view::ClusterView;

/// Why the guest's answer for an earlier revision does not count, for the log.
type Reason = &'static str;

/// Whose earlier revisions the guest gets.
pub(super) struct Earlier<'a> {
    pub(super) subject: &'a Subject<'a>,
    /// The objects that the primary owns or is merged into.
    pub(super) owned: &'a [(ObjectRef, Arc<Object>)],
    /// The revisions of the primary.
    pub(super) revisions: &'a PrimaryRevisions,
}

impl Earlier<'_> {
    /// Calls the guest with the newest revisions, and replaces the missing objects of each group
    /// that proves to be on one of them. Adds the figures of the calls. Returns whether it replaced
    /// an object.
    ///
    /// It calls with the oldest of them first: the newer one may be a change that has stopped, of
    /// which the failed object is still in the group while the API server deletes it.
    ///
    /// A call that fails is no failure of the primary: the host creates the objects as they are
    /// desired now. So it does if only revisions in another API version are left.
    pub(super) fn substitute(
        &self,
        mut groups: Vec<GroupOverLimit>,
        desired: &mut DesiredState,
        view: &mut impl ClusterView,
        figures: &mut Vec<Figures>,
    ) -> bool {
        let mut replaced = 0;
        for revision in self.revisions.earlier.iter().take(EARLIER_CALLS_MAX).rev() {
            if groups.is_empty() {
                break;
            }
            match self.desired_for(revision, view, figures) {
                Ok(earlier) => {
                    replaced += primary_revision::substitute(desired, &earlier, &mut groups);
                }
                Err(reason) => tracing::info!(
                    module = self.subject.owner.module(),
                    primary = %self.subject.primary.key,
                    primary_revision = revision.name,
                    reason,
                    "guest gave no desired state for an earlier revision of the primary"
                ),
            }
        }
        if !groups.is_empty() {
            self.log_other_versions();
        }
        replaced > 0
    }

    /// Logs which revisions the guest does not get since their fields may mean something else.
    fn log_other_versions(&self) {
        for other in self.revisions.of_other_version.iter().take(EARLIER_CALLS_MAX) {
            tracing::info!(
                module = self.subject.owner.module(),
                primary = %self.subject.primary.key,
                primary_revision = other.name,
                api_version = other.api_version,
                reason = "OtherApiVersion",
                "earlier revision of the primary is in another API version; the guest does not get it"
            );
        }
    }

    /// What the guest desires for a revision, with the same observation otherwise.
    fn desired_for(
        &self,
        revision: &PrimaryRevision,
        view: &mut impl ClusterView,
        figures: &mut Vec<Figures>,
    ) -> Result<DesiredState, Reason> {
        let Subject { guest, owner, grants, unapplied, .. } = *self.subject;
        let primary = primary_revision::with_revision(self.subject.primary, revision);
        let bytes_max = guest.limits().memory_bytes;
        let document = view
            .document(&primary, self.owned, unapplied, bytes_max)
            .map_err(|error| error.reason())?;
        let mut host = EarlierHost { view, revision: &revision.name };
        let run = guest.reconcile(&document, &mut host).map_err(|error| error.reason())?;
        figures.push(run.figures);
        let answer = match run.outcome {
            Outcome::Complete(answer) | Outcome::Partial(answer) => answer,
            Outcome::Failed(_) => return Err("GuestFailed"),
        };
        let mut desired = DesiredState::read(&answer, guest.manifest(), owner, grants)
            .map_err(|invalid| invalid.reason())?;
        plan::place_values(&mut desired, &mut |object_ref| view.lookup(object_ref));
        Ok(desired)
    }
}

/// The cluster of a call with an earlier revision. Lines of the guest's log are for developers.
struct EarlierHost<'a, V> {
    view: &'a mut V,
    revision: &'a str,
}

impl<V: ClusterView> Host for EarlierHost<'_, V> {
    fn get(
        &mut self,
        kind: &ResourceKind,
        namespace: &str,
        name: &str,
        room: usize,
    ) -> Result<String, ReadError> {
        self.view.get(kind, namespace, name, room)
    }

    fn list(
        &mut self,
        kind: &ResourceKind,
        namespace: &str,
        label_selector: &str,
        room: usize,
    ) -> Result<String, ReadError> {
        self.view.list(kind, namespace, label_selector, room)
    }

    fn now_ms(&mut self) -> u64 {
        self.view.now_ms()
    }

    fn log(&mut self, _: Level, message: &str) {
        self.view.log_earlier(self.revision, message);
    }
}
