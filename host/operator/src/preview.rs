//! A rehearsal: a candidate is run on the primaries that there are, beside what serves, and
//! nothing is written.
//!
//! Guests are functions, so what changes is told exactly: both versions are given the same
//! observation at the same time, and their wishes are compared with each other and their plans with
//! what is live. Drift that is being repaired anyway, deletions that are due anyway and primaries
//! that fail anyway are not held against the candidate.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use innkeeper_cluster::KindState;
use innkeeper_core::desired::DesiredState;
use innkeeper_core::plan::{Action, Plan, SkipReason};
use innkeeper_core::{Object, ObjectKey, ObjectRef, diff, foreign, guest_status};
use innkeeper_modules::{PlannedChange, Preview, Rejection, RetryPolicy, definitions};
use innkeeper_sandbox::Outcome;
use jiff::Timestamp;

use crate::apply;
use crate::modules::active_module::ActiveModule;
use crate::modules::crds::Installer;
use crate::modules::declared::{self, Refused};
use crate::modules::granted_secrets::GrantedSecrets;
use crate::observe::Observation;
use crate::queue::ReconcileRequest;
use crate::reconcile;
use crate::shared::Shared;

/// For so many primaries a candidate is run at most; of more, evenly chosen ones of all namespaces.
pub const PRIMARIES_MAX: usize = 500;

/// So long does a rehearsal take at most; then it is about the primaries that it came to.
pub const PREVIEW_TIME: Duration = Duration::from_mins(1);

/// So long is waited for what the candidate declares to be read.
pub const READ_TIME: Duration = Duration::from_secs(30);

/// How often is looked whether it has been read.
const POLL_PERIOD: Duration = Duration::from_millis(50);

/// So many fields of one object are named.
const FIELDS_MAX: usize = 5;

/// What one version would do with one primary.
enum PreviewOutcome {
    /// It fails; the text says how.
    Fails(String),
    /// It wants this, and this is what would be done about it.
    Plans(DesiredState, Plan),
    /// A live read must tell first what is there; or there is nothing to do.
    Nothing,
}

/// Rehearses a candidate against what serves, if anything does.
///
/// # Errors
/// If what it declares cannot be read in time, or is served otherwise than it is declared.
pub async fn preview(
    shared: &Shared,
    candidate: &Arc<ActiveModule>,
    serving: Option<&Arc<ActiveModule>>,
) -> Result<Preview, Refused> {
    let unread = until_read(shared, candidate).await;
    unread.map_err(|rejection| Refused { rejection, groups: BTreeSet::new() })?;
    declared::check_view(candidate)?;
    let primaries = primaries(candidate);
    let mut rehearsal = Preview { primaries: count(primaries.len()), ..Preview::default() };
    definitions(&mut rehearsal, shared, candidate).await;
    let began = shared.env.instant();
    for primary in chosen(&primaries) {
        if shared.env.instant().duration_since(began) > PREVIEW_TIME {
            break;
        }
        // Both see the same moment, each with what it may read, and both see digests: nobody has
        // approved the candidate, and what serves is held against it on the same observation.
        let now = shared.env.now();
        let granted = GrantedSecrets::nothing();
        let new = evaluate(shared, candidate, primary, now, &granted).await;
        let old = match serving {
            Some(serving) if serving.primary == candidate.primary => {
                Some(evaluate(shared, serving, primary, now, &granted).await)
            }
            _ => None,
        };
        rehearsal.previewed += 1;
        compare(&mut rehearsal, candidate, primary, (new, old), now);
    }
    Ok(rehearsal)
}

/// Counts the definitions that the candidate would install or change.
async fn definitions(rehearsal: &mut Preview, shared: &Shared, candidate: &ActiveModule) {
    let settings = candidate.settings();
    let installer = Installer {
        client: &candidate.client,
        module: candidate.name(),
        namespaces: &settings.namespaces,
        object_checks: &shared.object_checks,
    };
    let wishes = definitions::crd_requests(candidate.guest().manifest(), settings);
    for change in installer.preview(&wishes).await {
        if change.change != PlannedChange::Create {
            rehearsal.objects += 1;
        }
        rehearsal.add(change.change, change.object, change.fields);
    }
}

/// Whether a version that served before fails for a primary as it is now. Nothing is written. It
/// sees what it saw when it served: with digests it could fail where it did not.
pub async fn fails(shared: &Shared, active: &ActiveModule, key: &ObjectKey) -> bool {
    match active.view.snapshot().get(&active.primary, key) {
        innkeeper_cluster::Lookup::Found(primary) => {
            let now = shared.env.now();
            let Ok(granted) = GrantedSecrets::read(active, key).await else { return true };
            let evaluation = evaluate(shared, active, &primary, now, &granted).await;
            matches!(evaluation, PreviewOutcome::Fails(_))
        }
        _ => false,
    }
}

