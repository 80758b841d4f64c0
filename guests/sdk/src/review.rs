use innkeeper_contract::{GroupVersionKind, GroupVersionResource, Operation, ReviewRequest, User};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::Verdict;

/// The request that a policy reviews. `O` is the type of its objects.
///
/// Values of a Secret are digests, and `metadata.managedFields` is left out.
pub struct Review<'a, O> {
    request: ReviewRequest<&'a RawValue>,
    object: Option<O>,
    old_object: Option<O>,
}

impl<'a, O: DeserializeOwned> Review<'a, O> {
    /// Parses a `review-request` document.
    ///
    /// # Errors
    /// If it is no such document, or an object is no `O`: why, for people.
    pub(crate) fn parse(text: &'a str) -> Result<Self, String> {
        let request: ReviewRequest<&'a RawValue> = serde_json::from_str(text)
            .map_err(|error| format!("the review request cannot be read: {error}"))?;
        let read = |object: Option<&'a RawValue>, member: &str| {
            let object = object.map(|text| serde_json::from_str(text.get())).transpose();
            object.map_err(|error| {
                format!(
                    "the {member} {} cannot be deserialized into the type that this policy expects: {error}",
                    request.kind.kind
                )
            })
        };
        let object = read(request.object, "new")?;
        let old_object = read(request.old_object, "old")?;
        Ok(Self { request, object, old_object })
    }
}

impl<O> Review<'_, O> {
    /// Returns the object of the request; `None` for `DELETE`.
    pub fn object(&self) -> Option<&O> {
        self.object.as_ref()
    }

    /// Returns the object as it is stored; `None` for `CREATE`.
    pub fn old_object(&self) -> Option<&O> {
        self.old_object.as_ref()
    }

    /// Returns the object of the request, or that which a `DELETE` deletes.
    pub fn any_object(&self) -> Option<&O> {
        self.object().or_else(|| self.old_object())
    }

    /// Returns what the request does to the object.
    pub fn operation(&self) -> Operation {
        self.request.operation
    }

    /// Returns the kind of the objects, in the version of the rule.
    pub fn kind(&self) -> &GroupVersionKind {
        &self.request.kind
    }

    /// Returns the resource of the request, in the version of the rule.
    pub fn resource(&self) -> &GroupVersionResource {
        &self.request.resource
    }

    /// Returns the subresource, such as `scale` or `status`; empty for none.
    pub fn subresource(&self) -> &str {
        &self.request.subresource
    }

    /// Returns the name of the object; empty if the API server is to generate it.
    pub fn name(&self) -> &str {
        &self.request.name
    }

    /// Returns the namespace of the object; empty for a cluster-scoped object.
    pub fn namespace(&self) -> &str {
        &self.request.namespace
    }

    /// Returns who sent the request; nobody if [`is_background`](Self::is_background).
    pub fn user(&self) -> &User {
        &self.request.user
    }

    /// Returns the options of the operation, for example `CreateOptions`; null if unknown.
    pub fn options(&self) -> &Value {
        &self.request.options
    }

    /// Returns whether the API server stores nothing.
    pub fn is_dry_run(&self) -> bool {
        self.request.dry_run
    }

    /// Returns whether this is no request of a client: the host reviews an existing object as if it
    /// were created now.
    pub fn is_background(&self) -> bool {
        self.request.background
    }

    /// Returns the object of the request with all its fields, to change it for
    /// [`Verdict::change`]; null for `DELETE`.
    ///
    /// # Errors
    /// A [failed](Verdict::failed) verdict if the object is nested too deeply.
    pub fn raw(&self) -> Result<Value, Verdict> {
        let Some(object) = self.request.object else { return Ok(Value::Null) };
        serde_json::from_str(object.get())
            .map_err(|error| Verdict::failed(format!("the object cannot be read: {error}")))
    }

    /// Deserializes the Module's `spec.parameters`, which the host has validated against the
    /// manifest's schema. A Module without parameters gives an empty object.
    ///
    /// # Errors
    /// A [failed](Verdict::failed) verdict that says why, if they cannot be deserialized into `T`.
    pub fn parameters<T: DeserializeOwned>(&self) -> Result<T, Verdict> {
        let parameters = &self.request.parameters;
        let empty = Value::Object(Map::new());
        T::deserialize(if parameters.is_null() { &empty } else { parameters })
            .map_err(|error| Verdict::failed(format!("spec.parameters of the Module: {error}")))
    }
}
