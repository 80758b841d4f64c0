//! What the random requests have reached.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde_json::Value;

use crate::case::Step;
use crate::server::Reply;
use crate::types::Types;

/// How often which kind of request had which outcome.
#[derive(Debug, Default)]
pub struct Coverage {
    /// What requests touch.
    types: Types,
    /// By what it is about, what it touches and the code. A request that touches several kinds of
    /// lists is counted with each.
    counts: BTreeMap<(String, &'static str, u16), usize>,
    /// Requests.
    pub total: usize,
    /// Those that were accepted.
    pub accepted: usize,
    /// Those whose answer shows an object that two managers or more own something of.
    pub shared: usize,
}

/// Whether an object has entries of two managers: of two names, not of one that writes in several
/// ways.
fn is_shared(object: &Value) -> bool {
    let entries = object["metadata"]["managedFields"].as_array();
    let names: BTreeSet<&str> =
        entries.into_iter().flatten().filter_map(|entry| entry["manager"].as_str()).collect();
    names.len() > 1
}

impl Coverage {
    /// One that tells kinds of lists apart, by what is published of types.
    pub fn of(types: Types) -> Self {
        Self { types, ..Self::default() }
    }

    /// Counts a request.
    pub fn count(&mut self, step: &Step, reply: &Reply) {
        for touched in self.types.touched(step) {
            *self.counts.entry((step.about.clone(), touched, reply.code)).or_default() += 1;
        }
        self.total += 1;
        self.accepted += usize::from(reply.code < 300);
        self.shared += usize::from(is_shared(&reply.body));
    }
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |count: usize| 100 * count / self.total.max(1);
        writeln!(
            f,
            "{} requests, {} % accepted, {} % about an object of several managers",
            self.total,
            percent(self.accepted),
            percent(self.shared)
        )?;
        let mut lines: BTreeMap<(&str, &str), Vec<String>> = BTreeMap::new();
        for ((about, touched, code), count) in &self.counts {
            lines.entry((about, touched)).or_default().push(format!("{code}: {count}"));
        }
        for ((about, touched), counts) in lines {
            writeln!(f, "  {about:<40} {touched:<12} {}", counts.join(", "))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn one_manager_who_writes_in_two_ways_is_one() {
        let object = |names: &[&str]| {
            let entries: Vec<Value> = names.iter().map(|name| json!({ "manager": name })).collect();
            json!({"metadata": {"managedFields": entries}})
        };
        assert!(!is_shared(&object(&["ann", "ann"])));
        assert!(is_shared(&object(&["ann", "bob", "ann"])));
        assert!(!is_shared(&json!({"items": []})));
    }
}
