//! The controllers of CustomResourceDefinitions: accepts their names, serves their kinds, deletes
//! their objects.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::apply::managed_object::ManagedObject;
use crate::controllers::client;
use crate::controllers::client::{API_SERVER, DEFINITIONS};
use crate::controllers::garbage_collector;
use crate::state::cluster::{Cluster, DefinitionHooks};
use crate::types::crd::conversion;
use crate::types::crd::definition::{Definition, has_condition};
use crate::types::object::{finalizers, is_terminating, meta, set_finalizers};
use crate::types::object_key::{Key, KindKey};

/// The hooks that the API server calls when it writes definitions and custom resources.
pub(crate) const HOOKS: DefinitionHooks = DefinitionHooks {
    written: establish,
    removed,
    custom_object_removed: finish_deletions,
    begin_deletion,
};

/// Holds a definition until its objects are gone.
const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

fn key_of(name: &str) -> Key {
    (String::new(), name.to_owned())
}

/// Sets a condition. Returns whether that changed it.
fn set_condition(
    object: &mut Value,
    now: &str,
    name: &str,
    status: &str,
    why: (&str, &str),
) -> bool {
    let mut condition = json!({"type": name, "status": status, "reason": why.0, "message": why.1, "lastTransitionTime": now});
    if !object["status"]["conditions"].is_array() {
        object["status"]["conditions"] = json!([]);
    }
    let Some(list) = object["status"]["conditions"].as_array_mut() else { return false };
    let Some(known) = list.iter_mut().find(|one| one["type"] == name) else {
        list.push(condition);
        return true;
    };
    if known["status"] == status {
        condition["lastTransitionTime"] = known["lastTransitionTime"].clone();
    }
    let changes = *known != condition;
    *known = condition;
    changes
}

/// The names that other definitions of the group have: of resources, and of kinds.
#[derive(Default)]
struct Taken {
    resources: BTreeSet<String>,
    kinds: BTreeSet<String>,
}

/// Why a name is not available, or `None`.
fn taken(wanted: &Value, accepted: &Value, used: &BTreeSet<String>) -> Option<String> {
    let name = wanted.as_str().unwrap_or_default();
    (name != accepted.as_str().unwrap_or_default() && used.contains(name))
        .then(|| format!("{name:?} is already in use"))
}

/// The accepted names of a definition, and why it did not get all.
fn names(object: &Value, used: &Taken) -> (Value, Option<(&'static str, String)>) {
    let (wanted, accepted) = (&object["spec"]["names"], &object["status"]["acceptedNames"]);
    let mut given = accepted.clone();
    if !given.is_object() {
        given = json!({"plural": "", "kind": ""});
    }
    let mut conflict = None;
    let mut settle = |name: &str, reason: &'static str, why: Option<String>| match why {
        Some(why) => conflict = Some((reason, why)),
        None => crate::types::object::copy(wanted, &mut given, name),
    };
    for (name, reason) in [("plural", "PluralConflict"), ("singular", "SingularConflict")] {
        settle(name, reason, taken(&wanted[name], &accepted[name], &used.resources));
    }
    let own = accepted["shortNames"].as_array().cloned().unwrap_or_default();
    let short = wanted["shortNames"].as_array().into_iter().flatten();
    let short: Vec<String> = short
        .filter(|one| !own.contains(one))
        .filter_map(|one| taken(one, &Value::Null, &used.resources))
        .collect();
    let why = match short.as_slice() {
        [] => None,
        [one] => Some(one.clone()),
        many => Some(format!("[{}]", many.join(", "))),
    };
    settle("shortNames", "ShortNamesConflict", why);
    for (name, reason) in [("kind", "KindConflict"), ("listKind", "ListKindConflict")] {
        settle(name, reason, taken(&wanted[name], &accepted[name], &used.kinds));
    }
    settle("categories", "", None);
    (given, conflict)
}

