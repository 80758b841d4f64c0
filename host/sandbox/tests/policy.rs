//! Guests that review requests: which components the host accepts, and the reviews.

#![allow(clippy::unwrap_used, reason = "helpers of tests panic like tests")]

mod guests;

use std::sync::{Condvar, Mutex};
use std::time::Duration;

use expect_test::{Expect, expect};
use guests::{ALLOWED, Cluster, LOG, Load, MANIFEST, POLICY_MANIFEST, SCRATCH, Tiny, engine, get};
use innkeeper_contract::Verdict;
use innkeeper_sandbox::{
    CACHE_BYTES_DEFAULT, CacheFigures, CacheFolder, CacheKey, CallError, CodeCache, Engine, Guest,
    Host, Interruption, Level, Limits, LoadError, Outcome, ReadError, ResourceKind, ReviewOutcome,
};

const REQUEST: &str = r#"{"operation":"CREATE"}"#;

fn review(guest: &Guest) -> Result<ReviewOutcome, CallError> {
    guest.review(REQUEST, &mut Cluster::default()).map(|review| review.outcome)
}

fn decided(guest: &Guest) -> Verdict {
    let outcome = review(guest).unwrap();
    let ReviewOutcome::Decided(verdict) = outcome else { unreachable!("{outcome:?}") };
    verdict
}

/// A policy that reads a ConfigMap.
fn reader() -> Tiny {
    Tiny::policy(ALLOWED).importing(guests::READS).data(SCRATCH, "v1ConfigMapnscm")
}

#[track_caller]
fn refused(tiny: &Tiny, reason: &str, expected: &Expect) {
    let error = tiny.load().unwrap_err();
    expected.assert_eq(&error.to_string());
    assert_eq!(error.reason(), reason);
    assert!(!error.is_temporary());
}

