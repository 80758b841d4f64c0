//! The kinds that a module's parameters name, in the guest that uses them.

use std::sync::Arc;

use innkeeper_contract::{Kind, KindRole, Manifest};

use super::message::ParametersJob;
use super::state::ModuleState;
use crate::machine::{Rejection, RetryPolicy, reason};
use crate::module::KindStatus;
use crate::revision::GuestHandle;
use crate::source::Digest;

impl<G: GuestHandle> ModuleState<G> {
    /// The check of the present parameters against the schema of a guest.
    pub(super) fn parameters_job(&self, digest: Digest, guest: G) -> ParametersJob<G> {
        let (parameters, known_kinds) = (self.parameters(), self.known_kinds(digest));
        ParametersJob { digest, guest, parameters, known_kinds }
    }

    /// The kinds that a component uses now, or used before the host started; none of a new
    /// candidate.
    fn known_kinds(&self, digest: Digest) -> Vec<Kind> {
        if self.machine.is_restored(digest) {
            let restored = self.restored.primary.iter().chain(self.owned_kinds.values());
            return restored.filter_map(KindStatus::known).collect();
        }
        let is_active = self.machine.active().is_some_and(|active| active.digest == digest);
        let Some(active) = self.active().filter(|_| is_active) else { return Vec::new() };
        let manifest = active.guest.manifest();
        let owned = manifest.owned.iter().map(|owned| &owned.kind);
        owned.chain(&manifest.reads).chain(&manifest.primary).cloned().collect()
    }

    /// A guest with the manifest that a check of its parameters found.
    ///
    /// # Errors
    /// If the parameters name another primary kind than before.
    pub(super) fn resolved(&self, guest: &G, found: Option<Arc<Manifest>>) -> Result<G, Rejection> {
        let Some(manifest) = found else {
            return if guest.manifest().kind_parameters.is_empty() {
                Ok(guest.clone())
            } else {
                let message = "the kinds of the parameters are not known";
                Err(Rejection::new(reason::PARAMETERS_NOT_CHECKED, message, RetryPolicy::Later))
            };
        };
        // A new version without such a parameter may have another primary.
        let roles = &guest.manifest().kind_parameters;
        let is_fixed = roles.is_empty() || roles.iter().any(|one| one.role == KindRole::Primary);
        let before = match self.active() {
            Some(active) => active.guest.manifest().primary.as_ref().map(KindStatus::of),
            None => self.restored.primary.clone(),
        };
        // A guest that gains or loses its primary says so in its manifest, not in a parameter.
        if let Some((before, after)) = before.filter(|_| is_fixed).zip(manifest.primary.as_ref())
            && (group(&before.api_version), &before.kind) != (after.group(), &after.kind)
        {
            let message = format!(
                "the parameters name {after} as the primary kind, and it was {} {}: the primary kind of a module does not change; make another Module for {after}",
                before.api_version, before.kind
            );
            let retry = RetryPolicy::WhenSpecChanges;
            return Err(Rejection::new(reason::PRIMARY_KIND_CHANGED, message, retry));
        }
        Ok(guest.with_manifest(manifest))
    }
}

fn group(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}
