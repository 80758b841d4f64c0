//! Policies that do what no SDK would let them do.

use std::fmt::Write as _;
use std::time::Duration;

use expect_test::expect;
use innkeeper_sandbox::{CallError, Interruption, Limits, ReviewOutcome};

use super::guests::kubewarden::{
    ANSWER_AT, FREE_AT, Kubewarden, METADATA, METADATA_SECTION, append_section,
};
use super::guests::{Cluster, engine};
use super::{Load, REQUEST, refused};

/// An address behind the memory of a policy.
const OUTSIDE: i32 = 100 << 20;

#[test]
fn import_that_is_not_offered_is_refused_by_name() {
    refused(
        &Kubewarden::default().importing(r#"(import "env" "abort" (func))"#),
        "UnknownImport",
        &expect![
            "the module imports env#abort, which is neither of waPC nor of WASI preview 1: the host \
             offers nothing else to Kubewarden policies"
        ],
    );
    for import in [
        r#"(import "wapc" "__host_secret" (func))"#,
        r#"(import "wasi_snapshot_preview1" "sock_open" (func))"#,
        r#"(import "wasi_unstable" "fd_write" (func))"#,
        r#"(import "env" "table" (table 1 funcref))"#,
    ] {
        let error = Kubewarden::default().importing(import).load().unwrap_err();
        assert_eq!(error.reason(), "UnknownImport", "{import}");
    }
    // A function that is offered, as something else.
    for import in [
        r#"(import "wapc" "__host_error_len" (func (param i64)))"#,
        r#"(import "wapc" "__console_log" (global i32))"#,
        r#"(import "wasi_snapshot_preview1" "fd_close" (func (param i64) (result i32)))"#,
    ] {
        let error = Kubewarden::default().importing(import).load().unwrap_err();
        assert_eq!(error.reason(), "WrongType", "{import}");
    }
}

#[test]
fn module_without_the_exports_of_wapc_is_refused() {
    let mut plain = wat::parse_str("(module)").unwrap();
    let mut no_call = wat::parse_str(r#"(module (memory (export "memory") 1))"#).unwrap();
    let mut other = wat::parse_str(
        r#"(module (memory (export "memory") 1)
            (func (export "__guest_call") (param i64) (result i32) (i32.const 0)))"#,
    )
    .unwrap();
    for (module, name) in
        [(&mut plain, "memory"), (&mut no_call, "__guest_call"), (&mut other, "__guest_call")]
    {
        append_section(module, METADATA_SECTION, METADATA.as_bytes());
        let loaded = engine(Interruption::Epoch).load(module, &Limits::default());
        let error = loaded.unwrap_err();
        assert_eq!(error.reason(), "MissingExport");
        assert!(error.to_string().contains(&format!("`{name}`")), "{error}");
    }
    let start = r#"(func (export "_start") (param i32))"#;
    assert_eq!(Kubewarden::default().with(start).load().unwrap_err().reason(), "MissingExport");
}

#[test]
fn addresses_outside_of_the_memory_end_the_call() {
    let mut calls = Vec::new();
    for (address, length) in [(-16, 32), (OUTSIDE, 1), (8 << 16, 1), (-1, 1)] {
        let pair = format!("(i32.const {address}) (i32.const {length})");
        calls.extend([
            format!("(call $guest_response {pair})"),
            format!("(call $guest_error {pair})"),
            format!("(call $console_log {pair})"),
            format!("(call $guest_request (i32.const {address}) (i32.const 0))"),
            format!("(call $guest_request (i32.const 0) (i32.const {address}))"),
            format!("(drop (call $host_call {pair} {pair} {pair} {pair}))"),
            format!(
                "(drop (call $host_call (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0)
                    (i32.const 0) (i32.const 0) {pair}))"
            ),
        ]);
    }
    for call in calls {
        let policy = Kubewarden::default().before_accepting(&call);
        let error = policy.review(&mut Cluster::default()).unwrap_err();
        assert_eq!(error.reason(), "GuestTrapped", "{call}");
        let text = error.to_string();
        assert!(text.contains("outside of its memory"), "{call}: {text}");
    }
}

#[test]
fn answer_of_the_host_is_written_inside_of_the_memory_only() {
    let mut policy = Kubewarden::default();
    let call = policy.host_call(["a", "b", "c"], "{}");
    for address in [-1, OUTSIDE, (8 << 16) - 1] {
        let policy = policy
            .clone()
            .before_accepting(&format!("(drop {call}) (call $host_error (i32.const {address}))"));
        let error = policy.review(&mut Cluster::default()).unwrap_err();
        assert!(error.to_string().contains("outside of its memory"), "{error}");
    }
}

