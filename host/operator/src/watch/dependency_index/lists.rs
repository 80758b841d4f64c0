//! Which request listed which objects of one kind in one namespace.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use innkeeper_core::{Labels, Selector};

use crate::watch::reader::Reader;

/// An ordered set. There are as many sets as objects, and most have one member: so it becomes a
/// tree only when it is large.
#[derive(Debug)]
pub(super) enum SmallSet<T> {
    Few(Vec<T>),
    Many(BTreeSet<T>),
}

/// The most members of a [`SmallSet::Few`].
const FEW_MAX: usize = 32;

impl<T> Default for SmallSet<T> {
    fn default() -> Self {
        Self::Few(Vec::new())
    }
}

impl<T: Ord> SmallSet<T> {
    pub(super) fn insert(&mut self, member: T) {
        match self {
            Self::Few(few) => {
                let Err(at) = few.binary_search(&member) else { return };
                few.reserve_exact(1);
                few.insert(at, member);
                if few.len() > FEW_MAX {
                    *self = Self::Many(std::mem::take(few).into_iter().collect());
                }
            }
            Self::Many(many) => {
                many.insert(member);
            }
        }
    }

    /// Removes a member; gives whether the set is empty.
    pub(super) fn remove(&mut self, member: &T) -> bool {
        match self {
            Self::Few(few) => {
                if let Ok(at) = few.binary_search(member) {
                    few.remove(at);
                }
                few.is_empty()
            }
            Self::Many(many) => {
                many.remove(member);
                many.is_empty()
            }
        }
    }

    pub(super) fn contains(&self, member: &T) -> bool {
        match self {
            Self::Few(few) => few.binary_search(member).is_ok(),
            Self::Many(many) => many.contains(member),
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        let (few, many) = match self {
            Self::Few(few) => (Some(few), None),
            Self::Many(many) => (None, Some(many)),
        };
        few.into_iter().flatten().chain(many.into_iter().flatten())
    }
}

impl<T: Ord> IntoIterator for SmallSet<T> {
    type Item = T;
    type IntoIter =
        std::iter::Chain<std::vec::IntoIter<T>, std::collections::btree_set::IntoIter<T>>;

    fn into_iter(self) -> Self::IntoIter {
        let (few, many) = match self {
            Self::Few(few) => (few, BTreeSet::new()),
            Self::Many(many) => (Vec::new(), many),
        };
        few.into_iter().chain(many)
    }
}

/// The requests that listed, each with its selector.
pub(super) type Selecting<R> = SmallSet<(R, Arc<Selector>)>;

/// The requests that listed objects of one kind in one namespace, or in all.
#[derive(Debug)]
pub(super) struct Lists<R> {
    /// Those that listed all objects, and that no change has woken since their last run began; by
    /// their module.
    whole: BTreeMap<Arc<str>, SmallSet<R>>,
    /// Those that listed all objects, and that a change has woken: their next run has not begun.
    woken: SmallSet<R>,
    /// Those whose selector requires a label, by its name and value.
    labelled: BTreeMap<Box<str>, BTreeMap<Box<str>, Selecting<R>>>,
    /// Those whose selector requires no single value.
    others: Selecting<R>,
}

impl<R> Default for Lists<R> {
    fn default() -> Self {
        Self {
            whole: BTreeMap::new(),
            woken: SmallSet::default(),
            labelled: BTreeMap::new(),
            others: SmallSet::default(),
        }
    }
}

impl<R: Reader> Lists<R> {
    pub(super) fn insert(&mut self, request: &R, selector: &Arc<Selector>) {
        if selector.is_everything() {
            self.insert_whole(request.clone());
            return;
        }
        let selecting = match selector.first_equality() {
            None => &mut self.others,
            Some((name, value)) => {
                self.labelled.entry(name.into()).or_default().entry(value.into()).or_default()
            }
        };
        selecting.insert((request.clone(), selector.clone()));
    }

    /// Removes a list; gives whether none is left.
    pub(super) fn remove(&mut self, request: &R, selector: &Arc<Selector>) -> bool {
        if selector.is_everything() {
            if self.whole.get_mut(request.module()).is_some_and(|whole| whole.remove(request)) {
                self.whole.remove(request.module());
            }
            self.woken.remove(request);
        } else if let Some((name, value)) = selector.first_equality() {
            let reader = (request.clone(), selector.clone());
            if let Some(values) = self.labelled.get_mut(name) {
                if values.get_mut(value).is_some_and(|selecting| selecting.remove(&reader)) {
                    values.remove(value);
                }
                if values.is_empty() {
                    self.labelled.remove(name);
                }
            }
        } else {
            self.others.remove(&(request.clone(), selector.clone()));
        }
        self.labelled.is_empty()
            && self.whole.is_empty()
            && self.woken.iter().next().is_none()
            && self.others.iter().next().is_none()
    }

    /// Adds the requests that listed all objects, without those that a change leaves asleep.
    /// `all_stay_asleep` is whether it does so with all requests of a module.
    pub(super) fn wake_whole(
        &mut self,
        all_stay_asleep: impl Fn(&Arc<str>) -> bool,
        stays_asleep: impl Fn(&R) -> bool,
        found: &mut BTreeSet<R>,
    ) {
        for (module, whole) in &mut self.whole {
            if all_stay_asleep(module) || whole.iter().all(&stays_asleep) {
                continue;
            }
            for request in std::mem::take(whole) {
                if stays_asleep(&request) {
                    whole.insert(request);
                } else {
                    found.insert(request.clone());
                    self.woken.insert(request);
                }
            }
        }
        self.whole.retain(|_, whole| whole.iter().next().is_some());
    }

    /// Begins a run of a request: a change wakes it again from now on.
    pub(super) fn begin(&mut self, request: &R) {
        if self.woken.contains(request) {
            self.woken.remove(request);
            self.insert_whole(request.clone());
        }
    }

    fn insert_whole(&mut self, request: R) {
        self.whole.entry(request.module().clone()).or_default().insert(request);
    }

    /// The requests whose selector may match these labels. Walks over the labels or over the
    /// required names, whichever are fewer.
    pub(super) fn selecting<'a>(
        &'a self,
        labels: &'a Labels,
    ) -> impl Iterator<Item = &'a Selecting<R>> {
        let walks_labels = labels.len() <= self.labelled.len();
        let by_label = labels
            .iter()
            .take_while(move |_| walks_labels)
            .filter_map(|(name, value)| self.labelled.get(name)?.get(value));
        let by_name = self
            .labelled
            .iter()
            .take_while(move |_| !walks_labels)
            .filter_map(|(name, values)| values.get(labels.get(name)?));
        by_label.chain(by_name).chain([&self.others])
    }
}
