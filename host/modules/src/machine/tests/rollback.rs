//! Rollbacks by users, and by the host in the rollback window.

use expect_test::expect;

use super::*;

#[test]
fn a_revision_that_fails_after_the_swap_is_rolled_back() {
    check_active(
        guarded(1),
        [
            too_many_failures("a"),
            source("b"),
            loaded("b", false),
            previewed("b", &[]),
            too_many_failures("b"),
            too_many_failures("b"),
            Event::RollbackWindowOver(digest("b")),
            guarded(2),
        ],
        &expect![[r#"
            event             active  candidate     Ready                effects
            failures of a     a       -             True RevisionActive
            source b          a       loading b     False Loading        Load(b), Report
            loaded b          a       previewing b  False Previewing     Preview(b), Report
            previewed b       b       -             True RevisionActive  Commit(b), Report, Swap(b), Notify(RevisionActive), BeginRollbackWindow(b), Report
            failures of b     a       rejected b    False RolledBack     CommitRollback(a), Rollback(a), EndRollbackWindow, Notify(RolledBack), Report
            failures of b     a       rejected b    False RolledBack
            window of b over  a       rejected b    False RolledBack
            spec 2            a       rejected b    False RolledBack     ApplySettings, Report
        "#]],
    );
}

#[test]
fn failures_of_an_earlier_revision_do_not_roll_the_active_one_back() {
    check_active(
        guarded(1),
        [
            source("b"),
            loaded("b", false),
            previewed("b", &[]),
            source("c"),
            loaded("c", false),
            previewed("c", &[]),
            too_many_failures("b"),
            too_many_failures("c"),
        ],
        &expect![[r#"
            event          active  candidate     Ready                effects
            source b       a       loading b     False Loading        Load(b), Report
            loaded b       a       previewing b  False Previewing     Preview(b), Report
            previewed b    b       -             True RevisionActive  Commit(b), Report, Swap(b), Notify(RevisionActive), BeginRollbackWindow(b), Report
            source c       b       loading c     False Loading        Load(c), Report
            loaded c       b       previewing c  False Previewing     Preview(c), Report
            previewed c    c       -             True RevisionActive  Commit(c), Report, EndRollbackWindow, Swap(c), Notify(RevisionActive), BeginRollbackWindow(c), Report
            failures of b  c       -             True RevisionActive
            failures of c  b       rejected c    False RolledBack     CommitRollback(b), Rollback(b), EndRollbackWindow, Notify(RolledBack), Report
        "#]],
    );
}

#[test]
fn rollback_is_previewed_like_any_candidate_and_keeps_the_rejected_revision_back() {
    let mut machine = Machine::default();
    let previous = |machine: &Machine| machine.persistent_digests().previous;
    run(&mut machine, [guarded(1), source("a"), loaded("a", false)]);
    run(&mut machine, [source("b"), loaded("b", false), previewed("b", &[])]);
    assert_eq!(previous(&machine), Some(digest("a")));
    let mut rows = vec![Row::head()];
    // Given a rollback: the active revision is rejected, and the source is the previous one.
    rows.extend(run(&mut machine, [reject("b"), source("a"), loaded("a", false)]));
    rows.extend(run(&mut machine, [previewed("a", &[PlannedChange::Delete]), approve("a")]));
    expect![[r#"
        event        active  candidate     Ready                effects
        reject b     b       -             True RevisionActive  Report
        source a     b       loading a     False Loading        Load(a), Report
        loaded a     b       previewing a  False Previewing     Preview(a), Report
        previewed a  b       held a        False Held           Notify(Held), Report
        approve a    a       -             True RevisionActive  Notify(Approved), Commit(a), Report, EndRollbackWindow, Swap(a), Notify(RevisionActive), Report
    "#]].assert_eq(&table(&rows));
    // When it is repeated, there is nothing to return to: the host does not go forward to `b`.
    assert_eq!(previous(&machine), None);
    let rows = run(&mut machine, [source("b"), loaded("b", false)]);
    expect![[r#"
        source b  a  rejected b  False Rejected  Report
        loaded b  a  rejected b  False Rejected
    "#]]
    .assert_eq(&table(&rows));
    // When the user approves `b`, the host activates it, and `a` is the previous revision.
    let approved = [approve("b"), source("b"), loaded("b", false)];
    run(&mut machine, approved);
    assert_eq!(machine.active().map(|active| active.digest), Some(digest("b")));
    assert_eq!(previous(&machine), Some(digest("a")));
}

#[test]
fn rollback_that_the_user_rejects_leaves_the_active_revision_unrejected() {
    let mut machine = Machine::default();
    run(&mut machine, [guarded(1), source("a"), loaded("a", false)]);
    run(&mut machine, [source("b"), loaded("b", false), previewed("b", &[])]);
    run(&mut machine, [reject("b"), source("a"), loaded("a", false)]);
    assert!(machine.rejected().any(|(rejected, _)| *rejected == digest("b")));
    run(&mut machine, [previewed("a", &[PlannedChange::Delete]), reject("a")]);
    let rejected: Vec<_> = machine.rejected().map(|(rejected, _)| *rejected).collect();
    assert_eq!(rejected, [digest("a")]);
    assert_eq!(machine.active().map(|active| active.digest), Some(digest("b")));
}

#[test]
fn rollback_that_does_not_complete_leaves_the_active_revision_unrejected() {
    // Given a rollback whose target cannot be loaded, or from which the user returns.
    for last in [refused("a", RetryPolicy::Never), source("b")] {
        let mut machine = Machine::default();
        run(&mut machine, [guarded(1), source("a"), loaded("a", false)]);
        run(&mut machine, [source("b"), loaded("b", false), previewed("b", &[])]);
        run(&mut machine, [reject("b"), source("a")]);
        // While it is retried, the rollback is under way.
        run(&mut machine, [refused("a", RetryPolicy::Later), Event::Retry]);
        assert!(machine.rejected().any(|(rejected, _)| *rejected == digest("b")));
        run(&mut machine, [last]);
        assert!(machine.rejected().all(|(rejected, _)| *rejected != digest("b")));
        // Then the next upgrade can return to it.
        run(&mut machine, [source("c"), loaded("a", false), loaded("c", false)]);
        run(&mut machine, [previewed("c", &[])]);
        assert_eq!(machine.active().map(|active| active.digest), Some(digest("c")));
        assert_eq!(machine.persistent_digests().previous, Some(digest("b")));
    }
}

#[test]
fn host_does_not_roll_back_to_a_revision_that_a_user_rejected() {
    check_active(
        guarded(1),
        [
            source("b"),
            loaded("b", false),
            previewed("b", &[]),
            reject("a"),
            too_many_failures("b"),
            source("a"),
        ],
        &expect![[r#"
            event          active  candidate     Ready                effects
            source b       a       loading b     False Loading        Load(b), Report
            loaded b       a       previewing b  False Previewing     Preview(b), Report
            previewed b    b       -             True RevisionActive  Commit(b), Report, Swap(b), Notify(RevisionActive), BeginRollbackWindow(b), Report
            reject a       b       -             True RevisionActive  EndRollbackWindow, Report
            failures of b  b       -             True RevisionActive
            source a       b       rejected a    False Rejected       Report
        "#]],
    );
}

#[test]
fn host_does_not_roll_back_to_a_revision_that_the_user_rolled_back() {
    check_active(
        guarded(1),
        [
            source("b"),
            loaded("b", false),
            previewed("b", &[]),
            reject("b"),
            source("a"),
            loaded("a", false),
            previewed("a", &[]),
            too_many_failures("a"),
        ],
        &expect![[r#"
            event          active  candidate     Ready                effects
            source b       a       loading b     False Loading        Load(b), Report
            loaded b       a       previewing b  False Previewing     Preview(b), Report
            previewed b    b       -             True RevisionActive  Commit(b), Report, Swap(b), Notify(RevisionActive), BeginRollbackWindow(b), Report
            reject b       b       -             True RevisionActive  Report
            source a       b       loading a     False Loading        Load(a), Report
            loaded a       b       previewing a  False Previewing     Preview(a), Report
            previewed a    a       -             True RevisionActive  Commit(a), Report, EndRollbackWindow, Swap(a), Notify(RevisionActive), Report
            failures of a  a       -             True RevisionActive
        "#]],
    );
}

#[test]
fn rollback_that_cannot_be_written_is_retried_and_the_active_revision_stays_meanwhile() {
    let written = |result| Event::RollbackCommitted { digest: digest("a"), result };
    let unwritten = || written(Err(rejection("NotCommitted", RetryPolicy::Later)));
    check_active(
        guarded(1),
        [
            source("b"),
            loaded("b", false),
            previewed("b", &[]),
            too_many_failures("b"),
            unwritten(),
            too_many_failures("b"),
            Event::RollbackWindowOver(digest("b")),
            Event::Retry,
            unwritten(),
            Event::Retry,
            written(Ok(())),
            written(Ok(())),
        ],
        &expect![[r#"
            event             active  candidate     Ready                effects
            source b          a       loading b     False Loading        Load(b), Report
            loaded b          a       previewing b  False Previewing     Preview(b), Report
            previewed b       b       -             True RevisionActive  Commit(b), Report, Swap(b), Notify(RevisionActive), BeginRollbackWindow(b), Report
            failures of b     b       -             True RevisionActive  CommitRollback(a)
            no rollback to a  b       -             True RevisionActive  Notify(NotCommitted), RetryLater
            failures of b     b       -             True RevisionActive
            window of b over  b       -             True RevisionActive
            retry             b       -             True RevisionActive  CommitRollback(a)
            no rollback to a  b       -             True RevisionActive  RetryLater
            retry             b       -             True RevisionActive  CommitRollback(a)
            rollback to a     a       rejected b    False RolledBack     Rollback(a), EndRollbackWindow, Notify(RolledBack), Report
            rollback to a     a       rejected b    False RolledBack
        "#]],
    );
}

#[test]
fn decision_for_a_candidate_contains_a_rollback_that_is_decided() {
    let committed = || Event::Committed { digest: digest("c"), result: Ok(()) };
    let failed = || Err(rejection("NotCommitted", RetryPolicy::Later));
    for rollback_is_first in [false, true] {
        // Given a candidate that is decided, and failures of the active revision.
        let mut machine = Machine::default();
        run(&mut machine, [guarded(1), source("a"), loaded("a", false)]);
        run(&mut machine, [source("b"), loaded("b", false), previewed("b", &[])]);
        let not_yet = Event::Committed { digest: digest("c"), result: failed() };
        run(&mut machine, [source("c"), loaded("c", false), previewed("c", &[]), not_yet]);
        let not_yet = Event::RollbackCommitted { digest: digest("a"), result: failed() };
        run(&mut machine, [too_many_failures("b"), not_yet]);
        let decision = machine.decided_digests();
        assert_eq!(decision.active, Some(digest("c")));
        assert_eq!(decision.previous, Some(digest("a")));

        // When either decision is written first.
        if rollback_is_first {
            let rollback = Event::RollbackCommitted { digest: digest("a"), result: Ok(()) };
            run(&mut machine, [rollback]);
            assert_eq!(machine.active().map(|active| active.digest), Some(digest("a")));
        }
        run(&mut machine, [committed()]);

        // Then the candidate follows the previous revision, and the failing one is rejected.
        assert_eq!(machine.persistent_digests(), decision);
        assert_eq!(machine.rollback_target().map(|target| target.digest), Some(digest("a")));
        assert!(machine.rejected().any(|(rejected, _)| *rejected == digest("b")));
    }
}

#[test]
fn rollback_is_dropped_when_a_user_rejects_its_target_before_it_is_written() {
    let mut machine = Machine::default();
    run(&mut machine, [guarded(1), source("a"), loaded("a", false)]);
    run(&mut machine, [source("b"), loaded("b", false), previewed("b", &[])]);
    let written = |result| Event::RollbackCommitted { digest: digest("a"), result };
    let unwritten = written(Err(rejection("NotCommitted", RetryPolicy::Later)));
    run(&mut machine, [too_many_failures("b"), unwritten, reject("a"), written(Ok(()))]);
    assert_eq!(machine.active().map(|active| active.digest), Some(digest("b")));
    assert!(machine.rolled_back().is_none());
}
