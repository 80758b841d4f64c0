//! What to write, from what is wanted and what is: an ordered list of steps, each with its
//! reason.
//!
//! The same code plans in the running host, in `innkeeper render` and in replays. A plan
//! decides and does nothing; the room `apply` of the operator carries it out.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use innkeeper_contract::Policy;
use jiff::Timestamp;
use litemap::LiteMap;

use crate::desired::{DesiredObject, DesiredState};
use crate::field_fights::{FieldFight, RevertHistory};
use crate::fieldset::FieldSet;
use crate::in_sync::{self, LastApplied};
use crate::old_names::DELETABLE_ANNOTATION;
use crate::ownership::{Controller, Ownership, Primary};
use crate::{Manager, Object, ObjectRef, consent, drift, order};

pub use crate::well_known::ALLOW_DELETION_ANNOTATION;

/// Kinds that hold data or other objects: never deleted by prune or recreate, unless the
/// object said `deletable` when it was last applied (rule 6).
const PROTECTED: [(&str, &str); 4] = [
    ("", "PersistentVolumeClaim"),
    ("", "PersistentVolume"),
    ("", "Namespace"),
    ("apiextensions.k8s.io", "CustomResourceDefinition"),
];

/// What the caches say about one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// An object is there.
    Found(Arc<Object>),
    /// Nothing is there.
    Absent,
    /// A write's answer was lost, or the server contradicted the cache: only a live read tells.
    Unknown,
    /// The server does not serve the kind.
    NotServed,
    /// The kind cannot be read now; the text says why.
    Unreadable(String),
}

/// What is known of the rounds before, of one primary.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlanState {
    /// What was applied last, as its answer showed it.
    pub applied: LiteMap<ObjectRef, LastApplied>,
    /// What the server refuses for good, until something else is wanted.
    pub rejected: BTreeMap<ObjectRef, Rejected>,
    /// What was set back, and when.
    pub reverts: RevertHistory,
    /// The round before was complete and all its applies succeeded.
    pub clean: bool,
}

/// A body that the server refused for good.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejected {
    /// The digest of the body.
    pub digest: String,
    /// One CamelCase word.
    pub reason: String,
    /// What the server said.
    pub message: String,
    /// It was an immutable field, so that a recreate would help.
    pub immutable: bool,
}

/// All that a plan is made from.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct Input<'a> {
    /// The primary.
    pub primary: &'a Primary,
    /// What the guest wants.
    pub desired: &'a DesiredState,
    /// The outcome was `complete`: what is not wanted goes.
    pub complete: bool,
    /// What is at the names of `desired.objects`, one for one.
    pub lookups: &'a [Lookup],
    /// The objects that the primary owns, made or merged into.
    pub owned: &'a [(ObjectRef, Arc<Object>)],
    /// The rounds before.
    pub state: &'a PlanState,
    /// All declared kinds could be read (an optional one may be unserved).
    pub readable: bool,
    /// The primary adopts objects that nobody owns.
    pub adopt: bool,
    /// The primary is being deleted: what is to outlive it stays.
    pub deleting: bool,
    /// The time.
    pub now: Timestamp,
}

/// What to do, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// The steps: applies in the order of [`order`], then deletes the other way.
    pub steps: Vec<Step>,
    /// Something is to be pruned as soon as one more round has been clean.
    pub prune_pending: bool,
    /// What is no longer wanted, goes, and is not gone yet: as long as there is such a thing, a
    /// primary that is being deleted keeps its finalizer.
    pub pending_deletion: Vec<ObjectRef>,
}

/// One step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The object.
    pub object_ref: ObjectRef,
    /// Where in `desired.objects` the object is, if it is wanted.
    pub desired_index: Option<usize>,
    /// What to do.
    pub action: Action,
}

