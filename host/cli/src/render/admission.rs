//! The primary as an API server with the guest's definition stores it: pruned, with defaults, and
//! validated.

use anyhow::{anyhow, bail};
use hyper::body::Bytes;
use hyper::http::{Request, header};
use innkeeper_contract::{Kind, Manifest};
use innkeeper_simulator::Simulator;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::inspect::crd_name;
use crate::objects::{DEFAULT_NAMESPACE, InputObject};
use crate::out;

/// The path of all CustomResourceDefinitions.
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// The most errors of a definition that are shown.
const SCHEMA_ERRORS_MAX: usize = 5;

/// A simulated API server that has the definition and the primary.
pub(super) struct Admission {
    simulator: Simulator,
    /// The path of the primary.
    path: String,
    /// The primary as the server stored it.
    stored: Value,
}

/// A response of the server.
struct Response {
    body: Value,
    warnings: Vec<String>,
    is_refused: bool,
}

impl Admission {
    /// Creates the primary, an object of `kind`, on a server with the guest's definition, and
    /// replaces its fields by the stored ones. Prints what the server warns of. `None` if the guest
    /// installs no definition of its primary.
    ///
    /// # Errors
    /// If the server refuses the definition, or the primary. The primary of a cluster, which has a
    /// uid, may be older than a rule: its refusal is a warning.
    pub(super) fn of(
        manifest: &Manifest,
        kind: &Kind,
        primary: &mut InputObject,
        now: Timestamp,
    ) -> anyhow::Result<Option<Self>> {
        let is_primary = |definition: &Value| {
            definition["spec"]["group"] == kind.group()
                && definition["spec"]["names"]["kind"] == *kind.kind
        };
        for definition in manifest.definitions() {
            check_schemas(&definition)?;
        }
        let Some(definition) = manifest.definitions().find(is_primary) else { return Ok(None) };
        let simulator = Simulator::new(1, now);
        let installed = send(&simulator, "POST", DEFINITIONS, &definition);
        if installed.is_refused {
            return Err(refused(&definition, installed.message()));
        }
        simulator.settle();
        let mut all = format!("/apis/{}", kind.api_version);
        if kind.is_namespaced() {
            let namespace = match primary.text("/metadata/namespace") {
                "" => DEFAULT_NAMESPACE,
                given => given,
            };
            let body =
                json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
            // The server may have it already.
            let _ = send(&simulator, "POST", "/api/v1/namespaces", &body);
            all = format!("{all}/namespaces/{namespace}");
        }
        all = format!("{all}/{}", kind.plural);
        let created = send(&simulator, "POST", &warn(&all), &new_object(&primary.value));
        print_warnings(primary, &created);
        let path = format!("{all}/{}", primary.text("/metadata/name"));
        if created.is_refused {
            let message = format!(
                "{}: the API server would refuse this {}: {}",
                primary.place,
                kind.kind,
                created.message()
            );
            if primary.text("/metadata/uid").is_empty() {
                bail!("{message}");
            }
            out::eprint(&format!("warning: {message}"));
            return Ok(None);
        }
        let mut admission = Self { simulator, path, stored: created.body };
        if let Some(status) = primary.value.get("status").cloned() {
            let response = admission.put_status(&status);
            print_warnings(primary, &response);
            if !response.is_refused {
                admission.stored = response.body;
            }
        }
        copy(&admission.stored, &mut primary.value);
        Ok(Some(admission))
    }

    /// Prints what the server would drop of the guest's status, or why it would refuse it.
    pub(super) fn print_status_warnings(&self, status: &Map<String, Value>) {
        let mut all = self.stored["status"].as_object().cloned().unwrap_or_default();
        all.extend(status.clone());
        let response = self.put_status(&Value::Object(all));
        for warning in &response.warnings {
            out::eprint(&format!(
                "warning: the guest's status has an {warning}, which the API server would drop"
            ));
        }
        if response.is_refused {
            out::eprint(&format!(
                "warning: the API server would refuse the guest's status: {}",
                response.message()
            ));
        }
    }

    fn put_status(&self, status: &Value) -> Response {
        let mut body = self.stored.clone();
        body["status"] = status.clone();
        send(&self.simulator, "PUT", &warn(&format!("{}/status", self.path)), &body)
    }
}

/// Checks the schemas of a definition, which the simulated server takes as they are.
///
/// # Errors
/// If a real server would refuse the definition.
fn check_schemas(definition: &Value) -> anyhow::Result<()> {
    let errors = innkeeper_simulator::definition_errors(definition);
    if errors.is_empty() {
        return Ok(());
    }
    let more = errors.len().saturating_sub(SCHEMA_ERRORS_MAX);
    let mut texts: Vec<String> = errors.into_iter().take(SCHEMA_ERRORS_MAX).collect();
    if more > 0 {
        texts.push(format!("and {more} more"));
    }
    Err(refused(definition, &texts.join("; ")))
}

fn refused(definition: &Value, why: &str) -> anyhow::Error {
    anyhow!(
        "the API server would refuse the definition {}: {why}; change the guest's types or its crd.json",
        crd_name(definition)
    )
}

impl Response {
    fn message(&self) -> &str {
        self.body["message"].as_str().unwrap_or("the server gives no reason")
    }
}

fn warn(path: &str) -> String {
    format!("{path}?fieldValidation=Warn")
}

fn send(simulator: &Simulator, method: &str, path: &str, body: &Value) -> Response {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::ACCEPT, "application/json")
        .body(Bytes::from(body.to_string()));
    let request = match request {
        Ok(request) => request,
        // A name that fits into no path is no name of an object.
        Err(error) => {
            let body = json!({ "message": error.to_string() });
            return Response { body, warnings: Vec::new(), is_refused: true };
        }
    };
    let response = simulator.request(request);
    let is_refused = !response.status().is_success();
    let warnings = response.headers().get_all(header::WARNING).iter().filter_map(|value| {
        let quoted = value.to_str().ok()?.strip_prefix("299 - ")?;
        Some(serde_json::from_str(quoted).unwrap_or_else(|_| quoted.to_owned()))
    });
    let warnings = warnings.collect();
    let body = response.into_body().try_next().unwrap_or_default();
    let body = serde_json::from_slice(&body).unwrap_or_default();
    Response { body, warnings, is_refused }
}

/// The object as a user creates it: without what the server sets.
fn new_object(object: &Value) -> Value {
    let mut new = object.clone();
    if let Some(members) = new.as_object_mut() {
        members.remove("status");
    }
    if let Some(metadata) = new["metadata"].as_object_mut() {
        metadata.retain(|name, _| {
            matches!(name.as_str(), "name" | "namespace" | "labels" | "annotations")
        });
    }
    new
}

/// Takes over all fields but those of the metadata.
fn copy(stored: &Value, object: &mut Value) {
    let (Some(stored), Some(object)) = (stored.as_object(), object.as_object_mut()) else { return };
    object.retain(|name, _| stored.contains_key(name));
    for (name, value) in stored.iter().filter(|(name, _)| *name != "metadata") {
        object.insert(name.clone(), value.clone());
    }
}

fn print_warnings(primary: &InputObject, response: &Response) {
    for warning in &response.warnings {
        out::eprint(&format!(
            "warning: {}: {warning}, which the API server would drop",
            primary.place
        ));
    }
}
