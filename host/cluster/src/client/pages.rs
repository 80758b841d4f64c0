//! Lists in pages, for kinds with any number of objects.

use http::Method;
use innkeeper_contract::Kind;
use kube::client::Body;
use serde_json::value::RawValue;

use super::ApiClient;
use super::request::request;
use crate::ApiError;
use crate::error::Guard;
use crate::resource_path::{encoded, resource_path};
use crate::transport::{AnswerBytesMax, Repeatable};

/// One page of a list.
#[derive(Debug)]
pub struct Page {
    /// The objects as the server sent them. They are not parsed, since a parsed object may take
    /// many times its bytes.
    pub items: Vec<Box<RawValue>>,
    /// The length of the response, in bytes.
    pub bytes: usize,
    /// How many objects the host asked for: fewer than the caller's limit if so many objects have
    /// too many bytes.
    pub limit: u32,
    /// The `continue` token of the next page; empty if this is the last.
    pub next: String,
}

#[derive(serde::Deserialize)]
struct List {
    #[serde(default)]
    metadata: Metadata,
    items: Vec<Box<RawValue>>,
}

#[derive(Default, serde::Deserialize)]
struct Metadata {
    #[serde(default, rename = "continue")]
    next: String,
}

impl ApiClient {
    /// Reads at most `limit` objects of a kind in a namespace (empty for all namespaces, or for a
    /// cluster-scoped kind), from `start` on, which is [`Page::next`] of the page before or empty.
    /// The host asks for fewer objects if so many have more than `bytes_max` bytes.
    ///
    /// The objects are unredacted, as with [`ApiClient::get_as`]: a Secret has its values, and the
    /// caller must not cache or log them.
    ///
    /// # Errors
    /// If the server refuses the request, or one object alone has more than `bytes_max` bytes.
    pub async fn list_raw_page(
        &self,
        kind: &Kind,
        namespace: &str,
        limit: u32,
        bytes_max: usize,
        start: &str,
    ) -> Result<Page, ApiError> {
        self.check_kind(kind).await?;
        let context = self.context("list", kind, "", namespace, Guard::None);
        let path = resource_path(kind, Some(namespace).filter(|one| !one.is_empty()), None, "")?;
        let mut limit = limit.max(1);
        let response = loop {
            let mut query = format!("limit={limit}");
            if !start.is_empty() {
                query = format!("{query}&continue={}", encoded(start));
            }
            let request = request(Method::GET, &path, &query, "", Vec::new())?;
            let mut request = request.map(Body::from);
            request.extensions_mut().insert(Repeatable);
            request.extensions_mut().insert(AnswerBytesMax(bytes_max));
            match self.transport.send(request).await {
                Ok(response) => break response,
                Err(error) if error.too_large => {
                    if limit == 1 {
                        let kind = &kind.kind;
                        let message = format!(
                            "one object of the kind {kind} has more than {} KiB, the most that is read",
                            bytes_max >> 10
                        );
                        return Err(ApiError::Other { code: 0, message });
                    }
                    limit /= 2;
                }
                Err(error) => return Err(context.unanswered(error)),
            }
        };
        let (_, text) = Self::text(&context, response).await?;
        let list: List = serde_json::from_str(&text).map_err(|error| context.unreadable(&error))?;
        Ok(Page { items: list.items, bytes: text.len(), limit, next: list.metadata.next })
    }
}
