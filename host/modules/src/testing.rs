//! Small builders for tests.

use std::sync::Arc;

use innkeeper_contract::{Kind, Manifest, OwnedKind};
use innkeeper_sandbox::Limits;

use crate::Loaded;

pub(crate) fn manifest(name: &str) -> Manifest {
    Manifest {
        name: name.to_owned(),
        version: "0.1.0".into(),
        primary: Kind::namespaced("quay.io/v1alpha1", "Podroute", "podroutes"),
        owned: vec![OwnedKind {
            kind: Kind::namespaced("v1", "ConfigMap", "configmaps"),
            optional: false,
            merges: false,
        }],
        reads: Vec::new(),
        crds: Vec::new(),
        resync_seconds: None,
        finalizer: None,
        decorates: false,
        parameters_schema: None,
        kind_parameters: Vec::new(),
        selector: None,
    }
}

/// A component that only says what it is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Fake {
    pub(crate) manifest: Arc<Manifest>,
    pub(crate) limits: Limits,
}

impl Fake {
    pub(crate) fn new(manifest: Manifest) -> Self {
        Self { manifest: Arc::new(manifest), limits: Limits::default() }
    }
}

impl Loaded for Fake {
    fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    fn with_manifest(&self, manifest: Arc<Manifest>) -> Self {
        Self { manifest, ..self.clone() }
    }

    fn with_limits(&self, limits: Limits) -> Self {
        Self { limits, ..self.clone() }
    }
}
