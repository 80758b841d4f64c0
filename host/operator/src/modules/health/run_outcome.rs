//! How the run of a primary ended, as far as it says something about its module.

use std::sync::Arc;

use innkeeper_core::foreign;
use innkeeper_modules::machine::reason;

use crate::modules::granted_secrets::GrantedSecrets;
use crate::reconcile::problem::{Problem, Problems};
use crate::reconcile::refusal::{ForbiddenWrite, RefusalCause};

/// The reasons of writes that are refused because another writer has the object or the field.
const CONFLICTS: [&str; 3] = ["Conflict", "FieldConflict", "Contested"];

/// The longest conflict in the Module's condition, in bytes: it quotes several.
const CONFLICT_BYTES_MAX: usize = 512;

/// How the run of a primary failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failing {
    /// The reason, as of a condition: `GuestTrapped`.
    pub reason: String,
    /// The message.
    pub message: String,
    /// The write for which the module's ServiceAccount lacks a right, if that is why. A guest may
    /// choose any reason, so the reason does not say it.
    pub forbidden: Option<Arc<ForbiddenWrite>>,
}

/// What the run of a primary says about the health of its module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunOutcome {
    /// How it failed: the guest did, the module lacks a right to write, or the guest desires what
    /// no module may write.
    pub failing: Option<Failing>,
    /// Why a write was refused because of the primary's own data or of objects of others. It is
    /// counted and named, and the module stays healthy.
    pub refused: Option<Refusal>,
}

/// Why a write for a primary was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The reason, as of a condition: `Invalid`.
    pub reason: String,
    /// Where users find the message.
    pub message: MessagePlace,
}

/// Where users find the message of a refused write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MessagePlace {
    /// In the condition `Synced` of the primary.
    Synced,
    /// In an Event about the primary, on which a decorator has no condition. A conflict is also
    /// quoted: object, field and manager, and no values.
    Event {
        /// The conflict.
        conflict: Option<String>,
    },
}

impl Refusal {
    /// A refusal that the condition `Synced` of the primary explains.
    pub fn of_reason(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), message: MessagePlace::Synced }
    }

    /// The refusal of a problem of a decorator.
    fn of_decorator(problem: &Problem, granted: &GrantedSecrets) -> Self {
        let is_conflict = CONFLICTS.contains(&&*problem.reason);
        let conflict = is_conflict.then(|| {
            let message = granted.mask(&Problems(vec![problem.clone()]).message());
            foreign::one_line(message, CONFLICT_BYTES_MAX)
        });
        Self { reason: problem.reason.clone(), message: MessagePlace::Event { conflict } }
    }
}

impl From<Failing> for RunOutcome {
    fn from(failing: Failing) -> Self {
        Self { failing: Some(failing), refused: None }
    }
}

impl RunOutcome {
    /// The outcome of a run with these problems, given how the guest failed. A missing right of the
    /// module counts as a failure; a refusal because of the object names the primary. `decorates`
    /// has the granted Secrets of a decorator, whose primaries have no condition `Synced` of it.
    pub fn of(
        failing: Option<Failing>,
        problems: &[Problem],
        decorates: Option<&GrantedSecrets>,
    ) -> Self {
        let forbidden = problems.iter().find_map(Failing::of_forbidden);
        let is_refused = |refusal: &RefusalCause| match refusal {
            RefusalCause::MissingRight { .. } => refusal.of_module().is_none(),
            RefusalCause::Data => true,
            RefusalCause::Guest => false,
        };
        let refused = problems.iter().find(|one| one.refusal.as_ref().is_some_and(is_refused));
        Self {
            failing: failing.or(forbidden),
            refused: refused.map(|problem| match decorates {
                Some(granted) => Refusal::of_decorator(problem, granted),
                None => Refusal::of_reason(&problem.reason),
            }),
        }
    }
}

impl Failing {
    /// The failure of a problem.
    pub fn of(problem: &Problem) -> Self {
        Self::of_forbidden(problem).unwrap_or_else(|| Self {
            reason: problem.reason.clone(),
            message: problem.message.clone(),
            forbidden: None,
        })
    }

    /// The failure of a problem, if the module lacks a right to write.
    fn of_forbidden(problem: &Problem) -> Option<Self> {
        let refusal = problem.refusal.as_ref()?;
        let (write, denial) = refusal.of_module()?;
        Some(Self {
            reason: reason::FORBIDDEN.to_owned(),
            message: format!("{denial}{}", refusal.advice().unwrap_or_default()),
            forbidden: Some(write.clone()),
        })
    }

    /// The failure of a problem, if the guest desires what no module may write. The name of the
    /// object is the guest's, so granted values are masked in it.
    pub fn of_guest(problem: &Problem, granted: &GrantedSecrets) -> Option<Self> {
        let Problem { object_ref, reason, message, .. } = problem;
        let (Some(RefusalCause::Guest), Some(object_ref)) = (&problem.refusal, object_ref) else {
            return None;
        };
        Some(Self {
            reason: reason.clone(),
            message: granted.mask(&format!("{object_ref}: {message}")),
            forbidden: None,
        })
    }
}
