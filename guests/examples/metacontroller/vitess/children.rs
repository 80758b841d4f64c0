//! How a parent of Vitess orders and counts its children.

use innkeeper_sdk::read::{Custom, StatusCondition};
use innkeeper_sdk::{Condition, Observed, Primary, Raw, Resource, UpdateGroup, condition};

/// Returns a group whose objects the host updates one after the other. Each has to be ready, and
/// to have updated its own objects, before the next one.
pub fn one_by_one(name: &str) -> UpdateGroup {
    UpdateGroup::rolling_in_place(name).check("Ready").check("Synced")
}

/// Returns the names in the specs of all owned objects of a kind, and of those that are ready.
pub fn names<K: Resource>(observed: &Observed<impl Primary>) -> (Vec<String>, Vec<String>) {
    let (mut all, mut ready) = (Vec::new(), Vec::new());
    for child in observed.all_owned::<Raw<K>>() {
        let name = child.object.field("/spec/name").ok().flatten().unwrap_or_default();
        let custom = observed.owned::<Custom<K>>(&child.object.metadata.name);
        if custom.is_some_and(|one| one.object.unready().is_none()) {
            ready.push(String::clone(&name));
        }
        all.push(name);
    }
    all.sort();
    ready.sort();
    (all, ready)
}

/// Returns whether an owned object exists and its condition `Available` is `True`.
pub fn is_available<K: Resource>(observed: &Observed<impl Primary>, name: &str) -> bool {
    let object = observed.owned::<Raw<K>>(name).map(|one| one.object);
    let conditions: Option<Vec<StatusCondition>> =
        object.and_then(|object| object.field("/status/conditions").ok().flatten());
    let is_true = |one: &StatusCondition| one.type_ == "Available" && one.status == "True";
    conditions.is_some_and(|conditions| conditions.iter().any(is_true))
}

/// Returns the condition `Ready`, from the names of what is not ready.
pub fn ready_unless(unready: &[String]) -> Condition {
    if unready.is_empty() {
        condition::ready("AllReady", "everything is ready")
    } else {
        condition::not_ready("InProgress", format!("not ready: {}", unready.join(", ")))
    }
}

/// Returns those of the expected names that are not among the ready ones, each with its kind.
pub fn missing(
    kind: &str,
    expected: impl Iterator<Item = String>,
    ready: &[String],
) -> Vec<String> {
    expected.filter(|name| !ready.contains(name)).map(|name| format!("{kind} {name}")).collect()
}
