//! Requests to a cluster, simulated or real, by the kinds of objects.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::Request;
use innkeeper_cluster::ApiClient;
use innkeeper_simulator::Simulator;
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use serde_json::Value;

/// What a part of a path has encoded.
const SEGMENT: &AsciiSet =
    &CONTROLS.add(b' ').add(b'"').add(b'#').add(b'%').add(b'/').add(b'?').add(b'<').add(b'>');

/// The field manager of all writes.
const MANAGER: &str = "innkeeper-test";

/// The content type of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// An object, or options.
    Json,
    /// A JSON merge patch.
    MergePatch,
    /// A server-side apply.
    Apply,
}

impl Content {
    fn mime(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::MergePatch => "application/merge-patch+json",
            Self::Apply => "application/apply-patch+yaml",
        }
    }
}

/// Why a request failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApiFailure {
    /// The server refused the request.
    #[error("the API server refused the request ({code}): {message}")]
    Refused {
        /// The HTTP status.
        code: u16,
        /// The message of the server.
        message: String,
    },
    /// The server did not answer.
    #[error("the API server does not answer: {0}")]
    Silent(String),
    /// The server does not serve the kind.
    #[error(
        "the API server does not serve {kind} of {api_version}; install its CustomResourceDefinition"
    )]
    NotServed {
        /// Group and version.
        api_version: String,
        /// The kind.
        kind: String,
    },
}

/// The resource of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
    /// Group and version.
    pub api_version: String,
    /// The last part of the path.
    pub plural: String,
    /// Whether its objects have a namespace.
    pub namespaced: bool,
}

impl Resource {
    /// The path of an object; without a name, of all objects; without a namespace, of all
    /// namespaces.
    pub fn path(&self, namespace: &str, name: &str) -> String {
        // A name of a user may have any characters; the server refuses it then.
        let segment = |text: &str| utf8_percent_encode(text, SEGMENT).to_string();
        let (namespace, name) = (&*segment(namespace), &*segment(name));
        let root = if self.api_version.contains('/') { "/apis" } else { "/api" };
        let mut parts = vec![root, "/", &self.api_version];
        if self.namespaced && !namespace.is_empty() {
            parts.extend(["/namespaces/", namespace]);
        }
        parts.extend(["/", &self.plural]);
        if !name.is_empty() {
            parts.extend(["/", name]);
        }
        parts.concat()
    }
}

#[derive(Clone)]
enum Server {
    Simulated(Simulator),
    Cluster(Box<ApiClient>),
}

/// A cluster, simulated or real. Cheap to clone.
#[derive(Clone)]
pub struct Api {
    server: Server,
    known: Arc<Mutex<BTreeMap<(String, String), Resource>>>,
}

impl Api {
    /// A simulated cluster.
    pub fn simulated(simulator: Simulator) -> Self {
        Self { server: Server::Simulated(simulator), known: Arc::default() }
    }

    /// A real cluster.
    pub fn cluster(client: ApiClient) -> Self {
        Self { server: Server::Cluster(Box::new(client)), known: Arc::default() }
    }

    /// Sends a request and returns the body of the response.
    ///
    /// # Errors
    /// If the server refuses the request, or does not answer.
    pub async fn send(
        &self,
        method: &str,
        path: &str,
        content: Content,
        body: &Value,
    ) -> Result<Value, ApiFailure> {
        let text = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", content.mime())
            .header("accept", "application/json")
            .header("user-agent", MANAGER)
            .body(text)
            .map_err(|error| ApiFailure::Silent(error.to_string()))?;
        let (code, answer) = match &self.server {
            Server::Simulated(simulator) => {
                let response = simulator.request(request.map(Bytes::from));
                let code = response.status().as_u16();
                (code, whole(response.into_body()))
            }
            Server::Cluster(client) => {
                let answer = client.send(request).await;
                let (code, body) = answer.map_err(|error| ApiFailure::Silent(error.to_string()))?;
                (code.as_u16(), Bytes::from(body))
            }
        };
        let answer: Value = serde_json::from_slice(&answer)
            .unwrap_or_else(|_| String::from_utf8_lossy(&answer).trim().into());
        if code < 300 {
            return Ok(answer);
        }
        let message = answer["message"].as_str().or_else(|| answer.as_str());
        Err(ApiFailure::Refused { code, message: message.unwrap_or_default().to_owned() })
    }