/// What to do with one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Apply it, if nothing is there.
    Create,
    /// Apply it to the object of this uid.
    Apply {
        /// The uid that was observed.
        uid: Box<str>,
        /// Why.
        reason: ApplyReason,
    },
    /// Take over an object that nobody owns, if it is still of this version.
    Adopt {
        /// The uid that was observed.
        uid: Box<str>,
        /// The version whose owners were checked.
        resource_version: Box<str>,
    },
    /// Merge the wanted fields into it: it is somebody else's.
    Merge {
        /// The uid that was observed.
        uid: Box<str>,
        /// Why.
        reason: ApplyReason,
    },
    /// Take the merged fields back: they are no longer wanted.
    Unmerge {
        /// The uid that was observed.
        uid: Box<str>,
    },
    /// Delete it, to make it anew: an immutable field has to change.
    Recreate {
        /// The uid that was observed.
        uid: Box<str>,
    },
    /// Delete it: it is no longer wanted.
    Delete {
        /// The uid that was observed.
        uid: Box<str>,
    },
    /// Leave it as it is.
    Skip(SkipReason),
}

/// Why an object is applied that is already there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApplyReason {
    /// Something else is wanted than was applied last.
    Changed,
    /// Somebody else changed fields of ours.
    Drift {
        /// The fields, as in `.spec.replicas`.
        fields: Vec<String>,
        /// The other manager, as far as the server says.
        other: String,
    },
}

/// Why an object is left as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SkipReason {
    /// It is as it should be.
    InSync,
    /// It is made once and then left alone.
    CreateOnly,
    /// Its kind is not served, and that is no error.
    OptionalNotServed,
    /// Its kind is not served.
    NotServed,
    /// Its kind cannot be read; the text says why.
    Unreadable(String),
    /// A live read must tell first what is there.
    Unknown,
    /// It is not ours.
    Conflict(Controller),
    /// Another object of this primary is not ours, so nothing is created.
    Blocked(ObjectRef),
    /// It is being deleted; what is wanted is made when it is gone.
    Terminating,
    /// Somebody else sets the same field again and again.
    FieldContested(FieldFight),
    /// The server refuses it for good.
    Rejected(Rejected),
    /// It is no longer wanted and stays, since its kind holds data.
    Protected,
    /// It is no longer wanted and goes after one more clean round.
    PrunePending,
    /// It is no longer wanted since the primary goes, and is to outlive it.
    Retained,
    /// Fields are to be merged into it, and it does not exist.
    MergeTargetMissing,
}

impl SkipReason {
    /// Whether something is wrong: the primary is then not in the state that the guest wants.
    pub fn is_problem(&self) -> bool {
        match self {
            Self::NotServed
            | Self::Unreadable(_)
            | Self::Unknown
            | Self::Conflict(_)
            | Self::Blocked(_)
            | Self::FieldContested(_)
            | Self::Rejected(_)
            | Self::MergeTargetMissing => true,
            Self::InSync
            | Self::CreateOnly
            | Self::OptionalNotServed
            | Self::Terminating
            | Self::Protected
            | Self::PrunePending
            | Self::Retained => false,
        }
    }
}

/// Makes a plan.
pub fn plan(input: &Input<'_>) -> Plan {
    let mut steps: Vec<Step> = input
        .desired
        .objects
        .iter()
        .zip(input.lookups)
        .enumerate()
        .map(|(index, (desired_object, seen))| Step {
            object_ref: desired_object.object_ref.clone(),
            desired_index: Some(index),
            action: plan_desired(input, desired_object, seen),
        })
        .collect();
    block_creates(&mut steps);

    let mut prune_pending = false;
    let mut going = Vec::new();
    if input.complete {
        let mut prunes = plan_prunes(input);
        let unmerged = |object_ref: &ObjectRef| {
            let is_unmerge = |step: &Step| matches!(step.action, Action::Unmerge { .. });
            steps.iter().any(|step| step.object_ref == *object_ref && is_unmerge(step))
        };
        prunes.extend(plan_unmerges(input).filter(|step| !unmerged(&step.object_ref)));
        going = pending_deletion(input, &prunes);
        let clean = input.state.clean
            && !steps
                .iter()
                .any(|step| matches!(&step.action, Action::Skip(leave) if leave.is_problem()));
        if !clean || !input.readable {
            for step in &mut prunes {
                if matches!(step.action, Action::Delete { .. } | Action::Unmerge { .. }) {
                    step.action = Action::Skip(SkipReason::PrunePending);
                    prune_pending = true;
                }
            }
        }
        steps.append(&mut prunes);
    }
    Plan { steps, prune_pending, pending_deletion: going }
}

