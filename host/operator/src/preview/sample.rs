//! Which primaries a preview runs, and which objects it reviews.

use std::collections::BTreeMap;
use std::sync::Arc;

use innkeeper_core::Object;

/// A preview runs the candidate for at most this many primaries, or reviews so many objects. Of
/// more it takes a sample.
pub(super) const PRIMARIES_MAX: usize = 500;

/// At most [`PRIMARIES_MAX`] primaries, in order. Namespaces take turns, and the sample is even
/// within each: the primaries of every namespace are in it, however many another one has.
pub(super) fn choose(primaries: &[Arc<Object>]) -> Vec<&Arc<Object>> {
    choose_by(primaries, |primary| primary.key.namespace().to_owned())
}

/// The same of anything, with other groups than namespaces.
pub(super) fn choose_by<T, G: Ord>(all: &[T], group: impl Fn(&T) -> G) -> Vec<&T> {
    let mut by_group: BTreeMap<G, Vec<usize>> = BTreeMap::new();
    for (index, one) in all.iter().enumerate() {
        by_group.entry(group(one)).or_default().push(index);
    }
    // The smallest groups first: the others share what these leave.
    let mut groups: Vec<_> = by_group.into_values().collect();
    groups.sort_by_key(Vec::len);
    let (mut room, mut groups_left) = (PRIMARIES_MAX, groups.len());
    let mut sample = Vec::with_capacity(room.min(all.len()));
    for group in groups {
        let some = group.len().min(room.div_ceil(groups_left.max(1)));
        sample.extend((0..some).filter_map(|at| group.get(at * group.len() / some).copied()));
        (room, groups_left) = (room - some, groups_left - 1);
    }
    sample.sort_unstable();
    sample.into_iter().filter_map(|index| all.get(index)).collect()
}

#[cfg(test)]
mod tests {
    use innkeeper_contract::Kind;

    use super::*;

    fn primaries(namespace: &str, count: usize) -> Vec<Arc<Object>> {
        let kind = Kind::namespaced("example.com/v1", "Podroute", "podroutes");
        let object = |index: usize| {
            let text = format!(
                r#"{{"metadata":{{"namespace":"{namespace}","name":"p{index:05}","uid":"u","resourceVersion":"1"}}}}"#
            );
            Arc::new(Object::decode(&kind, &text, None).unwrap())
        };
        (0..count).map(object).collect()
    }

    fn counts(primaries: &[Arc<Object>]) -> BTreeMap<&str, usize> {
        let mut counts = BTreeMap::new();
        for primary in choose(primaries) {
            *counts.entry(primary.key.namespace()).or_default() += 1;
        }
        counts
    }

    #[test]
    fn sample_contains_each_namespace_when_one_has_many_primaries() {
        let mut all = primaries("a-flood", 10_000);
        all.extend(primaries("b-few", 3));
        all.extend(primaries("c-one", 1));
        let expected = BTreeMap::from([("a-flood", PRIMARIES_MAX - 4), ("b-few", 3), ("c-one", 1)]);
        assert_eq!(counts(&all), expected);
        assert_eq!(counts(&primaries("a", 7)), BTreeMap::from([("a", 7)]));
        assert!(choose(&[]).is_empty());
        let many: Vec<_> = (0..2_000).flat_map(|n| primaries(&format!("n{n}"), 1)).collect();
        assert_eq!(choose(&many).len(), PRIMARIES_MAX, "more namespaces than may be chosen");
    }
}
