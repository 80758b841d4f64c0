//! Foreign definitions, those that the host did not install, become the module's because its Module
//! asks for it (`spec.crds: Adopt`). Nothing here does I/O.

use std::fmt::Write as _;

use innkeeper_core::{Object, crd_compat};
use innkeeper_modules::machine::reason::{CRD_NOT_ADDITIVE, WOULD_NARROW_CRD};
use innkeeper_modules::{
    CrdRequest, Digest, Example, HeldCrds, PlannedChange, Rejection, RetryPolicy,
};
use serde_json::{Value, json};

use super::compatibility::first;
use super::decision::ForeignDefinition;

/// Returns the request without `spec.preserveUnknownFields`: `apiextensions.k8s.io/v1` accepts only
/// `false`, so a guest that claims to keep unknown fields does not keep them.
pub(super) fn without_unknown_fields(request: &CrdRequest) -> CrdRequest {
    let mut request = request.clone();
    if let Some(spec) = request.definition["spec"].as_object_mut() {
        spec.remove("preserveUnknownFields");
    }
    request
}

/// Checks what no approval allows: the definition must stay the same kind, with the same conversion
/// and all versions in which objects are stored.
pub(super) fn check(
    request: &CrdRequest,
    live: &Object,
    definition: &Value,
) -> Result<(), Rejection> {
    if live.is_terminating() {
        return Err(blocked(request, "is being deleted", "wait until it is gone"));
    }
    let owner = definition.pointer("/metadata/ownerReferences/0");
    if let Some(owner) = owner {
        let text = |name: &str| owner[name].as_str().unwrap_or_default();
        let why = format!("is deleted together with its owner {} {}", text("kind"), text("name"));
        return Err(blocked(request, &why, "remove the owner reference"));
    }
    if definition.pointer("/spec/conversion/strategy").is_some_and(|strategy| strategy == "Webhook")
    {
        let next = "set spec.crds to Keep, or remove the conversion";
        return Err(blocked(request, "is converted by a webhook", next));
    }
    let changes = crd_compat::identity_changes(definition, &request.definition);
    if changes.is_empty() {
        return Ok(());
    }
    let why = format!("would become another kind: {}", first(&changes));
    Err(blocked(
        request,
        &why,
        "set spec.crds to Keep, or change the installed definition yourself",
    ))
}

fn blocked(request: &CrdRequest, why: &str, next: &str) -> Rejection {
    let message = format!("the foreign CustomResourceDefinition {} {why}; {next}", request.name);
    Rejection::new(CRD_NOT_ADDITIVE, message, RetryPolicy::Later)
}

/// A definition that takes something away from a foreign one.
pub(super) struct Narrowing<'a> {
    /// The definition of the guest.
    pub(super) request: &'a CrdRequest,
    /// The installed one, and the differences.
    pub(super) foreign: &'a ForeignDefinition,
}

/// What an approval is to allow. Its digest covers both specs of each definition, so it is of no
/// use for another change.
pub(super) fn held(narrowings: &[Narrowing<'_>]) -> HeldCrds {
    let specs: Vec<Value> = narrowings
        .iter()
        .map(|one| json!([one.request.name, one.foreign.spec, one.request.definition["spec"]]))
        .collect();
    let described = |of: fn(&ForeignDefinition) -> &[String]| {
        let named = narrowings.iter().map(|one| (&one.request.name, of(one.foreign)));
        let named = named.filter(|(_, changes)| !changes.is_empty());
        named.map(|(name, changes)| format!("{name}: {}", first(changes))).collect::<Vec<_>>()
    };
    let mut message = format!(
        "it would change a foreign CustomResourceDefinition to one that takes less ({}); no stored object would lose data",
        described(|foreign| &foreign.narrowing).join("; ")
    );
    for (what, details) in [
        (
            "the host does not check stored objects against the new constraints",
            described(|foreign| &foreign.unchecked),
        ),
        ("kubectl would not know any more", described(|foreign| &foreign.display_losses)),
    ] {
        if !details.is_empty() {
            let _ = write!(message, "; {what} ({})", details.join("; "));
        }
    }
    let changes = narrowings.iter().map(|one| Example {
        change: PlannedChange::Change,
        object: format!("CustomResourceDefinition {}", one.request.name),
        fields: one.foreign.narrowing.clone(),
    });
    HeldCrds {
        approval: Digest::of(Value::from(specs).to_string().as_bytes()),
        changes: changes.collect(),
        // It is tried again with an approval, another spec or another definition only.
        rejection: Rejection::new(WOULD_NARROW_CRD, message, RetryPolicy::WhenSpecChanges),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digest_of_a_held_change_depends_on_both_definitions() {
        let request = |spec: Value| CrdRequest {
            name: "things.example.com".into(),
            group: "example.com".into(),
            granted: true,
            definition: json!({ "spec": spec }),
            dropped: Vec::new(),
        };
        let of = |installed: Value, spec: Value| {
            let foreign = ForeignDefinition {
                spec: installed,
                narrowing: vec![".spec.color is gone".to_owned()],
                unchecked: vec![".spec.size (pattern)".to_owned()],
                display_losses: vec!["the short name th".to_owned()],
            };
            held(&[Narrowing { request: &request(spec), foreign: &foreign }])
        };
        let one = of(json!({"a": 1}), json!({"a": 2}));
        assert_eq!(one, of(json!({"a": 1}), json!({"a": 2})));
        assert_ne!(one.approval, of(json!({"a": 0}), json!({"a": 2})).approval);
        assert_ne!(one.approval, of(json!({"a": 1}), json!({"a": 3})).approval);
        assert_eq!(
            one.rejection.message,
            "it would change a foreign CustomResourceDefinition to one that takes less (things.example.com: .spec.color is gone); no stored object would lose data; the host does not check stored objects against the new constraints (things.example.com: .spec.size (pattern)); kubectl would not know any more (things.example.com: the short name th)"
        );
    }
}
