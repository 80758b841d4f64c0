//! Approvals and rejections by users, as the Module's annotations say them.

use crate::source::Digest;

/// What users decided about components.
#[derive(Clone, Debug, Default)]
pub(super) struct Approvals {
    /// The component that may become active, whatever it would do.
    pub(super) approved: Option<Digest>,
    /// The component that has become active by the present approval, which does not count again: a
    /// later return to that component is previewed, and its rejection stays.
    pub(super) used: Option<Digest>,
    /// The component that must not become active. A rejection counts once: a later approval lifts
    /// it, although the annotation stays.
    pub(super) rejected: Option<Digest>,
    /// Which annotations name no digest, and what to do.
    pub(super) invalid: Option<String>,
}

impl Approvals {
    /// Takes the present annotations; returns the component that is newly rejected. Of two
    /// decisions about one component the later counts; if both came at once, the rejection.
    pub(super) fn update(
        &mut self,
        approve: Option<Digest>,
        reject: Option<Digest>,
    ) -> Option<Digest> {
        let newly_rejected = reject.filter(|digest| self.rejected != Some(*digest));
        self.used = self.used.filter(|_| approve == self.used);
        self.approved =
            approve.filter(|digest| ![newly_rejected, self.used].contains(&Some(*digest)));
        self.rejected = reject;
        newly_rejected
    }

    /// Records that a component has become active.
    pub(super) fn record_active(&mut self, digest: Digest) {
        if self.approved.take_if(|approved| *approved == digest).is_some() {
            self.used = Some(digest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_decision_counts_and_of_two_at_once_the_rejection() {
        let (a, b) = (Some(Digest::of(b"a")), Some(Digest::of(b"b")));
        for (updates, newly_rejected, approved) in [
            (vec![(a, None)], None, a),
            (vec![(None, a)], a, None),
            (vec![(a, a)], a, None),
            (vec![(None, a), (a, a)], None, a),
            (vec![(a, None), (a, a)], a, None),
            (vec![(a, b)], b, a),
            (vec![(a, None), (None, None)], None, None),
        ] {
            let mut approvals = Approvals::default();
            let last = updates.into_iter().map(|(one, other)| approvals.update(one, other)).last();
            assert_eq!((last.flatten(), approvals.approved), (newly_rejected, approved));
        }
    }

    #[test]
    fn approval_counts_until_its_component_is_active_and_again_when_it_is_renewed() {
        let (a, b) = (Digest::of(b"a"), Digest::of(b"b"));
        let mut approvals = Approvals::default();
        approvals.update(Some(a), None);
        approvals.record_active(b);
        assert_eq!((approvals.approved, approvals.used), (Some(a), None));
        approvals.record_active(a);
        assert_eq!((approvals.approved, approvals.used), (None, Some(a)));
        // The annotation that rejects changes.
        approvals.update(Some(a), Some(b));
        assert_eq!((approvals.approved, approvals.used), (None, Some(a)));
        approvals.update(None, Some(b));
        approvals.update(Some(a), Some(b));
        assert_eq!((approvals.approved, approvals.used), (Some(a), None));
    }
}
