//! Guests that misbehave in a call: what the host answers, and that it goes on.

#![allow(clippy::unwrap_used, reason = "helpers of tests panic like tests")]

mod guests;

use std::time::Duration;

use expect_test::expect;
use guests::{CLOCK, Cluster, LOG, Load, Tiny, engine, get, list, reader};
use innkeeper_sandbox::{
    CallError, Interruption, Level, Limits, LoadError, OUTPUT_BYTES_DEFAULT, ReadError,
};

const SHORT: Duration = Duration::from_millis(50);

fn short() -> Limits {
    Limits { time: SHORT, ..Limits::default() }
}

#[test]
fn endless_loop_times_out() {
    let error = Tiny::default().on_reconcile("(loop $l (br $l))").run_with(&short()).unwrap_err();
    assert_eq!(error, CallError::Timeout { limit: SHORT });
    expect!["the guest ran longer than 50ms and was stopped"].assert_eq(&error.to_string());
}

#[test]
fn endless_loop_times_out_by_fuel() {
    let tiny = Tiny::default().on_reconcile("(loop $l (br $l))");
    let guest = engine(Interruption::Fuel).load(&tiny.component(), &short()).unwrap();
    let error = guest.reconcile("{}", &mut Cluster::default()).unwrap_err();
    assert_eq!(error, CallError::Timeout { limit: SHORT });
}

#[test]
fn endless_loop_in_describe_times_out_the_load() {
    let error = Tiny::default().on_describe("(loop $l (br $l))").load_with(&short()).unwrap_err();
    assert_eq!(error, LoadError::Describe(CallError::Timeout { limit: SHORT }));
    expect!["describe failed: the guest ran longer than 50ms and was stopped"]
        .assert_eq(&error.to_string());
}

#[test]
fn endless_loop_in_the_start_function_times_out_the_load() {
    let error = Tiny::default()
        .with("(func $spin (loop $l (br $l))) (start $spin)")
        .load_with(&short())
        .unwrap_err();
    assert_eq!(error, LoadError::Describe(CallError::Timeout { limit: SHORT }));
}

#[test]
fn endless_loop_of_host_calls_times_out() {
    let error = Tiny::default()
        .importing(CLOCK)
        .on_reconcile("(loop $l (drop (call $now)) (br $l))")
        .run_with(&short())
        .unwrap_err();
    assert_eq!(error, CallError::Timeout { limit: SHORT });
}

#[test]
fn endless_memory_growth_is_out_of_memory() {
    let limits = Limits { memory_bytes: 8 << 20, ..Limits::default() };
    let error = Tiny::default()
        .on_reconcile(
            "(loop $l (br_if $l (i32.ne (memory.grow (i32.const 1)) (i32.const -1)))) unreachable",
        )
        .run_with(&limits)
        .unwrap_err();
    assert_eq!(error, CallError::OutOfMemory { limit: 8 << 20 });
    expect!["the guest wanted more than 8388608 bytes of memory"].assert_eq(&error.to_string());
}

#[test]
fn guest_that_handles_refused_memory_goes_on() {
    let limits = Limits { memory_bytes: 1 << 20, ..Limits::default() };
    let run = Tiny::default()
        .on_reconcile("(drop (memory.grow (i32.const 1000)))")
        .run_with(&limits)
        .unwrap();
    assert_eq!(run.figures.memory_peak_bytes, 4 * 65536);
}

#[test]
fn guest_with_a_first_memory_beyond_the_limit_is_out_of_memory() {
    let error = Tiny::default()
        .load_with(&Limits { memory_bytes: 65536, ..Limits::default() })
        .unwrap_err();
    assert_eq!(error, LoadError::Describe(CallError::OutOfMemory { limit: 65536 }));
}

#[test]
fn input_larger_than_the_memory_is_out_of_memory() {
    let limits = Limits { memory_bytes: 1 << 20, ..Limits::default() };
    let guest = Tiny::default().load().unwrap().with_limits(limits);
    let observed = " ".repeat((1 << 20) - 1);
    let error = guest.reconcile(&observed, &mut Cluster::default()).unwrap_err();
    assert_eq!(error, CallError::OutOfMemory { limit: 1 << 20 });
}

