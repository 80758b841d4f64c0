//! Rehearsals, a person's word, probation, and what is known of the time before a restart.

use expect_test::expect;

use super::*;

#[test]
fn a_harmless_candidate_becomes_active_after_its_preview() {
    check(
        [
            guarded(1),
            source("a"),
            loaded("a", false),
            source("b"),
            loaded("b", true),
            rehearsed("b", &[PlannedChange::Change, PlannedChange::Create]),
            crds("b", Ok(())),
            Event::RollbackWindowOver(digest("a")),
            Event::RollbackWindowOver(digest("b")),
            too_many_fail(),
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
            loaded b: [Preview(b), Report]
                serving a, candidate rehearsing b, Ready=False Previewing
            rehearsed b: [InstallCrds(b), Report]
                serving a, candidate installing CRDs of b, Ready=False InstallingCRDs
            CRDs of b: [Commit(b), Report, Swap(b), Notify(RevisionActive), BeginRollbackWindow(b), Report]
                serving b, candidate nothing, Ready=True RevisionActive
            probation of a over: []
                serving b, candidate nothing, Ready=True RevisionActive
            probation of b over: [EndRollbackWindow]
                serving b, candidate nothing, Ready=True RevisionActive
            too many fail: []
                serving b, candidate nothing, Ready=True RevisionActive
        "#]],
    );
}

#[test]
fn a_candidate_that_would_delete_is_held_until_its_digest_is_approved() {
    check(
        [
            guarded(1),
            source("a"),
            loaded("a", false),
            source("b"),
            loaded("b", false),
            rehearsed("b", &[PlannedChange::Delete]),
            approve("c"),
            rehearsed("b", &[]),
            approve("b"),
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
            loaded b: [Preview(b), Report]
                serving a, candidate rehearsing b, Ready=False Previewing
            rehearsed b: [Notify(Held), Report]
                serving a, candidate held b, Ready=False Held
            approve Some(c), reject None: []
                serving a, candidate held b, Ready=False Held
            rehearsed b: []
                serving a, candidate held b, Ready=False Held
            approve Some(b), reject None: [Notify(Approved), Commit(b), Report, Swap(b), Notify(RevisionActive), BeginRollbackWindow(b), Report]
                serving b, candidate nothing, Ready=True RevisionActive
        "#]],
    );
}

#[test]
fn an_early_approval_counts_and_a_rejection_lasts() {
    check(
        [
            guarded(1),
            source("a"),
            loaded("a", false),
            approve("b"),
            source("b"),
            loaded("b", false),
            source("c"),
            reject("c"),
            loaded("c", false),
            source("a"),
            rehearsed("a", &[]),
            loaded("a", false),
            rehearsed("a", &[]),
            source("c"),
            guarded(2),
            approve("c"),
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
            approve Some(b), reject None: []
                serving a, candidate nothing, Ready=True RevisionActive
            source b: [Load(b), Report]
                serving a, candidate loading b, Ready=False Loading
            loaded b: [Commit(b), Report, Swap(b), Notify(RevisionActive), BeginRollbackWindow(b), Report]
                serving b, candidate nothing, Ready=True RevisionActive
            source c: [Load(c), Report]
                serving b, candidate loading c, Ready=False Loading
            approve None, reject Some(c): [Report]
                serving b, candidate loading c, Ready=False Loading
            loaded c: [Report]
                serving b, candidate rejected c, Ready=False Rejected
            source a: [Load(a), Report]
                serving b, candidate loading a, Ready=False Loading
            rehearsed a: []
                serving b, candidate loading a, Ready=False Loading
            loaded a: [Preview(a), Report]
                serving b, candidate rehearsing a, Ready=False Previewing
            rehearsed a: [Commit(a), Report, EndRollbackWindow, Swap(a), Notify(RevisionActive), BeginRollbackWindow(a), Report]
                serving a, candidate nothing, Ready=True RevisionActive
            source c: [Report]
                serving a, candidate rejected c, Ready=False Rejected
            spec 2: [ApplySettings { parameters: true }, Report]
                serving a, candidate rejected c, Ready=False Rejected
            approve Some(c), reject None: [Fetch, Report]
                serving a, candidate nothing, Ready=False Waiting
            source c: [Load(c), Report]
                serving a, candidate loading c, Ready=False Loading
            loaded c: [Commit(c), Report, EndRollbackWindow, Swap(c), Notify(RevisionActive), BeginRollbackWindow(c), Report]
                serving c, candidate nothing, Ready=True RevisionActive
        "#]],
    );
}

#[test]
fn a_held_version_that_is_rejected_is_not_tried_again() {
    check(
        [
            guarded(1),
            source("a"),
            loaded("a", false),
            source("b"),
            loaded("b", false),
            rehearsed("b", &[PlannedChange::Fail]),
            reject("b"),
            guarded(2),
            source("b"),
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
            loaded b: [Preview(b), Report]
                serving a, candidate rehearsing b, Ready=False Previewing
            rehearsed b: [Notify(Held), Report]
                serving a, candidate held b, Ready=False Held
            approve None, reject Some(b): [Notify(Rejected), Report]
                serving a, candidate rejected b, Ready=False Rejected
            spec 2: [ApplySettings { parameters: true }, Report]
                serving a, candidate rejected b, Ready=False Rejected
            source b: []
                serving a, candidate rejected b, Ready=False Rejected
        "#]],
    );
}

#[test]
fn the_later_decision_counts_and_a_rejection_wins_over_a_simultaneous_approval() {
    let both = || Event::Approval { approve: Some(digest("b")), reject: Some(digest("b")) };
    check(
        [
            guarded(1),
            source("a"),
            loaded("a", false),
            source("b"),
            loaded("b", false),
            reject("b"),
            both(),
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
            source b: [Load(b), Report]
                serving a, candidate loading b, Ready=False Loading
            loaded b: [Preview(b), Report]
                serving a, candidate rehearsing b, Ready=False Previewing
            approve None, reject Some(b): [Notify(Rejected), Report]
                serving a, candidate rejected b, Ready=False Rejected
            approve Some(b), reject Some(b): [Fetch, Report]
                serving a, candidate nothing, Ready=False Waiting
            source b: [Load(b), Report]
                serving a, candidate loading b, Ready=False Loading
            loaded b: [Commit(b), Report, Swap(b), Notify(RevisionActive), BeginRollbackWindow(b), Report]
                serving b, candidate nothing, Ready=True RevisionActive
        "#]],
    );
    check(
        [guarded(1), source("a"), loaded("a", false), both(), source("b")],
        &expect![[r#"
            spec 1: [Fetch, Report]
                serving nothing, candidate nothing, Ready=False Waiting
            source a: [Load(a), Report]
                serving nothing, candidate loading a, Ready=False Loading
            loaded a: [Commit(a), Report, Swap(a), Notify(RevisionActive), Report]
                serving a, candidate nothing, Ready=True RevisionActive
            approve Some(b), reject Some(b): [Report]
                serving a, candidate nothing, Ready=True RevisionActive
            source b: [Report]
                serving a, candidate rejected b, Ready=False Rejected
        "#]],
    );
}

#[test]
fn a_revision_that_fails_after_the_swap_is_rolled_back() {
    check(
        [
            guarded(1),
            source("a"),
            loaded("a", false),
            too_many_fail(),
            source("b"),
            loaded("b", false),
            rehearsed("b", &[]),
            too_many_fail(),
            too_many_fail(),
            Event::RollbackWindowOver(digest("b")),
            guarded(2),
        ],
        &expect![[r#"
            spec 1: [Fetch, Report]
                serving nothing, candidate nothing, Ready=False Waiting
            source a: [Load(a), Report]
                serving nothing, candidate loading a, Ready=False Loading
            loaded a: [Commit(a), Report, Swap(a), Notify(RevisionActive), Report]
                serving a, candidate nothing, Ready=True RevisionActive
            too many fail: []
                serving a, candidate nothing, Ready=True RevisionActive
            source b: [Load(b), Report]
                serving a, candidate loading b, Ready=False Loading
            loaded b: [Preview(b), Report]
                serving a, candidate rehearsing b, Ready=False Previewing
            rehearsed b: [Commit(b), Report, Swap(b), Notify(RevisionActive), BeginRollbackWindow(b), Report]
                serving b, candidate nothing, Ready=True RevisionActive
            too many fail: [Rollback, EndRollbackWindow, Notify(RolledBack), Report]
                serving a, candidate rejected b, Ready=False RolledBack
            too many fail: []
                serving a, candidate rejected b, Ready=False RolledBack
            probation of b over: []
                serving a, candidate rejected b, Ready=False RolledBack
            spec 2: [ApplySettings { parameters: true }, Report]
                serving a, candidate rejected b, Ready=False RolledBack
        "#]],
    );
}

#[test]
fn after_a_restart_the_active_revision_is_restored_and_a_new_source_is_previewed() {
    check(
        [
            known("a", &["c"]),
            guarded(1),
            source("b"),
            recalled("a", Ok(())),
            source("b"),
            loaded("a", false),
            loaded("b", false),
            rehearsed("b", &[PlannedChange::Delete]),
            source("c"),
        ],
        &expect![[r#"
            known: []
                serving nothing, candidate nothing, Ready=False Waiting
            spec 1: [Fetch, Report]
                serving nothing, candidate nothing, Ready=False Waiting
            source b: [RestoreSnapshot(a), Report]
                serving nothing, candidate recalling a, Ready=False RestoringSnapshot
            recalled a: [Load(a), Report]
                serving nothing, candidate loading a, Ready=False Loading
            source b: []
                serving nothing, candidate loading a, Ready=False Loading
            loaded a: [Swap(a), Load(b), Report]
                serving a, candidate loading b, Ready=False Loading
            loaded b: [Preview(b), Report]
                serving a, candidate rehearsing b, Ready=False Previewing
            rehearsed b: [Notify(Held), Report]
                serving a, candidate held b, Ready=False Held
            source c: [Report]
                serving a, candidate rejected c, Ready=False Known
        "#]],
    );
}

#[test]
fn after_a_restart_the_active_revision_is_restored_at_once_without_a_new_source() {
    check(
        [known("a", &[]), guarded(1), source("a"), loaded("a", true), crds("a", Ok(()))],
        &expect![[r#"
            known: []
                serving nothing, candidate nothing, Ready=False Waiting
            spec 1: [Fetch, Report]
                serving nothing, candidate nothing, Ready=False Waiting
            source a: [Load(a), Report]
                serving nothing, candidate loading a, Ready=False Loading
            loaded a: [InstallCrds(a), Report]
                serving nothing, candidate installing CRDs of a, Ready=False InstallingCRDs
            CRDs of a: [SaveSnapshot(a), Swap(a), Report]
                serving a, candidate nothing, Ready=True RevisionActive
        "#]],
    );
    check(
        [known("a", &[]), guarded(1), missing(), recalled("a", Ok(())), loaded("a", true)],
        &expect![[r#"
            known: []
                serving nothing, candidate nothing, Ready=False Waiting
            spec 1: [Fetch, Report]
                serving nothing, candidate nothing, Ready=False Waiting
            no source: [Notify(SourceNotFound), RestoreSnapshot(a), Report]
                serving nothing, candidate recalling a, Ready=False RestoringSnapshot
            recalled a: [Load(a), Report]
                serving nothing, candidate loading a, Ready=False Loading
            loaded a: [Swap(a), Report]
                serving a, candidate nothing, Ready=False SourceNotFound
        "#]],
    );
}

#[test]
fn without_a_snapshot_the_source_is_previewed_against_the_observed_state() {
    check(
        [
            known("a", &[]),
            guarded(1),
            source("b"),
            recalled("a", Err(rejection("SourceNotFound", RetryPolicy::Never))),
            loaded("b", false),
            rehearsed("b", &[PlannedChange::Delete]),
            approve("b"),
        ],
        &expect![[r#"
            known: []
                serving nothing, candidate nothing, Ready=False Waiting
            spec 1: [Fetch, Report]
                serving nothing, candidate nothing, Ready=False Waiting
            source b: [RestoreSnapshot(a), Report]
                serving nothing, candidate recalling a, Ready=False RestoringSnapshot
            no copy of a: [Notify(SourceNotFound), Load(b), Report]
                serving nothing, candidate loading b, Ready=False Loading
            loaded b: [Preview(b), Report]
                serving nothing, candidate rehearsing b, Ready=False Previewing
            rehearsed b: [Notify(Held), Report]
                serving nothing, candidate held b, Ready=False Held
            approve Some(b), reject None: [Notify(Approved), Commit(b), Report, Swap(b), Notify(RevisionActive), Report]
                serving b, candidate nothing, Ready=True RevisionActive
        "#]],
    );
}

#[test]
fn a_decision_that_cannot_be_written_is_retried_before_anything_else() {
    let committed = |name: &str, result| Event::Committed { digest: digest(name), result };
    check(
        [
            guarded(1),
            source("a"),
            loaded("a", false),
            committed("a", Err(rejection("Forbidden", RetryPolicy::Later))),
            guarded(2),
            source("b"),
            Event::Retry,
            committed("a", Err(rejection("Forbidden", RetryPolicy::Later))),
            Event::Retry,
            committed("a", Ok(())),
        ],
        &expect![[r#"
            spec 1: [Fetch, Report]
                serving nothing, candidate nothing, Ready=False Waiting
            source a: [Load(a), Report]
                serving nothing, candidate loading a, Ready=False Loading
            loaded a: [Commit(a), Report]
                serving nothing, candidate committing a, Ready=False Committing
            not committed a: [Notify(Forbidden), RetryLater, Report]
                serving nothing, candidate committing a, Ready=False Forbidden
            spec 2: [Report]
                serving nothing, candidate committing a, Ready=False Forbidden
            source b: []
                serving nothing, candidate committing a, Ready=False Forbidden
            retry: [Commit(a)]
                serving nothing, candidate committing a, Ready=False Forbidden
            not committed a: [RetryLater]
                serving nothing, candidate committing a, Ready=False Forbidden
            retry: [Commit(a)]
                serving nothing, candidate committing a, Ready=False Forbidden
            committed a: [Swap(a), Notify(RevisionActive), Load(b), Report]
                serving a, candidate loading b, Ready=False Loading
        "#]],
    );
}
