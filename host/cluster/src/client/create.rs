//! Creates by POST.

use http::Method;
use innkeeper_contract::Kind;
use innkeeper_core::ObjectKey;
use innkeeper_core::manager::HOST;
use serde_json::Value;

use super::ApiClient;
use super::request::{PendingRequest, request};
use crate::ApiError;
use crate::error::Guard;
use crate::resource_path::resource_path;

impl ApiClient {
    /// Creates an object by POST: for objects that the host never applies, such as Events and
    /// immutable ones.
    ///
    /// # Errors
    /// [`ApiError::AlreadyExists`] if the name is taken, [`ApiError::Invalid`] for an object of
    /// Innkeeper itself, and those of any request.
    pub async fn create(&self, kind: &Kind, namespace: &str, body: &Value) -> Result<(), ApiError> {
        let name = body["metadata"]["name"].as_str().unwrap_or_default();
        self.check_write(kind, &ObjectKey::new(namespace, name))?;
        self.check_kind(kind).await?;
        let context = self.context("create", kind, "", namespace, Guard::Absent);
        let path = resource_path(kind, Some(namespace), None, "")?;
        let body = body.to_string().into_bytes();
        let query = format!("fieldManager={HOST}");
        let request = request(Method::POST, &path, &query, "application/json", body)?;
        self.exchange(PendingRequest { context, request, repeatable: false }).await.map(|_| ())
    }
}
