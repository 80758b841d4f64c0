//! What policies say of existing objects, for people and programs.

use innkeeper_core::audit::{AuditCounts, AuditResult};
use serde_json::{Value, json};

use crate::out::Page;
use crate::review;

/// The most objects that the command shows; it counts the rest.
const ROWS_MAX: usize = 100_000;

/// An object that does not pass.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Row {
    /// Its namespace; empty for a cluster-scoped object.
    pub(super) namespace: String,
    pub(super) api_version: String,
    pub(super) kind: String,
    pub(super) name: String,
    pub(super) policy: String,
    pub(super) result: AuditResult,
    pub(super) reason: String,
    pub(super) message: String,
}

/// What policies say of existing objects.
#[derive(Debug, Default)]
pub(super) struct Findings {
    rows: Vec<Row>,
    counts: AuditCounts,
    notes: Vec<String>,
    /// Whether a part of the audit cannot be read.
    is_unreadable: bool,
}

impl Findings {
    /// Adds an object that does not pass, without counting it.
    pub(super) fn add(&mut self, row: Row) {
        if self.rows.len() < ROWS_MAX {
            self.rows.push(row);
        }
    }

    /// Adds counts of objects.
    pub(super) fn count(&mut self, counts: &AuditCounts) {
        self.counts.add(counts);
    }

    /// Adds a remark for standard error.
    pub(super) fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    /// Notes that a part of the audit cannot be read.
    pub(super) fn note_unreadable(&mut self, note: impl Into<String>) {
        self.note(note);
        self.is_unreadable = true;
    }

    /// How many objects had which result.
    pub(super) fn counts(&self) -> &AuditCounts {
        &self.counts
    }

    /// The remarks.
    pub(super) fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Puts the objects in order, and says how many of them are not shown.
    pub(super) fn finish(mut self) -> Self {
        self.rows.sort();
        self.rows.dedup();
        let shown = u64::try_from(self.rows.len()).unwrap_or(u64::MAX);
        let AuditCounts { fail, warn, error, .. } = self.counts;
        let hidden = fail.saturating_add(warn).saturating_add(error).saturating_sub(shown);
        if hidden > 0 {
            self.notes.push(format!("{hidden} further objects do not pass, and are counted only"));
        }
        self
    }

    /// The exit status of the command.
    pub(super) fn status(&self) -> u8 {
        let has =
            |result| self.counts.of(result) > 0 || self.rows.iter().any(|row| row.result == result);
        if self.is_unreadable || has(AuditResult::Error) {
            review::FAILED
        } else if has(AuditResult::Fail) {
            review::DENIED
        } else {
            0
        }
    }

    /// The objects as a table; nothing if all pass.
    pub(super) fn page(&self) -> Page {
        let mut page = Page::default();
        if self.rows.is_empty() {
            return page;
        }
        let head = ["NAMESPACE", "KIND", "NAME", "POLICY", "RESULT", "MESSAGE"];
        let mut table = vec![head.map(str::to_owned)];
        table.extend(self.rows.iter().map(|row| {
            let namespace = match row.namespace.as_str() {
                "" => "<none>",
                namespace => namespace,
            };
            let result = row.result.decision();
            [namespace, &row.kind, &row.name, &row.policy, result, &row.message].map(str::to_owned)
        }));
        page.table(&table);
        page
    }

    /// The same for programs.
    pub(super) fn json(&self) -> Value {
        let results: Vec<Value> = self
            .rows
            .iter()
            .map(|row| {
                let mut result = json!({
                    "apiVersion": row.api_version,
                    "kind": row.kind,
                    "name": row.name,
                    "policy": row.policy,
                    "result": row.result.decision(),
                    "reason": row.reason,
                    "message": row.message,
                });
                if !row.namespace.is_empty() {
                    result["namespace"] = json!(row.namespace);
                }
                result
            })
            .collect();
        let AuditCounts { pass, fail, warn, error, .. } = self.counts;
        json!({
            "results": results,
            "summary": {"passed": pass, "denied": fail, "warned": warn, "failed": error},
            "notes": self.notes,
        })
    }

    /// The counts in one line.
    pub(super) fn summary(&self) -> String {
        let AuditCounts { pass, fail, warn, error, .. } = self.counts;
        format!("objects: {pass} passed, {fail} denied, {warn} warned, {error} failed")
    }
}
