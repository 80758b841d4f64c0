//! The machine's life as tables: an event, what it asks for, and where it is then.

use std::fmt::Write as _;

use expect_test::{Expect, expect};

use std::time::Duration;

use innkeeper_contract::Condition;

use super::*;
use crate::rollout::{PlannedChange, Preview, Rollout, Strategy};

mod definitions;
mod picture;
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
        rollout: Rollout {
            strategy: Strategy::Immediate,
            rollback_window: Duration::ZERO,
            ..Rollout::default()
        },
    }
}

fn guarded(generation: i64) -> Event {
    let rollout = Rollout::default();
    let spec = Spec { other_source: false, paused: false, other_parameters: false, rollout };
    Event::Spec { generation, spec: Ok(spec) }
}

fn known(revision: &str, rejected: &[&str]) -> Event {
    let rejected =
        rejected.iter().map(|name| (digest(name), rejection("Known", RetryPolicy::Never)));
    Event::StatusLoaded {
        revision: Some(digest(revision)),
        previous: None,
        rejected: rejected.collect(),
    }
}

fn rehearsed(name: &str, deeds: &[PlannedChange]) -> Event {
    let mut rehearsal = Preview { primaries: 9, previewed: 9, objects: 9, ..Preview::default() };
    for deed in deeds {
        rehearsal.add(*deed, "ConfigMap web/a".to_owned(), Vec::new());
    }
    Event::Previewed { digest: digest(name), result: Ok(rehearsal) }
}

fn approve(name: &str) -> Event {
    Event::Approval { approve: Some(digest(name)), reject: None }
}

fn reject(name: &str) -> Event {
    Event::Approval { approve: None, reject: Some(digest(name)) }
}

fn recalled(name: &str, result: Result<(), Rejection>) -> Event {
    Event::SnapshotRestored { digest: digest(name), result }
}

