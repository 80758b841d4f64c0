//! Reviews of this identity's own rights.

use http::Method;
use innkeeper_contract::Kind;
use serde::Deserialize;
use serde_json::{Value, json};

use super::ApiClient;
use super::request::{PendingRequest, request};
use crate::ApiError;
use crate::error::Guard;
use crate::resource_path::resource_path;

#[derive(Deserialize)]
struct Review {
    #[serde(default)]
    spec: Value,
    status: ReviewStatus,
}

#[derive(Deserialize)]
struct ReviewStatus {
    allowed: bool,
    #[serde(default)]
    denied: bool,
}

impl ApiClient {
    /// Asks the API server whether this identity may do `verb`: a `SelfSubjectAccessReview`.
    /// `namespace` is `None` for all namespaces; `subresource` is empty for the object itself.
    ///
    /// # Errors
    /// [`ApiError::Forbidden`] if this identity may not create the review, an error if the
    /// response reviews another question, and those of any request.
    pub async fn can_i(
        &self,
        verb: &str,
        kind: &Kind,
        subresource: &str,
        namespace: Option<&str>,
    ) -> Result<bool, ApiError> {
        let review_kind = Kind::cluster(
            "authorization.k8s.io/v1",
            "SelfSubjectAccessReview",
            "selfsubjectaccessreviews",
        );
        let body = json!({
            "apiVersion": review_kind.api_version,
            "kind": review_kind.kind,
            "spec": { "resourceAttributes": {
                "verb": verb,
                "group": kind.group(),
                "version": kind.version(),
                "resource": kind.plural,
                "subresource": subresource,
                "namespace": namespace.unwrap_or_default(),
            }},
        });
        let context = self.context("create", &review_kind, "", "", Guard::None);
        let path = resource_path(&review_kind, None, None, "")?;
        let body = body.to_string().into_bytes();
        let request = request(Method::POST, &path, "", "application/json", body)?;
        let pending = PendingRequest { context: context.clone(), request, repeatable: true };
        let (_, text) = self.exchange(pending).await?;
        let review: Review =
            serde_json::from_str(&text).map_err(|error| context.unreadable(&error))?;
        // The server repeats the question in its response: a response to another one is invalid.
        for (member, value) in [
            ("verb", verb),
            ("group", kind.group()),
            ("resource", &kind.plural),
            ("subresource", subresource),
            ("namespace", namespace.unwrap_or_default()),
        ] {
            let answered = &review.spec["resourceAttributes"];
            if answered.is_object() && answered[member].as_str().unwrap_or_default() != value {
                return Err(context.unreadable(&format!("it is about another {member}")));
            }
        }
        Ok(review.status.allowed && !review.status.denied)
    }
}
