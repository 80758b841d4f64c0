//! Components that the host does not accept as guests, with the reasons.

#![allow(clippy::unwrap_used, reason = "helpers of tests panic like tests")]

mod guests;

use expect_test::expect;
use guests::{CLOCK, Load, MANIFEST, Tiny, engine, reader};
use innkeeper_sandbox::{Guest, Interruption, Limits, LoadError};

fn load(bytes: &[u8]) -> Result<Guest, LoadError> {
    engine(Interruption::Epoch).load(bytes, &Limits::default())
}

#[track_caller]
fn refused(bytes: &[u8], reason: &str, expected: &expect_test::Expect) {
    let error = load(bytes).unwrap_err();
    expected.assert_eq(&error.to_string());
    assert_eq!(error.reason(), reason);
    assert!(!error.is_temporary());
}

#[test]
fn empty_bytes_are_not_a_component() {
    refused(b"", "NotAComponent", &expect!["not a WebAssembly component: there are no bytes"]);
}

#[test]
fn garbage_is_not_a_component() {
    refused(
        b"hello world",
        "NotAComponent",
        &expect![
            "not a WebAssembly component: the bytes start with [68, 65, 6c, 6c] instead of \
             [00, 61, 73, 6d]"
        ],
    );
}

#[test]
fn truncated_component_cannot_be_compiled() {
    let bytes = Tiny::default().component();
    let error = load(&bytes[..bytes.len() / 2]).unwrap_err();
    assert_eq!(error.reason(), "CompileFailed");
    assert!(error.to_string().contains("unexpected end"), "{error}");
}

#[test]
fn component_beyond_the_size_limit_is_refused_before_compilation() {
    let error = engine(Interruption::Epoch)
        .load(b"whatever it is", &Limits { component_bytes: 10, ..Limits::default() })
        .unwrap_err();
    assert_eq!(error, LoadError::TooLarge { bytes: 14, max: 10 });
}

#[test]
fn import_of_wasi_is_refused_by_name() {
    let component = r#"(component (import "wasi:random/random@0.2.0" (instance
        (export "get-random-u64" (func (result u64))))))"#;
    refused(
        &wat::parse_str(component).unwrap(),
        "UnknownImport",
        &expect![
            "the component imports wasi:random/random@0.2.0, which is not part of \
             innkeeper:guest@0.1.0 (guests have no WASI: build for wasm32-unknown-unknown, or \
             stub WASI away)"
        ],
    );
}

#[test]
fn unknown_import_of_the_contract_is_refused_by_name() {
    let component = r#"(component (import "innkeeper:guest/network@0.1.0" (instance)))"#;
    refused(
        &wat::parse_str(component).unwrap(),
        "UnknownImport",
        &expect![
            "the component imports innkeeper:guest/network@0.1.0, which is not part of \
             innkeeper:guest@0.1.0"
        ],
    );
}

#[test]
fn function_of_a_later_contract_is_refused_by_name() {
    let component = r#"(component (import "innkeeper:guest/clock@0.1.7" (instance
        (export "now-ms" (func (result f64))) (export "zone" (func (result string))))))"#;
    refused(
        &wat::parse_str(component).unwrap(),
        "UnknownImport",
        &expect![
            "the component imports innkeeper:guest/clock@0.1.7#zone, which is not part of \
             innkeeper:guest@0.1.0"
        ],
    );
}

#[test]
fn plain_function_as_import_is_refused_by_name() {
    let component = r#"(component (import "host" (func)))"#;
    let error = load(&wat::parse_str(component).unwrap()).unwrap_err();
    assert_eq!(error, LoadError::UnknownImport { name: "host".into() });
}

#[test]
fn guest_of_another_contract_is_refused_with_both_versions() {
    refused(
        &Tiny::default().wit("0.2.0", |wit| wit).component(),
        "WrongContract",
        &expect![
            "the component was built against innkeeper:guest@0.2.0, this host speaks 0.1.0: build \
             it with a matching SDK or take another release of the host"
        ],
    );
}

