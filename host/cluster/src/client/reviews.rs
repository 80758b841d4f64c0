//! Reviews of other users: the user of a bearer token, and the rights of that user.

use std::collections::BTreeMap;

use http::Method;
use innkeeper_contract::Kind;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::ApiClient;
use super::request::{PendingRequest, request};
use crate::ApiError;
use crate::error::Guard;
use crate::resource_path::resource_path;

/// A user as the API server authenticated it (`UserInfo` of `authentication.k8s.io/v1`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct User {
    /// The name, as in an RBAC subject.
    #[serde(default)]
    pub username: String,
    /// The uid, which distinguishes users of one name over time.
    #[serde(default)]
    pub uid: String,
    /// The groups, as in RBAC subjects.
    #[serde(default)]
    pub groups: Vec<String>,
    /// Further attributes by the authenticator, which authorizers may use.
    #[serde(default)]
    pub extra: BTreeMap<String, Vec<String>>,
}

#[derive(Deserialize)]
struct TokenReview {
    #[serde(default)]
    status: TokenStatus,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct TokenStatus {
    authenticated: bool,
    user: User,
    audiences: Vec<String>,
}

#[derive(Deserialize)]
struct AccessReview {
    #[serde(default)]
    status: AccessStatus,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct AccessStatus {
    allowed: bool,
    denied: bool,
}

impl ApiClient {
    /// Asks the API server for the user of a token: a `TokenReview`. `None` if the server does not
    /// accept the token. The token must be issued for `audience`, or for the API server itself
    /// without one.
    ///
    /// # Errors
    /// [`ApiError::Forbidden`] if this identity may not create TokenReviews, and those of any
    /// request.
    pub async fn token_user(
        &self,
        token: &str,
        audience: Option<&str>,
    ) -> Result<Option<User>, ApiError> {
        let kind = Kind::cluster("authentication.k8s.io/v1", "TokenReview", "tokenreviews");
        let mut spec = json!({ "token": token });
        if let Some(audience) = audience {
            spec["audiences"] = json!([audience]);
        }
        let review: TokenReview = self.review(&kind, &spec).await?;
        let TokenStatus { authenticated, user, audiences } = review.status;
        // A server that does not know audiences leaves the list out, which confirms nothing.
        let fits = audience.is_none_or(|one| audiences.iter().any(|other| other == one));
        Ok((authenticated && fits && !user.username.is_empty()).then_some(user))
    }

    /// Asks the API server whether a user may do `verb` on a non-resource path: a
    /// `SubjectAccessReview` with `nonResourceAttributes`.
    ///
    /// # Errors
    /// [`ApiError::Forbidden`] if this identity may not create SubjectAccessReviews, and those of
    /// any request.
    pub async fn user_can(&self, user: &User, verb: &str, path: &str) -> Result<bool, ApiError> {
        let kind =
            Kind::cluster("authorization.k8s.io/v1", "SubjectAccessReview", "subjectaccessreviews");
        let spec = json!({
            "user": user.username,
            "uid": user.uid,
            "groups": user.groups,
            "extra": user.extra,
            "nonResourceAttributes": { "verb": verb, "path": path },
        });
        let review: AccessReview = self.review(&kind, &spec).await?;
        Ok(review.status.allowed && !review.status.denied)
    }

    async fn review<T: for<'a> Deserialize<'a>>(
        &self,
        kind: &Kind,
        spec: &Value,
    ) -> Result<T, ApiError> {
        let body = json!({ "apiVersion": kind.api_version, "kind": kind.kind, "spec": spec });
        let context = self.context("create", kind, "", "", Guard::None);
        let path = resource_path(kind, None, None, "")?;
        let body = body.to_string().into_bytes();
        let request = request(Method::POST, &path, "", "application/json", body)?;
        // A review stores nothing, so the transport may send it twice.
        let pending = PendingRequest { context: context.clone(), request, repeatable: true };
        let (_, text) = self.exchange(pending).await?;
        serde_json::from_str(&text).map_err(|error| context.unreadable(&error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripted::{Reply, Server, forbidden};

    const TOKENS: &str = "POST /apis/authentication.k8s.io/v1/tokenreviews";
    const ACCESS: &str = "POST /apis/authorization.k8s.io/v1/subjectaccessreviews";

    fn server(ask: &str, status: &Value) -> Server {
        let server = Server::new();
        server.always(ask, Reply::Json(201, json!({ "status": status })));
        server
    }

    #[tokio::test(start_paused = true)]
    async fn token_user_is_none_unless_the_server_authenticates_the_token() {
        let user = json!({"username": "system:serviceaccount:m:p", "uid": "1", "groups": ["a"],
            "extra": {"k": ["v"]}});
        let accepted = server(TOKENS, &json!({"authenticated": true, "user": user}));
        let found = accepted.cluster().host().token_user("t", None).await.unwrap().unwrap();
        assert_eq!(serde_json::to_value(found).unwrap(), user);
        for status in [
            json!({}),
            json!({"authenticated": false, "user": user}),
            json!({"user": user}),
            json!({"authenticated": true}),
            json!({"authenticated": false, "error": "expired"}),
        ] {
            let server = server(TOKENS, &status);
            let found = server.cluster().host().token_user("t", None).await.unwrap();
            assert_eq!(found, None, "{status}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn token_user_is_none_when_the_server_does_not_confirm_the_audience() {
        for (audiences, accepted) in
            [(json!(["metrics"]), true), (json!(["other"]), false), (json!([]), false)]
        {
            let status =
                json!({"authenticated": true, "user": {"username": "u"}, "audiences": audiences});
            let server = server(TOKENS, &status);
            let found = server.cluster().host().token_user("t", Some("metrics")).await.unwrap();
            assert_eq!(found.is_some(), accepted, "{status}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn user_can_is_false_unless_the_server_allows_it() {
        for (status, expected) in [
            (json!({"allowed": true}), true),
            (json!({"allowed": false}), false),
            (json!({"allowed": true, "denied": true}), false),
            (json!({}), false),
        ] {
            let server = server(ACCESS, &status);
            let user = User { username: "u".to_owned(), ..User::default() };
            let may = server.cluster().host().user_can(&user, "get", "/metrics").await.unwrap();
            assert_eq!(may, expected, "{status}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn token_review_that_is_forbidden_is_an_error() {
        let server = Server::new();
        server.always(TOKENS, forbidden());
        let error = server.cluster().host().token_user("t", None).await.unwrap_err();
        assert_eq!(error.reason(), "Forbidden");
    }
}
