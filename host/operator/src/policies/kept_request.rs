//! A request that a replica reviewed and keeps for a while, in memory only.

use std::mem::size_of;

use innkeeper_contract::{GroupVersionKind, GroupVersionResource, Operation, User};
use innkeeper_core::review::{Gvk, Gvr, ReviewInput};
use serde_json::value::RawValue;

use super::review_call::{ShownObjects, name_of};

/// The largest request that is kept, in bytes.
pub const REQUEST_BYTES_MAX: usize = 64 << 10;

/// A request that was reviewed, as the policy saw it: digests replace the values of Secrets.
#[derive(Debug)]
pub struct KeptRequest {
    operation: Operation,
    kind: GroupVersionKind,
    resource: GroupVersionResource,
    subresource: Box<str>,
    request_kind: Option<GroupVersionKind>,
    request_resource: Option<GroupVersionResource>,
    name: Box<str>,
    namespace: Box<str>,
    user: User,
    object: Option<Box<str>>,
    old_object: Option<Box<str>>,
    options: Option<Box<str>>,
    dry_run: bool,
    /// The id of the policy whose review of it failed; `None` if that gave a verdict.
    failed_with: Option<Box<str>>,
    bytes: usize,
}

impl KeptRequest {
    /// A request with the objects that the policy saw; `failed_with` is the id of the policy if its
    /// review failed. `None` if the request has more than [`REQUEST_BYTES_MAX`].
    pub fn of(
        input: &ReviewInput<'_>,
        shown: ShownObjects,
        failed_with: Option<&str>,
    ) -> Option<Self> {
        let bytes = bytes(input, &shown);
        if bytes > REQUEST_BYTES_MAX {
            return None;
        }
        let owned_kind = |one: &Gvk<'_>| GroupVersionKind {
            group: one.group.to_owned(),
            version: one.version.to_owned(),
            kind: one.kind.to_owned(),
        };
        let owned_resource = |one: &Gvr<'_>| GroupVersionResource {
            group: one.group.to_owned(),
            version: one.version.to_owned(),
            resource: one.resource.to_owned(),
        };
        Some(Self {
            operation: input.operation,
            kind: owned_kind(&input.kind),
            resource: owned_resource(&input.resource),
            subresource: input.subresource.into(),
            request_kind: input.request_kind.as_ref().map(owned_kind),
            request_resource: input.request_resource.as_ref().map(owned_resource),
            name: input.name.into(),
            namespace: input.namespace.into(),
            user: input.user.clone(),
            object: shown.object.map(Into::into),
            old_object: shown.old_object.map(Into::into),
            options: input.options.map(|options| options.get().into()),
            dry_run: input.dry_run,
            failed_with: failed_with.map(Into::into),
            bytes,
        })
    }

    /// The request as it is reviewed again, with other parameters.
    pub fn input<'a>(&'a self, parameters: &'a str) -> ReviewInput<'a> {
        ReviewInput {
            operation: self.operation,
            kind: borrowed_kind(&self.kind),
            resource: borrowed_resource(&self.resource),
            subresource: &self.subresource,
            request_kind: self.request_kind.as_ref().map(borrowed_kind),
            request_resource: self.request_resource.as_ref().map(borrowed_resource),
            name: &self.name,
            namespace: &self.namespace,
            user: &self.user,
            object: raw(self.object.as_deref()),
            old_object: raw(self.old_object.as_deref()),
            options: raw(self.options.as_deref()),
            dry_run: self.dry_run,
            background: false,
            parameters,
        }
    }

    /// The members that rules match: operation, resource, subresource and namespace.
    pub fn matched_members(&self) -> (Operation, &GroupVersionResource, &str, &str) {
        (self.operation, &self.resource, &self.subresource, &self.namespace)
    }

    /// The namespace of the object; empty for a cluster-scoped object.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Whether the review of the request by the policy with this id failed.
    pub fn failed_with(&self, id: &str) -> bool {
        self.failed_with.as_deref() == Some(id)
    }

    /// About how many bytes of memory the request takes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The request for people: `UPDATE deployments web/a`.
    pub fn title(&self) -> String {
        name_of(&self.input(""))
    }
}

/// About how many bytes of memory a request takes that is kept.
fn bytes(input: &ReviewInput<'_>, shown: &ShownObjects) -> usize {
    let of_list =
        |all: &[String]| -> usize { all.iter().map(|one| one.len() + size_of::<String>()).sum() };
    let of_text = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    let user = input.user;
    let extra = user.extra.iter().map(|(key, values)| key.len() + 64 + of_list(values));
    size_of::<KeptRequest>()
        + of_text(&shown.object)
        + of_text(&shown.old_object)
        + input.options.map_or(0, |options| options.get().len())
        + user.username.len()
        + user.uid.len()
        + of_list(&user.groups)
        + extra.sum::<usize>()
        + input.name.len()
        + input.namespace.len()
        + names(input)
}

/// The bytes of the names of kinds and resources. The API server bounds them; others who reach the
/// port do not.
fn names(input: &ReviewInput<'_>) -> usize {
    let kinds = [Some(input.kind), input.request_kind].into_iter().flatten();
    let kinds = kinds.map(|one| one.group.len() + one.version.len() + one.kind.len());
    let resources = [Some(input.resource), input.request_resource].into_iter().flatten();
    let resources = resources.map(|one| one.group.len() + one.version.len() + one.resource.len());
    input.subresource.len() + kinds.sum::<usize>() + resources.sum::<usize>()
}

fn borrowed_kind(one: &GroupVersionKind) -> Gvk<'_> {
    Gvk { group: &one.group, version: &one.version, kind: &one.kind }
}

fn borrowed_resource(one: &GroupVersionResource) -> Gvr<'_> {
    Gvr { group: &one.group, version: &one.version, resource: &one.resource }
}

/// A text that was JSON when it was kept.
fn raw(text: Option<&str>) -> Option<&RawValue> {
    serde_json::from_str(text?).ok()
}
