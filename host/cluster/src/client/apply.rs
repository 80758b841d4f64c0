//! Server-side applies and merge patches.

use http::{Method, StatusCode};
use innkeeper_contract::Kind;
use innkeeper_core::{Manager, Object, ObjectKey};
use serde_json::Value;

use super::ApiClient;
use super::request::{PendingRequest, request};
use crate::ApiError;
use crate::error::Guard;
use crate::resource_path::{encoded, resource_path};

/// Whether an apply takes over fields that other managers hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Force {
    /// The apply takes the fields over: the host owns the object.
    Yes,
    /// The apply fails with [`ApiError::FieldConflict`]: the host merges into the object of
    /// another owner.
    No,
}

/// Whether the API server only checks a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DryRun {
    /// The API server stores nothing.
    Yes,
    /// The API server stores the result.
    No,
}

impl DryRun {
    /// The end of the query of a request.
    pub(super) fn query(self) -> &'static str {
        match self {
            Self::Yes => "&dryRun=All",
            Self::No => "",
        }
    }
}

/// The result of an apply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApplyResponse {
    /// The object after the apply.
    pub object: Object,
    /// The apply created the object.
    pub created: bool,
}

impl ApiClient {
    /// Applies an object by server-side apply, with strict validation of fields.
    ///
    /// `body` is the whole intent of `manager`. Its metadata names the expected object:
    /// `resourceVersion: "1"` none ([`ApiError::AlreadyExists`]), `uid` the object with this uid
    /// ([`ApiError::ObjectDeleted`], [`ApiError::UidMismatch`]).
    ///
    /// # Errors
    /// [`ApiError::FieldConflict`] without force, [`ApiError::Invalid`] for an object of Innkeeper
    /// itself, and those of any request.
    pub async fn apply(
        &self,
        kind: &Kind,
        key: &ObjectKey,
        manager: &Manager,
        body: &Value,
        force: Force,
    ) -> Result<ApplyResponse, ApiError> {
        self.patch(kind, key, "", manager, body, force, DryRun::No).await
    }

    /// Asks the API server what [`ApiClient::apply`] would answer, without a write.
    ///
    /// # Errors
    /// As of [`ApiClient::apply`].
    pub async fn dry_run_apply(
        &self,
        kind: &Kind,
        key: &ObjectKey,
        manager: &Manager,
        body: &Value,
        force: Force,
    ) -> Result<ApplyResponse, ApiError> {
        self.patch(kind, key, "", manager, body, force, DryRun::Yes).await
    }

    /// Applies an object's status by server-side apply: `body` has the object's name, `status`,
    /// and `resourceVersion` if the write is valid for that version only.
    ///
    /// # Errors
    /// As of [`ApiClient::apply`], and [`ApiError::Conflict`] for another version.
    pub async fn apply_status(
        &self,
        kind: &Kind,
        key: &ObjectKey,
        manager: &Manager,
        body: &Value,
        force: Force,
    ) -> Result<ApplyResponse, ApiError> {
        self.patch(kind, key, "status", manager, body, force, DryRun::No).await
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one request")]
    async fn patch(
        &self,
        kind: &Kind,
        key: &ObjectKey,
        subresource: &str,
        manager: &Manager,
        body: &Value,
        force: Force,
        dry_run: DryRun,
    ) -> Result<ApplyResponse, ApiError> {
        let metadata = &body["metadata"];
        let guard = match metadata["resourceVersion"].as_str() {
            Some("1") => Guard::Absent,
            Some(_) => Guard::Version,
            None if metadata["uid"].is_string() => Guard::Uid,
            None => Guard::None,
        };
        self.check_write(kind, key)?;
        self.check_kind(kind).await?;
        let context = self.context("patch", kind, subresource, key.namespace(), guard);
        let path = resource_path(kind, Some(key.namespace()), Some(key.name()), subresource)?;
        let query = format!(
            "fieldManager={}&force={}&fieldValidation=Strict{}",
            encoded(&manager.to_string()),
            force == Force::Yes,
            dry_run.query(),
        );
        let body = body.to_string().into_bytes();
        let request = request(Method::PATCH, &path, &query, "application/apply-patch+yaml", body)?;
        // A second apply changes nothing, but would no longer find the version or the absence that
        // the first one expected.
        let repeatable = matches!(guard, Guard::None | Guard::Uid);
        let pending = PendingRequest { context: context.clone(), request, repeatable };
        let (status, text) = self.exchange(pending).await?;
        let object = self.decode(kind, &text).map_err(|error| context.unreadable(&error))?;
        Ok(ApplyResponse { object, created: status == StatusCode::CREATED })
    }

    /// Merges a patch into an object as `manager`: for lists that others write to as well, from
    /// which an apply removes an entry only if nobody else has applied it. `body` has the
    /// `metadata.resourceVersion` that the patch was made for. The host removes finalizers by it,
    /// so it is allowed for every object.
    ///
    /// # Errors
    /// [`ApiError::Conflict`] if the object has another version, and those of any request.
    pub async fn merge_patch(
        &self,
        kind: &Kind,
        key: &ObjectKey,
        manager: &Manager,
        body: &Value,
    ) -> Result<Object, ApiError> {
        self.check_kind(kind).await?;
        let context = self.context("patch", kind, "", key.namespace(), Guard::Version);
        let path = resource_path(kind, Some(key.namespace()), Some(key.name()), "")?;
        let query = format!("fieldManager={}", encoded(&manager.to_string()));
        let body = body.to_string().into_bytes();
        let request = request(Method::PATCH, &path, &query, "application/merge-patch+json", body)?;
        let pending = PendingRequest { context: context.clone(), request, repeatable: false };
        let (_, text) = self.exchange(pending).await?;
        self.decode(kind, &text).map_err(|error| context.unreadable(&error))
    }
}
