//! A Module that is deleted: what is done before it goes.

use expect_test::expect;

use super::*;

#[test]
fn a_teardown_keeps_the_active_revision_until_all_finalizers_are_removed() {
    check(
        [
            spec(1),
            source("a"),
            loaded("a", false),
            source("b"),
            Event::Deleting,
            loaded("b", false),
            spec(2),
            Event::Deleting,
            Event::TornDown(Err(rejection("Forbidden", RetryPolicy::Later))),
            Event::Retry,
            Event::TornDown(Ok("done".to_owned())),
            Event::Deleted,
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
            is being deleted: [Teardown, Report]
                serving a, candidate none any more, Ready=False Finalizing
            loaded b: []
                serving a, candidate none any more, Ready=False Finalizing
            spec 2: []
                serving a, candidate none any more, Ready=False Finalizing
            is being deleted: []
                serving a, candidate none any more, Ready=False Finalizing
            cannot leave: [Notify(Forbidden), RetryLater, Report]
                serving a, candidate none any more, Ready=False Finalizing
            retry: [Teardown]
                serving a, candidate none any more, Ready=False Finalizing
            left: [Notify(FinalizersRemoved), RemoveFinalizer, Report]
                serving a, candidate none any more, Ready=False Finalizing
            deleted: [Stop]
                serving a, candidate none any more, Ready=False Finalizing
        "#]],
    );
}

#[test]
fn after_a_restart_a_teardown_loads_the_last_active_revision() {
    check(
        [
            known("a", &[]),
            spec(1),
            Event::Deleting,
            source("b"),
            recalled("a", Ok(())),
            loaded("a", false),
            Event::TornDown(Ok("done".to_owned())),
        ],
        &expect![[r#"
            known: []
                serving nothing, candidate nothing, Ready=False Waiting
            spec 1: [Fetch, Report]
                serving nothing, candidate nothing, Ready=False Waiting
            is being deleted: [RestoreSnapshot(a), Report]
                serving nothing, candidate recalling a, Ready=False RestoringSnapshot
            source b: []
                serving nothing, candidate recalling a, Ready=False RestoringSnapshot
            recalled a: [Load(a), Report]
                serving nothing, candidate loading a, Ready=False Loading
            loaded a: [Swap(a), Teardown, Report]
                serving a, candidate none any more, Ready=False Finalizing
            left: [Notify(FinalizersRemoved), RemoveFinalizer]
                serving a, candidate none any more, Ready=False Finalizing
        "#]],
    );
}

#[test]
fn a_teardown_does_not_wait_for_a_missing_component() {
    check(
        [
            known("a", &[]),
            spec(1),
            Event::Deleting,
            recalled("a", Err(rejection("Missing", RetryPolicy::Never))),
        ],
        &expect![[r#"
            known: []
                serving nothing, candidate nothing, Ready=False Waiting
            spec 1: [Fetch, Report]
                serving nothing, candidate nothing, Ready=False Waiting
            is being deleted: [RestoreSnapshot(a), Report]
                serving nothing, candidate recalling a, Ready=False RestoringSnapshot
            no copy of a: [Teardown, Report]
                serving nothing, candidate none any more, Ready=False Finalizing
        "#]],
    );
    check(
        [
            known("a", &[]),
            spec(1),
            Event::Deleting,
            recalled("a", Ok(())),
            refused("a", RetryPolicy::Never),
        ],
        &expect![[r#"
            known: []
                serving nothing, candidate nothing, Ready=False Waiting
            spec 1: [Fetch, Report]
                serving nothing, candidate nothing, Ready=False Waiting
            is being deleted: [RestoreSnapshot(a), Report]
                serving nothing, candidate recalling a, Ready=False RestoringSnapshot
            recalled a: [Load(a), Report]
                serving nothing, candidate loading a, Ready=False Loading
            refused a: [Teardown, Report]
                serving nothing, candidate none any more, Ready=False Finalizing
        "#]],
    );
}
