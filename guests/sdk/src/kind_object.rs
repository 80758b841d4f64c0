use innkeeper_contract::KindName;
use serde::Serialize;
use serde_json::Value;

use crate::desired::{AnyObject, DesiredObject, IntoObject};
use crate::{Apply as _, Metadata, Raw};

crate::kind!(
    /// A kind that is known when the guest runs.
    Any, "", ""
);

/// A desired object of a kind that a parameter of the Module names
/// ([`Describe::owns_parameter`](crate::Describe::owns_parameter)). Read one with
/// [`Context::get_of`](crate::Context::get_of).
///
/// ```
/// use innkeeper_sdk::serde_json::json;
/// use innkeeper_sdk::{Desired, KindName, KindObject};
///
/// let kind = KindName { api_version: "v1".into(), kind: "ConfigMap".into() };
/// Desired::new().object(KindObject::new(&kind, "web", json!({ "data": { "text": "hello" } })));
/// ```
#[derive(Clone, Debug)]
pub struct KindObject {
    kind: KindName,
    object: Raw<Any>,
}

impl KindObject {
    /// Creates an object of a kind with this name. `members` is a JSON object with the other
    /// members, as for [`Raw::new`].
    pub fn new(kind: &KindName, name: impl Into<String>, members: Value) -> Self {
        Self { kind: kind.clone(), object: Raw::new(name, members) }
    }

    /// Returns the metadata for changes.
    pub fn metadata_mut(&mut self) -> &mut Metadata {
        &mut self.object.metadata
    }

    /// Adds a label.
    pub fn label(mut self, key: &str, value: &str) -> Self {
        self.object = self.object.label(key, value);
        self
    }
}

/// Says that an object has a kind of its own.
pub enum ByKindName {}

impl IntoObject<ByKindName> for KindObject {
    fn into_object(self) -> DesiredObject {
        DesiredObject::new(Box::new(self))
    }
}

impl AnyObject for KindObject {
    fn api_version(&self) -> &str {
        &self.kind.api_version
    }

    fn kind(&self) -> &str {
        &self.kind.kind
    }

    fn metadata(&self) -> &Metadata {
        &self.object.metadata
    }

    fn metadata_mut(&mut self) -> &mut Metadata {
        &mut self.object.metadata
    }

    fn write(&self, text: &mut Vec<u8>) -> serde_json::Result<()> {
        #[derive(Serialize)]
        struct Typed<'a> {
            #[serde(flatten)]
            kind: &'a KindName,
            #[serde(flatten)]
            object: &'a Raw<Any>,
        }
        serde_json::to_writer(text, &Typed { kind: &self.kind, object: &self.object })
    }
}