fn too_many_fail() -> Event {
    Event::FailureThresholdExceeded(rejection("GuestTrapped", RetryPolicy::Later))
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
    let facts = ComponentInfo { title: name.to_owned(), has_crds, fits: Ok(()) };
    Event::Loaded { digest: digest(name), result: Ok(facts) }
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

fn state(machine: &Machine) -> String {
    let candidate = match machine.candidate() {
        Candidate::Nothing => "nothing".to_owned(),
        Candidate::Loading(digest) => format!("loading {digest:?}"),
        Candidate::InstallingCrds(loaded_candidate) => {
            format!("installing CRDs of {:?}", loaded_candidate.digest)
        }
        Candidate::Rejected(digest, _) => format!("rejected {digest:?}"),
        Candidate::RestoringSnapshot(digest) => format!("recalling {digest:?}"),
        Candidate::Previewing(loaded_candidate) => {
            format!("rehearsing {:?}", loaded_candidate.digest)
        }
        Candidate::Held(loaded_candidate, _) => format!("held {:?}", loaded_candidate.digest),
        Candidate::Committing(loaded_candidate) => {
            format!("committing {:?}", loaded_candidate.digest)
        }
        Candidate::Teardown => "none any more".to_owned(),
    };
    let active = machine.active().map_or("nothing".to_owned(), |active| active.title.clone());
    let ready =
        machine.conditions().into_iter().find(|c| c.type_ == condition::READY_CONDITION).unwrap();
    format!(
        "serving {active}, candidate {candidate}, Ready={} {}",
        ready.status.as_str(),
        ready.reason
    )
}

fn effect(effect: &Effect) -> String {
    match effect {
        Effect::Notify(notice) => format!("Notify({})", notice.reason),
        other => format!("{other:?}"),
    }
}

/// Runs the events and shows, for each, the effects and the state after them. What is to be
/// written down is, unless the next event says otherwise.
fn check(events: impl IntoIterator<Item = Event>, expected: &Expect) {
    let mut machine = Machine::default();
    let mut out = String::new();
    let mut events = events.into_iter().peekable();
    while let Some(event) = events.next() {
        let what = match &event {
            Event::Spec { generation, spec: Ok(_) } => format!("spec {generation}"),
            Event::Spec { generation, spec: Err(_) } => format!("bad spec {generation}"),
            Event::Source(Ok(digest)) => format!("source {digest:?}"),
            Event::Source(Err(_)) => "no source".to_owned(),
            Event::Loaded { digest, result: Ok(_) } => format!("loaded {digest:?}"),
            Event::Loaded { digest, .. } => format!("refused {digest:?}"),
            Event::Crds { digest, result: Ok(()) } => format!("CRDs of {digest:?}"),
            Event::Crds { digest, .. } => format!("no CRDs of {digest:?}"),
            Event::Retry => "retry".to_owned(),
            Event::Health(Ok(())) => "runs succeed".to_owned(),
            Event::Health(Err(_)) => "runs fail".to_owned(),
            Event::Deleted => "deleted".to_owned(),
            Event::StatusLoaded { .. } => "known".to_owned(),
            Event::Approval { approve, reject } => {
                format!("approve {approve:?}, reject {reject:?}")
            }
            Event::InvalidApproval(message) => format!("invalid approval {message:?}"),
            Event::SnapshotRestored { digest, result: Ok(()) } => format!("recalled {digest:?}"),
            Event::SnapshotRestored { digest, .. } => format!("no copy of {digest:?}"),
            Event::Previewed { digest, result: Ok(_) } => format!("rehearsed {digest:?}"),
            Event::Previewed { digest, .. } => format!("no rehearsal of {digest:?}"),
            Event::Committed { digest, result: Ok(()) } => format!("committed {digest:?}"),
            Event::Committed { digest, .. } => format!("not committed {digest:?}"),
            Event::FailureThresholdExceeded(_) => "too many fail".to_owned(),
            Event::Deleting => "is being deleted".to_owned(),
            Event::TornDown(Ok(_)) => "left".to_owned(),
            Event::TornDown(Err(_)) => "cannot leave".to_owned(),
            Event::ParametersChecked(Ok(())) => "parameters fit".to_owned(),
            Event::ParametersChecked(Err(_)) => "parameters do not fit".to_owned(),
            Event::RollbackWindowOver(digest) => format!("probation of {digest:?} over"),
        };
        let mut effects = machine.step(event);
        if let Some(digest) = effects.iter().find_map(|effect| match effect {
            Effect::Commit(digest) => Some(*digest),
            _ => None,
        }) && !matches!(events.peek(), Some(Event::Committed { .. }))
        {
            effects.extend(machine.step(Event::Committed { digest, result: Ok(()) }));
        }
        let effects: Vec<_> = effects.iter().map(effect).collect();
        writeln!(out, "{what}: [{}]\n    {}", effects.join(", "), state(&machine)).unwrap();
    }
    expected.assert_eq(&named(&out));
}

#[test]
fn a_first_version_is_read_loaded_and_served() {
    check(
        [spec(1), source("a"), loaded("a", false)],
        &expect![[r#"
            spec 1: [Fetch, Report]
                serving nothing, candidate nothing, Ready=False Waiting
            source a: [Load(a), Report]
                serving nothing, candidate loading a, Ready=False Loading
            loaded a: [Commit(a), Report, Swap(a), Notify(RevisionActive), Report]
                serving a, candidate nothing, Ready=True RevisionActive
        "#]],
    );
}

#[test]
fn definitions_come_before_the_swap() {
    check(
        [spec(1), source("a"), loaded("a", true), crds("a", Ok(()))],
        &expect![[r#"
            spec 1: [Fetch, Report]
                serving nothing, candidate nothing, Ready=False Waiting
            source a: [Load(a), Report]
                serving nothing, candidate loading a, Ready=False Loading
            loaded a: [InstallCrds(a), Report]
                serving nothing, candidate installing CRDs of a, Ready=False InstallingCRDs
            CRDs of a: [Commit(a), Report, Swap(a), Notify(RevisionActive), Report]
                serving a, candidate nothing, Ready=True RevisionActive
        "#]],
    );
}

#[test]
fn a_broken_candidate_leaves_the_old_one_serving_and_is_not_tried_again() {
    check(
        [
            spec(1),
            source("a"),
            loaded("a", false),
            source("b"),
            refused("b", RetryPolicy::Never),
            source("b"),
            source("a"),
            source("b"),
            spec(2),
            source("c"),
            loaded("c", false),
        ],
        &expect![[r#"
            spec 1: [Fetch, Report]
                serving nothing, candidate nothing, Ready=False Waiting
            source a: [Load(a), Report]
                serving nothing, candidate loading a, Ready=False Loading
            loaded a: [Commit(a), Report, Swap(a), Notify(RevisionActive), Report]
                serving a, candidate nothing, Ready=True RevisionActive
            source b: [Load(b), Report]
                serving a, candidate loading b, Ready=False Loading
            refused b: [Notify(Broken), Report]
                serving a, candidate rejected b, Ready=False Broken
            source b: []
                serving a, candidate rejected b, Ready=False Broken
            source a: [Report]
                serving a, candidate nothing, Ready=True RevisionActive
            source b: [Report]
                serving a, candidate rejected b, Ready=False Broken
            spec 2: [ApplySettings { parameters: true }, Report]
                serving a, candidate rejected b, Ready=False Broken
            source c: [Load(c), Report]
                serving a, candidate loading c, Ready=False Loading
            loaded c: [Commit(c), Report, Swap(c), Notify(RevisionActive), Report]
                serving c, candidate nothing, Ready=True RevisionActive
        "#]],
    );
}

#[test]
fn a_verdict_that_hangs_on_the_spec_is_tried_again_when_the_spec_changes() {
    check(
        [
            spec(1),
            source("a"),
            refused("a", RetryPolicy::WhenSpecChanges),
            Event::Retry,
            spec(2),
            loaded("a", false),
        ],
        &expect![[r#"
            spec 1: [Fetch, Report]
                serving nothing, candidate nothing, Ready=False Waiting
            source a: [Load(a), Report]
                serving nothing, candidate loading a, Ready=False Loading
            refused a: [Notify(Broken), Report]
                serving nothing, candidate rejected a, Ready=False Broken
            retry: []
                serving nothing, candidate rejected a, Ready=False Broken
            spec 2: [Load(a), Report]
                serving nothing, candidate loading a, Ready=False Loading
            loaded a: [Commit(a), Report, Swap(a), Notify(RevisionActive), Report]
                serving a, candidate nothing, Ready=True RevisionActive
        "#]],
    );
}

#[test]
fn version_refused_for_now_is_loaded_again_when_the_source_returns_to_it() {
    check(
        [
            spec(1),
            source("a"),
            refused("a", RetryPolicy::Later),
            source("b"),
            loaded("b", false),
            source("a"),
            loaded("a", false),
        ],
        &expect![[r#"
            spec 1: [Fetch, Report]
                serving nothing, candidate nothing, Ready=False Waiting
            source a: [Load(a), Report]
                serving nothing, candidate loading a, Ready=False Loading
            refused a: [Notify(Broken), RetryLater, Report]
                serving nothing, candidate rejected a, Ready=False Broken
            source b: [Load(b), Report]
                serving nothing, candidate loading b, Ready=False Loading
            loaded b: [Commit(b), Report, Swap(b), Notify(RevisionActive), Report]
                serving b, candidate nothing, Ready=True RevisionActive
            source a: [Load(a), Report]
                serving b, candidate loading a, Ready=False Loading
            loaded a: [Commit(a), Report, Swap(a), Notify(RevisionActive), Report]
                serving a, candidate nothing, Ready=True RevisionActive
        "#]],
    );
}

#[test]
fn version_refused_for_good_is_not_loaded_again_when_the_source_returns_to_it() {
    check(
        [
            spec(1),
            source("a"),
            refused("a", RetryPolicy::Never),
            source("b"),
            loaded("b", false),
            source("a"),
        ],
        &expect![[r#"
            spec 1: [Fetch, Report]
                serving nothing, candidate nothing, Ready=False Waiting
            source a: [Load(a), Report]
                serving nothing, candidate loading a, Ready=False Loading
            refused a: [Notify(Broken), Report]
                serving nothing, candidate rejected a, Ready=False Broken
            source b: [Load(b), Report]
                serving nothing, candidate loading b, Ready=False Loading
            loaded b: [Commit(b), Report, Swap(b), Notify(RevisionActive), Report]
                serving b, candidate nothing, Ready=True RevisionActive
            source a: [Report]
                serving b, candidate rejected a, Ready=False Broken
        "#]],
    );
}

#[test]
fn trouble_of_the_host_is_tried_again_later() {
    check(
        [
            spec(1),
            source("a"),
            refused("a", RetryPolicy::Later),
            Event::Retry,
            loaded("a", true),
            crds("a", Err(rejection("Forbidden", RetryPolicy::Later))),
            Event::Retry,
            loaded("a", true),
            crds("a", Ok(())),
            Event::Retry,
        ],
        &expect![[r#"
            spec 1: [Fetch, Report]
                serving nothing, candidate nothing, Ready=False Waiting
            source a: [Load(a), Report]
                serving nothing, candidate loading a, Ready=False Loading
            refused a: [Notify(Broken), RetryLater, Report]
                serving nothing, candidate rejected a, Ready=False Broken
            retry: [Load(a), Report]
                serving nothing, candidate loading a, Ready=False Broken
            loaded a: [InstallCrds(a), Report]
                serving nothing, candidate installing CRDs of a, Ready=False Broken
            no CRDs of a: [Notify(Forbidden), RetryLater, Report]
                serving nothing, candidate rejected a, Ready=False Forbidden
            retry: [InstallCrds(a), Report]
                serving nothing, candidate installing CRDs of a, Ready=False Forbidden
            loaded a: []
                serving nothing, candidate installing CRDs of a, Ready=False Forbidden
            CRDs of a: [Commit(a), Report, Swap(a), Notify(RevisionActive), Report]
                serving a, candidate nothing, Ready=True RevisionActive
            retry: []
                serving a, candidate nothing, Ready=True RevisionActive
        "#]],
    );
}

#[test]
fn a_newer_source_supersedes_what_is_loading_and_only_the_newest_is_loaded() {
    check(
        [
            spec(1),
            source("a"),
            source("b"),
            source("c"),
            loaded("a", false),
            loaded("a", false),
            loaded("c", false),
        ],
        &expect![[r#"
            spec 1: [Fetch, Report]
                serving nothing, candidate nothing, Ready=False Waiting
            source a: [Load(a), Report]
                serving nothing, candidate loading a, Ready=False Loading
            source b: []
                serving nothing, candidate loading a, Ready=False Loading
            source c: []
                serving nothing, candidate loading a, Ready=False Loading
            loaded a: [Load(c), Report]
                serving nothing, candidate loading c, Ready=False Loading
            loaded a: []
                serving nothing, candidate loading c, Ready=False Loading
            loaded c: [Commit(c), Report, Swap(c), Notify(RevisionActive), Report]
                serving c, candidate nothing, Ready=True RevisionActive
        "#]],
    );
}

#[test]
fn a_newer_source_supersedes_definitions_that_are_being_installed() {
    check(
        [
            spec(1),
            source("a"),
            loaded("a", true),
            source("b"),
            crds("a", Ok(())),
            loaded("b", false),
        ],
        &expect![[r#"
            spec 1: [Fetch, Report]
                serving nothing, candidate nothing, Ready=False Waiting
            source a: [Load(a), Report]
                serving nothing, candidate loading a, Ready=False Loading
            loaded a: [InstallCrds(a), Report]
                serving nothing, candidate installing CRDs of a, Ready=False InstallingCRDs
            source b: [Load(b), Report]
                serving nothing, candidate loading b, Ready=False Loading
            CRDs of a: []
                serving nothing, candidate loading b, Ready=False Loading
            loaded b: [Commit(b), Report, Swap(b), Notify(RevisionActive), Report]
                serving b, candidate nothing, Ready=True RevisionActive
        "#]],
    );
}

#[test]
fn a_spec_that_changes_while_loading_makes_the_load_worthless() {
    check(
        [
            spec(1),
            source("a"),
            spec(2),
            refused("a", RetryPolicy::WhenSpecChanges),
            loaded("a", false),
        ],
        &expect![[r#"
            spec 1: [Fetch, Report]
                serving nothing, candidate nothing, Ready=False Waiting
            source a: [Load(a), Report]
                serving nothing, candidate loading a, Ready=False Loading
            spec 2: [Report]
                serving nothing, candidate loading a, Ready=False Loading
            refused a: [Load(a)]
                serving nothing, candidate loading a, Ready=False Loading
            loaded a: [Commit(a), Report, Swap(a), Notify(RevisionActive), Report]
                serving a, candidate nothing, Ready=True RevisionActive
        "#]],
    );
}

#[test]
fn a_source_that_goes_leaves_what_serves() {
    check(
        [spec(1), missing(), source("a"), loaded("a", false), missing(), missing(), source("a")],
        &expect![[r#"
            spec 1: [Fetch, Report]
                serving nothing, candidate nothing, Ready=False Waiting
            no source: [Notify(SourceNotFound), Report]
                serving nothing, candidate nothing, Ready=False SourceNotFound
            source a: [Load(a), Report]
                serving nothing, candidate loading a, Ready=False Loading
            loaded a: [Commit(a), Report, Swap(a), Notify(RevisionActive), Report]
                serving a, candidate nothing, Ready=True RevisionActive
            no source: [Notify(SourceNotFound), Report]
                serving a, candidate nothing, Ready=False SourceNotFound
            no source: []
                serving a, candidate nothing, Ready=False SourceNotFound
            source a: [Report]
                serving a, candidate nothing, Ready=True RevisionActive
        "#]],
    );
}

#[test]
fn another_source_with_the_same_bytes_needs_no_load() {
    let other = Spec { other_source: true, ..plain() };
    check(
        [
            spec(1),
            source("a"),
            loaded("a", false),
            Event::Spec { generation: 2, spec: Ok(other) },
            source("a"),
        ],
        &expect![[r#"
            spec 1: [Fetch, Report]
                serving nothing, candidate nothing, Ready=False Waiting
            source a: [Load(a), Report]
                serving nothing, candidate loading a, Ready=False Loading
            loaded a: [Commit(a), Report, Swap(a), Notify(RevisionActive), Report]
                serving a, candidate nothing, Ready=True RevisionActive
            spec 2: [ApplySettings { parameters: true }, Fetch, Report]
                serving a, candidate nothing, Ready=False Waiting
            source a: [Report]
                serving a, candidate nothing, Ready=True RevisionActive
        "#]],
    );
}

#[test]
fn a_bad_spec_and_bad_parameters_leave_the_old_ones_in_force() {
    let others = Spec { other_parameters: true, ..plain() };
    let misfit =
        Event::ParametersChecked(Err(rejection("InvalidParameters", RetryPolicy::WhenSpecChanges)));
    let bad = Err(rejection("InvalidSpec", RetryPolicy::WhenSpecChanges));
    check(
        [
            spec(1),
            source("a"),
            loaded("a", false),
            Event::Spec { generation: 2, spec: Ok(others.clone()) },
            misfit.clone(),
            Event::Spec { generation: 3, spec: Ok(others) },
            misfit,
            Event::Spec { generation: 4, spec: bad.clone() },
            Event::Spec { generation: 5, spec: bad },
            spec(6),
        ],
        &expect![[r#"
            spec 1: [Fetch, Report]
                serving nothing, candidate nothing, Ready=False Waiting
            source a: [Load(a), Report]
                serving nothing, candidate loading a, Ready=False Loading
            loaded a: [Commit(a), Report, Swap(a), Notify(RevisionActive), Report]
                serving a, candidate nothing, Ready=True RevisionActive
            spec 2: [ApplySettings { parameters: false }, CheckParameters, Report]
                serving a, candidate nothing, Ready=Unknown CheckingParameters
            parameters do not fit: [Notify(InvalidParameters), Report]
                serving a, candidate nothing, Ready=False InvalidParameters
            spec 3: [ApplySettings { parameters: false }, CheckParameters, Report]
                serving a, candidate nothing, Ready=False InvalidParameters
            parameters do not fit: []
                serving a, candidate nothing, Ready=False InvalidParameters
            bad spec 4: [Notify(InvalidSpec), Report]
                serving a, candidate nothing, Ready=False InvalidSpec
            bad spec 5: [Report]
                serving a, candidate nothing, Ready=False InvalidSpec
            spec 6: [ApplySettings { parameters: true }, Report]
                serving a, candidate nothing, Ready=True RevisionActive
        "#]],
    );
}

#[test]
fn suspend_takes_effect_whatever_the_candidate_is() {
    let suspended = Spec { paused: true, ..plain() };
    check(
        [
            spec(1),
            source("a"),
            loaded("a", false),
            Event::Spec { generation: 2, spec: Ok(suspended.clone()) },
            source("b"),
            refused("b", RetryPolicy::Never),
            Event::Spec { generation: 3, spec: Ok(suspended) },
        ],
        &expect![[r#"
            spec 1: [Fetch, Report]
                serving nothing, candidate nothing, Ready=False Waiting
            source a: [Load(a), Report]
                serving nothing, candidate loading a, Ready=False Loading
            loaded a: [Commit(a), Report, Swap(a), Notify(RevisionActive), Report]
                serving a, candidate nothing, Ready=True RevisionActive
            spec 2: [ApplySettings { parameters: true }, Report]
                serving a, candidate nothing, Ready=False Paused
            source b: [Load(b), Report]
                serving a, candidate loading b, Ready=False Loading
            refused b: [Notify(Broken), Report]
                serving a, candidate rejected b, Ready=False Broken
            spec 3: [ApplySettings { parameters: true }, Report]
                serving a, candidate rejected b, Ready=False Broken
        "#]],
    );
}

#[test]
fn failing_runs_are_said_once_and_forgotten_with_the_next_version() {
    let fail = || Event::Health(Err(rejection("GuestTrapped", RetryPolicy::Never)));
    check(
        [
            spec(1),
            source("a"),
            loaded("a", false),
            fail(),
            fail(),
            Event::Health(Ok(())),
            fail(),
            source("b"),
            loaded("b", false),
        ],
        &expect![[r#"
            spec 1: [Fetch, Report]
                serving nothing, candidate nothing, Ready=False Waiting
            source a: [Load(a), Report]
                serving nothing, candidate loading a, Ready=False Loading
            loaded a: [Commit(a), Report, Swap(a), Notify(RevisionActive), Report]
                serving a, candidate nothing, Ready=True RevisionActive
            runs fail: [Notify(GuestTrapped), Report]
                serving a, candidate nothing, Ready=True RevisionActive
            runs fail: []
                serving a, candidate nothing, Ready=True RevisionActive
            runs succeed: [Report]
                serving a, candidate nothing, Ready=True RevisionActive
            runs fail: [Notify(GuestTrapped), Report]
                serving a, candidate nothing, Ready=True RevisionActive
            source b: [Load(b), Report]
                serving a, candidate loading b, Ready=False Loading
            loaded b: [Commit(b), Report, Swap(b), Notify(RevisionActive), Report]
                serving b, candidate nothing, Ready=True RevisionActive
        "#]],
    );
}

#[test]
fn deletion_stops() {
    check(
        [spec(1), source("a"), Event::Deleted],
        &expect![[r#"
        spec 1: [Fetch, Report]
            serving nothing, candidate nothing, Ready=False Waiting
        source a: [Load(a), Report]
            serving nothing, candidate loading a, Ready=False Loading
        deleted: [Stop]
            serving nothing, candidate loading a, Ready=False Loading
    "#]],
    );
}

#[test]
fn messages_say_what_goes_on() {
    let mut machine = Machine::default();
    let mut notices = Vec::new();
    for event in
        [spec(1), source("a"), loaded("a", false), source("b"), refused("b", RetryPolicy::Never)]
    {
        for effect in machine.step(event) {
            if let Effect::Notify(notice) = effect {
                notices.push(format!("{:?} {}: {}", notice.type_, notice.reason, notice.message));
            }
        }
    }
    for condition in machine.conditions() {
        let Condition { type_, status, reason, message } = condition;
        notices.push(format!("{type_}={} {reason}: {message}", status.as_str()));
    }
    expect![[r#"
        Blocked=False CRDsCompatible: No candidate is blocked.
        Healthy=Unknown NotReconciled: No run has ended yet.
        Held=False NoApprovalNeeded: No candidate waits for an approval.
        Loaded=Unknown Committing: a (a) is decided; the host writes the decision.
        Ready=False Committing: a (a) is decided; the host writes the decision.
        Serving=False NoActiveRevision: No revision is active."#]]
    .assert_eq(&named(&notices.join("\n")));
}
