//! The manifest of a Kubewarden policy, made from its metadata.

use std::collections::BTreeSet;

use innkeeper_contract::{
    Manifest, Operation, PolicyKind, PolicyManifest, PolicyRule, RuleScope, SideEffects,
};
use serde_json::json;

use super::kinds;
use super::metadata::{KubewardenMetadata, Rule};
use crate::error::{LoadError, text};

/// The longest name of a guest, in bytes.
const NAME_BYTES_MAX: usize = 253;

/// A manifest, and what its reader should know.
pub(crate) struct Described {
    pub(crate) manifest: Manifest,
    pub(crate) warnings: Vec<String>,
}

/// Makes the manifest of a policy.
///
/// # Errors
/// [`LoadError::InvalidMetadata`] for an operation that Kubernetes does not know, and for a policy
/// without a name.
pub(crate) fn manifest(metadata: &KubewardenMetadata) -> Result<Described, LoadError> {
    let mut warnings = Vec::new();
    let rules = metadata.rules.iter().map(|one| rule(one, &mut warnings));
    let policy = PolicyManifest {
        kind: if metadata.mutating { PolicyKind::Mutate } else { PolicyKind::Validate },
        rules: rules.collect::<Result<_, _>>()?,
        match_conditions: Vec::new(),
        reinvocation: false,
        side_effects: SideEffects::None,
    };
    let reads: BTreeSet<_> = metadata
        .context_aware_resources
        .iter()
        .map(|one| kinds::kind(&one.api_version, &one.kind))
        .collect();
    let version = metadata.annotation("version").unwrap_or_default().trim();
    let manifest = Manifest {
        name: name(metadata)?,
        version: version.strip_prefix('v').unwrap_or(version).to_owned(),
        primary: None,
        selector: None,
        owned: Vec::new(),
        reads: reads.into_iter().collect(),
        crds: Vec::new(),
        resync_seconds: None,
        finalizer: None,
        decorates: false,
        // The policy itself checks what is in it.
        parameters_schema: Some(json!({"type": "object"})),
        kind_parameters: Vec::new(),
        policy: Some(policy),
    };
    Ok(Described { manifest, warnings })
}

/// The title as a DNS name.
fn name(metadata: &KubewardenMetadata) -> Result<String, LoadError> {
    let Some(title) = metadata.annotation("title") else {
        return Err(LoadError::InvalidMetadata {
            what: "it has no annotation io.kubewarden.policy.title, which names the policy"
                .to_owned(),
        });
    };
    let visible =
        |one: char| if one.is_ascii_alphanumeric() { one.to_ascii_lowercase() } else { '-' };
    let name: String = title.chars().take(NAME_BYTES_MAX).map(visible).collect();
    let words: Vec<&str> = name.split('-').filter(|word| !word.is_empty()).collect();
    if words.is_empty() {
        let what = text(format!("its title {title:?} has no letter or digit"));
        return Err(LoadError::InvalidMetadata { what });
    }
    Ok(words.join("-"))
}

fn rule(rule: &Rule, warnings: &mut Vec<String>) -> Result<PolicyRule, LoadError> {
    let mut operations = Vec::new();
    for operation in &rule.operations {
        match operation.as_str() {
            "CREATE" => operations.push(Operation::Create),
            "UPDATE" => operations.push(Operation::Update),
            "DELETE" => operations.push(Operation::Delete),
            "CONNECT" => operations.push(Operation::Connect),
            "*" if rule.operations.len() == 1 => {
                let warning = "the operation * of a rule stands for CREATE, UPDATE and DELETE: \
                               policies do not review CONNECT";
                if !warnings.iter().any(|one| one == warning) {
                    warnings.push(warning.to_owned());
                }
                operations = vec![Operation::Create, Operation::Update, Operation::Delete];
            }
            other => {
                let what = text(format!("a rule names the operation {other:?}"));
                return Err(LoadError::InvalidMetadata { what });
            }
        }
    }
    Ok(PolicyRule {
        groups: rule.api_groups.clone(),
        versions: rule.api_versions.clone(),
        resources: rule.resources.clone(),
        operations,
        scope: RuleScope::All,
    })
}
