//! Tables of events: for each, the state of the machine after it and the effects.

use expect_test::Expect;

use std::time::Duration;

use innkeeper_contract::Condition;

use super::*;
use crate::rollout::{PlannedChange, Preview, Rollout, Strategy};

mod adoption;
mod definitions;
mod loading;
mod missing_crds;
mod picture;
mod rollback;
mod rollout;
mod teardown;

fn digest(name: &str) -> Digest {
    Digest::of(name.as_bytes())
}

fn spec(generation: i64) -> Event {
    Event::Spec { generation, spec: Ok(plain()) }
}

/// A spec with which a new version serves as soon as it is checked, for good.
fn plain() -> Spec {
    Spec {
        other_source: false,
        paused: false,
        other_parameters: false,
        adopts_crds: false,
        rollout: Rollout {
            strategy: Strategy::Immediate,
            rollback_window: Duration::ZERO,
            ..Rollout::default()
        },
    }
}

fn guarded(generation: i64) -> Event {
    let rollout = Rollout::default();
    let spec = Spec { rollout, ..plain() };
    Event::Spec { generation, spec: Ok(spec) }
}

fn status_loaded(revision: &str, rejected: &[&str]) -> Event {
    let rejected =
        rejected.iter().map(|name| (digest(name), rejection("Known", RetryPolicy::Never)));
    Event::StatusLoaded {
        revision: Some(digest(revision)),
        is_lost: false,
        history: Vec::new(),
        rejected: rejected.collect(),
        used_approval: None,
        used_rejection: None,
    }
}

fn previewed(name: &str, changes: &[PlannedChange]) -> Event {
    let mut preview = Preview { primaries: 9, previewed: 9, objects: 9, ..Preview::default() };
    for change in changes {
        preview.add(*change, "ConfigMap web/a".to_owned(), Vec::new());
    }
    Event::Previewed { digest: digest(name), result: Ok(preview) }
}

/// A preview that fails for a primary, and could not read everything.
fn previewed_without_rights(name: &str) -> Event {
    let mut preview = Preview { primaries: 9, previewed: 9, objects: 9, ..Preview::default() };
    preview.add(PlannedChange::Fail, "Page web/a".to_owned(), Vec::new());
    preview.missing_rights.push("the account may not list services".to_owned());
    Event::Previewed { digest: digest(name), result: Ok(preview) }
}

fn approve(name: &str) -> Event {
    Event::Approval { approve: Some(digest(name)), reject: None }
}

fn reject(name: &str) -> Event {
    Event::Approval { approve: None, reject: Some(digest(name)) }
}

fn restored(name: &str, result: Result<(), Rejection>) -> Event {
    Event::SnapshotRestored { digest: digest(name), result }
}

fn too_many_failures(name: &str) -> Event {
    let rejection = rejection("GuestTrapped", RetryPolicy::Later);
    Event::FailureThresholdExceeded { digest: digest(name), rejection }
}

fn source(name: &str) -> Event {
    Event::Source(Ok(digest(name)))
}

fn missing() -> Event {
    Event::Source(Err(rejection("SourceNotFound", RetryPolicy::Never)))
}

fn rejection(reason: &str, again: RetryPolicy) -> Rejection {
    Rejection::new(reason, format!("because of {reason}"), again)
}

fn loaded(name: &str, has_crds: bool) -> Event {
    let info = ComponentInfo { title: name.to_owned(), has_crds, enforces: false, fits: Ok(()) };
    Event::Loaded { digest: digest(name), result: Ok(info) }
}

/// A component with a policy that may deny requests.
fn loaded_enforcing(name: &str) -> Event {
    let info =
        ComponentInfo { title: name.to_owned(), has_crds: false, enforces: true, fits: Ok(()) };
    Event::Loaded { digest: digest(name), result: Ok(info) }
}

fn refused(name: &str, again: RetryPolicy) -> Event {
    Event::Loaded { digest: digest(name), result: Err(rejection("Broken", again)) }
}

