//! Objects from YAML and JSON files.

use std::fmt;
use std::io::Read;
use std::path::Path;

use anyhow::{Context as _, bail};
use innkeeper_contract::{Kind, Readiness};
use innkeeper_core::{Object, readiness};
use serde::Deserialize;
use serde_json::Value;

/// Where namespaced objects lie that do not say it.
const DEFAULT_NAMESPACE: &str = "default";

/// An object from a file.
pub(crate) struct InputObject {
    /// As it stands there.
    pub(crate) value: Value,
    /// Where it stands, for errors.
    pub(crate) place: InputLocation,
}

/// A document of a file.
#[derive(Clone)]
pub(crate) struct InputLocation {
    file: String,
    document: usize,
}

impl fmt::Display for InputLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, document {}", self.file, self.document)
    }
}

impl InputObject {
    /// A member of text; empty if it is not there.
    pub(crate) fn text(&self, pointer: &str) -> &str {
        self.value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
    }

    /// Whether it is of a kind.
    pub(crate) fn is(&self, kind: &Kind) -> bool {
        self.text("/apiVersion") == kind.api_version && self.text("/kind") == kind.kind
    }

    /// As the host keeps it, and how ready it is.
    pub(crate) fn decode(&self, kind: &Kind) -> anyhow::Result<(Object, Readiness)> {
        // Guests never see a Secret's values.
        let redact = |_: &innkeeper_core::ObjectKey, _: &str, value: &str| {
            innkeeper_modules::Digest::of(value.as_bytes()).to_string()[..16].to_owned()
        };
        let is_secret = kind.kind == "Secret" && kind.group().is_empty();
        let mut value = self.value.clone();
        if kind.is_namespaced() && self.text("/metadata/namespace").is_empty() {
            // As kubectl would.
            value["metadata"]["namespace"] = DEFAULT_NAMESPACE.into();
        }
        let redact = if is_secret {
            Some(&redact as &innkeeper_core::object::SecretDigest<'_>)
        } else {
            None
        };
        let object = Object::decode(kind, &value.to_string(), redact)
            .with_context(|| self.place.to_string())?;
        let readiness = readiness::of(kind, &object);
        Ok((object, readiness))
    }
}

/// Reads objects that were made here, and that `what` names in errors.
pub(crate) fn parse(text: &str, what: &str) -> anyhow::Result<Vec<Value>> {
    serde_yaml_ng::Deserializer::from_str(text)
        .map(|document| Value::deserialize(document).with_context(|| format!("{what} are no YAML")))
        .collect()
}

/// Reads the objects of a file; `-` is standard input. A `List` gives its items.
pub(crate) fn read(path: &Path) -> anyhow::Result<Vec<InputObject>> {
    let file = path.display().to_string();
    let mut text = String::new();
    if file == "-" {
        std::io::stdin().read_to_string(&mut text).context("standard input cannot be read")?;
    } else {
        text = std::fs::read_to_string(path).with_context(|| format!("{file} cannot be read"))?;
    }
    let mut objects = Vec::new();
    for (index, document) in serde_yaml_ng::Deserializer::from_str(&text).enumerate() {
        let place = InputLocation { file: file.clone(), document: index + 1 };
        let value = Value::deserialize(document)
            .with_context(|| format!("{place}: is not YAML of a Kubernetes object"))?;
        if value.is_null() {
            continue;
        }
        let items = match value.get("items") {
            Some(Value::Array(items))
                if value["kind"].as_str().is_some_and(|kind| kind.ends_with("List")) =>
            {
                items.clone()
            }
            _ => vec![value],
        };
        for value in items {
            let given = InputObject { value, place: place.clone() };
            for pointer in ["/apiVersion", "/kind", "/metadata/name"] {
                if given.text(pointer).is_empty() {
                    let member = pointer[1..].replace('/', ".");
                    bail!("{}: {member} is missing", given.place);
                }
            }
            objects.push(given);
        }
    }
    Ok(objects)
}
