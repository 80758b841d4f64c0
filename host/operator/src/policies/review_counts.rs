//! How many requests one active policy has reviewed, and how many of them without a verdict.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// How many requests one active policy has reviewed since its swap.
#[derive(Debug, Default)]
pub struct ReviewCounts {
    reviewed: AtomicU64,
    failed: AtomicU64,
    example: Mutex<Option<String>>,
}

impl ReviewCounts {
    /// The requests that the policy was asked about, those without a verdict included.
    pub fn reviewed(&self) -> u64 {
        self.reviewed.load(Ordering::Relaxed)
    }

    /// The requests without a verdict.
    pub fn failed(&self) -> u64 {
        self.failed.load(Ordering::Relaxed)
    }

    /// Why the last request without a verdict has none.
    pub fn example(&self) -> Option<String> {
        self.example.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Counts a verdict.
    pub fn count(&self) {
        self.reviewed.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a request without a verdict, and why.
    pub fn count_failure(&self, why: &str) {
        self.count();
        self.failed.fetch_add(1, Ordering::Relaxed);
        // Another review writes an example just now.
        if let Ok(mut example) = self.example.try_lock() {
            *example = Some(why.to_owned());
        }
    }
}
