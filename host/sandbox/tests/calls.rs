//! Calls of well-behaved guests: their input, their output, and the state after a call.

#![allow(clippy::unwrap_used, reason = "helpers of tests panic like tests")]

mod guests;

use guests::{
    CLOCK, Cluster, Load, MANIFEST, NOTHING, SCRATCH, Tiny, engine, get, list, read_as_outcome,
    reader,
};
use innkeeper_contract::{Desired, Failure};
use innkeeper_sandbox::{Guest, Interruption, Limits, Outcome, ReadError};

fn reconcile(guest: &Guest) -> Outcome {
    guest.reconcile("{}", &mut Cluster::default()).unwrap().outcome
}

#[test]
fn manifest_is_the_answer_of_describe() {
    let bytes = Tiny::default().component();
    let guest = engine(Interruption::Epoch).load(&bytes, &Limits::default()).unwrap();
    assert_eq!(guest.manifest().name, "tiny");
    let primary = guest.manifest().primary.as_ref().unwrap();
    assert_eq!(primary.resource(), "tinies.example.com");
    assert!(guest.has_reconciler() && !guest.has_policy());
    assert_eq!(guest.size_bytes(), bytes.len());
    assert_eq!(guest.digest().len(), 64);
    assert_eq!(guest.limits(), &Limits::default());
}

