//! What the host does with one desired object.

use innkeeper_contract::Policy;
use serde_json::Value;

use super::conflict::Conflict;
use super::input::Input;
use super::prune::may_be_deleted;
use super::skip_reason::SkipReason;
use super::state::{Lookup, RejectedApply};
use super::step::{Action, ApplyReason};
use super::values::merge_into_copy;
use crate::desired::DesiredObject;
use crate::fieldset::FieldSet;
use crate::in_sync::{self, LastApplied};
use crate::ownership::{Ownership, PrimaryOwner};
use crate::{Manager, Object, consent, drift};

/// Decides what to do with one desired object.
pub(super) fn plan_desired(
    input: &Input<'_>,
    desired_object: &DesiredObject,
    lookup: &Lookup,
) -> Action {
    if desired_object.is_reserved {
        return Action::Skip(SkipReason::Reserved);
    }
    let object = match lookup {
        Lookup::Found(object) => object,
        Lookup::Absent if desired_object.has(Policy::Merge) => {
            return Action::Skip(SkipReason::MergeTargetMissing);
        }
        Lookup::Absent => return plan_create(input, desired_object),
        Lookup::Unknown => return Action::Skip(SkipReason::Unknown),
        Lookup::NotServed if desired_object.optional => {
            return Action::Skip(SkipReason::OptionalNotServed);
        }
        Lookup::NotServed => return Action::Skip(SkipReason::NotServed),
        Lookup::Unreadable(reason) => return Action::Skip(SkipReason::Unreadable(reason.clone())),
    };
    if desired_object.has(Policy::Merge) {
        return plan_merge(input, desired_object, object);
    }
    // The desired object is the primary itself, perhaps in another version of its kind.
    if !object.uid.is_empty() && object.uid == input.primary.uid {
        return Action::Skip(SkipReason::conflict(Conflict::Primary));
    }
    match input.primary.ownership(object) {
        Ownership::Foreign(controller) => {
            Action::Skip(SkipReason::conflict(Conflict::Controlled(controller)))
        }
        _ if object.is_terminating() => Action::Skip(SkipReason::Terminating),
        // Labels that the guest merged must not decide whether the object is adopted.
        Ownership::Unowned if input.adopt && input.primary.has_merged(object) => {
            Action::Unmerge { uid: object.uid.clone() }
        }
        Ownership::Unowned
            if input.primary.is_retained(object)
                || input.adopt
                    && missing_labels(object, desired_object).is_empty()
                    && !input.primary.is_made_for_another_outside_namespace(
                        &desired_object.object_ref,
                        object,
                    ) =>
        {
            match rejected(input, desired_object) {
                Some(rejected) => plan_rejected(input, desired_object, object, rejected),
                None => Action::Adopt {
                    uid: object.uid.clone(),
                    resource_version: object.resource_version.clone(),
                },
            }
        }
        Ownership::Unowned => {
            Action::Skip(SkipReason::conflict(unowned(input, desired_object, object)))
        }
        Ownership::Own => plan_owned(input, desired_object, object),
    }
}

/// Decides about an object that the primary merges into. It may belong to anyone, so the host
/// applies without force: the server reports a field of another manager as a conflict.
fn plan_merge(input: &Input<'_>, desired_object: &DesiredObject, object: &Object) -> Action {
    if object.is_terminating() {
        return Action::Skip(SkipReason::Terminating);
    }
    if let Some(rejected) = merge_into_copy(desired_object, object) {
        return Action::Skip(SkipReason::Rejected(rejected));
    }
    let last_applied = input.state.applied.get(&desired_object.object_ref);
    let manager = &input.primary.merge_manager;
    if is_in_sync(last_applied, desired_object, object, manager) {
        return Action::Skip(SkipReason::InSync);
    }
    if let Some(rejected) = rejected(input, desired_object) {
        return Action::Skip(SkipReason::Rejected(rejected.clone()));
    }
    let reason = apply_reason(last_applied, desired_object, object, input.primary, manager);
    Action::Merge { uid: object.uid.clone(), reason }
}

fn plan_create(input: &Input<'_>, desired_object: &DesiredObject) -> Action {
    match rejected(input, desired_object) {
        // An immutable field does not prevent a create.
        Some(rejected) if !rejected.immutable => {
            Action::Skip(SkipReason::Rejected(rejected.clone()))
        }
        _ => Action::Create,
    }
}

