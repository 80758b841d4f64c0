//! The functions of WASI that a policy may import.

use innkeeper_sandbox::Level;

use super::Load;
use super::guests::Cluster;
use super::guests::kubewarden::{FREE_AT, Kubewarden};

/// Imports a function of WASI as `$wasi`.
fn importing(name: &str, signature: &str) -> Kubewarden {
    Kubewarden::default().importing(&format!(
        r#"(import "wasi_snapshot_preview1" "{name}" (func $wasi {signature}))"#
    ))
}

/// Traps unless the code leaves this number.
fn expect_number(code: &str, number: i64, ty: &str) -> String {
    format!("(if ({ty}.ne ({code}) ({ty}.const {number})) (then unreachable))")
}

#[test]
fn policy_has_no_arguments_files_or_sockets() {
    let sizes = format!(
        "(i32.store (i32.const {FREE_AT}) (i32.const 7)) {} {}",
        expect_number(&format!("call $wasi (i32.const {FREE_AT}) (i32.const {FREE_AT})"), 0, "i32"),
        expect_number(&format!("i32.load (i32.const {FREE_AT})"), 0, "i32"),
    );
    for name in ["args_sizes_get", "environ_sizes_get"] {
        let policy = importing(name, "(param i32 i32) (result i32)").before_accepting(&sizes);
        assert!(policy.verdict().allowed, "{name}");
    }
    let nine = "(param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)";
    let open = "call $wasi (i32.const 3) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) \
                (i64.const -1) (i64.const -1) (i32.const 0) (i32.const 0)";
    let policy = importing("path_open", nine).before_accepting(&expect_number(open, 8, "i32"));
    assert!(policy.verdict().allowed);
    let preopened = "call $wasi (i32.const 3) (i32.const 0)";
    let policy = importing("fd_prestat_get", "(param i32 i32) (result i32)")
        .before_accepting(&expect_number(preopened, 8, "i32"));
    assert!(policy.verdict().allowed);
}

#[test]
fn clock_shows_the_time_of_the_call_and_stands_still() {
    let now = format!("(drop (call $wasi (i32.const 0) (i64.const 1) (i32.const {FREE_AT})))");
    let is_now = expect_number(&format!("i64.load (i32.const {FREE_AT})"), 42_000_000, "i64");
    let policy = importing("clock_time_get", "(param i32 i64 i32) (result i32)")
        .before_accepting(&format!("{now} {is_now} {now} {is_now}"));
    let mut cluster = Cluster { now_ms: 42, ..Cluster::default() };
    policy.review(&mut cluster).unwrap();
    assert_eq!(cluster.asked, ["now"]);
    // Go's runtime does not start at zero, the time while a policy is loaded.
    let is_zero = format!("(i64.eqz (i64.load (i32.const {FREE_AT})))");
    let policy = importing("clock_time_get", "(param i32 i64 i32) (result i32)")
        .before_accepting(&format!("{now} (if {is_zero} (then unreachable))"));
    policy.review(&mut Cluster { now_ms: 0, ..Cluster::default() }).unwrap();
}

#[test]
fn wait_for_a_clock_ends_at_once_and_other_waits_are_not_supported() {
    // Two subscriptions: one to a descriptor, one to a clock with a number of the guest.
    let (events, count) = (FREE_AT + 96, FREE_AT + 160);
    let subscribe = |kind: i32| {
        format!(
            "(i64.store (i32.const {FREE_AT}) (i64.const 6))
             (i32.store8 offset=8 (i32.const {FREE_AT}) (i32.const 1))
             (i64.store offset=48 (i32.const {FREE_AT}) (i64.const 7))
             (i32.store8 offset=56 (i32.const {FREE_AT}) (i32.const {kind}))"
        )
    };
    let poll = format!(
        "call $wasi (i32.const {FREE_AT}) (i32.const {events}) (i32.const 2) (i32.const {count})"
    );
    let code = [
        subscribe(0),
        expect_number(&poll, 0, "i32"),
        expect_number(&format!("i32.load (i32.const {count})"), 1, "i32"),
        expect_number(&format!("i64.load (i32.const {events})"), 7, "i64"),
        expect_number(&format!("i32.load offset=8 (i32.const {events})"), 0, "i32"),
        subscribe(2),
        expect_number(&poll, 52, "i32"),
    ];
    let policy = importing("poll_oneoff", "(param i32 i32 i32 i32) (result i32)");
    assert!(policy.before_accepting(&code.concat()).verdict().allowed);
}

