//! The note in the annotations of a Namespace, read by a type that names too few fields.

use std::collections::BTreeMap;
use std::fmt;

use innkeeper_sdk::prelude::*;
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};

use crate::run::Run;

/// A Namespace. It says of itself that it has the field `kind` only, and takes the annotations.
#[derive(Default)]
pub(crate) struct NotedNamespace {
    metadata: NotedMetadata,
}

#[derive(Default, Deserialize)]
struct NotedMetadata {
    #[serde(default)]
    annotations: BTreeMap<String, String>,
}

kind!(Resource for NotedNamespace = "Namespace", "v1", "namespaces", Cluster);

impl<'de> Deserialize<'de> for NotedNamespace {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_struct("NotedNamespace", &["kind"], NotedNamespaceVisitor)
    }
}

struct NotedNamespaceVisitor;

impl<'de> Visitor<'de> for NotedNamespaceVisitor {
    type Value = NotedNamespace;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a Namespace")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut members: M) -> Result<NotedNamespace, M::Error> {
        let mut namespace = NotedNamespace::default();
        while let Some(name) = members.next_key::<String>()? {
            if name == "metadata" {
                namespace.metadata = members.next_value()?;
            } else {
                members.next_value::<IgnoredAny>()?;
            }
        }
        Ok(namespace)
    }
}

impl Run<'_> {
    /// The values of the annotations of the Shop's Namespace.
    pub(crate) fn note(&self) -> String {
        let namespace = self.context.get::<NotedNamespace>("", self.observed.namespace());
        let annotations = namespace.map(|found| found.object.metadata.annotations);
        annotations.unwrap_or_default().into_values().collect::<Vec<_>>().join(", ")
    }
}