#[test]
fn guest_that_imports_another_contract_is_refused_with_both_versions() {
    let component = r#"(component (import "innkeeper:guest/clock@1.0.0" (instance
        (export "now-ms" (func (result f64))))))"#;
    let error = load(&wat::parse_str(component).unwrap()).unwrap_err();
    assert_eq!(error, LoadError::WrongContract { found: "1.0.0".into(), wanted: "0.1.0" });
}

#[test]
fn guest_of_a_compatible_contract_is_accepted() {
    let bytes = reader().wit("0.1.7", |wit| wit).on_reconcile(&guests::get()).component();
    let guest = load(&bytes).unwrap();
    let mut cluster = guests::Cluster::default();
    guest.reconcile("{}", &mut cluster).unwrap();
    assert_eq!(cluster.asked.len(), 1);
}

#[test]
fn component_without_exports_is_no_guest() {
    refused(
        &wat::parse_str("(component)").unwrap(),
        "MissingExport",
        &expect![
            "the component does not export innkeeper:guest/reconciler@0.1.0 or \
             innkeeper:guest/policy@0.1.0: it is not an Innkeeper guest"
        ],
    );
}

#[test]
fn reconciler_of_other_types_is_refused() {
    let component = r#"(component
        (core module $m (func (export "describe") (result i32) (i32.const 0)))
        (core instance $i (instantiate $m))
        (func $describe (result u32) (canon lift (core func $i "describe")))
        (instance $reconciler (export "describe" (func $describe)))
        (export "innkeeper:guest/reconciler@0.1.0" (instance $reconciler)))"#;
    let error = load(&wat::parse_str(component).unwrap()).unwrap_err();
    assert_eq!(error.reason(), "WrongType");
}

#[test]
fn import_of_other_types_is_refused() {
    let component = r#"(component
        (import "innkeeper:guest/clock@0.1.0" (instance (export "now-ms" (func (result u64)))))
        (core module $m)
        (instance $reconciler)
        (export "innkeeper:guest/reconciler@0.1.0" (instance $reconciler)))"#;
    let error = load(&wat::parse_str(component).unwrap()).unwrap_err();
    assert_eq!(error.reason(), "WrongType");
}

#[test]
fn trap_in_describe_is_a_failed_describe() {
    let error = Tiny::default().on_describe("unreachable").load().unwrap_err();
    assert_eq!(error.reason(), "DescribeFailed");
    expect![
        "describe failed: the guest trapped: wasm trap: wasm `unreachable` instruction executed"
    ]
    .assert_eq(&error.to_string());
}

#[test]
fn manifest_with_an_unknown_member_is_refused() {
    let manifest =
        MANIFEST.replace(r#""plural":"tinies""#, r#""plural":"tinies","scop":"Cluster""#);
    let error = Tiny::default().manifest(&manifest).load().unwrap_err();
    expect![
        "describe failed: the manifest of the guest cannot be read: unknown field `scop`, expected \
         one of `apiVersion`, `kind`, `plural`, `scope` at line 1 column 94 (at primary.scop)"
    ]
    .assert_eq(&error.to_string());
}

#[test]
fn component_of_too_many_parts_is_refused() {
    let instances = "(core instance (instantiate $m))".repeat(100);
    let component = format!("(component (core module $m) {instances})");
    let error = load(&wat::parse_str(component).unwrap()).unwrap_err();
    assert_eq!(error.reason(), "CompileFailed");
}

#[test]
fn describe_gets_neither_time_nor_state_of_an_earlier_call() {
    // It traps if it gets the time, or state of an earlier call.
    let bytes = Tiny::default()
        .importing(CLOCK)
        .with("(global $described (mut i32) (i32.const 0))")
        .on_describe(
            "(if (f64.ne (call $now) (f64.const 0)) (then unreachable))
             (if (global.get $described) (then unreachable))
             (global.set $described (i32.const 1))",
        )
        .component();
    let engine = engine(Interruption::Epoch);
    for _ in 0..2 {
        engine.load(&bytes, &Limits::default()).unwrap();
    }
}
