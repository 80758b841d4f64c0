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
use innkeeper_core::plan::{Action, Leave, Plan};
use innkeeper_core::wanted::Wish;
use innkeeper_core::{Key, Object, Target, difference, foreign, said};
use innkeeper_modules::{Again, Deed, Rehearsal, Verdict, definitions};
use innkeeper_sandbox::Outcome;
use jiff::Timestamp;

use crate::apply;
use crate::crds::Installer;
use crate::declared::{self, Refused};
use crate::granted::Granted;
use crate::observe::Observation;
use crate::queue::Work;
use crate::reconcile;
use crate::running::Running;
use crate::shared::Shared;

/// For so many primaries a candidate is run at most; of more, evenly chosen ones of all namespaces.
pub const REHEARSED_MAX: usize = 500;

/// So long does a rehearsal take at most; then it is about the primaries that it came to.
pub const REHEARSAL_TIME: Duration = Duration::from_mins(1);

/// So long is waited for what the candidate declares to be read.
pub const READ_TIME: Duration = Duration::from_secs(30);

/// How often is looked whether it has been read.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// So many fields of one object are named.
const FIELDS_MAX: usize = 5;

/// What one version would do with one primary.
enum Sight {
    /// It fails; the text says how.
    Fails(String),
    /// It wants this, and this is what would be done about it.
    Plans(Wish, Plan),
    /// A live read must tell first what is there; or there is nothing to do.
    Nothing,
}

/// Rehearses a candidate against what serves, if anything does.
///
/// # Errors
/// If what it declares cannot be read in time, or is served otherwise than it is declared.
pub async fn rehearse(
    shared: &Shared,
    candidate: &Arc<Running>,
    serving: Option<&Arc<Running>>,
) -> Result<Rehearsal, Refused> {
    let unread = until_read(shared, candidate).await;
    unread.map_err(|verdict| Refused { verdict, groups: BTreeSet::new() })?;
    declared::check_view(candidate)?;
    let primaries = primaries(candidate);
    let mut rehearsal = Rehearsal { primaries: count(primaries.len()), ..Rehearsal::default() };
    definitions(&mut rehearsal, shared, candidate).await;
    let began = shared.env.instant();
    for primary in chosen(&primaries) {
        if shared.env.instant().duration_since(began) > REHEARSAL_TIME {
            break;
        }
        // Both see the same moment, each with what it may read, and both see digests: nobody has
        // approved the candidate, and what serves is held against it on the same observation.
        let now = shared.env.now();
        let granted = Granted::nothing();
        let new = sight(shared, candidate, primary, now, &granted).await;
        let old = match serving {
            Some(serving) if serving.primary == candidate.primary => {
                Some(sight(shared, serving, primary, now, &granted).await)
            }
            _ => None,
        };
        rehearsal.rehearsed += 1;
        compare(&mut rehearsal, candidate, primary, (new, old), now);
    }
    Ok(rehearsal)
}

/// Counts the definitions that the candidate would install or change.
async fn definitions(rehearsal: &mut Rehearsal, shared: &Shared, candidate: &Running) {
    let settings = candidate.settings();
    let installer = Installer {
        session: &candidate.session,
        module: candidate.name(),
        namespaces: &settings.namespaces,
        object_checks: &shared.object_checks,
    };
    let wishes = definitions::wishes(candidate.guest().manifest(), settings);
    for change in installer.preview(&wishes).await {
        if change.deed != Deed::Create {
            rehearsal.objects += 1;
        }
        rehearsal.add(change.deed, change.object, change.fields);
    }
}

/// Whether a version that served before fails for a primary as it is now. Nothing is written. It sees
/// what it saw when it served: with digests it could fail where it did not.
pub async fn fails(shared: &Shared, running: &Running, key: &Key) -> bool {
    match running.view.freeze().get(&running.primary, key) {
        innkeeper_cluster::Seen::Present(primary) => {
            let now = shared.env.now();
            let Ok(granted) = Granted::read(running, key).await else { return true };
            let sight = sight(shared, running, &primary, now, &granted).await;
            matches!(sight, Sight::Fails(_))
        }
        _ => false,
    }
}

