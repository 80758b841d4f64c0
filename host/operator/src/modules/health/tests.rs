//! Which changes of the health are reported, and when.

use innkeeper_contract::Kind;
use innkeeper_core::ObjectRef;
use innkeeper_core::plan::SkipReason;
use innkeeper_modules::machine::reason;

use super::*;
use crate::modules::granted_secrets::GrantedSecrets;
use crate::reconcile::refusal::ForbiddenWrite;
use crate::reconcile::skipped;

fn window(failures_max: u32) -> RollbackWindow {
    RollbackWindow { digest: Digest::of(b"m"), failures_max, many_namespaces: false }
}

fn request(name: &str) -> ReconcileRequest {
    ReconcileRequest { module: "m".into(), key: ObjectKey::new("n", name) }
}

fn failing(reason: &str, message: &str) -> Failing {
    Failing { reason: reason.into(), message: message.into(), forbidden: None }
}

fn fails(reason: &str, message: &str) -> RunOutcome {
    failing(reason, message).into()
}

/// The changes since the last call, long after it.
fn changes(health: &Health) -> Vec<(Arc<str>, HealthChange)> {
    let now = {
        let modules = health.modules.lock().unwrap();
        modules.values().map(|one| one.budget.paid_until()).max().unwrap_or_default()
    };
    health.take_changes(now).0
}

fn succeeds() -> HealthChange {
    HealthChange::Runs(RunHealth::Succeed(RefusedWrites::default()))
}

#[test]
fn health_changes_when_the_first_primary_fails_and_when_the_last_recovers() {
    let health = Health::default();
    health.record(&request("a"), RunOutcome::default());
    assert_eq!(changes(&health), [("m".into(), succeeds())]);
    health.record(&request("a"), fails("Trap", "a"));
    let fail = RunHealth::Fail {
        failing: failing("Trap", "a"),
        primaries: Count::default(),
        refused: RefusedWrites::default(),
    };
    assert_eq!(changes(&health), [("m".into(), HealthChange::Runs(fail))]);
    health.record(&request("b"), fails("Trap", "b"));
    health.record(&request("a"), RunOutcome::default());
    assert_eq!(changes(&health), []);
    health.record(&request("b"), RunOutcome::default());
    assert_eq!(changes(&health), [("m".into(), succeeds())]);
}

#[test]
fn health_that_flaps_is_reported_every_15_seconds_and_at_last_as_it_is() {
    let health = Health::default();
    let (mut reported, mut due) = (Vec::new(), None);
    for second in 0..60 {
        let outcome = if second % 2 == 0 { RunOutcome::default() } else { fails("Trap", "t") };
        health.record(&request("a"), outcome);
        // The supervisor is woken by a change, or when one is due.
        let now = Duration::from_secs(second);
        if due.is_none_or(|due| due <= now) {
            let (changes, next) = health.take_changes(now);
            due = next;
            reported.extend(changes.into_iter().map(|(_, change)| (second, change)));
        }
    }
    let seconds: Vec<u64> = reported.iter().map(|(second, _)| *second).collect();
    assert_eq!(seconds[..6], [0, 1, 2, 3, 4, 5]);
    assert!(seconds.len() <= 10, "{seconds:?}");
    // It ends with a failure, which is reported when it is due.
    let (changes, next) = health.take_changes(Duration::from_mins(2));
    let last = changes.into_iter().chain(reported.pop().map(|(_, one)| ("m".into(), one))).next();
    assert!(matches!(last, Some((_, HealthChange::Runs(RunHealth::Fail { .. })))), "{last:?}");
    assert_eq!(next, None);
}

#[test]
fn change_that_waits_does_not_wake_the_supervisor_with_each_run() {
    let health = Health::default();
    for _ in 0..3 {
        health.record(&request("a"), RunOutcome::default());
        health.take_changes(Duration::ZERO);
        health.record(&request("a"), fails("Trap", "t"));
        health.take_changes(Duration::ZERO);
    }
    health.record(&request("a"), RunOutcome::default());
    assert_eq!(health.take_changes(Duration::ZERO), (Vec::new(), Some(report_budget::PERIOD)));
    let is_notified = || {
        let notified = std::pin::pin!(health.notify.notified());
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        notified.poll(&mut context).is_ready()
    };
    is_notified();
    health.record(&request("b"), fails("Crash", "t"));
    assert!(!is_notified(), "a change waits already");
    // Another revision is reported at once.
    health.reset("m");
    health.record(&request("a"), RunOutcome::default());
    assert!(is_notified());
    assert_eq!(health.take_changes(Duration::ZERO), (vec![("m".into(), succeeds())], None));
}

