//! The labels of an object.

use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;

/// The labels of an object, ordered by key.
///
/// They are a slice and no tree, since the host keeps one for each object: a tree with one label
/// takes as much memory as a tree with eleven.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Labels(Box<[(Box<str>, Box<str>)]>);

impl Labels {
    /// The value of a label.
    pub fn get(&self, name: &str) -> Option<&str> {
        let at = self.0.binary_search_by(|(has, _)| (**has).cmp(name)).ok()?;
        self.0.get(at).map(|(_, value)| &**value)
    }

    /// The number of labels.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether the object has no labels.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All keys and values, ordered by key.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (&**name, &**value))
    }
}

impl<K: Into<Box<str>>, V: Into<Box<str>>> FromIterator<(K, V)> for Labels {
    fn from_iter<T: IntoIterator<Item = (K, V)>>(labels: T) -> Self {
        let ordered: BTreeMap<Box<str>, Box<str>> =
            labels.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        Self(ordered.into_iter().collect())
    }
}

impl<'de> Deserialize<'de> for Labels {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(BTreeMap::<Box<str>, Box<str>>::deserialize(deserializer)?.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_ordered_and_found_by_key() {
        let labels: Labels = serde_json::from_str(r#"{"b":"2","a":"1"}"#).unwrap();
        assert_eq!(labels.iter().collect::<Vec<_>>(), [("a", "1"), ("b", "2")]);
        assert_eq!((labels.get("b"), labels.get("c")), (Some("2"), None));
        assert_eq!(Labels::from_iter([("b", "2"), ("a", "1")]), labels);
    }
}