/// Accepts the names of a definition, and serves its kinds.
pub(crate) fn establish(cluster: &mut Cluster, object: &Value) {
    let name = meta(object, "name").to_owned();
    let Some(stored) = cluster.object(&DEFINITIONS.key(), &key_of(&name)) else { return };
    let mut stored = Arc::unwrap_or_clone(stored);
    if stored["spec"]["names"] != stored["status"]["acceptedNames"]
        && accept_names(cluster, &mut stored)
    {
        // The write of the status calls this hook again.
        let group = stored["spec"]["group"].clone();
        if client::replace(cluster, &API_SERVER, &DEFINITIONS, "status", stored).is_ok() {
            reconsider_names(cluster, &name, &group);
        }
        return;
    }
    serve(cluster, &stored);
}

/// Writes the accepted names to the status of a definition. Returns whether that changed it.
fn accept_names(cluster: &Cluster, stored: &mut Value) -> bool {
    let group = stored["spec"]["group"].clone();
    let mut used = Taken::default();
    let all = cluster.store.collection(&DEFINITIONS.key()).map(|one| one.objects.values());
    for other in all.into_iter().flatten().map(crate::state::store::Stored::object) {
        if other["spec"]["group"] != group {
            continue;
        }
        let accepted = &other["status"]["acceptedNames"];
        let text = |name: &str| accepted[name].as_str().map(str::to_owned);
        let short = accepted["shortNames"].as_array().into_iter().flatten();
        let short = short.filter_map(Value::as_str).map(str::to_owned);
        used.resources.extend(short.chain(text("plural")).chain(text("singular")));
        used.kinds.extend(text("kind").into_iter().chain(text("listKind")));
    }
    let (given, conflict) = names(stored, &used);
    let mut new = given != stored["status"]["acceptedNames"];
    stored["status"]["acceptedNames"] = given;
    let now = cluster.time();
    let established = has_condition(stored, "Established");
    if let Some((reason, why)) = conflict {
        new |= set_condition(stored, &now, "NamesAccepted", "False", (reason, &why));
        let why = ("NotAccepted", "not all names are accepted");
        if !established {
            new |= set_condition(stored, &now, "Established", "False", why);
        }
        return new;
    }
    let why = ("NoConflicts", "no conflicts found");
    new |= set_condition(stored, &now, "NamesAccepted", "True", why);
    let why = ("InitialNamesAccepted", "the initial names have been accepted");
    new | set_condition(stored, &now, "Established", "True", why)
}

/// Checks the other definitions of a group, since a name may be free now.
fn reconsider_names(cluster: &mut Cluster, name: &str, group: &Value) {
    let all = cluster.store.collection(&DEFINITIONS.key()).map(|one| one.objects.values());
    let others: Vec<Arc<ManagedObject>> = all
        .into_iter()
        .flatten()
        .map(crate::state::store::Stored::object)
        .filter(|other| other["spec"]["group"] == *group && meta(other, "name") != name)
        .filter(|other| other["spec"]["names"] != other["status"]["acceptedNames"])
        .collect();
    for other in others {
        establish(cluster, &other);
    }
}

/// Serves the kinds of a definition, if its names are accepted. Watches end when it has changed, as
/// on a real server.
pub(crate) fn serve(cluster: &mut Cluster, object: &Value) {
    let definition = Arc::new(Definition::read(object));
    let kind = (definition.group.clone(), definition.plural.clone());
    let before = cluster.catalog.definition(&kind);
    if before.as_ref().is_some_and(|before| before.is_same(&definition)) {
        return;
    }
    if has_condition(object, "NamesAccepted") || has_condition(object, "Established") {
        cluster.catalog.define(&definition);
    } else {
        cluster.catalog.forget(&kind.0, &kind.1);
    }
    if before.is_none_or(|before| !before.says_the_same(&definition)) {
        reread_objects(cluster, &kind, &definition);
        cluster.end_watches(&kind);
    }
}

