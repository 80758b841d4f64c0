//! Modules that would reconcile the same primaries: all but one are refused.

use innkeeper_contract::Manifest;
use innkeeper_core::control;

use super::{Driver, Input, ModuleState};
use crate::machine::{Rejection, RetryPolicy};
use crate::module::KindName;
use crate::overlap::PrimaryScope;
use crate::registry::Loaded;
use crate::validated_spec::ValidatedSpec;

impl<G: Loaded> Driver<G> {
    /// What was loaded, and settings that change, are refused if another module reconciles the same
    /// primaries.
    pub(super) fn refuse_overlap(&self, name: &str, input: Input<G>) -> Input<G> {
        match input {
            Input::Loaded { digest, result: Ok(guest) } => {
                let settings =
                    self.states.get(name).and_then(|module_state| module_state.settings.as_ref());
                let rival = settings.and_then(|settings| {
                    self.overlapping_module(name, &territory(guest.manifest(), settings), false)
                });
                let result = match rival {
                    Some(rival) => Err(overlap(name, &rival)),
                    None => Ok(guest),
                };
                Input::Loaded { digest, result }
            }
            Input::Module(module) => {
                let active =
                    self.states.get(name).and_then(|module_state| module_state.active.as_ref());
                let changed = {
                    let host_namespace = self.host_namespace.as_deref();
                    ValidatedSpec::new(&module, self.source_kind, self.defaults, host_namespace)
                        .ok()
                };
                let rival = active.zip(changed).and_then(|(active, settings)| {
                    self.overlapping_module(
                        name,
                        &territory(active.guest.manifest(), &settings),
                        true,
                    )
                });
                match rival {
                    Some(rival) => Input::Overlapping {
                        generation: module.metadata.generation,
                        rejection: overlap(name, &rival),
                    },
                    None => Input::Module(module),
                }
            }
            other => other,
        }
    }

    /// The module that reconciles some of the same primaries. Who serves goes first; if none of
    /// two does, who served when the host was here last; then the first by name. A module
    /// that `serves` itself yields only to who serves too.
    fn overlapping_module(&self, name: &str, mine: &PrimaryScope, serves: bool) -> Option<String> {
        let decided = |name: &str| {
            self.states
                .get(name)
                .is_some_and(|module_state| module_state.machine.decision().active.is_some())
        };
        let is_rival = |(other, module_state): &(&String, &ModuleState<G>)| {
            let Some(theirs) = module_state.primary_scope() else { return false };
            let first = module_state.active.is_some()
                || !serves && decided(other) && (!decided(name) || other.as_str() < name);
            other.as_str() != name && first && theirs.overlaps(mine)
        };
        self.states.iter().find(is_rival).map(|(other, _)| other.clone())
    }
}

fn territory(manifest: &Manifest, settings: &ValidatedSpec) -> PrimaryScope {
    PrimaryScope {
        primary: KindName {
            api_version: manifest.primary.api_version.clone(),
            kind: manifest.primary.kind.clone(),
        },
        decorates: control::decorates(manifest),
        namespaces: settings.namespaces.clone(),
        selector: settings.selector.clone(),
    }
}

fn overlap(name: &str, rival: &str) -> Rejection {
    Rejection::new(
        "PrimaryOverlap",
        format!(
            "module {rival} reconciles some of the same primaries, and one module controls a primary: keep {name} and {rival} apart by spec.namespaces or spec.selector, or delete one"
        ),
        RetryPolicy::Later,
    )
}

impl<G: Loaded> ModuleState<G> {
    /// Which primaries it reconciles, as far as that is known.
    fn primary_scope(&self) -> Option<PrimaryScope> {
        if let Some(active) = &self.active {
            return Some(territory(active.guest.manifest(), &active.settings));
        }
        let settings = self.settings.as_ref()?;
        Some(PrimaryScope {
            primary: self.primary.as_ref()?.name(),
            decorates: self.decorates,
            namespaces: settings.namespaces.clone(),
            selector: settings.selector.clone(),
        })
    }
}
