//! Holds a machine for each module, keeps the bytes and the guests that it decides about, and
//! returns what needs I/O or time as [`Action`]s.
//!
//! One driver serves one operator. Every call of [`Driver::handle`] is short: loading is a
//! [`LoadJob`] and a check of parameters a [`ParametersJob`], for a thread that may block, or for
//! the same thread where everything must be in one order.

mod effects;
mod inputs;
mod installation_numbers;
mod installations;
mod kinds;
mod lost_primaries;
mod message;
mod overlap;
mod parameter_checks;
mod parameter_kinds;
mod report;
mod state;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use innkeeper_sandbox::{Guest, Limits};

use crate::crd_installation::CrdGrant;
use crate::machine::{DecidedDigests, DirectEffect};
use crate::revision::{GuestHandle, Revision};
use crate::source::Digest;
use crate::validated_spec::{SourceKind, SpecContext};

pub use lost_primaries::LostPrimaries;
pub use message::{Action, Input, LoadJob, ParametersJob, Report, Teardown};
pub use report::snapshot_name;
use state::ModuleState;

/// All modules of one host. See the [module's docs](self).
#[derive(Debug)]
pub struct Driver<G = Guest> {
    context: SpecContext,
    states: BTreeMap<String, ModuleState<G>>,
}

impl<G: GuestHandle> Driver<G> {
    /// A driver without modules. `defaults` are the limits of Modules that give none.
    pub fn new(source_kind: SourceKind, defaults: Limits) -> Self {
        let namespaces = BTreeSet::new();
        let context = SpecContext { source_kind, defaults, namespace: None, namespaces };
        Self { context, states: BTreeMap::new() }
    }

    /// The same for a host that runs in this namespace.
    #[must_use]
    pub fn in_namespace(mut self, host_namespace: Option<&str>) -> Self {
        self.context.namespace = host_namespace.map(Into::into);
        self
    }

    /// The same for a namespaced host, which reconciles in these namespaces; in all if there are
    /// none.
    #[must_use]
    pub fn limited_to(mut self, namespaces: BTreeSet<String>) -> Self {
        self.context.namespaces = namespaces;
        self
    }

    /// The names of the modules, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.states.keys().map(String::as_str)
    }

    /// The active revision of a module; `None` until one is loaded.
    pub fn active_revision(&self, name: &str) -> Option<&Arc<Revision<G>>> {
        self.states.get(name)?.active()
    }

    /// The component of a module's active revision, as its status reports it; also before a
    /// restarted host has loaded it again.
    pub fn active_digest(&self, name: &str) -> Option<Digest> {
        self.states.get(name)?.machine.persistent_digests().active
    }

    /// The revisions that are decided for a module; `None` if there is none of that name.
    pub fn decided_digests(&self, name: &str) -> Option<DecidedDigests> {
        self.states.get(name).map(|state| state.machine.decided_digests())
    }

    /// The names of the CustomResourceDefinitions that the active revision of a module describes.
    pub fn described_crds(&self, name: &str) -> &[String] {
        self.active_revision(name).map(|revision| &*revision.crds).unwrap_or_default()
    }

    /// What the last valid spec and the present approval of a module let the host do with
    /// definitions.
    pub fn crd_grant(&self, name: &str) -> CrdGrant {
        self.states.get(name).map(ModuleState::crd_grant).unwrap_or_default()
    }

    /// Whether the last valid spec of a module lets the host install this definition again, if it
    /// is deleted.
    pub fn reinstalls_crd(&self, name: &str, crd: &str) -> bool {
        let Some(state) = self.states.get(name) else { return false };
        let is_paused = state.spec.as_ref().is_none_or(|spec| spec.paused);
        let group = crd.split_once('.').map(|(_, group)| group);
        !is_paused && group.is_some_and(|group| state.crd_grant().groups.contains(group))
    }

    /// Whether a definition of a module's active revision is known not to exist.
    pub fn is_crd_missing(&self, name: &str) -> bool {
        self.states.get(name).is_some_and(|state| state.machine.is_crd_missing())
    }

    /// Whether the active revision of a module, or one that is about to become active, has a
    /// finalizer.
    pub fn has_finalizer(&self, name: &str) -> bool {
        self.states.get(name).is_some_and(|state| {
            let rolled_back = state.machine.rolled_back();
            let machines = [Some(&state.machine), rolled_back.as_ref()];
            machines.into_iter().flatten().any(|machine| state.finalizer_of(machine).is_some())
        })
    }

    /// The primaries of the revision that was active before the host started, while no revision of
    /// a module is active.
    pub fn lost_primaries(&self, name: &str) -> Option<LostPrimaries> {
        self.states.get(name)?.lost_primaries()
    }

    /// The status of a module; `None` if there is none of that name.
    pub fn report(&self, name: &str) -> Option<Report> {
        self.states.get(name).map(ModuleState::report)
    }

    /// The status of a module with what is decided, for [`Action::Commit`] of this component: no
    /// other write may contain it, since a restarted host follows it and needs the snapshot that is
    /// saved before. `None` if the component is not decided (any more).
    pub fn committed_status(&self, name: &str, digest: Digest) -> Option<Report> {
        let state = self.states.get(name)?;
        let is_decided =
            state.machine.is_committing() && state.machine.candidate().digest() == Some(digest);
        is_decided.then(|| state.committed_status())
    }

    /// The status of a module once its decided rollback is carried out, for
    /// [`Action::CommitRollback`]; `None` if no rollback is decided (any more).
    pub fn rollback_status(&self, name: &str) -> Option<Report> {
        self.states.get(name)?.rollback_status()
    }

    /// Takes an input for the module `name`; returns the actions, in the order in which to carry
    /// them out. An input for a module that is not known (any more) is dropped.
    pub fn handle(&mut self, name: &str, input: impl Into<Input<G>>) -> Vec<Action<G>> {
        let before = self.claimed_scopes(name);
        let mut actions = self.take(name, input.into());
        let after = self.claimed_scopes(name);
        if before.iter().any(|scope| !after.contains(scope)) {
            let refused = self.refused_for(name);
            actions.extend((!refused.is_empty()).then_some(Action::RetryOverlapping(refused)));
        }
        actions
    }

    fn take(&mut self, name: &str, input: Input<G>) -> Vec<Action<G>> {
        match &input {
            Input::Module(_) | Input::Malformed { .. } | Input::NotAllowed { .. } => {
                self.states.entry(name.to_owned()).or_insert_with(|| ModuleState::new(name));
            }
            _ => {}
        }
        let input = self.refuse_overlap(name, input);
        let Some(state) = self.states.get_mut(name) else { return Vec::new() };
        // Nothing is fetched before the first valid spec: when there is one, the source is read.
        if state.spec.is_none() && matches!(input, Input::Source(_)) {
            return Vec::new();
        }
        let events = match state.events(input, &self.context) {
            Ok(events) => events,
            Err(actions) => return actions,
        };
        let overlap = self.check_candidate_overlap(name);
        let Some(state) = self.states.get_mut(name) else { return Vec::new() };
        state.machine.check_overlap(overlap);
        let mut actions = Vec::new();
        for event in events {
            state.step(event, &mut actions);
        }
        let effects = state.machine.check_grant(state.grant());
        state.carry_out(effects, &mut actions);
        state.drop_unneeded();
        if actions.iter().any(|action| matches!(action, Action::Direct(DirectEffect::RemoveModule)))
        {
            self.states.remove(name);
        }
        actions
    }
}

#[cfg(test)]
mod tests;
