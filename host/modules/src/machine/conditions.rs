//! What the machine tells of a module, as conditions.

use innkeeper_contract::{Condition, ConditionStatus};

use super::{Aside, Candidate, Machine, Source, Verdict, condition, reason};
use crate::module;
use crate::source::Digest;

impl Machine {
    /// The conditions of the Module, ordered by type.
    pub fn conditions(&self) -> Vec<Condition> {
        let loaded = self.loaded();
        let ready = self.ready(&loaded);
        let mut all =
            vec![self.healthy(), ready, loaded, self.serves(), self.held(), self.blocked()];
        all.sort_by(|a, b| a.type_.cmp(&b.type_));
        all
    }

    /// Why the candidate is refused; also while it is tried again, until that is known better.
    pub fn refused(&self) -> Option<(Digest, &Verdict)> {
        match (&self.retried, &self.candidate) {
            (Some((digest, verdict)), _) | (None, Candidate::Rejected(digest, verdict)) => {
                Some((*digest, verdict))
            }
            _ => None,
        }
    }

    fn loaded(&self) -> Condition {
        use ConditionStatus::{False, True, Unknown};
        let type_ = condition::LOADED;
        let refused = |verdict: &Verdict, what: String| {
            make(
                type_,
                False,
                &verdict.reason,
                format!("{what}{}{}", verdict.message, self.goes_on()),
            )
        };
        if let Some((digest, verdict)) = &self.retried {
            return refused(verdict, format!("{} is not taken: ", digest.short()));
        }
        match (&self.candidate, &self.source) {
            (Candidate::Loading(digest), _) => make(
                type_,
                Unknown,
                reason::LOADING,
                format!("{} is being loaded.", digest.short()),
            ),
            (Candidate::Recalling(digest), _) => make(
                type_,
                Unknown,
                reason::RECALLING,
                format!("{}, which served last, is fetched from its copy.", digest.short()),
            ),
            (Candidate::Rehearsing(aside), _) => make(
                type_,
                Unknown,
                reason::REHEARSING,
                format!("{} is run without writing.", name(aside)),
            ),
            (Candidate::Held(aside, held), _) => make(
                type_,
                True,
                reason::HELD,
                format!("{} is loaded and held: {}.", name(aside), held.1.message),
            ),
            (Candidate::InstallingCrds(aside), _) => make(
                type_,
                Unknown,
                reason::INSTALLING_CRDS,
                format!("The CustomResourceDefinitions of {} are being installed.", name(aside)),
            ),
            (Candidate::Committing(aside), _) => make(
                type_,
                Unknown,
                reason::COMMITTING,
                format!("{} will serve; that is being written down.", name(aside)),
            ),
            (Candidate::Rejected(digest, verdict), _) => {
                refused(verdict, format!("{} is not taken: ", digest.short()))
            }
            (Candidate::Leaving, _) => make(type_, Unknown, reason::LEAVING, self.leaving()),
            (Candidate::Nothing, Source::Unavailable(verdict)) => refused(verdict, String::new()),
            (Candidate::Nothing, Source::Unknown) => {
                make(type_, Unknown, reason::WAITING, "The source has not been read yet.")
            }
            (Candidate::Nothing, Source::Present(digest)) => {
                make(type_, True, reason::SOURCE_LOADED, format!("{} is loaded.", digest.short()))
            }
        }
    }

    fn leaving(&self) -> String {
        let why = match &self.leaving {
            Some(Err(verdict)) => Some(format!(": {}", verdict.message)),
            Some(Ok(())) | None => None,
        };
        format!(
            "The Module is being deleted, and goes as soon as its finalizer is off its primaries{}.",
            why.unwrap_or_default()
        )
    }

    /// The condition Held, with what is wrong with the annotations that approve or reject.
    fn held(&self) -> Condition {
        let mut held = self.held_version();
        if let Some(message) = &self.invalid_approval {
            held.message = format!("{} {message}", held.message);
        }
        held
    }

    fn held_version(&self) -> Condition {
        let type_ = condition::HELD;
        let Candidate::Held(aside, held) = &self.candidate else {
            let message = "No candidate waits for an approval.";
            return make(type_, ConditionStatus::False, reason::NOTHING_HELD, message);
        };
        let (rehearsal, verdict) = &**held;
        let message = format!(
            "{} is held: {}. It would be: {}. To let it serve, annotate the Module with {}={}; to refuse it, with {}={}.",
            name(aside),
            verdict.message,
            rehearsal.summary(),
            module::APPROVE_ANNOTATION,
            aside.digest,
            module::REJECT_ANNOTATION,
            aside.digest
        );
        make(type_, ConditionStatus::True, &verdict.reason, message)
    }

    /// The condition Blocked: somebody has to change a definition or an object, not to approve.
    fn blocked(&self) -> Condition {
        let type_ = condition::BLOCKED;
        let blocked =
            self.refused().filter(|(_, verdict)| verdict.reason == reason::CRD_NOT_ADDITIVE);
        let Some((digest, verdict)) = blocked else {
            let message = "No candidate is blocked.";
            return make(type_, ConditionStatus::False, reason::CRDS_COMPATIBLE, message);
        };
        let message = format!(
            "{} is blocked, and an approval does not help: {}.",
            digest.short(),
            verdict.message
        );
        make(type_, ConditionStatus::True, &verdict.reason, message)
    }

    fn serves(&self) -> Condition {
        let type_ = condition::SERVING;
        match &self.serving {
            Some(serving) => make(
                type_,
                ConditionStatus::True,
                reason::SERVING,
                format!("{} ({}) serves.", serving.title, serving.digest.short()),
            ),
            None => make(
                type_,
                ConditionStatus::False,
                reason::NOTHING_LOADED,
                "No version has been loaded that could serve.",
            ),
        }
    }

    fn ready(&self, loaded: &Condition) -> Condition {
        let type_ = condition::READY;
        let misfits = self.spec.as_ref().and(self.fits.as_ref()).and(self.grant.as_ref());
        if let Err(verdict) = misfits {
            return make(type_, ConditionStatus::False, &verdict.reason, verdict.message.clone());
        }
        if self.unchecked.is_some() {
            let message = "The parameters are being checked against the schema of the guest.";
            return make(type_, ConditionStatus::Unknown, reason::CHECKING_PARAMETERS, message);
        }
        if loaded.status != ConditionStatus::True {
            return make(type_, ConditionStatus::False, &loaded.reason, loaded.message.clone());
        }
        if let Candidate::Held(aside, held) = &self.candidate {
            let message = format!("{} is held: {}.", name(aside), held.1.message);
            return make(type_, ConditionStatus::False, reason::HELD, message);
        }
        if self.suspended {
            let message = "The Module is paused: nothing is written.";
            return make(type_, ConditionStatus::False, reason::SUSPENDED, message);
        }
        let message = "The present source serves with the present spec.";
        make(type_, ConditionStatus::True, reason::SERVING, message)
    }

    fn healthy(&self) -> Condition {
        let type_ = condition::HEALTHY;
        match &self.runs {
            None => make(type_, ConditionStatus::Unknown, reason::NO_RUNS, "Nothing has run yet."),
            Some(Ok(())) => {
                make(type_, ConditionStatus::True, reason::RUNS_SUCCEED, "The runs do not fail.")
            }
            Some(Err(verdict)) => {
                make(type_, ConditionStatus::False, &verdict.reason, verdict.message.clone())
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

fn name(aside: &Aside) -> String {
    format!("{} ({})", aside.title, aside.digest.short())
}
