//! The functions that a component exports, found once when it is loaded: [`Exports`].

use wasmtime::component::{Component, InstancePre, Linker};

use crate::contract::Exported;
use crate::contract::bindings::policy::PolicyGuestPre;
use crate::contract::bindings::reconciler::ReconcilerGuestPre;
use crate::error::{LoadError, text};
use crate::state::State;

/// A component with its imports resolved and its exports found. At least one export is there.
/// Clones are cheap.
#[derive(Clone)]
pub(crate) struct Exports {
    pub(crate) reconciler: Option<ReconcilerGuestPre<State>>,
    pub(crate) policy: Option<PolicyGuestPre<State>>,
    pre: InstancePre<State>,
}

impl Exports {
    /// Resolves the imports of a component, and finds the functions of the interfaces that it
    /// exports.
    ///
    /// # Errors
    /// [`LoadError::WrongType`] if a function has another type than in the contract.
    pub(crate) fn of(
        component: &Component,
        linker: &Linker<State>,
        exported: Exported,
    ) -> Result<Self, LoadError> {
        let wrong_type =
            |error: wasmtime::Error| LoadError::WrongType { what: text(format!("{error:#}")) };
        let pre = linker.instantiate_pre(component).map_err(wrong_type)?;
        let reconciler = exported.reconciler.then(|| ReconcilerGuestPre::new(pre.clone()));
        let policy = exported.policy.then(|| PolicyGuestPre::new(pre.clone()));
        Ok(Self {
            reconciler: reconciler.transpose().map_err(wrong_type)?,
            policy: policy.transpose().map_err(wrong_type)?,
            pre,
        })
    }

    /// The interfaces that the component imports, in its own order.
    pub(crate) fn imports(&self) -> Vec<String> {
        let component = self.pre.component();
        let imports = component.component_type();
        imports.imports(component.engine()).map(|(name, _)| name.to_owned()).collect()
    }
}
