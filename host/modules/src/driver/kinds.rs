//! The kinds that a module may have made objects of, also those that its active revision does not
//! declare any more: as long as such objects exist, the host watches and prunes them.

use innkeeper_contract::{Kind, Manifest};

use super::message::{Action, Teardown};
use super::state::ModuleState;
use crate::machine::Machine;
use crate::module::KindStatus;
use crate::revision::GuestHandle;

impl<G: GuestHandle> ModuleState<G> {
    /// Records that the module may make objects of the kinds that a manifest owns.
    pub(super) fn note_owned(&mut self, manifest: &Manifest) {
        for owned in &manifest.owned {
            let kind = KindStatus::of(&owned.kind);
            let name = kind.name();
            if self.owned_kinds.insert(name.clone(), kind.clone()) != Some(kind) {
                self.unwritten_kinds.insert(name);
            }
        }
    }

    /// Records that the status names the kinds that a manifest owns.
    pub(super) fn record_written(&mut self, manifest: &Manifest) {
        for owned in &manifest.owned {
            self.unwritten_kinds.remove(&KindStatus::of(&owned.kind).name());
        }
    }

    /// Whether a revision that is about to become active owns a kind: the status goes on to name
    /// it.
    fn is_about_to_own(&self, kind: &Kind) -> bool {
        let rolled_back = self.machine.rolled_back();
        let target = rolled_back.as_ref().and_then(|machine| self.active_of(machine));
        let guests = self.decided_guest().into_iter();
        let guests = guests.chain(target.map(|revision| &revision.guest));
        let mut guests = guests.chain(self.uncommitted.as_ref().map(|check| &check.guest));
        guests.any(|guest| guest.manifest().owned.iter().any(|owned| owned.kind == *kind))
    }

    /// The kinds that earlier revisions declared and this manifest does not. Two versions of one
    /// kind have the same objects.
    pub(super) fn retired_kinds(&self, manifest: &Manifest) -> Vec<Kind> {
        let is_declared = |kind: &Kind| {
            let same = |other: &Kind| other.group() == kind.group() && other.kind == kind.kind;
            manifest.owned.iter().any(|owned| same(&owned.kind))
        };
        let known = self.owned_kinds.values().filter_map(KindStatus::known);
        known.filter(|kind| !is_declared(kind)).collect()
    }

    /// Stops to watch kinds of which no objects are left.
    pub(super) fn forget_kinds(&mut self, gone: &[Kind]) -> Vec<Action<G>> {
        let Some(active) = self.active().cloned() else { return Vec::new() };
        let retired_kinds = self.retired_kinds(active.guest.manifest());
        let before = self.owned_kinds.len();
        for kind in gone.iter().filter(|kind| retired_kinds.contains(kind)) {
            if !self.is_about_to_own(kind) {
                let name = KindStatus::of(kind).name();
                self.unwritten_kinds.remove(&name);
                self.owned_kinds.remove(&name);
            }
        }
        if self.owned_kinds.len() == before || self.machine.is_tearing_down() {
            return Vec::new();
        }
        let mut actions = Vec::new();
        let spec = active.spec.clone();
        self.activate_again(&active, spec, &mut actions);
        actions.push(Action::Report(self.report()));
        actions
    }
}

impl<G: GuestHandle> ModuleState<G> {
    /// What is known of the module when its teardown begins.
    pub(super) fn teardown(&self) -> Teardown {
        let manifest = self.active().map(|active| active.guest.manifest());
        let spec = self.active().map(|active| &active.spec);
        let spec = spec.or(self.spec.as_ref());
        Teardown {
            primary: match manifest {
                Some(manifest) => manifest.primary.clone(),
                None => self.restored.primary.as_ref().and_then(KindStatus::known),
            },
            finalizer: match manifest {
                Some(manifest) => manifest.finalizer.clone(),
                None => self.restored.finalizer.clone(),
            },
            namespaces: spec.map(|spec| spec.namespaces.clone()).unwrap_or_default(),
            service_account: spec.and_then(|spec| spec.service_account.clone()),
            is_active: self.active().is_some(),
        }
    }

    /// Whether its finalizer may be on its primaries.
    pub(super) fn needs_teardown(&self) -> bool {
        !self.machine.is_tearing_down() && self.active().is_some() && self.finalizer().is_some()
    }

    /// The finalizer of the active revision, or of the one about to become active; `None` if it has
    /// none. As in a manifest: empty for the name that is made of the module's.
    pub(super) fn finalizer(&self) -> Option<String> {
        self.finalizer_of(&self.machine)
    }

    /// The same in another state of the machine.
    pub(super) fn finalizer_of(&self, machine: &Machine) -> Option<String> {
        let about_to = self.candidate.checked.as_ref().filter(|_| machine.is_committing());
        match (about_to, self.active_of(machine)) {
            (Some((_, guest)), active) => guest
                .manifest()
                .finalizer
                .clone()
                .or_else(|| active.and_then(|active| active.guest.manifest().finalizer.clone())),
            (None, Some(active)) => active.guest.manifest().finalizer.clone(),
            (None, None) => self.restored.finalizer.clone(),
        }
    }
}
