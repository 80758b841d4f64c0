//! The state of one object of an update group, from its planned step.

use innkeeper_contract::{Policy, UpdateGroup, UpdateMethod};
use serde_json::Value;

use super::super::input::Input;
use super::super::prune::may_be_deleted;
use super::super::skip_reason::SkipReason;
use super::super::state::Lookup;
use super::super::step::{Action, ApplyReason};
use super::health::{self, Health};
use super::proof;
use crate::desired::DesiredObject;
use crate::ownership::Ownership;
use crate::{Object, ObjectRef};

/// One object of an update group.
pub(super) struct Member<'a> {
    /// Its index in the steps.
    pub(super) index: usize,
    /// Its place in the document of the guest.
    pub(super) position: usize,
    /// Kind and name.
    pub(super) object_ref: &'a ObjectRef,
    /// The body as it is desired.
    desired: &'a Value,
    /// The observed object.
    live: Option<&'a Object>,
    /// When the host last applied it, in seconds of Unix time.
    pub(super) applied: Option<i64>,
    /// How far it is.
    pub(super) state: MemberState,
    /// Its update would recreate it, which the host may not do since its kind holds data.
    pub(super) is_protected: bool,
}

/// How far an object of an update group is.
pub(super) enum MemberState {
    /// It does not exist: the host creates it as it is desired.
    Missing,
    /// The host adopts it, and applies it as it is desired, at once.
    Adopting,
    /// Another's object has its name, perhaps since the host has deleted it.
    Taken,
    /// It is being deleted.
    Terminating,
    /// The object with this uid is not as it is desired, and an update changes or adopts it.
    Outdated {
        /// The uid of the observed object.
        uid: Box<str>,
        /// Whether it is available as it is.
        is_available: bool,
    },
    /// It is as it is desired, but for drift.
    Current(Health),
    /// The server refused the desired body for this reason.
    Rejected(String),
    /// Nobody knows its state, for this reason.
    Unknown(String),
}

impl<'a> Member<'a> {
    /// The member for which a step is planned; `None` if the object is no member in this round.
    pub(super) fn of(
        group: &UpdateGroup,
        (index, object): (usize, &'a DesiredObject),
        lookup: &'a Lookup,
        action: &Action,
        input: &Input<'_>,
    ) -> Option<Self> {
        let live = match lookup {
            Lookup::Found(live) => Some(&**live),
            _ => None,
        };
        let object_ref = &object.object_ref;
        let on_delete = group.method == UpdateMethod::OnDelete;
        let health = || {
            live.map_or_else(
                || Health::Waiting("it is not observed yet".to_owned(), None),
                |live| health::of(group, &object_ref.kind, live, input),
            )
        };
        let serves = || live.is_some_and(|live| health::serves(group, &object_ref.kind, live));
        let outdated =
            |uid: &str| MemberState::Outdated { uid: uid.into(), is_available: serves() };
        let state = match action {
            Action::Create => MemberState::Missing,
            // An adoption changes the object, as an update does.
            Action::Adopt { uid, .. } if group.method.is_rolling() => outdated(uid),
            Action::Adopt { .. } | Action::Unmerge { .. } => MemberState::Adopting,
            Action::Recreate { uid, .. } | Action::Apply { uid, reason: ApplyReason::Changed } => {
                outdated(uid)
            }
            Action::Apply { uid, reason: ApplyReason::Drift { .. } } if on_delete => outdated(uid),
            Action::Apply { .. } => MemberState::Current(health()),
            Action::Skip(SkipReason::InSync | SkipReason::FieldContested(_)) => {
                MemberState::Current(health())
            }
            Action::Skip(SkipReason::Terminating) => MemberState::Terminating,
            // Of other objects, the conflict holds back the recreates.
            Action::Skip(SkipReason::Conflict { conflict, .. })
                if group.method.recreates()
                    && object.has(Policy::Independent)
                    && conflict.takes_name() =>
            {
                MemberState::Taken
            }
            Action::Skip(SkipReason::Rejected(rejected)) => match live {
                // The method may have changed since the server rejected the body.
                Some(live)
                    if is_own(input, live)
                        && (on_delete || rejected.immutable && group.method.recreates()) =>
                {
                    outdated(&live.uid)
                }
                _ => MemberState::Rejected(rejected.message.clone()),
            },
            Action::Skip(
                reason @ (SkipReason::Unknown
                | SkipReason::Unreadable(_)
                | SkipReason::MissingValues(_)),
            ) => MemberState::Unknown(reason.to_string()),
            Action::Skip(_) | Action::Merge { .. } | Action::Delete { .. } => return None,
        };
        let recreates = group.method.recreates()
            && matches!(state, MemberState::Outdated { .. })
            && !matches!(action, Action::Adopt { .. });
        let is_protected =
            recreates && live.is_some_and(|live| !may_be_deleted(input.primary, object_ref, live));
        Some(Self {
            index,
            position: object.position,
            object_ref,
            desired: &object.body,
            live,
            applied: live.and_then(|live| live.applied_at(&input.primary.manager)),
            state,
            is_protected,
        })
    }

    /// Whether it does not serve, and an update would not change that now.
    pub(super) fn is_in_flight(&self) -> bool {
        match &self.state {
            _ if self.is_absent() => true,
            MemberState::Current(health) => !health.is_available(),
            MemberState::Outdated { is_available, .. } => self.is_protected && !is_available,
            _ => false,
        }
    }

    /// Whether the other member, which is as it is desired, shows that the server accepts all that
    /// an update would change in this one.
    pub(super) fn is_proven_by(&self, proof: &Self) -> bool {
        let live = self.live.and_then(|live| serde_json::from_str(&live.text.read()).ok());
        self.object_ref.kind == proof.object_ref.kind
            && live.is_some_and(|live| proof::has_change(proof.desired, &live, self.desired))
    }

    /// Whether it does not exist as it is desired, whatever the method is.
    pub(super) fn is_absent(&self) -> bool {
        matches!(
            self.state,
            MemberState::Missing
                | MemberState::Adopting
                | MemberState::Taken
                | MemberState::Terminating
                | MemberState::Rejected(_)
        )
    }

    /// Whether it is as it is desired.
    pub(super) fn is_current(&self) -> bool {
        matches!(self.state, MemberState::Current(_))
    }

    /// Whether it exists, and the host may have applied it as it was desired before.
    pub(super) fn may_be_outdated(&self) -> bool {
        match self.state {
            MemberState::Outdated { .. } | MemberState::Terminating => true,
            MemberState::Rejected(_) => self.live.is_some(),
            _ => false,
        }
    }

    /// Whether an update would change it.
    pub(super) fn is_outdated(&self) -> bool {
        matches!(self.state, MemberState::Outdated { .. })
    }
}

fn is_own(input: &Input<'_>, live: &Object) -> bool {
    input.primary.ownership(live) == Ownership::Own
}
