//! The preview of a policy: how the decisions of a candidate differ from those of the active
//! policy.

use innkeeper_core::counted;

use crate::machine::{Rejection, RetryPolicy};

/// The most objects and requests that a preview names.
pub const EXAMPLES_MAX: usize = 10;

/// How the decision of a candidate about one object or request differs. The most important comes
/// first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReviewChange {
    /// The candidate denies it, and the active policy allows it.
    Deny,
    /// The review by the candidate fails, and that by the active policy does not.
    Fail,
    /// Both allow it, with different changes of the object.
    Change,
    /// The candidate allows it, and the active policy denies it.
    Allow,
}

impl ReviewChange {
    /// The name in the status.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Deny => "Deny",
            Self::Fail => "Fail",
            Self::Change => "Change",
            Self::Allow => "Allow",
        }
    }
}

/// An object or a request about which the decisions differ.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ReviewExample {
    /// How the decision differs.
    pub change: ReviewChange,
    /// The object (`Deployment web/a`) or the request (`UPDATE deployments web/a`).
    pub object: String,
    /// The messages of the denial or the failure, or the fields that are changed differently.
    pub details: Vec<String>,
}

/// How the decisions of a candidate about existing objects and recent requests differ from those of
/// the active policy. Without an active policy, every request is allowed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PolicyPreview {
    /// The existing objects that the candidate would review.
    pub objects: u32,
    /// Those of them that the preview reviewed.
    pub reviewed: u32,
    /// The recent requests that the preview reviewed again.
    pub requests: u32,
    /// The objects and requests that only the candidate denies.
    pub newly_denied: u32,
    /// Those that only the active policy denies.
    pub newly_allowed: u32,
    /// Those that both allow with different changes.
    pub newly_changed: u32,
    /// Those whose review fails only with the candidate.
    pub newly_failing: u32,
    /// Whether the mode of the candidate is `Enforce` in some namespaces.
    pub enforces: bool,
    /// Objects that the preview left out, each with the reason: at most [`EXAMPLES_MAX`].
    pub left_out: Vec<String>,
    /// At most [`EXAMPLES_MAX`], the worst first.
    pub examples: Vec<ReviewExample>,
}

impl PolicyPreview {
    /// Counts a decision that differs.
    pub fn add(&mut self, change: ReviewChange, object: String, details: Vec<String>) {
        let count = match change {
            ReviewChange::Deny => &mut self.newly_denied,
            ReviewChange::Fail => &mut self.newly_failing,
            ReviewChange::Change => &mut self.newly_changed,
            ReviewChange::Allow => &mut self.newly_allowed,
        };
        *count = count.saturating_add(1);
        let at = self.examples.partition_point(|other| other.change <= change);
        if at < EXAMPLES_MAX {
            self.examples.insert(at, ReviewExample { change, object, details });
            self.examples.truncate(EXAMPLES_MAX);
        }
    }

    /// Records objects that the preview left out, with the reason.
    pub fn leave_out(&mut self, what: String) {
        if self.left_out.len() < EXAMPLES_MAX {
            self.left_out.push(what);
        }
    }

    /// The reason why the candidate requires an approval; `None` if it does not. The candidate may
    /// newly deny `denied_max` objects and requests, and newly fail for `failures_max` of them.
    /// Denials count only if it enforces: otherwise they refuse no request.
    pub fn held_by(&self, denied_max: u32, failures_max: u32) -> Option<Rejection> {
        let rejection = |reason: &str, message: String, change: ReviewChange| {
            let message = message + &self.example_of(change);
            Some(Rejection::new(reason, message, RetryPolicy::Never))
        };
        let of = self.subjects();
        if self.enforces && self.newly_denied > denied_max {
            let message = format!(
                "it would deny {} of {of}, allowed so far, and rollout.maxNewlyDenied is {}",
                self.newly_denied, denied_max
            );
            return rejection("WouldDeny", message, ReviewChange::Deny);
        }
        if self.newly_failing > failures_max {
            let message = format!(
                "its review newly fails for {} of {of}, and rollout.maxFailures is {}",
                self.newly_failing, failures_max
            );
            return rejection("WouldFail", message, ReviewChange::Fail);
        }
        None
    }

