//! The life of one module: a pure state machine.
//!
//! The active revision runs on while a candidate is on its way; a broken candidate never displaces
//! it. docs/modules.md draws the states and the transitions; a test compares the drawing with the
//! machine.
//!
//! A source that changes supersedes the candidate. At most one load runs; when it ends for a
//! superseded candidate, the machine loads the newest one. It keeps rejected digests, and tries one
//! again only when the cause of its rejection has changed.
//!
//! Before a candidate becomes active, the host previews it: runs it without writes, while the
//! active revision runs on. A candidate that would delete or fail requires an approval
//! ([`Candidate::Held`]). Then the host writes the decision ([`Candidate::Committing`]) before the
//! candidate reconciles its first primary, so that a host that is killed at any moment returns to
//! the decided revision. The machine keeps the previous revision during the rollback window, and
//! activates it again if more primaries fail than before.
//!
//! Nothing here does I/O or knows the time: [`Machine::step`] takes an [`Event`] and returns
//! [`Effect`]s, and the driver carries them out.
//!
//! The transitions are in `spec`, `source`, `loading`, `approval`, `activation`, `rollback`,
//! `adoption`, `reinstallation` and `teardown`, named by what they are about. The state is in
//! `spec_state`, `candidate`, `approvals`, `rejections`, `revisions`, `history`,
//! `decided_rollback`, `adoption_state` and `missing_crds`; `conditions` says what the Module
//! reports.

mod activation;
mod adoption;
mod adoption_state;
mod approval;
mod approvals;
mod candidate;
mod conditions;
mod decided_rollback;
mod effect;
mod event;
mod history;
mod loading;
mod missing_crds;
pub mod reason;
mod reinstallation;
mod rejection;
mod rejections;
mod revisions;
mod rollback;
mod run_failure;
mod source;
mod spec;
mod spec_state;
mod teardown;

use crate::source::Digest;

use adoption_state::AdoptionState;
use approvals::Approvals;
use candidate::CandidateProgress;
pub use candidate::{Candidate, HeldCandidate, LoadedCandidate, REJECTED};
use decided_rollback::DecidedRollback;
pub use effect::{DirectEffect, Effect};
pub use event::{ComponentInfo, Event, Spec};
pub use history::HISTORY_MAX;
use history::History;
use missing_crds::MissingCrds;
pub use rejection::{Rejection, RetryPolicy};
use rejections::Rejections;
use revisions::Revisions;
pub use revisions::{ActiveRevision, DecidedDigests};
pub use run_failure::RunFailure;
use spec_state::SpecState;

/// Types of the conditions of a Module.
pub mod condition {
    /// The present source is loaded.
    pub const LOADED_CONDITION: &str = "Loaded";
    /// A revision is active.
    pub const SERVING_CONDITION: &str = "Serving";
    /// The active revision is that of the present source, with the present spec.
    pub const READY_CONDITION: &str = "Ready";
    /// The runs of the module succeed.
    pub const HEALTHY_CONDITION: &str = "Healthy";
    /// A candidate waits for an approval.
    pub const HELD_CONDITION: &str = "Held";
    /// A candidate cannot become active, and an approval would not help.
    pub const BLOCKED: &str = "Blocked";
}

/// The component that the source has at present.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Source {
    /// Not read yet, since the Module appeared or names another source.
    #[default]
    Unknown,
    /// No component.
    Unavailable(Rejection),
    /// A component.
    Present(Digest),
}

/// The life of one module. See the [module's docs](self).
#[derive(Clone, Debug, Default)]
pub struct Machine {
    spec: SpecState,
    source: Source,
    revisions: Revisions,
    candidate: Candidate,
    progress: CandidateProgress,
    rejections: Rejections,
    approvals: Approvals,
    /// The active revision is rolled back as soon as that is written.
    rollback: Option<DecidedRollback>,
    /// Why the loaded candidate may not become active, if another module reconciles its primaries.
    overlap: Option<Rejection>,
    /// Definitions of the active revision that do not exist any more.
    missing_crds: Option<MissingCrds>,
    /// Foreign definitions are to become those of the active revision, and have not yet.
    adoption: Option<AdoptionState>,
    /// Whether the runs of the active revision succeed, once some have ended.
    runs: Option<Result<Option<String>, RunFailure>>,
    /// The Module is being deleted; why its teardown failed, if it did.
    teardown: Option<Result<(), Rejection>>,
}

