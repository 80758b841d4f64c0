//! The revisions that were active before the present one.

use super::rejections::Rejections;
use crate::source::Digest;

/// The most revisions that a rollback can return to. The host keeps a snapshot of each.
pub const HISTORY_MAX: usize = 2;

/// The revisions that were active before the present one, each once, in the order of their last
/// activation.
#[derive(Clone, Debug, Default)]
pub(super) struct History(Vec<Digest>);

impl History {
    /// The history that a Module's status lists, the last active revision first.
    pub(super) fn restored(mut newest_first: Vec<Digest>) -> Self {
        newest_first.truncate(HISTORY_MAX);
        newest_first.reverse();
        Self(newest_first)
    }

    /// All revisions, the last active one first.
    pub(super) fn newest_first(&self) -> impl Iterator<Item = Digest> + '_ {
        self.0.iter().rev().copied()
    }

    /// Whether a component was active before.
    pub(super) fn contains(&self, digest: Digest) -> bool {
        self.0.contains(&digest)
    }

    /// The revision that a rollback returns to: the last active one that is not rejected.
    pub(super) fn previous(&self, rejections: &Rejections) -> Option<Digest> {
        self.newest_first().find(|digest| !rejections.is_permanent(*digest))
    }

    /// The history once `next` is active in place of `before`. If it is too long, the oldest
    /// rejected revision goes first; `before` stays, also if it is rejected.
    pub(super) fn after_swap(
        &self,
        before: Option<Digest>,
        next: Digest,
        rejections: &Rejections,
    ) -> Self {
        let all = self.0.iter().copied().chain(before);
        let mut kept: Vec<Digest> = all.filter(|digest| *digest != next).collect();
        while kept.len() > HISTORY_MAX {
            let older = &kept[..kept.len() - 1];
            let rejected = older.iter().position(|digest| rejections.is_permanent(*digest));
            kept.remove(rejected.unwrap_or_default());
        }
        Self(kept)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Rejection, RetryPolicy};
    use super::*;

    /// The history after these revisions became active in turn, and what a rollback returns to.
    fn history(activated: &[&str], rejected: &[&str]) -> (String, Option<Digest>) {
        let mut rejections = Rejections::default();
        for name in rejected {
            let rejection = Rejection::new("Rejected", "rejected", RetryPolicy::Never);
            rejections.record(digest(name), rejection);
        }
        let (mut all, mut before) = (History::default(), None);
        for name in activated {
            all = all.after_swap(before, digest(name), &rejections);
            before = Some(digest(name));
        }
        let names = ["a", "b", "c", "d"];
        let name = |one: Digest| names.into_iter().find(|name| digest(name) == one);
        (all.newest_first().filter_map(name).collect(), all.previous(&rejections))
    }

    fn digest(name: &str) -> Digest {
        Digest::of(name.as_bytes())
    }

    #[test]
    fn previous_is_the_last_active_revision_that_is_not_rejected() {
        for (activated, rejected, kept, previous) in [
            (vec!["a"], vec![], "", None),
            (vec!["a", "b"], vec![], "a", Some("a")),
            (vec!["a", "b", "a"], vec![], "b", Some("b")),
            (vec!["a", "b", "a"], vec!["b"], "b", None),
            (vec!["a", "b", "c", "b"], vec!["c"], "ca", Some("a")),
            (vec!["a", "b", "c", "b", "a"], vec!["b", "c"], "bc", None),
            // Too many: the oldest goes, a rejected one first.
            (vec!["a", "b", "c", "d"], vec![], "cb", Some("c")),
            (vec!["a", "b", "c", "b", "d"], vec!["c"], "ba", Some("b")),
            // The revision that was active until now stays.
            (vec!["a", "b", "c", "d"], vec!["c"], "cb", Some("b")),
        ] {
            let found = history(&activated, &rejected);
            assert_eq!(found, (kept.to_owned(), previous.map(digest)), "{activated:?}");
        }
    }

    #[test]
    fn history_of_a_status_is_bounded() {
        let all = History::restored(["c", "b", "a"].map(digest).to_vec());
        assert!(all.newest_first().eq(["c", "b"].map(digest)));
    }
}
