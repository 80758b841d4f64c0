//! The reports of what policies say of existing objects.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use innkeeper_contract::Kind;
use innkeeper_core::audit::stored::StoredReport;
use innkeeper_core::audit::{
    AuditCounts, AuditResult, DIGEST_ANNOTATION, FINDINGS_MAX, Finding, MESSAGE_BYTES_MAX,
    PARTS_MAX, REPORT_BYTES_MAX, REPORTS_MAX, RESULTS_MAX, Report, ReportOwner, reports,
};
use innkeeper_core::review::CheckedDenial;
use innkeeper_core::{ObjectKey, names};
use jiff::Timestamp;
use serde_json::{Value, json};

const OWNER: ReportOwner<'static> =
    ReportOwner { api_version: "innkeeper.dev/v1alpha1", module: "labels", uid: "u-1" };

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn finding(namespace: &str, name: &str, message: &str) -> Finding {
    let kind = Arc::new(Kind::namespaced("apps/v1", "Deployment", "deployments"));
    let key = ObjectKey::new(namespace, name);
    Finding::new((&kind, &key, "u"), AuditResult::Fail, "Forbidden", message)
}

/// The counts of findings, and of ten objects that pass in each namespace.
fn counts(findings: &[Finding]) -> BTreeMap<Box<str>, AuditCounts> {
    let mut counts: BTreeMap<Box<str>, AuditCounts> = BTreeMap::new();
    for finding in findings {
        let passing = AuditCounts { pass: 10, ..AuditCounts::default() };
        counts.entry(finding.key.namespace().into()).or_insert(passing).count(finding.result);
    }
    counts
}

fn stored(document: &Value) -> StoredReport {
    serde_json::from_value(document.clone()).unwrap()
}

fn documents(reports: &[Report<'_>], stored: &[StoredReport], now: i64) -> Vec<Value> {
    let of = |report: &Report<'_>| {
        let live = stored.iter().find(|one| {
            one.metadata.name == report.name && one.metadata.namespace == report.namespace
        });
        report.document(&OWNER, live.map_or(&[], |live| &live.results), at(now))
    };
    reports.iter().map(of).collect()
}

/// Some findings in a few namespaces, some with long messages.
fn random(rng: &mut fastrand::Rng, count: usize) -> Vec<Finding> {
    let mut names = BTreeSet::new();
    (0..count)
        .filter_map(|_| {
            let namespace = ["", "a", "b", "web"][rng.usize(..4)];
            let name = format!("o-{}", rng.u32(..1_000_000));
            let message = "m\"".repeat(rng.usize(..600));
            names.insert((namespace, name.clone())).then(|| finding(namespace, &name, &message))
        })
        .collect()
}

#[test]
fn reports_count_each_object_once_and_are_small_whatever_the_findings_are() {
    for seed in 0..8 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let count = rng.usize(..1_500);
        let findings = random(&mut rng, count);
        let counts = counts(&findings);
        let reports = reports("labels", &counts, &findings);
        let mut listed = BTreeSet::new();
        let mut sums: BTreeMap<Box<str>, AuditCounts> = BTreeMap::new();
        for (report, document) in reports.iter().zip(documents(&reports, &[], 7)) {
            let bytes = document.to_string().len();
            assert!(bytes <= REPORT_BYTES_MAX, "seed {seed}: {bytes}");
            assert!(report.findings.len() <= RESULTS_MAX);
            assert!(names::is_subdomain(&report.name), "{}", report.name);
            sums.entry(report.namespace.into()).or_default().add(&report.counts);
            for finding in &report.findings {
                assert_eq!(finding.key.namespace(), report.namespace);
                assert!(listed.insert(finding.identity()), "seed {seed}: listed twice");
            }
        }
        assert_eq!(sums, counts, "seed {seed}");
        assert_eq!(listed.len(), findings.len(), "seed {seed}: all fit");
    }
}

#[test]
fn reports_do_not_depend_on_the_order_of_findings() {
    for seed in 0..5 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut findings = random(&mut rng, 700);
        let counts = counts(&findings);
        let ordered = documents(&reports("labels", &counts, &findings), &[], 7);
        rng.shuffle(&mut findings);
        assert_eq!(documents(&reports("labels", &counts, &findings), &[], 7), ordered);
    }
}

#[test]
fn digest_of_a_report_stays_when_only_the_time_differs() {
    let findings = random(&mut fastrand::Rng::with_seed(1), 500);
    let counts = counts(&findings);
    let reports = reports("labels", &counts, &findings);
    let first = documents(&reports, &[], 7);
    let later = documents(&reports, &[], 8);
    let live: Vec<_> = first.iter().map(stored).collect();
    for ((first, later), report) in first.iter().zip(&later).zip(&reports) {
        assert_ne!(first, later, "the times differ");
        let digest = &first["metadata"]["annotations"][DIGEST_ANNOTATION];
        assert_eq!(*digest, report.digest(&OWNER));
        assert_eq!(later["metadata"]["annotations"][DIGEST_ANNOTATION], *digest);
    }
    assert_eq!(documents(&reports, &live, 9), first, "known results keep their time");
}

