//! A mutating webhook that adds something to each written object.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use innkeeper_contract::Kind;
use serde_json::{Value, json};

/// The URL of the webhook.
pub(super) const URL: &str = "https://defaults.check.test/add";

/// The label and the annotation that it adds.
pub(crate) const ADDED: &str = "check.innkeeper.dev/added";

/// Its configuration: objects of these kinds, when they are created or updated.
pub(super) fn configuration(kinds: &[&Kind]) -> Value {
    let rule = |kind: &&Kind| {
        json!({"apiGroups": [kind.group()], "apiVersions": [kind.version()],
            "resources": [kind.plural], "operations": ["CREATE", "UPDATE"]})
    };
    json!({"apiVersion": "admissionregistration.k8s.io/v1",
    "kind": "MutatingWebhookConfiguration",
    "metadata": {"name": "check-defaults"},
    "webhooks": [{
        "name": "defaults.check.test",
        "clientConfig": {"url": URL},
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "failurePolicy": "Fail",
        "rules": kinds.iter().map(rule).collect::<Vec<_>>(),
    }]})
}

/// Its answer to an `AdmissionReview`.
pub(super) fn answer(review: &Value) -> Option<Value> {
    let request = review.get("request")?;
    let metadata = &request["object"]["metadata"];
    let name = ADDED.replace('/', "~1");
    let mut changes = Vec::new();
    for member in ["labels", "annotations"] {
        if !metadata[member].is_object() {
            changes.push(json!({"op": "add", "path": format!("/metadata/{member}"), "value": {}}));
        }
        let path = format!("/metadata/{member}/{name}");
        changes.push(json!({"op": "add", "path": path, "value": "yes"}));
    }
    Some(json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": {
        "uid": request["uid"], "allowed": true, "patchType": "JSONPatch",
        "patch": BASE64.encode(Value::from(changes).to_string()),
    }}))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may fail by it")]
mod tests {
    use super::*;

    #[test]
    fn answer_adds_a_label_and_an_annotation_with_and_without_others() {
        let review = json!({"request": {"uid": "u", "object":
            {"metadata": {"labels": {"app": "web"}}}}});
        let answer = answer(&review).unwrap();
        let patch = BASE64.decode(answer["response"]["patch"].as_str().unwrap()).unwrap();
        let patch: Value = serde_json::from_slice(&patch).unwrap();
        let paths: Vec<&str> =
            patch.as_array().unwrap().iter().map(|one| one["path"].as_str().unwrap()).collect();
        assert_eq!(
            paths,
            [
                "/metadata/labels/check.innkeeper.dev~1added",
                "/metadata/annotations",
                "/metadata/annotations/check.innkeeper.dev~1added",
            ]
        );
        assert_eq!(answer["response"]["uid"], "u");
    }
}
