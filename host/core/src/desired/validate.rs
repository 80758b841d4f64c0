//! The checks of one desired object, and its completion.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use innkeeper_contract::{Kind, Manifest, OwnedKind, Policy, UpdateGroup};
use serde_json::{Map, Value, json};

use super::error::InvalidDesired;
use super::object::DesiredObject;
use super::{update_groups, values};
use crate::host_names::{self, Grants};
use crate::ownership::PrimaryOwner;
use crate::well_known::{ALLOW_DELETION_ANNOTATION, RETAINED_FOR_LABEL};
use crate::{ObjectKey, ObjectRef, foreign, host_objects, in_sync, known_noops, names};

/// How many bytes of an object's kind and name an error quotes: more than any valid one has.
const QUOTED_BYTES_MAX: usize = 512;

/// Members of `metadata` that a guest may set; all others belong to the server or the host.
const ALLOWED_METADATA: [&str; 5] = ["annotations", "finalizers", "labels", "name", "namespace"];

/// Type, name and namespace of an object as the guest gives them; empty where they are missing.
struct Head<'a> {
    api_version: &'a str,
    kind: &'a str,
    name: &'a str,
    namespace: &'a str,
}

impl<'a> Head<'a> {
    fn of(object: &'a Value) -> Self {
        let text =
            |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        Self {
            api_version: text("/apiVersion"),
            kind: text("/kind"),
            name: text("/metadata/name"),
            namespace: text("/metadata/namespace"),
        }
    }

    /// Checks the names in the head, and that the object has only members that a guest may set.
    ///
    /// # Errors
    /// Returns the first invalid member.
    fn check(&self, object: &Value) -> Result<(), String> {
        let required =
            [("apiVersion", self.api_version), ("kind", self.kind), ("metadata.name", self.name)];
        for (member, value) in required {
            if value.is_empty() {
                return Err(format!("{member} is missing or is not a text"));
            }
        }
        let mut members = object["metadata"].as_object().into_iter().flat_map(Map::keys);
        if let Some(member) = members.find(|member| !ALLOWED_METADATA.contains(&member.as_str())) {
            let member = foreign::one_line(member, QUOTED_BYTES_MAX);
            return Err(format!("metadata.{member} is not the guest's to give"));
        }
        // The name becomes a segment of a URL.
        if !names::is_object_name(self.api_version, self.kind, self.name) {
            return Err("metadata.name is not a name that Kubernetes allows".to_owned());
        }
        if !self.namespace.is_empty() && !names::is_label(self.namespace) {
            return Err("metadata.namespace is not a name that Kubernetes allows".to_owned());
        }
        names::check_metadata(&object["metadata"])?;
        // `kubectl` reads an object with this member as a list, and applies the items instead.
        if object.get("items").is_some() {
            return Err("items is a member of lists, not of objects".to_owned());
        }
        if object.get("status").is_some() {
            return Err("status belongs to the controller of the object".to_owned());
        }
        Ok(())
    }

    /// Finds the kind of the object among those that the manifest says the guest makes.
    ///
    /// # Errors
    /// If it is not declared.
    fn find_owned<'m>(&self, manifest: &'m Manifest) -> Result<&'m OwnedKind, InvalidDesired> {
        let is_same = |owned: &&OwnedKind| {
            owned.kind.api_version == self.api_version && owned.kind.kind == self.kind
        };
        manifest.owned.iter().find(is_same).ok_or_else(|| InvalidDesired::UndeclaredKind {
            what: self.to_string(),
            kind: foreign::one_line(
                format_args!("{} {}", self.api_version, self.kind),
                QUOTED_BYTES_MAX,
            ),
        })
    }

    /// The error of an object that breaks the contract.
    fn malformed(&self, problem: String) -> InvalidDesired {
        InvalidDesired::Malformed { what: self.to_string().trim_end().to_owned(), problem }
    }
}

impl fmt::Display for Head<'_> {
    /// Writes kind and name for an error, as visible text of bounded length.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.kind.is_empty() { "an object" } else { self.kind };
        f.write_str(&foreign::one_line(format_args!("{kind} {}", self.name), QUOTED_BYTES_MAX))
    }
}

