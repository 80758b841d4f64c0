//! A policy that denies a `RoleBinding` whose subject has `RoleBindings` in too many namespaces.
//! A subject that needs rights in most namespaces gets a `ClusterRoleBinding`, which a reviewer
//! sees.
//!
//! It reads all `RoleBindings` of the cluster in each review, so it also shows what reads cost.

use std::collections::BTreeSet;

use innkeeper_sdk::serde_json::json;
use innkeeper_sdk::{
    Context, Describe, Manifest, Operation, RequestRule, Review, Reviewer, Verdict, kind,
};
use serde::Deserialize;

/// A `RoleBinding`, with the fields that the policy reads.
#[derive(Clone, Debug, Deserialize)]
pub struct RoleBinding {
    /// Metadata.
    #[serde(default)]
    pub metadata: Place,
    /// Who gets the rights.
    #[serde(default)]
    pub subjects: Vec<Subject>,
}

/// Where a `RoleBinding` is.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Place {
    /// Its namespace.
    #[serde(default)]
    pub namespace: String,
}

/// A subject of a `RoleBinding`. Its API group follows from its kind.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Subject {
    /// `User`, `Group` or `ServiceAccount`.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// The namespace of a ServiceAccount.
    #[serde(default)]
    pub namespace: String,
}

kind!(Resource for RoleBinding, "rbac.authorization.k8s.io/v1", "rolebindings");

/// The parameters of the Module.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Parameters {
    /// In how many namespaces a subject may have `RoleBindings`.
    pub max_namespaces: usize,
}

/// The policy.
pub struct Policy;

impl Policy {
    fn decide(context: &Context, request: &Review<RoleBinding>) -> Result<Verdict, Verdict> {
        let Parameters { max_namespaces } = request.parameters()?;
        let Some(binding) = request.object() else { return Ok(Verdict::allow()) };
        let bindings = context
            .list::<RoleBinding>("", "")
            .map_err(|error| Verdict::failed(format!("RoleBindings cannot be read: {error}")))?;
        let mut verdict = Verdict::allow();
        for (index, subject) in binding.subjects.iter().enumerate() {
            let mut namespaces: BTreeSet<&str> = bindings
                .iter()
                .filter(|other| other.object.subjects.contains(subject))
                .map(|other| &*other.object.metadata.namespace)
                .collect();
            // A binding more where the subject has one already makes its reach no wider.
            if namespaces.insert(request.namespace()) && namespaces.len() > max_namespaces {
                let Subject { kind, name, .. } = subject;
                let message = format!(
                    "the {kind} {name} has RoleBindings in {max_namespaces} namespaces already; give it a ClusterRoleBinding"
                );
                if verdict.is_allowed() {
                    verdict = Verdict::deny(message.clone());
                }
                verdict = verdict.cause(format!("subjects[{index}]"), message);
            }
        }
        Ok(verdict)
    }
}

impl Reviewer for Policy {
    type Object = RoleBinding;

    fn describe() -> Manifest {
        Describe::validating_policy("binding-limit", env!("CARGO_PKG_VERSION"))
            .rule(RequestRule::of::<RoleBinding>().on([Operation::Create, Operation::Update]))
            .reads::<RoleBinding>()
            .parameters(json!({
                "type": "object",
                "required": ["maxNamespaces"],
                "additionalProperties": false,
                "properties": {"maxNamespaces": {"type": "integer", "minimum": 1}},
            }))
            .manifest()
    }

    fn review(context: &Context, request: &Review<RoleBinding>) -> Verdict {
        Self::decide(context, request).unwrap_or_else(|failed| failed)
    }
}

innkeeper_sdk::export!(reviewer: Policy);
