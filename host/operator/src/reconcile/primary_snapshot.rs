//! The first step of a round: a primary, and a snapshot of everything that its guest may read.

use std::ops::ControlFlow;
use std::sync::Arc;

use innkeeper_cluster::{CacheLookup, CacheSnapshot};
use innkeeper_core::{Object, ObjectRef};

use crate::modules::granted_secrets::GrantedSecrets;
use crate::modules::health::RunOutcome;
use crate::queue::ReconcileResult;
use crate::reconcile::context::Context;
use crate::reconcile::live_read::read_live;
use crate::reconcile::primary_state::PrimaryState;
use crate::reconcile::problem::Problem;
use crate::reconcile::round::{RoundEnd, RoundReport};
use crate::shared::RunGuard;

/// A primary and the caches at one moment.
pub struct PrimarySnapshot<'a> {
    /// The primary.
    pub primary: Arc<Object>,
    /// All kinds that the module declares.
    pub cache: CacheSnapshot,
    /// Keeps the changes from before the snapshot on, until the reads of the run are recorded.
    pub read_guard: RunGuard<'a>,
}

impl<'a> PrimarySnapshot<'a> {
    /// Reads live what the caches do not know, then takes the snapshot. Breaks if there is no
    /// primary to reconcile, or if a live read failed.
    pub async fn take(
        context: &Context<'a>,
        state: &mut PrimaryState,
    ) -> ControlFlow<RoundEnd, Self> {
        let (kind, key) = (&context.revision.primary_kind, &context.request.key);
        if context.caches.is_unknown(kind, key) {
            state.needs_read.insert(ObjectRef::new(kind.clone(), key.clone()));
        }
        let unread = read_unknown(context, state).await.err();
        let read_guard = context.shared.begin_run(context.request);
        let cache = context.revision.view.snapshot();
        let primary = find_primary(context, &cache, state)?;
        if state.uid != primary.uid {
            context.shared.events.forget(&context.request.module, &state.uid);
            *state = PrimaryState { uid: primary.uid.clone(), ..PrimaryState::default() };
        }
        state.carried_round.begin(primary.generation);
        let Some(problem) = unread else {
            return ControlFlow::Continue(Self { primary, cache, read_guard });
        };
        // The problem names an object, and a guest can name an object after a Secret's value.
        let report = RoundReport::new(&primary);
        ControlFlow::Break(match GrantedSecrets::read(context.revision, &primary.key).await {
            Ok(granted) => report.granted(Arc::new(granted)).blocked(problem),
            Err(problem) => report.blocked(problem),
        })
    }
}

/// The primary. Breaks if it is gone, or if it is not known what there is.
fn find_primary(
    context: &Context<'_>,
    cache: &CacheSnapshot,
    state: &mut PrimaryState,
) -> ControlFlow<RoundEnd, Arc<Object>> {
    let result = match cache.get(&context.revision.primary_kind, &context.request.key) {
        // A guest sees no cache that has not been read yet; the end of the read wakes the request.
        CacheLookup::Found(_) if !cache.is_complete() => {
            if !context.revision.is_in_teardown() {
                context.shared.health.record(context.request, RunOutcome::default());
            }
            ReconcileResult::Ok(None)
        }
        CacheLookup::Found(primary) => return ControlFlow::Continue(primary),
        CacheLookup::Absent => ReconcileResult::Forget,
        CacheLookup::Unknown => {
            let kind = context.revision.primary_kind.clone();
            state.needs_read.insert(ObjectRef::new(kind, context.request.key.clone()));
            ReconcileResult::Failed
        }
        // A change of what the module may read wakes the request.
        CacheLookup::Unreadable(_) => ReconcileResult::AwaitChange(None),
    };
    ControlFlow::Break(RoundEnd::NothingToReport(result))
}

/// Reads the Secrets that the Module grants. Breaks if one cannot be read.
pub async fn read_granted_secrets(
    context: &Context<'_>,
    primary: &Arc<Object>,
) -> ControlFlow<RoundEnd, Arc<GrantedSecrets>> {
    match GrantedSecrets::read(context.revision, &primary.key).await {
        Ok(granted) => ControlFlow::Continue(Arc::new(granted)),
        Err(problem) => ControlFlow::Break(RoundReport::new(primary).blocked(problem)),
    }
}

/// Reads live the objects of which the caches do not know whether they exist, and tells the caches.
///
/// # Errors
/// The problem with the first object that cannot be read.
async fn read_unknown(context: &Context<'_>, state: &mut PrimaryState) -> Result<(), Problem> {
    let active = context.revision;
    // A kind that only a previous revision declared may be out of this one's reach.
    state.needs_read.retain(|object_ref| active.known_kind(&object_ref.kind).is_some());
    while let Some(object_ref) = state.needs_read.first().cloned() {
        read_live(context, &object_ref).await?;
        state.needs_read.remove(&object_ref);
    }
    Ok(())
}
