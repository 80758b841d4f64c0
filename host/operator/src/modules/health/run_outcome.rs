//! How the run of a primary ended, as far as it says something about its module.

use std::sync::Arc;

use innkeeper_modules::machine::reason;

use crate::reconcile::problem::Problem;
use crate::reconcile::refusal::{ForbiddenWrite, Refusal};

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
    /// How it failed: the guest did, or the module lacks a right to write.
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
    /// module counts as a failure; any other refusal names the primary.
    pub fn of(failing: Option<Failing>, problems: &[Problem]) -> Self {
        let forbidden = problems.iter().find_map(Failing::of_forbidden);
        let is_refused = |refusal: &Refusal| refusal.of_module().is_none();
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
}
