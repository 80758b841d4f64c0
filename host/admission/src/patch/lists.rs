//! The alignment of two lists: which items of both are the same item.

use serde_json::Value;

/// The members that identify an item of a list of objects: the merge keys of Kubernetes' own lists.
/// The first set that identifies all items applies.
const KEYS: [&[&str]; 10] = [
    &["name"],
    &["key"],
    &["containerPort", "protocol"],
    &["port", "protocol"],
    &["uid"],
    &["mountPath"],
    &["devicePath"],
    &["topologyKey", "whenUnsatisfiable"],
    &["ip"],
    &["type"],
];

/// The most comparisons of items: each needs four bytes. Longer lists are aligned by position.
const COMPARISONS_MAX: usize = 1 << 16;

/// A step from one list to another, from front to back.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Step<'a> {
    /// The next item stays, with this content before and after.
    Keep(&'a Value, &'a Value),
    /// Removes the next item.
    Remove,
    /// Inserts an item before the next one.
    Add(&'a Value),
}

/// Returns the steps that make `after` of `before`.
pub(super) fn align<'a>(before: &'a [Value], after: &'a [Value]) -> Vec<Step<'a>> {
    let keys =
        KEYS.into_iter().find(|keys| identifies_all(keys, before) && identifies_all(keys, after));
    let is_same = |old: &Value, new: &Value| match keys {
        Some(keys) => keys.iter().all(|key| old.get(*key) == new.get(*key)),
        None => old == new,
    };
    let front = before.iter().zip(after).take_while(|(old, new)| is_same(old, new)).count();
    let (old, new) = (&before[front..], &after[front..]);
    let back = old.iter().rev().zip(new.iter().rev());
    let back = back.take_while(|(old, new)| is_same(old, new)).count();
    let (old, new) = (&old[..old.len() - back], &new[..new.len() - back]);

    let mut pairs: Vec<(usize, usize)> = (0..front).map(|at| (at, at)).collect();
    let middle = longest_common_subsequence(old, new, is_same);
    pairs.extend(middle.into_iter().map(|(old, new)| (front + old, front + new)));
    pairs.extend((0..back).map(|at| (before.len() - back + at, after.len() - back + at)));
    steps(before, after, &pairs, keys.is_some())
}

/// The steps for two lists with these pairs of the same item, by position. Without keys, further
/// items between two pairs are paired in order; with keys, they are different items.
fn steps<'a>(
    before: &'a [Value],
    after: &'a [Value],
    pairs: &[(usize, usize)],
    has_keys: bool,
) -> Vec<Step<'a>> {
    let mut steps = Vec::new();
    let (mut old_at, mut new_at) = (0, 0);
    for (old_pair, new_pair) in pairs.iter().copied().chain([(before.len(), after.len())]) {
        let (old, new) = (&before[old_at..old_pair], &after[new_at..new_pair]);
        let paired = if has_keys { 0 } else { old.len().min(new.len()) };
        steps.extend(old.iter().zip(new).take(paired).map(|(old, new)| Step::Keep(old, new)));
        steps.extend(old[paired..].iter().map(|_| Step::Remove));
        steps.extend(new[paired..].iter().map(Step::Add));
        if let (Some(old), Some(new)) = (before.get(old_pair), after.get(new_pair)) {
            steps.push(Step::Keep(old, new));
        }
        (old_at, new_at) = (old_pair + 1, new_pair + 1);
    }
    steps
}

/// Whether these members identify all items: each item has the first one, and no two items have the
/// same values.
fn identifies_all(keys: &[&str], items: &[Value]) -> bool {
    let id = |item: &Value| -> Option<String> {
        item.get(keys[0])?;
        Some(keys.iter().map(|key| item.get(key).map_or(String::new(), Value::to_string)).collect())
    };
    let Some(mut ids) = items.iter().map(id).collect::<Option<Vec<_>>>() else { return false };
    ids.sort_unstable();
    ids.windows(2).all(|pair| pair[0] != pair[1])
}

/// The pairs of positions of a longest common subsequence; none if the lists need more than
/// [`COMPARISONS_MAX`].
fn longest_common_subsequence(
    before: &[Value],
    after: &[Value],
    is_same: impl Fn(&Value, &Value) -> bool,
) -> Vec<(usize, usize)> {
    let width = after.len() + 1;
    if before.len().saturating_mul(after.len()) > COMPARISONS_MAX {
        return Vec::new();
    }
    // `lengths[old * width + new]` is the length for `before[old..]` and `after[new..]`.
    let mut lengths = vec![0_u32; (before.len() + 1) * width];
    for old in (0..before.len()).rev() {
        for new in (0..after.len()).rev() {
            let at = old * width + new;
            lengths[at] = if is_same(&before[old], &after[new]) {
                lengths[at + width + 1] + 1
            } else {
                lengths[at + width].max(lengths[at + 1])
            };
        }
    }
    let (mut old, mut new, mut pairs) = (0, 0, Vec::new());
    while old < before.len() && new < after.len() {
        let at = old * width + new;
        if is_same(&before[old], &after[new]) {
            pairs.push((old, new));
            (old, new) = (old + 1, new + 1);
        } else if lengths[at + width] >= lengths[at + 1] {
            old += 1;
        } else {
            new += 1;
        }
    }
    pairs
}