fn crds(name: &str, result: Result<(), Rejection>) -> Event {
    Event::Crds { digest: digest(name), result }
}

/// Digests are named by what they are the digest of.
fn named(text: &str) -> String {
    let mut text = text.to_owned();
    for name in ["a", "b", "c"] {
        text = text.replace(&digest(name).short(), name);
    }
    text
}

/// One row of a table: an event, the state after it, and the effects.
struct Row([String; 5]);

impl Row {
    fn head() -> Self {
        Self(["event", "active", "candidate", "Ready", "effects"].map(str::to_owned))
    }

    fn of(event: String, machine: &Machine, effects: &[Effect]) -> Self {
        let active = machine.active().map_or("-".to_owned(), |active| active.title.clone());
        let conditions = machine.conditions();
        let ready = conditions.iter().find(|one| one.type_ == condition::READY_CONDITION).unwrap();
        let ready = format!("{} {}", ready.status.as_str(), ready.reason);
        let effects = effects.iter().map(effect).collect::<Vec<_>>().join(", ");
        Self([event, active, candidate(machine.candidate()), ready, effects])
    }
}

/// Columns, each as wide as its widest cell.
fn table(rows: &[Row]) -> String {
    let widths: [usize; 5] = std::array::from_fn(|column| {
        rows.iter().map(|Row(cells)| named(&cells[column]).len()).max().unwrap_or_default()
    });
    let line = |Row(cells): &Row| {
        let padded =
            cells.iter().zip(widths).map(|(cell, width)| format!("{:width$}", named(cell)));
        padded.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
    };
    rows.iter().map(line).collect()
}

fn candidate(candidate: &Candidate) -> String {
    let state = match candidate {
        Candidate::Nothing => "-",
        Candidate::Loading(_) => "loading",
        Candidate::InstallingCrds(_) => "installing CRDs of",
        Candidate::Rejected(..) => "rejected",
        Candidate::RestoringSnapshot(_) => "restoring",
        Candidate::Previewing(_) => "previewing",
        Candidate::Held(..) => "held",
        Candidate::Committing(_) => "committing",
        Candidate::ModuleDeleted => "teardown",
    };
    candidate.digest().map_or(state.to_owned(), |digest| format!("{state} {digest:?}"))
}

fn effect(effect: &Effect) -> String {
    match effect {
        Effect::Direct(DirectEffect::Notify(notice)) => format!("Notify({})", notice.reason),
        Effect::Direct(direct) => format!("{direct:?}"),
        Effect::ApplySettings { parameters: true } => "ApplySettings".to_owned(),
        Effect::ApplySettings { parameters: false } => "ApplySettings(old parameters)".to_owned(),
        other => format!("{other:?}"),
    }
}

