//! The revocation of clients: [`Revocation`].

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether some clients may still send requests. Clones are one revocation: once revoked, its
/// clients send nothing more, not even repeats.
#[derive(Clone, Debug, Default)]
pub struct Revocation(Arc<AtomicBool>);

impl Revocation {
    /// Stops the clients that have it, for good.
    pub fn revoke(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Whether [`Revocation::revoke`] was called.
    pub fn is_revoked(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}
