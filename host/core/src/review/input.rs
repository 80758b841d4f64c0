//! A request to review, borrowed from its receiver.

use innkeeper_contract::{Operation, User};
use serde::Serialize;
use serde_json::value::RawValue;

/// A kind in one version of its group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Gvk<'a> {
    /// The API group; empty for the core group.
    pub group: &'a str,
    /// The version of the group.
    pub version: &'a str,
    /// The kind, CamelCase and singular.
    pub kind: &'a str,
}

/// A resource in one version of its group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Gvr<'a> {
    /// The API group; empty for the core group.
    pub group: &'a str,
    /// The version of the group.
    pub version: &'a str,
    /// The resource as in URLs, without a subresource.
    pub resource: &'a str,
}

/// A request to review. The members are those of `innkeeper_contract::ReviewRequest`.
#[derive(Clone, Copy, Debug)]
pub struct ReviewInput<'a> {
    /// What the request does to the object.
    pub operation: Operation,
    /// The kind of the objects, in the version of the rule.
    pub kind: Gvk<'a>,
    /// The resource, in the version of the rule.
    pub resource: Gvr<'a>,
    /// The subresource; empty for none.
    pub subresource: &'a str,
    /// The kind as the client sent it.
    pub request_kind: Option<Gvk<'a>>,
    /// The resource as the client sent it.
    pub request_resource: Option<Gvr<'a>>,
    /// The name of the object; empty if the API server generates it.
    pub name: &'a str,
    /// The namespace of the object; empty for a cluster-scoped object.
    pub namespace: &'a str,
    /// The user who sent the request.
    pub user: &'a User,
    /// The object of the request.
    pub object: Option<&'a RawValue>,
    /// The stored object.
    pub old_object: Option<&'a RawValue>,
    /// The options of the operation.
    pub options: Option<&'a RawValue>,
    /// Whether the API server stores nothing.
    pub dry_run: bool,
    /// Whether the host reviews an existing object, without a request of a client.
    pub background: bool,
    /// The parameters of the Module as JSON; empty for none.
    pub parameters: &'a str,
}

impl<'a> ReviewInput<'a> {
    /// The resource as rules name it: `pods`, or `pods/status` with a subresource.
    pub fn resource_path(&self) -> String {
        let resource = self.resource.resource;
        match self.subresource {
            "" => resource.to_owned(),
            subresource => format!("{resource}/{subresource}"),
        }
    }

    /// Whether the objects are Secrets: by resource or kind, as the rule or the client names them.
    pub fn is_of_secrets(&self) -> bool {
        let is_kind = |one: &Gvk<'_>| one.group.is_empty() && one.kind == "Secret";
        let mut kinds = [self.kind].into_iter().chain(self.request_kind);
        self.resources().any(|one| one.group.is_empty() && one.resource == "secrets")
            || kinds.any(|one| is_kind(&one))
    }

    /// The resource in the version of the rule, and as the client sent it.
    pub(super) fn resources(&self) -> impl Iterator<Item = Gvr<'a>> + use<'a> {
        [self.resource].into_iter().chain(self.request_resource)
    }
}
