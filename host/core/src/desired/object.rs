//! One desired object.

use std::collections::{BTreeMap, BTreeSet};

use innkeeper_contract::{Policy, ValueSource};
use serde_json::Value;

use super::copied_values::{CopiedSource, MissingValues};
use crate::ObjectRef;
use crate::in_sync;
use crate::ownership::PrimaryOwner;

/// One desired object, ready to be applied: with its namespace, its owner reference (or the label
/// of an object that outlives its primary) and the annotation with its digest.
#[derive(Clone, Debug, PartialEq)]
pub struct DesiredObject {
    /// Which object.
    pub object_ref: ObjectRef,
    /// The body to apply, without a guard.
    pub body: Value,
    /// The digest of the body.
    pub(super) digest: String,
    /// How the object differs from an ordinary owned object.
    pub policy: BTreeSet<Policy>,
    /// Whether the cluster need not serve the kind of the object.
    pub optional: bool,
    /// Whether the object belongs to Innkeeper itself: the host never writes it for a module.
    pub is_reserved: bool,
    /// The labels in the guest's object: an object must have them to be adopted.
    pub labels: BTreeMap<String, String>,
    /// Its place in the document of the guest.
    pub position: usize,
    /// The name of its update group, if it is in one.
    pub update_group: Option<String>,
    /// Objects whose values the host copies into the object, each with its namespace.
    pub values: Vec<ValueSource>,
    /// The sources whose placeholders the body has.
    pub copied: Vec<CopiedSource>,
    /// Why the body has no placeholders, if it should.
    pub missing_values: Option<MissingValues>,
}

impl DesiredObject {
    /// Makes an object that the host desires in addition to those of the guest: it completes the
    /// body with its digest.
    pub(crate) fn of_host(
        object_ref: ObjectRef,
        mut body: Value,
        policy: BTreeSet<Policy>,
    ) -> Self {
        let digest = in_sync::set_digest(&mut body);
        Self {
            object_ref,
            body,
            digest,
            policy,
            is_reserved: false,
            optional: false,
            labels: BTreeMap::new(),
            position: usize::MAX,
            update_group: None,
            values: Vec::new(),
            copied: Vec::new(),
            missing_values: None,
        }
    }

    /// Returns the body of a guarded create: with `resourceVersion: "1"` the server answers 409 if
    /// an object of this name exists.
    pub fn create_body(&self) -> Value {
        self.with_metadata("resourceVersion", "1")
    }

    /// Returns the body of a guarded update: with the uid the server answers 409 if the object is
    /// deleted, and 422 if another object has its name.
    pub fn apply_body(&self, uid: &str) -> Value {
        self.with_metadata("uid", uid)
    }

    /// Returns the body of an adoption: the server applies it only to the version whose owners the
    /// host checked.
    pub fn adopt_body(&self, uid: &str, resource_version: &str) -> Value {
        let mut body = self.with_metadata("uid", uid);
        body["metadata"]["resourceVersion"] = resource_version.into();
        body
    }

    /// The digest of the body, as in its annotation.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// The name of the annotation that holds the digest of the body.
    pub fn annotation(&self, primary: &PrimaryOwner) -> String {
        if self.has(Policy::Merge) {
            in_sync::merge_annotation(&primary.merge_manager)
        } else {
            in_sync::APPLIED_ANNOTATION.to_owned()
        }
    }

    /// Whether the guest gave the object a policy.
    pub fn has(&self, policy: Policy) -> bool {
        self.policy.contains(&policy)
    }

    fn with_metadata(&self, name: &str, value: &str) -> Value {
        let mut body = self.body.clone();
        body["metadata"][name] = value.into();
        body
    }
}
