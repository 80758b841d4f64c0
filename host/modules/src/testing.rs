//! Small builders for tests.

use std::sync::Arc;

use innkeeper_contract::{
    Kind, Manifest, Operation, OwnedKind, PolicyKind, PolicyManifest, PolicyRule, RuleScope,
    SideEffects,
};
use innkeeper_sandbox::Limits;
use serde_json::Value;

use crate::GuestHandle;
use crate::parameters::ParametersError;

pub(crate) fn manifest(name: &str) -> Manifest {
    Manifest {
        name: name.to_owned(),
        version: "0.1.0".into(),
        primary: Some(Kind::namespaced("quay.io/v1alpha1", "Podroute", "podroutes")),
        owned: vec![OwnedKind {
            kind: Kind::namespaced("v1", "ConfigMap", "configmaps"),
            optional: false,
            merges: false,
        }],
        reads: Vec::new(),
        read_fields: Vec::new(),
        crds: Vec::new(),
        resync_seconds: None,
        finalizer: None,
        decorates: false,
        parameters_schema: None,
        kind_parameters: Vec::new(),
        selector: None,
        policy: None,
    }
}

/// The manifest of a guest that only reviews the creation of Pods.
pub(crate) fn policy_manifest(name: &str) -> Manifest {
    let rule = PolicyRule {
        groups: vec![String::new()],
        versions: Vec::new(),
        resources: vec!["pods".to_owned()],
        operations: vec![Operation::Create],
        scope: RuleScope::All,
    };
    let policy = PolicyManifest {
        kind: PolicyKind::Validate,
        rules: vec![rule],
        match_conditions: Vec::new(),
        reinvocation: false,
        side_effects: SideEffects::None,
    };
    Manifest { primary: None, owned: Vec::new(), policy: Some(policy), ..manifest(name) }
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

impl GuestHandle for Fake {
    fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    fn with_manifest(&self, manifest: Arc<Manifest>) -> Self {
        Self { manifest, ..self.clone() }
    }

    fn with_limits(&self, limits: Limits) -> Self {
        Self { limits, ..self.clone() }
    }

    /// Refuses parameters with the member `refuse`, for the reason in it.
    fn ask_about(&self, parameters: &Value) -> Result<(), ParametersError> {
        match parameters["refuse"].as_str() {
            Some(why) => Err(ParametersError::Refused(why.to_owned())),
            None => Ok(()),
        }
    }
}
