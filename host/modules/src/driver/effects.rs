//! Turns effects of the machine into actions, and activates revisions.

use std::sync::Arc;

use serde_json::Value;

use super::message::{Action, LoadJob};
use super::state::ModuleState;
use crate::definitions;
use crate::machine::{Effect, Event, Rejection, RetryPolicy};
use crate::revision::{GuestHandle, Revision};
use crate::source::Digest;
use crate::validated_spec::ValidatedSpec;

impl<G: GuestHandle> ModuleState<G> {
    /// Hands an event to the machine, and carries out its effects.
    pub(super) fn step(&mut self, event: Event, actions: &mut Vec<Action<G>>) {
        let effects = self.machine.step(event);
        self.carry_out(effects, actions);
    }

    /// Carries out effects; what needs I/O or time becomes an action.
    pub(super) fn carry_out(&mut self, effects: Vec<Effect>, actions: &mut Vec<Action<G>>) {
        for effect in effects {
            self.carry_out_one(effect, actions);
        }
    }

    fn carry_out_one(&mut self, effect: Effect, actions: &mut Vec<Action<G>>) {
        match effect {
            Effect::Fetch => {
                let source = self.spec.as_ref().map(|spec| spec.source.clone());
                actions.extend(source.map(Action::Fetch));
            }
            Effect::Load(digest) => self.load(digest, actions),
            Effect::Preview(digest) => {
                if let Some((guest, spec)) = self.candidate_with_spec() {
                    let candidate = Arc::new(self.revision(guest, spec.clone()));
                    actions.push(Action::Preview { digest, candidate });
                }
            }
            Effect::Commit(digest) => {
                // The decision names what the candidate may make.
                if let Some((_, guest)) =
                    self.candidate.checked.clone().filter(|(checked, _)| *checked == digest)
                {
                    self.note_owned(guest.manifest());
                }
                let component = self.components.get(&digest).cloned();
                actions.push(Action::Commit { digest, component });
            }
            Effect::SaveSnapshot(digest) => {
                let component = self.components.get(&digest).cloned();
                actions.extend(component.map(Action::SaveSnapshot));
            }
            Effect::CommitRollback(digest) => {
                if let Some(before) = self.revisions.get(&digest).cloned() {
                    self.note_owned(before.guest.manifest());
                }
                actions.push(Action::CommitRollback(digest));
            }
            Effect::Rollback(digest) => {
                // No preview is about this activation.
                self.previews.clear();
                if let Some(before) = self.revisions.get(&digest).cloned() {
                    self.record_written(before.guest.manifest());
                    let spec = self.spec.clone().unwrap_or(before.spec.clone());
                    let parameters = before.spec.parameters.clone();
                    self.activate_with(digest, &before.guest, spec, parameters, actions);
                }
            }
            Effect::BeginRollbackWindow(digest) => {
                let rollout = self.spec.as_ref().map(|spec| &spec.rollout);
                actions.extend(rollout.map(|rollout| Action::BeginRollbackWindow {
                    digest,
                    failures_max: rollout.failures_max,
                    time: rollout.rollback_window,
                }));
            }
            Effect::InstallCrds(digest) => actions.extend(self.install_crds(digest)),
            Effect::AdoptCrds(digest) => actions.extend(self.adopt_crds(digest)),
            Effect::ReinstallCrds { digest, names } => {
                actions.extend(self.reinstall_crds(digest, &names));
            }
            Effect::Swap(digest) => self.swap(digest, actions),
            Effect::ApplySettings { parameters } => self.apply_settings(parameters, actions),
            Effect::CheckParameters => actions.extend(self.check_parameters()),
            Effect::Teardown => actions.push(Action::Teardown(self.teardown())),
            Effect::Report => {
                // The last report has everything.
                actions.retain(|action| !matches!(action, Action::Report(_)));
                actions.push(Action::Report(self.report()));
            }
            Effect::Direct(effect) => actions.push(Action::Direct(effect)),
        }
    }

