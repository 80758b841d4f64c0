//! The runnable code of a guest: [`Program`].

use crate::contract::bindings::reconciler::ReconcilerGuestPre;
use crate::exports::Exports;
use crate::kubewarden::policy::KubewardenPolicy;
use crate::state::State;

/// The runnable code of a guest, of one of the two kinds. Clones are cheap.
#[derive(Clone)]
pub(crate) enum Program {
    /// A component of the contract.
    Component(Exports),
    /// A core module: a Kubewarden policy.
    Kubewarden(KubewardenPolicy),
}

impl Program {
    /// The function `reconcile`; only components have one.
    pub(crate) fn reconciler(&self) -> Option<&ReconcilerGuestPre<State>> {
        match self {
            Self::Component(exports) => exports.reconciler.as_ref(),
            Self::Kubewarden(_) => None,
        }
    }

    /// Whether the guest reviews requests.
    pub(crate) fn has_policy(&self) -> bool {
        match self {
            Self::Component(exports) => exports.policy.is_some(),
            Self::Kubewarden(_) => true,
        }
    }

    /// What the guest imports, in its own order.
    pub(crate) fn imports(&self) -> Vec<String> {
        match self {
            Self::Component(exports) => exports.imports(),
            Self::Kubewarden(policy) => policy.module.imports(),
        }
    }
}
