//! A request as the core takes it, and what it answers.

use bytes::Bytes;
use serde_json::Value;

use crate::http::query::Query;
use crate::status_error::StatusError;
use crate::watch::Feed;

/// Who asks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct User {
    pub(crate) name: String,
    pub(crate) groups: Vec<String>,
}

impl User {
    /// Who may do everything.
    pub(crate) fn admin() -> Self {
        Self {
            name: "admin".to_owned(),
            groups: vec!["system:masters".to_owned(), "system:authenticated".to_owned()],
        }
    }

    /// Another one, as impersonation makes it.
    pub(crate) fn impersonated(name: &str, mut groups: Vec<String>) -> Self {
        if groups.is_empty()
            && let Some(account) = name.strip_prefix("system:serviceaccount:")
            && let Some((namespace, _)) = account.split_once(':')
        {
            groups.push("system:serviceaccounts".to_owned());
            groups.push(format!("system:serviceaccounts:{namespace}"));
        }
        let default = if name == "system:anonymous" {
            "system:unauthenticated"
        } else {
            "system:authenticated"
        };
        if !groups.iter().any(|group| group == "system:authenticated" || group == default) {
            groups.push(default.to_owned());
        }
        Self { name: name.to_owned(), groups }
    }
}

/// A request.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    /// In capitals.
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) query: Query,
    pub(crate) user: User,
    /// As whom the user wants to act, if as another.
    pub(crate) acting: Option<User>,
    pub(crate) content_type: String,
    pub(crate) accept: String,
    pub(crate) agent: String,
    pub(crate) body: Bytes,
}

/// What is answered.
#[derive(Debug)]
pub(crate) enum Answer {
    /// A document.
    Json { code: u16, body: Bytes, warnings: Vec<String> },
    /// A text.
    Text { code: u16, body: String },
    /// A stream of events.
    Watch(Feed),
}

impl Answer {
    /// A document.
    pub(crate) fn json(code: u16, value: &Value) -> Self {
        Self::Json { code, body: Bytes::from(value.to_string()), warnings: Vec::new() }
    }

    /// A document that is a text already.
    pub(crate) fn bytes(code: u16, body: Bytes) -> Self {
        Self::Json { code, body, warnings: Vec::new() }
    }

    /// An error.
    pub(crate) fn error(error: &StatusError) -> Self {
        Self::json(error.code, &error.body())
    }

    /// Where nothing is.
    pub(crate) fn nowhere() -> Self {
        Self::Text { code: 404, body: "404 page not found\n".to_owned() }
    }
}
