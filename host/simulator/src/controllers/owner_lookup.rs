//! Who an owner reference means.

use std::sync::Arc;

use serde_json::Value;

use crate::controllers::client::COLLECTOR;
use crate::controllers::event_recorder;
use crate::controllers::event_recorder::Said;
use crate::state::cluster::Cluster;
use crate::state::managed_object::Tracked;
use crate::state::work_queue::Place;
use crate::types::object::meta;

/// Who calls himself so in Events.
const COMPONENT: &str = "garbage-collector-controller";

/// What an owner reference means to the object that has it.
pub(crate) enum Owner {
    /// Such an object is there.
    There(Arc<Tracked>),
    /// None is: not with this name, in this namespace, or another one of that name.
    Absent,
    /// The kind is not served: nothing can be said of it now.
    Unserved,
    /// Something in a namespace cannot own what is in none. That stays so.
    Impossible,
}

/// Looks for an owner as the collector does: by kind and name, where the object is, and then by uid.
pub(crate) fn find(cluster: &Cluster, place: &Place, reference: &Value) -> Owner {
    let text = |name: &str| reference[name].as_str().unwrap_or_default();
    let (group, version) = text("apiVersion").split_once('/').unwrap_or(("", text("apiVersion")));
    let kind = cluster
        .catalog
        .all()
        .find(|kind| kind.name == text("kind") && kind.group == group && kind.version == version);
    let Some(kind) = kind else { return Owner::Unserved };
    let namespace = if kind.namespaced { place.key.0.as_str() } else { "" };
    if kind.namespaced && namespace.is_empty() {
        return Owner::Impossible;
    }
    let key = (namespace.to_owned(), text("name").to_owned());
    let found = cluster.object(&kind.key, &key);
    found.filter(|owner| meta(owner, "uid") == text("uid")).map_or(Owner::Absent, Owner::There)
}

/// Says that an owner is in another namespace, if it is.
pub(crate) fn report_elsewhere(
    cluster: &mut Cluster,
    place: &Place,
    object: &Value,
    reference: &Value,
) {
    let text = |name: &str| reference[name].as_str().unwrap_or_default();
    let there = cluster.following.place(text("uid"));
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
        &Said::warning(COMPONENT, "OwnerRefInvalidNamespace", &message),
    );
}
