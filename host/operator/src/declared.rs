//! Whether the API server serves the kinds of a manifest as the manifest declares them.
//!
//! A candidate that declares one otherwise is refused before it serves: it never replaces an active
//! revision. A kind that is not served at all is no reason: the guest may install its definition.

use std::collections::BTreeSet;
use std::time::Duration;

use innkeeper_cluster::error::KIND_MISMATCH;
use innkeeper_cluster::{KindState, Mismatch, Served, Session};
use innkeeper_modules::{Again, Verdict, manifest};
use innkeeper_sandbox::Guest;

use crate::running::{self, Running};

/// How old an answer of discovery may be on which a candidate is let through.
const AGE_MAX: Duration = Duration::from_secs(5);

/// The most mismatches that one message lists.
const TOLD_MAX: usize = 5;

/// Why a candidate is refused.
#[derive(Debug)]
pub struct Refused {
    /// What is said of it.
    pub verdict: Verdict,
    /// The groups whose kinds are served otherwise: a change there may help.
    pub groups: BTreeSet<String>,
}

/// Compares the kinds that a guest declares with discovery.
///
/// # Errors
/// If one is served otherwise, or discovery does not answer.
pub async fn check(host: &Session, guest: &Guest) -> Result<(), Refused> {
    // One that is no manifest is refused as such, and its names are not asked for.
    if manifest::check(guest.manifest()).is_err() {
        return Ok(());
    }
    let mut found = Vec::new();
    let mut groups = BTreeSet::new();
    for kind in running::declared(guest) {
        match host.discovery().served(&kind, AGE_MAX).await {
            Ok(Served::AsDeclared | Served::Not) => {}
            Ok(Served::Otherwise(mismatch)) => {
                groups.insert(kind.group().to_owned());
                found.push(mismatch);
            }
            Err(error) => {
                let message = format!(
                    "{kind} cannot be compared with what the API server serves: {error}; it is tried again"
                );
                let verdict = Verdict::new(error.reason(), message, Again::Later);
                return Err(Refused { verdict, groups });
            }
        }
    }
    verdict(&found).map_err(|verdict| Refused { verdict, groups })
}

/// The same by what a candidate's caches have found meanwhile.
///
/// # Errors
/// If a kind is served otherwise.
pub fn check_view(candidate: &Running) -> Result<(), Refused> {
    let states = candidate.view.states();
    let mut found = Vec::new();
    let mut groups = BTreeSet::new();
    for kind in candidate.kinds() {
        if let Some(KindState::Mismatched(mismatch)) = states.get(kind) {
            groups.insert(kind.group().to_owned());
            found.push(mismatch.clone());
        }
    }
    verdict(&found).map_err(|verdict| Refused { verdict, groups })
}

fn verdict(found: &[Mismatch]) -> Result<(), Verdict> {
    if found.is_empty() {
        return Ok(());
    }
    let mut told: Vec<String> = found.iter().take(TOLD_MAX).map(ToString::to_string).collect();
    if found.len() > TOLD_MAX {
        told.push(format!("and {} more", found.len() - TOLD_MAX));
    }
    Err(Verdict::new(KIND_MISMATCH, told.join("; "), Again::Later))
}
