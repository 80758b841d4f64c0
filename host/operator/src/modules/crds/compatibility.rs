//! Whether a definition that a guest describes fits the installed one. Nothing here does I/O.

use innkeeper_cluster::ApiError;
use innkeeper_core::{Object, crd_compat};
use innkeeper_modules::definitions::MODULE_LABEL;
use innkeeper_modules::machine::reason::CRD_NOT_ADDITIVE;
use innkeeper_modules::{CrdRequest, Rejection, RetryPolicy};
use serde_json::Value;

/// How an administrator installs the definitions of a guest.
const INSTALL_COMMAND: &str =
    "innkeeper inspect GUEST.wasm --crds | kubectl apply --server-side -f -";

/// The most incompatible changes that a message names.
const BREAKS_MAX: usize = 5;

/// The text of an installed definition; null if it is not JSON.
pub(in crate::modules) fn definition_of(live: &Object) -> Value {
    serde_json::from_str(&live.text.read()).unwrap_or_default()
}

pub(super) fn refuse_webhook(request: &CrdRequest) -> Result<(), Rejection> {
    let strategy = request.definition.pointer("/spec/conversion/strategy").and_then(Value::as_str);
    if strategy != Some("Webhook") {
        return Ok(());
    }
    Err(Rejection::new(
        "CRDConversionWebhook",
        format!(
            "the CustomResourceDefinition {} asks for a conversion webhook; a guest cannot serve one",
            request.name
        ),
        RetryPolicy::Never,
    ))
}

/// Whether a definition is to replace the live one that the host installed: it may only add. It is
/// left out if the live one accepts all that it accepts, as after a return to an older guest:
/// definitions never shrink.
pub(super) fn changes_additively(request: &CrdRequest, live: &Value) -> Result<bool, Rejection> {
    let broken = crd_compat::incompatible_changes(live, &request.definition);
    if broken.is_empty() {
        return Ok(true);
    }
    if crd_compat::incompatible_changes(&request.definition, live).is_empty() {
        tracing::info!(crd = %request.name, "the installed definition has all that this one has: it stays");
        return Ok(false);
    }
    Err(incompatible(
        request,
        &format!(
            "would take less than the installed one: {}; add fields instead of changing some",
            first(&broken)
        ),
    ))
}

/// The first of some changes, and how many more there are.
pub(super) fn first(broken: &[String]) -> String {
    let more = broken.len().saturating_sub(BREAKS_MAX);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let named = broken.iter().take(BREAKS_MAX).cloned().collect::<Vec<_>>().join("; ");
    format!("{named}{more}")
}

/// A definition that must not replace the installed one.
pub(super) fn incompatible(request: &CrdRequest, why: &str) -> Rejection {
    // A user may change the installed definition at any time, so it is compared again.
    Rejection::new(
        CRD_NOT_ADDITIVE,
        format!(
            "the CustomResourceDefinition {} {why}, or change the installed definition yourself",
            request.name
        ),
        RetryPolicy::Later,
    )
}

/// A definition that another module installed is used if it accepts all that this one accepts.
pub(super) fn check_shared(
    request: &CrdRequest,
    owner: &str,
    live: &Value,
) -> Result<(), Rejection> {
    let missing = crd_compat::incompatible_changes(&request.definition, live);
    if missing.is_empty() {
        return Ok(());
    }
    Err(Rejection::new(
        "CRDOwnedByModule",
        format!(
            "the CustomResourceDefinition {} belongs to the module {owner}, and the installed one takes less than this module needs: {}; let {owner} install it, or set the label {MODULE_LABEL} of the definition to this module's name",
            request.name,
            first(&missing)
        ),
        RetryPolicy::Later,
    ))
}

/// A foreign definition is used as it is, if it serves the versions.
pub(super) fn check_foreign(request: &CrdRequest, live: &Object) -> Result<(), Rejection> {
    let live = definition_of(live);
    let (mut missing, has) = (served_versions(&request.definition), served_versions(&live));
    missing.retain(|version| !has.contains(version));
    if missing.is_empty() { Ok(()) } else { Err(version_missing(request, &missing)) }
}

/// The versions of a definition that the API server serves.
pub(super) fn served_versions(definition: &Value) -> Vec<String> {
    let versions = definition.pointer("/spec/versions").and_then(Value::as_array);
    versions
        .into_iter()
        .flatten()
        .filter(|version| version["served"] == true)
        .filter_map(|version| version["name"].as_str().map(str::to_owned))
        .collect()
}

