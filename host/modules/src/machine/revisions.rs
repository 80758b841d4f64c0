//! Which revision is active, and which ones may become active again.

use super::history::History;
use super::rejections::Rejections;
use crate::source::Digest;

/// The active revision, or the one before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActiveRevision {
    /// The component.
    pub digest: Digest,
    /// Its name and version.
    pub title: String,
}

/// The revisions that a restarted host is to find in a Module's status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecidedDigests {
    /// The active revision.
    pub active: Option<Digest>,
    /// The revisions that were active before, the last one first.
    pub history: Vec<Digest>,
    /// The one of them that a rollback returns to, unless the user names another one.
    pub previous: Option<Digest>,
}

/// The revisions of a module that are or were active. Nothing else says which revision is active:
/// the driver and the operator derive it from here.
#[derive(Clone, Debug, Default)]
pub(super) struct Revisions {
    /// The active revision.
    pub(super) active: Option<ActiveRevision>,
    /// The previous revision, within the rollback window.
    pub(super) rollback_target: Option<ActiveRevision>,
    /// The revisions that were active before.
    pub(super) history: History,
    /// The revision that was active before the host started, until a revision is active.
    pub(super) restored: Option<Digest>,
    /// The revision that was active before the host started cannot be loaded any more.
    pub(super) is_restored_lost: bool,
}

impl Revisions {
    /// The digest of the active revision.
    pub(super) fn active_digest(&self) -> Option<Digest> {
        self.active.as_ref().map(|active| active.digest)
    }

    /// Whether a component is the active revision.
    pub(super) fn is_active(&self, digest: Digest) -> bool {
        self.active_digest() == Some(digest)
    }

    /// Whether a component was active before the host started, and is to be active again.
    pub(super) fn is_restored(&self, digest: Digest) -> bool {
        self.restored == Some(digest)
    }

    /// What the status says until a candidate is decided.
    pub(super) fn persistent(&self, rejections: &Rejections) -> DecidedDigests {
        let active = self.active_digest().or(self.restored);
        DecidedDigests::new(active, &self.history, rejections)
    }

    /// What the status says once a candidate is decided.
    pub(super) fn decided_for(&self, candidate: Digest, rejections: &Rejections) -> DecidedDigests {
        let history = self.history.after_swap(self.active_digest(), candidate, rejections);
        DecidedDigests::new(Some(candidate), &history, rejections)
    }
}

impl DecidedDigests {
    fn new(active: Option<Digest>, history: &History, rejections: &Rejections) -> Self {
        let previous = history.previous(rejections);
        Self { active, history: history.newest_first().collect(), previous }
    }
}
