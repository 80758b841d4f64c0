//! The manifest of a Kubewarden policy, made from its metadata.

use std::collections::BTreeSet;

use innkeeper_contract::{
    Manifest, Operation, PolicyKind, PolicyManifest, PolicyRule, RuleScope, SideEffects,
};
use serde_json::json;

use super::metadata::{KubewardenMetadata, Rule};
use super::{host_calls, kinds};
use crate::error::{LoadError, text};

/// API groups whose requests the host sends to no policy, and so accepts in no rule.
const NEVER_REVIEWED_GROUPS: [&str; 5] = [
    "admissionregistration.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "coordination.k8s.io",
    "innkeeper.dev",
];

/// The longest name of a guest, in bytes.
const NAME_BYTES_MAX: usize = 253;

/// A manifest, and what its reader should know.
pub(crate) struct Described {
    pub(crate) manifest: Manifest,
    pub(crate) warnings: Vec<String>,
}

/// Makes the manifest of a policy. Leaves out of its rules what the host sends to no policy.
///
/// # Errors
/// [`LoadError::InvalidMetadata`] for an operation that Kubernetes does not know, for a policy
/// without a name, and if the host would send the policy no request.
pub(crate) fn manifest(metadata: &KubewardenMetadata) -> Result<Described, LoadError> {
    let mut warnings = Vec::new();
    let mut rules = Vec::new();
    for one in &metadata.rules {
        rules.extend(rule(one, &mut warnings)?);
    }
    if rules.is_empty() && !warnings.is_empty() {
        return Err(LoadError::InvalidMetadata { what: warnings.join("; ") });
    }
    let policy = PolicyManifest {
        kind: if metadata.mutating { PolicyKind::Mutate } else { PolicyKind::Validate },
        rules,
        match_conditions: Vec::new(),
        reinvocation: false,
        side_effects: SideEffects::None,
    };
    let reads: BTreeSet<_> = metadata
        .context_aware_resources
        .iter()
        .map(|one| kinds::kind(&one.api_version, &one.kind))
        .collect();
    let refused = metadata.host_capabilities.iter().map(String::as_str);
    let refused: Vec<&str> = refused.filter(|call| !host_calls::OFFERED.contains(call)).collect();
    if !refused.is_empty() {
        warnings.push(text(format!(
            "the policy makes host calls that are not offered: {}",
            refused.join(", ")
        )));
    }
    let version = metadata.annotation("version").unwrap_or_default().trim();
    let manifest = Manifest {
        name: name(metadata)?,
        version: version.strip_prefix('v').unwrap_or(version).to_owned(),
        primary: None,
        selector: None,
        owned: Vec::new(),
        reads: reads.into_iter().collect(),
        read_fields: Vec::new(),
        crds: Vec::new(),
        resync_seconds: None,
        finalizer: None,
        decorates: false,
        // The policy itself checks what is in it.
        parameters_schema: Some(json!({"type": "object"}).into()),
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

/// The rule without what the host sends to no policy; `None` if nothing is left.
fn rule(rule: &Rule, warnings: &mut Vec<String>) -> Result<Option<PolicyRule>, LoadError> {
    let mut operations = Vec::new();
    for operation in &rule.operations {
        match operation.as_str() {
            "CREATE" => operations.push(Operation::Create),
            "UPDATE" => operations.push(Operation::Update),
            "DELETE" => operations.push(Operation::Delete),
            "CONNECT" => warn(warnings, "policies do not review CONNECT: its rules leave it out"),
            "*" if rule.operations.len() == 1 => {
                warn(
                    warnings,
                    "the operation * of a rule stands for CREATE, UPDATE and DELETE: policies do \
                     not review CONNECT",
                );
                operations = vec![Operation::Create, Operation::Update, Operation::Delete];
            }
            other => {
                let what = text(format!("a rule names the operation {other:?}"));
                return Err(LoadError::InvalidMetadata { what });
            }
        }
    }
    let mut groups = rule.api_groups.clone();
    groups.retain(|group| {
        let is_reviewed = !NEVER_REVIEWED_GROUPS.contains(&group.as_str());
        if !is_reviewed {
            let warning =
                format!("requests of {group} are never sent to policies: its rules leave it out");
            warn(warnings, &warning);
        }
        is_reviewed
    });
    // Lists that the metadata itself has empty are for the check of the manifest.
    let is_left = |now: usize, before: usize| now > 0 || before == 0;
    let is_left = is_left(operations.len(), rule.operations.len())
        && is_left(groups.len(), rule.api_groups.len());
    Ok(is_left.then(|| PolicyRule {
        groups,
        versions: rule.api_versions.clone(),
        resources: rule.resources.clone(),
        operations,
        scope: RuleScope::All,
    }))
}

/// Adds a warning, once.
fn warn(warnings: &mut Vec<String>, warning: &str) {
    if !warnings.iter().any(|one| one == warning) {
        warnings.push(warning.to_owned());
    }
}
