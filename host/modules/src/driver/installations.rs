//! Begins installations of definitions, and turns their results into events of the machine.

use super::message::Action;
use super::state::ModuleState;
use crate::crd_installation::{CrdGrant, CrdInstallation, CrdPurpose, FinishedInstallation};
use crate::crd_refusal::CrdRefusal;
use crate::machine::Event;
use crate::revision::GuestHandle;
use crate::source::Digest;

impl<G: GuestHandle> ModuleState<G> {
    /// The installation of the candidate's definitions.
    pub(super) fn install_crds(&mut self, digest: Digest) -> Option<Action<G>> {
        let (purpose, number) = (CrdPurpose::Candidate, self.installations.next());
        let (guest, spec) = self.candidate_with_spec()?;
        let mut installation =
            CrdInstallation::new(purpose, number, digest, guest.manifest(), spec);
        // A revision that was active becomes active again whatever is held.
        installation.adopts = spec.adopts_now() && !self.machine.is_restored(digest);
        self.installations.begin(purpose, number);
        Some(Action::InstallCrds(installation))
    }

    /// The installation of the active revision's definitions over foreign ones.
    pub(super) fn adopt_crds(&mut self, digest: Digest) -> Option<Action<G>> {
        let mut installation = self.installation_of_active(CrdPurpose::Adoption, digest)?;
        installation.adopts = true;
        Some(Action::InstallCrds(installation))
    }

    /// The installation of those of the active revision's definitions that somebody deleted.
    pub(super) fn reinstall_crds(&mut self, digest: Digest, names: &[String]) -> Option<Action<G>> {
        let mut installation = self.installation_of_active(CrdPurpose::Reinstallation, digest)?;
        installation.crds.retain(|request| names.contains(&request.name));
        Some(Action::InstallCrds(installation))
    }

    /// What the present spec and approval let the host do with definitions; nothing during a
    /// teardown.
    pub(super) fn crd_grant(&self) -> CrdGrant {
        let spec = self.spec.as_ref().filter(|_| !self.machine.is_tearing_down());
        let approved = self.machine.approved();
        spec.map(|one| CrdGrant { approved, ..CrdGrant::of(one) }).unwrap_or_default()
    }

    fn installation_of_active(
        &mut self,
        purpose: CrdPurpose,
        digest: Digest,
    ) -> Option<CrdInstallation> {
        let number = self.installations.next();
        let (active, spec) = (self.active()?, self.spec.as_ref()?);
        let manifest = active.guest.manifest();
        let installation = CrdInstallation::new(purpose, number, digest, manifest, spec);
        self.installations.begin(purpose, number);
        Some(installation)
    }

    /// The events of an installation that ended: what it wrote, and its result if it is the latest.
    pub(super) fn on_crds_installed(&self, finished: FinishedInstallation) -> Vec<Event> {
        let FinishedInstallation { purpose, number, digest, written, result } = finished;
        let mut events = Vec::new();
        if !written.is_empty() {
            events.push(Event::CrdsWritten(written));
        }
        if self.installations.is_latest(purpose, number) {
            events.push(match (purpose, result) {
                (CrdPurpose::Candidate, Err(CrdRefusal::Held(held))) => {
                    Event::CrdsHeld { digest, held }
                }
                (CrdPurpose::Candidate, result) => {
                    Event::Crds { digest, result: result.map_err(CrdRefusal::into_rejection) }
                }
                (CrdPurpose::Adoption, result) => Event::CrdsAdopted { digest, result },
                (CrdPurpose::Reinstallation, result) => Event::CrdsReinstalled {
                    digest,
                    result: result.map_err(CrdRefusal::into_rejection),
                },
            });
        }
        events
    }
}