/// Waits until it is known of each declared kind what is there, or why that cannot be known.
async fn until_read(shared: &Shared, candidate: &Running) -> Result<(), Verdict> {
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
            return Err(Verdict::new(
                "PreviewFailed",
                format!(
                    "it cannot be rehearsed: {} could not be read within {} s",
                    waits.join(", "),
                    READ_TIME.as_secs()
                ),
                Again::Later,
            ));
        }
        shared.env.sleep(LOOK_EVERY).await;
    }
}

/// The primaries that the candidate would reconcile, in order.
fn primaries(candidate: &Running) -> Vec<Arc<Object>> {
    let mut all = candidate.primaries();
    all.retain(|primary| candidate.selects(primary) && !primary.is_terminating());
    all
}

/// At most [`REHEARSED_MAX`] of them, the namespaces in turn, evenly within each: however many primaries
/// one tenant makes, those of the others are among them.
fn chosen(primaries: &[Arc<Object>]) -> Vec<&Arc<Object>> {
    let mut by_namespace: BTreeMap<&str, Vec<&Arc<Object>>> = BTreeMap::new();
    for primary in primaries {
        by_namespace.entry(primary.key.namespace()).or_default().push(primary);
    }
    // The fewest first: what they leave of their share is for the others.
    let mut namespaces: Vec<_> = by_namespace.into_values().collect();
    namespaces.sort_by_key(Vec::len);
    let (mut room, mut left) = (REHEARSED_MAX, namespaces.len());
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
async fn sight(
    shared: &Shared,
    running: &Running,
    primary: &Object,
    now: Timestamp,
    granted: &Granted,
) -> Sight {
    let frozen = running.view.freeze();
    let innkeeper_cluster::Seen::Present(primary) = frozen.get(&running.primary, &primary.key)
    else {
        return Sight::Nothing;
    };
    let work = Work { module: running.name().clone(), key: primary.key.clone() };
    let mut memory = shared.memories.peek(&work);
    if memory.uid != primary.uid {
        memory = crate::memory::Memory::default();
    }
    // What would be pruned after one more clean round counts.
    memory.plan.clean = true;
    let mut observation = Observation::new(running, &frozen, primary.clone(), now, granted);
    let made = observation.made();
    let result = reconcile::run(shared, running, &made, &memory.unapplied, &mut observation).await;
    if !observation.take_unknown().is_empty() {
        return Sight::Nothing;
    }
    let (complete, desired) = match result.map(|run| run.outcome) {
        Ok(Outcome::Complete(desired)) => (true, desired),
        Ok(Outcome::Partial(desired)) => (false, desired),
        Ok(Outcome::Failed(failure)) => {
            return Sight::Fails(cut(format_args!("{}: {}", failure.reason, failure.message)));
        }
        Err(error) => return Sight::Fails(cut(format_args!("{}: {error}", error.reason()))),
    };
    let me = running.owner(&primary);
    match running.wish(&desired, &me) {
        Err(refusal) => Sight::Fails(cut(format_args!("{}: {refusal}", refusal.reason()))),
        Ok(wish) => {
            let plan = reconcile::make_plan(
                &mut observation,
                &frozen,
                &me,
                &wish,
                complete,
                &made,
                &memory,
                now,
            );
            Sight::Plans(wish, plan)
        }
    }
}

/// What a guest says, as a line that is kept: it may be as long as its output.
fn cut(why: impl std::fmt::Display) -> String {
    foreign::one_line(why, said::MESSAGE_BYTES_MAX)
}

/// Counts what the candidate would do and what serves would not.
fn compare(
    rehearsal: &mut Rehearsal,
    candidate: &Running,
    primary: &Object,
    (new, old): (Sight, Option<Sight>),
    now: Timestamp,
) {
    let name = || format!("{} {}", candidate.primary.kind, primary.key);
    let (wish, plan) = match new {
        Sight::Nothing => return,
        Sight::Fails(why) => {
            if !matches!(old, Some(Sight::Fails(_))) {
                rehearsal.add(Deed::Fail, name(), vec![why]);
            }
            return;
        }
        Sight::Plans(wish, plan) => (wish, plan),
    };
    let old = match &old {
        Some(Sight::Plans(wish, plan)) => Some((wish, plan)),
        _ => None,
    };
    let wanted: BTreeMap<&Target, _> =
        old.iter().flat_map(|(wish, _)| &wish.wanted).map(|one| (&one.target, one)).collect();
    let planned: BTreeMap<&Target, &Action> = old
        .iter()
        .flat_map(|(_, plan)| &plan.steps)
        .map(|one| (&one.target, &one.action))
        .collect();
    let mut problems = BTreeSet::new();
    for step in &plan.steps {
        let before = planned.get(&step.target).copied();
        let object = || step.target.to_string();
        if !matches!(step.action, Action::Create) {
            rehearsal.objects += 1;
        }
        match &step.action {
            Action::Create => {
                if !matches!(before, Some(Action::Create)) {
                    rehearsal.add(Deed::Create, object(), Vec::new());
                }
            }
            // What is deleted as soon as something else is in order is deleted.
            Action::Delete { .. } | Action::Leave(Leave::PruneWaits) => {
                let due = matches!(
                    before,
                    Some(Action::Delete { .. } | Action::Leave(Leave::PruneWaits))
                );
                if !due {
                    rehearsal.add(Deed::Delete, object(), Vec::new());
                }
            }
            // What is merged into stays, without these fields.
            Action::TakeBack { .. } => {
                if !matches!(before, Some(Action::TakeBack { .. })) {
                    rehearsal.add(Deed::Change, object(), vec![".".to_owned()]);
                }
            }
            Action::Recreate { .. } => {
                if !matches!(before, Some(Action::Recreate { .. })) {
                    rehearsal.add(Deed::Recreate, object(), Vec::new());
                }
            }
            Action::Apply { .. } | Action::Adopt { .. } | Action::Merge { .. } => {
                let now_wanted = step.wanted.and_then(|index| wish.wanted.get(index));
                let fields = match (now_wanted, wanted.get(&step.target)) {
                    (Some(new), Some(old)) => difference::fields(&old.body, &new.body, FIELDS_MAX),
                    _ => vec![".".to_owned()],
                };
                // Both want the same: what serves is about to apply it too.
                if !fields.is_empty() {
                    rehearsal.add(Deed::Change, object(), fields);
                }
            }
            Action::Leave(leave) => {
                let was = matches!(before, Some(Action::Leave(before)) if before.is_problem());
                if let Some(problem) = apply::problem_of(&step.target, leave, now)
                    && !was
                {
                    problems.insert(format!("{}: {}", problem.reason, problem.message));
                }
            }
        }
    }
    if !problems.is_empty() {
        rehearsal.add(Deed::Fail, name(), problems.into_iter().take(FIELDS_MAX).collect());
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
        let expected = BTreeMap::from([("a-flood", REHEARSED_MAX - 4), ("b-few", 3), ("c-one", 1)]);
        assert_eq!(counts(&all), expected);
        assert_eq!(counts(&primaries("a", 7)), BTreeMap::from([("a", 7)]));
        assert!(chosen(&[]).is_empty());
        let many: Vec<_> = (0..2_000).flat_map(|n| primaries(&format!("n{n}"), 1)).collect();
        assert_eq!(chosen(&many).len(), REHEARSED_MAX, "more namespaces than may be chosen");
    }
}
