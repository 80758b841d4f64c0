//! The values that the host copies into desired objects, from the view that a plan starts from.

use std::collections::BTreeMap;
use std::sync::Arc;

use innkeeper_contract::ValueSource;

use super::skip_reason::SkipReason;
use super::state::{Lookup, RejectedApply};
use super::step::Action;
use crate::desired::{
    CachedSource, DesiredObject, DesiredState, MissingValuesProblem, value_source_ref,
};
use crate::object::holds_secrets;
use crate::{Object, ObjectRef};

/// Puts placeholders for the values of value sources into the bodies of desired objects. `lookup`
/// gives an object of the view; each source is looked up once.
///
/// Call it before [`plan`](super::plan()): an object whose values are missing is skipped.
pub fn place_values(desired: &mut DesiredState, lookup: &mut dyn FnMut(&ObjectRef) -> Lookup) {
    let mut read: BTreeMap<ObjectRef, Result<Arc<CachedSource>, MissingValuesProblem>> =
        BTreeMap::new();
    let mut read = |source: &ValueSource| {
        let object_ref = value_source_ref(source);
        read.entry(object_ref)
            .or_insert_with_key(|object_ref| match lookup(object_ref) {
                Lookup::Found(object) => CachedSource::read(source.kind, &object),
                Lookup::Absent => Err(MissingValuesProblem::Absent),
                Lookup::Unknown => Err(MissingValuesProblem::Unknown),
                Lookup::NotServed => Err(MissingValuesProblem::Unreadable(
                    "the cluster does not serve its kind".to_owned(),
                )),
                Lookup::Unreadable(reason) => Err(MissingValuesProblem::Unreadable(reason)),
            })
            .clone()
    };
    for desired_object in &mut desired.objects {
        desired_object.place_values(&mut read);
    }
}

/// The members of a Secret by which the answer to a merge can confirm a guess of a value.
const GUESSES: [&str; 3] = ["data", "stringData", "immutable"];

/// Why the host does not merge into a copy: the API server accepts a value that another manager
/// holds only if it is the same, so its answer would confirm a guess.
pub(super) fn merge_into_copy(
    desired_object: &DesiredObject,
    live: &Object,
) -> Option<RejectedApply> {
    let member = GUESSES.into_iter().find(|member| desired_object.body.get(member).is_some())?;
    (holds_secrets(&desired_object.object_ref.kind) && live.has_copied_values()).then(|| RejectedApply {
        digest: desired_object.digest().to_owned(),
        reason: "ValuesCopied".to_owned(),
        message: format!(
            "the host copied values into it, so that no guest merges {member} into it; have the guest leave {member} out"
        ),
        immutable: false,
    })
}

/// What the host does with an object whose values are missing: it writes nothing, and an existing
/// copy stays as it is.
pub(super) fn without_values(action: Action, desired_object: &DesiredObject) -> Action {
    let Some(missing) = &desired_object.missing_values else { return action };
    match action {
        Action::Create
        | Action::Apply { .. }
        | Action::Merge { .. }
        | Action::Adopt { .. }
        | Action::Recreate { .. }
        | Action::Unmerge { .. }
        | Action::Skip(
            SkipReason::InSync | SkipReason::FieldContested(_) | SkipReason::Rejected(_),
        ) => Action::Skip(SkipReason::MissingValues(missing.clone())),
        Action::Delete { .. } | Action::Skip(_) => action,
    }
}
