use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn queue(running: usize, running_per_module: usize) -> Queue {
    let running_per_tenant = running_per_module;
    Queue::new(Bounds { running, running_per_module, running_per_tenant }, Backoff::default())
}

fn request(module: &str, name: &str) -> ReconcileRequest {
    ReconcileRequest { module: module.into(), key: ObjectKey::new("n", name) }
}

fn wake(queue: &mut Queue, request: &ReconcileRequest) {
    queue.wake(request, &Trigger::ReadChanged);
}

/// Takes keys until there are none, each done at once.
fn drain(queue: &mut Queue, now: Duration) -> Vec<String> {
    std::iter::from_fn(|| {
        let (request, _) = queue.next(now)?;
        queue.done(&request, ReconcileResult::Ok(None), now, 0.5);
        Some(format!("{}/{}", request.module, request.key.name()))
    })
    .collect()
}

#[test]
fn a_key_waits_once() {
    let mut queue = queue(4, 4);
    for _ in 0..3 {
        wake(&mut queue, &request("m", "a"));
    }
    assert_eq!(drain(&mut queue, SECOND), ["m/a"]);
}

#[test]
fn one_worker_a_key_and_a_wake_during_the_work_runs_it_again() {
    let mut queue = queue(4, 4);
    wake(&mut queue, &request("m", "a"));
    let (first, _) = queue.next(SECOND).unwrap();
    wake(&mut queue, &request("m", "a"));
    wake(&mut queue, &request("m", "a"));
    assert_eq!(queue.next(SECOND), None);
    queue.done(&first, ReconcileResult::Ok(None), SECOND, 0.5);
    assert_eq!(drain(&mut queue, SECOND), ["m/a"]);
}

#[test]
fn request_is_pending_from_its_wake_until_its_run_has_succeeded() {
    let mut queue = queue(4, 4);
    let (request, other) = (request("m", "a"), request("m", "b"));
    assert!(!queue.is_pending(&request));
    wake(&mut queue, &request);
    assert!(queue.is_pending(&request) && !queue.is_pending(&other));
    let (running, _) = queue.next(SECOND).unwrap();
    assert!(queue.is_pending(&request), "it runs");
    queue.done(&running, ReconcileResult::Failed, SECOND, 0.5);
    assert!(queue.is_pending(&request), "it waits for its next try");
    wake(&mut queue, &request);
    let (running, _) = queue.next(SECOND).unwrap();
    wake(&mut queue, &request);
    queue.done(&running, ReconcileResult::Ok(Some(SECOND)), SECOND, 0.5);
    assert!(queue.is_pending(&request), "it was woken while it ran");
    let (running, _) = queue.next(SECOND).unwrap();
    queue.done(&running, ReconcileResult::Ok(Some(SECOND)), SECOND, 0.5);
    assert!(!queue.is_pending(&request), "its next time has not come");
}

#[test]
fn modules_take_turns() {
    let mut queue = queue(1, 1);
    for name in ["a", "b", "c", "d"] {
        wake(&mut queue, &request("busy", name));
    }
    wake(&mut queue, &request("calm", "x"));
    wake(&mut queue, &request("quiet", "y"));
    assert_eq!(
        drain(&mut queue, SECOND),
        ["busy/a", "calm/x", "quiet/y", "busy/b", "busy/c", "busy/d"]
    );
}

#[test]
fn a_module_cannot_take_all_workers() {
    let mut queue = queue(4, 2);
    for name in ["a", "b", "c"] {
        wake(&mut queue, &request("busy", name));
    }
    assert!(queue.next(SECOND).is_some());
    assert!(queue.next(SECOND).is_some());
    assert_eq!(queue.next(SECOND), None);
    wake(&mut queue, &request("calm", "x"));
    assert_eq!(queue.next(SECOND).unwrap().0, request("calm", "x"));
}

#[test]
fn failures_wait_longer_each_time_until_a_success() {
    let mut queue = queue(1, 1);
    let a = request("m", "a");
    wake(&mut queue, &a);
    let mut now = Duration::ZERO;
    let mut delays = Vec::new();
    for _ in 0..10 {
        let (request, _) = queue.next(now).expect("it is due");
        // Jitter 0.5 is the middle of its range, which adds nothing.
        queue.done(&request, ReconcileResult::Failed, now, 0.5);
        let due = queue.next_due(now).unwrap();
        assert_eq!(queue.next(due.saturating_sub(Duration::from_millis(1))), None);
        delays.push(due.saturating_sub(now).as_secs());
        now = due;
    }
    assert_eq!(delays, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300]);
    let (again, _) = queue.next(now).unwrap();
    queue.done(&again, ReconcileResult::Ok(None), now, 0.5);
    wake(&mut queue, &a);
    let (again, _) = queue.next(now).unwrap();
    queue.done(&again, ReconcileResult::Failed, now, 0.5);
    assert_eq!(queue.next_due(now), Some(now + SECOND));
}

