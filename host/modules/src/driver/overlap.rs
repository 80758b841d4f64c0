//! Modules that would reconcile the same primaries: all but one are refused, and tried again when
//! that one reconciles others or is gone.

use innkeeper_contract::{Kind, Manifest};
use innkeeper_core::{PrimarySelector, control};

use super::Driver;
use super::message::Input;
use super::state::{ModuleState, Overlaps};
use crate::machine::{Event, Rejection, RetryPolicy, reason};
use crate::module::KindName;
use crate::overlap::PrimaryScope;
use crate::revision::GuestHandle;
use crate::validated_spec::ValidatedSpec;

impl<G: GuestHandle> Driver<G> {
    /// Refuses a loaded component, or a changed spec, if another module reconciles the same
    /// primaries. What was refused is handed in again by [`Input::RetryOverlapping`].
    pub(super) fn refuse_overlap(&mut self, name: &str, input: Input<G>) -> Input<G> {
        let input = match (input, self.overlaps(name)) {
            (Input::RetryOverlapping, Some(overlaps)) => match overlaps.spec.take() {
                Some((module, _)) => Input::Module(module),
                None => Event::Retry.into(),
            },
            (input @ (Input::Malformed { .. } | Input::NotAllowed { .. }), Some(overlaps)) => {
                overlaps.spec = None;
                input
            }
            (input, _) => input,
        };
        match input {
            Input::Loaded { digest, result: Ok(guest) } => {
                let spec =
                    self.states.get(name).and_then(|module_state| module_state.spec.as_ref());
                let scope = spec.and_then(|one| primary_scope(guest.manifest(), one));
                let other = scope.and_then(|scope| self.overlapping_module(name, &scope, false));
                let result = match other {
                    Some(other) => Err(self.refuse_candidate(name, other)),
                    None => Ok(guest),
                };
                Input::Loaded { digest, result }
            }
            Input::Module(module) => {
                let changed = self.context.validate(&module).ok();
                let other = changed.zip(self.states.get(name)).and_then(|(spec, state)| {
                    let guests = state.activatable_guests();
                    let mut scopes =
                        guests.filter_map(|guest| primary_scope(guest.manifest(), &spec));
                    scopes.find_map(|scope| self.overlapping_module(name, &scope, true))
                });
                let rejection = other.as_ref().map(|other| overlap(name, other));
                if let Some(overlaps) = self.overlaps(name) {
                    overlaps.spec = other.map(|other| (module.clone(), other));
                }
                match rejection {
                    Some(rejection) => Input::Overlapping { module, rejection },
                    None => Input::Module(module),
                }
            }
            input => input,
        }
    }

    /// Checks that no other module reconciles the primaries of a module's loaded candidate by now:
    /// much may have become active since the candidate was loaded.
    pub(super) fn check_candidate_overlap(&mut self, name: &str) -> Result<(), Rejection> {
        let candidate = self.states.get(name).and_then(ModuleState::candidate_with_spec);
        let Some((guest, spec)) = candidate else { return Ok(()) };
        let Some(scope) = primary_scope(guest.manifest(), spec) else { return Ok(()) };
        match self.overlapping_module(name, &scope, false) {
            Some(other) => Err(self.refuse_candidate(name, other)),
            None => Ok(()),
        }
    }

    fn refuse_candidate(&mut self, name: &str, other: String) -> Rejection {
        let rejection = overlap(name, &other);
        if let Some(overlaps) = self.overlaps(name) {
            overlaps.candidate = Some(other);
        }
        rejection
    }

    fn overlaps(&mut self, name: &str) -> Option<&mut Overlaps> {
        Some(&mut self.states.get_mut(name)?.overlaps)
    }

    /// Which primaries other modules cannot reconcile for this one.
    pub(super) fn claimed_scopes(&self, name: &str) -> Vec<PrimaryScope> {
        let Some(state) = self.states.get(name) else { return Vec::new() };
        let restored = state.restored_scope().filter(|_| state.is_decided());
        state.reserved_scopes().chain(restored).collect()
    }

    /// The modules of which something was refused for this one.
    pub(super) fn refused_for(&self, name: &str) -> Vec<String> {
        let waiting = self.states.iter().filter(|(_, state)| state.waits_for(name));
        waiting.map(|(other, _)| other.clone()).collect()
    }

