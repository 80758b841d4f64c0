//! Reads of one object, and of all objects of a kind.

use http::Method;
use innkeeper_contract::Kind;
use innkeeper_core::{Object, ObjectKey};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::ApiClient;
use super::request::{PendingRequest, request};
use crate::ApiError;
use crate::error::{Guard, RequestContext};
use crate::resource_path::resource_path;

impl ApiClient {
    /// Reads an object. Digests stand in place of a Secret's values.
    ///
    /// # Errors
    /// [`ApiError::NotFound`] if there is no such object or this client may not read it, and those
    /// of any request.
    pub async fn get(&self, kind: &Kind, key: &ObjectKey) -> Result<Object, ApiError> {
        let (context, text) = self.read(kind, key).await?;
        self.decode(kind, &text).map_err(|error| context.unreadable(&error))
    }

    /// Reads an object as a type of the caller, with all that the server sends: for kinds that the
    /// host itself knows. A Secret has its values: the caller must not cache or log them.
    ///
    /// # Errors
    /// As of [`ApiClient::get`], and if the object does not fit the type.
    pub async fn get_as<T: DeserializeOwned>(
        &self,
        kind: &Kind,
        key: &ObjectKey,
    ) -> Result<T, ApiError> {
        let (context, text) = self.read(kind, key).await?;
        serde_json::from_str(&text).map_err(|error| context.unreadable(&error))
    }

    /// Reads all objects of a kind in a namespace (empty for all namespaces, or for a
    /// cluster-scoped kind) in one response: for kinds with few objects. As [`ApiClient::get_as`]
    /// otherwise.
    ///
    /// # Errors
    /// Those of any request, and if an object does not fit the type.
    pub async fn list_as<T: DeserializeOwned>(
        &self,
        kind: &Kind,
        namespace: &str,
    ) -> Result<Vec<T>, ApiError> {
        #[derive(Deserialize)]
        #[serde(bound = "T: DeserializeOwned")]
        struct List<T> {
            items: Vec<T>,
        }
        self.check_kind(kind).await?;
        let context = self.context("list", kind, "", namespace, Guard::None);
        let path = resource_path(kind, Some(namespace).filter(|one| !one.is_empty()), None, "")?;
        let text = self.read_path(&context, &path).await?;
        let list: List<T> =
            serde_json::from_str(&text).map_err(|error| context.unreadable(&error))?;
        Ok(list.items)
    }

    async fn read<'a>(
        &'a self,
        kind: &'a Kind,
        key: &'a ObjectKey,
    ) -> Result<(RequestContext<'a>, String), ApiError> {
        if self.hides(kind, key) {
            let message = format!("{} {key} is not for modules", kind.kind);
            return Err(ApiError::NotFound { message });
        }
        self.check_kind(kind).await?;
        let context = self.context("get", kind, "", key.namespace(), Guard::None);
        let path = resource_path(kind, Some(key.namespace()), Some(key.name()), "")?;
        let text = self.read_path(&context, &path).await?;
        Ok((context, text))
    }

    pub(super) async fn read_path(
        &self,
        context: &RequestContext<'_>,
        path: &str,
    ) -> Result<String, ApiError> {
        let request = request(Method::GET, path, "", "", Vec::new())?;
        let pending = PendingRequest { context: context.clone(), request, repeatable: true };
        self.exchange(pending).await.map(|(_, text)| text)
    }
}