fn too_many(health: &Health) -> Option<usize> {
    changes(health).into_iter().find_map(|(_, health_change)| match health_change {
        HealthChange::FailureThresholdExceeded { new_failures: fresh, .. } => Some(fresh.len()),
        HealthChange::Runs(_) => None,
    })
}

#[test]
fn in_the_rollback_window_only_new_failures_are_counted() {
    let health = Health::default();
    let trap = || fails("Trap", "t");
    health.record(&request("a"), trap());
    health.reset("m");
    health.begin_rollback_window(&"m".into(), window(1));
    health.record(&request("a"), trap());
    health.record(&request("b"), trap());
    assert_eq!(too_many(&health), None, "one that failed before, and one that may");
    // Other settings in the meantime change nothing about what failed before.
    health.reset("m");
    for name in ["a", "b", "c"] {
        health.record(&request(name), trap());
    }
    assert_eq!(too_many(&health), Some(2));
    health.record(&request("d"), trap());
    assert_eq!(too_many(&health), None, "it is reported once");
    // Two of them fail with the previous revision as well.
    let excluded = || ["b", "c"].map(|name| request(name).key);
    health.continue_rollback_window("m", window(1), excluded());
    assert_eq!(too_many(&health), None);
    health.record(&request("e"), trap());
    assert_eq!(too_many(&health), Some(2));
}

#[test]
fn check_of_an_earlier_revision_does_not_change_the_window_of_another() {
    let health = Health::default();
    let excluded = || [request("a").key];
    let other = RollbackWindow { digest: Digest::of(b"other"), ..window(0) };
    health.begin_rollback_window(&"m".into(), window(0));
    health.record(&request("a"), fails("Trap", "t"));
    assert_eq!(too_many(&health), Some(1));
    // Given a window that ended during the check, the check opens it no more.
    health.end_rollback_window("m");
    health.continue_rollback_window("m", window(0), []);
    assert_eq!(too_many(&health), None);
    // Nor does it exclude failures of the next revision.
    health.begin_rollback_window(&"m".into(), other);
    health.continue_rollback_window("m", window(0), excluded());
    assert_eq!(too_many(&health), Some(1));
    health.continue_rollback_window("m", other, excluded());
    assert_eq!(too_many(&health), None);
}

#[test]
fn settings_that_change_during_a_check_keep_what_failed_before_the_swap() {
    let health = Health::default();
    health.begin_rollback_window(&"m".into(), window(0));
    health.record(&request("a"), fails("Trap", "t"));
    assert_eq!(too_many(&health), Some(1));
    health.reset("m");
    health.continue_rollback_window("m", window(0), []);
    health.record(&request("a"), fails("Trap", "t"));
    assert_eq!(too_many(&health), Some(1));
}

#[test]
fn without_a_rollback_window_no_failure_threshold_applies() {
    let health = Health::default();
    health.record(&request("a"), RunOutcome::default());
    health.reset("m");
    health.begin_rollback_window(&"m".into(), window(0));
    health.end_rollback_window("m");
    health.record(&request("a"), fails("Trap", "t"));
    assert_eq!(too_many(&health), None);
}

/// The condition of the Module after the changes since the last call, if it changes.
fn condition(health: &Health) -> Option<Result<Option<String>, RunFailure>> {
    changes(health).into_iter().find_map(|(_, change)| match change {
        HealthChange::Runs(runs) => Some(runs.report()),
        HealthChange::FailureThresholdExceeded { .. } => None,
    })
}

