//! A Module that is deleted: what is done before it goes.

use expect_test::expect;

use super::*;

#[test]
fn nothing_new_comes_to_serve_and_what_serves_is_asked_until_all_primaries_are_let_go() {
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
            Event::Left(Err(verdict("Forbidden", Again::Later))),
            Event::Retry,
            Event::Left(Ok("done".to_owned())),
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
            is being deleted: [Leave, Report]
                serving a, candidate none any more, Ready=False Finalizing
            loaded b: []
                serving a, candidate none any more, Ready=False Finalizing
            spec 2: []
                serving a, candidate none any more, Ready=False Finalizing
            is being deleted: []
                serving a, candidate none any more, Ready=False Finalizing
            cannot leave: [Notify(Forbidden), RetryLater, Report]
                serving a, candidate none any more, Ready=False Finalizing
            retry: [Leave]
                serving a, candidate none any more, Ready=False Finalizing
            left: [Notify(FinalizersRemoved), LetGo, Report]
                serving a, candidate none any more, Ready=False Finalizing
            deleted: [Stop]
                serving a, candidate none any more, Ready=False Finalizing
        "#]],
    );
}

#[test]
fn after_a_restart_what_served_last_is_loaded_to_be_asked() {
    check(
        [
            known("a", &[]),
            spec(1),
            Event::Deleting,
            source("b"),
            recalled("a", Ok(())),
            loaded("a", false),
            Event::Left(Ok("done".to_owned())),
        ],
        &expect![[r#"
            known: []
                serving nothing, candidate nothing, Ready=False Waiting
            spec 1: [Fetch, Report]
                serving nothing, candidate nothing, Ready=False Waiting
            is being deleted: [Recall(a), Report]
                serving nothing, candidate recalling a, Ready=False RestoringSnapshot
            source b: []
                serving nothing, candidate recalling a, Ready=False RestoringSnapshot
            recalled a: [Load(a), Report]
                serving nothing, candidate loading a, Ready=False Loading
            loaded a: [Swap(a), Leave, Report]
                serving a, candidate none any more, Ready=False Finalizing
            left: [Notify(FinalizersRemoved), LetGo]
                serving a, candidate none any more, Ready=False Finalizing
        "#]],
    );
}

#[test]
fn what_cannot_be_had_any_more_is_not_waited_for() {
    check(
        [
            known("a", &[]),
            spec(1),
            Event::Deleting,
            recalled("a", Err(verdict("Missing", Again::Never))),
        ],
        &expect![[r#"
            known: []
                serving nothing, candidate nothing, Ready=False Waiting
            spec 1: [Fetch, Report]
                serving nothing, candidate nothing, Ready=False Waiting
            is being deleted: [Recall(a), Report]
                serving nothing, candidate recalling a, Ready=False RestoringSnapshot
            no copy of a: [Leave, Report]
                serving nothing, candidate none any more, Ready=False Finalizing
        "#]],
    );
    check(
        [
            known("a", &[]),
            spec(1),
            Event::Deleting,
            recalled("a", Ok(())),
            refused("a", Again::Never),
        ],
        &expect![[r#"
            known: []
                serving nothing, candidate nothing, Ready=False Waiting
            spec 1: [Fetch, Report]
                serving nothing, candidate nothing, Ready=False Waiting
            is being deleted: [Recall(a), Report]
                serving nothing, candidate recalling a, Ready=False RestoringSnapshot
            recalled a: [Load(a), Report]
                serving nothing, candidate loading a, Ready=False Loading
            refused a: [Leave, Report]
                serving nothing, candidate none any more, Ready=False Finalizing
        "#]],
    );
}
