//! Objects from YAML and JSON files.

use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use base64::prelude::{BASE64_STANDARD, Engine as _};
use innkeeper_contract::{Kind, Readiness};
use innkeeper_core::object::SecretDigest;
use innkeeper_core::{Object, ObjectKey, readiness};
use innkeeper_faults::ValueBudget;
use serde::Deserialize;
use serde_json::{Map, Value};

/// The most bytes of the values of a file, also after aliases are replaced by what they stand for.
const EXPANDED_BYTES_MAX: usize = 128 << 20;

/// The namespace of namespaced objects that name none.
pub(crate) const DEFAULT_NAMESPACE: &str = "default";

/// An object from a file.
pub(crate) struct InputObject {
    /// The object.
    pub(crate) value: Value,
    /// Its location, for errors.
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
    /// A text member; empty if it is absent.
    pub(crate) fn text(&self, pointer: &str) -> &str {
        self.value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
    }

    /// Whether the object is of a kind.
    pub(crate) fn is(&self, kind: &Kind) -> bool {
        self.text("/apiVersion") == kind.api_version && self.text("/kind") == kind.kind
    }

    /// The object with what the API server and kubectl add before it is stored: the namespace
    /// `default`, and `stringData` of a Secret in `data`.
    pub(crate) fn stored(&self, kind: &Kind) -> Value {
        let mut value = self.value.clone();
        if kind.is_namespaced() && self.text("/metadata/namespace").is_empty() {
            // As kubectl does.
            value["metadata"]["namespace"] = DEFAULT_NAMESPACE.into();
        }
        if is_secret(kind) {
            move_string_data(&mut value);
        }
        value
    }

    /// Namespace and name of the [stored](Self::stored) object.
    pub(crate) fn stored_key(&self, kind: &Kind) -> ObjectKey {
        let namespace = match self.text("/metadata/namespace") {
            _ if !kind.is_namespaced() => "",
            "" => DEFAULT_NAMESPACE,
            namespace => namespace,
        };
        ObjectKey::new(namespace, self.text("/metadata/name"))
    }

    /// Decodes the object as the host does, with its readiness.
    ///
    /// # Errors
    /// If the object is malformed.
    pub(crate) fn decode(&self, kind: &Kind) -> anyhow::Result<(Object, Readiness)> {
        let redact = is_secret(kind).then_some(&digest as &SecretDigest<'_>);
        let object = Object::decode(kind, &self.stored(kind).to_string(), redact)
            .with_context(|| self.place.to_string())?;
        let readiness = readiness::of(kind, &object);
        Ok((object, readiness))
    }
}

fn is_secret(kind: &Kind) -> bool {
    kind.kind == "Secret" && kind.group().is_empty()
}

/// What a guest sees in place of a value of a Secret. It has no key, so that it is the same on each
/// machine.
pub(crate) fn digest(_: &ObjectKey, _: &str, value: &str) -> String {
    innkeeper_modules::Digest::of(value.as_bytes()).to_string()[..16].to_owned()
}

/// Moves `stringData` of a Secret into `data`, as the API server does. Leaves a malformed one.
fn move_string_data(secret: &mut Value) {
    let Some(secret) = secret.as_object_mut() else { return };
    let Some(Value::Object(given)) = secret.get("stringData") else { return };
    let texts = given.iter().map(|(key, value)| Some((key.clone(), value.as_str()?)));
    let Some(texts) = texts.collect::<Option<Vec<_>>>() else { return };
    let mut data = match secret.get("data") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(data)) => data.clone(),
        Some(_) => return,
    };
    data.extend(texts.into_iter().map(|(key, text)| (key, BASE64_STANDARD.encode(text).into())));
    secret.insert("data".to_owned(), data.into());
    secret.remove("stringData");
}

/// Whether a file has a name of files with objects.
pub(crate) fn may_have_objects(file: &Path) -> bool {
    file.extension().is_some_and(|one| ["yaml", "yml", "json"].iter().any(|known| one == *known))
}

/// The files of a folder that may have objects, in order; not those of folders within it.
///
/// # Errors
/// If the folder cannot be read.
pub(crate) fn files_of(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let unreadable = || format!("cannot read {}", folder.display());
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(unreadable)? {
        files.push(entry.with_context(unreadable)?.path());
    }
    files.retain(|file| may_have_objects(file));
    files.sort();
    Ok(files)
}

/// Parses the objects of the command itself; `what` names them in errors.
///
/// # Errors
/// If the text is no YAML.
pub(crate) fn parse(text: &str, what: &str) -> anyhow::Result<Vec<Value>> {
    serde_yaml_ng::Deserializer::from_str(text)
        .map(|document| Value::deserialize(document).with_context(|| format!("{what} are no YAML")))
        .collect()
}

/// Reads the objects of a file; `-` is standard input. Replaces a `List` by its items.
///
/// # Errors
/// If the file cannot be read, or a document is no Kubernetes object.
pub(crate) fn read(path: &Path) -> anyhow::Result<Vec<InputObject>> {
    let file = path.display().to_string();
    let mut text = String::new();
    if file == "-" {
        std::io::stdin().read_to_string(&mut text).context("cannot read standard input")?;
    } else {
        text = std::fs::read_to_string(path).with_context(|| format!("cannot read {file}"))?;
    }
    let mut objects = Vec::new();
    let mut budget = ValueBudget::new(EXPANDED_BYTES_MAX);
    for (index, document) in serde_yaml_ng::Deserializer::from_str(&text).enumerate() {
        let place = InputLocation { file: file.clone(), document: index + 1 };
        let value = budget
            .read(document)
            .with_context(|| format!("{place}: not a Kubernetes object in YAML"))?;
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
            let object = InputObject { value, place: place.clone() };
            for pointer in ["/apiVersion", "/kind", "/metadata/name"] {
                if object.text(pointer).is_empty() {
                    let member = pointer[1..].replace('/', ".");
                    bail!("{}: {member} is missing", object.place);
                }
            }
            objects.push(object);
        }
    }
    Ok(objects)
}
