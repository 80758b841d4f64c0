//! Lists in pages, for kinds of which there may be any number.

use http::Method;
use innkeeper_contract::Kind;
use serde_json::Value;

use super::{Ask, Session, encoded, path, request};
use crate::ApiError;
use crate::error::Guard;

/// One page of a list.
#[derive(Debug)]
pub struct Page {
    /// The objects, as the server sent them.
    pub items: Vec<Value>,
    /// The length of the answer, in bytes.
    pub bytes: usize,
    /// Where the next page begins; empty if this is the last.
    pub next: String,
}

#[derive(serde::Deserialize)]
struct List {
    #[serde(default)]
    metadata: Metadata,
    items: Vec<Value>,
}

#[derive(Default, serde::Deserialize)]
struct Metadata {
    #[serde(default, rename = "continue")]
    next: String,
}

impl Session {
    /// Reads at most `limit` objects of a kind in a namespace (empty for all, or for a kind of the
    /// cluster), from `start` on, which is [`Page::next`] of the page before or empty.
    pub async fn list_page(
        &self,
        kind: &Kind,
        namespace: &str,
        limit: u32,
        start: &str,
    ) -> Result<Page, ApiError> {
        let asked = self.asked("list", kind, "", namespace, Guard::None);
        let path = path(kind, Some(namespace).filter(|one| !one.is_empty()), None, "")?;
        let mut query = format!("limit={limit}");
        if !start.is_empty() {
            query = format!("{query}&continue={}", encoded(start));
        }
        let request = request(Method::GET, &path, &query, "", Vec::new())?;
        let (_, text) = self.ask(Ask { asked: asked.clone(), request, repeatable: true }).await?;
        let list: List = serde_json::from_str(&text).map_err(|error| asked.unreadable(&error))?;
        Ok(Page { items: list.items, bytes: text.len(), next: list.metadata.next })
    }
}
