//! A revision of a module: a guest with the settings that it runs with.

use std::sync::Arc;

use innkeeper_contract::{Kind, Manifest};
use innkeeper_sandbox::{Guest, Limits};

use crate::ValidatedSpec;

/// A loaded component, as far as the driver is concerned: [`Guest`], and a fake in tests.
pub trait Loaded: Clone {
    /// The manifest in use: the described one, or that with the kinds of the Module's parameters.
    fn manifest(&self) -> &Manifest;
    /// The same component with another manifest in use; nothing is compiled.
    #[must_use]
    fn with_manifest(&self, manifest: Arc<Manifest>) -> Self;
    /// The same component with other limits on its calls; nothing is compiled.
    #[must_use]
    fn with_limits(&self, limits: Limits) -> Self;
}

impl Loaded for Guest {
    fn manifest(&self) -> &Manifest {
        self.manifest()
    }

    fn with_manifest(&self, manifest: Arc<Manifest>) -> Self {
        self.with_manifest(manifest)
    }

    fn with_limits(&self, limits: Limits) -> Self {
        self.with_limits(limits)
    }
}

/// A revision of a module. It never changes: a call in flight holds it until the call ends,
/// whatever becomes active meanwhile.
#[derive(Clone, Debug)]
pub struct Revision<G = Guest> {
    /// The Module's name.
    pub module: Arc<str>,
    /// The guest, with the limits of the settings.
    pub guest: G,
    /// The kinds that earlier revisions declared and this one does not: the host prunes what they
    /// made of these.
    pub dropped: Vec<Kind>,
    /// The settings that it runs with.
    pub settings: ValidatedSpec,
    /// Counts the active revisions of this module, from 1: a later one is larger.
    pub version: u64,
}
