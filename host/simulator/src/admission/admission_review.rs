//! Builds AdmissionReviews and reads the responses of webhooks.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use crate::admission::attributes::{Attributes, Operation};
use crate::api::request_context::RequestContext;
use crate::patch;
use crate::types::kinds;
use crate::types::status_error::StatusError;

/// The AdmissionReview of a request, in a version of its kind.
pub(crate) fn request(attributes: &Attributes<'_>, version: &str, uid: &str) -> Value {
    let Attributes { context, operation, object, old } = attributes;
    let kind = &context.kind;
    // The kind of a subresource has one version.
    let is_part = kind.plural.is_empty();
    let id = |version: &str| {
        let version = if is_part { &kind.version } else { version };
        json!({"group": kind.group, "version": version, "kind": kind.name})
    };
    let (group, plural) = attributes.resource();
    let resource = |version: &str| json!({"group": group, "version": version, "resource": plural});
    let shown = |object: Option<&Value>| {
        let mut object = object.cloned().unwrap_or_default();
        if object.is_object() && kind.custom.is_some() {
            object["apiVersion"] = format!("{}/{version}", kind.group).into();
        }
        object
    };
    let mut request = Map::new();
    let mut put = |name: &str, value: Value| request.insert(name.to_owned(), value);
    put("uid", uid.into());
    put("kind", id(version));
    put("resource", resource(version));
    put("requestKind", id(&kind.version));
    put("requestResource", resource(attributes.version()));
    let sub = &context.target.subresource;
    if !sub.is_empty() {
        put("subResource", sub.as_str().into());
        put("requestSubResource", sub.as_str().into());
    }
    let named = object.map(|object| crate::types::object::meta(object, "name")).unwrap_or_default();
    let name = if context.target.name.is_empty() { named } else { &context.target.name };
    if !name.is_empty() {
        put("name", name.into());
    }
    if !context.namespace().is_empty() {
        put("namespace", context.namespace().into());
    } else if kind.is("", "Namespace") {
        put("namespace", name.into());
    }
    put("operation", operation.text().into());
    put("userInfo", json!({"username": context.user.name, "groups": context.user.groups}));
    put("object", shown(*object));
    put("oldObject", shown(*old));
    put("dryRun", context.query.dry_run().into());
    put("options", options(context, *operation));
    json!({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request})
}

fn options(context: &RequestContext<'_>, operation: Operation) -> Value {
    let mut options = json!({"kind": operation.options(), "apiVersion": "meta.k8s.io/v1"});
    if operation == Operation::Delete
        && let Ok(Value::Object(body)) = serde_json::from_slice(&context.request.body)
    {
        for (name, value) in body {
            options[name] = value;
        }
        options["kind"] = operation.options().into();
        options["apiVersion"] = "meta.k8s.io/v1".into();
    }
    for name in ["fieldManager", "fieldValidation"] {
        if !context.query.get(name).is_empty() && operation != Operation::Delete {
            options[name] = context.query.get(name).into();
        }
    }
    if context.query.dry_run() {
        options["dryRun"] = json!(["All"]);
    }
    options
}

/// The decision of a webhook.
pub(crate) struct Verdict {
    /// A JSON patch of the object.
    pub(crate) patch: Option<Vec<u8>>,
}

/// A response.
#[derive(Debug)]
pub(crate) struct WebhookResponse {
    /// The `Status`, if it denies the request.
    pub(crate) denied: Option<Value>,
    pub(crate) patch: Option<Vec<u8>>,
    pub(crate) warnings: Vec<String>,
}