impl Machine {
    /// The active revision.
    pub fn active(&self) -> Option<&ActiveRevision> {
        self.revisions.active.as_ref()
    }

    /// The revision that the host returns to by itself; `None` outside of the rollback window.
    pub fn rollback_target(&self) -> Option<&ActiveRevision> {
        self.revisions.rollback_target.as_ref()
    }

    /// The candidate.
    pub fn candidate(&self) -> &Candidate {
        &self.candidate
    }

    /// The component that is loaded and need not be loaded again, although it is not active.
    pub fn loaded_candidate(&self) -> Option<Digest> {
        let loaded = self.candidate.loaded().or(self.progress.reusable.as_ref());
        loaded.map(|loaded| loaded.digest)
    }

    /// The components that only an approval allows again, and why.
    pub fn rejected(&self) -> impl Iterator<Item = &(Digest, Rejection)> {
        self.rejections.permanent()
    }

    /// The component that the source has at present.
    pub fn source_digest(&self) -> Option<Digest> {
        match self.source {
            Source::Present(digest) => Some(digest),
            Source::Unknown | Source::Unavailable(_) => None,
        }
    }

    /// The revisions that a restarted host is to find, as long as no candidate has its snapshot.
    pub fn persistent_digests(&self) -> DecidedDigests {
        self.revisions.persistent(&self.rejections)
    }

    /// The same once all that is decided is written, and the snapshot of a decided candidate saved.
    pub fn decided_digests(&self) -> DecidedDigests {
        if let Some(machine) = self.rolled_back() {
            return machine.decided_digests();
        }
        match &self.candidate {
            Candidate::Committing(loaded) => {
                self.revisions.decided_for(loaded.digest, &self.rejections)
            }
            _ => self.persistent_digests(),
        }
    }

    /// Whether the last spec can be used.
    pub fn is_spec_valid(&self) -> bool {
        self.spec.validity.is_ok()
    }

    /// The generation of the last spec.
    pub fn generation(&self) -> i64 {
        self.spec.generation
    }

    /// The approval that users gave last.
    pub fn approved(&self) -> Option<Digest> {
        self.approvals.approved
    }

    /// The approval by which a component has become active, and which does not count again.
    pub fn used_approval(&self) -> Option<Digest> {
        self.approvals.used
    }

    /// The rejection that users gave last, which the host has taken.
    pub fn used_rejection(&self) -> Option<Digest> {
        self.approvals.rejected
    }

    /// The change of definitions that waits for an approval.
    pub fn held_crds(&self) -> Option<Digest> {
        match &self.candidate {
            Candidate::Held(loaded, held) if held.approval != loaded.digest => Some(held.approval),
            _ => self.wanted_adoption()?.held().map(|held| held.approval),
        }
    }

    /// The adoption, if the present spec asks for it.
    fn wanted_adoption(&self) -> Option<&AdoptionState> {
        self.adoption.as_ref().filter(|_| self.spec.adopts_crds)
    }

    /// Whether a definition of the active revision is known not to exist.
    pub fn is_crd_missing(&self) -> bool {
        self.missing_crds.is_some()
    }

    /// Whether the candidate is decided, and about to become active.
    pub fn is_committing(&self) -> bool {
        matches!(self.candidate, Candidate::Committing(_))
    }

    /// Whether the Module is being deleted.
    pub fn is_tearing_down(&self) -> bool {
        self.teardown.is_some()
    }

    /// Whether a component was active before the host started, and is to be active again.
    pub fn is_restored(&self, digest: Digest) -> bool {
        self.revisions.is_restored(digest)
    }

    /// Takes whether another module reconciles primaries of the loaded candidate; to be called
    /// before each event that may make the candidate active.
    pub fn check_overlap(&mut self, overlap: Result<(), Rejection>) {
        self.overlap = overlap.err();
    }

