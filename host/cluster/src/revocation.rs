//! Taking back the right to send requests as an account.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether requests of some sessions may still be sent. Clones are one: once revoked, nothing is
/// sent by any session that has it, not even a repeat of a request under way.
#[derive(Clone, Debug, Default)]
pub struct Revocation(Arc<AtomicBool>);

impl Revocation {
    /// Stops the sessions that have it, for good.
    pub fn revoke(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Whether it was revoked.
    pub fn is_revoked(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}