    /// The counts, in one line.
    pub fn summary(&self) -> String {
        let (denied, allowed) = (self.newly_denied, self.newly_allowed);
        format!(
            "{denied} newly denied, {allowed} newly allowed, {} changed differently, {} newly failing, of {} (of {}) and {}",
            self.newly_changed,
            self.newly_failing,
            counted(self.reviewed, "existing object", "existing objects"),
            self.objects,
            counted(self.requests, "recent request", "recent requests")
        )
    }

    fn subjects(&self) -> String {
        let objects = counted(self.reviewed, "existing object", "existing objects");
        match self.requests {
            0 => objects,
            requests => {
                format!("{objects} and {}", counted(requests, "recent request", "recent requests"))
            }
        }
    }

    fn example_of(&self, change: ReviewChange) -> String {
        let Some(example) = self.examples.iter().find(|one| one.change == change) else {
            return String::new();
        };
        let ReviewExample { object, details, .. } = example;
        let details = match details.as_slice() {
            [] => String::new(),
            all => format!(" ({})", all.join("; ")),
        };
        format!("; for example {object}{details}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn preview(changes: &[(ReviewChange, u32)], enforces: bool) -> PolicyPreview {
        let mut preview = PolicyPreview {
            objects: 40,
            reviewed: 20,
            requests: 5,
            enforces,
            ..PolicyPreview::default()
        };
        for (change, count) in changes {
            for index in 0..*count {
                let details = vec!["label team is missing".to_owned()];
                preview.add(*change, format!("Deployment web/{index}"), details);
            }
        }
        preview
    }

    fn reason(preview: &PolicyPreview, denied_max: u32, failures_max: u32) -> Option<String> {
        preview.held_by(denied_max, failures_max).map(|rejection| rejection.reason)
    }

    #[test]
    fn new_denials_require_approval_only_where_the_mode_is_enforce() {
        let denies = preview(&[(ReviewChange::Change, 3), (ReviewChange::Deny, 2)], true);
        let rejection = denies.held_by(0, 0).unwrap();
        assert_eq!(rejection.reason, "WouldDeny");
        assert_eq!(
            rejection.message,
            "it would deny 2 of 20 existing objects and 5 recent requests, allowed so far, and rollout.maxNewlyDenied is 0; for example Deployment web/0 (label team is missing)"
        );
        assert_eq!(reason(&preview(&[(ReviewChange::Deny, 2)], false), 0, 0), None);
        let harmless = [(ReviewChange::Change, 9), (ReviewChange::Allow, 9)];
        assert_eq!(reason(&preview(&harmless, true), 0, 0), None);
    }

    #[test]
    fn limits_of_denials_and_failures_are_inclusive_and_failures_count_in_every_mode() {
        let within = [(ReviewChange::Deny, 2), (ReviewChange::Fail, 1)];
        assert_eq!(reason(&preview(&within, true), 2, 1), None);
        let denies = preview(&[(ReviewChange::Deny, 3)], true);
        assert_eq!(reason(&denies, 2, 1).unwrap(), "WouldDeny");
        for enforces in [true, false] {
            let fails = preview(&[(ReviewChange::Fail, 2)], enforces);
            let rejection = fails.held_by(2, 1).unwrap();
            assert_eq!(rejection.reason, "WouldFail");
            assert!(rejection.message.contains("rollout.maxFailures is 1"), "{rejection:?}");
        }
    }

    #[test]
    fn ten_examples_are_kept_with_the_most_severe_first() {
        let all = preview(
            &[(ReviewChange::Allow, 30), (ReviewChange::Change, 8), (ReviewChange::Deny, 2)],
            true,
        );
        let examples: Vec<_> = all.examples.iter().map(|one| one.change.as_str()).collect();
        assert_eq!(examples[..3], ["Deny", "Deny", "Change"]);
        assert_eq!(examples.len(), EXAMPLES_MAX);
        assert_eq!((all.newly_allowed, all.newly_changed, all.newly_denied), (30, 8, 2));
        assert_eq!(
            all.summary(),
            "2 newly denied, 30 newly allowed, 8 changed differently, 0 newly failing, of 20 existing objects (of 40) and 5 recent requests"
        );
    }

    #[test]
    fn objects_that_are_left_out_are_bounded_in_number() {
        let mut preview = PolicyPreview::default();
        for index in 0..100 {
            preview.leave_out(format!("kind {index}"));
        }
        assert_eq!(preview.left_out.len(), EXAMPLES_MAX);
    }
}
