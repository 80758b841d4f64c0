//! A CustomResourceDefinition, parsed.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::types::schema::{Reference, Schema, Type};

/// The type of `metadata`.
pub(crate) const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// The verbs of objects of a definition, in the order of discovery.
pub(crate) const VERBS: [&str; 8] =
    ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];

/// One version of a kind.
#[derive(Clone, Debug)]
pub(crate) struct Version {
    pub(crate) name: String,
    pub(crate) served: bool,
    pub(crate) storage: bool,
    /// Its objects, with apiVersion, kind and metadata.
    pub(crate) schema: Schema,
    /// Whether its status is written on its own.
    pub(crate) status: bool,
    pub(crate) scale: Option<Scale>,
    pub(crate) columns: Vec<Value>,
    /// The paths of fields that objects can be selected by, without the dot at the beginning.
    pub(crate) selectable: Vec<String>,
}

/// The paths of the scale's members.
#[derive(Clone, Debug)]
pub(crate) struct Scale {
    pub(crate) spec: String,
    pub(crate) status: String,
    pub(crate) selector: Option<String>,
}

/// A custom kind.
#[derive(Clone, Debug)]
pub(crate) struct Definition {
    pub(crate) group: String,
    pub(crate) plural: String,
    pub(crate) singular: String,
    pub(crate) kind: String,
    pub(crate) list_kind: String,
    short_names: Vec<Value>,
    categories: Vec<Value>,
    pub(crate) namespaced: bool,
    pub(crate) versions: Vec<Version>,
    /// Whether the definition has changed since its creation.
    pub(crate) changed: bool,
    /// Whether it is being deleted, so that creates are refused.
    pub(crate) terminating: bool,
    uid: String,
    generation: i64,
    names: Value,
}

/// Whether a condition of a definition is true.
pub(crate) fn has_condition(object: &Value, name: &str) -> bool {
    let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    conditions.into_iter().any(|one| one["type"] == name && one["status"] == "True")
}

impl Definition {
    /// Reads a definition that was admitted.
    pub(crate) fn read(object: &Value) -> Self {
        let spec = &object["spec"];
        // Another definition may have the requested names.
        let accepted = &object["status"]["acceptedNames"];
        let is_accepted = accepted["kind"].as_str().is_some_and(|kind| !kind.is_empty());
        let names = if is_accepted { accepted } else { &spec["names"] };
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let kind = text(&names["kind"]);
        let list = |name: &str| names[name].as_array().cloned().unwrap_or_default();
        let or = |value: String, other: String| if value.is_empty() { other } else { value };
        Self {
            group: text(&spec["group"]),
            plural: text(&spec["names"]["plural"]),
            singular: or(text(&names["singular"]), kind.to_lowercase()),
            list_kind: or(text(&names["listKind"]), format!("{kind}List")),
            kind,
            short_names: list("shortNames"),
            categories: list("categories"),
            namespaced: spec["scope"] == "Namespaced",
            versions: spec["versions"].as_array().into_iter().flatten().map(version).collect(),
            changed: crate::types::object::generation(object) > 1,
            terminating: has_condition(object, "Terminating"),
            uid: crate::types::object::meta(object, "uid").to_owned(),
            generation: crate::types::object::generation(object),
            names: names.clone(),
        }
    }

    /// Whether another parse of it defines the same.
    pub(crate) fn says_the_same(&self, other: &Self) -> bool {
        self.uid == other.uid && self.generation == other.generation && self.names == other.names
    }

    /// Whether nothing of it has changed that anybody sees of its kind.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.says_the_same(other) && self.terminating == other.terminating
    }

    /// A version by its name.
    pub(crate) fn version(&self, name: &str) -> Option<&Version> {
        self.versions.iter().find(|version| version.name == name)
    }

    /// As discovery shows it in a version.
    pub(crate) fn resource(&self, version: &str) -> Value {
        let verbs: Vec<&str> = VERBS
            .into_iter()
            .filter(|verb| !self.terminating || !matches!(*verb, "create" | "patch" | "update"))
            .collect();
        let mut resource = json!({
            "name": self.plural,
            "singularName": self.singular,
            "namespaced": self.namespaced,
            "kind": self.kind,
            "verbs": verbs,
        });
        for (name, list) in [("shortNames", &self.short_names), ("categories", &self.categories)] {
            if !list.is_empty() {
                resource[name] = list.clone().into();
            }
        }
        if self.versions.iter().any(|version| version.served && version.storage) {
            resource["storageVersionHash"] = self.storage_version_hash(version).into();
        }
        resource
    }

    /// The hash of group, version and kind. As on a real server, it is that of the version that
    /// discovery shows, not of the stored one.
    fn storage_version_hash(&self, version: &str) -> String {
        let hash = Sha256::digest(format!("{}/{version}/{}", self.group, self.kind));
        STANDARD.encode(&hash[..8])
    }
}

fn version(value: &Value) -> Version {
    let mut schema = Schema::parse(&value["schema"]["openAPIV3Schema"]);
    schema.kind = Type::Object;
    let text = || Schema { kind: Type::String, ..Schema::default() };
    schema.properties.insert("apiVersion".to_owned(), text());
    schema.properties.insert("kind".to_owned(), text());
    let mut metadata = Schema { reference: Some(Reference::new(OBJECT_META)), ..Schema::default() };
    if let Some(own) = schema.properties.get("metadata") {
        metadata.rules = own.rules.clone();
    }
    schema.properties.insert("metadata".to_owned(), metadata);
    let subresources = &value["subresources"];
    let scale = subresources["scale"].as_object().map(|scale| {
        let path = |name: &str| scale.get(name).and_then(Value::as_str).map(str::to_owned);
        Scale {
            spec: path("specReplicasPath").unwrap_or_default(),
            status: path("statusReplicasPath").unwrap_or_default(),
            selector: path("labelSelectorPath"),
        }
    });
    Version {
        name: value["name"].as_str().unwrap_or_default().to_owned(),
        served: value["served"].as_bool().unwrap_or(false),
        storage: value["storage"].as_bool().unwrap_or(false),
        schema,
        status: subresources["status"].is_object(),
        scale,
        columns: value["additionalPrinterColumns"].as_array().cloned().unwrap_or_default(),
        selectable: value["selectableFields"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|field| {
                Some(field["jsonPath"].as_str()?.trim_start_matches('.').to_owned())
            })
            .collect(),
    }
}