/// Waits until it is known of each declared kind what is there, or why that cannot be known.
async fn until_read(shared: &Shared, candidate: &ActiveModule) -> Result<(), Rejection> {
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
                    "it cannot be rehearsed: {} could not be read within {} s",
                    waits.join(", "),
                    READ_TIME.as_secs()
                ),
                RetryPolicy::Later,
            ));
        }
        shared.env.sleep(POLL_PERIOD).await;
    }
}

/// The primaries that the candidate would reconcile, in order.
fn primaries(candidate: &ActiveModule) -> Vec<Arc<Object>> {
    let mut all = candidate.primaries();
    all.retain(|primary| candidate.selects(primary) && !primary.is_terminating());
    all
}

/// At most [`PRIMARIES_MAX`] of them, the namespaces in turn, evenly within each: however many
/// primaries one tenant makes, those of the others are among them.
fn chosen(primaries: &[Arc<Object>]) -> Vec<&Arc<Object>> {
    let mut by_namespace: BTreeMap<&str, Vec<&Arc<Object>>> = BTreeMap::new();
    for primary in primaries {
        by_namespace.entry(primary.key.namespace()).or_default().push(primary);
    }
    // The fewest first: what they leave of their share is for the others.
    let mut namespaces: Vec<_> = by_namespace.into_values().collect();
    namespaces.sort_by_key(Vec::len);
    let (mut room, mut left) = (PRIMARIES_MAX, namespaces.len());
    let mut chosen = Vec::with_capacity(room.min(primaries.len()));
    for all in namespaces {
        let some = all.len().min(room.div_ceil(left.max(1)));
        chosen.extend((0..some).filter_map(|index| all.get(index * all.len() / some).copied()));
        (room, left) = (room - some, left - 1);
    }
    chosen.sort_by(|a, b| a.key.cmp(&b.key));
    chosen
}

/// What a version would do with a primary as it is now.
async fn evaluate(
    shared: &Shared,
    active: &ActiveModule,
    primary: &Object,
    now: Timestamp,
    granted: &GrantedSecrets,
) -> PreviewOutcome {
    let snapshot = active.view.snapshot();
    let innkeeper_cluster::Lookup::Found(primary) = snapshot.get(&active.primary, &primary.key)
    else {
        return PreviewOutcome::Nothing;
    };
    let request = ReconcileRequest { module: active.name().clone(), key: primary.key.clone() };
    let mut primary_state = shared.primary_states.peek(&request);
    if primary_state.uid != primary.uid {
        primary_state = crate::primary_state::PrimaryState::default();
    }
    // What would be pruned after one more clean round counts.
    primary_state.plan.clean = true;
    let mut observation = Observation::new(active, &snapshot, primary.clone(), now, granted);
    let made = observation.owned();
    let result =
        reconcile::run(shared, active, &made, &primary_state.unapplied, &mut observation).await;
    if !observation.take_unknown().is_empty() {
        return PreviewOutcome::Nothing;
    }
    let (complete, desired) = match result.map(|run| run.outcome) {
        Ok(Outcome::Complete(desired)) => (true, desired),
        Ok(Outcome::Partial(desired)) => (false, desired),
        Ok(Outcome::Failed(failure)) => {
            return PreviewOutcome::Fails(cut(format_args!(
                "{}: {}",
                failure.reason, failure.message
            )));
        }
        Err(error) => {
            return PreviewOutcome::Fails(cut(format_args!("{}: {error}", error.reason())));
        }
    };
    let me = active.owner(&primary);
    match active.read_desired(&desired, &me) {
        Err(refusal) => PreviewOutcome::Fails(cut(format_args!("{}: {refusal}", refusal.reason()))),
        Ok(desired_state) => {
            let plan = reconcile::make_plan(
                &mut observation,
                &snapshot,
                &me,
                &desired_state,
                complete,
                &made,
                &primary_state,
                now,
            );
            PreviewOutcome::Plans(desired_state, plan)
        }
    }
}

/// What a guest says, as a line that is kept: it may be as long as its output.
fn cut(why: impl std::fmt::Display) -> String {
    foreign::one_line(why, guest_status::MESSAGE_BYTES_MAX)
}

