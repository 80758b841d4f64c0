//! The rotation: when each certificate changes, so that no request fails.
//!
//! A serving certificate changes at once: its authority is trusted already. An authority changes in
//! three steps: every webhook configuration trusts the next authority before it signs, and the
//! previous one until every replica serves a certificate of the next one. The Secret has the step,
//! so a restarted host or another leader continues the change.

use std::collections::BTreeSet;

use super::change::Change;
use super::shared::{Certificates, Phase};
use super::validity::Validity;

/// The time for which the API server may still use a configuration that it has read before, in
/// seconds.
const CONFIGURATION_DELAY: u64 = 30;

/// The time for which the API server may still use a connection with an older certificate, in
/// seconds.
const CONNECTION_DELAY: u64 = 60;

/// Since when the webhook configurations and the replicas have the present certificates, in seconds
/// since 1970.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Observed {
    /// Since when every webhook configuration of the host trusts the present bundle; `None` if one
    /// does not.
    pub bundle_everywhere_since: Option<i64>,
    /// Since when every replica serves the present certificate; `None` if one does not.
    pub serving_everywhere_since: Option<i64>,
}

impl Certificates {
    /// Returns the change that is due, if any.
    ///
    /// `names` are the names by which clients call the server; `now` is in seconds since 1970.
    pub fn due(&self, names: &[String], observed: Observed, now: i64) -> Option<Change> {
        let (authority, serving) = (self.authority_validity(), self.serving.validity);
        if authority.ends <= now {
            return Some(match &self.phase {
                // Configurations may trust the next authority already, but never a third one.
                Phase::Announced { next } if next.validity().ends > now => Change::Switch,
                _ => Change::Replace,
            });
        }
        // A renewed certificate would not end later than its authority either.
        let is_old = has_passed(serving, now, 2, 3) && serving.ends < authority.ends;
        if is_old || !is_same_set(&self.serving.names, names) {
            return Some(Change::RenewServing);
        }
        // A clock that was corrected must not stop a change, so only the distance counts.
        let waited = |since: Option<i64>, seconds: u64| {
            since.is_some_and(|since| now.abs_diff(since) >= seconds)
        };
        let (change, is_due) = match &self.phase {
            Phase::Stable => (Change::Announce, has_passed(authority, now, 5, 6)),
            Phase::Announced { .. } => {
                (Change::Switch, waited(observed.bundle_everywhere_since, CONFIGURATION_DELAY))
            }
            Phase::Switched { .. } => {
                (Change::DropPrevious, waited(observed.serving_everywhere_since, CONNECTION_DELAY))
            }
        };
        is_due.then_some(change)
    }
}

/// Whether two lists have the same names, in any order.
fn is_same_set(one: &[String], other: &[String]) -> bool {
    BTreeSet::from_iter(one) == BTreeSet::from_iter(other)
}

/// Whether `part / of` of the lifetime of a certificate is over.
fn has_passed(validity: Validity, now: i64, part: i64, of: i64) -> bool {
    let lifetime = validity.ends.saturating_sub(validity.made);
    now >= validity.made.saturating_add(lifetime.saturating_mul(part) / of)
}
