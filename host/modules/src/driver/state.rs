//! What the driver keeps of one module.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use innkeeper_contract::{Manifest, PrimarySelector};
use serde_json::Value;

use super::installation_numbers::InstallationNumbers;
use crate::finalizers;
use crate::machine::{Candidate, Machine, Rejection, RetryPolicy, reason};
use crate::module::{KindName, KindStatus, Module, PolicyStatus, PreviewStatus};
use crate::policy_grant;
use crate::revision::{GuestHandle, Revision};
use crate::source::{Component, Digest};
use crate::validated_spec::ValidatedSpec;

/// The machine of one module, and the bytes and guests that it decides about.
#[derive(Debug)]
pub(super) struct ModuleState<G> {
    pub(super) name: Arc<str>,
    pub(super) machine: Machine,
    /// The last valid spec.
    pub(super) spec: Option<ValidatedSpec>,
    /// Components that may have to be loaded or saved.
    pub(super) components: BTreeMap<Digest, Component>,
    pub(super) candidate: CandidateGuest<G>,
    /// The last parameters that fit the active revision, and its guest with the kinds of these.
    pub(super) accepted: Option<(Value, G)>,
    /// The check whose owned kinds are being written into the status.
    pub(super) uncommitted: Option<UncommittedCheck<G>>,
    /// The active revision and the one that a rollback returns to, by component. The machine says
    /// which is which.
    pub(super) revisions: BTreeMap<Digest, Arc<Revision<G>>>,
    /// The version of the last active revision.
    pub(super) version: u64,
    pub(super) restored: RestoredStatus,
    pub(super) annotations: Annotations,
    /// The kinds that the module may have made objects of.
    pub(super) owned_kinds: BTreeMap<KindName, KindStatus>,
    /// Those of them that the status may not name yet.
    pub(super) unwritten_kinds: BTreeSet<KindName>,
    /// The installations of definitions.
    pub(super) installations: InstallationNumbers,
    /// The previews of the active revision and of the candidate.
    pub(super) previews: Vec<PreviewStatus>,
    /// The versions of the revisions that the status names.
    pub(super) versions: BTreeMap<Digest, String>,
    /// What was refused for another module.
    pub(super) overlaps: Overlaps,
}

/// What was refused since another module reconciles the same primaries.
#[derive(Debug, Default)]
pub(super) struct Overlaps {
    /// The Module whose spec was refused, and the other module.
    pub(super) spec: Option<(Box<Module>, String)>,
    /// The other module of the candidate that was refused last.
    pub(super) candidate: Option<String>,
}

/// The guest of the candidate.
#[derive(Debug)]
pub(super) struct CandidateGuest<G> {
    /// Loaded, while the parameters are checked against its schema.
    pub(super) unchecked: Option<(Digest, G)>,
    /// Loaded and checked.
    pub(super) checked: Option<(Digest, G)>,
    /// The parameters that fit the checked guest.
    pub(super) parameters: Value,
}

/// A check whose owned kinds the status does not name yet.
#[derive(Debug)]
pub(super) struct UncommittedCheck<G> {
    /// The component.
    pub(super) digest: Digest,
    /// The parameters that fit it.
    pub(super) parameters: Value,
    /// Its guest with the kinds of these.
    pub(super) guest: G,
}

/// The members of the Module's status when the host started.
#[derive(Debug, Default)]
pub(super) struct RestoredStatus {
    /// The status has been read.
    pub(super) is_read: bool,
    /// The kind of the primaries.
    pub(super) primary: Option<KindStatus>,
    /// The module decorated its primaries.
    pub(super) decorates: bool,
    /// The selector of its guest.
    pub(super) selector: Option<PrimarySelector>,
    /// The finalizer on its primaries.
    pub(super) finalizer: Option<String>,
    /// The policy of the active revision.
    pub(super) policy: Option<PolicyStatus>,
}

/// The annotations of the Module that approve and reject.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Annotations {
    pub(super) approve: Option<Digest>,
    pub(super) reject: Option<Digest>,
    /// What is wrong with them, if something is.
    pub(super) invalid: Option<String>,
}

