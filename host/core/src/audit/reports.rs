//! The reports of one policy.
//!
//! The objects of a namespace are in one report or, if that would be too large, in a power of two
//! of reports. The identity of an object decides which report lists it, so a change of one object
//! changes one report.

use std::collections::BTreeMap;

use sha2::{Digest as _, Sha256};

use super::counts::AuditCounts;
use super::finding::Finding;
use super::report::{RESULTS_MAX, Report};
use crate::host_objects::policy_object_name;

/// The most bytes of a report: etcd takes 1.5 MiB in one request, and the objects of one list come
/// together.
pub const REPORT_BYTES_MAX: usize = 768 << 10;

/// The most parts of a namespace. Findings that fit into none of them are counted only.
pub const PARTS_MAX: usize = 32;

/// The most findings of one policy that reports list; the rest is counted only.
pub const FINDINGS_MAX: usize = 5_000;

/// The most reports of one policy, those with findings first.
pub const REPORTS_MAX: usize = 2_000;

/// The bytes of a report without its results: bounded by the limits on names.
const FRAME_BYTES: usize = 8 << 10;

/// The reports of a module's policy, from the counts of each namespace (empty for cluster-scoped
/// objects) and from the findings, which need no order.
///
/// The same counts and findings give the same reports, in the same order.
pub fn reports<'a>(
    module: &str,
    counts: &'a BTreeMap<Box<str>, AuditCounts>,
    findings: impl IntoIterator<Item = &'a Finding>,
) -> Vec<Report<'a>> {
    let mut ordered: Vec<&Finding> = findings.into_iter().collect();
    ordered.sort_by(|a, b| a.identity().cmp(&b.identity()));
    ordered.truncate(FINDINGS_MAX);
    let mut by_namespace: BTreeMap<&str, Vec<&Finding>> = BTreeMap::new();
    for finding in ordered {
        by_namespace.entry(finding.key.namespace()).or_default().push(finding);
    }
    // Namespaces with findings first; a stable sort keeps them in the order of their names.
    let mut namespaces: Vec<(&'a str, &AuditCounts)> =
        counts.iter().map(|(namespace, counts)| (&**namespace, counts)).collect();
    namespaces.retain(|(_, counts)| counts.total() > 0);
    namespaces.sort_by_key(|(namespace, _)| !by_namespace.contains_key(namespace));
    let mut reports = Vec::new();
    for (namespace, counts) in namespaces {
        let findings = by_namespace.remove(namespace).unwrap_or_default();
        let parts = parts(&findings);
        if reports.len() + parts.len() > REPORTS_MAX {
            break;
        }
        reports.extend(of_namespace(module, namespace, counts, parts));
    }
    reports.sort_by(|a, b| (a.namespace, &a.name).cmp(&(b.namespace, &b.name)));
    reports
}

/// The reports of one namespace. The first one also counts the objects that no report lists.
fn of_namespace<'a>(
    module: &str,
    namespace: &'a str,
    counts: &AuditCounts,
    parts: Vec<Vec<&'a Finding>>,
) -> Vec<Report<'a>> {
    let mut rest = *counts;
    let mut reports = Vec::new();
    for (index, findings) in parts.into_iter().enumerate() {
        if findings.is_empty() && index > 0 {
            continue;
        }
        let mut of_part = AuditCounts::default();
        for finding in &findings {
            of_part.count(finding.result);
            rest.discount(finding.result);
        }
        let name = name(module, index + 1);
        reports.push(Report { name, namespace, counts: of_part, findings });
    }
    if let Some(first) = reports.first_mut() {
        first.counts.add(&rest);
    }
    reports
}

/// The name of a report, for example `innkeeper-policy-labels` and `innkeeper-policy-labels.2`. The
/// name of a Module has no dot, so no two Modules share a name, and at most 63 bytes, so that the
/// name fits.
fn name(module: &str, number: usize) -> String {
    let name = policy_object_name(module);
    if number == 1 { name } else { format!("{name}.{number}") }
}

/// Splits findings into the fewest parts, a power of two, that are small enough.
fn parts<'a>(findings: &[&'a Finding]) -> Vec<Vec<&'a Finding>> {
    let mut count = findings.len().div_ceil(RESULTS_MAX).next_power_of_two().min(PARTS_MAX);
    loop {
        let mut parts = split(findings, count);
        if parts.iter().all(|part| fitting(part) == part.len()) {
            return parts;
        }
        if count >= PARTS_MAX {
            for part in &mut parts {
                part.truncate(fitting(part));
            }
            return parts;
        }
        count *= 2;
    }
}

/// How many findings of a part fit into one report.
fn fitting(part: &[&Finding]) -> usize {
    let mut bytes = FRAME_BYTES;
    let fits = |finding: &&&Finding| {
        bytes += finding.report_bytes();
        bytes <= REPORT_BYTES_MAX
    };
    part.iter().take(RESULTS_MAX).take_while(fits).count()
}

fn split<'a>(findings: &[&'a Finding], count: usize) -> Vec<Vec<&'a Finding>> {
    let mut parts = vec![Vec::new(); count];
    for finding in findings {
        let place = usize::from(place(finding)) % count.max(1);
        if let Some(part) = parts.get_mut(place) {
            part.push(*finding);
        }
    }
    parts
}

/// A number that depends on the identity of the object only, so that its findings stay in one part.
fn place(finding: &Finding) -> u16 {
    let (namespace, api_version, kind, name) = finding.identity();
    let mut hash = Sha256::new();
    for text in [namespace, api_version, kind, name] {
        hash.update(text);
        hash.update([0]);
    }
    let digest = hash.finalize();
    u16::from_be_bytes([digest[0], digest[1]])
}