#[test]
fn endless_table_growth_is_refused() {
    let limits = Limits { table_elements: 100, ..Limits::default() };
    let error = Tiny::default()
        .with("(table $t 1 funcref)")
        .on_reconcile(
            "(if (i32.eq (table.grow $t (ref.null func) (i32.const 1000)) (i32.const -1))
                 (then unreachable))",
        )
        .run_with(&limits)
        .unwrap_err();
    assert_eq!(error, CallError::TableTooLarge { limit: 100 });
}

#[test]
fn endless_recursion_traps() {
    let error = Tiny::default()
        .with("(func $deeper (call $deeper))")
        .on_reconcile("(call $deeper)")
        .run_with(&Limits::default())
        .unwrap_err();
    expect!["the guest trapped: wasm trap: call stack exhausted"].assert_eq(&error.to_string());
    assert_eq!(error.reason(), "GuestTrapped");
    assert_eq!(error.backtrace().unwrap().frames[0].function, "deeper");
}

#[test]
fn trap_has_a_backtrace() {
    let error = Tiny::default()
        .with("(func $inner unreachable) (func $_ZN5outer17h0123456789abcdefE (call $inner))")
        .on_reconcile("(call $_ZN5outer17h0123456789abcdefE)")
        .run_with(&Limits::default())
        .unwrap_err();
    expect!["the guest trapped: wasm trap: wasm `unreachable` instruction executed"]
        .assert_eq(&error.to_string());
    let functions: Vec<_> =
        error.backtrace().unwrap().frames.iter().map(|frame| frame.function.as_str()).collect();
    assert_eq!(functions, ["inner", "outer", "reconcile"]);
    let text = error.backtrace().unwrap().to_string();
    assert!(text.starts_with("0: inner (0x"), "{text}");
}

#[test]
fn trap_has_the_last_error_line_of_the_log() {
    let error = Tiny::default()
        .importing(LOG)
        .data(guests::SCRATCH, "no replicas at src/lib.rs:7")
        .on_reconcile(&format!(
            "(call $log (i32.const 3) (i32.const {}) (i32.const 27)) unreachable",
            guests::SCRATCH
        ))
        .run_with(&Limits::default())
        .unwrap_err();
    expect![
        "the guest trapped: wasm trap: wasm `unreachable` instruction executed; \
         its last error: no replicas at src/lib.rs:7"
    ]
    .assert_eq(&error.to_string());
}

