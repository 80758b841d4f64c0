//! Modules that would reconcile the same primaries: all but one are refused.

use innkeeper_contract::Manifest;
use innkeeper_core::decoration;

use super::{Driver, Input, Life};
use crate::machine::{Again, Verdict};
use crate::module::KindName;
use crate::registry::Loaded;
use crate::rivals::Territory;
use crate::settings::Settings;

impl<G: Loaded> Driver<G> {
    /// What was loaded, and settings that change, are refused if another module reconciles the same
    /// primaries.
    pub(super) fn refuse_rivals(&self, name: &str, input: Input<G>) -> Input<G> {
        match input {
            Input::Loaded { digest, result: Ok(guest) } => {
                let settings = self.lives.get(name).and_then(|life| life.settings.as_ref());
                let rival = settings.and_then(|settings| {
                    self.rival(name, &territory(guest.manifest(), settings), false)
                });
                let result = match rival {
                    Some(rival) => Err(overlap(name, &rival)),
                    None => Ok(guest),
                };
                Input::Loaded { digest, result }
            }
            Input::Module(module) => {
                let serving = self.lives.get(name).and_then(|life| life.serving.as_ref());
                let changed = {
                    let host_namespace = self.host_namespace.as_deref();
                    Settings::new(&module, self.place, self.defaults, host_namespace).ok()
                };
                let rival = serving.zip(changed).and_then(|(serving, settings)| {
                    self.rival(name, &territory(serving.guest.manifest(), &settings), true)
                });
                match rival {
                    Some(rival) => Input::Contested {
                        generation: module.metadata.generation,
                        verdict: overlap(name, &rival),
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
    fn rival(&self, name: &str, mine: &Territory, serves: bool) -> Option<String> {
        let decided = |name: &str| {
            self.lives.get(name).is_some_and(|life| life.machine.decision().0.is_some())
        };
        let is_rival = |(other, life): &(&String, &Life<G>)| {
            let Some(theirs) = life.territory() else { return false };
            let first = life.serving.is_some()
                || !serves && decided(other) && (!decided(name) || other.as_str() < name);
            other.as_str() != name && first && theirs.overlaps(mine)
        };
        self.lives.iter().find(is_rival).map(|(other, _)| other.clone())
    }
}

fn territory(manifest: &Manifest, settings: &Settings) -> Territory {
    Territory {
        primary: KindName {
            api_version: manifest.primary.api_version.clone(),
            kind: manifest.primary.kind.clone(),
        },
        decorates: decoration::decorates(manifest),
        namespaces: settings.namespaces.clone(),
        selector: settings.selector.clone(),
    }
}

fn overlap(name: &str, rival: &str) -> Verdict {
    Verdict::new(
        "PrimaryOverlap",
        format!(
            "module {rival} reconciles some of the same primaries, and one module controls a primary: keep {name} and {rival} apart by spec.namespaces or spec.selector, or delete one"
        ),
        Again::Later,
    )
}

impl<G: Loaded> Life<G> {
    /// Which primaries it reconciles, as far as that is known.
    fn territory(&self) -> Option<Territory> {
        if let Some(serving) = &self.serving {
            return Some(territory(serving.guest.manifest(), &serving.settings));
        }
        let settings = self.settings.as_ref()?;
        Some(Territory {
            primary: self.primary.as_ref()?.name(),
            decorates: self.decorates,
            namespaces: settings.namespaces.clone(),
            selector: settings.selector.clone(),
        })
    }
}
