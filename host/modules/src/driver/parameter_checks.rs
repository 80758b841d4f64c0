//! Checks of parameters: of the candidate, and of the active revision when they change.
//!
//! A check may name kinds that the module did not own before. The status names these before the
//! revision that owns them is active: a restarted host prunes the objects of the kinds in the
//! status.

use std::sync::Arc;

use innkeeper_contract::Manifest;
use serde_json::Value;

use super::message::Action;
use super::state::{ModuleState, UncommittedCheck};
use crate::machine::{Event, Rejection};
use crate::module::KindStatus;
use crate::revision::GuestHandle;
use crate::source::Digest;

impl<G: GuestHandle> ModuleState<G> {
    /// The result of a check of parameters of the candidate or of the active revision; another
    /// check if the parameters have changed in the meantime, and nothing if it is not needed any
    /// more.
    pub(super) fn on_parameters(
        &mut self,
        digest: Digest,
        parameters: Value,
        result: Result<Option<Arc<Manifest>>, Rejection>,
    ) -> Result<Option<Event>, Vec<Action<G>>> {
        let guest = match self.guest_of_present_check(digest, &parameters) {
            Ok(Some(guest)) => guest,
            other => return other.map(|_| None),
        };
        let names_kinds = matches!(result, Ok(Some(_)));
        let result = result.and_then(|found| self.resolved(&guest, found));
        if let Ok(guest) = &result
            && names_kinds
            && self.activates_without_decision(digest)
            && self.owns_unwritten_kinds(guest.manifest())
        {
            self.note_owned(guest.manifest());
            let check =
                UncommittedCheck { digest, parameters: parameters.clone(), guest: guest.clone() };
            self.uncommitted = Some(check);
            return Err(vec![Action::CommitKinds { digest, parameters }]);
        }
        Ok(Some(self.end_check(digest, parameters, result)))
    }

    /// The result of [`Action::CommitKinds`]; another check or nothing as after a check.
    pub(super) fn on_kinds_committed(
        &mut self,
        digest: Digest,
        parameters: Value,
        result: Result<(), Rejection>,
    ) -> Result<Option<Event>, Vec<Action<G>>> {
        if self.guest_of_present_check(digest, &parameters)?.is_none() {
            return Ok(None);
        }
        let is_same =
            |one: &mut UncommittedCheck<G>| one.digest == digest && one.parameters == parameters;
        let Some(UncommittedCheck { guest, .. }) = self.uncommitted.take_if(is_same) else {
            return Ok(None);
        };
        let result = match result {
            Ok(()) => {
                self.record_written(guest.manifest());
                Ok(guest)
            }
            // A refusal would lose a revision that only its snapshot has; the next report names its
            // kinds.
            Err(_) if !self.is_tried_again(digest) => Ok(guest),
            Err(rejection) => Err(rejection),
        };
        Ok(Some(self.end_check(digest, parameters, result)))
    }

    /// The guest whose parameters a result is about, if they are the present ones; another check of
    /// the candidate if they are not. Each change of the parameters and each swap asks for a check
    /// of the active revision of its own.
    fn guest_of_present_check(
        &self,
        digest: Digest,
        parameters: &Value,
    ) -> Result<Option<G>, Vec<Action<G>>> {
        let is_present = *parameters == self.parameters();
        match self.candidate.unchecked.as_ref().filter(|(one, _)| *one == digest) {
            Some((_, guest)) if is_present => Ok(Some(guest.clone())),
            Some((_, guest)) => {
                Err(vec![Action::CheckParameters(self.parameters_job(digest, guest.clone()))])
            }
            None => {
                let is_active = self.machine.active().is_some_and(|active| active.digest == digest);
                let active = self.active().filter(|_| is_present && is_active);
                Ok(active.map(|active| active.guest.clone()))
            }
        }
    }

    /// Hands the result of a check of the present parameters to the machine.
    fn end_check(
        &mut self,
        digest: Digest,
        parameters: Value,
        result: Result<G, Rejection>,
    ) -> Event {
        if let Some((_, described)) = self.candidate.unchecked.take_if(|(one, _)| *one == digest) {
            let (guest, fits) = match result {
                Ok(guest) => (guest, Ok(())),
                Err(rejection) => (described, Err(rejection)),
            };
            return self.store_candidate(digest, guest, parameters, fits);
        }
        Event::ParametersChecked(result.map(|guest| self.accepted = Some((parameters, guest))))
    }

    /// Whether a component becomes or stays active without another decision in the status.
    fn activates_without_decision(&self, digest: Digest) -> bool {
        let is_candidate = self.candidate.unchecked.as_ref().is_some_and(|(one, _)| *one == digest);
        !is_candidate || self.machine.is_restored(digest)
    }

    /// Whether a check that fails now is repeated: not that of a restored revision, if the source
    /// has another component by now.
    fn is_tried_again(&self, digest: Digest) -> bool {
        self.active().is_some() || self.machine.source_digest() == Some(digest)
    }

    /// Whether the status may lack a kind that a manifest owns, or name it with another scope.
    fn owns_unwritten_kinds(&self, manifest: &Manifest) -> bool {
        manifest.owned.iter().any(|owned| {
            let kind = KindStatus::of(&owned.kind);
            let name = kind.name();
            self.owned_kinds.get(&name) != Some(&kind) || self.unwritten_kinds.contains(&name)
        })
    }
}