#[test]
fn component_with_policy_only_is_loaded() {
    let guest = Tiny::policy(r#"{"allowed":false,"message":"no"}"#).load().unwrap();
    assert!(guest.has_policy() && !guest.has_reconciler());
    assert!(guest.manifest().is_policy_only());
    let verdict = decided(&guest);
    assert_eq!((verdict.allowed, &*verdict.message), (false, "no"));
    let error = guest.reconcile("{}", &mut Cluster::default()).unwrap_err();
    assert_eq!(error.reason(), "NotExported");
    expect!["the guest does not export innkeeper:guest/reconciler@0.1.0"]
        .assert_eq(&error.to_string());
}

#[test]
fn component_with_both_exports_runs_both() {
    let guest = Tiny::default().both().outcome(1, "{}").decision(0, ALLOWED).load().unwrap();
    assert!(guest.has_policy() && guest.has_reconciler());
    let run = guest.reconcile("{}", &mut Cluster::default()).unwrap();
    assert!(matches!(run.outcome, Outcome::Partial(_)), "{run:?}");
    assert!(decided(&guest).allowed);
}

#[test]
fn component_with_reconciler_only_reviews_nothing() {
    let guest = Tiny::default().load().unwrap();
    assert!(!guest.has_policy());
    let error = review(&guest).unwrap_err();
    expect!["the guest does not export innkeeper:guest/policy@0.1.0"].assert_eq(&error.to_string());
}

#[test]
fn policy_without_the_manifest_member_is_refused() {
    refused(
        &Tiny::default().both().manifest(MANIFEST),
        "ManifestMismatch",
        &expect![
            "the component exports innkeeper:guest/policy@0.1.0, and its manifest has no `policy`: \
             describe `policy`, or leave out the export"
        ],
    );
}

#[test]
fn reconciler_without_a_primary_is_refused() {
    refused(
        &Tiny::default().both().manifest(POLICY_MANIFEST),
        "ManifestMismatch",
        &expect![
            "the component exports innkeeper:guest/reconciler@0.1.0, and its manifest has no \
             `primary`: describe `primary`, or leave out the export"
        ],
    );
}

#[test]
fn manifest_member_of_a_missing_export_is_refused() {
    refused(
        &Tiny::default().manifest(&manifest_of_both()),
        "ManifestMismatch",
        &expect![
            "the manifest has `policy`, and the component does not export \
             innkeeper:guest/policy@0.1.0: export it, or leave out `policy`"
        ],
    );
    refused(
        &Tiny::policy(ALLOWED).manifest(&manifest_of_both()),
        "ManifestMismatch",
        &expect![
            "the manifest has `primary`, and the component does not export \
             innkeeper:guest/reconciler@0.1.0: export it, or leave out `primary`"
        ],
    );
}

/// A manifest with a primary and a policy.
fn manifest_of_both() -> String {
    let primary = r#"{"primary":{"apiVersion":"example.com/v1","kind":"Tiny","plural":"tinies"},"#;
    POLICY_MANIFEST.replacen('{', primary, 1)
}

#[test]
fn describes_that_differ_are_refused() {
    // The second document has another name.
    let manifest = manifest_of_both();
    let name = guests::MANIFEST_AT + manifest.find("tiny\"").unwrap();
    let tiny = Tiny::default()
        .both()
        .manifest(&manifest)
        .describe_policy(&format!("(i32.store8 (i32.const {name}) (i32.const 109))"));
    refused(
        &tiny,
        "DescribesDiffer",
        &expect![
            "describe of innkeeper:guest/reconciler@0.1.0 and describe of \
             innkeeper:guest/policy@0.1.0 give different manifests: return the same document from \
             both"
        ],
    );
}

#[test]
fn trap_in_describe_of_the_policy_is_a_failed_describe() {
    let error = Tiny::default().both().describe_policy("unreachable").load().unwrap_err();
    assert_eq!(error.reason(), "DescribeFailed");
}

#[test]
fn policy_of_another_contract_is_refused_with_both_versions() {
    let error = Tiny::policy(ALLOWED).wit("0.2.0", |wit| wit).load().unwrap_err();
    assert_eq!(error, LoadError::WrongContract { found: "0.2.0".into(), wanted: "0.1.0" });
    // Next to a reconciler of this contract too.
    let component = r#"(component
        (instance $empty)
        (export "innkeeper:guest/reconciler@0.1.0" (instance $empty))
        (export "innkeeper:guest/policy@1.0.0" (instance $empty)))"#;
    let bytes = wat::parse_str(component).unwrap();
    let error = engine(Interruption::Epoch).load(&bytes, &Limits::default()).unwrap_err();
    assert_eq!(error, LoadError::WrongContract { found: "1.0.0".into(), wanted: "0.1.0" });
}

#[test]
fn policy_of_other_types_is_refused() {
    let component = r#"(component
        (core module $m (func (export "describe") (result i32) (i32.const 0)))
        (core instance $i (instantiate $m))
        (func $describe (result u32) (canon lift (core func $i "describe")))
        (instance $policy (export "describe" (func $describe)))
        (export "innkeeper:guest/policy@0.1.0" (instance $policy)))"#;
    let bytes = wat::parse_str(component).unwrap();
    let error = engine(Interruption::Epoch).load(&bytes, &Limits::default()).unwrap_err();
    assert_eq!(error.reason(), "WrongType");
}

#[test]
fn warning_of_both_describes_is_kept_once() {
    let guest = Tiny::default()
        .both()
        .importing(LOG)
        .data(SCRATCH, "old")
        .on_describe(&format!("(call $log (i32.const 2) (i32.const {SCRATCH}) (i32.const 3))"))
        .load()
        .unwrap();
    assert_eq!(guest.describe_warnings(), ["old"]);
}

