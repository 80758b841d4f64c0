//! Transitions of the installation of CustomResourceDefinitions that somebody deleted.
//!
//! This is next to the candidate: a candidate that is on its way neither stops it nor is stopped.

use innkeeper_contract::EventType;

use super::missing_crds::listed;
use super::rejection::{Rejection, RetryPolicy};
use super::{DirectEffect, Effect, Machine, reason};
use crate::source::Digest;

impl Machine {
    /// Definitions of the active revision were deleted.
    pub(super) fn on_crds_deleted(&mut self, names: Vec<String>, effects: &mut Vec<Effect>) {
        if self.revisions.active.is_none() || names.is_empty() {
            return;
        }
        let missing = self.missing_crds.get_or_insert_default();
        if missing.is_installing {
            missing.names.extend(names);
            missing.is_deleted_again = true;
            return;
        }
        let new: Vec<String> =
            names.into_iter().filter(|name| missing.names.insert(name.clone())).collect();
        if new.is_empty() {
            return;
        }
        let next = if self.spec.is_paused {
            "the Module is paused, so the host does not install it again"
        } else {
            "the host installs it again; to keep it deleted, set spec.paused or delete the Module"
        };
        let message = format!(
            "The CustomResourceDefinition {} was deleted, with all its objects: {next}.",
            listed(new.iter())
        );
        effects.push(Effect::notify(EventType::Warning, reason::CRD_DELETED, message));
        if !self.spec.is_paused {
            effects.push(DirectEffect::ReinstallLater.into());
        }
    }

    /// Installs the deleted definitions, if nothing forbids it.
    pub(super) fn reinstall_crds(&mut self, effects: &mut Vec<Effect>) {
        let Some(digest) = self.revisions.active_digest() else { return };
        let Some(missing) = &mut self.missing_crds else { return };
        if missing.is_installing || self.spec.is_paused {
            return;
        }
        missing.is_installing = true;
        let names = missing.names.iter().cloned().collect();
        effects.push(Effect::ReinstallCrds { digest, names });
    }

    /// A definition exists: a user or the host installed it.
    pub(super) fn on_crd_found(&mut self, name: &str) {
        // While the host installs it, the answer says more.
        let missing = self.missing_crds.as_mut().filter(|missing| !missing.is_installing);
        let Some(missing) = missing else { return };
        missing.names.remove(name);
        if missing.names.is_empty() {
            self.missing_crds = None;
        }
    }

    /// An installation ended; [`Event::CrdsWritten`](super::Event) named what it created.
    pub(super) fn on_crds_reinstalled(
        &mut self,
        digest: Digest,
        result: Result<(), Rejection>,
        effects: &mut Vec<Effect>,
    ) {
        // The installation of a revision that is not active any more says nothing.
        if !self.revisions.is_active(digest) {
            return;
        }
        let Some(missing) = self.missing_crds.as_mut().filter(|missing| missing.is_installing)
        else {
            return;
        };
        missing.is_installing = false;
        let is_deleted_again = std::mem::take(&mut missing.is_deleted_again);
        match result {
            Ok(()) => {
                missing.rejection = None;
                if is_deleted_again {
                    effects.push(DirectEffect::ReinstallLater.into());
                } else {
                    self.missing_crds = None;
                }
            }
            Err(rejection) => {
                if missing.rejection.as_ref() != Some(&rejection) {
                    effects.push(Effect::warning(&rejection));
                }
                if rejection.retry == RetryPolicy::Later || is_deleted_again {
                    effects.push(DirectEffect::ReinstallLater.into());
                }
                missing.rejection = Some(rejection);
            }
        }
    }
}

/// Writes an Event about definitions that were deleted and exist again.
pub(super) fn notify_reinstalled(created: &[String], effects: &mut Vec<Effect>) {
    if !created.is_empty() {
        let message = format!(
            "The CustomResourceDefinition {} was deleted, and the host has installed it again.",
            listed(created.iter())
        );
        effects.push(Effect::notify(EventType::Normal, reason::CRD_REINSTALLED, message));
    }
}
