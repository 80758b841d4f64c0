//! The checks of one desired object, and its completion.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use innkeeper_contract::{Kind, Manifest, Policy};
use serde_json::{Map, Value, json};

use super::error::InvalidDesired;
use super::object::DesiredObject;
use crate::host_names::{self, Grants};
use crate::ownership::Primary;
use crate::well_known::{ALLOW_DELETION_ANNOTATION, RETAINED_FOR_LABEL};
use crate::{ObjectKey, ObjectRef, foreign, host_objects, in_sync, known_noops, names};

/// How many bytes of an object's kind and name an error quotes: more than any valid one has.
const QUOTED_BYTES_MAX: usize = 512;

/// Members of `metadata` that a guest may set; all others belong to the server or the host.
const ALLOWED_METADATA: [&str; 5] = ["annotations", "finalizers", "labels", "name", "namespace"];

/// Checks one object of a `desired` document and completes it.
///
/// # Errors
/// Returns the first violation of the contract.
pub(super) fn read_object(
    desired: &innkeeper_contract::DesiredObject,
    manifest: &Manifest,
    primary: &Primary,
    grants: Grants<'_>,
) -> Result<DesiredObject, InvalidDesired> {
    let object = &desired.object;
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let (api_version, kind_name) = (text("/apiVersion"), text("/kind"));
    let (name, given_namespace) = (text("/metadata/name"), text("/metadata/namespace"));
    let what = || {
        let kind = if kind_name.is_empty() { "an object" } else { kind_name };
        foreign::one_line(format_args!("{kind} {name}"), QUOTED_BYTES_MAX)
    };
    let malformed =
        |problem: String| InvalidDesired::Malformed { what: what().trim_end().to_owned(), problem };

    for (member, value) in
        [("apiVersion", api_version), ("kind", kind_name), ("metadata.name", name)]
    {
        if value.is_empty() {
            return Err(malformed(format!("{member} is missing or is not a text")));
        }
    }
    let members = object["metadata"].as_object().into_iter().flat_map(Map::keys);
    if let Some(member) =
        members.into_iter().find(|member| !ALLOWED_METADATA.contains(&member.as_str()))
    {
        let member = foreign::one_line(member, QUOTED_BYTES_MAX);
        return Err(malformed(format!("metadata.{member} is not the guest's to give")));
    }
    // The name becomes a segment of a URL.
    if !names::is_object_name(api_version, kind_name, name) {
        return Err(malformed("metadata.name is not a name that Kubernetes allows".to_owned()));
    }
    if !given_namespace.is_empty() && !names::is_label(given_namespace) {
        return Err(malformed(
            "metadata.namespace is not a name that Kubernetes allows".to_owned(),
        ));
    }
    names::check_metadata(&object["metadata"]).map_err(malformed)?;
    // `kubectl` reads an object with this member as a list, and applies the items instead.
    if object.get("items").is_some() {
        return Err(malformed("items is a member of lists, not of objects".to_owned()));
    }
    if object.get("status").is_some() {
        return Err(malformed("status belongs to the controller of the object".to_owned()));
    }

    let owned = manifest
        .owned
        .iter()
        .find(|owned| owned.kind.api_version == api_version && owned.kind.kind == kind_name)
        .ok_or_else(|| InvalidDesired::UndeclaredKind {
            what: what(),
            kind: foreign::one_line(format_args!("{api_version} {kind_name}"), QUOTED_BYTES_MAX),
        })?;
    let policy: BTreeSet<Policy> = desired.policy.iter().copied().collect();
    let merges = policy.contains(&Policy::Merge);
    if merges && policy.len() > 1 {
        return Err(malformed(
            "the policy merge goes with no other: the object is somebody else's".to_owned(),
        ));
    }

    host_names::check(object, merges, grants).map_err(malformed)?;
    if owned.merges && !merges {
        return Err(malformed(format!(
            "the manifest says that the guest only merges into {}, so it needs the policy merge",
            owned.kind
        )));
    }

    let namespace = namespace_of(&owned.kind, given_namespace, primary).map_err(malformed)?;
    let object_ref = ObjectRef::new(Arc::new(owned.kind.clone()), ObjectKey::new(namespace, name));
    let at_home = primary.may_own(&object_ref);
    if !at_home && !grants.cross_namespace {
        return Err(InvalidDesired::CrossNamespace { what: object_ref.to_string() });
    }
    if host_objects::is_object_of(&object_ref.kind, &object_ref.key, grants.host_namespace) {
        return Err(InvalidDesired::Reserved { what: object_ref.to_string() });
    }
    if !merges && primary.is_at(&object_ref) {
        return Err(malformed(
            "it is the primary itself, which a guest does not make: give the policy merge"
                .to_owned(),
        ));
    }

    let mut body = object.clone();
    known_noops::drop_known_noops(&mut body);
    if owned.kind.is_namespaced() {
        body["metadata"]["namespace"] = namespace.into();
    }
    let orphan = policy.contains(&Policy::Orphan);
    if orphan {
        body["metadata"]["labels"][RETAINED_FOR_LABEL] = primary.identity().into();
    } else if at_home && !merges {
        body["metadata"]["ownerReferences"] = json!([primary.owner_reference()]);
    } else if !merges && manifest.finalizer.is_none() {
        // Neither Kubernetes nor the host would delete it.
        return Err(malformed(
            "it lies outside the primary's namespace, so Kubernetes does not delete it with the primary: the guest must ask for a finalizer, or give the policy orphan".to_owned(),
        ));
    }
    if policy.contains(&Policy::Deletable) {
        body["metadata"]["annotations"][ALLOW_DELETION_ANNOTATION] = "true".into();
    }
    let digest = if merges {
        in_sync::set_merge_digest(&mut body, &primary.merge_manager)
    } else {
        in_sync::set_digest(&mut body)
    };
    let labels = labels_of(object);
    Ok(DesiredObject { object_ref, body, digest, policy, optional: owned.optional, labels })
}

fn labels_of(object: &Value) -> BTreeMap<String, String> {
    let labels = object["metadata"]["labels"].as_object().into_iter().flatten();
    labels.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned()))).collect()
}

fn namespace_of<'a>(kind: &Kind, given: &'a str, primary: &'a Primary) -> Result<&'a str, String> {
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
