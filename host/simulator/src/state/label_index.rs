//! Which Pods the selectors of Services select.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::types::object_key::Key;

/// Namespace, name and value of a label.
type Label = (String, String, String);

/// The labels of Pods and the selectors of Services.
#[derive(Clone, Debug, Default)]
pub(crate) struct LabelIndex {
    /// The labels of each Pod.
    pods: BTreeMap<Key, Value>,
    /// The names of the Pods that have a label.
    having: BTreeMap<Label, BTreeSet<String>>,
    /// The selector of each Service.
    services: BTreeMap<Key, Value>,
    /// The names of the Services whose selector has a label as its first; of those that ask for
    /// nothing, none.
    asking: BTreeMap<Label, BTreeSet<String>>,
}

impl LabelIndex {
    /// Records a Pod's labels; null if it was deleted.
    pub(crate) fn pod(&mut self, key: &Key, labels: &Value) {
        if self.pods.get(key).unwrap_or(&Value::Null) == labels {
            return;
        }
        let before = self.pods.remove(key).unwrap_or_default();
        for (name, value) in pairs(&before) {
            take(&mut self.having, &place(key, name, value), &key.1);
        }
        for (name, value) in pairs(labels) {
            self.having.entry(place(key, name, value)).or_default().insert(key.1.clone());
        }
        if labels.is_object() {
            self.pods.insert(key.clone(), labels.clone());
        }
    }

    /// Records a Service's selector; null if it was deleted.
    pub(crate) fn service(&mut self, key: &Key, selector: &Value) {
        if self.services.get(key).unwrap_or(&Value::Null) == selector {
            return;
        }
        if let Some(before) = self.services.remove(key) {
            take(&mut self.asking, &first(key, &before), &key.1);
        }
        if selector.is_object() {
            self.asking.entry(first(key, selector)).or_default().insert(key.1.clone());
            self.services.insert(key.clone(), selector.clone());
        }
    }

    /// The Services that select a Pod with such labels.
    pub(crate) fn services_of(&self, pod: &Key, labels: &Value) -> Vec<Key> {
        let of_labels = pairs(labels).map(|(name, value)| place(pod, name, value));
        of_labels
            .chain([place(pod, "", "")])
            .filter_map(|place| self.asking.get(&place))
            .flatten()
            .map(|name| (pod.0.clone(), name.clone()))
            .filter(|key| self.services.get(key).is_some_and(|selector| fits(selector, labels)))
            .collect()
    }

    /// The Pods that a non-empty selector selects, in the order of names.
    pub(crate) fn pods_of(&self, namespace: &str, selector: &Value) -> Vec<Key> {
        let place =
            |(name, value): (&str, &str)| (namespace.to_owned(), name.to_owned(), value.to_owned());
        // The rarest label has the fewest candidates.
        let having = |label| self.having.get(&place(label));
        let rarest = pairs(selector)
            .min_by_key(|label| having(*label).map_or(0, BTreeSet::len))
            .and_then(having);
        rarest
            .into_iter()
            .flatten()
            .map(|name| (namespace.to_owned(), name.clone()))
            .filter(|key| self.pods.get(key).is_some_and(|labels| fits(selector, labels)))
            .collect()
    }
}

fn pairs(labels: &Value) -> impl Iterator<Item = (&str, &str)> {
    let members = labels.as_object().into_iter().flatten();
    members.map(|(name, value)| (name.as_str(), value.as_str().unwrap_or_default()))
}

fn place(key: &Key, name: &str, value: &str) -> Label {
    (key.0.clone(), name.to_owned(), value.to_owned())
}

fn first(key: &Key, selector: &Value) -> Label {
    let (name, value) = pairs(selector).next().unwrap_or_default();
    place(key, name, value)
}

fn take(index: &mut BTreeMap<Label, BTreeSet<String>>, place: &Label, name: &str) {
    if let Some(names) = index.get_mut(place) {
        names.remove(name);
        if names.is_empty() {
            index.remove(place);
        }
    }
}

fn fits(selector: &Value, labels: &Value) -> bool {
    let mut demands = selector.as_object().into_iter().flatten();
    demands.all(|(name, value)| labels.get(name) == Some(value))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn key(name: &str) -> Key {
        ("n".to_owned(), name.to_owned())
    }

    fn names(keys: Vec<Key>) -> Vec<String> {
        keys.into_iter().map(|key| key.1).collect()
    }

    #[test]
    fn selector_finds_pods_by_their_current_labels() {
        let mut labels = LabelIndex::default();
        labels.pod(&key("b"), &json!({"app": "web", "tier": "x"}));
        labels.pod(&key("a"), &json!({"app": "web"}));
        labels.pod(&("other".to_owned(), "a".to_owned()), &json!({"app": "web"}));
        let found = |labels: &LabelIndex, selector: Value| names(labels.pods_of("n", &selector));
        assert_eq!(found(&labels, json!({"app": "web"})), ["a", "b"]);
        assert_eq!(found(&labels, json!({"app": "web", "tier": "x"})), ["b"]);
        assert_eq!(found(&labels, json!({"app": "web", "tier": "y"})), [""; 0]);
        labels.pod(&key("a"), &json!({"app": "db"}));
        labels.pod(&key("b"), &Value::Null);
        assert_eq!(found(&labels, json!({"app": "web"})), [""; 0]);
        assert_eq!(found(&labels, json!({"app": "db"})), ["a"]);
        assert_eq!(labels.having.len(), 2, "nothing is left of what is gone");
    }

    #[test]
    fn labels_find_the_services_that_select_them() {
        let mut labels = LabelIndex::default();
        labels.service(&key("web"), &json!({"app": "web"}));
        labels.service(&key("narrow"), &json!({"app": "web", "tier": "x"}));
        labels.service(&key("manual"), &Value::Null);
        let of = |labels: &LabelIndex, pod: Value| names(labels.services_of(&key("p"), &pod));
        assert_eq!(of(&labels, json!({"app": "web"})), ["web"]);
        assert_eq!(of(&labels, json!({"app": "web", "tier": "x"})), ["narrow", "web"]);
        labels.service(&key("web"), &json!({"app": "db"}));
        labels.service(&key("narrow"), &Value::Null);
        assert_eq!(of(&labels, json!({"app": "web", "tier": "x"})), [""; 0]);
        assert_eq!(of(&labels, json!({"app": "db"})), ["web"]);
    }
}
