//! The teardown of a Module that is being deleted.

use expect_test::expect;

use super::*;

#[test]
fn a_teardown_keeps_the_active_revision_until_all_finalizers_are_removed() {
    check_active(
        spec(1),
        [
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
            event          active  candidate  Ready             effects
            source b       a       loading b  False Loading     Load(b), Report
            deleting       a       teardown   False Finalizing  Teardown, Report
            loaded b       a       teardown   False Finalizing
            spec 2         a       teardown   False Finalizing
            deleting       a       teardown   False Finalizing
            not torn down  a       teardown   False Finalizing  Notify(Forbidden), RetryLater, Report
            retry          a       teardown   False Finalizing  Teardown
            torn down      a       teardown   False Finalizing  Notify(FinalizersRemoved), RemoveFinalizer, Report
            deleted        a       teardown   False Finalizing  RemoveModule
        "#]],
    );
}

#[test]
fn after_a_restart_a_teardown_loads_the_last_active_revision() {
    check(
        [
            status_loaded("a", &[]),
            spec(1),
            Event::Deleting,
            source("b"),
            restored("a", Ok(())),
            loaded("a", false),
            Event::TornDown(Ok("done".to_owned())),
        ],
        &expect![[r#"
            event          active  candidate    Ready                    effects
            status loaded  -       -            False Waiting
            spec 1         -       -            False Waiting            Fetch, Report
            deleting       -       restoring a  False RestoringSnapshot  RestoreSnapshot(a), Report
            source b       -       restoring a  False RestoringSnapshot
            restored a     -       loading a    False Loading            Load(a), Report
            loaded a       a       teardown     False Finalizing         Swap(a), Teardown, Report
            torn down      a       teardown     False Finalizing         Notify(FinalizersRemoved), RemoveFinalizer
        "#]],
    );
}

#[test]
fn a_teardown_does_not_wait_for_a_missing_component() {
    check(
        [
            status_loaded("a", &[]),
            spec(1),
            Event::Deleting,
            restored("a", Err(rejection("Missing", RetryPolicy::Never))),
        ],
        &expect![[r#"
            event             active  candidate    Ready                    effects
            status loaded     -       -            False Waiting
            spec 1            -       -            False Waiting            Fetch, Report
            deleting          -       restoring a  False RestoringSnapshot  RestoreSnapshot(a), Report
            no snapshot of a  -       teardown     False Finalizing         Teardown, Report
        "#]],
    );
    check(
        [
            status_loaded("a", &[]),
            spec(1),
            Event::Deleting,
            restored("a", Ok(())),
            refused("a", RetryPolicy::Never),
        ],
        &expect![[r#"
            event          active  candidate    Ready                    effects
            status loaded  -       -            False Waiting
            spec 1         -       -            False Waiting            Fetch, Report
            deleting       -       restoring a  False RestoringSnapshot  RestoreSnapshot(a), Report
            restored a     -       loading a    False Loading            Load(a), Report
            refused a      -       teardown     False Finalizing         Teardown, Report
        "#]],
    );
}
