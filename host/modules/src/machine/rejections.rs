//! Components that are refused, and why.

use super::rejection::{Rejection, RetryPolicy};
use crate::source::Digest;

/// The most rejected components that the machine keeps.
pub(super) const REJECTED_MAX: usize = 16;

/// Components that are refused, the oldest first.
#[derive(Clone, Debug, Default)]
pub(super) struct Rejections(Vec<(Digest, Rejection)>);

impl Rejections {
    /// Those that a Module's status lists.
    pub(super) fn restored(rejected: Vec<(Digest, Rejection)>) -> Self {
        Self(rejected)
    }

    /// Why a component is refused.
    pub(super) fn find(&self, digest: Digest) -> Option<&Rejection> {
        self.iter().find(|(rejected, _)| *rejected == digest).map(|(_, rejection)| rejection)
    }

    /// All, the oldest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = &(Digest, Rejection)> {
        self.0.iter()
    }

    /// Those that only an approval lifts.
    pub(super) fn permanent(&self) -> impl Iterator<Item = &(Digest, Rejection)> {
        self.iter().filter(|(_, rejection)| rejection.retry == RetryPolicy::Never)
    }

    /// Whether only an approval lifts the rejection of a component.
    pub(super) fn is_permanent(&self, digest: Digest) -> bool {
        self.permanent().any(|(rejected, _)| *rejected == digest)
    }

    /// Records why a component is refused; the oldest entry is dropped if there are too many.
    pub(super) fn record(&mut self, digest: Digest, rejection: Rejection) {
        self.remove(digest);
        if self.0.len() >= REJECTED_MAX {
            self.0.remove(0);
        }
        self.0.push((digest, rejection));
    }

    /// Allows a component again.
    pub(super) fn remove(&mut self, digest: Digest) {
        self.0.retain(|(rejected, _)| *rejected != digest);
    }

    /// Allows the components again that are refused until another try.
    pub(super) fn remove_retryable(&mut self, which: impl Fn(Digest, RetryPolicy) -> bool) {
        self.0.retain(|(digest, rejection)| !which(*digest, rejection.retry));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejections_are_bounded_and_the_oldest_goes_first() {
        let mut rejections = Rejections::default();
        let digest = |number: usize| Digest::of(number.to_string().as_bytes());
        for number in 0..100 {
            let rejection = Rejection::new("Broken", "broken", RetryPolicy::Never);
            rejections.record(digest(number), rejection);
        }
        assert_eq!(rejections.iter().count(), REJECTED_MAX);
        assert!(rejections.find(digest(99)).is_some() && rejections.find(digest(0)).is_none());
    }
}
