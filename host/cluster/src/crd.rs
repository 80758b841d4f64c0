//! The wait for a CustomResourceDefinition that the host installs.

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

/// How long the names of a definition may be refused: the server may not know yet that the one
/// which had them was deleted.
const NAMES_WITHIN: Duration = Duration::from_secs(3);

/// The reason why the server does not serve the objects of a CustomResourceDefinition.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotEstablished {
    /// The host could not read the definition.
    #[error(transparent)]
    Api(#[from] ApiError),
    /// Another definition has the names.
    #[error("the names of CustomResourceDefinition {name} are not accepted: {message}")]
    NamesNotAccepted {
        /// The definition.
        name: String,
        /// The server's message.
        message: String,
    },
    /// The server did not establish the definition in time.
    #[error("CustomResourceDefinition {name} was not established within {} s", limit.as_secs())]
    Late {
        /// The definition.
        name: String,
        /// How long the host waited.
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
    /// `null` in a definition that was just created.
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
///
/// # Errors
/// [`NotEstablished`].
pub async fn established(
    client: &ApiClient,
    name: &str,
    limit: Duration,
) -> Result<(), NotEstablished> {
    let kind = kind();
    let key = ObjectKey::new("", name);
    let mut backoff = Backoff::new(client.env(), RETRY_MIN, RETRY_MAX);
    let mut refused_since = None;
    let waited = client.env().timeout(limit, async {
        loop {
            let definition: Definition = client.get_as(&kind, &key).await?;
            let conditions = definition.status.conditions.unwrap_or_default();
            let find = |r#type: &str, status: &str| {
                conditions.iter().find(|one| one.r#type == r#type && one.status == status)
            };
            let now = client.env().instant();
            match find("NamesAccepted", "False") {
                Some(refused) => {
                    let since = *refused_since.get_or_insert(now);
                    if now.duration_since(since) >= NAMES_WITHIN {
                        let message = refused.message.clone();
                        return Err(NotEstablished::NamesNotAccepted {
                            name: name.into(),
                            message,
                        });
                    }
                }
                None if find("Established", "True").is_some() => return Ok(()),
                None => {}
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
    async fn definition_without_conditions_is_read_again_until_it_is_established() {
        let server = Server::new();
        server.once(PATH, definition(&Value::Null));
        server.once(PATH, definition(&json!([{ "type": "NamesAccepted", "status": "True" }])));
        server.always(PATH, definition(&json!([{ "type": "Established", "status": "True" }])));
        wait(&server).await.unwrap();
        assert_eq!(server.log().len(), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn names_that_are_free_a_moment_later_are_no_error() {
        let server = Server::new();
        let refused = json!([{ "type": "NamesAccepted", "status": "False" }]);
        server.once(PATH, definition(&refused));
        server.always(PATH, definition(&json!([{ "type": "Established", "status": "True" }])));
        wait(&server).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn taken_names_and_a_slow_server_give_an_error_each() {
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
