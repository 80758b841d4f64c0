//! The primaries of a revision that a restarted host cannot load any more.

use std::collections::BTreeSet;

use innkeeper_contract::Kind;
use innkeeper_core::PrimarySelector;

use super::state::ModuleState;
use crate::module::KindStatus;
use crate::revision::GuestHandle;

/// The primaries of the revision that was active before the host started, as the Module's status
/// names them. The component and its snapshot are gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostPrimaries {
    /// Their kind.
    pub kind: Kind,
    /// What the guest and the Module both select.
    pub selector: PrimarySelector,
    /// The namespaces of the Module; empty for all.
    pub namespaces: BTreeSet<String>,
    /// The finalizer, as in the manifest of the guest; `None` if it has none.
    pub finalizer: Option<String>,
}

impl<G: GuestHandle> ModuleState<G> {
    /// The primaries that the Module's status names while no revision is active.
    pub(super) fn lost_primaries(&self) -> Option<LostPrimaries> {
        let spec = self.spec.as_ref().filter(|_| self.active().is_none())?;
        let of_guest = PrimarySelector::of_guest(self.restored.selector.as_ref());
        Some(LostPrimaries {
            kind: self.restored.primary.as_ref().and_then(KindStatus::known)?,
            selector: of_guest.and(&spec.selector),
            namespaces: spec.namespaces.clone(),
            finalizer: self.restored.finalizer.clone(),
        })
    }
}