fn plan_desired(input: &Input<'_>, desired_object: &DesiredObject, seen: &Lookup) -> Action {
    let object = match seen {
        Lookup::Found(object) => object,
        Lookup::Absent if desired_object.has(Policy::Merge) => {
            return Action::Skip(SkipReason::MergeTargetMissing);
        }
        Lookup::Absent => return create(input, desired_object),
        Lookup::Unknown => return Action::Skip(SkipReason::Unknown),
        Lookup::NotServed if desired_object.optional => {
            return Action::Skip(SkipReason::OptionalNotServed);
        }
        Lookup::NotServed => return Action::Skip(SkipReason::NotServed),
        Lookup::Unreadable(why) => return Action::Skip(SkipReason::Unreadable(why.clone())),
    };
    if desired_object.has(Policy::Merge) {
        return merge(input, desired_object, object);
    }
    // A name of the same object in another version of its kind, say.
    if !object.uid.is_empty() && object.uid == input.primary.uid {
        return Action::Skip(SkipReason::Conflict(Controller::default()));
    }
    match input.primary.ownership(object) {
        Ownership::Foreign(holder) => Action::Skip(SkipReason::Conflict(holder)),
        _ if object.is_terminating() => Action::Skip(SkipReason::Terminating),
        // What the guest merged goes first, so that it does not decide what is adopted.
        Ownership::Unowned if input.adopt && input.primary.has_merged(object) => {
            Action::Unmerge { uid: object.uid.clone() }
        }
        Ownership::Unowned
            if input.primary.is_retained(object)
                || input.adopt
                    && has_labels(object, desired_object)
                    && !input
                        .primary
                        .is_elsewhere_and_anothers(&desired_object.object_ref, object) =>
        {
            match rejected(input, desired_object) {
                Some(rejected) => plan_rejected(input, desired_object, object, rejected),
                None => Action::Adopt {
                    uid: object.uid.clone(),
                    resource_version: object.resource_version.clone(),
                },
            }
        }
        Ownership::Unowned => Action::Skip(SkipReason::Conflict(Controller::default())),
        Ownership::Own => plan_owned(input, desired_object, object),
    }
}

/// What is merged may be anybody's, so nothing is taken by force: a field that another manager
/// holds is a conflict, which the server tells.
fn merge(input: &Input<'_>, desired_object: &DesiredObject, object: &Object) -> Action {
    if object.is_terminating() {
        return Action::Skip(SkipReason::Terminating);
    }
    let remembered = input.state.applied.get(&desired_object.object_ref);
    let manager = &input.primary.merger;
    if is_settled(remembered, desired_object, object, manager) {
        return Action::Skip(SkipReason::InSync);
    }
    if let Some(rejected) = rejected(input, desired_object) {
        return Action::Skip(SkipReason::Rejected(rejected.clone()));
    }
    let reason = apply_reason(remembered, desired_object, object, input.primary, manager);
    Action::Merge { uid: object.uid.clone(), reason }
}

