//! Which file imports which.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Files, each with those that it imports.
#[derive(Default)]
pub(super) struct Graph {
    imports: BTreeMap<String, BTreeSet<String>>,
}

impl Graph {
    pub(super) fn add(&mut self, from: &str, to: &str) {
        if from != to {
            self.imports.entry(from.to_owned()).or_default().insert(to.to_owned());
        }
    }

    /// Those that import others.
    pub(super) fn files(&self) -> impl Iterator<Item = &str> {
        self.imports.keys().map(String::as_str)
    }

    /// The shortest way from a file to itself, without the file at its end.
    pub(super) fn circle<'a>(&'a self, file: &'a str) -> Option<Vec<&'a str>> {
        let mut reached_from: BTreeMap<&str, &str> = BTreeMap::new();
        let mut next = VecDeque::from([file]);
        while let Some(from) = next.pop_front() {
            for to in self.imports.get(from).into_iter().flatten() {
                if to == file {
                    let mut circle = vec![from];
                    while let Some(before) = reached_from.get(circle[circle.len() - 1]) {
                        circle.push(before);
                    }
                    circle.reverse();
                    return Some(circle);
                }
                if !reached_from.contains_key(to.as_str()) {
                    reached_from.insert(to, from);
                    next.push_back(to);
                }
            }
        }
        None
    }
}