/// Counts what the candidate would do and what serves would not.
fn compare(
    rehearsal: &mut Preview,
    candidate: &ActiveModule,
    primary: &Object,
    (new, old): (PreviewOutcome, Option<PreviewOutcome>),
    now: Timestamp,
) {
    let name = || format!("{} {}", candidate.primary.kind, primary.key);
    let (desired_state, plan) = match new {
        PreviewOutcome::Nothing => return,
        PreviewOutcome::Fails(why) => {
            if !matches!(old, Some(PreviewOutcome::Fails(_))) {
                rehearsal.add(PlannedChange::Fail, name(), vec![why]);
            }
            return;
        }
        PreviewOutcome::Plans(desired_state, plan) => (desired_state, plan),
    };
    let old = match &old {
        Some(PreviewOutcome::Plans(desired_state, plan)) => Some((desired_state, plan)),
        _ => None,
    };
    let wanted: BTreeMap<&ObjectRef, _> = old
        .iter()
        .flat_map(|(desired_state, _)| &desired_state.objects)
        .map(|one| (&one.object_ref, one))
        .collect();
    let planned: BTreeMap<&ObjectRef, &Action> = old
        .iter()
        .flat_map(|(_, plan)| &plan.steps)
        .map(|one| (&one.object_ref, &one.action))
        .collect();
    let mut problems = BTreeSet::new();
    for step in &plan.steps {
        let before = planned.get(&step.object_ref).copied();
        let object = || step.object_ref.to_string();
        if !matches!(step.action, Action::Create) {
            rehearsal.objects += 1;
        }
        match &step.action {
            Action::Create => {
                if !matches!(before, Some(Action::Create)) {
                    rehearsal.add(PlannedChange::Create, object(), Vec::new());
                }
            }
            // What is deleted as soon as something else is in order is deleted.
            Action::Delete { .. } | Action::Skip(SkipReason::PrunePending) => {
                let due = matches!(
                    before,
                    Some(Action::Delete { .. } | Action::Skip(SkipReason::PrunePending))
                );
                if !due {
                    rehearsal.add(PlannedChange::Delete, object(), Vec::new());
                }
            }
            // What is merged into stays, without these fields.
            Action::Unmerge { .. } => {
                if !matches!(before, Some(Action::Unmerge { .. })) {
                    rehearsal.add(PlannedChange::Change, object(), vec![".".to_owned()]);
                }
            }
            Action::Recreate { .. } => {
                if !matches!(before, Some(Action::Recreate { .. })) {
                    rehearsal.add(PlannedChange::Recreate, object(), Vec::new());
                }
            }
            Action::Apply { .. } | Action::Adopt { .. } | Action::Merge { .. } => {
                let now_wanted =
                    step.desired_index.and_then(|index| desired_state.objects.get(index));
                let fields = match (now_wanted, wanted.get(&step.object_ref)) {
                    (Some(new), Some(old)) => {
                        diff::changed_fields(&old.body, &new.body, FIELDS_MAX)
                    }
                    _ => vec![".".to_owned()],
                };
                // Both want the same: what serves is about to apply it too.
                if !fields.is_empty() {
                    rehearsal.add(PlannedChange::Change, object(), fields);
                }
            }
            Action::Skip(leave) => {
                let was = matches!(before, Some(Action::Skip(before)) if before.is_problem());
                if let Some(problem) = apply::problem_of(&step.object_ref, leave, now)
                    && !was
                {
                    problems.insert(format!("{}: {}", problem.reason, problem.message));
                }
            }
        }
    }
    if !problems.is_empty() {
        rehearsal.add(PlannedChange::Fail, name(), problems.into_iter().take(FIELDS_MAX).collect());
    }
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use innkeeper_contract::Kind;

    use super::*;

    fn primaries(namespace: &str, count: usize) -> Vec<Arc<Object>> {
        let kind = Kind::namespaced("example.com/v1", "Podroute", "podroutes");
        let object = |index: usize| {
            let text = format!(
                r#"{{"metadata":{{"namespace":"{namespace}","name":"p{index:05}","uid":"u","resourceVersion":"1"}}}}"#
            );
            Arc::new(Object::decode(&kind, &text, None).unwrap())
        };
        (0..count).map(object).collect()
    }

    fn counts(primaries: &[Arc<Object>]) -> BTreeMap<&str, usize> {
        let mut counts = BTreeMap::new();
        for primary in chosen(primaries) {
            *counts.entry(primary.key.namespace()).or_default() += 1;
        }
        counts
    }

    #[test]
    fn primaries_of_each_namespace_are_among_those_of_a_tenant_who_makes_many() {
        let mut all = primaries("a-flood", 10_000);
        all.extend(primaries("b-few", 3));
        all.extend(primaries("c-one", 1));
        let expected = BTreeMap::from([("a-flood", PRIMARIES_MAX - 4), ("b-few", 3), ("c-one", 1)]);
        assert_eq!(counts(&all), expected);
        assert_eq!(counts(&primaries("a", 7)), BTreeMap::from([("a", 7)]));
        assert!(chosen(&[]).is_empty());
        let many: Vec<_> = (0..2_000).flat_map(|n| primaries(&format!("n{n}"), 1)).collect();
        assert_eq!(chosen(&many).len(), PRIMARIES_MAX, "more namespaces than may be chosen");
    }
}