#[test]
fn output_beyond_the_limit_is_refused_with_its_size() {
    let error = Tiny::default()
        .outcome(0, r#"{"objects":[]}"#)
        .run_with(&Limits { output_bytes: 10, ..Limits::default() })
        .unwrap_err();
    expect!["the desired of the guest has 14 bytes, the limit is 10"].assert_eq(&error.to_string());
}

#[test]
fn output_as_large_as_the_memory_is_refused() {
    // A string of 40 MiB, all NULs.
    let error = Tiny::default()
        .answers(&format!(
            "(drop (memory.grow (i32.const 700)))
             (i32.store (i32.const {0}) (i32.const 0))
             (i32.store (i32.const {1}) (i32.const 65536))
             (i32.store (i32.const {2}) (i32.const 41943040))
             (i32.const {0})",
            guests::SCRATCH,
            guests::SCRATCH + 4,
            guests::SCRATCH + 8
        ))
        .run_with(&Limits::default())
        .unwrap_err();
    assert_eq!(
        error,
        CallError::OutputTooLarge {
            document: "desired",
            bytes: 40 << 20,
            limit: OUTPUT_BYTES_DEFAULT
        }
    );
}

#[test]
fn output_outside_the_memory_traps() {
    let error = Tiny::default()
        .answers(&format!(
            "(i32.store (i32.const {0}) (i32.const 0))
             (i32.store (i32.const {1}) (i32.const 0))
             (i32.store (i32.const {2}) (i32.const -1))
             (i32.const {0})",
            guests::SCRATCH,
            guests::SCRATCH + 4,
            guests::SCRATCH + 8
        ))
        .run_with(&Limits::default())
        .unwrap_err();
    expect!["the guest trapped: string pointer/length out of bounds of memory"]
        .assert_eq(&error.to_string());
}

#[test]
fn unknown_outcome_traps() {
    let error = Tiny::default().outcome(7, "{}").run_with(&Limits::default()).unwrap_err();
    assert_eq!(error.reason(), "GuestTrapped");
}

#[track_caller]
fn unreadable(case: u8, text: &str, expected: &expect_test::Expect) {
    let error = Tiny::default().outcome(case, text).run_with(&Limits::default()).unwrap_err();
    assert_eq!(error.reason(), "OutputUnreadable");
    expected.assert_eq(&error.to_string());
}

#[test]
fn output_that_is_no_json_is_unreadable() {
    unreadable(
        0,
        "apiVersion: v1",
        &expect!["the desired of the guest cannot be read: expected value at line 1 column 1"],
    );
}

#[test]
fn output_with_an_unknown_member_is_unreadable_with_its_place() {
    unreadable(
        1,
        r#"{"objects":[{"object":{},"policy":["createonly"]}]}"#,
        &expect![
            "the desired of the guest cannot be read: unknown variant `createonly`, expected one \
             of `create-only`, `recreate-when-immutable`, `orphan`, `merge`, `deletable`, \
             `independent` at line 1 column 47 (at objects[0].policy[0])"
        ],
    );
}

#[test]
fn failure_with_an_unknown_member_is_unreadable() {
    unreadable(
        2,
        r#"{"reason":"X"}"#,
        &expect![
            "the failure of the guest cannot be read: missing field `message` at line 1 column 14"
        ],
    );
}

#[test]
fn deeply_nested_json_is_unreadable() {
    let deep = format!(r#"{{"status":{{"a":{}"#, "[".repeat(100_000));
    let error = Tiny::default().outcome(0, &deep).run_with(&Limits::default()).unwrap_err();
    assert_eq!(error.reason(), "OutputUnreadable");
}

#[test]
fn output_that_is_no_utf8_is_unreadable() {
    let error = Tiny::default()
        .on_reconcile("(i32.store8 (i32.const 16384) (i32.const 255))")
        .run_with(&Limits::default())
        .unwrap_err();
    expect![
        "the output of the guest cannot be read: invalid utf-8 sequence of 1 bytes from index 0"
    ]
    .assert_eq(&error.to_string());
}

#[test]
fn too_many_objects_are_refused_with_their_count() {
    let error = Tiny::default()
        .outcome(0, r#"{"objects":[{"object":{}},{"object":{}},{"object":{}}]}"#)
        .run_with(&Limits { objects: 2, ..Limits::default() })
        .unwrap_err();
    assert_eq!(error, CallError::TooManyObjects { count: 3, limit: 2 });
}

#[test]
fn too_many_reads_end_the_call() {
    let tiny = reader().on_reconcile(&format!("(loop $l {} (br $l))", get()));
    let guest = tiny.load().unwrap().with_limits(Limits { reads: 3, ..Limits::default() });
    let mut cluster = Cluster::default();
    let error = guest.reconcile("{}", &mut cluster).unwrap_err();
    assert_eq!(error, CallError::TooManyReads { limit: 3 });
    assert_eq!(cluster.asked.len(), 3);
}

#[test]
fn answer_that_does_not_fit_with_the_observed_document_ends_the_call() {
    let memory = 1 << 20;
    let guest = reader().on_reconcile(&list()).load().unwrap();
    let guest = guest.with_limits(Limits { memory_bytes: memory, ..Limits::default() });
    let observed = format!("{{\"object\":\"{}\"}}", "x".repeat(1_000));
    let room = memory - observed.len();
    for answer in [Ok("x".repeat(room + 1)), Err(ReadError::TooLarge)] {
        let mut cluster = Cluster { answer: Some(answer), ..Cluster::default() };
        let error = guest.reconcile(&observed, &mut cluster).unwrap_err();
        assert_eq!(error, CallError::ReadTooLarge { limit: memory });
        assert_eq!(cluster.rooms, [room], "the host gets the room before it joins the answer");
        assert_eq!(error.reason(), "ReadTooLarge");
    }
}

#[test]
fn answers_beyond_four_times_the_memory_end_the_call() {
    // The guest writes all answers to the same place, so it keeps none.
    let memory = 4 << 20;
    let tiny = reader().on_reconcile(&format!(
        "(loop $l {} (global.set $next (i32.const 131072)) (br $l))",
        list()
    ));
    let guest = tiny.load().unwrap();
    let guest = guest.with_limits(Limits { memory_bytes: memory, ..Limits::default() });
    let mut cluster = Cluster::answering(Ok(&"x".repeat(1 << 20)));
    let error = guest.reconcile("{}", &mut cluster).unwrap_err();
    assert_eq!(error, CallError::ReadsTooLarge { limit: 4 * memory });
    assert_eq!(cluster.asked.len(), 17);
}

#[test]
fn observed_document_larger_than_the_memory_is_refused() {
    let guest = Tiny::default().load().unwrap();
    let guest = guest.with_limits(Limits { memory_bytes: 1 << 20, ..Limits::default() });
    let observed = format!("{{\"object\":\"{}\"}}", "x".repeat(1 << 20));
    let error = guest.reconcile(&observed, &mut Cluster::default()).unwrap_err();
    assert_eq!(error, CallError::ObservedTooLarge { limit: 1 << 20 });
}

#[test]
fn log_beyond_the_limit_is_cut_with_one_warning() {
    let tiny =
        Tiny::default().importing(LOG).data(guests::SCRATCH, "0123456789").on_reconcile(&format!(
            "(loop $l
                 (call $log (i32.const 1) (i32.const {}) (i32.const 10))
                 (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1)))
                                     (i32.const 1000))))",
            guests::SCRATCH
        ));
    let guest = tiny.load().unwrap().with_limits(Limits { log_bytes: 27, ..Limits::default() });
    let mut cluster = Cluster::default();
    let run = guest.reconcile("{}", &mut cluster).unwrap();
    let line = |text: &str| (Level::Info, text.to_owned());
    assert_eq!(
        cluster.lines,
        [
            line("0123456789"),
            line("0123456789"),
            line("0..."),
            (Level::Warn, "the log of this call is cut at 27 bytes".to_owned()),
        ]
    );
    assert_eq!(run.figures.log_cut_bytes, 10 * 1000 - 21);
}

