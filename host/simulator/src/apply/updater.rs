//! Who owns what after a write, and what an apply makes of the object.

use serde_json::Value;

use crate::apply::compare::{Comparison, compare};
use crate::apply::field_manager_conflict::Conflicts;
use crate::apply::fieldset::FieldSet;
use crate::apply::managed_fields::{Manager, Managers, Operation, Owned, cap};
use crate::apply::merge::merge;
use crate::apply::node::Node;
use crate::apply::owned::fields;
use crate::apply::remove::remove;
use crate::mutation::{Mutation, is_active};
use crate::types::value;

/// Where and how a write is made.
pub(crate) struct Write<'a> {
    /// The object's schema.
    pub(crate) node: Node<'a>,
    /// Group and version, as in objects.
    pub(crate) version: &'a str,
    /// Fields that the request cannot write, and so does not own.
    pub(crate) ignored: &'a FieldSet,
    /// The present time, as in objects.
    pub(crate) now: &'a str,
}

/// What an apply makes.
pub(crate) struct Applied {
    /// The object, without managedFields; `None` if nothing changes.
    pub(crate) object: Option<Value>,
    pub(crate) managers: Managers,
}

/// Fields without an owner.
fn unowned() -> &'static FieldSet {
    static SET: std::sync::OnceLock<FieldSet> = std::sync::OnceLock::new();
    SET.get_or_init(|| {
        FieldSet::of(&[
            &["apiVersion"],
            &["kind"],
            &["metadata"],
            &["metadata", "name"],
            &["metadata", "namespace"],
            &["metadata", "creationTimestamp"],
            &["metadata", "selfLink"],
            &["metadata", "uid"],
            &["metadata", "clusterName"],
            &["metadata", "generation"],
            &["metadata", "managedFields"],
            &["metadata", "resourceVersion"],
        ])
    })
}

fn strip(managers: &mut Managers) {
    for (_, owned) in managers.iter_mut() {
        owned.subtract(unowned());
    }
    managers.retain(|_, owned| !owned.set().is_empty());
}

/// Takes from the managers what others have changed. `own` is asked nothing.
fn disown(
    managers: &mut Managers,
    changed: &FieldSet,
    removed: &FieldSet,
    own: Option<&Manager>,
    force: bool,
) -> Result<(), Conflicts> {
    let mut conflicts = Conflicts::new();
    for (manager, owned) in managers.iter() {
        if Some(manager) == own {
            continue;
        }
        if owned.set().overlaps(changed) {
            conflicts.insert(manager.clone(), owned.set().intersection(changed));
        }
    }
    if !force && !conflicts.is_empty() {
        return Err(conflicts);
    }
    for (manager, owned) in managers.iter_mut() {
        if Some(manager) == own {
            continue;
        }
        if let Some(taken) = conflicts.get(manager)
            && !is_active(Mutation::UpdateLeavesOwners)
        {
            owned.subtract(taken);
        }
        if !is_active(Mutation::RemovalLeavesOwners) {
            owned.subtract(removed);
        }
    }
    managers.retain(|_, owned| !owned.set().is_empty());
    Ok(())
}

/// Brings what managers own into the form of a schema that was another one when they wrote.
pub(crate) fn reconcile(node: Node<'_>, managers: &mut Managers) {
    for (_, owned) in managers.iter_mut() {
        let joined = owned.set().joined(node);
        if joined != *owned.set() {
            *owned.change() = joined;
        }
    }
}

/// The managers after `live` has become `new` by anything but an apply..
pub(crate) fn update(
    write: &Write<'_>,
    live: &Value,
    new: &Value,
    mut managers: Managers,
    manager: &Manager,
) -> Managers {
    let Comparison { removed, modified: mut set, added } =
        compare(write.node, live, new).without(write.ignored);
    set.extend(&added);
    // With force nothing is in conflict.
    let _ = disown(&mut managers, &set, &removed, None, true);
    set.subtract(unowned());
    if !set.is_empty() {
        let owned = managers
            .entry(manager.clone())
            .or_insert_with(|| Owned::new(FieldSet::default(), write.version, None));
        if owned.set().is_empty() {
            *owned.change() = set;
        } else if !set.is_within(owned.set()) {
            owned.change().extend(&set);
        }
        owned.time = Some(write.now.to_owned());
    }
    strip(&mut managers);
    if !is_active(Mutation::NoCapOfManagers) {
        cap(&mut managers);
    }
    managers
}

/// Applies `applied` to `live`, both without managedFields.
pub(crate) fn apply(
    write: &Write<'_>,
    live: &Value,
    applied: &Value,
    mut managers: Managers,
    manager: &Manager,
    force: bool,
) -> Result<Applied, Conflicts> {
    let node = write.node;
    let merged = merge(node, live, applied);
    let last = managers.remove(manager);
    let time = last.as_ref().and_then(|owned| owned.time.clone());
    let mut set = fields(node, applied);
    if !is_active(Mutation::StatusIsOwned) {
        set.cut(write.ignored);
    }
    // What was applied last time and is again stays.
    let last =
        last.filter(|last| !last.set().is_within(&set) && !is_active(Mutation::ApplyNeverRemoves));
    managers.insert(manager.clone(), Owned::new(set, write.version, time));
    let new = match last {
        Some(last) => prune(node, &merged, &managers, last.set()),
        _ => merged,
    };
    let Comparison { removed, modified: mut changed, added } =
        compare(node, live, &new).without(write.ignored);
    changed.extend(&added);
    disown(&mut managers, &changed, &removed, Some(manager), force)?;
    strip(&mut managers);
    let changed = !value::same(live, &new);
    if changed && let Some(owned) = managers.get_mut(manager) {
        owned.time = Some(write.now.to_owned());
    }
    Ok(Applied { object: changed.then_some(new), managers })
}

/// Removes fields that the manager applied last time and not now, and no other manager owns.
fn prune(node: Node<'_>, merged: &Value, managers: &Managers, last: &FieldSet) -> Value {
    let last = last.with_named(node);
    let pruned = remove(node, merged, &last);
    // Fields with another owner come back.
    let mut owned = FieldSet::default();
    for (manager, theirs) in managers {
        if manager.operation == Operation::Apply || !is_active(Mutation::UpdatersDoNotKeep) {
            owned.extend(theirs.set());
        }
    }
    let all = fields(node, merged).with_named(node);
    let kept = fields(node, &pruned).with_named(node).union(&owned.with_named(node));
    let pruned = remove(node, merged, &all.difference(&kept));
    // So does what this manager did not apply last time.
    let rest = fields(node, &pruned).with_named(node);
    remove(node, merged, &all.difference(&rest).intersection(&last))
}