fn create(input: &Input<'_>, desired_object: &DesiredObject) -> Action {
    match rejected(input, desired_object) {
        // An immutable field is no obstacle to a create.
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
    let remembered = input.state.applied.get(&desired_object.object_ref);
    let manager = &input.primary.manager;
    if is_settled(remembered, desired_object, object, manager) {
        return Action::Skip(SkipReason::InSync);
    }
    if let Some(rejected) = rejected(input, desired_object) {
        return plan_rejected(input, desired_object, object, rejected);
    }
    if let Some(contest) = input.state.reverts.field_fight(&desired_object.object_ref, input.now) {
        return Action::Skip(SkipReason::FieldContested(contest));
    }
    let reason = apply_reason(remembered, desired_object, object, input.primary, manager);
    Action::Apply { uid: object.uid.clone(), reason }
}

/// The server refuses to change the object so: made anew, if that helps and may be.
fn plan_rejected(
    input: &Input<'_>,
    desired_object: &DesiredObject,
    object: &Object,
    rejected: &Rejected,
) -> Action {
    let recreate = rejected.immutable
        && desired_object.has(Policy::RecreateWhenImmutable)
        && may_be_deleted(input.primary, &desired_object.object_ref, object);
    if recreate {
        Action::Recreate { uid: object.uid.clone() }
    } else {
        Action::Skip(SkipReason::Rejected(rejected.clone()))
    }
}

/// Whether applying what is wanted would change nothing.
fn is_settled(
    remembered: Option<&LastApplied>,
    desired_object: &DesiredObject,
    object: &Object,
    manager: &Manager,
) -> bool {
    match remembered {
        Some(remembered) => remembered.is_in_sync_with(desired_object.digest(), object, manager),
        None => in_sync::is_in_sync_after_restart(object, manager, &desired_object.body),
    }
}

/// Whether what is wanted changed, or somebody changed the object.
fn apply_reason(
    remembered: Option<&LastApplied>,
    desired_object: &DesiredObject,
    object: &Object,
    primary: &Primary,
    manager: &Manager,
) -> ApplyReason {
    let applied_before = match remembered {
        Some(remembered) => remembered.has_digest(desired_object.digest()),
        None => {
            object.annotation(&desired_object.annotation(primary)).as_deref()
                == Some(desired_object.digest())
        }
    };
    if !applied_before {
        return ApplyReason::Changed;
    }
    let other = object
        .others
        .iter()
        .rfind(|other| &*other.subresource != "status")
        .map_or_else(|| "another manager".to_owned(), |other| other.name.to_string());
    let entry = object.applied_by(manager).and_then(|fields| FieldSet::parse(fields).ok());
    ApplyReason::Drift {
        fields: drift::lost(&desired_object.body, &entry.unwrap_or_default()),
        other,
    }
}

fn rejected<'a>(input: &Input<'a>, desired_object: &DesiredObject) -> Option<&'a Rejected> {
    input
        .state
        .rejected
        .get(&desired_object.object_ref)
        .filter(|rejected| rejected.digest == desired_object.digest())
}

/// The labels of an object say that it is the one that is wanted. Those that a guest merged say
/// nothing.
fn has_labels(object: &Object, desired_object: &DesiredObject) -> bool {
    desired_object.labels.iter().all(|(name, value)| {
        object.labels.get(name) == Some(value) && !consent::is_merged_label(object, name)
    })
}

/// Two primaries that want one name never split the names between them: if one object is not
/// ours, nothing is created (rule 3).
fn block_creates(steps: &mut [Step]) {
    let by = steps
        .iter()
        .find(|step| matches!(step.action, Action::Skip(SkipReason::Conflict(_))))
        .map(|step| step.object_ref.clone());
    let Some(by) = by else { return };
    for step in steps {
        if matches!(step.action, Action::Create | Action::Adopt { .. }) {
            step.action = Action::Skip(SkipReason::Blocked(by.clone()));
        }
    }
}

/// What is there and not wanted in this way, last kinds first.
fn is_undesired<'a>(
    input: &'a Input<'_>,
    merges: bool,
) -> impl Iterator<Item = &'a (ObjectRef, Arc<Object>)> {
    let same_way =
        move |desired_object: &&DesiredObject| desired_object.has(Policy::Merge) == merges;
    let desired_object: BTreeSet<&ObjectRef> = input
        .desired
        .objects
        .iter()
        .filter(same_way)
        .map(|desired_object| &desired_object.object_ref)
        .collect();
    // One object may be seen as two kinds: two versions of one.
    let wanted_uids: BTreeSet<&str> = input
        .desired
        .objects
        .iter()
        .zip(input.lookups)
        .filter(|(desired_object, _)| same_way(desired_object))
        .filter_map(|(_, seen)| match seen {
            Lookup::Found(object) => Some(&*object.uid),
            _ => None,
        })
        .collect();
    let mut unwanted: Vec<&(ObjectRef, Arc<Object>)> = input
        .owned
        .iter()
        .filter(|(object_ref, object)| {
            !desired_object.contains(object_ref)
                && !wanted_uids.contains(&*object.uid)
                && !input.desired.keep.contains(&object_ref.reference())
        })
        .collect();
    unwanted.sort_by(|a, b| order::sort_key(&b.0).cmp(&order::sort_key(&a.0)));
    unwanted.into_iter()
}

fn is_made(input: &Input<'_>, object: &Object) -> bool {
    input.primary.has_applied(object) && input.primary.ownership(object) == Ownership::Own
}

