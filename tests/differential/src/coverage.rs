//! What the random requests have reached.

use std::collections::BTreeMap;
use std::fmt;

use crate::case::Step;
use crate::real::Reply;

/// How often which kind of request had which outcome.
#[derive(Debug, Default)]
pub struct Coverage {
    /// By what it is about and the code.
    counts: BTreeMap<(String, u16), usize>,
    /// Requests.
    pub total: usize,
    /// Those that were accepted.
    pub accepted: usize,
    /// Those whose answer shows an object with two managers or more.
    pub shared: usize,
}

impl Coverage {
    /// Counts a request.
    pub fn count(&mut self, step: &Step, reply: &Reply) {
        *self.counts.entry((step.about.clone(), reply.code)).or_default() += 1;
        self.total += 1;
        self.accepted += usize::from(reply.code < 300);
        let managers = reply.body["metadata"]["managedFields"].as_array();
        self.shared += usize::from(managers.is_some_and(|list| list.len() > 1));
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
        let mut lines: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for ((about, code), count) in &self.counts {
            lines.entry(about).or_default().push(format!("{code}: {count}"));
        }
        for (about, counts) in lines {
            writeln!(f, "  {about:<50} {}", counts.join(", "))?;
        }
        Ok(())
    }
}
