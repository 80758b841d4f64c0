//! Whether the API server serves the kinds of a manifest as the manifest declares them.
//!
//! A candidate that declares a kind otherwise is refused: it never replaces an active revision. A
//! kind that is not served at all does not count: the guest may install its definition.

use std::collections::BTreeSet;
use std::time::Duration;

use innkeeper_cluster::error::KIND_MISMATCH;
use innkeeper_cluster::{ApiClient, KindState, Mismatch, ServedKind};
use innkeeper_contract::{Kind, KindRole};
use innkeeper_modules::{Rejection, RetryPolicy, manifest};
use innkeeper_sandbox::Guest;

use super::open_revision::{self, OpenRevision};

/// The maximum age of the answer of discovery on which a candidate is accepted.
const AGE_MAX: Duration = Duration::from_secs(5);

/// The most mismatches that one message lists.
const MESSAGE_KINDS_MAX: usize = 5;

/// Why a candidate is refused.
#[derive(Debug)]
pub struct KindRejection {
    /// The reason and the message.
    pub rejection: Rejection,
    /// The groups whose kinds are served otherwise: a change there may help.
    pub groups: BTreeSet<String>,
}

/// Compares the kinds that a guest declares with discovery.
///
/// # Errors
/// If one is served otherwise, or discovery does not answer.
pub async fn check(host: &ApiClient, guest: &Guest) -> Result<(), KindRejection> {
    // A malformed manifest is refused elsewhere; the host sends no request with its names.
    if manifest::check(guest.manifest()).is_err() {
        return Ok(());
    }
    let mut found = Vec::new();
    let mut groups = BTreeSet::new();
    // The kind of a parameter replaces the default, which the API server may not serve.
    let is_default = |kind: &Kind| {
        let mut parameters = guest.manifest().kind_parameters.iter();
        Some(kind) == guest.manifest().primary.as_ref()
            && parameters.any(|one| one.role == KindRole::Primary)
    };
    for kind in open_revision::declared(guest).into_iter().filter(|kind| !is_default(kind)) {
        match host.discovery().check(&kind, AGE_MAX).await {
            Ok(ServedKind::AsDeclared | ServedKind::NotServed) => {}
            Ok(ServedKind::Mismatched(mismatch)) => {
                groups.insert(kind.group().to_owned());
                found.push(mismatch);
            }
            Err(error) => {
                let message = format!(
                    "{kind} cannot be compared with what the API server serves: {error}; the host tries again"
                );
                let rejection = Rejection::new(error.reason(), message, RetryPolicy::Later);
                return Err(KindRejection { rejection, groups });
            }
        }
    }
    rejection(&found).map_err(|rejection| KindRejection { rejection, groups })
}

/// Compares the kinds that a candidate declares with what its caches have found in the meantime.
///
/// # Errors
/// If a kind is served otherwise.
pub fn check_view(candidate: &OpenRevision) -> Result<(), KindRejection> {
    let states = candidate.view.states();
    let mut found = Vec::new();
    let mut groups = BTreeSet::new();
    for kind in candidate.kinds() {
        if let Some(KindState::Mismatched(mismatch)) = states.get(kind) {
            groups.insert(kind.group().to_owned());
            found.push(mismatch.clone());
        }
    }
    rejection(&found).map_err(|rejection| KindRejection { rejection, groups })
}

fn rejection(found: &[Mismatch]) -> Result<(), Rejection> {
    if found.is_empty() {
        return Ok(());
    }
    let mut mismatches: Vec<String> =
        found.iter().take(MESSAGE_KINDS_MAX).map(ToString::to_string).collect();
    if found.len() > MESSAGE_KINDS_MAX {
        mismatches.push(format!("and {} more", found.len() - MESSAGE_KINDS_MAX));
    }
    Err(Rejection::new(KIND_MISMATCH, mismatches.join("; "), RetryPolicy::Later))
}
