//! The calls of the host that Kubewarden policies make: reads of the cluster, and log lines.
//!
//! Reads go through the policy's own view, as those of every guest. What needs a network, and
//! questions about other users, the host refuses by name.

use std::collections::BTreeSet;
use std::fmt;

use innkeeper_contract::{ObservedList, ObservedObject};
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};

use super::field_mask::FieldMask;
use super::field_selector::FieldSelector;
use crate::error::text;
use crate::host::{Level, ReadError, ResourceKind};
use crate::state::State;

/// The calls that [`answer`] offers, as the metadata names them.
pub(crate) const OFFERED: [&str; 4] = [
    "kubernetes/get_resource",
    "kubernetes/list_resources_all",
    "kubernetes/list_resources_by_namespace",
    "tracing/log",
];

/// The longest name of a call in a message, in bytes.
const NAME_BYTES_MAX: usize = 200;

/// The name of a host call.
pub(crate) struct HostCall {
    pub(crate) binding: String,
    pub(crate) namespace: String,
    pub(crate) operation: String,
}

impl fmt::Display for HostCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { binding, namespace, operation } = self;
        let name = format!("{binding}/{namespace}/{operation}");
        write!(f, "host call {}", &name[..name.floor_char_boundary(NAME_BYTES_MAX)])
    }
}

/// The payload of a read. Each operation has some of the members.
#[derive(Deserialize)]
struct Read {
    api_version: String,
    kind: String,
    name: Option<String>,
    namespace: Option<String>,
    label_selector: Option<String>,
    field_selector: Option<String>,
    field_masks: Option<BTreeSet<String>>,
}

/// A list as the API server answers it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct List<'a, T> {
    api_version: &'a str,
    kind: String,
    metadata: Map<String, Value>,
    items: Vec<T>,
}

/// Answers a host call; the inner error is for the guest.
///
/// # Errors
/// If the call exceeds a limit: it ends.
pub(crate) fn answer(
    state: &mut State,
    call: &HostCall,
    payload: &[u8],
) -> wasmtime::Result<Result<Vec<u8>, String>> {
    let HostCall { binding, namespace, operation } = call;
    match (&**binding, &**namespace, &**operation) {
        ("kubewarden", "tracing", "log") => {
            log(state, payload);
            Ok(Ok(Vec::new()))
        }
        ("kubewarden", "kubernetes", "get_resource") => get(state, payload),
        ("kubewarden", "kubernetes", "list_resources_by_namespace") => list(state, payload, true),
        ("kubewarden", "kubernetes", "list_resources_all") => list(state, payload, false),
        _ => {
            state.count_read()?;
            let why = match &**namespace {
                "kubernetes" => "a policy reads objects and asks nothing about rights",
                "oci" | "net" => "policies have no network",
                "crypto" => "policies bring their own cryptography",
                _ => "the host does not know it",
            };
            let refusal = format!("{call} is not offered: {why}");
            state.write_log(Level::Warn, refusal.clone());
            Ok(Err(refusal))
        }
    }
}

/// Reads the payload of a read; a wrong one counts as a read too.
fn read(state: &mut State, payload: &[u8]) -> wasmtime::Result<Result<Read, String>> {
    match serde_json::from_slice(payload) {
        Ok(read) => Ok(Ok(read)),
        Err(error) => {
            state.count_read()?;
            Ok(Err(text(format!("the request of the host call cannot be read: {error}"))))
        }
    }
}

fn get(state: &mut State, payload: &[u8]) -> wasmtime::Result<Result<Vec<u8>, String>> {
    let read = match read(state, payload)? {
        Ok(read) => read,
        Err(error) => return Ok(Err(error)),
    };
    let name = read.name.unwrap_or_default();
    let namespace = read.namespace.as_deref().unwrap_or_default();
    let kind = ResourceKind { api_version: read.api_version, kind: read.kind };
    let found = match state.get_object(&kind, namespace, &name)? {
        Ok(found) => found,
        Err(ReadError::NotFound) => {
            return Ok(Err(not_found(&kind, read.namespace.as_deref(), &name)));
        }
        Err(error) => return Ok(Err(unread(&kind, &format!("{namespace}/{name}"), &error))),
    };
    Ok(object(&found, &read.field_masks.unwrap_or_default()).map_err(|error| error.to_string()))
}

/// The object of an `observed-object` document.
fn object(document: &str, masks: &BTreeSet<String>) -> serde_json::Result<Vec<u8>> {
    let found: ObservedObject<&RawValue> = serde_json::from_str(document)?;
    let Some(mask) = FieldMask::of(masks) else { return Ok(found.object.get().into()) };
    let mut object: Value = serde_json::from_str(found.object.get())?;
    mask.apply(&mut object);
    serde_json::to_vec(&object)
}

