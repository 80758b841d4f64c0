//! What the host of a cluster has found: its reports, and the status of its Modules.

use innkeeper_cluster::{ApiClient, ApiError};
use innkeeper_contract::Kind;
use innkeeper_core::audit::stored::{StoredReport, StoredResult};
use innkeeper_core::audit::{AuditCounts, AuditResult, CLUSTER_REPORT, REPORT, SOURCE};
use innkeeper_core::well_known::POLICY_LABEL;
use innkeeper_modules::Module;
use innkeeper_modules::module::{self, PolicyAuditStatus};
use serde_json::Value;

use super::filter::Filter;
use super::findings::{Findings, Row};

/// The reports of one page.
const PAGE: u32 = 100;

/// The most bytes of a page: a report of another tool may have 1 MiB.
const PAGE_BYTES_MAX: usize = 16 << 20;

/// The command that installs the definitions of reports.
const INSTALL: &str = "helm install openreports oci://ghcr.io/openreports/charts/openreports";

/// Reads what the host has found.
///
/// # Errors
/// If the API server cannot be reached or refuses a request, or no Module has an audit.
pub(super) async fn read(client: &ApiClient, filter: Filter<'_>) -> anyhow::Result<Findings> {
    let mut findings = Findings::default();
    let mut of_modules = AuditCounts::default();
    let modules = audits(client, filter, &mut findings).await?;
    for (name, audit) in &modules {
        let PolicyAuditStatus { passed, denied, warned, failed, .. } = *audit;
        of_modules.add(&AuditCounts {
            pass: passed,
            fail: denied,
            warn: warned,
            error: failed,
            skip: 0,
        });
        if audit.completed.is_none() {
            findings.note(format!("the audit of the Module {name} is not complete yet"));
        }
        if let Some(problem) = &audit.problem {
            findings.note(format!("Module {name}: {problem}"));
        }
    }
    let mut is_served = true;
    for (kind, namespace) in kinds(filter) {
        match read_kind(client, kind, namespace, filter, &mut findings).await {
            Ok(()) => {}
            Err(ApiError::NotServed { .. } | ApiError::NotFound { .. }) => is_served = false,
            Err(error) => {
                let kind = &kind.kind;
                findings.note_unreadable(format!("the objects {kind} cannot be read: {error}"));
            }
        }
    }
    if !is_served {
        findings.note(format!(
            "the API server serves no reports of openreports.io, so only the Modules say how many objects do not pass; to see which, run `{INSTALL}`"
        ));
        if filter.namespace.is_some() {
            findings.note_unreadable("the Modules do not say in which namespaces");
        }
    }
    // The Modules count also what no report lists.
    if filter.namespace.is_none() && findings.counts().total() < of_modules.total() {
        let mut rest = of_modules;
        for result in AuditResult::ALL {
            for _ in 0..findings.counts().of(result).min(rest.of(result)) {
                rest.discount(result);
            }
        }
        findings.count(&rest);
    }
    Ok(findings.finish())
}

/// The kinds of reports that have what is to be shown, with the namespace to list; empty for all.
fn kinds(filter: Filter<'_>) -> Vec<(&'static Kind, &str)> {
    match filter.namespace {
        Some(namespace) => vec![(&*REPORT, namespace)],
        None => vec![(&*REPORT, ""), (&*CLUSTER_REPORT, "")],
    }
}

/// The audits of the Modules, by name.
async fn audits(
    client: &ApiClient,
    filter: Filter<'_>,
    findings: &mut Findings,
) -> anyhow::Result<Vec<(String, PolicyAuditStatus)>> {
    let mut audits = Vec::new();
    for value in client.list_as::<Value>(&module::kind(), "").await? {
        let name = value["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        if filter.module.is_some_and(|module| module != name) {
            continue;
        }
        match Module::from_value(&value) {
            Ok(module) => {
                let policy = module.status.and_then(|status| status.policy);
                audits.extend(policy.and_then(|policy| policy.audit).map(|audit| (name, audit)));
            }
            Err(error) => {
                findings.note_unreadable(format!("Module {name} cannot be read: {error}"));
            }
        }
    }
    if audits.is_empty() {
        let which = filter.module.map(|name| format!(" {name}")).unwrap_or_default();
        findings.note_unreadable(format!(
            "no Module{which} has an audit: its policy is not active yet, spec.policy.background is false, or the host has no admission port"
        ));
    }
    Ok(audits)
}

/// Reads the reports of one kind, page by page.
async fn read_kind(
    client: &ApiClient,
    kind: &Kind,
    namespace: &str,
    filter: Filter<'_>,
    findings: &mut Findings,
) -> Result<(), ApiError> {
    let mut start = String::new();
    loop {
        let page = client.list_raw_page(kind, namespace, PAGE, PAGE_BYTES_MAX, &start).await?;
        for item in &page.items {
            // Of another tool, with members of other types.
            let Ok(report) = serde_json::from_str::<StoredReport>(item.get()) else { continue };
            take(&report, filter, findings);
        }
        if page.next.is_empty() {
            return Ok(());
        }
        start = page.next;
    }
}

/// Takes a report, if it is one of the host about this module.
fn take(report: &StoredReport, filter: Filter<'_>, findings: &mut Findings) {
    let Some(module) = report.metadata.labels.get(POLICY_LABEL) else { return };
    if report.source != SOURCE || filter.module.is_some_and(|one| one != module) {
        return;
    }
    findings.count(&report.summary);
    for result in &report.results {
        if let Some(row) = row(result, &report.metadata.namespace) {
            findings.add(row);
        }
    }
}

/// A row of a report in a namespace. Its writers say nothing of objects elsewhere.
fn row(result: &StoredResult, namespace: &str) -> Option<Row> {
    let known = AuditResult::ALL.into_iter().find(|one| one.as_str() == result.result)?;
    let subject = result.resources.first().filter(|one| one.namespace == namespace)?;
    Some(Row {
        namespace: subject.namespace.clone(),
        api_version: subject.api_version.clone(),
        kind: subject.kind.clone(),
        name: subject.name.clone(),
        policy: result.policy.clone(),
        result: known,
        reason: result.properties.get("reason").cloned().unwrap_or_default(),
        message: result.message.clone(),
    })
}

#[cfg(test)]
mod tests;