    /// Gives the active revision the present spec; `parameters` says whether the present
    /// parameters too.
    fn apply_settings(&mut self, parameters: bool, actions: &mut Vec<Action<G>>) {
        let (Some(active), Some(spec)) = (self.active().cloned(), &self.spec) else {
            return;
        };
        let mut spec = spec.clone();
        if !parameters {
            spec.parameters = active.spec.parameters.clone();
        }
        let accepted =
            self.accepted.take().filter(|(fit, _)| parameters && *fit == spec.parameters);
        let Some((_, guest)) =
            accepted.filter(|(_, one)| one.manifest() != active.guest.manifest())
        else {
            // A change of the parameters that was superseded may leave kinds without objects.
            let has_leftovers =
                parameters && self.retired_kinds(active.guest.manifest()) != active.retired_kinds;
            if spec != active.spec || has_leftovers {
                self.activate_again(&active, spec, actions);
            }
            return;
        };
        let Some(digest) = self.machine.active().map(|active| active.digest) else { return };
        self.activate(digest, &guest, spec, actions);
    }

    fn load(&mut self, digest: Digest, actions: &mut Vec<Action<G>>) {
        let component = self.components.get(&digest).cloned();
        if let Some((component, spec)) = component.zip(self.spec.as_ref()) {
            let limits = spec.limits;
            actions.push(Action::Load(LoadJob { component, limits }));
            return;
        }
        // The machine asks only for the component that the source had last. Should it be missing
        // all the same, the source is read again.
        tracing::error!(module = %self.name, %digest, "the bytes to load are gone");
        let rejection = Rejection::new("SourceGone", "its bytes are gone", RetryPolicy::Later);
        self.step(Event::Loaded { digest, result: Err(rejection) }, actions);
        self.carry_out_one(Effect::Fetch, actions);
    }

    pub(super) fn candidate_with_spec(&self) -> Option<(&G, &ValidatedSpec)> {
        let (_, guest) = self.candidate.checked.as_ref()?;
        Some((guest, self.spec.as_ref()?))
    }

    fn swap(&mut self, digest: Digest, actions: &mut Vec<Action<G>>) {
        if let Some((loaded, guest)) = self.candidate.checked.take()
            && loaded == digest
            && let Some(spec) = self.spec.clone()
        {
            self.note_owned(guest.manifest());
            // The decision names its kinds, or that it is active, and so its manifest does.
            self.record_written(guest.manifest());
            // A preview is about the activation that it came before.
            self.previews.retain(|one| one.digest == digest.to_string());
            let parameters = std::mem::take(&mut self.candidate.parameters);
            self.activate_with(digest, &guest, spec, parameters, actions);
        }
    }

    /// Activates a guest with parameters that fit it. If the Module gives others by now, they are
    /// checked.
    fn activate_with(
        &mut self,
        digest: Digest,
        guest: &G,
        mut spec: ValidatedSpec,
        parameters: Value,
        actions: &mut Vec<Action<G>>,
    ) {
        let is_present = spec.parameters == parameters;
        spec.parameters = parameters;
        self.activate(digest, guest, spec, actions);
        if !is_present {
            actions.extend(self.check_parameters());
        }
    }

    /// Runs the machine's active revision with this spec.
    pub(super) fn activate_again(
        &mut self,
        active: &Revision<G>,
        spec: ValidatedSpec,
        actions: &mut Vec<Action<G>>,
    ) {
        let Some(digest) = self.machine.active().map(|active| active.digest) else { return };
        self.activate(digest, &active.guest, spec, actions);
    }

    /// Runs a component with this spec.
    fn activate(
        &mut self,
        digest: Digest,
        guest: &G,
        spec: ValidatedSpec,
        actions: &mut Vec<Action<G>>,
    ) {
        let revision = Arc::new(self.revision(guest, spec));
        self.version = revision.version;
        self.revisions.insert(digest, Arc::clone(&revision));
        actions.push(Action::Activate(revision));
    }

    /// A guest as the next revision.
    fn revision(&self, guest: &G, spec: ValidatedSpec) -> Revision<G> {
        Revision {
            module: Arc::clone(&self.name),
            guest: guest.with_limits(spec.limits),
            retired_kinds: self.retired_kinds(guest.manifest()),
            crds: definitions::described_names(guest.manifest()),
            spec,
            version: self.version + 1,
        }
    }

    /// The check of the present parameters against the schema of the active revision.
    fn check_parameters(&self) -> Option<Action<G>> {
        let (digest, revision) = (self.machine.active()?.digest, self.active()?);
        Some(Action::CheckParameters(self.parameters_job(digest, revision.guest.clone())))
    }
}
