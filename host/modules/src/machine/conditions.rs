//! What the machine reports of a module, as conditions.

use innkeeper_contract::{Condition, ConditionStatus};

use super::rejection::Rejection;
use super::{
    Candidate, HeldCandidate, LoadedCandidate, Machine, RunFailure, Source, condition, reason,
};
use crate::module;
use crate::source::Digest;

impl Machine {
    /// The conditions of the Module, ordered by type.
    pub fn conditions(&self) -> Vec<Condition> {
        let loaded = self.loaded();
        let ready = self.ready(&loaded);
        let mut all = vec![
            self.healthy(),
            ready,
            loaded,
            self.serving_condition(),
            self.held(),
            self.blocked(),
        ];
        all.sort_by(|a, b| a.type_.cmp(&b.type_));
        all
    }

    /// Why the candidate is refused; also while it is tried again, until the new result is known.
    pub fn refused(&self) -> Option<(Digest, &Rejection)> {
        match (&self.progress.retried, &self.candidate) {
            (Some((digest, rejection)), _) | (None, Candidate::Rejected(digest, rejection)) => {
                Some((*digest, rejection))
            }
            _ => None,
        }
    }

    fn loaded(&self) -> Condition {
        if let Some((digest, rejection)) = self.refused() {
            return self.not_loaded(rejection, &format!("{} is refused: ", digest.short()));
        }
        self.loading().unwrap_or_else(|| self.source_loaded())
    }

    /// The condition Loaded of a candidate that is not refused.
    fn loading(&self) -> Option<Condition> {
        let (reason, message) = match &self.candidate {
            Candidate::Loading(digest) => {
                (reason::LOADING, format!("{} is being loaded.", digest.short()))
            }
            Candidate::RestoringSnapshot(digest) => (
                reason::RESTORING_SNAPSHOT,
                format!(
                    "The host fetches the snapshot of {}, the last active revision.",
                    digest.short()
                ),
            ),
            Candidate::Previewing(candidate) => {
                (reason::PREVIEWING, format!("{} runs without writes.", name(candidate)))
            }
            Candidate::Held(candidate, held) => {
                let message =
                    format!("{} is loaded and held: {}.", name(candidate), held.rejection.message);
                let type_ = condition::LOADED_CONDITION;
                return Some(make(type_, ConditionStatus::True, reason::HELD, message));
            }
            Candidate::InstallingCrds(candidate) => (
                reason::INSTALLING_CRDS,
                format!(
                    "The CustomResourceDefinitions of {} are being installed.",
                    name(candidate)
                ),
            ),
            Candidate::Committing(candidate) => (
                reason::COMMITTING,
                format!("{} is decided; the host writes the decision.", name(candidate)),
            ),
            Candidate::ModuleDeleted => (reason::FINALIZING, self.teardown_condition()),
            Candidate::Nothing | Candidate::Rejected(..) => return None,
        };
        Some(make(condition::LOADED_CONDITION, ConditionStatus::Unknown, reason, message))
    }

    /// The condition Loaded without a candidate.
    fn source_loaded(&self) -> Condition {
        let type_ = condition::LOADED_CONDITION;
        match &self.source {
            Source::Unavailable(rejection) => self.not_loaded(rejection, ""),
            Source::Unknown => {
                let message = "The source has not been read yet.";
                make(type_, ConditionStatus::Unknown, reason::WAITING, message)
            }
            Source::Present(digest) => {
                let message = format!("{} is loaded.", digest.short());
                make(type_, ConditionStatus::True, reason::SOURCE_LOADED, message)
            }
        }
    }

    fn not_loaded(&self, rejection: &Rejection, what: &str) -> Condition {
        let message = format!("{what}{}{}", rejection.message, self.stays_active());
        make(condition::LOADED_CONDITION, ConditionStatus::False, &rejection.reason, message)
    }

    fn teardown_condition(&self) -> String {
        let why = match &self.teardown {
            Some(Err(rejection)) => Some(format!(": {}", rejection.message)),
            Some(Ok(())) | None => None,
        };
        format!(
            "The Module is being deleted; the host removes its finalizer from its primaries first{}.",
            why.unwrap_or_default()
        )
    }

    /// The condition Held, with what is wrong with the annotations that approve or reject.
    fn held(&self) -> Condition {
        let mut held = self.held_candidate();
        if let Some(message) = &self.approvals.invalid {
            held.message = format!("{} {message}", held.message);
        }
        held
    }

    fn held_candidate(&self) -> Condition {
        let type_ = condition::HELD_CONDITION;
        let Candidate::Held(loaded_candidate, held) = &self.candidate else {
            if let Some(held) = self.wanted_adoption().and_then(|adoption| adoption.held()) {
                let message = format!(
                    "{}. To approve it, annotate the Module with {}={}; to keep the definition, set spec.crds to Keep.",
                    held.rejection.message,
                    module::APPROVE_ANNOTATION,
                    held.approval,
                );
                return make(type_, ConditionStatus::True, &held.rejection.reason, message);
            }
            let message = "No candidate waits for an approval.";
            return make(type_, ConditionStatus::False, reason::NO_APPROVAL_NEEDED, message);
        };
        let HeldCandidate { preview, rejection, approval } = &**held;
        let message = format!(
            "{} is held: {}. It would cause: {}. To approve it, annotate the Module with {}={}; to reject it, with {}={}.",
            name(loaded_candidate),
            rejection.message,
            preview.summary(),
            module::APPROVE_ANNOTATION,
            approval,
            module::REJECT_ANNOTATION,
            loaded_candidate.digest
        );
        make(type_, ConditionStatus::True, &rejection.reason, message)
    }

