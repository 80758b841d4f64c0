//! The incompatible changes that a comparison found.

use crate::foreign;

/// The most changes that a comparison reports.
pub(super) const FINDINGS_MAX: usize = 100;

/// The longest text of one change, in bytes: names and rules in a schema may be of any length.
pub(super) const FINDING_BYTES_MAX: usize = 256;

/// Incompatible changes, in order.
#[derive(Default)]
pub(super) struct Findings(Vec<String>);

impl Findings {
    /// Adds one change, as one line of bounded length.
    pub(super) fn add(&mut self, text: impl Into<String>) {
        if !self.is_full() {
            self.0.push(foreign::one_line(text.into(), FINDING_BYTES_MAX));
        }
    }

    /// Adds a change of the schema at a path; the empty path is the whole object.
    pub(super) fn add_at(&mut self, path: &str, what: &str) {
        let place = if path.is_empty() { "the object" } else { path };
        self.add(format!("{place} {what}"));
    }

    /// Adds a place of the schema and what is there, unless it is there already.
    pub(super) fn add_at_once(&mut self, path: &str, what: &str) {
        let place = if path.is_empty() { "the object" } else { path };
        let text = foreign::one_line(format!("{place} ({what})"), FINDING_BYTES_MAX);
        if !self.0.contains(&text) {
            self.add(text);
        }
    }

    /// Whether further changes would be dropped.
    pub(super) fn is_full(&self) -> bool {
        self.0.len() >= FINDINGS_MAX
    }

    /// The changes, in the order in which they were found.
    pub(super) fn into_vec(self) -> Vec<String> {
        self.0
    }
}
