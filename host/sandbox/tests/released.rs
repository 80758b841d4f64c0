//! A guest of each released version of the contract, built against that version's own WIT, loads
//! and runs.

#![allow(clippy::unwrap_used, reason = "helpers of tests panic like tests")]

mod guests;

use std::fs;
use std::path::{Path, PathBuf};

use guests::{CLOCK, Cluster, LOG, READS, SCRATCH, Tiny, engine, get, list};
use innkeeper_contract::{DOCUMENTS_VERSION, Desired, Failure, Manifest, Verdict};
use innkeeper_sandbox::{Interruption, Limits, Outcome, ReviewOutcome};

fn releases() -> Vec<(&'static str, PathBuf)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../wit/released");
    let mut found: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.path().is_dir())
        .map(|entry| (&*entry.file_name().into_string().unwrap().leak(), entry.path()))
        .collect();
    found.sort();
    found
}

#[test]
fn guest_of_each_released_version_loads_and_runs() {
    let releases = releases();
    assert!(releases.iter().any(|(version, _)| *version == DOCUMENTS_VERSION), "{releases:?}");
    // All functions of the contract, before the answer.
    let imports: &str = [READS, CLOCK, LOG].concat().leak();
    let log = format!("(call $log (i32.const 1) (i32.const {SCRATCH}) (i32.const 2))");
    let calls = [&*get(), &*list(), "(drop (call $now))", &*log].concat();
    for (version, folder) in releases {
        let text = |path: &str| fs::read_to_string(folder.join(path)).unwrap();
        let wit = text("guest.wit");
        let package = wit.split_once("package innkeeper:guest@").unwrap().1;
        let functions: &str = package.split_once(';').unwrap().0.to_owned().leak();
        let run = |case, document: &str| {
            let manifest = text("examples/manifest.json");
            let tiny = Tiny::default().released(functions, &wit).manifest(&manifest);
            let read: Manifest = serde_json::from_str(&manifest).unwrap();
            // Examples show every member, and each part of a manifest has its export.
            let guest = if read.policy.is_some() { tiny.both() } else { tiny }
                .importing(imports)
                .data(SCRATCH, "v1ConfigMapnscm")
                .on_reconcile(&calls)
                .outcome(case, document);
            let guest = engine(Interruption::Epoch)
                .load(&guest.component(), &Limits::default())
                .unwrap_or_else(|error| panic!("a guest of {version}: {error}"));
            assert_eq!(guest.manifest().name, "example");
            assert_eq!(guest.manifest().owned.len(), 3);
            let run = guest.reconcile("{}", &mut Cluster::default()).unwrap();
            assert!(run.figures.clock_read);
            run.outcome
        };
        let (desired, failure) = (text("examples/desired.json"), text("examples/failure.json"));
        let read: Desired = serde_json::from_str(&desired).unwrap();
        assert_eq!(run(0, &desired), Outcome::Complete(read.clone()));
        assert_eq!(run(1, &desired), Outcome::Partial(read));
        let read: Failure = serde_json::from_str(&failure).unwrap();
        assert_eq!(run(2, &failure), Outcome::Failed(read));
    }
}

#[test]
fn policy_of_each_release_since_0_1_3_reviews_a_request() {
    let mut reviewed = Vec::new();
    for (version, folder) in releases() {
        let text = |path: &str| fs::read_to_string(folder.join(path));
        let Ok(verdict) = text("examples/verdict.json") else { continue };
        let wit = text("guest.wit").unwrap();
        let package = wit.split_once("package innkeeper:guest@").unwrap().1;
        let functions: &str = package.split_once(';').unwrap().0.to_owned().leak();
        let guest = Tiny::policy(&verdict)
            .released(functions, &wit)
            .importing([READS, CLOCK, LOG].concat().leak())
            .data(SCRATCH, "v1ConfigMapnscm")
            .review_wat(&[&*get(), &*list(), "(drop (call $now))"].concat());
        let guest = engine(Interruption::Epoch)
            .load(&guest.component(), &Limits::default())
            .unwrap_or_else(|error| panic!("a policy of {version}: {error}"));
        let review = guest.review("{}", &mut Cluster::default()).unwrap();
        let read: Verdict = serde_json::from_str(&verdict).unwrap();
        assert_eq!(review.outcome, ReviewOutcome::Decided(read));
        assert!(review.figures.clock_read);
        reviewed.push(version);
    }
    assert_eq!(reviewed.first(), Some(&"0.1.3"), "{reviewed:?}");
}