/// Reads the response of a webhook.
///
/// # Errors
///
/// Why the response is invalid.
pub(crate) fn read(review: &Value, uid: &str, mutating: bool) -> Result<WebhookResponse, String> {
    let response = &review["response"];
    if !response.is_object() {
        return Err("webhook response was absent".to_owned());
    }
    let returned = response["uid"].as_str().unwrap_or_default();
    if returned != uid {
        return Err(format!("expected response.uid={uid:?}, got {returned:?}"));
    }
    let text = |name: &str| review[name].as_str().unwrap_or_default();
    if text("apiVersion") != "admission.k8s.io/v1" || text("kind") != "AdmissionReview" {
        let (group, version) =
            text("apiVersion").split_once('/').unwrap_or(("", text("apiVersion")));
        return Err(format!(
            "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got {group}/{version}, Kind={}",
            text("kind")
        ));
    }
    let patch = response["patch"].as_str().filter(|patch| !patch.is_empty());
    let kind = response["patchType"].as_str();
    match (mutating, patch, kind) {
        (true, Some(_), None) => {
            return Err("webhook returned response.patch but not response.patchType".to_owned());
        }
        (true, None, Some(_)) => {
            return Err("webhook returned response.patchType but not response.patch".to_owned());
        }
        (false, Some(_), _) => {
            return Err("validating webhook may not return response.patch".to_owned());
        }
        (false, None, Some(_)) => {
            return Err("validating webhook may not return response.patchType".to_owned());
        }
        _ => {}
    }
    let patch = match patch.map(|patch| STANDARD.decode(patch)) {
        None => None,
        Some(Ok(patch)) => Some(patch),
        Some(Err(error)) => return Err(format!("response.patch cannot be read: {error}")),
    };
    let warnings = response["warnings"].as_array().into_iter().flatten();
    Ok(WebhookResponse {
        denied: (response["allowed"] != true).then(|| response["status"].clone()),
        patch,
        warnings: warnings.filter_map(Value::as_str).map(str::to_owned).collect(),
    })
}

/// The error for a denied request.
pub(crate) fn denial(name: &str, status: &Value) -> StatusError {
    let mut status_body = status.as_object().cloned().unwrap_or_default();
    let by = format!("admission webhook {name:?} denied the request");
    let text = |name: &str| status[name].as_str().unwrap_or_default();
    let message = match (text("message"), text("reason")) {
        ("", "") => format!("{by} without explanation"),
        ("", why) | (why, _) => format!("{by}: {why}"),
    };
    let code = status["code"].as_u64().and_then(|code| u16::try_from(code).ok()).unwrap_or(0);
    let code = code.max(400);
    status_body.insert("kind".to_owned(), "Status".into());
    status_body.insert("apiVersion".to_owned(), "v1".into());
    status_body.insert("metadata".to_owned(), json!({}));
    if matches!(text("status"), "" | "Success") {
        status_body.insert("status".to_owned(), "Failure".into());
    }
    status_body.insert("message".to_owned(), message.into());
    status_body.insert("code".to_owned(), code.into());
    StatusError::with_body(code, Value::Object(status_body))
}

/// The object after a webhook's patch.
pub(crate) fn patched(
    context: &RequestContext<'_>,
    object: &Value,
    patch: &[u8],
) -> Result<Value, StatusError> {
    let made = patch::apply(patch::Kind::Json, context.kind.schema(), object, patch);
    let mut made = made.map_err(|error| StatusError::internal(error.message()))?;
    kinds::decode(&context.kind, &mut made)
        .map_err(|error| StatusError::internal(error.message()))?;
    Ok(made)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn denial_names_the_webhook_and_its_reason() {
        let body = |status: Value| denial("w.dev", &status).body();
        assert_eq!(
            body(Value::Null)["message"],
            "admission webhook \"w.dev\" denied the request without explanation"
        );
        let denied = body(json!({"message": "no", "reason": "Because", "code": 200}));
        assert_eq!(denied["message"], "admission webhook \"w.dev\" denied the request: no");
        assert_eq!((&denied["code"], &denied["reason"]), (&json!(400), &json!("Because")));
        let denied = body(json!({"reason": "Because", "code": 403, "status": "Success"}));
        assert_eq!(denied["message"], "admission webhook \"w.dev\" denied the request: Because");
        assert_eq!((&denied["code"], &denied["status"]), (&json!(403), &json!("Failure")));
    }

    #[test]
    fn invalid_webhook_response_is_an_error() {
        let read = |change: Value, mutating| {
            let mut review = json!({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1",
                "response": {"uid": "u", "allowed": true}});
            for (name, value) in change.as_object().into_iter().flatten() {
                review["response"][name] = value.clone();
            }
            read(&review, "u", mutating).map(|answer| answer.patch)
        };
        assert_eq!(read(json!({}), true), Ok(None));
        let patch = json!({"patch": "W10=", "patchType": "JSONPatch"});
        assert_eq!(read(patch.clone(), true), Ok(Some(b"[]".to_vec())));
        for (wrong, mutating) in [
            (json!({"uid": "v"}), true),
            (json!({"patch": "W10="}), true),
            (json!({"patchType": "JSONPatch"}), true),
            (json!({"patch": "-", "patchType": "JSONPatch"}), true),
            (patch, false),
        ] {
            assert!(read(wrong.clone(), mutating).is_err(), "{wrong}");
        }
    }
}
