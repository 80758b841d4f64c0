//! The preview: runs a candidate for the existing primaries and writes nothing.
//!
//! A guest is a function, so the difference is exact: the candidate and the active revision get the
//! same observation, and the host compares their desired states and plans. What the active revision
//! does as well does not count: drift that it repairs, objects that it deletes, primaries for which
//! it fails.
//!
//! The host does not run the active revision where the candidate would write nothing and has no
//! problem. Nor does it where the last round of the active revision found every object as desired
//! and nothing has woken the primary since, if the candidate only creates and changes objects.

mod abandoned;
mod compare;
pub mod policy;
mod recreates;
mod sample;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use innkeeper_cluster::{ApiClient, CacheLookup, KindState};
use innkeeper_core::{Object, ObjectKey, ObjectRef};
use innkeeper_modules::{CrdGrant, PlannedChange, Preview, Rejection, RetryPolicy, definitions};
use jiff::Timestamp;
use tokio::sync::{Mutex, watch};

pub use self::abandoned::{ReconciledPrimaries, abandoned};
use self::compare::{Effect, compare};
use self::recreates::Recreates;
use crate::modules::crds::Installer;
use crate::modules::declared::{self, KindRejection};
use crate::modules::granted_secrets::GrantedSecrets;
use crate::modules::open_revision::OpenRevision;
use crate::queue::ReconcileRequest;
use crate::reconcile::observe::Observation;
use crate::reconcile::permit::evaluate_with_permit;
use crate::reconcile::primary_state::PrimaryState;
use crate::reconcile::refusal::ForbiddenWrite;
use crate::shared::Shared;

/// How long a preview takes at most. Then it covers the primaries that it has run.
pub const PREVIEW_TIME: Duration = Duration::from_mins(1);

/// How long the host waits for the kinds that the candidate declares to be read.
pub const READ_TIME: Duration = Duration::from_secs(30);

/// A preview names at most this many missing rights.
const MISSING_RIGHTS_MAX: usize = 5;

/// How often the host checks whether they have been read.
const POLL_PERIOD: Duration = Duration::from_millis(50);

/// What the preview of definitions reads with.
#[derive(Clone, Copy, Debug)]
pub struct DefinitionChecks<'a> {
    /// Requests as the host.
    pub host: &'a ApiClient,
    /// Held while stored objects are checked, over all modules.
    pub object_checks: &'a Mutex<()>,
}

/// Compares a candidate with the active revision, if there is one.
///
/// # Errors
/// If the kinds that it declares cannot be read in time, or the API server serves them otherwise
/// than it declares them.
pub async fn preview(
    shared: &Shared,
    checks: DefinitionChecks<'_>,
    candidate: &Arc<OpenRevision>,
    active: Option<&Arc<OpenRevision>>,
) -> Result<Preview, KindRejection> {
    let unread = until_read(shared, candidate).await;
    unread.map_err(|rejection| KindRejection { rejection, groups: BTreeSet::new() })?;
    declared::check_view(candidate)?;
    let primaries = primaries(candidate);
    // Rights that come during the runs come too late for some of them.
    let missing_rights = missing_rights(candidate);
    let mut preview =
        Preview { primaries: count(primaries.len()), missing_rights, ..Preview::default() };
    definitions(&mut preview, checks, candidate).await;
    let began = shared.env.instant();
    let mut recreates = Recreates::new(&shared.env, began + PREVIEW_TIME);
    for primary in sample::choose(&primaries) {
        if shared.env.instant().duration_since(began) > PREVIEW_TIME {
            break;
        }
        // Both get the same observation, with digests in place of Secrets: nobody has approved the
        // candidate.
        let now = shared.env.now();
        let granted = GrantedSecrets::nothing();
        // Asked before and after the run: a reconcile in between may write what the candidate saw
        // missing.
        let was_in_sync = active.is_some_and(|active| is_in_sync(shared, active, primary));
        let new = effect(shared, candidate, &primary.key, now, &granted).await;
        let old = match active {
            Some(active)
                if active.primary_kind == candidate.primary_kind
                    && new.needs_comparison()
                    && (!was_in_sync
                        || !is_in_sync(shared, active, primary)
                        || new.needs_active_run(&preview)) =>
            {
                Some(effect(shared, active, &primary.key, now, &granted).await)
            }
            _ => None,
        };
        preview.previewed += 1;
        let new = recreates.mark(candidate, &primary.key, new, old.as_ref()).await;
        let primary = ObjectRef::new(candidate.primary_kind.clone(), primary.key.clone());
        compare(&mut preview, &primary, (new, old), now);
    }
    if preview.missing_rights.is_empty() {
        preview.missing_rights = self::missing_rights(candidate);
    }
    Ok(preview)
}

