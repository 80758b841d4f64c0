//! Desired objects that are one object: the cluster serves it in two versions of its kind, or in
//! two groups.

use std::collections::BTreeMap;

use super::conflict::Conflict;
use super::skip_reason::SkipReason;
use super::state::Lookup;
use super::step::{Action, Step};
use crate::ObjectRef;
use crate::desired::DesiredObject;

/// Skips every desired object that is the same as one before it: each apply would undo the other,
/// and a group that recreates would delete the object again and again. `objects` and `lookups` are
/// those of the steps, in the same order.
pub(super) fn skip(steps: &mut [Step], objects: &[DesiredObject], lookups: &[Lookup]) {
    let mut by_uid: BTreeMap<&str, &ObjectRef> = BTreeMap::new();
    let mut by_name = BTreeMap::new();
    for ((step, object), lookup) in steps.iter_mut().zip(objects).zip(lookups) {
        let object_ref = &object.object_ref;
        let uid = match lookup {
            Lookup::Found(live) if !live.uid.is_empty() => Some(&*live.uid),
            // A guest may desire the object in whichever version the cluster serves.
            Lookup::NotServed => continue,
            _ => None,
        };
        // No other object has the name in another version, also if no object has it yet.
        let name = (object_ref.kind.group(), &object_ref.kind.kind, &object_ref.key);
        let of_uid = uid.and_then(|uid| by_uid.get(uid));
        let first = of_uid.or_else(|| by_name.get(&name)).copied();
        by_name.entry(name).or_insert(object_ref);
        if let Some(uid) = uid {
            by_uid.entry(uid).or_insert(object_ref);
        }
        let is_refused =
            matches!(step.action, Action::Skip(SkipReason::Reserved | SkipReason::Conflict { .. }));
        if let Some(first) = first.filter(|_| !is_refused) {
            step.action = Action::Skip(SkipReason::conflict(Conflict::SameObject(first.clone())));
        }
    }
}
