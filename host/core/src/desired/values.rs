//! The value sources of a desired object: their checks against the contract and the grants.

use std::collections::{BTreeMap, BTreeSet};

use innkeeper_contract::{Policy, UpdateMethod, ValueSource, ValueSourceKind};
use serde_json::Value;

use super::error::InvalidDesired;
use crate::host_names::Grants;
use crate::host_objects;
use crate::ownership::PrimaryOwner;
use crate::value_source::{self, KEYS_MAX, SOURCES_MAX, ValueSourceGrant};
use crate::{ObjectRef, foreign, names, object};

/// How many bytes of an invalid name or key a message quotes.
const QUOTED_BYTES_MAX: usize = 253;

/// The members of a Secret or a `ConfigMap` that hold values.
const VALUES: [&str; 3] = ["data", "stringData", "binaryData"];

/// A desired object, as far as its value sources depend on it.
#[derive(Debug)]
pub(super) struct Target<'a> {
    /// Kind and name.
    pub(super) object_ref: &'a ObjectRef,
    /// The object as the guest gives it.
    pub(super) object: &'a Value,
    /// Its policies.
    pub(super) policy: &'a BTreeSet<Policy>,
    /// How its update group is updated, if it is in one.
    pub(super) update_method: Option<UpdateMethod>,
    /// The primary, in whose namespace a source without a namespace is.
    pub(super) primary: &'a PrimaryOwner,
    /// What the Module grants.
    pub(super) grants: Grants<'a>,
}

/// Reads the value sources of a desired object, each with its namespace.
///
/// # Errors
/// Returns the first violation of the contract, or the first source that the Module does not grant.
pub(super) fn read(
    sources: &[ValueSource],
    target: &Target<'_>,
) -> Result<Vec<ValueSource>, InvalidDesired> {
    let what = || target.object_ref.to_string();
    let malformed = |problem: String| InvalidDesired::Malformed { what: what(), problem };
    if sources.is_empty() {
        return target.check_merge().map(|()| Vec::new()).map_err(malformed);
    }
    target.check().map_err(malformed)?;
    if sources.len() > SOURCES_MAX {
        return Err(malformed(format!(
            "valuesFrom has {} sources; give at most {SOURCES_MAX}",
            sources.len()
        )));
    }
    let mut taken = keys_of(target.object);
    let mut read = Vec::with_capacity(sources.len());
    for (index, source) in sources.iter().enumerate() {
        let place = |problem: String| malformed(format!("valuesFrom[{index}]: {problem}"));
        let source = target.complete(source).map_err(place)?;
        if let Some(keys) = &source.keys {
            take_keys(keys, &mut taken).map_err(place)?;
        }
        target.check_grant(&source).map_err(|problem| InvalidDesired::ValueSourceNotGranted {
            what: what(),
            source_ref: format!("{} {}/{}", source.kind, source.namespace, source.name),
            problem,
        })?;
        read.push(source);
    }
    Ok(read)
}

/// The keys of the values that a Secret or a `ConfigMap` holds.
pub(super) fn keys_of(object: &Value) -> BTreeSet<String> {
    let members = VALUES.iter().filter_map(|member| object.get(member)?.as_object());
    members.flat_map(|values| values.keys().cloned()).collect()
}

