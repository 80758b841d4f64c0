//! The served kinds.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use serde_json::{Value, json};

use crate::types::builtin;
use crate::types::builtin::table;
use crate::types::crd::definition::{Definition, VERBS};
use crate::types::kind::{Kind, Shape};
use crate::types::object_key::KindKey;
use crate::types::schema::builtin_types;

/// Group, version and plural, in the order of these.
type Key = String;

fn key(group: &str, version: &str, plural: &str) -> Key {
    [group, version, plural].join("\0")
}

/// All kinds that are served.
#[derive(Debug)]
pub(crate) struct Catalog {
    kinds: BTreeMap<Key, Arc<Kind>>,
}

impl Catalog {
    /// The built-in kinds.
    pub(crate) fn builtin() -> Self {
        let mut catalog = Self { kinds: BTreeMap::new() };
        for (group_version, resources) in &table().resources {
            let (group, version) = group_version.split_once('/').unwrap_or(("", group_version));
            for resource in resources {
                catalog.add_builtin(group, version, resource, resources);
            }
        }
        catalog
    }

    fn add_builtin(&mut self, group: &str, version: &str, resource: &Value, all: &[Value]) {
        let plural = resource["name"].as_str().unwrap_or_default();
        if plural.contains('/') {
            return;
        }
        let kind = resource["kind"].as_str().unwrap_or_default();
        let id = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
        let Some(name) = builtin::table().kinds.get(&format!("{id} {kind}")) else { return };
        let Some(schema) = builtin_types().get(name) else { return };
        let subresources = all
            .iter()
            .filter_map(|one| one["name"].as_str()?.strip_prefix(&format!("{plural}/")))
            .map(str::to_owned)
            .collect();
        let verbs = resource["verbs"].as_array().into_iter().flatten();
        let kind = Kind {
            group: group.to_owned(),
            version: version.to_owned(),
            plural: plural.to_owned(),
            key: (group.to_owned(), plural.to_owned()),
            name: kind.to_owned(),
            namespaced: resource["namespaced"].as_bool().unwrap_or(false),
            verbs: verbs.filter_map(Value::as_str).map(str::to_owned).collect(),
            subresources,
            schema: Shape::Builtin(schema),
            custom: None,
            blank: OnceLock::new(),
        };
        self.insert(kind);
    }

    fn insert(&mut self, kind: Kind) {
        let key = key(&kind.group, &kind.version, &kind.plural);
        self.kinds.insert(key, Arc::new(kind));
    }

    /// Serves the versions of a definition, and no others of its kind.
    pub(crate) fn define(&mut self, definition: &Arc<Definition>) {
        self.forget(&definition.group, &definition.plural);
        for version in &definition.versions {
            if !version.served {
                continue;
            }
            let mut subresources = BTreeSet::new();
            if version.status {
                subresources.insert("status".to_owned());
            }
            if version.scale.is_some() {
                subresources.insert("scale".to_owned());
            }
            self.insert(Kind {
                group: definition.group.clone(),
                version: version.name.clone(),
                plural: definition.plural.clone(),
                key: (definition.group.clone(), definition.plural.clone()),
                name: definition.kind.clone(),
                namespaced: definition.namespaced,
                verbs: VERBS.map(str::to_owned).into(),
                subresources,
                schema: Shape::Own(Box::new(version.schema.clone())),
                custom: Some(definition.clone()),
                blank: OnceLock::new(),
            });
        }
    }

    /// Stops serving a custom kind.
    pub(crate) fn forget(&mut self, group: &str, plural: &str) {
        self.kinds.retain(|_, kind| {
            kind.custom.is_none() || kind.group != group || kind.plural != plural
        });
    }

    /// The definition of a custom kind that is served.
    pub(crate) fn definition(&self, key: &KindKey) -> Option<Arc<Definition>> {
        self.all().find(|kind| kind.custom.is_some() && kind.key == *key)?.custom.clone()
    }

    /// A kind by its path.
    pub(crate) fn get(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Kind>> {
        self.kinds.get(&key(group, version, plural))
    }

    /// All of them.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Kind>> {
        self.kinds.values()
    }

    /// Whether a group has only kinds of definitions.
    pub(crate) fn is_builtin_group(group: &str) -> bool {
        group.is_empty() || table().groups.contains_key(group)
    }

    /// The resources of a group and version, as discovery shows them.
    pub(crate) fn resources(&self, group: &str, version: &str) -> Option<Vec<Value>> {
        let id = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
        if let Some(resources) = table().resources.get(&id) {
            return Some(resources.clone());
        }
        let mut found = Vec::new();
        for kind in self.all().filter(|kind| kind.group == group && kind.version == version) {
            let Some(custom) = &kind.custom else { continue };
            found.push(custom.resource(version));
            for name in &kind.subresources {
                let mut one = json!({
                    "name": format!("{}/{name}", kind.plural),
                    "singularName": "",
                    "namespaced": kind.namespaced,
                    "kind": kind.name,
                    "verbs": ["get", "patch", "update"],
                });
                if name == "scale" {
                    one["group"] = "autoscaling".into();
                    one["version"] = "v1".into();
                    one["kind"] = "Scale".into();
                }
                found.push(one);
            }
        }
        (!found.is_empty()).then_some(found)
    }

    /// All groups and versions that are served.
    pub(crate) fn group_versions(&self) -> BTreeSet<(String, String)> {
        let known = table().resources.keys().map(|id| id.split_once('/').unwrap_or(("", id)));
        let known = known.map(|(group, version)| (group.to_owned(), version.to_owned()));
        let custom = self.all().filter(|kind| kind.custom.is_some());
        known.chain(custom.map(|kind| (kind.group.clone(), kind.version.clone()))).collect()
    }

    /// The versions of a group of definitions.
    pub(crate) fn custom_versions(&self) -> BTreeMap<String, BTreeSet<String>> {
        let mut groups: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for kind in self.all().filter(|kind| kind.custom.is_some()) {
            groups.entry(kind.group.clone()).or_default().insert(kind.version.clone());
        }
        groups
    }
}