    /// Whether the active revisions of two modules reconcile the same primaries.
    #[cfg(test)]
    pub(super) fn overlap(&self, one: &str, other: &str) -> bool {
        let scope = |name: &str| {
            let active = self.active_revision(name)?;
            primary_scope(active.guest.manifest(), &active.spec)
        };
        scope(one).zip(scope(other)).is_some_and(|(one, other)| one.overlaps(&other))
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
        let decided = |name: &str| self.states.get(name).is_some_and(ModuleState::is_decided);
        let is_overlapping = |(other, module_state): &(&String, &ModuleState<G>)| {
            let yields = !is_active && decided(other) && (!decided(name) || other.as_str() < name);
            let restored = module_state.restored_scope().filter(|_| yields);
            let mut scopes = module_state.reserved_scopes().chain(restored);
            other.as_str() != name && scopes.any(|other_scope| other_scope.overlaps(scope))
        };
        self.states.iter().find(is_overlapping).map(|(other, _)| other.clone())
    }
}

/// Which primaries a guest reconciles with this spec; `None` if it only reviews requests.
fn primary_scope(manifest: &Manifest, spec: &ValidatedSpec) -> Option<PrimaryScope> {
    let Kind { api_version, kind, .. } = manifest.primary.clone()?;
    Some(PrimaryScope {
        primary: KindName { api_version, kind },
        decorates: control::decorates(manifest),
        namespaces: spec.namespaces.clone(),
        selector: PrimarySelector::of_guest(manifest.selector.as_ref()).and(&spec.selector),
    })
}

fn overlap(name: &str, other: &str) -> Rejection {
    Rejection::new(
        reason::PRIMARY_OVERLAP,
        format!(
            "module {other} reconciles some of the same primaries, and one module controls a primary: keep {name} and {other} apart by spec.namespaces or spec.selector, or delete one"
        ),
        RetryPolicy::Later,
    )
}

impl<G: GuestHandle> ModuleState<G> {
    /// Whether a revision is active, or decided.
    fn is_decided(&self) -> bool {
        self.machine.decided_digests().active.is_some()
    }

    /// Whether its spec or its candidate was refused for another module, this one.
    fn waits_for(&self, other: &str) -> bool {
        let spec = self.overlaps.spec.as_ref().is_some_and(|(_, one)| one == other);
        let is_refused =
            self.machine.refused().is_some_and(|(_, one)| one.reason == reason::PRIMARY_OVERLAP);
        let candidate = is_refused && self.overlaps.candidate.as_deref() == Some(other);
        (spec || candidate) && !self.machine.is_tearing_down()
    }

    /// The guests that reconcile primaries, or do so without another check: those of the active
    /// revision, of the one that a rollback returns to, and of a decided candidate.
    fn activatable_guests(&self) -> impl Iterator<Item = &G> {
        let target = self.machine.rollback_target();
        let target = target.and_then(|target| self.revisions.get(&target.digest));
        let revisions = self.active().into_iter().chain(target).map(|revision| &revision.guest);
        revisions.chain(self.decided_guest())
    }

    /// The guest of a decided candidate.
    pub(super) fn decided_guest(&self) -> Option<&G> {
        let checked = self.candidate.checked.as_ref().filter(|_| self.machine.is_committing());
        checked.map(|(_, guest)| guest)
    }

    /// Which primaries it reconciles, or may reconcile without another check.
    fn reserved_scopes(&self) -> impl Iterator<Item = PrimaryScope> {
        // The active revision may run with a spec of its own, the others get the present one.
        let active = self.active();
        let active = active.and_then(|one| primary_scope(one.guest.manifest(), &one.spec));
        let later = self.spec.iter().flat_map(|spec| {
            self.activatable_guests().filter_map(|guest| primary_scope(guest.manifest(), spec))
        });
        active.into_iter().chain(later)
    }

    /// Which primaries it reconciled before the host started, until a revision is active.
    fn restored_scope(&self) -> Option<PrimaryScope> {
        let spec = self.spec.as_ref().filter(|_| self.active().is_none())?;
        Some(PrimaryScope {
            primary: self.restored.primary.as_ref()?.name(),
            decorates: self.restored.decorates,
            namespaces: spec.namespaces.clone(),
            selector: PrimarySelector::of_guest(self.restored.selector.as_ref())
                .and(&spec.selector),
        })
    }
}
