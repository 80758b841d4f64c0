//! Random documents for every reader of foreign bytes, from a printed seed.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test may fail by it and says its seed"
)]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use innkeeper_fuzz_tests::mutate::Mutator;
use innkeeper_fuzz_tests::{TARGETS, Target, cpu_time};

/// CPU time that one document may take: far more than any needs, so that only a hang is found.
const DOCUMENT_TIME: Duration = Duration::from_secs(10);

fn seed() -> u64 {
    let seed = std::env::var("INNKEEPER_TEST_SEED").ok().and_then(|seed| seed.parse().ok());
    seed.unwrap_or_else(|| u64::from(std::process::id()))
}

fn corpus(target: &Target) -> Vec<Vec<u8>> {
    let folder = target.corpus();
    let entries = std::fs::read_dir(&folder).unwrap();
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(!paths.is_empty(), "{} is empty", folder.display());
    paths.iter().map(|path| std::fs::read(path).unwrap()).collect()
}

fn holds(name: &str) {
    let target = TARGETS.iter().find(|target| target.name == name).unwrap();
    let corpus = corpus(target);
    for document in &corpus {
        (target.fuzz_entry)(document);
    }
    let seed = seed();
    println!("seed {seed}: INNKEEPER_TEST_SEED={seed} runs it again");
    let mut mutator = Mutator::new(seed, corpus);
    for _ in 0..target.cases {
        let document = mutator.document();
        let started = cpu_time();
        let result = catch_unwind(AssertUnwindSafe(|| (target.fuzz_entry)(&document)));
        assert!(result.is_ok(), "{name} fails for {:?}", String::from_utf8_lossy(&document));
        let time = cpu_time().saturating_sub(started);
        assert!(time < DOCUMENT_TIME, "{time:?} for {:?}", String::from_utf8_lossy(&document));
    }
}

macro_rules! targets {
    ($($test:ident: $name:literal),* $(,)?) => {
        $(#[test] fn $test() { holds($name); })*

        #[test]
        fn every_target_has_a_test_and_a_libfuzzer_target() {
            let tested = [$($name),*];
            let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/libfuzzer/fuzz_targets");
            for target in TARGETS {
                assert!(tested.contains(&target.name), "{} has no test", target.name);
                let path = format!("{folder}/{}.rs", target.name);
                assert!(std::fs::exists(&path).unwrap(), "{path} does not exist");
            }
        }
    };
}

targets! {
    manifests_keep_their_properties: "manifest",
    desired_documents_keep_their_properties: "desired",
    failures_keep_their_properties: "failure",
    selectors_keep_their_properties: "selector",
    quantities_keep_their_properties: "quantity",
    definitions_keep_their_properties: "definition",
    rules_in_cel_keep_their_properties: "cel",
    chunks_keep_their_properties: "chunks",
    kubeconfigs_keep_their_properties: "kubeconfig",
    admission_requests_keep_their_properties: "admission",
    verdicts_keep_their_properties: "verdict",
    fault_plans_keep_their_properties: "faults",
    cases_of_laws_keep_their_properties: "case",
    test_plans_of_sieve_keep_their_properties: "sieve",
    components_keep_their_properties: "component",
    metadata_of_kubewarden_keeps_its_properties: "kubewarden",
    modules_keep_their_properties: "module",
    steps_of_test_cases_keep_their_properties: "steps",
}

#[test]
fn the_same_seed_makes_the_same_documents() {
    let make = |seed| {
        let mut mutator = Mutator::new(seed, vec![b"{\"a\": [1, \"b\"]}".to_vec(), b"x".to_vec()]);
        (0..100).map(|_| mutator.document()).collect::<Vec<_>>()
    };
    assert_eq!(make(7), make(7));
    assert_ne!(make(7), make(8));
}
