//! The text of an object from the server, in a type for the kube client.

use std::borrow::Cow;
use std::fmt;

use kube::Resource;
use kube::api::{ApiResource, ObjectMeta};
use kube::core::DynamicResourceScope;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// An object from the server.
pub(super) trait Wire:
    Resource<DynamicType = ApiResource, Scope = DynamicResourceScope>
    + Clone
    + fmt::Debug
    + serde::de::DeserializeOwned
    + Send
{
    /// The object's text.
    fn text(&self) -> &str;
}

/// The text of a whole object. It decodes only the version, which the watcher needs, and what says
/// which object it is.
#[derive(Clone)]
pub(super) struct Raw {
    text: Box<RawValue>,
    metadata: ObjectMeta,
}

impl Wire for Raw {
    fn text(&self) -> &str {
        self.text.get()
    }
}

/// The text of an object's metadata: the host asks the server for no more.
#[derive(Clone, Debug, Deserialize)]
#[serde(transparent)]
pub(super) struct RawMetadata(Raw);

impl Wire for RawMetadata {
    fn text(&self) -> &str {
        self.0.text()
    }
}

impl fmt::Debug for Raw {
    // Without the text: the object may be a Secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Raw").field("bytes", &self.text.get().len()).finish_non_exhaustive()
    }
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Head {
            #[serde(default)]
            metadata: Metadata,
        }
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Metadata {
            namespace: Option<String>,
            name: Option<String>,
            uid: Option<String>,
            #[serde(rename = "resourceVersion")]
            resource_version: Option<String>,
        }
        let text = Box::<RawValue>::deserialize(deserializer)?;
        let head: Head = serde_json::from_str(text.get()).map_err(D::Error::custom)?;
        let Metadata { namespace, name, uid, resource_version } = head.metadata;
        let metadata =
            ObjectMeta { namespace, name, uid, resource_version, ..ObjectMeta::default() };
        Ok(Self { text, metadata })
    }
}

impl Resource for Raw {
    type DynamicType = ApiResource;
    type Scope = DynamicResourceScope;

    fn kind(resource: &ApiResource) -> Cow<'_, str> {
        resource.kind.as_str().into()
    }

    fn group(resource: &ApiResource) -> Cow<'_, str> {
        resource.group.as_str().into()
    }

    fn version(resource: &ApiResource) -> Cow<'_, str> {
        resource.version.as_str().into()
    }

    fn api_version(resource: &ApiResource) -> Cow<'_, str> {
        resource.api_version.as_str().into()
    }

    fn plural(resource: &ApiResource) -> Cow<'_, str> {
        resource.plural.as_str().into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

impl Resource for RawMetadata {
    type DynamicType = ApiResource;
    type Scope = DynamicResourceScope;

    fn metadata_api() -> bool {
        true
    }

    fn kind(resource: &ApiResource) -> Cow<'_, str> {
        Raw::kind(resource)
    }

    fn group(resource: &ApiResource) -> Cow<'_, str> {
        Raw::group(resource)
    }

    fn version(resource: &ApiResource) -> Cow<'_, str> {
        Raw::version(resource)
    }

    fn api_version(resource: &ApiResource) -> Cow<'_, str> {
        Raw::api_version(resource)
    }

    fn plural(resource: &ApiResource) -> Cow<'_, str> {
        Raw::plural(resource)
    }

    fn meta(&self) -> &ObjectMeta {
        self.0.meta()
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        self.0.meta_mut()
    }
}

#[cfg(test)]
mod tests {
    use kube::api::{ObjectList, WatchEvent};

    use super::*;

    #[test]
    fn list_and_event_keep_the_text_of_an_object_unchanged() {
        let text = r#"{"metadata":{"name":"a","resourceVersion":"7"},"x":1.50}"#;
        let list = format!(
            r#"{{"kind":"XList","apiVersion":"v1","metadata":{{"resourceVersion":"9"}},"items":[{text}]}}"#
        );
        let list: ObjectList<Raw> = serde_json::from_str(&list).unwrap();
        assert_eq!(list.items[0].text.get(), text);
        assert_eq!(list.items[0].meta().resource_version.as_deref(), Some("7"));

        let event = format!(r#"{{"type":"ADDED","object":{text}}}"#);
        match serde_json::from_str(&event).unwrap() {
            WatchEvent::Added(Raw { text: got, .. }) => assert_eq!(got.get(), text),
            other => panic!("{other:?}"),
        }
    }
}
