//! A revision of a module: a guest with the spec that it runs with.

use std::sync::Arc;

use innkeeper_contract::{Kind, Manifest, PolicyManifest};
use innkeeper_sandbox::{Guest, Limits};
use serde_json::Value;

use crate::machine::Rejection;
use crate::parameters::{self, ParametersError};
use crate::policy_grant;
use crate::validated_spec::{ValidatedPolicy, ValidatedSpec};

/// A loaded component, as far as the driver is concerned: [`Guest`], and a fake in tests.
pub trait GuestHandle: Clone {
    /// The manifest in use: the described one, or that with the kinds of the Module's parameters.
    fn manifest(&self) -> &Manifest;
    /// The same component with another manifest in use; nothing is compiled.
    #[must_use]
    fn with_manifest(&self, manifest: Arc<Manifest>) -> Self;
    /// The same component with other limits on its calls; nothing is compiled.
    #[must_use]
    fn with_limits(&self, limits: Limits) -> Self;
    /// Asks the guest itself about parameters that fit its manifest; blocks the thread.
    ///
    /// # Errors
    /// If the guest cannot work with them.
    fn ask_about(&self, parameters: &Value) -> Result<(), ParametersError>;
}

impl GuestHandle for Guest {
    fn manifest(&self) -> &Manifest {
        self.manifest()
    }

    fn with_manifest(&self, manifest: Arc<Manifest>) -> Self {
        self.with_manifest(manifest)
    }

    fn with_limits(&self, limits: Limits) -> Self {
        self.with_limits(limits)
    }

    fn ask_about(&self, parameters: &Value) -> Result<(), ParametersError> {
        parameters::ask(self, parameters)
    }
}

/// A revision of a module. It never changes: a call in flight holds it until the call ends,
/// whatever becomes active meanwhile.
#[derive(Clone, Debug)]
pub struct Revision<G = Guest> {
    /// The Module's name.
    pub module: Arc<str>,
    /// The guest, with the limits of the spec.
    pub guest: G,
    /// The kinds that earlier revisions declared and this one does not: the host prunes what they
    /// made of these.
    pub retired_kinds: Vec<Kind>,
    /// The names of the CustomResourceDefinitions that the guest describes.
    pub crds: Vec<String>,
    /// The Module's validated spec that it runs with.
    pub spec: ValidatedSpec,
    /// Counts the active revisions of this module, from 1: a later one is larger.
    pub version: u64,
}

impl<G: GuestHandle> Revision<G> {
    /// The policy of the guest and its settings; `None` if the guest has none, or the Module does
    /// not let it review requests.
    pub fn policy(&self) -> Option<(&PolicyManifest, &ValidatedPolicy)> {
        self.guest.manifest().policy.as_ref().zip(self.spec.policy.as_ref())
    }

    /// Checks the policy of the guest, or that it has none, against the spec.
    ///
    /// # Errors
    /// If the Module has no `spec.policy` for it, or one that does not fit it.
    pub fn check_policy(&self) -> Result<(), Rejection> {
        policy_grant::check(self.guest.manifest(), &self.spec)
    }
}