/// Checks one object of a `desired` document and completes it.
///
/// # Errors
/// Returns the first violation of the contract.
pub(super) fn read_object(
    desired: &innkeeper_contract::DesiredObject,
    manifest: &Manifest,
    primary: &PrimaryOwner,
    grants: Grants<'_>,
    groups: &[UpdateGroup],
) -> Result<DesiredObject, InvalidDesired> {
    let object = &desired.object;
    let head = Head::of(object);
    let malformed = |problem| head.malformed(problem);
    head.check(object).map_err(malformed)?;

    let owned = head.find_owned(manifest)?;
    let policy: BTreeSet<Policy> = desired.policy.iter().copied().collect();
    let merges = policy.contains(&Policy::Merge);
    check_policies(object, &policy, owned, grants).map_err(malformed)?;
    let object_ref = object_ref_of(&head, &owned.kind, merges, primary, grants)?;
    let group = update_groups::group_of(desired, groups).map_err(malformed)?;
    let values = values::read(
        &desired.values_from,
        &values::Target {
            object_ref: &object_ref,
            object,
            policy: &policy,
            update_method: group.map(|group| group.method),
            primary,
            grants,
        },
    )?;

    let has_finalizer = manifest.finalizer.is_some();
    let mut body =
        complete_body(object, &object_ref, &policy, primary, has_finalizer).map_err(malformed)?;
    let digest = if merges {
        in_sync::set_merge_digest(&mut body, &primary.merge_manager)
    } else {
        in_sync::set_digest(&mut body)
    };
    let is_reserved =
        host_objects::is_object_of(&object_ref.kind, &object_ref.key, grants.host_namespace);
    Ok(DesiredObject {
        object_ref,
        body,
        digest,
        policy,
        optional: owned.optional,
        is_reserved,
        labels: labels_of(object),
        position: 0,
        update_group: group.map(|group| group.name.clone()),
        values,
        copied: Vec::new(),
        missing_values: None,
    })
}

/// Checks that the policies of an object go together, and that they and the names in the object
/// fit the manifest and the grants.
///
/// # Errors
/// Returns the first policy or name that does not.
fn check_policies(
    object: &Value,
    policy: &BTreeSet<Policy>,
    owned: &OwnedKind,
    grants: Grants<'_>,
) -> Result<(), String> {
    let merges = policy.contains(&Policy::Merge);
    if merges && policy.len() > 1 {
        return Err(
            "the policy merge excludes all others, since the object belongs to another owner"
                .to_owned(),
        );
    }
    host_names::check(object, merges, grants)?;
    if owned.merges && !merges {
        return Err(format!(
            "the manifest says that the guest only merges into {}, so it needs the policy merge",
            owned.kind
        ));
    }
    Ok(())
}

/// Kind, namespace and name of an object, which the guest may desire there.
///
/// # Errors
/// If the namespace is invalid or not granted, or if the object is the primary.
fn object_ref_of(
    head: &Head<'_>,
    kind: &Kind,
    merges: bool,
    primary: &PrimaryOwner,
    grants: Grants<'_>,
) -> Result<ObjectRef, InvalidDesired> {
    let namespace =
        namespace_of(kind, head.namespace, primary).map_err(|problem| head.malformed(problem))?;
    let object_ref = ObjectRef::new(Arc::new(kind.clone()), ObjectKey::new(namespace, head.name));
    if !primary.may_own(&object_ref) && !grants.cross_namespace {
        return Err(InvalidDesired::CrossNamespace { what: object_ref.to_string() });
    }
    if !merges && primary.is_at(&object_ref) {
        return Err(head.malformed(
            "it is the primary itself, which the guest does not make: give the policy merge"
                .to_owned(),
        ));
    }
    Ok(object_ref)
}

/// The body to apply but for its digest: the object with its namespace, with the owner reference if
/// the primary owns it, and with the metadata of its policies.
///
/// # Errors
/// If nobody would delete the object with the primary.
fn complete_body(
    object: &Value,
    object_ref: &ObjectRef,
    policy: &BTreeSet<Policy>,
    primary: &PrimaryOwner,
    has_finalizer: bool,
) -> Result<Value, String> {
    let mut body = object.clone();
    known_noops::drop_known_noops(&mut body);
    if object_ref.kind.is_namespaced() {
        body["metadata"]["namespace"] = object_ref.key.namespace().into();
    }
    let merges = policy.contains(&Policy::Merge);
    if policy.contains(&Policy::Orphan) {
        body["metadata"]["labels"][RETAINED_FOR_LABEL] = primary.identity().into();
    } else if primary.may_own(object_ref) && !merges {
        body["metadata"]["ownerReferences"] = json!([primary.owner_reference()]);
    } else if !merges && !has_finalizer {
        // Neither Kubernetes nor the host would delete it.
        return Err(
            "it is outside the primary's namespace, so Kubernetes does not delete it with the primary: declare a finalizer in the manifest, or give the policy orphan".to_owned(),
        );
    }
    if policy.contains(&Policy::Deletable) {
        body["metadata"]["annotations"][ALLOW_DELETION_ANNOTATION] = "true".into();
    }
    Ok(body)
}

/// The labels of an object, without those that are no strings.
fn labels_of(object: &Value) -> BTreeMap<String, String> {
    let labels = object["metadata"]["labels"].as_object().into_iter().flatten();
    labels.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned()))).collect()
}

/// The namespace of an object: the given one, or that of the primary.
fn namespace_of<'a>(
    kind: &Kind,
    given: &'a str,
    primary: &'a PrimaryOwner,
) -> Result<&'a str, String> {
    let home = primary.object_ref.key.namespace();
    match (kind.is_namespaced(), given.is_empty()) {
        (false, true) => Ok(""),
        (false, false) => Err(format!("{kind} is cluster-scoped, so it has no metadata.namespace")),
        (true, false) => Ok(given),
        (true, true) if home.is_empty() => {
            Err("metadata.namespace is missing, and the primary is cluster-scoped".to_owned())
        }
        (true, true) => Ok(home),
    }
}
