//! Previews, approvals, the rollback window, and revisions from before a restart.

use expect_test::expect;

use super::*;
use crate::policy_preview::{PolicyPreview, ReviewChange};

#[test]
fn a_harmless_candidate_becomes_active_after_its_preview() {
    check_active(
        guarded(1),
        [
            source("b"),
            loaded("b", true),
            previewed("b", &[PlannedChange::Change, PlannedChange::Create]),
            crds("b", Ok(())),
            Event::RollbackWindowOver(digest("a")),
            Event::RollbackWindowOver(digest("b")),
            too_many_failures("b"),
        ],
        &expect![[r#"
            event             active  candidate             Ready                 effects
            source b          a       loading b             False Loading         Load(b), Report
            loaded b          a       previewing b          False Previewing      Preview(b), Report
            previewed b       a       installing CRDs of b  False InstallingCRDs  InstallCrds(b), Report
            CRDs of b         b       -                     True RevisionActive   Commit(b), Report, Swap(b), Notify(RevisionActive), BeginRollbackWindow(b), Report
            window of a over  b       -                     True RevisionActive
            window of b over  b       -                     True RevisionActive   EndRollbackWindow
            failures of b     b       -                     True RevisionActive
        "#]],
    );
}

#[test]
fn a_candidate_that_would_delete_is_held_until_its_digest_is_approved() {
    check_active(
        guarded(1),
        [
            source("b"),
            loaded("b", false),
            previewed("b", &[PlannedChange::Delete]),
            approve("c"),
            previewed("b", &[]),
            approve("b"),
        ],
        &expect![[r#"
            event        active  candidate     Ready                effects
            source b     a       loading b     False Loading        Load(b), Report
            loaded b     a       previewing b  False Previewing     Preview(b), Report
            previewed b  a       held b        False Held           Notify(Held), Report
            approve c    a       held b        False Held
            previewed b  a       held b        False Held
            approve b    b       -             True RevisionActive  Notify(Approved), Commit(b), Report, Swap(b), Notify(RevisionActive), BeginRollbackWindow(b), Report
        "#]],
    );
}

#[test]
fn candidate_that_is_held_for_a_cause_that_may_go_is_previewed_again() {
    let failed = || Event::Previewed {
        digest: digest("b"),
        result: Err(rejection("PreviewFailed", RetryPolicy::Later)),
    };
    check_active(
        guarded(1),
        [
            source("b"),
            loaded("b", false),
            previewed_without_rights("b"),
            // A result that nobody asked for does not count.
            previewed("b", &[]),
            Event::Retry,
            previewed_without_rights("b"),
            Event::Retry,
            failed(),
            Event::Retry,
            previewed("b", &[]),
        ],
        &expect![[r#"
            event            active  candidate     Ready                effects
            source b         a       loading b     False Loading        Load(b), Report
            loaded b         a       previewing b  False Previewing     Preview(b), Report
            previewed b      a       held b        False Held           Notify(Held), RetryLater, Report
            previewed b      a       held b        False Held
            retry            a       held b        False Held           Preview(b)
            previewed b      a       held b        False Held           RetryLater
            retry            a       held b        False Held           Preview(b)
            no preview of b  a       held b        False Held           RetryLater
            retry            a       held b        False Held           Preview(b)
            previewed b      b       -             True RevisionActive  Commit(b), Report, Swap(b), Notify(RevisionActive), BeginRollbackWindow(b), Report
        "#]],
    );
}

#[test]
fn candidate_that_is_held_for_its_own_harm_is_not_previewed_again() {
    check_active(
        guarded(1),
        [
            source("b"),
            loaded("b", false),
            previewed_without_rights("b"),
            Event::Retry,
            previewed("b", &[PlannedChange::Delete]),
            Event::Retry,
        ],
        &expect![[r#"
            event        active  candidate     Ready             effects
            source b     a       loading b     False Loading     Load(b), Report
            loaded b     a       previewing b  False Previewing  Preview(b), Report
            previewed b  a       held b        False Held        Notify(Held), RetryLater, Report
            retry        a       held b        False Held        Preview(b)
            previewed b  a       held b        False Held        Notify(Held), Report
            retry        a       held b        False Held
        "#]],
    );
}

#[test]
fn approval_before_the_load_counts_and_a_rejection_lasts() {
    check_active(
        guarded(1),
        [
            approve("b"),
            source("b"),
            loaded("b", false),
            source("c"),
            reject("c"),
            loaded("c", false),
            source("a"),
            previewed("a", &[]),
            loaded("a", false),
            previewed("a", &[]),
            source("c"),
            guarded(2),
            approve("c"),
            source("c"),
            loaded("c", false),
        ],
        &expect![[r#"
            event        active  candidate     Ready                effects
            approve b    a       -             True RevisionActive
            source b     a       loading b     False Loading        Load(b), Report
            loaded b     b       -             True RevisionActive  Commit(b), Report, Swap(b), Notify(RevisionActive), BeginRollbackWindow(b), Report
            source c     b       loading c     False Loading        Load(c), Report
            reject c     b       loading c     False Loading        Report
            loaded c     b       rejected c    False Rejected       Report
            source a     b       loading a     False Loading        Load(a), Report
            previewed a  b       loading a     False Loading
            loaded a     b       previewing a  False Previewing     Preview(a), Report
            previewed a  a       -             True RevisionActive  Commit(a), Report, EndRollbackWindow, Swap(a), Notify(RevisionActive), BeginRollbackWindow(a), Report
            source c     a       rejected c    False Rejected       Report
            spec 2       a       rejected c    False Rejected       ApplySettings, Report
            approve c    a       -             False Waiting        Fetch, Report
            source c     a       loading c     False Loading        Load(c), Report
            loaded c     c       -             True RevisionActive  Commit(c), Report, EndRollbackWindow, Swap(c), Notify(RevisionActive), BeginRollbackWindow(c), Report
        "#]],
    );
}

#[test]
fn held_candidate_that_is_rejected_is_not_tried_again() {
    check_active(
        guarded(1),
        [
            source("b"),
            loaded("b", false),
            previewed("b", &[PlannedChange::Fail]),
            reject("b"),
            guarded(2),
            source("b"),
        ],
        &expect![[r#"
            event        active  candidate     Ready             effects
            source b     a       loading b     False Loading     Load(b), Report
            loaded b     a       previewing b  False Previewing  Preview(b), Report
            previewed b  a       held b        False Held        Notify(Held), Report
            reject b     a       rejected b    False Rejected    Notify(Rejected), Report
            spec 2       a       rejected b    False Rejected    ApplySettings, Report
            source b     a       rejected b    False Rejected
        "#]],
    );
}

#[test]
fn the_later_decision_counts_and_a_rejection_wins_over_a_simultaneous_approval() {
    let both = || Event::Approval { approve: Some(digest("b")), reject: Some(digest("b")) };
    check_active(
        guarded(1),
        [source("b"), loaded("b", false), reject("b"), both(), source("b"), loaded("b", false)],
        &expect![[r#"
            event                            active  candidate     Ready                effects
            source b                         a       loading b     False Loading        Load(b), Report
            loaded b                         a       previewing b  False Previewing     Preview(b), Report
            reject b                         a       rejected b    False Rejected       Notify(Rejected), Report
            approve Some(b), reject Some(b)  a       -             False Waiting        Fetch, Report
            source b                         a       loading b     False Loading        Load(b), Report
            loaded b                         b       -             True RevisionActive  Commit(b), Report, Swap(b), Notify(RevisionActive), BeginRollbackWindow(b), Report
        "#]],
    );
    check_active(
        guarded(1),
        [both(), source("b")],
        &expect![[r#"
            event                            active  candidate   Ready                effects
            approve Some(b), reject Some(b)  a       -           True RevisionActive  Report
            source b                         a       rejected b  False Rejected       Report
        "#]],
    );
}

#[test]
fn after_a_restart_the_active_revision_is_restored_and_a_new_source_is_previewed() {
    check(
        [
            status_loaded("a", &["c"]),
            guarded(1),
            source("b"),
            restored("a", Ok(())),
            source("b"),
            loaded("a", false),
            loaded("b", false),
            previewed("b", &[PlannedChange::Delete]),
            source("c"),
        ],
        &expect![[r#"
            event          active  candidate     Ready                    effects
            status loaded  -       -             False Waiting
            spec 1         -       -             False Waiting            Fetch, Report
            source b       -       restoring a   False RestoringSnapshot  RestoreSnapshot(a), Report
            restored a     -       loading a     False Loading            Load(a), Report
            source b       -       loading a     False Loading
            loaded a       a       loading b     False Loading            Swap(a), Load(b), Report
            loaded b       a       previewing b  False Previewing         Preview(b), Report
            previewed b    a       held b        False Held               Notify(Held), Report
            source c       a       rejected c    False Known              Report
        "#]],
    );
}

#[test]
fn after_a_restart_the_active_revision_is_restored_at_once_without_a_new_source() {
    check(
        [status_loaded("a", &[]), guarded(1), source("a"), loaded("a", true), crds("a", Ok(()))],
        &expect![[r#"
            event          active  candidate             Ready                 effects
            status loaded  -       -                     False Waiting
            spec 1         -       -                     False Waiting         Fetch, Report
            source a       -       loading a             False Loading         Load(a), Report
            loaded a       -       installing CRDs of a  False InstallingCRDs  InstallCrds(a), Report
            CRDs of a      a       -                     True RevisionActive   SaveSnapshot(a), Swap(a), Report
        "#]],
    );
    check(
        [status_loaded("a", &[]), guarded(1), missing(), restored("a", Ok(())), loaded("a", true)],
        &expect![[r#"
            event          active  candidate    Ready                    effects
            status loaded  -       -            False Waiting
            spec 1         -       -            False Waiting            Fetch, Report
            no source      -       restoring a  False RestoringSnapshot  Notify(SourceNotFound), RestoreSnapshot(a), Report
            restored a     -       loading a    False Loading            Load(a), Report
            loaded a       a       -            False SourceNotFound     Swap(a), Report
        "#]],
    );
}

#[test]
fn without_a_snapshot_the_source_is_previewed_against_the_observed_state() {
    check(
        [
            status_loaded("a", &[]),
            guarded(1),
            source("b"),
            restored("a", Err(rejection("SourceNotFound", RetryPolicy::Never))),
            loaded("b", false),
            previewed("b", &[PlannedChange::Delete]),
            approve("b"),
        ],
        &expect![[r#"
            event             active  candidate     Ready                    effects
            status loaded     -       -             False Waiting
            spec 1            -       -             False Waiting            Fetch, Report
            source b          -       restoring a   False RestoringSnapshot  RestoreSnapshot(a), Report
            no snapshot of a  -       loading b     False Loading            Notify(SourceNotFound), Load(b), Report
            loaded b          -       previewing b  False Previewing         Preview(b), Report
            previewed b       -       held b        False Held               Notify(Held), Report
            approve b         b       -             True RevisionActive      Notify(Approved), Commit(b), Report, Swap(b), Notify(RevisionActive), Report
        "#]],
    );
}

#[test]
fn a_decision_that_cannot_be_written_is_retried_before_anything_else() {
    let committed = |name: &str, result| Event::Committed { digest: digest(name), result };
    check_active(
        guarded(1),
        [
            committed("a", Err(rejection("Forbidden", RetryPolicy::Later))),
            guarded(2),
            source("b"),
            Event::Retry,
            committed("a", Err(rejection("Forbidden", RetryPolicy::Later))),
            Event::Retry,
            committed("a", Ok(())),
        ],
        &expect![[r#"
            event            active  candidate  Ready                effects
            not committed a  a       -          True RevisionActive
            spec 2           a       -          True RevisionActive  ApplySettings, Report
            source b         a       loading b  False Loading        Load(b), Report
            retry            a       loading b  False Loading
            not committed a  a       loading b  False Loading
            retry            a       loading b  False Loading
            committed a      a       loading b  False Loading
        "#]],
    );
}

#[test]
fn active_revision_that_a_user_rejected_is_active_again_after_a_restart() {
    check(
        [status_loaded("a", &["a"]), guarded(1), source("a"), loaded("a", false), source("b")],
        &expect![[r#"
            event          active  candidate  Ready                effects
            status loaded  -       -          False Waiting
            spec 1         -       -          False Waiting        Fetch, Report
            source a       -       loading a  False Loading        Load(a), Report
            loaded a       a       -          True RevisionActive  SaveSnapshot(a), Swap(a), Report
            source b       a       loading b  False Loading        Load(b), Report
        "#]],
    );
}

#[test]
fn approval_counts_once_and_lifts_no_later_rejection_also_after_a_restart() {
    check_active(
        guarded(1),
        [
            approve("b"),
            source("b"),
            loaded("b", false),
            source("a"),
            loaded("a", false),
            previewed("a", &[]),
            source("b"),
            loaded("b", false),
            previewed("b", &[]),
            too_many_failures("b"),
            Event::Approval { approve: Some(digest("b")), reject: Some(digest("c")) },
        ],
        &expect![[r#"
            event                            active  candidate     Ready                effects
            approve b                        a       -             True RevisionActive
            source b                         a       loading b     False Loading        Load(b), Report
            loaded b                         b       -             True RevisionActive  Commit(b), Report, Swap(b), Notify(RevisionActive), BeginRollbackWindow(b), Report
            source a                         b       loading a     False Loading        Load(a), Report
            loaded a                         b       previewing a  False Previewing     Preview(a), Report
            previewed a                      a       -             True RevisionActive  Commit(a), Report, EndRollbackWindow, Swap(a), Notify(RevisionActive), BeginRollbackWindow(a), Report
            source b                         a       loading b     False Loading        Load(b), Report
            loaded b                         a       previewing b  False Previewing     Preview(b), Report
            previewed b                      b       -             True RevisionActive  Commit(b), Report, EndRollbackWindow, Swap(b), Notify(RevisionActive), BeginRollbackWindow(b), Report
            failures of b                    a       rejected b    False RolledBack     CommitRollback(a), Rollback(a), EndRollbackWindow, Notify(RolledBack), Report
            approve Some(b), reject Some(c)  a       rejected b    False RolledBack     Report
        "#]],
    );
    let Event::StatusLoaded { revision, history, rejected, .. } = status_loaded("a", &["b"]) else {
        panic!("it is a status")
    };
    let used_approval = Some(digest("b"));
    check(
        [
            Event::StatusLoaded {
                revision,
                is_lost: false,
                history,
                rejected,
                used_approval,
                used_rejection: None,
            },
            guarded(1),
            approve("b"),
            source("b"),
            restored("a", Ok(())),
            loaded("a", false),
        ],
        &expect![[r#"
            event          active  candidate    Ready                    effects
            status loaded  -       -            False Waiting
            spec 1         -       -            False Waiting            Fetch, Report
            approve b      -       -            False Waiting
            source b       -       restoring a  False RestoringSnapshot  RestoreSnapshot(a), Report
            restored a     -       loading a    False Loading            Load(a), Report
            loaded a       a       rejected b   False Known              Swap(a), Report
        "#]],
    );
}

#[test]
fn candidate_after_a_lost_revision_is_previewed_also_by_the_next_host() {
    let lost = Event::StatusLoaded {
        revision: None,
        is_lost: true,
        history: Vec::new(),
        rejected: Vec::new(),
        used_approval: None,
        used_rejection: None,
    };
    check(
        [lost, guarded(1), source("b"), loaded("b", false)],
        &expect![[r#"
            event          active  candidate     Ready             effects
            status loaded  -       -             False Waiting
            spec 1         -       -             False Waiting     Fetch, Report
            source b       -       loading b     False Loading     Load(b), Report
            loaded b       -       previewing b  False Previewing  Preview(b), Report
        "#]],
    );
}

/// A preview of a policy of the mode Enforce that newly denies so many objects.
fn denies(name: &str, count: u32) -> Event {
    let mut policy = PolicyPreview { enforces: true, ..PolicyPreview::default() };
    for _ in 0..count {
        policy.add(ReviewChange::Deny, "Pod web/a".to_owned(), Vec::new());
    }
    let preview = Preview { policy: Some(policy), ..Preview::default() };
    Event::Previewed { digest: digest(name), result: Ok(preview) }
}

#[test]
fn first_policy_that_may_deny_is_previewed_and_held_if_it_denies_what_exists() {
    check(
        [
            guarded(1),
            source("a"),
            loaded_enforcing("a"),
            denies("a", 1),
            approve("a"),
            source("b"),
            loaded_enforcing("b"),
            denies("b", 0),
        ],
        &expect![[r#"
            event        active  candidate     Ready                effects
            spec 1       -       -             False Waiting        Fetch, Report
            source a     -       loading a     False Loading        Load(a), Report
            loaded a     -       previewing a  False Previewing     Preview(a), Report
            previewed a  -       held a        False Held           Notify(Held), Report
            approve a    a       -             True RevisionActive  Notify(Approved), Commit(a), Report, Swap(a), Notify(RevisionActive), Report
            source b     a       loading b     False Loading        Load(b), Report
            loaded b     a       previewing b  False Previewing     Preview(b), Report
            previewed b  b       -             True RevisionActive  Commit(b), Report, Swap(b), Notify(RevisionActive), BeginRollbackWindow(b), Report
        "#]],
    );
}

#[test]
fn first_policy_without_the_mode_enforce_is_active_without_a_preview() {
    check(
        [guarded(1), source("a"), loaded("a", false)],
        &expect![[r#"
            event     active  candidate  Ready                effects
            spec 1    -       -          False Waiting        Fetch, Report
            source a  -       loading a  False Loading        Load(a), Report
            loaded a  a       -          True RevisionActive  Commit(a), Report, Swap(a), Notify(RevisionActive), Report
        "#]],
    );
}
