//! Modules that would reconcile the same primaries: all but one are refused.

use innkeeper_contract::Manifest;
use innkeeper_core::{PrimarySelector, control};

use super::Driver;
use super::message::Input;
use super::state::ModuleState;
use crate::machine::{Rejection, RetryPolicy};
use crate::module::KindName;
use crate::overlap::PrimaryScope;
use crate::revision::Loaded;
use crate::validated_spec::ValidatedSpec;

impl<G: Loaded> Driver<G> {
    /// Refuses a loaded component, or changed settings, if another module reconciles the same
    /// primaries.
    pub(super) fn refuse_overlap(&self, name: &str, input: Input<G>) -> Input<G> {
        match input {
            Input::Loaded { digest, result: Ok(guest) } => {
                let settings =
                    self.states.get(name).and_then(|module_state| module_state.settings.as_ref());
                let other = settings.and_then(|settings| {
                    self.overlapping_module(name, &primary_scope(guest.manifest(), settings), false)
                });
                let result = match other {
                    Some(other) => Err(overlap(name, &other)),
                    None => Ok(guest),
                };
                Input::Loaded { digest, result }
            }
            Input::Module(module) => {
                let active = self.states.get(name).and_then(|module_state| module_state.active());
                let changed = self.context.validate(&module).ok();
                let other = active.zip(changed).and_then(|(active, settings)| {
                    self.overlapping_module(
                        name,
                        &primary_scope(active.guest.manifest(), &settings),
                        true,
                    )
                });
                match other {
                    Some(other) => Input::Overlapping {
                        generation: module.metadata.generation,
                        rejection: overlap(name, &other),
                    },
                    None => Input::Module(module),
                }
            }
            input => input,
        }
    }

    /// The module that reconciles some of the same primaries. Of two modules the active one has
    /// priority; if neither is active, the one that was active before the host started; then the
    /// first by name. A module that `is_active` itself yields only to another active one.
    fn overlapping_module(
        &self,
        name: &str,
        scope: &PrimaryScope,
        is_active: bool,
    ) -> Option<String> {
        let decided = |name: &str| {
            self.states
                .get(name)
                .is_some_and(|module_state| module_state.machine.decision().active.is_some())
        };
        let is_overlapping = |(other, module_state): &(&String, &ModuleState<G>)| {
            let Some(other_scope) = module_state.scope() else { return false };
            let first = module_state.active().is_some()
                || !is_active && decided(other) && (!decided(name) || other.as_str() < name);
            other.as_str() != name && first && other_scope.overlaps(scope)
        };
        self.states.iter().find(is_overlapping).map(|(other, _)| other.clone())
    }
}

fn primary_scope(manifest: &Manifest, settings: &ValidatedSpec) -> PrimaryScope {
    PrimaryScope {
        primary: KindName {
            api_version: manifest.primary.api_version.clone(),
            kind: manifest.primary.kind.clone(),
        },
        decorates: control::decorates(manifest),
        namespaces: settings.namespaces.clone(),
        selector: PrimarySelector::of_guest(manifest.selector.as_ref()).and(&settings.selector),
    }
}

fn overlap(name: &str, other: &str) -> Rejection {
    Rejection::new(
        "PrimaryOverlap",
        format!(
            "module {other} reconciles some of the same primaries, and one module controls a primary: keep {name} and {other} apart by spec.namespaces or spec.selector, or delete one"
        ),
        RetryPolicy::Later,
    )
}

impl<G: Loaded> ModuleState<G> {
    /// Which primaries it reconciles, as far as that is known.
    fn scope(&self) -> Option<PrimaryScope> {
        if let Some(active) = self.active() {
            return Some(primary_scope(active.guest.manifest(), &active.settings));
        }
        let settings = self.settings.as_ref()?;
        Some(PrimaryScope {
            primary: self.restored.primary.as_ref()?.name(),
            decorates: self.restored.decorates,
            namespaces: settings.namespaces.clone(),
            selector: PrimarySelector::of_guest(self.restored.selector.as_ref())
                .and(&settings.selector),
        })
    }
}