fn plan_owned(input: &Input<'_>, desired_object: &DesiredObject, object: &Object) -> Action {
    if desired_object.has(Policy::CreateOnly) && input.primary.has_applied(object) {
        return Action::Skip(SkipReason::CreateOnly);
    }
    let last_applied = input.state.applied.get(&desired_object.object_ref);
    let manager = &input.primary.manager;
    if is_in_sync(last_applied, desired_object, object, manager) {
        return Action::Skip(SkipReason::InSync);
    }
    if let Some(rejected) = rejected(input, desired_object) {
        return plan_rejected(input, desired_object, object, rejected);
    }
    if let Some(fight) = input.state.reverts.field_fight(&desired_object.object_ref, input.now) {
        return Action::Skip(SkipReason::FieldContested(fight));
    }
    let reason = apply_reason(last_applied, desired_object, object, input.primary, manager);
    Action::Apply { uid: object.uid.clone(), reason }
}

/// Decides about a body that the server rejected: recreates the object if that helps and the policy
/// allows it.
fn plan_rejected(
    input: &Input<'_>,
    desired_object: &DesiredObject,
    object: &Object,
    rejected: &RejectedApply,
) -> Action {
    let recreate = rejected.immutable
        && desired_object.has(Policy::RecreateWhenImmutable)
        && may_be_deleted(input.primary, &desired_object.object_ref, object);
    if recreate {
        Action::Recreate { uid: object.uid.clone(), dry_run_first: false }
    } else {
        Action::Skip(SkipReason::Rejected(rejected.clone()))
    }
}

/// Whether applying the desired object would change nothing.
fn is_in_sync(
    last_applied: Option<&LastApplied>,
    desired_object: &DesiredObject,
    object: &Object,
    manager: &Manager,
) -> bool {
    match last_applied {
        Some(last_applied) => {
            last_applied.is_in_sync_with(desired_object.digest(), object, manager)
        }
        None => in_sync::is_in_sync_after_restart(object, manager, &desired_object.body),
    }
}

/// Whether the desired object changed, another manager changed the live one, or neither, and the
/// owner reference names another version of the primary's kind.
fn apply_reason(
    last_applied: Option<&LastApplied>,
    desired_object: &DesiredObject,
    object: &Object,
    primary: &PrimaryOwner,
    manager: &Manager,
) -> ApplyReason {
    let was_applied = |digest: &str| match last_applied {
        Some(last_applied) => last_applied.has_digest(digest),
        None => object.annotation(&desired_object.annotation(primary)).as_deref() == Some(digest),
    };
    let is_same_version = was_applied(desired_object.digest());
    let applied = if is_same_version {
        desired_object.digest().to_owned()
    } else {
        match in_sync::digest_in_version_of_owner(&desired_object.body, object) {
            Some(digest) if was_applied(&digest) => digest,
            _ => return ApplyReason::Changed,
        }
    };
    let other = object
        .other_managers
        .iter()
        .rfind(|other| &*other.subresource != "status")
        .map_or_else(|| "another manager".to_owned(), |other| other.name.to_string());
    let entry = object.applied_by(manager).and_then(|fields| FieldSet::parse(&fields).ok());
    let mut fields = drift::lost_fields(&desired_object.body, &entry.unwrap_or_default());
    if fields.is_empty() && !object.text.read().contains(&applied) {
        // The write was under the manager's own name, as a late one of another host is.
        let annotation = Value::from(desired_object.annotation(primary));
        fields.push(format!(".metadata.annotations[{annotation}]"));
    }
    if fields.is_empty() && !is_same_version {
        return ApplyReason::OwnerVersion;
    }
    ApplyReason::Drift { fields, other }
}

/// The rejection of this body, if the server rejected it before.
fn rejected<'a>(input: &Input<'a>, desired_object: &DesiredObject) -> Option<&'a RejectedApply> {
    input
        .state
        .rejected
        .get(&desired_object.object_ref)
        .filter(|rejected| rejected.digest == desired_object.digest())
}

/// Why the primary does not adopt an object without a controller.
fn unowned(input: &Input<'_>, desired_object: &DesiredObject, object: &Object) -> Conflict {
    let object_ref = &desired_object.object_ref;
    if input.primary.is_made_for_another_outside_namespace(object_ref, object) {
        return Conflict::MadeForOtherNamespace;
    }
    if !input.adopt {
        return Conflict::NotAdopted;
    }
    Conflict::LabelsMissing(missing_labels(object, desired_object))
}

/// The labels of the desired object, `name=value`, without which the existing one is not adopted.
/// Labels that a guest merged do not count.
fn missing_labels(object: &Object, desired_object: &DesiredObject) -> Vec<String> {
    let labels = desired_object.labels.iter().filter(|(name, value)| {
        object.labels.get(name) != Some(value) || consent::is_merged_label(object, name)
    });
    labels.map(|(name, value)| format!("{name}={value}")).collect()
}
