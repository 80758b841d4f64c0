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

use crate::contested::{Contest, Reverts};
use crate::fieldset::FieldSet;
use crate::old_names::DELETABLE_ANNOTATION;
use crate::ownership::{Holder, Primary, Standing};
use crate::settled::{self, Remembered};
use crate::wanted::{Wanted, Wish};
use crate::{Manager, Object, Target, consent, drift, order};

/// The annotation on an object whose kind holds data and which may be deleted all the same.
pub const ALLOW_DELETION_ANNOTATION: &str = "innkeeper.dev/allow-deletion";

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
pub enum Seen {
    /// An object is there.
    Present(Arc<Object>),
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
pub struct Memory {
    /// What was applied last, as its answer showed it.
    pub applied: LiteMap<Target, Remembered>,
    /// What the server refuses for good, until something else is wanted.
    pub rejected: BTreeMap<Target, Rejected>,
    /// What was set back, and when.
    pub reverts: Reverts,
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
    pub wish: &'a Wish,
    /// The outcome was `complete`: what is not wanted goes.
    pub complete: bool,
    /// What is at the names of `wish.wanted`, one for one.
    pub seen: &'a [Seen],
    /// The objects that the primary owns, made or merged into.
    pub made: &'a [(Target, Arc<Object>)],
    /// The rounds before.
    pub memory: &'a Memory,
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
    pub prune_waits: bool,
    /// What is no longer wanted, goes, and is not gone yet: as long as there is such a thing, a
    /// primary that is being deleted keeps its finalizer.
    pub going: Vec<Target>,
}

/// One step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The object.
    pub target: Target,
    /// Where in `wish.wanted` the object is, if it is wanted.
    pub wanted: Option<usize>,
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
        reason: Why,
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
        reason: Why,
    },
    /// Take the merged fields back: they are no longer wanted.
    TakeBack {
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
    Leave(Leave),
}

/// Why an object is applied that is already there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
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
pub enum Leave {
    /// It is as it should be.
    Settled,
    /// It is made once and then left alone.
    CreateOnly,
    /// Its kind is not served, and that is no error.
    Unserved,
    /// Its kind is not served.
    NotServed,
    /// Its kind cannot be read; the text says why.
    Unreadable(String),
    /// A live read must tell first what is there.
    Unknown,
    /// It is not ours.
    Conflict(Holder),
    /// Another object of this primary is not ours, so nothing is created.
    Blocked(Target),
    /// It is being deleted; what is wanted is made when it is gone.
    Terminating,
    /// Somebody else sets the same field again and again.
    Contested(Contest),
    /// The server refuses it for good.
    Rejected(Rejected),
    /// It is no longer wanted and stays, since its kind holds data.
    Protected,
    /// It is no longer wanted and goes after one more clean round.
    PruneWaits,
    /// It is no longer wanted since the primary goes, and is to outlive it.
    Kept,
    /// Fields are to be merged into it, and it does not exist.
    NothingThere,
}

impl Leave {
    /// Whether something is wrong: the primary is then not in the state that the guest wants.
    pub fn is_problem(&self) -> bool {
        match self {
            Self::NotServed
            | Self::Unreadable(_)
            | Self::Unknown
            | Self::Conflict(_)
            | Self::Blocked(_)
            | Self::Contested(_)
            | Self::Rejected(_)
            | Self::NothingThere => true,
            Self::Settled
            | Self::CreateOnly
            | Self::Unserved
            | Self::Terminating
            | Self::Protected
            | Self::PruneWaits
            | Self::Kept => false,
        }
    }
}

/// Makes a plan.
pub fn plan(input: &Input<'_>) -> Plan {
    let mut steps: Vec<Step> = input
        .wish
        .wanted
        .iter()
        .zip(input.seen)
        .enumerate()
        .map(|(index, (wanted, seen))| Step {
            target: wanted.target.clone(),
            wanted: Some(index),
            action: for_wanted(input, wanted, seen),
        })
        .collect();
    block_creates(&mut steps);

    let mut prune_waits = false;
    let mut going = Vec::new();
    if input.complete {
        let mut prunes = prunes(input);
        let unmerged = |target: &Target| {
            let is_unmerge = |step: &Step| matches!(step.action, Action::TakeBack { .. });
            steps.iter().any(|step| step.target == *target && is_unmerge(step))
        };
        prunes.extend(take_backs(input).filter(|step| !unmerged(&step.target)));
        going = going_of(input, &prunes);
        let clean = input.memory.clean
            && !steps
                .iter()
                .any(|step| matches!(&step.action, Action::Leave(leave) if leave.is_problem()));
        if !clean || !input.readable {
            for step in &mut prunes {
                if matches!(step.action, Action::Delete { .. } | Action::TakeBack { .. }) {
                    step.action = Action::Leave(Leave::PruneWaits);
                    prune_waits = true;
                }
            }
        }
        steps.append(&mut prunes);
    }
    Plan { steps, prune_waits, going }
}

