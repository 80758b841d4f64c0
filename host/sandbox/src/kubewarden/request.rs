//! The payload of a Kubewarden policy: its settings, and a request as the API server sends it.
//!
//! The host makes it from the `review-request` document, so it has no values of Secrets and no
//! `managedFields`, as for every policy.

use innkeeper_contract::{GroupVersionKind, GroupVersionResource, ReviewRequest, User};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

/// The payload of the operation `validate`.
#[derive(Serialize)]
struct Payload<'a> {
    settings: &'a Value,
    request: AdmissionRequest<'a>,
}

/// A request as the API server sends it in an `AdmissionReview`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AdmissionRequest<'a> {
    uid: String,
    kind: &'a GroupVersionKind,
    resource: &'a GroupVersionResource,
    #[serde(skip_serializing_if = "str::is_empty")]
    sub_resource: &'a str,
    request_kind: &'a GroupVersionKind,
    request_resource: &'a GroupVersionResource,
    #[serde(skip_serializing_if = "str::is_empty")]
    request_sub_resource: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    namespace: &'a str,
    operation: &'a str,
    user_info: &'a User,
    object: Option<&'a RawValue>,
    old_object: Option<&'a RawValue>,
    dry_run: bool,
    #[serde(skip_serializing_if = "Value::is_null")]
    options: &'a Value,
}

/// Makes the payload of `validate` from a `review-request` document.
///
/// # Errors
/// If the document is none.
pub(crate) fn payload(document: &str) -> serde_json::Result<Vec<u8>> {
    let given: ReviewRequest<&RawValue> = serde_json::from_str(document)?;
    let request = AdmissionRequest {
        uid: uid(document),
        kind: &given.kind,
        resource: &given.resource,
        sub_resource: &given.subresource,
        request_kind: given.request_kind.as_ref().unwrap_or(&given.kind),
        request_resource: given.request_resource.as_ref().unwrap_or(&given.resource),
        request_sub_resource: &given.subresource,
        name: &given.name,
        namespace: &given.namespace,
        operation: given.operation.as_str(),
        user_info: &given.user,
        object: given.object,
        old_object: given.old_object,
        dry_run: given.dry_run,
        options: &given.options,
    };
    serde_json::to_vec(&Payload { settings: &settings(&given.parameters), request })
}

/// The settings of a policy, from the parameters of the Module; an empty object without parameters.
pub(crate) fn settings(parameters: &Value) -> Value {
    if parameters.is_null() { Value::Object(Map::new()) } else { parameters.clone() }
}

/// An identifier in the form of a UUID. It follows from the document, so that the same request
/// gives the same payload.
fn uid(document: &str) -> String {
    let hex = hex::encode(&Sha256::digest(document)[..16]);
    let parts = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]];
    parts.join("-")
}