/// What this primary made and no longer wants, last kinds first.
fn plan_prunes(input: &Input<'_>) -> Vec<Step> {
    is_undesired(input, false)
        .filter(|(_, object)| is_made(input, object) && !object.is_terminating())
        .map(|(object_ref, object)| Step {
            object_ref: object_ref.clone(),
            desired_index: None,
            action: if input.deleting && input.primary.is_retained(object) {
                Action::Skip(SkipReason::Retained)
            } else if may_be_deleted(input.primary, object_ref, object) {
                Action::Delete { uid: object.uid.clone() }
            } else {
                Action::Skip(SkipReason::Protected)
            },
        })
        .collect()
}

/// What this primary merged into and no longer wants to.
fn plan_unmerges(input: &Input<'_>) -> impl Iterator<Item = Step> {
    is_undesired(input, true)
        .filter(|(_, object)| input.primary.has_merged(object) && !object.is_terminating())
        .map(|(object_ref, object)| Step {
            object_ref: object_ref.clone(),
            desired_index: None,
            action: Action::Unmerge { uid: object.uid.clone() },
        })
}

/// What goes and is not gone: what is to be deleted or taken back, and what terminates.
fn pending_deletion(input: &Input<'_>, prunes: &[Step]) -> Vec<ObjectRef> {
    let goes = |step: &&Step| matches!(step.action, Action::Delete { .. } | Action::Unmerge { .. });
    let terminates = is_undesired(input, false)
        .filter(|(_, object)| is_made(input, object) && object.is_terminating());
    prunes
        .iter()
        .filter(goes)
        .map(|step| step.object_ref.clone())
        .chain(terminates.map(|(object_ref, _)| object_ref.clone()))
        .collect()
}

/// Whether an object that is no longer wanted goes: not if its kind holds data, unless it says so
/// itself, and a user or the host has it say so.
pub fn may_be_deleted(primary: &Primary, object_ref: &ObjectRef, object: &Object) -> bool {
    let kind = (object_ref.kind.group(), object_ref.kind.kind.as_str());
    let says = |name: &&str| {
        consent::of_user_or_module(object, name, primary.module()).as_deref() == Some("true")
    };
    !PROTECTED.contains(&kind) || [ALLOW_DELETION_ANNOTATION, DELETABLE_ANNOTATION].iter().any(says)
}

impl fmt::Display for SkipReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InSync => f.write_str("settled"),
            Self::CreateOnly => f.write_str("made once"),
            Self::OptionalNotServed | Self::NotServed => {
                f.write_str("the cluster does not serve its kind")
            }
            Self::Unreadable(why) => f.write_str(why),
            Self::Unknown => f.write_str("the last answer of the server about it was lost"),
            Self::Conflict(holder) => holder.fmt(f),
            Self::Blocked(by) => write!(f, "not created, since {by} is not this primary's"),
            Self::Terminating => f.write_str("being deleted"),
            Self::FieldContested(contest) => {
                write!(
                    f,
                    "{} sets {} again and again; left alone for a while",
                    contest.other, contest.field
                )
            }
            Self::Rejected(rejected) => f.write_str(&rejected.message),
            Self::Protected => f.write_str("no longer wanted, kept since its kind holds data"),
            Self::PrunePending => f.write_str("no longer wanted, goes after one more clean round"),
            Self::Retained => f.write_str("kept when the primary goes"),
            Self::MergeTargetMissing => {
                f.write_str("fields are to be merged into it, but it does not exist")
            }
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let object_ref = &self.object_ref;
        match &self.action {
            Action::Create => write!(f, "create {object_ref}"),
            Action::Apply { reason: ApplyReason::Changed, .. } => {
                write!(f, "apply {object_ref}: changed")
            }
            Action::Apply { reason: ApplyReason::Drift { fields, other }, .. } => {
                write!(f, "apply {object_ref}: {other} changed {}", fields.join(", "))
            }
            Action::Merge { reason: ApplyReason::Changed, .. } => {
                write!(f, "merge {object_ref}: changed")
            }
            Action::Merge { reason: ApplyReason::Drift { fields, other }, .. } => {
                write!(f, "merge {object_ref}: {other} changed {}", fields.join(", "))
            }
            Action::Unmerge { .. } => write!(f, "take back from {object_ref}"),
            Action::Adopt { .. } => write!(f, "adopt {object_ref}"),
            Action::Recreate { .. } => write!(f, "recreate {object_ref}"),
            Action::Delete { .. } => write!(f, "delete {object_ref}"),
            Action::Skip(leave) => write!(f, "leave {object_ref}: {leave}"),
        }
    }
}