#[test]
fn policy_gets_the_review_request() {
    // Answers with its own input.
    let guest = Tiny::policy(ALLOWED)
        .review_wat(&format!(
            "(i32.store (i32.const {0}) (i32.const 0))
             (i32.store (i32.const {1}) (local.get $request))
             (i32.store (i32.const {2}) (local.get $length))
             (return (i32.const {0}))",
            SCRATCH,
            SCRATCH + 4,
            SCRATCH + 8
        ))
        .load()
        .unwrap();
    let request = r#"{"allowed":true,"warnings":["as asked"]}"#;
    let review = guest.review(request, &mut Cluster::default()).unwrap();
    let ReviewOutcome::Decided(verdict) = review.outcome else { panic!("{:?}", review.outcome) };
    assert_eq!(verdict.warnings, ["as asked"]);
    assert_eq!(review.figures.output_bytes, request.len());
    assert!(review.figures.memory_peak_bytes > 0);
}

#[test]
fn reads_of_a_review_reach_the_host_and_an_undeclared_kind_does_not() {
    let tiny = reader().review_wat(&get());
    let mut cluster = Cluster::answering(Err(ReadError::Forbidden("no".into())));
    tiny.load().unwrap().review(REQUEST, &mut cluster).unwrap();
    assert_eq!(cluster.asked, ["get v1 ConfigMap ns/cm"]);
    // The kinds of the rules are not read.
    let undeclared = POLICY_MANIFEST
        .replace(r#","reads":[{"apiVersion":"v1","kind":"ConfigMap","plural":"configmaps"}]"#, "");
    let mut cluster = Cluster::default();
    tiny.manifest(&undeclared).load().unwrap().review(REQUEST, &mut cluster).unwrap();
    assert_eq!(cluster.asked, [""; 0]);
}

#[test]
fn no_state_reaches_the_next_review() {
    let guest = Tiny::policy(ALLOWED)
        .review_wat(&format!(
            "(if (i32.load (i32.const {SCRATCH})) (then unreachable))
             (i32.store (i32.const {SCRATCH}) (i32.const 1))"
        ))
        .load()
        .unwrap();
    for _ in 0..5 {
        assert!(decided(&guest).allowed);
    }
}

#[test]
fn policy_that_cannot_decide_fails_with_a_text_that_is_cut() {
    let failing = |text: &str| review(&Tiny::policy("").decision(1, text).load().unwrap()).unwrap();
    assert_eq!(failing("no registry"), ReviewOutcome::Failed("no registry".into()));
    let ReviewOutcome::Failed(text) = failing(&"ß".repeat(50_000)) else { panic!() };
    assert_eq!(text, format!("{}...", "ß".repeat(1_000)));
}

#[test]
fn verdict_that_is_no_json_is_an_error_of_the_call() {
    for (verdict, what) in [
        ("", "EOF"),
        ("allowed", "expected value"),
        ("{}", "missing field `allowed`"),
        ("null", "invalid type: null"),
        (r#"{"allowed":null}"#, "invalid type: null"),
        (r#"{"allowed":1}"#, "invalid type: integer `1`"),
        (r#"{"Allowed":true}"#, "unknown field `Allowed`"),
        (r#"{"allowed":false,"allowed":true}"#, "duplicate field `allowed`"),
        (r#"{"allowed":true} "and more""#, "trailing characters"),
    ] {
        let error = review(&Tiny::policy(verdict).load().unwrap()).unwrap_err();
        assert_eq!(error.reason(), "OutputUnreadable", "{verdict}");
        let text = error.to_string();
        assert!(text.starts_with("the verdict of the guest cannot be read: "), "{text}");
        assert!(text.contains(what), "{verdict}: {text}");
    }
}

#[test]
fn verdict_with_too_many_levels_or_no_utf8_is_an_error_of_the_call() {
    let deep = |levels: usize| {
        let object = format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        review(&Tiny::policy(&format!(r#"{{"allowed":true,"object":{object}}}"#)).load().unwrap())
    };
    assert!(deep(100).is_ok());
    for levels in [128, 100_000] {
        assert_eq!(deep(levels).unwrap_err().reason(), "OutputUnreadable", "{levels}");
    }
    let broken = Tiny::policy(ALLOWED).review_wat(&format!(
        "(i32.store8 (i32.const {}) (i32.const 255))",
        guests::OUTCOME_AT + 2
    ));
    assert_eq!(review(&broken.load().unwrap()).unwrap_err().reason(), "OutputUnreadable");
}

#[test]
fn review_beyond_time_memory_output_and_reads_fails_by_name() {
    let time = Duration::from_millis(50);
    let endless = "(loop $l (br $l))";
    let grow =
        "(loop $l (br_if $l (i32.ne (memory.grow (i32.const 1)) (i32.const -1)))) unreachable";
    let read = format!("(loop $l {} (br $l))", get());
    let few = Limits { time, memory_bytes: 8 << 20, reads: 3, ..Limits::default() };
    for (tiny, limits, expected) in [
        (Tiny::policy(ALLOWED).review_wat(endless), few, CallError::Timeout { limit: time }),
        (Tiny::policy(ALLOWED).review_wat(grow), few, CallError::OutOfMemory { limit: 8 << 20 }),
        (reader().review_wat(&read), few, CallError::TooManyReads { limit: 3 }),
        (
            Tiny::policy(ALLOWED),
            Limits { output_bytes: 10, ..few },
            CallError::OutputTooLarge { document: "verdict", bytes: ALLOWED.len(), limit: 10 },
        ),
        (
            Tiny::policy(ALLOWED),
            Limits { memory_bytes: REQUEST.len() - 1, ..few },
            CallError::RequestTooLarge { limit: REQUEST.len() - 1 },
        ),
    ] {
        let guest = tiny.load().unwrap().with_limits(limits);
        assert_eq!(review(&guest).unwrap_err(), expected);
        // The next one is as if nothing had happened.
        assert!(decided(&Tiny::policy(ALLOWED).load().unwrap()).allowed);
    }
    let trapping = Tiny::policy(ALLOWED).review_wat("unreachable").load().unwrap();
    assert_eq!(review(&trapping).unwrap_err().reason(), "GuestTrapped");
}

#[test]
fn pointer_outside_of_the_memory_is_an_error_of_the_call() {
    for (pointer, length) in [(-16, 1), (OUTSIDE, 1), (0, -1), (2_048, 1 << 30)] {
        let guest = Tiny::policy(ALLOWED)
            .review_wat(&format!(
                "(i32.store (i32.const {SCRATCH}) (i32.const 0))
                 (i32.store offset=4 (i32.const {SCRATCH}) (i32.const {pointer}))
                 (i32.store offset=8 (i32.const {SCRATCH}) (i32.const {length}))
                 (return (i32.const {SCRATCH}))"
            ))
            .load()
            .unwrap();
        assert_eq!(review(&guest).unwrap_err().reason(), "GuestTrapped", "{pointer} {length}");
    }
}

/// An address behind the memory of a tiny guest.
const OUTSIDE: i32 = 100 << 20;

#[test]
fn reviews_have_permits_of_their_own() {
    let engine = Engine::builder().guests(1).permits(3).review_permits(5).build().unwrap();
    assert_eq!((engine.permits().available(), engine.review_permits().available()), (3, 5));
    let few = Engine::builder().guests(1).permits(0).review_permits(0).build().unwrap();
    assert_eq!((few.permits().available(), few.review_permits().available()), (2, 2));
}

#[test]
fn as_many_calls_run_at_once_as_there_are_permits_of_both_kinds() {
    // More than have room without those of reviews. Each waits in a read until all are there.
    const RECONCILES: usize = 2;
    const REVIEWS: usize = 16;
    let engine = Engine::builder().guests(1).permits(RECONCILES).review_permits(REVIEWS).build();
    let tiny = Tiny::default()
        .both()
        .importing(guests::READS)
        .data(SCRATCH, "v1ConfigMapnscm")
        .on_reconcile(&get())
        .review_wat(&get());
    let limits = Limits { time: Duration::from_mins(1), ..Limits::default() };
    let guest = engine.unwrap().load(&tiny.component(), &limits).unwrap();
    let met = Met::default();
    std::thread::scope(|scope| {
        for call in 0..RECONCILES + REVIEWS {
            let (guest, met) = (&guest, &met);
            scope.spawn(move || {
                let mut host = Meeting { met, all: RECONCILES + REVIEWS };
                if call < RECONCILES {
                    guest.reconcile("{}", &mut host).unwrap();
                } else {
                    guest.review(REQUEST, &mut host).unwrap();
                }
            });
        }
    });
    assert_eq!(*met.calls.lock().unwrap(), RECONCILES + REVIEWS);
}

/// The calls that have begun.
#[derive(Default)]
struct Met {
    calls: Mutex<usize>,
    changed: Condvar,
}

/// A host whose reads wait for each other, for a minute at most.
struct Meeting<'a> {
    met: &'a Met,
    all: usize,
}

impl Host for Meeting<'_> {
    fn get(&mut self, _: &ResourceKind, _: &str, _: &str, _: usize) -> Result<String, ReadError> {
        let mut calls = self.met.calls.lock().unwrap();
        *calls += 1;
        self.met.changed.notify_all();
        let waits = |calls: &mut usize| *calls < self.all;
        let waited = self.met.changed.wait_timeout_while(calls, Duration::from_mins(1), waits);
        assert!(!waited.unwrap().1.timed_out(), "some calls had no room");
        Err(ReadError::NotFound)
    }

    fn list(&mut self, _: &ResourceKind, _: &str, _: &str, _: usize) -> Result<String, ReadError> {
        Err(ReadError::NotFound)
    }

    fn now_ms(&mut self) -> u64 {
        0
    }

    fn log(&mut self, _: Level, _: &str) {}
}

#[test]
fn second_load_of_one_component_compiles_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let cache = CodeCache::open(
        CacheFolder::open(folder.path()).unwrap(),
        &CacheKey::Given([1; 32]),
        CACHE_BYTES_DEFAULT,
    );
    let cache = cache.unwrap();
    let engine =
        Engine::builder().guests(2).permits(2).review_permits(2).cache(cache.clone()).build();
    let engine = engine.unwrap();
    let bytes = Tiny::policy(ALLOWED).component();
    let load = |limits: &Limits| engine.load(&bytes, limits);
    let compiled = CacheFigures { misses: 1, stored: 1, ..CacheFigures::default() };

    // Neither the compiler nor the cache is asked as long as a guest holds the component.
    let first = load(&Limits::default()).unwrap();
    let second = load(&Limits::default()).unwrap();
    let small = Limits { memory_bytes: 1 << 20, ..Limits::default() };
    let third = load(&small).unwrap();
    assert_eq!(cache.figures(), compiled);
    assert_eq!((first.digest(), first.limits()), (second.digest(), second.limits()));
    assert_eq!((third.limits(), third.manifest()), (&small, first.manifest()));
    drop((first, second));
    assert!(decided(&third).allowed);

    // Other limits hold for `describe`, and for the size of the component.
    let error = load(&Limits { memory_bytes: 1, ..small }).unwrap_err();
    assert_eq!(error.reason(), "DescribeFailed");
    let error = load(&Limits { component_bytes: 1, ..small }).unwrap_err();
    assert_eq!(error.reason(), "ComponentTooLarge");
    assert_eq!(cache.figures(), compiled);

    // A component that no guest holds is loaded again.
    drop(third);
    load(&small).unwrap();
    assert_eq!(cache.figures(), CacheFigures { hits: 1, ..compiled });
}