/// The rights that the account lacks to read what a candidate declares.
fn missing_rights(candidate: &OpenRevision) -> Vec<String> {
    let states = candidate.view.states();
    let denial = |state: &KindState| match state {
        KindState::Forbidden(denial) => Some(denial.to_string()),
        _ => None,
    };
    states.values().filter_map(denial).take(MISSING_RIGHTS_MAX).collect()
}

/// Counts the definitions that the candidate would install or change.
async fn definitions(
    preview: &mut Preview,
    checks: DefinitionChecks<'_>,
    candidate: &OpenRevision,
) {
    let spec = candidate.spec();
    let (_sender, grant) = watch::channel(CrdGrant::of(spec));
    let installer = Installer {
        host: checks.host,
        client: &candidate.client,
        module: candidate.name(),
        namespaces: &spec.namespaces,
        adopts: spec.adopts_now(),
        grant: &grant,
        object_checks: checks.object_checks,
    };
    let requests = definitions::crd_requests(candidate.guest().manifest(), spec);
    for change in installer.preview(&requests).await {
        if change.change != PlannedChange::Create {
            preview.objects += 1;
        }
        preview.add(change.change, change.object, change.fields);
    }
}

/// Whether a previous revision fails for a primary now. Nothing is written. Its guest gets the
/// values of granted Secrets, as when it was active: with digests it could fail where it did not.
/// If they cannot be read, it counts as failing. So does a revision that would now need the right
/// which the module lacks (`forbidden`), and one that desires what no module may write.
pub async fn fails(
    shared: &Shared,
    previous: &OpenRevision,
    key: &ObjectKey,
    forbidden: Option<&ForbiddenWrite>,
) -> bool {
    match previous.view.snapshot().get(&previous.primary_kind, key) {
        CacheLookup::Found(_) => {
            let now = shared.env.now();
            let Ok(granted) = GrantedSecrets::read(previous, key).await else { return true };
            let effect = effect(shared, previous, key, now, &granted).await;
            effect.is_failure() || forbidden.is_some_and(|write| effect.needs(write))
        }
        _ => false,
    }
}

/// Waits until each declared kind has been read once, or a read of it has failed.
async fn until_read(shared: &Shared, candidate: &OpenRevision) -> Result<(), Rejection> {
    let began = shared.env.instant();
    loop {
        let states = candidate.view.states();
        let waits: Vec<_> = states
            .iter()
            .filter(|(_, state)| matches!(state, KindState::Syncing))
            .map(|(kind, _)| kind.to_string())
            .collect();
        if waits.is_empty() {
            return Ok(());
        }
        if shared.env.instant().duration_since(began) > READ_TIME {
            return Err(Rejection::new(
                "PreviewFailed",
                format!(
                    "the host cannot preview it: {} could not be read within {} s",
                    waits.join(", "),
                    READ_TIME.as_secs()
                ),
                RetryPolicy::Later,
            ));
        }
        shared.env.sleep(POLL_PERIOD).await;
    }
}

/// The primaries that a revision reconciles, in order.
fn primaries(revision: &OpenRevision) -> Vec<Arc<Object>> {
    let mut all = revision.primaries();
    all.retain(|primary| revision.selects(primary) && !primary.is_terminating());
    all
}

/// Whether the active revision is known to find every object of a primary as desired.
fn is_in_sync(shared: &Shared, active: &OpenRevision, primary: &Object) -> bool {
    let request = ReconcileRequest { module: active.name().clone(), key: primary.key.clone() };
    shared.is_in_sync(&request, &primary.uid)
}

/// What a revision would do for a primary now. Nothing is written.
async fn effect(
    shared: &Shared,
    active: &OpenRevision,
    key: &ObjectKey,
    now: Timestamp,
    granted: &GrantedSecrets,
) -> Effect {
    let snapshot = active.view.snapshot();
    let CacheLookup::Found(primary) = snapshot.get(&active.primary_kind, key) else {
        return Effect::None;
    };
    let request = ReconcileRequest { module: active.name().clone(), key: key.clone() };
    let mut state = shared.primary_state(&request);
    if state.uid != primary.uid {
        state = PrimaryState::default();
    }
    // A prune that waits for one more clean round counts.
    state.planner.clean = true;
    let owner = active.owner(&primary);
    let mut observation = Observation::new(active, &snapshot, primary, now, granted);
    let evaluation = evaluate_with_permit(shared, &mut observation, &owner, &state).await;
    Effect::of(evaluation.result)
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