fn event(event: &Event) -> String {
    match event {
        Event::Spec { generation, spec: Ok(_) } => format!("spec {generation}"),
        Event::Spec { generation, spec: Err(_) } => format!("bad spec {generation}"),
        Event::Source(Ok(digest)) => format!("source {digest:?}"),
        Event::Source(Err(_)) => "no source".to_owned(),
        Event::Loaded { digest, result: Ok(_) } => format!("loaded {digest:?}"),
        Event::Loaded { digest, .. } => format!("refused {digest:?}"),
        Event::Crds { digest, result: Ok(()) } => format!("CRDs of {digest:?}"),
        Event::Crds { digest, .. } => format!("no CRDs of {digest:?}"),
        Event::CrdsHeld { digest, .. } => format!("CRDs of {digest:?} held"),
        Event::CrdsAdopted { digest, result: Ok(()) } => format!("adopted {digest:?}"),
        Event::CrdsAdopted { digest, .. } => format!("not adopted {digest:?}"),
        Event::CrdsWritten(_) => "written CRDs".to_owned(),
        Event::CrdsDeleted(names) => format!("deleted CRD {}", names.join(", ")),
        Event::CrdChanged => "changed CRD".to_owned(),
        Event::CrdFound(name) => format!("found CRD {name}"),
        Event::ReinstallCrds => "time to install".to_owned(),
        Event::CrdsReinstalled { digest, result: Ok(()) } => format!("reinstalled {digest:?}"),
        Event::CrdsReinstalled { digest, .. } => format!("not reinstalled {digest:?}"),
        Event::Retry => "retry".to_owned(),
        Event::Health(Ok(_)) => "runs succeed".to_owned(),
        Event::Health(Err(_)) => "runs fail".to_owned(),
        Event::Deleted => "deleted".to_owned(),
        Event::StatusLoaded { .. } => "status loaded".to_owned(),
        Event::Approval { approve: Some(digest), reject: None } => format!("approve {digest:?}"),
        Event::Approval { approve: None, reject: Some(digest) } => format!("reject {digest:?}"),
        Event::Approval { approve, reject } => format!("approve {approve:?}, reject {reject:?}"),
        Event::InvalidApproval(message) => format!("invalid approval {message:?}"),
        Event::SnapshotRestored { digest, result: Ok(()) } => format!("restored {digest:?}"),
        Event::SnapshotRestored { digest, .. } => format!("no snapshot of {digest:?}"),
        Event::Previewed { digest, result: Ok(_) } => format!("previewed {digest:?}"),
        Event::Previewed { digest, .. } => format!("no preview of {digest:?}"),
        Event::Committed { digest, result: Ok(()) } => format!("committed {digest:?}"),
        Event::Committed { digest, .. } => format!("not committed {digest:?}"),
        Event::FailureThresholdExceeded { digest, .. } => format!("failures of {digest:?}"),
        Event::Deleting => "deleting".to_owned(),
        Event::TornDown(Ok(_)) => "torn down".to_owned(),
        Event::TornDown(Err(_)) => "not torn down".to_owned(),
        Event::ParametersChecked(Ok(())) => "parameters fit".to_owned(),
        Event::ParametersChecked(Err(_)) => "parameters do not fit".to_owned(),
        Event::RollbackCommitted { digest, result: Ok(()) } => format!("rollback to {digest:?}"),
        Event::RollbackCommitted { digest, .. } => format!("no rollback to {digest:?}"),
        Event::KindsChanged => "kinds changed".into(),
        Event::RollbackWindowOver(digest) => format!("window of {digest:?} over"),
    }
}

/// The event once the decision of an effect is written, if it has one.
fn written(effect: &Effect) -> Option<Event> {
    match effect {
        Effect::Commit(digest) => Some(Event::Committed { digest: *digest, result: Ok(()) }),
        Effect::CommitRollback(digest) => {
            Some(Event::RollbackCommitted { digest: *digest, result: Ok(()) })
        }
        _ => None,
    }
}

/// Takes the events one by one. A decision is written at once, unless the next event is its result.
fn run(machine: &mut Machine, events: impl IntoIterator<Item = Event>) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut events = events.into_iter().peekable();
    while let Some(next) = events.next() {
        let shown = event(&next);
        let mut effects = machine.step(next);
        let is_answered = matches!(
            events.peek(),
            Some(Event::Committed { .. } | Event::RollbackCommitted { .. })
        );
        if let Some(written) = effects.iter().find_map(written).filter(|_| !is_answered) {
            effects.extend(machine.step(written));
        }
        rows.push(Row::of(shown, machine, &effects));
    }
    rows
}

/// Given a new Module, compares the table of the events.
fn check(events: impl IntoIterator<Item = Event>, expected: &Expect) {
    let mut rows = vec![Row::head()];
    rows.extend(run(&mut Machine::default(), events));
    expected.assert_eq(&table(&rows));
}

/// Given a Module with this spec whose active revision is `a`, compares the table of the events.
fn check_active(spec: Event, events: impl IntoIterator<Item = Event>, expected: &Expect) {
    let mut machine = Machine::default();
    run(&mut machine, [spec, source("a"), loaded("a", false)]);
    let mut rows = vec![Row::head()];
    rows.extend(run(&mut machine, events));
    expected.assert_eq(&table(&rows));
}