impl<G: GuestHandle> ModuleState<G> {
    /// A module that was just seen.
    pub(super) fn new(name: &str) -> Self {
        Self {
            name: name.into(),
            machine: Machine::default(),
            spec: None,
            components: BTreeMap::new(),
            candidate: CandidateGuest { unchecked: None, checked: None, parameters: Value::Null },
            accepted: None,
            uncommitted: None,
            revisions: BTreeMap::new(),
            version: 0,
            restored: RestoredStatus::default(),
            annotations: Annotations::default(),
            owned_kinds: BTreeMap::new(),
            unwritten_kinds: BTreeSet::new(),
            installations: InstallationNumbers::default(),
            previews: Vec::new(),
            versions: BTreeMap::new(),
            overlaps: Overlaps::default(),
        }
    }

    /// The active revision.
    pub(super) fn active(&self) -> Option<&Arc<Revision<G>>> {
        self.active_of(&self.machine)
    }

    /// The active revision in another state of the machine.
    pub(super) fn active_of(&self, machine: &Machine) -> Option<&Arc<Revision<G>>> {
        self.revisions.get(&machine.active()?.digest)
    }

    /// The parameters that the Module gives at present.
    pub(super) fn parameters(&self) -> Value {
        self.spec.as_ref().map_or(Value::Null, |spec| spec.parameters.clone())
    }

    /// Whether the present spec grants the finalizer and the policy of the active revision.
    pub(super) fn grant(&self) -> Result<(), Rejection> {
        let (Some(active), Some(spec)) = (self.active(), &self.spec) else { return Ok(()) };
        let granted = self.granted_to(active.guest.manifest(), spec);
        // `spec.policy` may be there for the candidate.
        let is_for_candidate = |rejection: &Rejection| {
            rejection.reason == reason::POLICY_MISSING
                && *self.machine.candidate() != Candidate::Nothing
        };
        match granted {
            Err(rejection) if is_for_candidate(&rejection) => Ok(()),
            granted => granted,
        }
    }

    /// Whether a spec grants the finalizer and the policy of a guest.
    pub(super) fn granted_to(
        &self,
        manifest: &Manifest,
        spec: &ValidatedSpec,
    ) -> Result<(), Rejection> {
        finalizers::check(&self.name, manifest, spec)?;
        policy_grant::check(manifest, spec)
    }

    /// Drops what the machine can no longer ask for.
    pub(super) fn drop_unneeded(&mut self) {
        let machine = &self.machine;
        self.candidate
            .unchecked
            .take_if(|(digest, _)| *machine.candidate() != Candidate::Loading(*digest));
        let unchecked = self.candidate.unchecked.as_ref().map(|(digest, _)| *digest);
        let used = [unchecked, machine.active().map(|active| active.digest)];
        let parameters = self.spec.as_ref().map(|spec| &spec.parameters);
        self.uncommitted.take_if(|check| {
            !used.contains(&Some(check.digest)) || parameters != Some(&check.parameters)
        });
        let loaded = machine.loaded_candidate();
        self.candidate.checked.take_if(|(digest, _)| Some(*digest) != loaded);
        let kept = [machine.active(), machine.rollback_target()];
        self.revisions.retain(|digest, _| kept.iter().flatten().any(|one| one.digest == *digest));
        let decided = machine.decided_digests();
        let named = decided.history.into_iter().chain(decided.active);
        let named =
            named.chain(machine.persistent_digests().active).chain(machine.candidate().digest());
        let named: BTreeSet<_> =
            named.chain(machine.rejected().map(|(digest, _)| *digest)).collect();
        self.versions.retain(|digest, _| named.contains(digest));
        match machine.candidate() {
            Candidate::Nothing => self.components.clear(),
            // A user may still approve it, but rarely does: then the source is read again.
            Candidate::Rejected(_, rejection) if rejection.retry == RetryPolicy::Never => {
                self.components.clear();
            }
            candidate => {
                let (present, candidate) = (machine.source_digest(), candidate.digest());
                self.components
                    .retain(|digest, _| Some(*digest) == present || Some(*digest) == candidate);
            }
        }
    }
}
