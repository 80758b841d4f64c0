//! The review of a request by a policy: [`Guest::review`].

use std::sync::Arc;

use innkeeper_contract::POLICY_INTERFACE;

use crate::call::call;
use crate::contract::bindings::policy::PolicyGuestPre;
use crate::contract::bindings::policy::exports::innkeeper::guest::policy;
use crate::error::{CallError, text};
use crate::guest::Guest;
use crate::host::Host;
use crate::output;
use crate::program::Program;
use crate::review_outcome::{Review, ReviewOutcome};
use crate::state::State;

impl Guest {
    /// Calls `review` of the guest, or `validate` of a Kubewarden policy, in a new instance.
    ///
    /// `request` is a `review-request` document. Blocks the thread for up to
    /// [`Limits::time`](crate::Limits::time) and the time of `host`; the caller holds a
    /// [`Permit`](crate::Permit) of [`Engine::review_permits`](crate::Engine::review_permits).
    ///
    /// # Errors
    /// [`CallError`]. If the guest reports that it cannot decide, the outcome is
    /// [`ReviewOutcome::Failed`].
    pub fn review(&self, request: &str, host: &mut dyn Host) -> Result<Review, CallError> {
        match &self.loaded.program {
            Program::Component(exports) => {
                let pre = exports.policy.as_ref();
                let pre = pre.ok_or(CallError::NotExported { interface: POLICY_INTERFACE })?;
                self.review_by(pre, request, host)
            }
            Program::Kubewarden(policy) => {
                policy.review(&self.runtime, (&self.manifest, &self.limits), request, host)
            }
        }
    }

    /// Calls `review` of a component.
    fn review_by(
        &self,
        pre: &PolicyGuestPre<State>,
        request: &str,
        host: &mut dyn Host,
    ) -> Result<Review, CallError> {
        let limit = self.limits.memory_bytes;
        if request.len() > limit {
            return Err(CallError::RequestTooLarge { limit });
        }
        let given = (Some(Arc::clone(&self.manifest)), request.len());
        let (outcome, mut figures) = call(&self.runtime, &self.limits, given, host, |store| {
            let guest = pre.instantiate(&mut *store)?;
            guest.innkeeper_guest_policy().call_review(store, request)
        });
        let outcome = match outcome? {
            policy::Outcome::Decided(verdict) => {
                figures.output_bytes = verdict.len();
                ReviewOutcome::Decided(output::read(&verdict, &self.limits)?)
            }
            policy::Outcome::Failed(why) => {
                figures.output_bytes = why.len();
                ReviewOutcome::Failed(text(why))
            }
        };
        Ok(Review { outcome, figures })
    }
}