    /// Takes an event; returns the effects, in the order in which to carry them out.
    pub fn step(&mut self, event: Event) -> Vec<Effect> {
        let before = self.reported_state();
        let mut effects = Vec::new();
        match event {
            event if self.is_tearing_down() => self.step_teardown(event, &mut effects),
            Event::Deleting => self.on_deleting(&mut effects),
            Event::TornDown(_) => {}
            Event::StatusLoaded {
                revision,
                is_lost,
                history,
                rejected,
                used_approval,
                used_rejection,
            } => {
                self.approvals.used = used_approval;
                self.approvals.rejected = used_rejection;
                self.revisions.restored = revision;
                self.revisions.is_restored_lost = is_lost;
                self.revisions.history = History::restored(history);
                self.rejections = Rejections::restored(rejected);
                return effects;
            }
            Event::Approval { approve, reject } => self.on_approval(approve, reject, &mut effects),
            Event::InvalidApproval(message) => self.approvals.invalid = message,
            Event::Spec { generation, spec } => self.on_spec(generation, spec, &mut effects),
            Event::Source(result) => self.on_source(result, &mut effects),
            Event::SnapshotRestored { digest, result } => {
                self.on_snapshot_restored(digest, result, &mut effects);
            }
            Event::Loaded { digest, result } => self.on_loaded(digest, result, &mut effects),
            Event::ParametersChecked(result) => self.on_parameters(result, &mut effects),
            Event::KindsChanged => self.on_kinds_changed(&mut effects),
            Event::Previewed { digest, result } => self.on_previewed(digest, result, &mut effects),
            Event::Crds { digest, result } => self.on_crds(digest, result, &mut effects),
            Event::CrdsHeld { digest, held } => self.on_crds_held(digest, *held, &mut effects),
            Event::CrdsAdopted { digest, result } => {
                self.on_crds_adopted(digest, result, &mut effects);
            }
            Event::CrdsWritten(written) => self.on_crds_written(&written, &mut effects),
            Event::CrdsDeleted(names) => self.on_crds_deleted(names, &mut effects),
            Event::CrdChanged => self.on_crd_changed(&mut effects),
            Event::CrdFound(name) => self.on_crd_found(&name),
            Event::ReinstallCrds => self.reinstall_crds(&mut effects),
            Event::CrdsReinstalled { digest, result } => {
                self.on_crds_reinstalled(digest, result, &mut effects);
            }
            Event::Committed { digest, result } => self.on_committed(digest, result, &mut effects),
            Event::FailureThresholdExceeded { digest, rejection } => {
                self.on_failure_threshold_exceeded(digest, &rejection, &mut effects);
            }
            Event::RollbackCommitted { digest, result } => {
                self.on_rollback_committed(digest, result, &mut effects);
            }
            Event::RollbackWindowOver(digest) => {
                self.on_rollback_window_over(digest, &mut effects);
            }
            Event::Retry => self.on_retry(&mut effects),
            Event::Health(result) => {
                // A message with another count of primaries is no news.
                let cause =
                    |failure: &RunFailure| (failure.lacks_right, failure.rejection.reason.clone());
                let before = self.runs.as_ref().and_then(|runs| runs.as_ref().err()).map(cause);
                if let Err(failure) = &result
                    && before != Some(cause(failure))
                {
                    effects.push(Effect::warning(&failure.rejection));
                }
                self.runs = Some(result);
            }
            Event::Deleted => return vec![DirectEffect::RemoveModule.into()],
        }
        if before != self.reported_state() {
            effects.push(Effect::Report);
        }
        effects
    }

    /// All that a report shows of the machine.
    fn reported_state(&self) -> impl PartialEq + use<> {
        let rejected: Vec<_> = self.rejected().cloned().collect();
        let active = self.revisions.active.clone();
        let used = (self.approvals.used, self.approvals.rejected);
        let generation = self.spec.generation;
        (self.conditions(), generation, active, self.candidate.clone(), rejected, used)
    }
}

#[cfg(test)]
mod tests;