/// A foreign definition that lacks versions.
pub(super) fn version_missing(request: &CrdRequest, missing: &[String]) -> Rejection {
    Rejection::new(
        "CRDVersionMissing",
        format!(
            "the foreign CustomResourceDefinition {} does not serve {}; have an administrator add it, or set spec.crds to Adopt",
            request.name,
            missing.join(", ")
        ),
        RetryPolicy::Later,
    )
}

pub(super) fn not_granted(request: &CrdRequest) -> Rejection {
    Rejection::new(
        "CRDGroupNotAllowed",
        format!(
            "the CustomResourceDefinition {} is not installed, and the Module does not let the host install it; add {} to spec.allowedCRDGroups, or have an administrator install it with `{INSTALL_COMMAND}`",
            request.name, request.group
        ),
        RetryPolicy::Later,
    )
}

pub(super) fn refused(request: &CrdRequest, error: &ApiError) -> Rejection {
    let again = match error {
        ApiError::Invalid { .. } | ApiError::Malformed { .. } | ApiError::Immutable { .. } => {
            RetryPolicy::WhenSpecChanges
        }
        _ => RetryPolicy::Later,
    };
    let mut message = format!("the CustomResourceDefinition {}: {error}", request.name);
    if matches!(error, ApiError::Forbidden { .. }) {
        message = format!(
            "{message}; have an administrator install it with `{INSTALL_COMMAND}`, or grant what `innkeeper rbac` prints"
        );
    }
    Rejection::new(format!("CRD{}", error.reason()), message, again)
}

#[cfg(test)]
mod tests {
    use innkeeper_cluster::crd;
    use serde_json::json;

    use super::*;

    fn request(granted: bool) -> CrdRequest {
        CrdRequest {
            name: "podroutes.quay.io".into(),
            group: "quay.io".into(),
            granted,
            dropped: Vec::new(),
            definition: json!({"spec": {"versions": [{"name": "v1alpha1", "served": true}]}}),
        }
    }

    fn live(versions: &Value) -> Object {
        let text =
            json!({"metadata": {"name": "podroutes.quay.io"}, "spec": {"versions": versions}});
        Object::decode(&crd::kind(), &text.to_string(), None).unwrap()
    }

    #[test]
    fn definition_of_another_owner_is_used_if_it_serves_the_version() {
        assert_eq!(
            check_foreign(&request(true), &live(&json!([{"name": "v1alpha1", "served": true}]))),
            Ok(())
        );
        let refused =
            check_foreign(&request(true), &live(&json!([{"name": "v1alpha1", "served": false}])));
        assert_eq!(
            refused.unwrap_err().message,
            "the foreign CustomResourceDefinition podroutes.quay.io does not serve v1alpha1; have an administrator add it, or set spec.crds to Adopt"
        );
    }

    #[test]
    fn own_definition_may_only_grow() {
        let versions = |properties: &Value| {
            json!([{"name": "v1alpha1", "served": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}}}])
        };
        let request = |properties: &Value| CrdRequest {
            definition: json!({"spec": {"versions": versions(properties)}}),
            ..request(true)
        };
        let live = live(&versions(&json!({"a": {"type": "string"}, "b": {}})));
        let live = definition_of(&live);
        let of = |properties: Value| changes_additively(&request(&properties), &live);
        assert_eq!(of(json!({"a": {"type": "string"}, "b": {}, "c": {}})), Ok(true));
        assert_eq!(of(json!({"a": {"type": "string"}})), Ok(false));
        let refused = of(json!({"a": {"type": "integer"}, "c": {}})).unwrap_err();
        assert_eq!(refused.reason, "CRDIncompatible");
        assert!(refused.message.contains(".a has another type; .b is gone"), "{}", refused.message);
    }

    #[test]
    fn definition_of_another_module_is_used_only_if_it_accepts_as_much() {
        let versions = |properties: &Value| {
            json!([{"name": "v1alpha1", "served": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}}}])
        };
        let request = CrdRequest {
            definition: json!({"spec": {"versions": versions(&json!({"a": {"type": "string"}}))}}),
            ..request(true)
        };
        let live = |properties: Value| json!({"spec": {"versions": versions(&properties)}});
        let more = live(json!({"a": {"type": "string"}, "b": {}}));
        assert_eq!(check_shared(&request, "first", &more), Ok(()));
        let refused = check_shared(&request, "first", &live(json!({"b": {}}))).unwrap_err();
        assert_eq!(refused.reason, "CRDOwnedByModule");
        assert!(refused.message.contains("belongs to the module first"), "{}", refused.message);
        assert!(refused.message.contains(".a is gone"), "{}", refused.message);
    }
}
