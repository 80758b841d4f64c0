//! One kind in one version, as the server knows it.

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use serde_json::Value;

use crate::apply::managed_object::ManagedObject;
use crate::apply::node::Node;
use crate::types::builtin::table;
use crate::types::crd::definition::Definition;
use crate::types::object_key::KindKey;
use crate::types::schema::{Schema, builtin_types};

/// One kind in one version.
#[derive(Debug)]
pub(crate) struct Kind {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) plural: String,
    /// Where its objects are stored, whatever their version.
    pub(crate) key: KindKey,
    /// Its name in objects.
    pub(crate) name: String,
    pub(crate) namespaced: bool,
    pub(crate) verbs: BTreeSet<String>,
    /// `status`, `scale` and so on.
    pub(crate) subresources: BTreeSet<String>,
    pub(crate) schema: Shape,
    /// Its definition, if it is no built-in kind.
    pub(crate) custom: Option<Arc<Definition>>,
    /// An empty object of the kind, made when it is first needed.
    pub(crate) blank: OnceLock<Arc<ManagedObject>>,
}

/// Whose schema a kind has.
#[derive(Debug)]
pub(crate) enum Shape {
    Builtin(&'static Schema),
    Own(Box<Schema>),
}

impl Kind {
    /// The kind of a built-in subresource that is no object of its own.
    pub(crate) fn of_subresource(group: &str, version: &str, name: &str, of: &str) -> Self {
        static NOTHING: OnceLock<Schema> = OnceLock::new();
        let schema = builtin_types().get(of);
        Self {
            group: group.to_owned(),
            version: version.to_owned(),
            plural: String::new(),
            key: (group.to_owned(), String::new()),
            name: name.to_owned(),
            namespaced: true,
            verbs: BTreeSet::new(),
            subresources: BTreeSet::new(),
            schema: Shape::Builtin(schema.unwrap_or_else(|| NOTHING.get_or_init(Schema::default))),
            custom: None,
            blank: OnceLock::new(),
        }
    }

    /// Group and version, as in objects.
    pub(crate) fn api_version(&self) -> String {
        match self.group.as_str() {
            "" => self.version.clone(),
            group => format!("{group}/{}", self.version),
        }
    }

    /// The schema of its objects.
    pub(crate) fn schema(&self) -> &Schema {
        match &self.schema {
            Shape::Builtin(schema) => schema,
            Shape::Own(schema) => schema,
        }
    }

    /// The root for merging.
    pub(crate) fn node(&self) -> Node<'_> {
        Node::root(self.schema())
    }

    /// Whether a subresource knows a verb.
    pub(crate) fn allows(&self, subresource: &str, verb: &str) -> bool {
        if self.custom.is_some() {
            return matches!(verb, "get" | "patch" | "update");
        }
        let Some(all) = table().resources.get(&self.api_version()) else { return false };
        let name = |one: &Value| {
            let name = one["name"].as_str().unwrap_or_default();
            let sub = name.strip_prefix(self.plural.as_str());
            sub.and_then(|sub| sub.strip_prefix('/')) == Some(subresource)
        };
        let verbs = all.iter().find(|one| name(one)).and_then(|one| one["verbs"].as_array());
        verbs.into_iter().flatten().any(|one| one == verb)
    }

    /// Whether this is the built-in kind of that group.
    pub(crate) fn is(&self, group: &str, kind: &str) -> bool {
        self.custom.is_none() && self.group == group && self.name == kind
    }
}