#[test]
fn a_module_that_has_written_too_much_waits_and_the_others_do_not() {
    let mut queue = queue(4, 4);
    let noisy: std::sync::Arc<str> = "noisy".into();
    queue.set_rate(&noisy, NonZeroU32::new(1).unwrap());
    let now = Duration::from_mins(1);
    for _ in 0..25 {
        queue.wrote(&request("noisy", "a"), now);
    }
    wake(&mut queue, &request("noisy", "a"));
    wake(&mut queue, &request("calm", "x"));
    assert_eq!(drain(&mut queue, now), ["calm/x"]);
    assert_eq!(queue.next_due(now), Some(now + SECOND * 5));
    assert!(!queue.is_quiet(now), "a change is not worked on for longer, not forgotten");
    assert_eq!(drain(&mut queue, now + SECOND * 5), ["noisy/a"]);
}

#[test]
fn a_change_does_not_wait_for_the_backoff() {
    let mut queue = queue(1, 1);
    wake(&mut queue, &request("m", "a"));
    let (first, _) = queue.next(SECOND).unwrap();
    queue.done(&first, ReconcileResult::Failed, SECOND, 0.5);
    assert_eq!(queue.next(SECOND), None);
    wake(&mut queue, &request("m", "a"));
    assert_eq!(queue.next(SECOND).unwrap().0, request("m", "a"));
    assert_eq!(queue.next_due(SECOND), None);
}

#[test]
fn a_key_without_backoff_waits_for_a_change() {
    let mut queue = queue(1, 1);
    wake(&mut queue, &request("m", "a"));
    let (first, _) = queue.next(SECOND).unwrap();
    queue.done(&first, ReconcileResult::AwaitChange(None), SECOND, 0.5);
    assert_eq!((queue.next(SECOND * 10_000), queue.next_due(SECOND)), (None, None));
    wake(&mut queue, &request("m", "a"));
    assert!(queue.next(SECOND).is_some());
}

#[test]
fn the_earlier_of_two_times_counts() {
    let mut queue = queue(1, 1);
    queue.wake_at(&request("m", "a"), SECOND * 9);
    queue.wake_at(&request("m", "a"), SECOND * 3);
    queue.wake_at(&request("m", "a"), SECOND * 6);
    assert_eq!(queue.next_due(SECOND), Some(SECOND * 3));
    assert_eq!(drain(&mut queue, SECOND * 3), ["m/a"]);
    assert!(queue.is_quiet(SECOND * 100));
}

#[test]
fn a_closed_queue_gives_out_nothing_and_lets_work_finish() {
    let mut queue = queue(2, 2);
    wake(&mut queue, &request("m", "a"));
    wake(&mut queue, &request("m", "b"));
    let (first, _) = queue.next(SECOND).unwrap();
    queue.close();
    assert_eq!(queue.next(SECOND), None);
    assert_eq!(queue.running(), 1);
    queue.done(&first, ReconcileResult::Ok(None), SECOND, 0.5);
    assert_eq!(queue.running(), 0);
}

#[test]
fn a_forgotten_module_leaves_nothing_behind() {
    let mut queue = queue(2, 2);
    wake(&mut queue, &request("m", "a"));
    wake(&mut queue, &request("m", "b"));
    queue.wake_at(&request("m", "c"), SECOND);
    let (first, _) = queue.next(Duration::ZERO).unwrap();
    queue.forget_module("m");
    queue.done(&first, ReconcileResult::Failed, Duration::ZERO, 0.5);
    queue.forget_module("m");
    assert_eq!(queue.next(SECOND * 100), None);
    assert_eq!(queue.next_due(SECOND), None);
}

#[test]
fn a_taken_key_lists_its_triggers_since_the_last_run() {
    let mut queue = queue(1, 1);
    let a = request("m", "a");
    let next = |queue: &mut Queue, now| queue.next(now).unwrap().1.to_string();
    queue.wake(&a, &Trigger::RevisionActive);
    queue.wake(&a, &Trigger::ReadChanged);
    assert_eq!(next(&mut queue, SECOND), "revision activated, and 1 more");
    // A wake during the work is why it is worked on once more.
    queue.wake(&a, &Trigger::ReadChanged);
    queue.done(&a, ReconcileResult::Ok(None), SECOND, 0.5);
    assert_eq!(next(&mut queue, SECOND), "an input changed during the run");
    queue.done(&a, ReconcileResult::Ok(Some(SECOND)), SECOND, 0.5);
    assert_eq!(next(&mut queue, SECOND * 2), "requeue time reached");
    assert!(!queue.waits_for_retry());
    queue.done(&a, ReconcileResult::Failed, SECOND * 2, 0.5);
    assert!(queue.waits_for_retry());
    assert_eq!(next(&mut queue, SECOND * 3), "retry after a failure");
    assert!(!queue.waits_for_retry(), "it runs");
}

#[test]
fn a_change_moves_a_routine_key_ahead_of_other_routine_keys() {
    let mut queue = queue(1, 1);
    for name in ["a", "b", "c"] {
        queue.wake(&request("m", name), &Trigger::RevisionActive);
    }
    wake(&mut queue, &request("m", "c"));
    assert_eq!(drain(&mut queue, SECOND), ["m/c", "m/a", "m/b"]);
    assert!(queue.is_quiet(SECOND) && queue.modules["m"].entries.is_empty());
}

#[test]
fn a_routine_wake_leaves_a_changed_key_where_it_is() {
    let mut queue = queue(1, 1);
    for name in ["a", "b"] {
        wake(&mut queue, &request("m", name));
        queue.wake(&request("m", name), &Trigger::RevisionActive);
    }
    assert_eq!(drain(&mut queue, SECOND), ["m/a", "m/b"]);
}