#[test]
fn random_numbers_are_the_same_in_every_call_and_not_zero() {
    let code = format!(
        "(drop (call $wasi (i32.const {FREE_AT}) (i32.const 12)))
         (if (i64.eqz (i64.load (i32.const {FREE_AT}))) (then unreachable))
         (call $guest_error (i32.const {FREE_AT}) (i32.const 12)) (return (i32.const 0))"
    );
    let policy = importing("random_get", "(param i32 i32) (result i32)").before_accepting(&code);
    assert_eq!(policy.failure(), policy.failure());
}

#[test]
fn random_numbers_continue_within_a_call() {
    let draw = |at: usize| format!("(drop (call $wasi (i32.const {at}) (i32.const 8)))");
    let code = format!(
        "{} {}
         (if (i64.eq (i64.load (i32.const {FREE_AT})) (i64.load (i32.const {})))
             (then unreachable))",
        draw(FREE_AT),
        draw(FREE_AT + 8),
        FREE_AT + 8
    );
    let policy = importing("random_get", "(param i32 i32) (result i32)").before_accepting(&code);
    assert!(policy.verdict().allowed);
}

#[test]
fn standard_output_and_error_are_the_log() {
    let mut policy = importing("fd_write", "(param i32 i32 i32 i32) (result i32)");
    let (at, _) = policy.text("one\ntwo\n");
    let write = |descriptor: i32, expected: i64| {
        let parts = format!(
            "(i32.store (i32.const {FREE_AT}) (i32.const {at}))
             (i32.store offset=4 (i32.const {FREE_AT}) (i32.const 4))
             (i32.store offset=8 (i32.const {FREE_AT}) (i32.const {}))
             (i32.store offset=12 (i32.const {FREE_AT}) (i32.const 4))",
            at + 4
        );
        let call = format!(
            "call $wasi (i32.const {descriptor}) (i32.const {FREE_AT}) (i32.const 2) \
             (i32.const {})",
            FREE_AT + 16
        );
        format!("{parts} {}", expect_number(&call, expected, "i32"))
    };
    let written = expect_number(&format!("i32.load (i32.const {})", FREE_AT + 16), 8, "i32");
    let code = format!("{} {written} {} {}", write(1, 0), write(2, 0), write(3, 8));
    let mut cluster = Cluster::default();
    policy.before_accepting(&code).review(&mut cluster).unwrap();
    let expected =
        [(Level::Info, "one"), (Level::Info, "two"), (Level::Error, "one"), (Level::Error, "two")];
    assert_eq!(cluster.lines, expected.map(|(level, line)| (level, line.to_owned())));
}

#[test]
fn exit_ends_the_start_of_a_program_and_traps_elsewhere() {
    let exiting = |status: i32| {
        importing("proc_exit", "(param i32)").with(&format!(
            "(func (export \"_start\") (call $wasi (i32.const {status})) unreachable)"
        ))
    };
    assert!(exiting(0).verdict().allowed);
    let error = exiting(3).load().unwrap_err();
    assert!(error.to_string().contains("the guest ended itself by proc_exit(3)"), "{error}");
    let policy =
        importing("proc_exit", "(param i32)").before_accepting("(call $wasi (i32.const 0))");
    let error = policy.review(&mut Cluster::default()).unwrap_err();
    assert_eq!(error.reason(), "GuestTrapped");
}