/// Existing objects are read with the defaults and fields of the new definition.
fn reread_objects(cluster: &mut Cluster, kind: &KindKey, definition: &Definition) {
    let Some(collection) = cluster.store.collection(kind) else { return };
    let all: Vec<(Key, ManagedObject)> = collection
        .objects
        .iter()
        .map(|(key, one)| (key.clone(), Arc::unwrap_or_clone(one.object())))
        .collect();
    for (key, object) in all {
        let mut read = object.clone();
        conversion::from_store(definition, &mut read);
        let changed = *read != *object;
        if changed {
            cluster.store.reform(kind, &key, &read);
        }
        cluster.remember_raw(
            kind,
            &key,
            changed || !conversion::is_in_storage_version(definition, &read),
        );
    }
    cluster.store.forget(kind);
}

/// Stops serving a kind. Objects that remain are served again when the kind is defined again.
pub(crate) fn removed(cluster: &mut Cluster, object: &Value) {
    let definition = Definition::read(object);
    cluster.catalog.forget(&definition.group, &definition.plural);
    cluster.end_watches(&(definition.group.clone(), definition.plural));
    reconsider_names(cluster, meta(object, "name"), &object["spec"]["group"]);
}

/// Begins to delete a definition, which waits for its objects. Returns it.
pub(crate) fn begin_deletion(
    cluster: &mut Cluster,
    object: &ManagedObject,
    dry_run: bool,
) -> ManagedObject {
    let mut object = object.clone();
    let now = cluster.time();
    object["metadata"]["deletionTimestamp"] = now.as_str().into();
    let mut held = finalizers(&object);
    if !held.iter().any(|one| one == CLEANUP) {
        held.push(CLEANUP.to_owned());
    }
    set_finalizers(&mut object, &held);
    let why =
        "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon";
    set_condition(&mut object, &now, "Terminating", "True", ("InstanceDeletionPending", why));
    if !dry_run {
        let key = key_of(meta(&object, "name"));
        object = Arc::unwrap_or_clone(cluster.put(&DEFINITIONS.key(), &key, object));
        serve(cluster, &object);
        finish_deletions(cluster);
    }
    object
}

/// Deletes the objects of definitions that are being deleted, and removes those that have none
/// left. Returns whether anything was done.
pub(crate) fn finish_deletions(cluster: &mut Cluster) -> bool {
    let ending: Vec<String> = cluster.work_queue.ending.iter().cloned().collect();
    let mut worked = false;
    for name in ending {
        worked |= finish_deletion(cluster, &key_of(&name));
    }
    worked
}

fn finish_deletion(cluster: &mut Cluster, key: &Key) -> bool {
    let Some(object) = cluster.object(&DEFINITIONS.key(), key) else { return false };
    let mut object = Arc::unwrap_or_clone(object);
    let held = finalizers(&object);
    if !is_terminating(&object) || !held.iter().any(|one| one == CLEANUP) {
        return false;
    }
    let now = cluster.time();
    let mut worked = false;
    let why = ("InstanceDeletionInProgress", "CustomResource deletion is in progress");
    if set_condition(&mut object, &now, "Terminating", "True", why) {
        let Ok(written) = client::replace(cluster, &API_SERVER, &DEFINITIONS, "status", object)
        else {
            return false;
        };
        object = Arc::unwrap_or_clone(written);
        worked = true;
    }
    let why = if has_condition(&object, "Established") {
        let definition = Definition::read(&object);
        let kind = (definition.group, definition.plural);
        let all = cluster.store.collection(&kind).map(|one| one.objects.keys().cloned());
        let all: Vec<Key> = all.into_iter().flatten().collect();
        for one in &all {
            worked |= garbage_collector::delete_quietly(cluster, &kind, one);
        }
        if cluster.store.collection(&kind).is_some_and(|one| !one.objects.is_empty()) {
            return worked;
        }
        ("InstanceDeletionCompleted", "removed all instances")
    } else {
        ("NeverEstablished", "resource was never established")
    };
    set_condition(&mut object, &now, "Terminating", "False", why);
    let kept: Vec<String> = held.into_iter().filter(|one| one != CLEANUP).collect();
    set_finalizers(&mut object, &kept);
    client::replace(cluster, &API_SERVER, &DEFINITIONS, "status", object).is_ok() || worked
}
