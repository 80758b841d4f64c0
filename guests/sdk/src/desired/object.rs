use serde::Serialize;

use super::member;
use crate::{Metadata, Policy, Resource, ValueSource};

/// A typed object that can be desired: a builder of [`kinds`](crate::kinds), or a struct of the
/// guest's own with `metadata` and the other fields of the kind. The SDK adds `apiVersion` and
/// `kind`.
///
/// The host applies exactly the fields that the object serializes to. A field that is left out
/// belongs to its other field managers, for example `replicas` to an autoscaler.
pub trait Apply: Resource + Serialize {
    /// Returns the object's metadata.
    fn metadata(&self) -> &Metadata;

    /// Returns the object's metadata for changes.
    fn metadata_mut(&mut self) -> &mut Metadata;

    /// Sets the namespace. Without it the object is in the primary's namespace; the Module must
    /// allow another one.
    fn namespace(mut self, namespace: impl Into<String>) -> Self
    where
        Self: Sized,
    {
        self.metadata_mut().namespace = namespace.into();
        self
    }

    /// Adds a label.
    fn label(mut self, key: &str, value: &str) -> Self
    where
        Self: Sized,
    {
        self.metadata_mut().labels.insert(key.to_owned(), value.to_owned());
        self
    }

    /// Adds labels.
    fn labels(mut self, labels: &crate::Labels) -> Self
    where
        Self: Sized,
    {
        self.metadata_mut().labels.extend(labels.clone());
        self
    }

    /// Adds an annotation.
    fn annotation(mut self, key: &str, value: &str) -> Self
    where
        Self: Sized,
    {
        self.metadata_mut().annotations.insert(key.to_owned(), value.to_owned());
        self
    }
}

/// What [`Desired::object`] takes: an [`Apply`], or with the feature `k8s-openapi` a type of that
/// crate. `Source` says which of the two, and is inferred.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be desired",
    note = "implement `Apply` for it with `kind!(Apply for ...)`, or use `Raw`",
    note = "types of k8s-openapi need the feature `k8s-openapi` of innkeeper-sdk, and its version of that crate: use `innkeeper_sdk::k8s_openapi`"
)]
pub trait IntoObject<Source> {
    /// Returns the object without policies, unless it has some.
    fn into_object(self) -> DesiredObject;

    /// Puts the object into an update group: see [`UpdateGroup`](crate::UpdateGroup).
    fn in_update_group(self, group: &str) -> DesiredObject
    where
        Self: Sized,
    {
        let object = self.into_object();
        DesiredObject { update_group: Some(group.to_owned()), ..object }
    }

    /// Lets the host copy the values of another object into this one, which has to be a Secret or
    /// a ConfigMap: see [`ValueSource`]. Several sources add up.
    fn values_from(self, source: ValueSource) -> DesiredObject
    where
        Self: Sized,
    {
        let mut object = self.into_object();
        object.values_from.push(source);
        object
    }

    /// Adds a policy that changes how the host treats the object.
    fn policy(self, policy: Policy) -> DesiredObject
    where
        Self: Sized,
    {
        let mut object = self.into_object();
        object.policy.push(policy);
        object
    }
}

/// Says that an object is an [`Apply`].
pub enum ByApply {}

/// Says that an object is a [`DesiredObject`].
pub enum ByDesired {}

impl IntoObject<ByDesired> for DesiredObject {
    fn into_object(self) -> DesiredObject {
        self
    }
}

impl<T: Apply + 'static> IntoObject<ByApply> for T {
    fn into_object(self) -> DesiredObject {
        DesiredObject::new(Box::new(self))
    }
}

/// [`Apply`] as a trait object, so that one list holds objects of several kinds.
pub(crate) trait AnyObject {
    fn api_version(&self) -> &str;
    fn kind(&self) -> &str;
    fn metadata(&self) -> &Metadata;
    fn metadata_mut(&mut self) -> &mut Metadata;
    fn write(&self, text: &mut Vec<u8>) -> serde_json::Result<()>;
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Typed<'a, T> {
    api_version: &'static str,
    kind: &'static str,
    #[serde(flatten)]
    object: &'a T,
}

impl<T: Apply> AnyObject for T {
    fn api_version(&self) -> &str {
        T::API_VERSION
    }

    fn kind(&self) -> &str {
        T::KIND
    }

    fn metadata(&self) -> &Metadata {
        Apply::metadata(self)
    }

    fn metadata_mut(&mut self) -> &mut Metadata {
        Apply::metadata_mut(self)
    }

    fn write(&self, text: &mut Vec<u8>) -> serde_json::Result<()> {
        serde_json::to_writer(
            text,
            &Typed { api_version: T::API_VERSION, kind: T::KIND, object: self },
        )
    }
}

/// A desired object, its policies, its update group and its value sources.
pub struct DesiredObject {
    object: Box<dyn AnyObject>,
    policy: Vec<Policy>,
    update_group: Option<String>,
    values_from: Vec<ValueSource>,
}

impl DesiredObject {
    pub(crate) fn new(object: Box<dyn AnyObject>) -> Self {
        Self { object, policy: Vec::new(), update_group: None, values_from: Vec::new() }
    }

    /// Returns the object's API version.
    pub fn api_version(&self) -> &str {
        self.object.api_version()
    }

    /// Returns the object's kind.
    pub fn kind(&self) -> &str {
        self.object.kind()
    }

    /// Returns the object's metadata.
    pub fn metadata(&self) -> &Metadata {
        self.object.metadata()
    }

    /// Returns the object's metadata for changes.
    pub fn metadata_mut(&mut self) -> &mut Metadata {
        self.object.metadata_mut()
    }

    /// Writes the entry of the `desired` document.
    pub(super) fn write(&self, text: &mut Vec<u8>) -> serde_json::Result<()> {
        text.extend_from_slice(b"{\"object\":");
        self.object.write(text)?;
        if !self.policy.is_empty() {
            member(text, b",\"policy\":", &self.policy)?;
        }
        if let Some(group) = &self.update_group {
            member(text, b",\"updateGroup\":", group)?;
        }
        if !self.values_from.is_empty() {
            member(text, b",\"valuesFrom\":", &self.values_from)?;
        }
        text.push(b'}');
        Ok(())
    }
}
