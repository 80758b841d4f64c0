//! Transitions by approvals and rejections of users.

use innkeeper_contract::EventType;

use super::rejection::{Rejection, RetryPolicy};
use super::{Candidate, Effect, Machine, Source, reason};
use crate::source::Digest;

impl Machine {
    pub(super) fn on_approval(
        &mut self,
        approve: Option<Digest>,
        reject: Option<Digest>,
        effects: &mut Vec<Effect>,
    ) {
        if let Some(digest) = self.approvals.update(approve, reject) {
            self.on_rejected_by_user(digest, effects);
        }
        let Some(approved) = self.approvals.approved else { return };
        self.rejections.remove(approved);
        if self.revisions.is_active(approved) {
            self.approvals.record_active(approved);
        }
        self.on_adoption_approved(approved, effects);
        match &self.candidate {
            Candidate::Held(loaded, held) if held.approval == approved => {
                let loaded = loaded.clone();
                effects.push(Effect::notify(
                    EventType::Normal,
                    "Approved",
                    format!("{} ({}) is approved.", loaded.title, approved.short()),
                ));
                self.install(loaded, effects);
            }
            Candidate::Rejected(digest, _) if *digest == approved => {
                // The driver has dropped its bytes.
                self.source = Source::Unknown;
                self.candidate = Candidate::Nothing;
                effects.push(Effect::Fetch);
            }
            _ => {}
        }
    }

    fn on_rejected_by_user(&mut self, digest: Digest, effects: &mut Vec<Effect>) {
        let rejection =
            Rejection::new(reason::REJECTED, "a user has rejected it", RetryPolicy::Never);
        self.keep_active_after_dropped_rollback(digest);
        // The host does not return to a rejected revision by itself either.
        if self.revisions.rollback_target.as_ref().is_some_and(|target| target.digest == digest) {
            self.end_rollback_window(effects);
        }
        // A component that is being loaded is refused when its load ends.
        if self.candidate.digest() == Some(digest) && !self.candidate.is_loading() {
            self.progress.reusable = None;
            self.reject(digest, rejection, effects);
        } else {
            self.rejections.record(digest, rejection);
        }
    }

    /// A rollback rejects the active revision before its target is previewed. If the target is
    /// refused for good, the active revision is no longer rejected.
    pub(super) fn keep_active_after_dropped_rollback(&mut self, target: Digest) {
        if self.candidate.digest() == Some(target) && self.revisions.history.contains(target) {
            self.keep_active();
        }
    }

    /// Lifts the rejection of the active revision by a user: the user returned to that revision, or
    /// there is no other.
    pub(super) fn keep_active(&mut self) {
        let Some(active) = self.revisions.active_digest() else { return };
        if self.rejections.find(active).is_some_and(|one| one.reason == reason::REJECTED) {
            self.rejections.remove(active);
        }
    }
}
