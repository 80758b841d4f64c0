//! The response to an admission request, as `admission.k8s.io/v1` has it.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use serde_json::{Value, json};

use crate::admission_review::API_VERSION;

/// The answer to a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AdmissionResponse {
    /// Why the request is denied; none if it is allowed.
    pub denial: Option<Denial>,
    /// Lines that the client shows to its user.
    pub warnings: Vec<String>,
    /// Annotations of the API server's audit event, without the prefix that the server adds.
    pub audit_annotations: BTreeMap<String, String>,
    /// The text of a JSON patch of the object; none if it stays as it is. Only for webhooks that
    /// mutate.
    pub patch: Option<String>,
}

/// Why a request is denied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial {
    /// A sentence for the user.
    pub message: String,
    /// A reason of Kubernetes, for example `Forbidden`.
    pub reason: String,
    /// The HTTP status of the client's request, 400 to 599.
    pub code: u16,
    /// The fields at fault.
    pub causes: Vec<Cause>,
}

/// A field at fault.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Cause {
    /// The path of the field, for example `spec.containers[0].image`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub field: String,
    /// What is wrong with it.
    pub message: String,
    /// A cause of Kubernetes, for example `FieldValueInvalid`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

impl AdmissionResponse {
    /// A response that allows the request and says no more.
    pub fn allowed() -> Self {
        Self::default()
    }

    /// Returns the AdmissionReview that answers the request with this `uid`, as JSON.
    pub fn review(&self, uid: &str) -> Value {
        let mut response = json!({"uid": uid, "allowed": self.denial.is_none()});
        if let Some(denial) = &self.denial {
            response["status"] = json!({
                "status": "Failure",
                "message": denial.message,
                "reason": denial.reason,
                "code": denial.code,
            });
            if !denial.causes.is_empty() {
                response["status"]["details"] = json!({"causes": denial.causes});
            }
        }
        if !self.warnings.is_empty() {
            response["warnings"] = json!(self.warnings);
        }
        if !self.audit_annotations.is_empty() {
            response["auditAnnotations"] = json!(self.audit_annotations);
        }
        if let Some(patch) = &self.patch {
            response["patchType"] = "JSONPatch".into();
            response["patch"] = STANDARD.encode(patch).into();
        }
        json!({"apiVersion": API_VERSION, "kind": "AdmissionReview", "response": response})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allowed_response_says_no_more_than_that() {
        let expected = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
            "response": {"uid": "u", "allowed": true}});
        assert_eq!(AdmissionResponse::allowed().review("u"), expected);
    }

    #[test]
    fn denial_names_fields_and_a_patch_is_encoded() {
        let cause =
            Cause { field: "spec.x".to_owned(), message: "is 2".to_owned(), reason: String::new() };
        let denial = Denial {
            message: "no".to_owned(),
            reason: "Forbidden".to_owned(),
            code: 403,
            causes: vec![cause],
        };
        let response = AdmissionResponse {
            denial: Some(denial),
            warnings: vec!["old".to_owned()],
            audit_annotations: BTreeMap::from([("key".to_owned(), "value".to_owned())]),
            patch: Some("[]".to_owned()),
        };
        let expected = json!({"uid": "u", "allowed": false,
            "status": {"status": "Failure", "message": "no", "reason": "Forbidden", "code": 403,
                "details": {"causes": [{"field": "spec.x", "message": "is 2"}]}},
            "warnings": ["old"], "auditAnnotations": {"key": "value"},
            "patchType": "JSONPatch", "patch": "W10="});
        assert_eq!(response.review("u")["response"], expected);
    }
}
