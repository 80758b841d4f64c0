//! Finds the object that an owner reference names.

use std::sync::Arc;

use serde_json::Value;

use crate::apply::managed_object::ManagedObject;
use crate::controllers::client::COLLECTOR;
use crate::controllers::event_recorder;
use crate::controllers::event_recorder::EventSpec;
use crate::state::cluster::Cluster;
use crate::types::object::meta;
use crate::types::object_key::ObjectRef;

/// The source of its Events.
const COMPONENT: &str = "garbage-collector-controller";

/// The result of looking up an owner reference.
pub(crate) enum OwnerLookup {
    /// The owner exists.
    Found(Arc<ManagedObject>),
    /// The owner does not exist: no object has this name here, or it has another uid.
    Absent,
    /// The kind is not served, so the owner may exist or not.
    NotServed,
    /// A namespaced object cannot own a cluster-scoped one, now or later.
    Invalid,
}

/// Looks up an owner as the collector does: by kind and name in the namespace of the object, and
/// then by uid.
pub(crate) fn find(cluster: &Cluster, place: &ObjectRef, reference: &Value) -> OwnerLookup {
    let text = |name: &str| reference[name].as_str().unwrap_or_default();
    let (group, version) = text("apiVersion").split_once('/').unwrap_or(("", text("apiVersion")));
    let kind = cluster
        .catalog
        .all()
        .find(|kind| kind.name == text("kind") && kind.group == group && kind.version == version);
    let Some(kind) = kind else { return OwnerLookup::NotServed };
    let namespace = if kind.namespaced { place.key.0.as_str() } else { "" };
    if kind.namespaced && namespace.is_empty() {
        return OwnerLookup::Invalid;
    }
    let key = (namespace.to_owned(), text("name").to_owned());
    let found = cluster.object(&kind.key, &key);
    found
        .filter(|owner| meta(owner, "uid") == text("uid"))
        .map_or(OwnerLookup::Absent, OwnerLookup::Found)
}

/// Records an Event if an owner is in another namespace.
pub(crate) fn report_elsewhere(
    cluster: &mut Cluster,
    place: &ObjectRef,
    object: &Value,
    reference: &Value,
) {
    let text = |name: &str| reference[name].as_str().unwrap_or_default();
    let there = cluster.work_queue.place(text("uid"));
    let elsewhere =
        there.is_some_and(|there| !there.key.0.is_empty() && there.key.0 != place.key.0);
    if !elsewhere {
        return;
    }
    let namespace = &place.key.0;
    let message = format!(
        "ownerRef [{}/{}, namespace: {namespace}, name: {}, uid: {}] does not exist in namespace {namespace:?}",
        text("apiVersion"),
        text("kind"),
        text("name"),
        text("uid"),
    );
    event_recorder::record(
        cluster,
        &COLLECTOR,
        object,
        &EventSpec::warning(COMPONENT, "OwnerRefInvalidNamespace", &message),
    );
}