#[test]
fn log_line_as_large_as_the_memory_is_cut() {
    let tiny = Tiny::default()
        .importing(LOG)
        .on_reconcile("(call $log (i32.const 0) (i32.const 65536) (i32.const 196608))");
    let mut cluster = Cluster::default();
    tiny.load().unwrap().reconcile("{}", &mut cluster).unwrap();
    assert_eq!(cluster.lines.len(), 2);
    assert_eq!(cluster.lines[0].1.len(), Limits::default().log_bytes - 1);
    assert!(cluster.lines[0].1.ends_with("..."), "dots show that the line was cut");
}

#[test]
fn error_line_beyond_the_limit_ends_with_dots() {
    let tiny = Tiny::default()
        .importing(LOG)
        .on_reconcile("(call $log (i32.const 3) (i32.const 65536) (i32.const 1001)) unreachable");
    let error = tiny.load().unwrap().reconcile("{}", &mut Cluster::default()).unwrap_err();
    let CallError::Trap(trap) = error else { panic!("{error}") };
    let message = trap.panic_message.unwrap();
    assert!(message.len() == 1_003 && message.ends_with("..."), "{message:?}");
}

#[test]
fn failing_guest_does_not_disturb_another_one() {
    let engine = engine(Interruption::Epoch);
    let good = engine.load(&Tiny::default().component(), &short()).unwrap();
    let bad: Vec<_> = [
        "(loop $l (br $l))",
        "unreachable",
        "(loop $l (br_if $l (i32.ne (memory.grow (i32.const 1)) (i32.const -1)))) unreachable",
    ]
    .iter()
    .map(|code| engine.load(&Tiny::default().on_reconcile(code).component(), &short()).unwrap())
    .collect();
    for _ in 0..3 {
        for guest in &bad {
            guest.reconcile("{}", &mut Cluster::default()).unwrap_err();
            good.reconcile("{}", &mut Cluster::default()).unwrap();
        }
    }
}