fn for_wanted(input: &Input<'_>, wanted: &Wanted, seen: &Seen) -> Action {
    let object = match seen {
        Seen::Present(object) => object,
        Seen::Absent if wanted.has(Policy::Merge) => return Action::Leave(Leave::NothingThere),
        Seen::Absent => return create(input, wanted),
        Seen::Unknown => return Action::Leave(Leave::Unknown),
        Seen::NotServed if wanted.optional => return Action::Leave(Leave::Unserved),
        Seen::NotServed => return Action::Leave(Leave::NotServed),
        Seen::Unreadable(why) => return Action::Leave(Leave::Unreadable(why.clone())),
    };
    if wanted.has(Policy::Merge) {
        return merge(input, wanted, object);
    }
    // A name of the same object in another version of its kind, say.
    if !object.uid.is_empty() && object.uid == input.primary.uid {
        return Action::Leave(Leave::Conflict(Holder::default()));
    }
    match input.primary.standing(object) {
        Standing::Others(holder) => Action::Leave(Leave::Conflict(holder)),
        _ if object.is_terminating() => Action::Leave(Leave::Terminating),
        // What the guest merged goes first, so that it does not decide what is adopted.
        Standing::Nobodys if input.adopt && input.primary.merged(object) => {
            Action::TakeBack { uid: object.uid.clone() }
        }
        Standing::Nobodys
            if input.primary.is_kept(object)
                || input.adopt
                    && has_labels(object, wanted)
                    && !input.primary.is_elsewhere_and_anothers(&wanted.target, object) =>
        {
            match rejected(input, wanted) {
                Some(rejected) => for_rejected(input, wanted, object, rejected),
                None => Action::Adopt {
                    uid: object.uid.clone(),
                    resource_version: object.resource_version.clone(),
                },
            }
        }
        Standing::Nobodys => Action::Leave(Leave::Conflict(Holder::default())),
        Standing::Ours => for_ours(input, wanted, object),
    }
}

/// What is merged may be anybody's, so nothing is taken by force: a field that another manager
/// holds is a conflict, which the server tells.
fn merge(input: &Input<'_>, wanted: &Wanted, object: &Object) -> Action {
    if object.is_terminating() {
        return Action::Leave(Leave::Terminating);
    }
    let remembered = input.memory.applied.get(&wanted.target);
    let manager = &input.primary.merger;
    if is_settled(remembered, wanted, object, manager) {
        return Action::Leave(Leave::Settled);
    }
    if let Some(rejected) = rejected(input, wanted) {
        return Action::Leave(Leave::Rejected(rejected.clone()));
    }
    let reason = why(remembered, wanted, object, input.primary, manager);
    Action::Merge { uid: object.uid.clone(), reason }
}

fn create(input: &Input<'_>, wanted: &Wanted) -> Action {
    match rejected(input, wanted) {
        // An immutable field is no obstacle to a create.
        Some(rejected) if !rejected.immutable => Action::Leave(Leave::Rejected(rejected.clone())),
        _ => Action::Create,
    }
}

fn for_ours(input: &Input<'_>, wanted: &Wanted, object: &Object) -> Action {
    if wanted.has(Policy::CreateOnly) && input.primary.made(object) {
        return Action::Leave(Leave::CreateOnly);
    }
    let remembered = input.memory.applied.get(&wanted.target);
    let manager = &input.primary.manager;
    if is_settled(remembered, wanted, object, manager) {
        return Action::Leave(Leave::Settled);
    }
    if let Some(rejected) = rejected(input, wanted) {
        return for_rejected(input, wanted, object, rejected);
    }
    if let Some(contest) = input.memory.reverts.contest(&wanted.target, input.now) {
        return Action::Leave(Leave::Contested(contest));
    }
    let reason = why(remembered, wanted, object, input.primary, manager);
    Action::Apply { uid: object.uid.clone(), reason }
}

