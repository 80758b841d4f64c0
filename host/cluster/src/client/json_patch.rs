//! JSON patches, for commands of a user.

use http::Method;
use innkeeper_contract::Kind;
use innkeeper_core::ObjectKey;
use serde_json::Value;

use super::ApiClient;
use super::apply::DryRun;
use super::request::{PendingRequest, request};
use crate::ApiError;
use crate::error::Guard;
use crate::resource_path::{encoded, resource_path};

impl ApiClient {
    /// Changes an object by the operations of a JSON patch (RFC 6902), with strict validation of
    /// fields. One operation sets `metadata.resourceVersion` to the version that the patch was made
    /// for.
    ///
    /// # Errors
    /// [`ApiError::Conflict`] if the object has another version, [`ApiError::Invalid`] if an
    /// operation does not fit the object, and those of any request.
    pub async fn json_patch(
        &self,
        kind: &Kind,
        key: &ObjectKey,
        field_manager: &str,
        operations: &[Value],
        dry_run: DryRun,
    ) -> Result<(), ApiError> {
        self.check_write(kind, key)?;
        self.check_kind(kind).await?;
        let context = self.context("patch", kind, "", key.namespace(), Guard::Version);
        let path = resource_path(kind, Some(key.namespace()), Some(key.name()), "")?;
        let query = format!(
            "fieldManager={}&fieldValidation=Strict{}",
            encoded(field_manager),
            dry_run.query()
        );
        let body = Value::from(operations).to_string().into_bytes();
        let request = request(Method::PATCH, &path, &query, "application/json-patch+json", body)?;
        self.exchange(PendingRequest { context, request, repeatable: false }).await?;
        Ok(())
    }
}