#[test]
fn refused_write_is_named_and_leaves_the_module_healthy() {
    let health = Health::default();
    health.begin_rollback_window(&"m".into(), window(0));
    let refused = || RunOutcome { refused: Some(Refusal::of_reason("Invalid")), failing: None };
    health.record(&request("a"), RunOutcome::default());
    assert_eq!(condition(&health), Some(Ok(None)));
    health.record(&request("a"), refused());
    let note = condition(&health).unwrap().unwrap().unwrap();
    assert!(note.starts_with("Writes for 1 primary are refused: n/a (Invalid)"), "{note}");
    // It causes no rollback, and a repetition is no news.
    health.record(&request("a"), refused());
    assert_eq!(changes(&health), []);
    health.record(&request("a"), RunOutcome::default());
    assert_eq!(condition(&health), Some(Ok(None)));
}

#[test]
fn module_that_lacks_a_right_fails_with_the_number_of_primaries_and_in_the_rollback_window() {
    let health = Health::default();
    health.begin_rollback_window(&"m".into(), window(0));
    let write = Arc::new(ForbiddenWrite {
        kind: Arc::new(Kind::namespaced("v1", "ConfigMap", "configmaps")),
        namespace: "n".into(),
        verb: "create".into(),
    });
    let lacks = |message: &str| -> RunOutcome {
        Failing {
            reason: reason::FORBIDDEN.to_owned(),
            message: message.to_owned(),
            forbidden: Some(write.clone()),
        }
        .into()
    };
    health.record(&request("a"), lacks("x may not create configmaps"));
    health.record(&request("b"), lacks("x may not create configmaps elsewhere"));
    // A guest may choose the same reason.
    health.record(&request("0"), fails("Forbidden", "the guest says so"));
    let changes = changes(&health);
    let [(_, HealthChange::Runs(runs)), (_, exceeded)] = &changes[..] else {
        panic!("{changes:?}")
    };
    let expected = "The API server refuses writes for 2 primaries: x may not create configmaps.";
    let RunFailure { rejection, lacks_right } = runs.report().unwrap_err();
    assert_eq!((&*rejection.reason, &*rejection.message), ("Forbidden", expected));
    assert!(lacks_right);
    assert!(matches!(exceeded, HealthChange::FailureThresholdExceeded { .. }), "{exceeded:?}");
}

#[test]
fn reserved_object_is_a_failure_of_the_module() {
    let now = jiff::Timestamp::UNIX_EPOCH;
    let problem = |name: &str, reason: &SkipReason| {
        let kind = Arc::new(Kind::namespaced("v1", "ConfigMap", "configmaps"));
        let object_ref = ObjectRef::new(kind, ObjectKey::new("innkeeper-system", name));
        skipped::problem(&object_ref, reason, now).unwrap()
    };
    let problems =
        [problem("other", &SkipReason::MergeTargetMissing), problem("pin", &SkipReason::Reserved)];
    let outcome = RunOutcome::of(None, &problems, None);
    assert_eq!(outcome.refused, Some(Refusal::of_reason("MergeTargetMissing")));
    assert_eq!(RunOutcome::of(None, &problems[1..], None).refused, None);
    let nothing = GrantedSecrets::nothing();
    assert_eq!(Failing::of_guest(&problems[0], &nothing), None);
    let failing = Failing::of_guest(&problems[1], &nothing).unwrap();
    let Failing { reason, message, forbidden } = failing.clone();
    assert_eq!((&*reason, &forbidden), ("ReservedObject", &None));
    let expected = "ConfigMap innkeeper-system/pin: it belongs to Innkeeper itself: ";
    assert!(message.starts_with(expected), "{message}");

    // It makes the module unhealthy, and counts in the rollback window.
    let health = Health::default();
    health.begin_rollback_window(&"m".into(), window(0));
    health.record(&request("a"), RunOutcome::of(Some(failing), &problems[1..], None));
    let changes = changes(&health);
    let [(_, HealthChange::Runs(runs)), (_, exceeded)] = &changes[..] else {
        panic!("{changes:?}")
    };
    assert_eq!(runs.report().unwrap_err().rejection.reason, "ReservedObject");
    assert!(matches!(exceeded, HealthChange::FailureThresholdExceeded { .. }), "{exceeded:?}");

    // The name of an object shows no granted value.
    let secret = "pin-of-eight-digits";
    let granted = GrantedSecrets::of_value(secret.as_bytes());
    let failing = Failing::of_guest(&problem(secret, &SkipReason::Reserved), &granted).unwrap();
    assert!(!failing.message.contains(secret), "{failing:?}");
}
