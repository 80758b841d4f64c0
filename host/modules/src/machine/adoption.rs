//! Transitions by `spec.crds`: foreign definitions become the module's.
//!
//! Those of a candidate are installed with it. If the Module asks for it while a revision is
//! active, or if that revision was active before the host started, it stays active meanwhile.

use innkeeper_contract::EventType;

use super::reinstallation::notify_reinstalled;
use super::rejection::{Rejection, RetryPolicy};
use super::{Candidate, DirectEffect, Effect, HeldCandidate, Machine, reason};
use crate::crd_refusal::{CrdRefusal, HeldCrds};
use crate::installed_crds::{AdoptedCrd, InstalledCrds};
use crate::rollout::Preview;
use crate::source::Digest;

impl Machine {
    /// The definitions of a candidate would take something away from foreign ones.
    pub(super) fn on_crds_held(
        &mut self,
        digest: Digest,
        held: HeldCrds,
        effects: &mut Vec<Effect>,
    ) {
        let Candidate::InstallingCrds(loaded) = &self.candidate else { return };
        if loaded.digest != digest {
            return;
        }
        let loaded = loaded.clone();
        // A user may have approved it in the meantime.
        if self.approvals.approved == Some(held.approval) {
            return self.install(loaded, effects);
        }
        self.progress.retried = None;
        let message = format!(
            "{} ({}) is held: {}{}",
            loaded.title,
            digest.short(),
            held.rejection.message,
            self.stays_active()
        );
        effects.push(Effect::notify(EventType::Warning, reason::HELD, message));
        let mut preview = Preview::default();
        for change in held.changes {
            preview.objects += 1;
            preview.add(change.change, change.object, change.fields);
        }
        let (rejection, approval) = (held.rejection, held.approval);
        let held = HeldCandidate { preview, rejection, approval };
        self.candidate = Candidate::Held(loaded, Box::new(held));
    }

    /// The spec changed: tries what it did not ask for before, and what was refused.
    pub(super) fn adopt_crds_of_spec(&mut self, was_adopting: bool, effects: &mut Vec<Effect>) {
        if let Some(adoption) = self.adoption.as_mut().filter(|adoption| adoption.is_installing) {
            adoption.is_outdated = true;
        } else if !was_adopting || !self.spec.adopts_crds || self.adoption.is_some() {
            self.adopt_crds(effects);
        }
    }

    /// Installs the definitions of the active revision over foreign ones, if the spec asks for it.
    pub(super) fn adopt_crds(&mut self, effects: &mut Vec<Effect>) {
        if !self.spec.adopts_crds {
            // A try that is under way ends first: its result must not pass for that of a later one.
            self.adoption.take_if(|adoption| !adoption.is_installing);
            return;
        }
        let Some(digest) = self.revisions.active_digest() else { return };
        let adoption = self.adoption.get_or_insert_default();
        if !adoption.is_installing {
            adoption.is_installing = true;
            adoption.is_outdated = false;
            adoption.is_crd_changed = false;
            effects.push(Effect::AdoptCrds(digest));
        }
    }

    pub(super) fn on_adoption_approved(&mut self, approved: Digest, effects: &mut Vec<Effect>) {
        let Some(adoption) = self.adoption.as_mut().filter(|_| self.spec.adopts_crds) else {
            return;
        };
        if adoption.held().is_some_and(|held| held.approval == approved) {
            adoption.is_outdated = adoption.is_installing;
            let message = "The change of the CustomResourceDefinitions is approved.".to_owned();
            effects.push(Effect::notify(EventType::Normal, "Approved", message));
            self.adopt_crds(effects);
        }
    }

    pub(super) fn retry_adoption(&mut self, effects: &mut Vec<Effect>) {
        let Some(adoption) = &self.adoption else { return };
        let is_later = |rejection: &Rejection| rejection.retry == RetryPolicy::Later;
        if adoption.is_crd_changed || adoption.rejection().is_some_and(is_later) {
            self.adopt_crds(effects);
        }
    }

    /// A definition of the active revision changed: what is held may be so no more. The backoff
    /// limits how often stored objects are read for somebody who keeps changing it.
    pub(super) fn on_crd_changed(&mut self, effects: &mut Vec<Effect>) {
        let Some(adoption) = &mut self.adoption else { return };
        adoption.is_crd_changed = true;
        if !adoption.is_installing && adoption.held().is_some() {
            effects.push(DirectEffect::RetryLater.into());
        }
    }

    /// An installation wrote definitions; it may have failed, or be about an earlier candidate.
    pub(super) fn on_crds_written(&self, written: &InstalledCrds, effects: &mut Vec<Effect>) {
        notify_adopted(&written.adopted, effects);
        if let Some(missing) = &self.missing_crds {
            let is_missing = |name: &&String| missing.names.contains(*name);
            let names: Vec<_> = written.created.iter().filter(is_missing).cloned().collect();
            notify_reinstalled(&names, effects);
        }
    }

    pub(super) fn on_crds_adopted(
        &mut self,
        digest: Digest,
        result: Result<(), CrdRefusal>,
        effects: &mut Vec<Effect>,
    ) {
        if !self.revisions.is_active(digest) {
            return;
        }
        let Some(adoption) = self.adoption.as_mut().filter(|adoption| adoption.is_installing)
        else {
            return;
        };
        adoption.is_installing = false;
        let is_outdated = std::mem::take(&mut adoption.is_outdated);
        let refusal = match result {
            Ok(()) => {
                self.adoption = None;
                if is_outdated {
                    self.adopt_crds(effects);
                }
                return;
            }
            // The next try says whether this still holds.
            Err(_) if is_outdated => return self.adopt_crds(effects),
            Err(refusal) => Some(refusal),
        };
        let is_new = adoption.refusal != refusal;
        adoption.refusal = refusal;
        if let Some(rejection) = adoption.rejection() {
            if is_new {
                effects.push(Effect::warning(rejection));
            }
            if rejection.retry == RetryPolicy::Later || adoption.is_crd_changed {
                effects.push(DirectEffect::RetryLater.into());
            }
        }
        // A user may have approved it before it was known to be held.
        let approval = adoption.held().map(|held| held.approval);
        if is_new && approval.is_some() && approval == self.approvals.approved {
            self.adopt_crds(effects);
        }
    }
}

fn notify_adopted(adopted: &[AdoptedCrd], effects: &mut Vec<Effect>) {
    for crd in adopted {
        let lost = match &*crd.display_losses {
            [] => String::new(),
            losses => format!("; kubectl does not know any more: {}", losses.join(", ")),
        };
        let message =
            format!("The foreign CustomResourceDefinition {} is the module's now{lost}.", crd.name);
        effects.push(Effect::notify(EventType::Normal, reason::CRD_ADOPTED, message));
    }
}