#[test]
fn change_of_one_object_changes_one_report_and_keeps_the_time_of_the_others() {
    for seed in 0..5 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut findings = random(&mut rng, 900);
        let counts = counts(&findings);
        let before = documents(&reports("labels", &counts, &findings), &[], 7);
        let live: Vec<_> = before.iter().map(stored).collect();
        let changed = rng.usize(..findings.len());
        findings[changed].message = "another".into();
        let after = documents(&reports("labels", &counts, &findings), &live, 9);
        assert_eq!(after.len(), before.len());
        let differing: Vec<_> = before.iter().zip(&after).filter(|(a, b)| a != b).collect();
        assert_eq!(differing.len(), 1, "seed {seed}");
        let results = differing[0].1["results"].as_array().unwrap();
        let new: Vec<_> = results.iter().filter(|one| one["timestamp"]["seconds"] == 9).collect();
        assert_eq!(new.len(), 1);
        assert_eq!(new[0]["message"], "another");
    }
}

#[test]
fn worst_findings_fit_into_small_reports_and_the_rest_is_counted() {
    // Given one namespace in which everything fails with the longest texts.
    let namespace = "n".repeat(63);
    let findings: Vec<_> = (0..10_000)
        .map(|number| {
            let name = format!("{}-{number:05}", "a".repeat(247));
            finding(&namespace, &name, &"\"\\\u{1b}\n".repeat(400_000 / (number + 1)))
        })
        .collect();
    assert!(findings.iter().all(|one| one.message.len() <= MESSAGE_BYTES_MAX + 3));
    let counts = counts(&findings);
    let reports = reports(&"m".repeat(63), &counts, &findings);
    let documents = documents(&reports, &[], 7);

    // Then no report is large, and the reports are few.
    assert!(documents.iter().all(|one| one.to_string().len() <= REPORT_BYTES_MAX));
    assert!(reports.len() <= PARTS_MAX);
    let listed: usize = reports.iter().map(|report| report.findings.len()).sum();
    assert!((4_000..=FINDINGS_MAX).contains(&listed), "{listed}");
    let failing: u64 = reports.iter().map(|report| report.counts.fail).sum();
    assert_eq!(failing, 10_000);
}

#[test]
fn many_namespaces_give_a_bounded_number_of_reports_with_findings_first() {
    let findings: Vec<_> =
        (0..50).map(|number| finding(&format!("z-{number}"), "a", "no")).collect();
    let mut counts = counts(&findings);
    for number in 0..3_000 {
        let passing = AuditCounts { pass: 1, ..AuditCounts::default() };
        counts.insert(format!("a-{number}").into(), passing);
    }
    counts.insert("empty".into(), AuditCounts::default());
    let reports = reports("labels", &counts, &findings);
    assert_eq!(reports.len(), REPORTS_MAX);
    assert_eq!(reports.iter().filter(|report| !report.findings.is_empty()).count(), 50);
    assert!(reports.iter().all(|report| report.namespace != "empty"));
}

#[test]
fn report_has_the_members_of_openreports() {
    let findings = [finding("web", "shop", "the label team is missing")];
    let counts = counts(&findings);
    let documents = documents(&reports("labels", &counts, &findings), &[], 7);
    assert_eq!(
        documents,
        [json!({
            "apiVersion": "openreports.io/v1alpha1", "kind": "Report",
            "metadata": {
                "name": "innkeeper-policy-labels", "namespace": "web",
                "labels": {"innkeeper.dev/policy": "labels",
                    "app.kubernetes.io/managed-by": "innkeeper"},
                "annotations": {"innkeeper.dev/report-digest":
                    documents[0]["metadata"]["annotations"]["innkeeper.dev/report-digest"]},
                "ownerReferences": [{"apiVersion": "innkeeper.dev/v1alpha1", "kind": "Module",
                    "name": "labels", "uid": "u-1"}],
            },
            "source": "innkeeper",
            "scope": {"apiVersion": "v1", "kind": "Namespace", "name": "web"},
            "configuration": {"limits": {"maxResults": 200,
                "statusFilter": ["fail", "error", "warn"]}},
            "summary": {"pass": 10, "fail": 1, "warn": 0, "error": 0, "skip": 0},
            "results": [{
                "policy": "labels", "result": "fail", "scored": true,
                "resources": [{"apiVersion": "apps/v1", "kind": "Deployment",
                    "namespace": "web", "name": "shop", "uid": "u"}],
                "message": "the label team is missing",
                "properties": {"reason": "Forbidden"},
                "timestamp": {"seconds": 7, "nanos": 0},
            }],
        })]
    );
}

#[test]
fn message_of_a_denial_names_its_fields() {
    let cause = |field: &str, message: &str| innkeeper_contract::Cause {
        field: field.to_owned(),
        message: message.to_owned(),
        reason: String::new(),
    };
    let denial = CheckedDenial {
        message: "labels are missing".to_owned(),
        reason: "Invalid".to_owned(),
        code: 422,
        causes: vec![cause("metadata.labels[team]", "add it"), cause("", "labels are missing")],
    };
    assert_eq!(Finding::message_of(&denial), "labels are missing; metadata.labels[team]: add it");

    // A message that only lists the faults is not repeated.
    let denial = CheckedDenial {
        message: "team is missing; tier is missing".to_owned(),
        causes: vec![cause("labels[team]", "team is missing"), cause("a", "tier is missing")],
        ..denial
    };
    assert_eq!(Finding::message_of(&denial), "labels[team]: team is missing; a: tier is missing");
}