fn list(
    state: &mut State,
    payload: &[u8],
    in_namespace: bool,
) -> wasmtime::Result<Result<Vec<u8>, String>> {
    let read = match read(state, payload)? {
        Ok(read) => read,
        Err(error) => return Ok(Err(error)),
    };
    let namespace = read.namespace.filter(|_| in_namespace).unwrap_or_default();
    let kind = ResourceKind { api_version: read.api_version, kind: read.kind };
    let fields = FieldSelector::read(read.field_selector.as_deref().unwrap_or_default(), &kind);
    let fields = match fields {
        // An empty namespace would mean all of them.
        Ok(_) if in_namespace && namespace.is_empty() => {
            state.count_read()?;
            return Ok(Err("the host call names no namespace".to_owned()));
        }
        Ok(fields) => read.field_selector.is_some().then_some(fields),
        Err(error) => {
            state.count_read()?;
            return Ok(Err(error));
        }
    };
    let labels = read.label_selector.unwrap_or_default();
    let found = match state.list_objects(&kind, &namespace, &labels)? {
        Ok(found) => found,
        Err(error) => return Ok(Err(unread(&kind, &format!("in {namespace:?}"), &error))),
    };
    let mask = FieldMask::of(&read.field_masks.unwrap_or_default());
    let listed = objects(&found, &kind, fields.as_ref(), mask.as_ref());
    Ok(listed.map_err(|error| error.to_string()))
}

/// The list of an `observed-list` document.
fn objects(
    document: &str,
    kind: &ResourceKind,
    fields: Option<&FieldSelector>,
    mask: Option<&FieldMask>,
) -> serde_json::Result<Vec<u8>> {
    let found: ObservedList<&RawValue> = serde_json::from_str(document)?;
    if fields.is_none() && mask.is_none() {
        let items = found.items.into_iter().map(|item| item.object).collect();
        return serde_json::to_vec(&list_of(kind, items));
    }
    let mut items = Vec::new();
    for item in found.items {
        let mut object: Value = serde_json::from_str(item.object.get())?;
        if fields.is_none_or(|fields| fields.matches(&object)) {
            if let Some(mask) = mask {
                mask.apply(&mut object);
            }
            // As text again, which takes a small part of the memory of the value.
            items.push(to_raw_value(&object)?);
        }
    }
    serde_json::to_vec(&list_of(kind, items))
}

fn list_of<T>(kind: &ResourceKind, items: Vec<T>) -> List<'_, T> {
    List {
        api_version: &kind.api_version,
        kind: format!("{}List", kind.kind),
        metadata: Map::new(),
        items,
    }
}

/// The error for an object that does not exist, in the words of Kubewarden: its policies look for
/// them to tell a missing object from a failed read.
fn not_found(kind: &ResourceKind, namespace: Option<&str>, name: &str) -> String {
    let ResourceKind { api_version, kind } = kind;
    text(format!(
        "Cannot find {api_version}/{kind} named '{name}' inside of namespace '{namespace:?}'"
    ))
}

fn unread(kind: &ResourceKind, what: &str, error: &ReadError) -> String {
    let ResourceKind { api_version, kind } = kind;
    let why = match error {
        ReadError::NotFound => "there is no such object".to_owned(),
        // In the words of Kubewarden, as above.
        ReadError::NotServed => return text(format!("Cannot find resource {api_version}/{kind}")),
        ReadError::Forbidden(why) => format!("the policy may not: {why}"),
        ReadError::Undeclared => {
            "contextAwareResources of its metadata does not name the kind".to_owned()
        }
        ReadError::Invalid(why) => why.clone(),
        ReadError::TooLarge => "the answer is too large".to_owned(),
    };
    text(format!("{api_version} {kind} {what} cannot be read: {why}"))
}

/// Writes an event of the SDKs' loggers to the guest's log: its message, and its other members.
fn log(state: &mut State, payload: &[u8]) {
    let Ok(mut event) = serde_json::from_slice::<Map<String, Value>>(payload) else {
        return state.write_log(Level::Info, String::from_utf8_lossy(payload).into_owned());
    };
    let level = match event.remove("level").as_ref().and_then(Value::as_str) {
        Some("trace" | "debug") => Level::Debug,
        Some("warn" | "warning") => Level::Warn,
        Some("error") => Level::Error,
        _ => Level::Info,
    };
    let mut line = match event.remove("message") {
        Some(Value::String(message)) => message,
        other => other.map(|message| message.to_string()).unwrap_or_default(),
    };
    // The place in the source of the policy.
    for name in ["column", "file", "line"] {
        event.remove(name);
    }
    if !event.is_empty() {
        line = format!("{line} {}", Value::Object(event));
    }
    state.write_log(level, line);
}
