//! The members of an object that a policy wants to get: [`FieldMask`].

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// The most parts of a path. The parser of the objects takes no deeper ones, and a mask drops as
/// many frames deep as it has levels.
const DEPTH_MAX: usize = 128;

/// Members of objects, by paths such as `spec.containers.image`, which go through lists. Objects
/// keep `apiVersion`, `kind` and the whole `metadata`, as Kubewarden has it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct FieldMask(BTreeMap<String, FieldMask>);

impl FieldMask {
    /// The mask of these paths; `None` if there is none, which means whole objects.
    pub(crate) fn of(paths: &BTreeSet<String>) -> Option<Self> {
        let mut mask = Self::default();
        let of_data = |path: &&str| path.split('.').next() != Some("metadata");
        let of_data = paths.iter().map(String::as_str).filter(of_data);
        for path in of_data.chain(["apiVersion", "kind", "metadata"]) {
            let mut node = &mut mask;
            for part in path.split('.').take(DEPTH_MAX) {
                node = node.0.entry(part.to_owned()).or_default();
            }
        }
        (!paths.is_empty()).then_some(mask)
    }

    /// Removes all other members from an object.
    pub(crate) fn apply(&self, value: &mut Value) {
        match value {
            // The end of a path has everything below it.
            _ if self.0.is_empty() => {}
            Value::Object(members) => {
                members.retain(|name, _| self.0.contains_key(name));
                for (name, mask) in &self.0 {
                    if let Some(member) = members.get_mut(name) {
                        mask.apply(member);
                    }
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.apply(item)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn mask_keeps_metadata_and_its_members_in_every_item_of_a_list() {
        let paths = ["metadata.name", "spec.containers.image"].map(str::to_owned);
        let mask = FieldMask::of(&paths.into()).unwrap();
        let mut pod = json!({
            "apiVersion": "v1", "kind": "Pod", "status": {},
            "metadata": {"name": "a", "labels": {}},
            "spec": {"containers": [{"image": "x", "name": "n"}, {"name": "m"}], "nodeName": "n"},
        });
        mask.apply(&mut pod);
        let kept = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "labels": {}},
            "spec": {"containers": [{"image": "x"}, {}]},
        });
        assert_eq!(pod, kept);
    }

    #[test]
    fn path_without_end_is_cut() {
        let mask = FieldMask::of(&["a.".repeat(1_000_000)].into()).unwrap();
        let mut object = json!({"a": {"a": 1, "b": 2}, "b": 3});
        mask.apply(&mut object);
        assert_eq!(object, json!({"a": {"a": 1}}));
        drop(mask);
    }

    #[test]
    fn mask_of_no_paths_is_none() {
        assert_eq!(FieldMask::of(&BTreeSet::new()), None);
    }
}