#[test]
fn every_outcome_reaches_the_caller() {
    let desired = r#"{"requeueAfterSeconds":7}"#;
    let expected = Desired { requeue_after_seconds: Some(7), ..Desired::default() };
    let complete = Tiny::default().outcome(0, desired).load().unwrap();
    assert_eq!(reconcile(&complete), Outcome::Complete(expected.clone()));
    let partial = Tiny::default().outcome(1, desired).load().unwrap();
    assert_eq!(reconcile(&partial), Outcome::Partial(expected));
    let failed =
        Tiny::default().outcome(2, r#"{"reason":"No","message":"no image"}"#).load().unwrap();
    assert_eq!(
        reconcile(&failed),
        Outcome::Failed(Failure {
            reason: "No".into(),
            message: "no image".into(),
            ..Failure::default()
        })
    );
}

#[test]
fn guest_gets_the_observed_document() {
    // Answers with its own input.
    let guest = Tiny::default()
        .answers(&format!(
            "(i32.store (i32.const {0}) (i32.const 0))
             (i32.store (i32.const {1}) (local.get $observed))
             (i32.store (i32.const {2}) (local.get $length))
             (i32.const {0})",
            SCRATCH,
            SCRATCH + 4,
            SCRATCH + 8
        ))
        .load()
        .unwrap();
    let run = guest.reconcile(r#"{"finalized":true}"#, &mut Cluster::default()).unwrap();
    assert_eq!(run.outcome, Outcome::Complete(Desired { finalized: true, ..Desired::default() }));
    assert_eq!(run.figures.output_bytes, 18);
}

#[test]
fn reads_reach_the_host_and_answers_reach_the_guest() {
    let answer = r#"{"requeueAfterSeconds":3}"#;
    for (read, asked) in [(get(), "get v1 ConfigMap ns/cm"), (list(), "list v1 ConfigMap ns?cm")] {
        let guest = reader().on_reconcile(&read).answers(&(read + &read_as_outcome())).load();
        let mut cluster = Cluster::answering(Ok(answer));
        let run = guest.unwrap().reconcile("{}", &mut cluster).unwrap();
        assert_eq!(cluster.asked, [asked]);
        let Outcome::Complete(desired) = run.outcome else { panic!("{:?}", run.outcome) };
        assert_eq!(desired.requeue_after_seconds, Some(3));
    }
}

/// Traps unless the read's error has this discriminant.
fn expects_error(discriminant: u8) -> Tiny {
    reader().on_reconcile(&format!(
        "{} (if (i32.ne {} (i32.const {discriminant})) (then unreachable))",
        get(),
        guests::read_error()
    ))
}

#[test]
fn every_read_error_reaches_the_guest() {
    for (discriminant, error) in [
        (0, ReadError::NotFound),
        (1, ReadError::NotServed),
        (2, ReadError::Forbidden("get configmaps in ns".into())),
        (3, ReadError::Undeclared),
        (4, ReadError::Invalid("name".into())),
    ] {
        let mut cluster = Cluster::answering(Err(error));
        expects_error(discriminant).load().unwrap().reconcile("{}", &mut cluster).unwrap();
        assert_eq!(cluster.asked.len(), 1);
    }
}

#[test]
fn read_of_an_undeclared_kind_never_reaches_the_host() {
    let manifest = r#"{"name":"tiny","primary":{"apiVersion":"example.com/v1","kind":"Tiny","plural":"tinies"}}"#;
    let mut cluster = Cluster::answering(Ok(NOTHING));
    let guest = expects_error(3).manifest(manifest).load().unwrap();
    guest.reconcile("{}", &mut cluster).unwrap();
    assert_eq!(cluster.asked, [""; 0]);
}

#[test]
fn read_with_a_too_long_argument_never_reaches_the_host() {
    // No name is longer than 317 bytes, no selector than 4096.
    for (read, function, bytes) in [("name", get(), 318), ("selector", list(), 4_097)] {
        let long = function.replace(
            &format!("(i32.const {}) (i32.const 2) (i32.const 1056)", SCRATCH + 13),
            &format!("(i32.const {}) (i32.const {bytes}) (i32.const 1056)", SCRATCH + 13),
        );
        assert_ne!(long, function, "{read}");
        let tiny = reader().on_reconcile(&format!(
            "{long} (if (i32.ne {} (i32.const 4)) (then unreachable))",
            guests::read_error()
        ));
        let mut cluster = Cluster::answering(Ok(NOTHING));
        tiny.load().unwrap().reconcile("{}", &mut cluster).unwrap();
        assert_eq!(cluster.asked, [""; 0], "{read}");
    }
}

#[test]
fn read_in_describe_is_undeclared() {
    // The manifest declares the kinds, so there are none during `describe`.
    let tiny = reader().on_describe(&format!(
        "{} (if (i32.ne {} (i32.const 3)) (then unreachable))",
        get(),
        guests::read_error()
    ));
    tiny.load().unwrap();
}

#[test]
fn time_is_constant_in_one_call_and_its_read_is_recorded() {
    let tiny = Tiny::default().importing(CLOCK).on_reconcile(
        "(if (f64.ne (call $now) (f64.const 1700000000123)) (then unreachable))
         (if (f64.ne (call $now) (f64.const 1700000000123)) (then unreachable))",
    );
    let mut cluster = Cluster { now_ms: 1_700_000_000_123, ..Cluster::default() };
    let run = tiny.load().unwrap().reconcile("{}", &mut cluster).unwrap();
    assert!(run.figures.clock_read);
    assert_eq!(cluster.asked, ["now"]);
    let run = Tiny::default().run_with(&Limits::default()).unwrap();
    assert!(!run.figures.clock_read);
}

#[test]
fn no_state_reaches_the_next_call() {
    // Traps if a global, a table, low memory or grown memory shows an earlier call.
    let guest = Tiny::default()
        .with("(global $calls (mut i32) (i32.const 0)) (table $t 1 10 funcref)")
        .on_reconcile(&format!(
            "(if (global.get $calls) (then unreachable))
             (if (i32.load (i32.const {SCRATCH})) (then unreachable))
             (if (i32.ne (table.size $t) (i32.const 1)) (then unreachable))
             (if (i32.ne (memory.grow (i32.const 16)) (i32.const 4)) (then unreachable))
             (if (i32.load (i32.const 1000000)) (then unreachable))
             (global.set $calls (i32.const 1))
             (i32.store (i32.const {SCRATCH}) (i32.const 1))
             (i32.store (i32.const 1000000) (i32.const 1))
             (drop (table.grow $t (ref.null func) (i32.const 1)))"
        ))
        .load()
        .unwrap();
    for _ in 0..20 {
        reconcile(&guest);
    }
}

#[test]
fn no_state_reaches_the_next_call_after_a_trap() {
    // For a non-empty document the guest writes to its memory and traps.
    let guest = Tiny::default()
        .on_reconcile(&format!(
            "(if (i32.load (i32.const {SCRATCH})) (then (loop $l (br $l))))
             (i32.store (i32.const {SCRATCH}) (i32.const 1))
             (if (i32.gt_u (local.get $length) (i32.const 2)) (then unreachable))"
        ))
        .load()
        .unwrap();
    for _ in 0..5 {
        guest.reconcile("{ }", &mut Cluster::default()).unwrap_err();
        reconcile(&guest);
    }
}

#[test]
fn fuel_of_a_call_is_the_same_on_every_engine() {
    let bytes = Tiny::default()
        .on_reconcile(
            "(loop $l (br_if $l (i32.lt_u
                 (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 100000))))",
        )
        .component();
    let figures: Vec<_> = (0..3)
        .map(|_| {
            let guest = engine(Interruption::Fuel).load(&bytes, &Limits::default()).unwrap();
            guest.reconcile("{}", &mut Cluster::default()).unwrap().figures
        })
        .collect();
    assert!(figures[0].fuel.is_some_and(|fuel| fuel > 100_000), "{figures:?}");
    assert!(figures[0].time > std::time::Duration::from_micros(100), "{figures:?}");
    assert_eq!(figures[0], figures[1]);
    assert_eq!(figures[0], figures[2]);
}

#[test]
fn calls_of_one_guest_run_concurrently() {
    let guest = Tiny::default().load().unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..50 {
                    reconcile(&guest);
                }
            });
        }
    });
}

#[test]
fn guest_of_a_dropped_engine_is_still_interrupted() {
    let engine = engine(Interruption::Epoch);
    let limits = Limits { time: std::time::Duration::from_millis(30), ..Limits::default() };
    let bytes = Tiny::default().on_reconcile("(loop $l (br $l))").component();
    let guest = engine.load(&bytes, &limits).unwrap();
    drop(engine);
    guest.reconcile("{}", &mut Cluster::default()).unwrap_err();
}

#[test]
fn guests_beyond_the_warm_pool_run() {
    let engine = engine(Interruption::Epoch);
    // Guests of one component share a place in the pool.
    let component =
        |name: &str| Tiny::default().manifest(&MANIFEST.replace("tiny", name)).component();
    let guests: Vec<_> = ('a'..='l')
        .map(|name| engine.load(&component(&name.to_string()), &Limits::default()).unwrap())
        .collect();
    for guest in &guests {
        reconcile(guest);
    }
}
