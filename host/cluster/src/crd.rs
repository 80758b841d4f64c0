//! Definitions of custom resources that the host installs.

use std::time::Duration;

use innkeeper_contract::Kind;
use innkeeper_core::ObjectKey;

use crate::settings::{RETRY_MAX, RETRY_MIN};
use crate::{ApiClient, ApiError, Backoff};

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
    /// `null` in a definition that was made just now.
    #[serde(default)]
    conditions: Option<Vec<Condition>>,
}

#[derive(serde::Deserialize)]
struct Condition {
    r#type: String,
    status: String,
    #[serde(default)]
    message: String,
}

/// Waits until the API server serves the objects of a CustomResourceDefinition, at most for
/// `limit`.
pub async fn established(
    client: &ApiClient,
    name: &str,
    limit: Duration,
) -> Result<(), NotEstablished> {
    let kind = kind();
    let key = ObjectKey::new("", name);
    let mut backoff = Backoff::new(client.env(), RETRY_MIN, RETRY_MAX);
    let waited = client.env().timeout(limit, async {
        loop {
            let definition: Definition = client.get_as(&kind, &key).await?;
            for condition in definition.status.conditions.into_iter().flatten() {
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
            client.env().sleep(backoff.advance()).await;
        }
    });
    waited.await.unwrap_or_else(|_| Err(NotEstablished::Late { name: name.into(), limit }))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::scripted::{Reply, Server};

    const PATH: &str = "GET /apis/apiextensions.k8s.io/v1/customresourcedefinitions/foos.try.dev";

    fn definition(conditions: &Value) -> Reply {
        Reply::Json(200, json!({ "status": { "conditions": conditions } }))
    }

    async fn wait(server: &Server) -> Result<(), NotEstablished> {
        established(&server.client("a"), "foos.try.dev", Duration::from_secs(10)).await
    }

    #[tokio::test(start_paused = true)]
    async fn a_definition_is_waited_for_from_the_moment_it_is_made() {
        let server = Server::new();
        server.once(PATH, definition(&Value::Null));
        server.once(PATH, definition(&json!([{ "type": "NamesAccepted", "status": "True" }])));
        server.always(PATH, definition(&json!([{ "type": "Established", "status": "True" }])));
        wait(&server).await.unwrap();
        assert_eq!(server.log().len(), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn names_that_are_taken_and_a_server_that_does_not_get_to_it_are_said() {
        let server = Server::new();
        server.always(
            PATH,
            definition(&json!([
                { "type": "NamesAccepted", "status": "False", "message": "foos is in use" }
            ])),
        );
        assert_eq!(
            wait(&server).await.unwrap_err().to_string(),
            "the names of CustomResourceDefinition foos.try.dev are not accepted: foos is in use"
        );
        server.always(PATH, definition(&json!([])));
        assert_eq!(
            wait(&server).await.unwrap_err().to_string(),
            "CustomResourceDefinition foos.try.dev was not established within 10 s"
        );
    }
}
