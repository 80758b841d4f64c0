//! Label selectors, as text and as documents.

use std::collections::{BTreeMap, BTreeSet};

use innkeeper_core::selector::{LabelSelector, Operator, Requirement};
use innkeeper_core::{Labels, Selector};

/// Values other than those that a selector names.
const VALUES: [&str; 6] = ["", "a", "-", "0", "7", "9223372036854775807"];

/// Reads two selectors, one a line. What is read is printed as it was, matches what a naive reading
/// of its requirements matches, and overlaps with another one if some labels match both.
pub fn fuzz_entry(data: &[u8]) {
    if let Ok(document) = serde_json::from_slice::<LabelSelector>(data) {
        if let Ok(selector) = Selector::try_from(&document) {
            check(&selector);
        }
        return;
    }
    let Ok(text) = std::str::from_utf8(data) else { return };
    let (one, other) = text.split_once('\n').unwrap_or((text, ""));
    let one = one.parse::<Selector>();
    if let Ok(one) = &one {
        check(one);
    }
    if let (Ok(one), Ok(other)) = (one, other.parse::<Selector>()) {
        let overlaps = one.overlaps(&other);
        assert_eq!(overlaps, other.overlaps(&one), "{one} and {other} overlap one way only");
        for labels in candidates(&[&one, &other]) {
            let both = one.matches(&labels) && other.matches(&labels);
            assert!(!both || overlaps, "{labels:?} match {one} and {other}, which do not overlap");
        }
    }
}

fn check(selector: &Selector) {
    let text = selector.to_string();
    let again: Selector = text.parse().expect("a printed selector is read");
    assert_eq!(*selector, again, "{text}");
    assert_eq!(text, again.to_string());
    if let Some((key, value)) = selector.first_equality() {
        let has = |labels: &Labels| labels.get(key) == Some(value);
        assert!(
            candidates(&[selector])
                .iter()
                .all(|labels| { !selector.matches(labels) || has(labels) })
        );
    }
    for labels in candidates(&[selector]) {
        let naive = selector.requirements().iter().all(|one| holds(one, &labels));
        assert_eq!(selector.matches(&labels), naive, "{text} of {labels:?}");
    }
}

/// What a requirement means, read off Kubernetes' documentation.
fn holds(requirement: &Requirement, labels: &Labels) -> bool {
    let value = labels.iter().find(|(key, _)| *key == &*requirement.key).map(|(_, value)| value);
    let number = value.and_then(|value| value.parse::<i64>().ok());
    match &requirement.operator {
        Operator::In(values) => value.is_some_and(|value| values.contains(&value.into())),
        Operator::NotIn(values) => value.is_none_or(|value| !values.contains(&value.into())),
        Operator::Exists => value.is_some(),
        Operator::DoesNotExist => value.is_none(),
        Operator::GreaterThan(bound) => number.is_some_and(|number| number > *bound),
        Operator::LessThan(bound) => number.is_some_and(|number| number < *bound),
    }
}

/// Sets of labels that may tell the selectors apart: each named key with each named value, and
/// without.
fn candidates(selectors: &[&Selector]) -> Vec<Labels> {
    let requirements = || selectors.iter().flat_map(|selector| selector.requirements()).take(16);
    let keys: BTreeSet<&str> = requirements().map(|one| &*one.key).collect();
    let mut values: BTreeSet<String> = VALUES.iter().map(ToString::to_string).collect();
    for requirement in requirements() {
        match &requirement.operator {
            Operator::In(named) | Operator::NotIn(named) => {
                values.extend(named.iter().take(8).map(ToString::to_string));
            }
            Operator::GreaterThan(bound) | Operator::LessThan(bound) => {
                let near = [bound.checked_sub(1), Some(*bound), bound.checked_add(1)];
                values.extend(near.iter().flatten().map(i64::to_string));
            }
            Operator::Exists | Operator::DoesNotExist => {}
        }
    }
    let mut sets = vec![Labels::default()];
    for value in &values {
        sets.push(keys.iter().map(|key| (*key, value.as_str())).collect());
        // One key with this value, and the others with another one or without.
        for key in &keys {
            sets.push(std::iter::once((*key, value.as_str())).collect());
            let rest: BTreeMap<&str, &str> =
                keys.iter().map(|other| (*other, if other == key { value } else { "a" })).collect();
            sets.push(rest.into_iter().collect());
        }
    }
    sets
}