/// The server refuses to change the object so: made anew, if that helps and may be.
fn for_rejected(
    input: &Input<'_>,
    wanted: &Wanted,
    object: &Object,
    rejected: &Rejected,
) -> Action {
    let recreate = rejected.immutable
        && wanted.has(Policy::RecreateWhenImmutable)
        && may_be_deleted(input.primary, &wanted.target, object);
    if recreate {
        Action::Recreate { uid: object.uid.clone() }
    } else {
        Action::Leave(Leave::Rejected(rejected.clone()))
    }
}

/// Whether applying what is wanted would change nothing.
fn is_settled(
    remembered: Option<&Remembered>,
    wanted: &Wanted,
    object: &Object,
    manager: &Manager,
) -> bool {
    match remembered {
        Some(remembered) => remembered.is_settled_with(wanted.digest(), object, manager),
        None => settled::is_settled_after_restart(object, manager, &wanted.body),
    }
}

/// Whether what is wanted changed, or somebody changed the object.
fn why(
    remembered: Option<&Remembered>,
    wanted: &Wanted,
    object: &Object,
    primary: &Primary,
    manager: &Manager,
) -> Why {
    let applied_before = match remembered {
        Some(remembered) => remembered.is_of(wanted.digest()),
        None => object.annotation(&wanted.annotation(primary)).as_deref() == Some(wanted.digest()),
    };
    if !applied_before {
        return Why::Changed;
    }
    let other = object
        .others
        .iter()
        .rfind(|other| &*other.subresource != "status")
        .map_or_else(|| "another manager".to_owned(), |other| other.name.to_string());
    let entry = object.applied_by(manager).and_then(|fields| FieldSet::parse(fields).ok());
    Why::Drift { fields: drift::lost(&wanted.body, &entry.unwrap_or_default()), other }
}

fn rejected<'a>(input: &Input<'a>, wanted: &Wanted) -> Option<&'a Rejected> {
    input.memory.rejected.get(&wanted.target).filter(|rejected| rejected.digest == wanted.digest())
}

/// The labels of an object say that it is the one that is wanted. Those that a guest merged say nothing.
fn has_labels(object: &Object, wanted: &Wanted) -> bool {
    wanted.labels.iter().all(|(name, value)| {
        object.labels.get(name) == Some(value) && !consent::is_merged_label(object, name)
    })
}

/// Two primaries that want one name never split the names between them: if one object is not
/// ours, nothing is created (rule 3).
fn block_creates(steps: &mut [Step]) {
    let by = steps
        .iter()
        .find(|step| matches!(step.action, Action::Leave(Leave::Conflict(_))))
        .map(|step| step.target.clone());
    let Some(by) = by else { return };
    for step in steps {
        if matches!(step.action, Action::Create | Action::Adopt { .. }) {
            step.action = Action::Leave(Leave::Blocked(by.clone()));
        }
    }
}

/// What is there and not wanted in this way, last kinds first.
fn unwanted<'a>(
    input: &'a Input<'_>,
    merges: bool,
) -> impl Iterator<Item = &'a (Target, Arc<Object>)> {
    let same_way = move |wanted: &&Wanted| wanted.has(Policy::Merge) == merges;
    let wanted: BTreeSet<&Target> =
        input.wish.wanted.iter().filter(same_way).map(|wanted| &wanted.target).collect();
    // One object may be seen as two kinds: two versions of one.
    let wanted_uids: BTreeSet<&str> = input
        .wish
        .wanted
        .iter()
        .zip(input.seen)
        .filter(|(wanted, _)| same_way(wanted))
        .filter_map(|(_, seen)| match seen {
            Seen::Present(object) => Some(&*object.uid),
            _ => None,
        })
        .collect();
    let mut unwanted: Vec<&(Target, Arc<Object>)> = input
        .made
        .iter()
        .filter(|(target, object)| {
            !wanted.contains(target)
                && !wanted_uids.contains(&*object.uid)
                && !input.wish.keep.contains(&target.reference())
        })
        .collect();
    unwanted.sort_by(|a, b| order::sort_key(&b.0).cmp(&order::sort_key(&a.0)));
    unwanted.into_iter()
}