    /// The condition Blocked: a user has to change a definition or an object; approving does not
    /// help.
    fn blocked(&self) -> Condition {
        let type_ = condition::BLOCKED;
        let is_blocking = |rejection: &Rejection| {
            [reason::CRD_NOT_ADDITIVE, reason::WOULD_LOSE_DATA].contains(&&*rejection.reason)
        };
        let active = self.wanted_adoption().and_then(|adoption| adoption.rejection());
        let active = active.and_then(|refused| Some((self.revisions.active_digest()?, refused)));
        let mut refused = self.refused().into_iter().chain(active);
        let Some((digest, rejection)) = refused.find(|(_, rejection)| is_blocking(rejection))
        else {
            let message = "No candidate is blocked.";
            return make(type_, ConditionStatus::False, reason::CRDS_COMPATIBLE, message);
        };
        let message = format!(
            "{} is blocked, and an approval does not help: {}.",
            digest.short(),
            rejection.message
        );
        make(type_, ConditionStatus::True, &rejection.reason, message)
    }

    fn serving_condition(&self) -> Condition {
        let type_ = condition::SERVING_CONDITION;
        match &self.revisions.active {
            Some(active) => make(
                type_,
                ConditionStatus::True,
                reason::REVISION_ACTIVE,
                format!("{} ({}) is active.", active.title, active.digest.short()),
            ),
            None => make(
                type_,
                ConditionStatus::False,
                reason::NO_ACTIVE_REVISION,
                "No revision is active.",
            ),
        }
    }

    fn ready(&self, loaded: &Condition) -> Condition {
        let type_ = condition::READY_CONDITION;
        if let Some(rejection) = self.spec.misfit() {
            return make(
                type_,
                ConditionStatus::False,
                &rejection.reason,
                rejection.message.clone(),
            );
        }
        if let Some(missing) = &self.missing_crds {
            let (reason, message) = missing.describe(self.spec.is_paused);
            return make(type_, ConditionStatus::False, reason, message);
        }
        if let Some(adoption) = self.wanted_adoption() {
            if let Some(Rejection { reason, message, .. }) = adoption.rejection() {
                return make(type_, ConditionStatus::False, reason, message.clone());
            }
            let message = "The CustomResourceDefinitions become the module's.";
            return make(type_, ConditionStatus::Unknown, reason::ADOPTING_CRDS, message);
        }
        if self.spec.pending_check.is_some() {
            let message = "The parameters are being checked against the schema of the guest.";
            return make(type_, ConditionStatus::Unknown, reason::CHECKING_PARAMETERS, message);
        }
        if loaded.status != ConditionStatus::True {
            return make(type_, ConditionStatus::False, &loaded.reason, loaded.message.clone());
        }
        if let Candidate::Held(loaded_candidate, held) = &self.candidate {
            let message =
                format!("{} is held: {}.", name(loaded_candidate), held.rejection.message);
            return make(type_, ConditionStatus::False, reason::HELD, message);
        }
        if self.spec.is_paused {
            let message = "The Module is paused: the host writes nothing for primaries that are not being deleted.";
            return make(type_, ConditionStatus::False, reason::PAUSED, message);
        }
        if let Some(Err(RunFailure { rejection, lacks_right: true })) = &self.runs {
            let Rejection { reason, message, .. } = rejection;
            return make(type_, ConditionStatus::False, reason, message.clone());
        }
        let message = "The present source is active with the present spec.";
        make(type_, ConditionStatus::True, reason::REVISION_ACTIVE, message)
    }

    /// A sentence for messages about a candidate or the source that fails.
    pub(super) fn stays_active(&self) -> String {
        match &self.revisions.active {
            Some(active) => format!(". {} ({}) stays active.", active.title, active.digest.short()),
            None => String::new(),
        }
    }

    fn healthy(&self) -> Condition {
        let type_ = condition::HEALTHY_CONDITION;
        match &self.runs {
            None => make(
                type_,
                ConditionStatus::Unknown,
                reason::NOT_RECONCILED,
                "No run has ended yet.",
            ),
            Some(Ok(None)) => {
                make(type_, ConditionStatus::True, reason::RECONCILE_SUCCEEDED, "The runs succeed.")
            }
            Some(Ok(Some(refused))) => make(
                type_,
                ConditionStatus::True,
                reason::SOME_WRITES_REFUSED,
                format!("The runs succeed. {refused}"),
            ),
            Some(Err(RunFailure { rejection, .. })) => {
                make(type_, ConditionStatus::False, &rejection.reason, rejection.message.clone())
            }
        }
    }
}

fn make(
    type_: &str,
    status: ConditionStatus,
    reason: &str,
    message: impl Into<String>,
) -> Condition {
    Condition {
        type_: type_.to_owned(),
        status,
        reason: reason.to_owned(),
        message: message.into(),
    }
}

fn name(loaded_candidate: &LoadedCandidate) -> String {
    format!("{} ({})", loaded_candidate.title, loaded_candidate.digest.short())
}