    /// Looks up the resource of a kind.
    ///
    /// # Errors
    /// If the server does not serve the kind, or does not answer.
    pub async fn resource(&self, api_version: &str, kind: &str) -> Result<Resource, ApiFailure> {
        let id = (api_version.to_owned(), kind.to_owned());
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).get(&id).cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        let not_served =
            || ApiFailure::NotServed { api_version: api_version.to_owned(), kind: kind.to_owned() };
        let root = if api_version.contains('/') { "/apis" } else { "/api" };
        let path = format!("{root}/{api_version}");
        let list = match self.send("GET", &path, Content::Json, &Value::Null).await {
            Err(ApiFailure::Refused { code: 404, .. }) => return Err(not_served()),
            other => other?,
        };
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        for found in list["resources"].as_array().into_iter().flatten() {
            let (kind, plural) = (found["kind"].as_str(), found["name"].as_str());
            let (Some(kind), Some(plural)) = (kind, plural) else { continue };
            // A subresource has the kind of what is sent to it.
            if plural.contains('/') {
                continue;
            }
            let resource = Resource {
                api_version: api_version.to_owned(),
                plural: plural.to_owned(),
                namespaced: found["namespaced"] == true,
            };
            known.entry((api_version.to_owned(), kind.to_owned())).or_insert(resource);
        }
        known.get(&id).cloned().ok_or_else(not_served)
    }

    /// The path of an object, in `namespace` if the object names none.
    ///
    /// # Errors
    /// If the server does not serve its kind, or does not answer.
    pub async fn path_of(&self, object: &Value, namespace: &str) -> Result<String, ApiFailure> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let resource = self.resource(&text(&object["apiVersion"]), &text(&object["kind"])).await?;
        let own = text(&object["metadata"]["namespace"]);
        let namespace = if own.is_empty() { namespace } else { &own };
        Ok(resource.path(namespace, &text(&object["metadata"]["name"])))
    }

    /// Reads an object, if it exists.
    ///
    /// # Errors
    /// If the server refuses the request with another code than 404, or does not answer.
    pub async fn get(&self, path: &str) -> Result<Option<Value>, ApiFailure> {
        match self.send("GET", path, Content::Json, &Value::Null).await {
            Ok(object) => Ok(Some(object)),
            Err(ApiFailure::Refused { code: 404, .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Lists the objects at a path.
    ///
    /// # Errors
    /// If the server refuses the request, or does not answer.
    pub async fn list(&self, path: &str) -> Result<Vec<Value>, ApiFailure> {
        Ok(self.list_at(path).await?.1)
    }

    /// Lists the objects at a path, with the version of the list.
    ///
    /// # Errors
    /// If the server refuses the request, or does not answer.
    pub async fn list_at(&self, path: &str) -> Result<(String, Vec<Value>), ApiFailure> {
        let list = self.send("GET", path, Content::Json, &Value::Null).await?;
        let version = list["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned();
        // The items of a list have no kind.
        let (api_version, kind) = (&list["apiVersion"], list["kind"].as_str().unwrap_or_default());
        let kind = kind.strip_suffix("List").unwrap_or(kind);
        let items = list["items"].as_array().into_iter().flatten().cloned().map(|mut item| {
            item["apiVersion"] = api_version.clone();
            item["kind"] = kind.into();
            item
        });
        Ok((version, items.collect()))
    }

    /// The changes of the objects at a path since a version: types of watch events, and objects. A
    /// real cluster is asked for a second.
    ///
    /// # Errors
    /// If the server refuses the request, or does not answer; with the code 410 if it has dropped
    /// the changes since that version.
    pub async fn changes(
        &self,
        path: &str,
        version: &str,
    ) -> Result<Vec<(String, Value)>, ApiFailure> {
        let path = format!("{path}?watch=true&resourceVersion={version}&timeoutSeconds=1");
        let body = match self.send("GET", &path, Content::Json, &Value::Null).await? {
            Value::String(lines) => lines,
            // One event is one document.
            event => event.to_string(),
        };
        let mut changes = Vec::new();
        for mut event in serde_json::Deserializer::from_str(&body).into_iter::<Value>().flatten() {
            if event["type"] == "ERROR" {
                // The next watch, from the last of these changes, fails alike.
                if !changes.is_empty() {
                    break;
                }
                let status = &event["object"];
                let code = status["code"].as_u64().and_then(|code| code.try_into().ok());
                let message = status["message"].as_str().unwrap_or_default().to_owned();
                return Err(ApiFailure::Refused { code: code.unwrap_or_default(), message });
            }
            let type_ = event["type"].as_str().unwrap_or_default().to_owned();
            changes.push((type_, event["object"].take()));
        }
        Ok(changes)
    }

    /// Creates an object, or merges it into the existing one, as KUTTL does.
    ///
    /// # Errors
    /// If the server refuses the request, or does not answer.
    pub async fn apply(&self, object: &Value, namespace: &str) -> Result<(), ApiFailure> {
        let path = self.path_of(object, namespace).await?;
        let generated = object["metadata"]["generateName"].is_string();
        if !generated && self.get(&path).await?.is_some() {
            self.send("PATCH", &path, Content::MergePatch, object).await?;
            return Ok(());
        }
        let path = if generated { path } else { parent(&path).to_owned() };
        self.send("POST", &path, Content::Json, object).await?;
        Ok(())
    }

    /// Deletes the object at a path, if it exists.
    ///
    /// # Errors
    /// If the server refuses the request, or does not answer.
    pub async fn delete(&self, path: &str) -> Result<(), ApiFailure> {
        let options = serde_json::json!({"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"});
        match self.send("DELETE", path, Content::Json, &options).await {
            Ok(_) | Err(ApiFailure::Refused { code: 404, .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// All data of a body that is there now: a watch of the simulator gives its events one by one.
fn whole(mut body: innkeeper_simulator::Body) -> Bytes {
    let mut data = body.try_next().unwrap_or_default();
    while let Some(more) = body.try_next() {
        data = [data, more].concat().into();
    }
    data
}

fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(parent, _)| parent)
}