#[test]
fn response_larger_than_the_output_ends_the_call_before_it_is_copied() {
    let limit = 1 << 16;
    for (call, length) in [("guest_response", 1 << 17), ("guest_error", -1)] {
        let policy = Kubewarden::default()
            .before_accepting(&format!("(call ${call} (i32.const 0) (i32.const {length}))"));
        let limits = Limits { output_bytes: limit, ..Limits::default() };
        let guest = policy.load().unwrap().with_limits(limits);
        let error = guest.review(REQUEST, &mut Cluster::default()).unwrap_err();
        let bytes = u32::try_from(i64::from(length) & 0xffff_ffff).unwrap() as usize;
        assert_eq!(error, CallError::OutputTooLarge { document: "response", bytes, limit });
    }
}

#[test]
fn answers_of_the_host_before_any_call_are_empty() {
    let policy = Kubewarden::default().before_accepting(&format!(
        "(if (i32.or (call $host_response_len) (call $host_error_len)) (then unreachable))
         (i32.store8 (i32.const {FREE_AT}) (i32.const 7))
         (call $host_response (i32.const {FREE_AT}))
         (call $host_error (i32.const {FREE_AT}))
         (if (i32.ne (i32.load8_u (i32.const {FREE_AT})) (i32.const 7)) (then unreachable))"
    ));
    assert!(policy.verdict().allowed);
}

#[test]
fn success_without_a_response_is_no_verdict() {
    let policy = Kubewarden::default().validate("(i32.const 1)");
    let error = policy.review(&mut Cluster::default()).unwrap_err();
    assert_eq!(error.reason(), "OutputUnreadable");
    // Any number but one is a failure.
    let policy = Kubewarden::default().validate("(i32.const 2)");
    assert_eq!(policy.failure(), "validate failed without a reason");
}

