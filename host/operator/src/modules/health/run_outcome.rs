//! How the run of a primary ended, as far as it says something about its module.

use std::sync::Arc;

use innkeeper_modules::machine::reason;

use crate::modules::granted_secrets::GrantedSecrets;
use crate::reconcile::problem::Problem;
use crate::reconcile::refusal::{ForbiddenWrite, RefusalCause};

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
    /// The reason for which a write was refused because of the primary's own data or of objects of
    /// others. It is counted and named, and the module stays healthy.
    pub refused: Option<String>,
}

impl From<Failing> for RunOutcome {
    fn from(failing: Failing) -> Self {
        Self { failing: Some(failing), refused: None }
    }
}

impl RunOutcome {
    /// The outcome of a run with these problems, given how the guest failed. A missing right of the
    /// module counts as a failure; a refusal because of the object names the primary.
    pub fn of(failing: Option<Failing>, problems: &[Problem]) -> Self {
        let forbidden = problems.iter().find_map(Failing::of_forbidden);
        let is_refused = |refusal: &RefusalCause| match refusal {
            RefusalCause::MissingRight { .. } => refusal.of_module().is_none(),
            RefusalCause::Data => true,
            RefusalCause::Guest => false,
        };
        let refused = problems.iter().find(|one| one.refusal.as_ref().is_some_and(is_refused));
        Self {
            failing: failing.or(forbidden),
            refused: refused.map(|problem| problem.reason.clone()),
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
