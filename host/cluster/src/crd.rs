//! Definitions of custom resources that the host installs.

use std::time::Duration;

use innkeeper_contract::Kind;
use innkeeper_core::Key;

use crate::settings::{RETRY_LEAST, RETRY_MOST};
use crate::{ApiError, Backoff, Session};

/// The kind CustomResourceDefinition.
pub fn kind() -> Kind {
    Kind::cluster(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        "customresourcedefinitions",
    )
}

/// Why the objects of a CustomResourceDefinition cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotEstablished {
    /// It could not be read.
    #[error(transparent)]
    Api(#[from] ApiError),
    /// Its names are taken by another definition.
    #[error("the names of CustomResourceDefinition {name} are not accepted: {message}")]
    NamesNotAccepted {
        /// The definition.
        name: String,
        /// What the server said.
        message: String,
    },
    /// The server has not got to it in time.
    #[error("CustomResourceDefinition {name} was not established within {} s", limit.as_secs())]
    Late {
        /// The definition.
        name: String,
        /// How long it was waited for.
        limit: Duration,
    },
}

#[derive(serde::Deserialize)]
struct Definition {
    #[serde(default)]
    status: Status,
}

#[derive(Default, serde::Deserialize)]
struct Status {
    #[serde(default)]
    conditions: Vec<Condition>,
}

#[derive(serde::Deserialize)]
struct Condition {
    r#type: String,
    status: String,
    #[serde(default)]
    message: String,
}

/// Waits until the API server serves the objects of a CustomResourceDefinition, at most for `limit`.
pub async fn established(
    session: &Session,
    name: &str,
    limit: Duration,
) -> Result<(), NotEstablished> {
    let kind = kind();
    let key = Key::new("", name);
    let mut backoff = Backoff::new(session.env(), RETRY_LEAST, RETRY_MOST);
    let waited = session.env().timeout(limit, async {
        loop {
            let definition: Definition = session.get_as(&kind, &key).await?;
            for condition in definition.status.conditions {
                match (condition.r#type.as_str(), condition.status.as_str()) {
                    ("Established", "True") => return Ok(()),
                    ("NamesAccepted", "False") => {
                        let message = condition.message;
                        return Err(NotEstablished::NamesNotAccepted {
                            name: name.into(),
                            message,
                        });
                    }
                    _ => {}
                }
            }
            session.env().sleep(backoff.advance()).await;
        }
    });
    waited.await.unwrap_or_else(|_| Err(NotEstablished::Late { name: name.into(), limit }))
}
