//! The order of the reads of one kind's schema: a later read may end first.

use std::collections::BTreeMap;

use innkeeper_contract::Kind;

/// The reads of the schemas of statuses, numbered in the order in which they begin.
#[derive(Debug, Default)]
pub(super) struct SchemaReads {
    last: u64,
    /// The number of the newest result of each kind.
    newest: BTreeMap<Kind, u64>,
}

impl SchemaReads {
    /// Numbers a read that begins.
    pub(super) fn begin(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// Takes the result of a read; `false` if that of a later read is known already.
    pub(super) fn is_newest(&mut self, kind: &Kind, number: u64) -> bool {
        let newest = self.newest.entry(kind.clone()).or_default();
        let is_newest = number > *newest;
        *newest = number.max(*newest);
        is_newest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn result_of_an_earlier_read_is_dropped_when_a_later_one_ended_first() {
        let [a, b] = ["As", "Bs"].map(|plural| Kind::namespaced("x.dev/v1", "X", plural));
        let mut reads = SchemaReads::default();
        let [first, second, third] = [reads.begin(), reads.begin(), reads.begin()];
        assert!(reads.is_newest(&a, second));
        assert!(!reads.is_newest(&a, first), "the schema of the first read is older");
        assert!(reads.is_newest(&b, first), "another kind");
        assert!(reads.is_newest(&a, third));
    }
}
