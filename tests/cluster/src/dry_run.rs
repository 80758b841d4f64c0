//! Requests that change nothing, and their answers with warnings.

use anyhow::{Context as _, Result};
use http_body_util::BodyExt as _;
use kube::client::Body;
use serde_json::Value;

/// Sends requests that create objects and store none (`dryRun=All`). Clones share connections.
#[derive(Clone)]
pub struct DryRun {
    client: kube::Client,
    uri: String,
}

/// An answer of the API server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// The HTTP status.
    pub code: u16,
    /// The message of a refusal; empty if there is none.
    pub message: String,
    /// The texts of the warnings.
    pub warnings: Vec<String>,
    /// The body as JSON; null if it is none.
    pub body: Value,
}

impl DryRun {
    /// Creates of a namespaced resource, as in `/api/v1/namespaces/web/configmaps`.
    pub fn new(client: &kube::Client, path: &str) -> Self {
        Self { client: client.clone(), uri: format!("{path}?dryRun=All") }
    }

    /// Creates an object, which is not stored.
    ///
    /// # Errors
    /// If there is no answer. A refusal is one.
    pub async fn create(&self, object: &Value) -> Result<Answer> {
        let request = http::Request::post(&self.uri)
            .header("content-type", "application/json")
            .body(Body::from(serde_json::to_vec(object)?))?;
        let response = self.client.send(request).await.context("no answer")?;
        let code = response.status().as_u16();
        let warnings = response.headers().get_all("warning").iter();
        let warnings = warnings.filter_map(|warning| text_of(warning.to_str().ok()?)).collect();
        let body = response.into_body().collect().await?.to_bytes();
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        let message = body["message"].as_str().unwrap_or_default().to_owned();
        Ok(Answer { code, message, warnings, body })
    }
}

/// The text of a warning, as in `299 - "text"`.
fn text_of(header: &str) -> Option<String> {
    let text = header.split_once('"')?.1.strip_suffix('"')?;
    Some(text.replace("\\\"", "\"").replace("\\\\", "\\"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warning_is_the_text_in_its_header() {
        assert_eq!(text_of(r#"299 - "it is \"old\"""#).unwrap(), r#"it is "old""#);
        assert_eq!(text_of("299 -"), None);
    }
}