impl Target<'_> {
    /// Checks that the answer to a merge confirms no guess of a copied value: the API server
    /// accepts a value that another manager holds only if it is the same.
    fn check_merge(&self) -> Result<(), String> {
        let grants_secrets =
            || self.grants.value_sources.iter().any(|one| one.kind == ValueSourceKind::Secret);
        let is_merge = self.policy.contains(&Policy::Merge)
            && object::holds_secrets(&self.object_ref.kind)
            && grants_secrets();
        let member = ["data", "stringData", "immutable"]
            .into_iter()
            .find(|member| is_merge && self.object.get(member).is_some());
        match member {
            Some(member) => Err(format!(
                "a guest whose Module grants Secrets as value sources does not merge {member} into a Secret, since the API server's answer would confirm a guess; leave it out"
            )),
            None => Ok(()),
        }
    }

    /// Checks that the host may copy values into the object at all.
    fn check(&self) -> Result<(), String> {
        let is_of = |kind| *self.object_ref.kind == value_source::kind_of(kind);
        if !is_of(ValueSourceKind::Secret) && !is_of(ValueSourceKind::ConfigMap) {
            return Err(format!(
                "valuesFrom is for Secrets and ConfigMaps, not for {}; leave it out",
                self.object_ref.kind
            ));
        }
        for (policy, why) in [
            (Policy::Merge, "the object belongs to another owner"),
            (Policy::Orphan, "a copy is deleted with its primary"),
        ] {
            if self.policy.contains(&policy) {
                return Err(format!(
                    "valuesFrom excludes the policy {}, since {why}",
                    if policy == Policy::Merge { "merge" } else { "orphan" }
                ));
            }
        }
        if matches!(
            self.update_method,
            Some(UpdateMethod::Recreate | UpdateMethod::RollingRecreate)
        ) {
            return Err(
                "valuesFrom excludes an update group that recreates; give the group the method InPlace, RollingInPlace or OnDelete"
                    .to_owned(),
            );
        }
        if self.object.get("immutable").is_some_and(|immutable| !immutable.is_null()) {
            return Err("valuesFrom excludes immutable, since the object must follow its sources"
                .to_owned());
        }
        for member in VALUES {
            if self
                .object
                .get(member)
                .is_some_and(|values| !values.is_object() && !values.is_null())
            {
                return Err(format!("{member} is not an object"));
            }
        }
        Ok(())
    }

    /// A source with its namespace, once its names are checked.
    fn complete(&self, source: &ValueSource) -> Result<ValueSource, String> {
        let mut source = source.clone();
        if *self.object_ref.kind != value_source::kind_of(source.kind) {
            return Err(format!(
                "the host copies a {} into objects of the same kind only",
                source.kind
            ));
        }
        if source.namespace.is_empty() {
            self.primary.object_ref.key.namespace().clone_into(&mut source.namespace);
        }
        if source.namespace.is_empty() {
            return Err("namespace is missing, and the primary is cluster-scoped".to_owned());
        }
        if !names::is_label(&source.namespace) {
            return Err(format!(
                "namespace {:?} is not a name that Kubernetes allows",
                foreign::one_line(&source.namespace, QUOTED_BYTES_MAX)
            ));
        }
        if !names::is_subdomain(&source.name) {
            return Err(format!(
                "name {:?} is not a name that Kubernetes allows",
                foreign::one_line(&source.name, QUOTED_BYTES_MAX)
            ));
        }
        let key = &self.object_ref.key;
        if (key.namespace(), key.name()) == (&*source.namespace, &*source.name) {
            return Err("the source is the object itself".to_owned());
        }
        Ok(source)
    }

    /// Checks that the Module grants a source, its keys and the namespace of the object.
    fn check_grant(&self, source: &ValueSource) -> Result<(), String> {
        // No Module can grant a source there; the host refuses it whatever the grants say.
        if host_objects::is_namespace_of(&source.namespace, self.grants.host_namespace) {
            return Err(
                "the source belongs to Innkeeper itself; have the guest leave it out".into()
            );
        }
        let is_source = |grant: &&ValueSourceGrant| {
            (grant.kind, grant.key.namespace(), grant.key.name())
                == (source.kind, &*source.namespace, &*source.name)
        };
        let grant = self.grants.value_sources.iter().find(is_source).ok_or(
            "the Module does not grant this source; add it to spec.valueSources of the Module",
        )?;
        if let Some(granted) = &grant.keys {
            let keys = source.keys.as_ref().ok_or(
                "the Module grants some keys of this source only; have the guest name its keys",
            )?;
            if let Some(key) = keys.keys().find(|key| !granted.contains(key)) {
                return Err(format!(
                    "the Module does not grant the key `{key}` of this source; add it to its keys in spec.valueSources of the Module"
                ));
            }
        }
        let namespace = self.object_ref.key.namespace();
        if !grant.to_namespaces.contains(namespace) {
            return Err(format!(
                "the Module does not grant copies of this source into namespace {namespace}; add the namespace to its toNamespaces in spec.valueSources of the Module"
            ));
        }
        Ok(())
    }
}

/// Checks the keys of a source, and adds those that they get in the object.
fn take_keys(keys: &BTreeMap<String, String>, taken: &mut BTreeSet<String>) -> Result<(), String> {
    if keys.is_empty() {
        return Err("keys is empty; name a key, or leave keys out for all keys".to_owned());
    }
    if keys.len() > KEYS_MAX {
        return Err(format!("keys has {} entries; give at most {KEYS_MAX}", keys.len()));
    }
    for (key, key_here) in keys {
        for key in [key, key_here] {
            if !names::is_data_key(key) {
                return Err(format!(
                    "{:?} is not a key that Kubernetes allows",
                    foreign::one_line(key, QUOTED_BYTES_MAX)
                ));
            }
        }
        if !taken.insert(key_here.clone()) {
            return Err(format!(
                "the object already has the key `{key_here}`, of its own or from another source"
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
