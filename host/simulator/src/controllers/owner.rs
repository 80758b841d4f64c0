//! Who an owner reference means.

use std::sync::Arc;

use serde_json::Value;

use super::client::COLLECTOR;
use super::event::Said;
use super::follow::Place;
use crate::cluster::Cluster;
use crate::object::meta;
use crate::tracked::Tracked;

/// Who calls himself so in Events.
const COMPONENT: &str = "garbage-collector-controller";

/// What an owner reference means to the object that has it.
pub(super) enum Owner {
    /// Such an object is there.
    There(Arc<Tracked>),
    /// None is: not with this name, in this namespace, or another one of that name.
    Absent,
    /// The kind is not served: nothing can be said of it now.
    Unserved,
    /// Something in a namespace cannot own what is in none. That stays so.
    Impossible,
}

impl Cluster {
    /// Looks for an owner as the collector does: by kind and name, where the object is, and then by uid.
    pub(super) fn owner(&self, place: &Place, reference: &Value) -> Owner {
        let text = |name: &str| reference[name].as_str().unwrap_or_default();
        let (group, version) =
            text("apiVersion").split_once('/').unwrap_or(("", text("apiVersion")));
        let kind = self.catalog.all().find(|kind| {
            kind.name == text("kind") && kind.group == group && kind.version == version
        });
        let Some(kind) = kind else { return Owner::Unserved };
        let namespace = if kind.namespaced { place.key.0.as_str() } else { "" };
        if kind.namespaced && namespace.is_empty() {
            return Owner::Impossible;
        }
        let key = (namespace.to_owned(), text("name").to_owned());
        let found = self.object(&kind.key, &key);
        found.filter(|owner| meta(owner, "uid") == text("uid")).map_or(Owner::Absent, Owner::There)
    }

    /// Says that an owner is in another namespace, if it is.
    pub(super) fn report_elsewhere(&mut self, place: &Place, object: &Value, reference: &Value) {
        let text = |name: &str| reference[name].as_str().unwrap_or_default();
        let there = self.following.place(text("uid"));
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
        self.say(
            &COLLECTOR,
            object,
            &Said::warning(COMPONENT, "OwnerRefInvalidNamespace", &message),
        );
    }
}
