//! The types of the crate `k8s-openapi` as desired, owned and read objects.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::{ClusterResourceScope, Metadata as HasMetadata, NamespaceResourceScope};
use serde::Serialize;

use crate::desired::{AnyObject, IntoObject};
use crate::{DesiredObject, Metadata, Resource, Scope};

/// The scope of a kind as a value.
pub trait ScopeValue {
    /// The scope.
    const SCOPE: Scope;
}

impl ScopeValue for NamespaceResourceScope {
    const SCOPE: Scope = Scope::Namespaced;
}

impl ScopeValue for ClusterResourceScope {
    const SCOPE: Scope = Scope::Cluster;
}

impl<K> Resource for K
where
    K: k8s_openapi::Resource<Scope: ScopeValue>,
{
    const API_VERSION: &'static str = K::API_VERSION;
    const KIND: &'static str = K::KIND;
    const PLURAL: &'static str = K::URL_PATH_SEGMENT;
    const SCOPE: Scope = <K::Scope as ScopeValue>::SCOPE;
}

/// Says that an object is a type of `k8s-openapi`.
pub enum ByOpenApi {}

impl<K> IntoObject<ByOpenApi> for K
where
    K: HasMetadata<Ty = ObjectMeta> + Resource + Serialize + Clone + 'static,
{
    fn into_object(mut self) -> DesiredObject {
        let metadata = take(self.metadata_mut());
        DesiredObject::new(Box::new(OpenApiObject { metadata, object: self }))
    }
}

/// An object and its metadata as other guests may change it.
struct OpenApiObject<K> {
    metadata: Metadata,
    /// The object without the fields that `metadata` has.
    object: K,
}

impl<K> AnyObject for OpenApiObject<K>
where
    K: HasMetadata<Ty = ObjectMeta> + Resource + Serialize + Clone,
{
    fn api_version(&self) -> &str {
        <K as Resource>::API_VERSION
    }

    fn kind(&self) -> &str {
        <K as Resource>::KIND
    }

    fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    fn metadata_mut(&mut self) -> &mut Metadata {
        &mut self.metadata
    }

    fn write(&self, text: &mut Vec<u8>) -> serde_json::Result<()> {
        let mut object = self.object.clone();
        let Metadata { name, namespace, labels, annotations, .. } = self.metadata.clone();
        let metadata = object.metadata_mut();
        metadata.name = Some(name).filter(|name| !name.is_empty());
        metadata.namespace = Some(namespace).filter(|namespace| !namespace.is_empty());
        metadata.labels = Some(labels).filter(|labels| !labels.is_empty());
        metadata.annotations = Some(annotations).filter(|annotations| !annotations.is_empty());
        let mut object = serde_json::to_value(object)?;
        if let Some(members) = object.as_object_mut() {
            // It belongs to the controller of the kind; the host refuses an object that has it.
            members.remove("status");
        }
        serde_json::to_writer(text, &object)
    }
}

/// Takes what a guest may desire, and drops what the API server and the host set: the object may
/// be a copy of one that the guest has read. The finalizers of a copy belong to other controllers.
fn take(metadata: &mut ObjectMeta) -> Metadata {
    let taken = std::mem::take(metadata);
    let is_copy = taken.uid.is_some() || taken.resource_version.is_some();
    metadata.finalizers = taken.finalizers.filter(|_| !is_copy);
    Metadata {
        name: taken.name.unwrap_or_default(),
        namespace: taken.namespace.unwrap_or_default(),
        labels: taken.labels.unwrap_or_default(),
        annotations: taken.annotations.unwrap_or_default(),
        ..Metadata::default()
    }
}
