//! What happens when a Shop is deleted.

use innkeeper_sdk::kinds::Deployment;
use innkeeper_sdk::prelude::*;

use crate::bug::Bug;
use crate::run::Run;

impl Run<'_> {
    /// Ends the finalization, unless the bug waits for something.
    pub(crate) fn deleted(&self) -> Outcome {
        let waits = match self.bug {
            Bug::NeverFinalized => true,
            Bug::FinalizedIfReady => !self.observed.is_ready::<Deployment>(self.observed.name()),
            Bug::FinalizedIfInitialized => !self.shop().status.initialized,
            Bug::FinalizedIfSecret => self.shop().spec.password && self.password().is_none(),
            Bug::FinalizedIfApplied => !self.shop().status.is_applied,
            _ => false,
        };
        let desired = Desired::new();
        if waits { desired.partial() } else { desired.finalized().complete() }
    }
}