#[test]
fn verdict_that_is_no_json_of_the_protocol_is_an_error_of_the_call() {
    let deep =
        format!(r#"{{"accepted":true,"mutated_object":{}1{}}}"#, "[".repeat(200), "]".repeat(200));
    for response in [
        "accepted",
        "{}",
        "null",
        r#"{"accepted":null}"#,
        r#"{"accepted":"true"}"#,
        r#"{"accepted":false,"accepted":true}"#,
        r#"{"accepted":true,"code":1.5}"#,
        r#"{"accepted":true} more"#,
        &deep,
    ] {
        let policy = Kubewarden::default().validate_with(response);
        let error = policy.review(&mut Cluster::default()).unwrap_err();
        assert_eq!(error.reason(), "OutputUnreadable", "{response}");
    }
    let broken = Kubewarden::default().validate(&format!(
        "(i32.store8 (i32.const {FREE_AT}) (i32.const 255))
         (call $guest_response (i32.const {FREE_AT}) (i32.const 1)) (i32.const 1)"
    ));
    let error = broken.review(&mut Cluster::default()).unwrap_err();
    assert_eq!(error.reason(), "OutputUnreadable");
}

#[test]
fn policy_beyond_time_memory_and_reads_fails_by_name() {
    let time = Duration::from_millis(50);
    let limits = Limits { time, memory_bytes: 8 << 20, reads: 3, ..Limits::default() };
    let grow =
        "(loop $l (br_if $l (i32.ne (memory.grow (i32.const 1)) (i32.const -1)))) unreachable";
    let mut flood = Kubewarden::default();
    let call = flood.host_call(["kubewarden", "oci", "v1/verify"], "{}");
    let flood = flood.before_accepting(&format!("(loop $l (drop {call}) (br $l))"));
    let mut log = Kubewarden::default();
    let call = log.host_call(["kubewarden", "tracing", "log"], r#"{"message":"x"}"#);
    let log = log.before_accepting(&format!("(loop $l (drop {call}) (br $l))"));
    for (policy, expected) in [
        (
            Kubewarden::default().before_accepting("(loop $l (br $l))"),
            CallError::Timeout { limit: time },
        ),
        (Kubewarden::default().before_accepting(grow), CallError::OutOfMemory { limit: 8 << 20 }),
        (flood, CallError::TooManyReads { limit: 3 }),
        (log, CallError::Timeout { limit: time }),
    ] {
        let guest = policy.load().unwrap().with_limits(limits);
        let mut cluster = Cluster::default();
        assert_eq!(guest.review(REQUEST, &mut cluster).unwrap_err(), expected);
        let lines: usize = cluster.lines.iter().map(|(_, line)| line.len() + 1).sum();
        assert!(lines < limits.log_bytes + 100, "{lines}");
    }
}

#[test]
fn start_that_never_ends_is_stopped_when_the_policy_is_loaded() {
    let policy = Kubewarden::default().with("(func (export \"wapc_init\") (loop $l (br $l)))");
    let limits = Limits { time: Duration::from_millis(50), ..Limits::default() };
    let error = engine(Interruption::Epoch).load(&policy.module(), &limits).unwrap_err();
    assert_eq!(error.reason(), "DescribeFailed");
    let memory = Limits { memory_bytes: 1 << 16, ..Limits::default() };
    let loaded = engine(Interruption::Epoch).load(&Kubewarden::default().module(), &memory);
    assert_eq!(loaded.unwrap_err().reason(), "DescribeFailed");
}

#[test]
fn payload_and_answer_of_a_host_call_are_bounded() {
    let mut policy = Kubewarden::default();
    let mut code = String::from("(call $host_call");
    for text in ["kubewarden", "kubernetes", "get_resource"] {
        let (at, length) = policy.text(text);
        write!(code, " (i32.const {at}) (i32.const {length})").unwrap();
    }
    // The payload is longer than the host reads, and not looked at.
    code += " (i32.const 0) (i32.const 70000))";
    let policy = policy.validate(&format!(
        "(drop {code}) (call $host_error (i32.const {ANSWER_AT}))
         (call $guest_error (i32.const {ANSWER_AT}) (call $host_error_len)) (i32.const 0)"
    ));
    expect![
        "the payload of host call kubewarden/kubernetes/get_resource has more than 65536 bytes"
    ]
    .assert_eq(&policy.failure());

    let payload = r#"{"api_version":"v1","kind":"ConfigMap","namespace":"n","name":"c"}"#;
    let name = ["kubewarden", "kubernetes", "get_resource"];
    let reading = Kubewarden::default().answering_with_host_call(name, payload);
    let limits = Limits { memory_bytes: 1 << 20, ..Limits::default() };
    let guest = reading.load().unwrap().with_limits(limits);
    let large = "x".repeat(2 << 20);
    let error = guest.review(REQUEST, &mut Cluster::answering(Ok(&large))).unwrap_err();
    assert_eq!(error, CallError::ReadTooLarge { limit: 1 << 20 });
}

#[test]
fn error_of_a_policy_is_cut() {
    let outcome =
        Kubewarden::default().failing(&"ß".repeat(5_000)).review(&mut Cluster::default()).unwrap();
    let ReviewOutcome::Failed(text) = outcome else { panic!("{outcome:?}") };
    assert_eq!(text, format!("{}...", "ß".repeat(1_000)));
}

#[test]
fn written_parts_and_random_bytes_are_bounded() {
    let limits = Limits { time: Duration::from_millis(200), ..Limits::default() };
    for (import, call) in [
        (
            "fd_write",
            "(drop (call $wasi (i32.const 1) (i32.const 0) (i32.const -1) (i32.const 0)))",
        ),
        (
            "fd_write",
            "(drop (call $wasi (i32.const 1) (i32.const 0) (i32.const 2147483647) (i32.const 0)))",
        ),
    ] {
        let policy = Kubewarden::default()
            .importing(&format!(
                r#"(import "wasi_snapshot_preview1" "{import}" (func $wasi
                    (param i32 i32 i32 i32) (result i32)))"#
            ))
            .before_accepting(call);
        let guest = policy.load().unwrap().with_limits(limits);
        guest.review(REQUEST, &mut Cluster::default()).unwrap();
    }
    let random = r#"(import "wasi_snapshot_preview1" "random_get" (func $wasi
        (param i32 i32) (result i32)))"#;
    for length in [-1, 1 << 30, i32::MIN] {
        let policy = Kubewarden::default().importing(random).before_accepting(&format!(
            "(if (i32.ne (call $wasi (i32.const 0) (i32.const {length})) (i32.const 52))
                (then unreachable))"
        ));
        assert!(policy.verdict().allowed, "{length}");
    }
}