fn is_made(input: &Input<'_>, object: &Object) -> bool {
    input.primary.made(object) && input.primary.standing(object) == Standing::Ours
}

/// What this primary made and no longer wants, last kinds first.
fn prunes(input: &Input<'_>) -> Vec<Step> {
    unwanted(input, false)
        .filter(|(_, object)| is_made(input, object) && !object.is_terminating())
        .map(|(target, object)| Step {
            target: target.clone(),
            wanted: None,
            action: if input.deleting && input.primary.is_kept(object) {
                Action::Leave(Leave::Kept)
            } else if may_be_deleted(input.primary, target, object) {
                Action::Delete { uid: object.uid.clone() }
            } else {
                Action::Leave(Leave::Protected)
            },
        })
        .collect()
}

/// What this primary merged into and no longer wants to.
fn take_backs(input: &Input<'_>) -> impl Iterator<Item = Step> {
    unwanted(input, true)
        .filter(|(_, object)| input.primary.merged(object) && !object.is_terminating())
        .map(|(target, object)| Step {
            target: target.clone(),
            wanted: None,
            action: Action::TakeBack { uid: object.uid.clone() },
        })
}

/// What goes and is not gone: what is to be deleted or taken back, and what terminates.
fn going_of(input: &Input<'_>, prunes: &[Step]) -> Vec<Target> {
    let goes =
        |step: &&Step| matches!(step.action, Action::Delete { .. } | Action::TakeBack { .. });
    let terminates = unwanted(input, false)
        .filter(|(_, object)| is_made(input, object) && object.is_terminating());
    prunes
        .iter()
        .filter(goes)
        .map(|step| step.target.clone())
        .chain(terminates.map(|(target, _)| target.clone()))
        .collect()
}

/// Whether an object that is no longer wanted goes: not if its kind holds data, unless it says so itself,
/// and a user or the host has it say so.
pub fn may_be_deleted(primary: &Primary, target: &Target, object: &Object) -> bool {
    let kind = (target.kind.group(), target.kind.kind.as_str());
    let says = |name: &&str| {
        consent::of_user_or_module(object, name, primary.module()).as_deref() == Some("true")
    };
    !PROTECTED.contains(&kind) || [ALLOW_DELETION_ANNOTATION, DELETABLE_ANNOTATION].iter().any(says)
}

impl fmt::Display for Leave {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Settled => f.write_str("settled"),
            Self::CreateOnly => f.write_str("made once"),
            Self::Unserved | Self::NotServed => f.write_str("the cluster does not serve its kind"),
            Self::Unreadable(why) => f.write_str(why),
            Self::Unknown => f.write_str("the last answer of the server about it was lost"),
            Self::Conflict(holder) => holder.fmt(f),
            Self::Blocked(by) => write!(f, "not created, since {by} is not this primary's"),
            Self::Terminating => f.write_str("being deleted"),
            Self::Contested(contest) => {
                write!(
                    f,
                    "{} sets {} again and again; left alone for a while",
                    contest.other, contest.field
                )
            }
            Self::Rejected(rejected) => f.write_str(&rejected.message),
            Self::Protected => f.write_str("no longer wanted, kept since its kind holds data"),
            Self::PruneWaits => f.write_str("no longer wanted, goes after one more clean round"),
            Self::Kept => f.write_str("kept when the primary goes"),
            Self::NothingThere => {
                f.write_str("fields are to be merged into it, but it does not exist")
            }
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let target = &self.target;
        match &self.action {
            Action::Create => write!(f, "create {target}"),
            Action::Apply { reason: Why::Changed, .. } => write!(f, "apply {target}: changed"),
            Action::Apply { reason: Why::Drift { fields, other }, .. } => {
                write!(f, "apply {target}: {other} changed {}", fields.join(", "))
            }
            Action::Merge { reason: Why::Changed, .. } => write!(f, "merge {target}: changed"),
            Action::Merge { reason: Why::Drift { fields, other }, .. } => {
                write!(f, "merge {target}: {other} changed {}", fields.join(", "))
            }
            Action::TakeBack { .. } => write!(f, "take back from {target}"),
            Action::Adopt { .. } => write!(f, "adopt {target}"),
            Action::Recreate { .. } => write!(f, "recreate {target}"),
            Action::Delete { .. } => write!(f, "delete {target}"),
            Action::Leave(leave) => write!(f, "leave {target}: {leave}"),
        }
    }
}
