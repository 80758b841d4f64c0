//! Which primaries a module reconciles: by labels, annotations and fields.

mod document;
mod field_path;

use std::borrow::Cow;

use crate::{Object, Selector};

pub use document::check_label_requirement;

/// A conjunction of requirements on labels, annotations and fields. Without requirements it selects
/// every object.
///
/// The guest and the Module each give one. The host joins both ([`PrimarySelector::and`]), so that
/// neither can select what the other leaves out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PrimarySelector {
    /// Requirements on labels.
    pub labels: Selector,
    /// Requirements on annotations, by key.
    pub annotations: Selector,
    /// Requirements on fields, by path.
    pub fields: Selector,
}

impl PrimarySelector {
    /// The selector of what both select.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        Self {
            labels: self.labels.and(&other.labels),
            annotations: self.annotations.and(&other.annotations),
            fields: self.fields.and(&other.fields),
        }
    }

    /// Whether the selector selects an object.
    pub fn matches(&self, object: &Object) -> bool {
        self.labels.matches(&object.labels)
            && self.annotations.matches_by(|key| object.annotation(key).map(Cow::Owned))
            && (self.fields.is_everything() || self.matches_fields(&object.text.read()))
    }

    fn matches_fields(&self, text: &str) -> bool {
        self.fields.matches_by(|path| field_path::value(text, path))
    }

    /// Whether the selector compares fields other than labels and annotations.
    pub fn reads_fields(&self) -> bool {
        !self.fields.is_everything()
    }

    /// Whether an object can exist that both selectors select. In doubt it says so.
    pub fn overlaps(&self, other: &Self) -> bool {
        self.labels.overlaps(&other.labels)
            && self.annotations.overlaps(&other.annotations)
            && self.fields.overlaps(&other.fields)
    }
}

#[cfg(test)]
mod tests {
    use innkeeper_contract::Kind;
    use serde_json::{Value, json};

    use super::*;

    fn read(document: &Value) -> Result<PrimarySelector, Vec<String>> {
        let document = serde_json::from_value(document.clone()).unwrap();
        let mut problems = Vec::new();
        let selector = PrimarySelector::read(&document, "selector", &mut |field, problem| {
            problems.push(format!("{field}: {problem}"));
        });
        if problems.is_empty() { Ok(selector) } else { Err(problems) }
    }

    fn selector(document: &Value) -> PrimarySelector {
        read(document).unwrap()
    }

    fn matches(document: &Value, object: &Value) -> bool {
        let kind = Kind::namespaced("example.com/v1", "Site", "sites");
        let mut object = object.clone();
        object["metadata"]["name"] = "web".into();
        object["metadata"]["namespace"] = "shop".into();
        let object = Object::decode(&kind, &object.to_string(), None).unwrap();
        selector(document).matches(&object)
    }

    #[test]
    fn object_matches_by_label_annotation_and_field_together() {
        let document = json!({
            "matchLabels": {"app": "web"},
            "matchAnnotations": {"example.com/policy": "on, \"quoted\""},
            "matchFields": [{"key": "spec.size", "operator": "In", "values": ["3"]}],
        });
        let whole = json!({
            "metadata": {"labels": {"app": "web"},
                "annotations": {"example.com/policy": "on, \"quoted\""}},
            "spec": {"size": 3},
        });
        assert!(matches(&document, &whole));
        for (pointer, value) in [
            ("/metadata/labels/app", json!("db")),
            ("/metadata/annotations", json!({})),
            ("/spec/size", json!(4)),
            ("/spec", json!(null)),
        ] {
            let mut other = whole.clone();
            *other.pointer_mut(pointer).unwrap() = value;
            assert!(!matches(&document, &other), "{pointer}");
        }
    }

    #[test]
    fn every_operator_holds_for_annotations_and_fields_as_for_labels() {
        let there = json!({"metadata": {"annotations": {"a": "1"}}, "spec": {"a": "1"}});
        let missing = json!({"metadata": {"annotations": {"b": "1"}}, "spec": {"b": "1"}});
        for (operator, values, if_there, if_missing) in [
            ("In", json!(["1", "2"]), true, false),
            ("NotIn", json!(["1"]), false, true),
            ("NotIn", json!(["2"]), true, true),
            ("Exists", json!([]), true, false),
            ("DoesNotExist", json!([]), false, true),
        ] {
            let requirement =
                |key: &str| json!([{"key": key, "operator": operator, "values": values}]);
            for document in [
                json!({"matchAnnotationExpressions": requirement("a")}),
                json!({"matchFields": requirement("spec.a")}),
            ] {
                assert_eq!(matches(&document, &there), if_there, "{document}");
                assert_eq!(matches(&document, &missing), if_missing, "{document}");
            }
        }
    }

    #[test]
    fn joined_selectors_select_what_both_select() {
        let guest = selector(&json!({"matchAnnotations": {"policy": "on"}}));
        let module = selector(&json!({"matchLabels": {"team": "a"}, "matchFields": [
            {"key": "metadata.name", "operator": "NotIn", "values": ["db"]}]}));
        let both = guest.and(&module);
        assert_eq!((&both.annotations, &both.labels), (&guest.annotations, &module.labels));
        assert_eq!(both.and(&guest), both);
    }

    #[test]
    fn selectors_overlap_unless_one_key_has_conflicting_requirements() {
        let annotated = |value: &str| selector(&json!({"matchAnnotations": {"a": value}}));
        let named = |name: &str| {
            selector(&json!({"matchFields": [
                {"key": "metadata.name", "operator": "In", "values": [name]}]}))
        };
        assert!(!annotated("1").overlaps(&annotated("2")));
        assert!(annotated("-").overlaps(&annotated("-")));
        assert!(annotated("1").overlaps(&named("web")));
        assert!(!named("web").overlaps(&named("db")));
        let not_dash = selector(&json!({"matchAnnotationExpressions": [
            {"key": "a", "operator": "NotIn", "values": ["-"]}]}));
        assert!(not_dash.overlaps(&selector(
            &json!({"matchAnnotationExpressions": [{"key": "a", "operator": "Exists"}]})
        )));
    }

    #[test]
    fn every_bad_value_is_named_with_its_path() {
        let problems = read(&json!({
            "matchAnnotations": {"a b": "x", "kubectl.kubernetes.io/last-applied-configuration": ""},
            "matchAnnotationExpressions": [{"key": "a", "operator": "In"}],
            "matchFields": [
                {"key": "spec..type", "operator": "Exists"},
                {"key": "metadata.managedFields", "operator": "Exists"},
                {"key": "spec.type", "operator": "Exists", "values": ["x"]},
                {"key": "metadata.labels.app", "operator": "Exists"},
                {"key": "metadata.annotations", "operator": "Exists"},
                {"key": "metadata.deletionTimestamp", "operator": "DoesNotExist"},
                {"key": "metadata.resourceVersion", "operator": "Exists"},
                {"key": "metadata", "operator": "Exists"},
                {"key": "metadata.name", "operator": "Exists"},
            ],
        }))
        .unwrap_err();
        let starts = [
            "selector.matchAnnotations[\"a b\"]: \"a b\" is not an annotation",
            "selector.matchAnnotations[\"kubectl.kubernetes.io/last-applied-configuration\"]: the host does not keep",
            "selector.matchAnnotationExpressions[0].values: is empty",
            "selector.matchFields[0].key: \"spec..type\" is not the path of a field",
            "selector.matchFields[1].key: the host does not keep metadata.managedFields",
            "selector.matchFields[2].values: must be left out",
            "selector.matchFields[3].key: metadata.labels.app: use matchLabels",
            "selector.matchFields[4].key: metadata.annotations: use matchAnnotations",
            "selector.matchFields[5].key: metadata.deletionTimestamp changes while",
            "selector.matchFields[6].key: metadata.resourceVersion changes while",
            "selector.matchFields[7].key: metadata is no single value",
        ];
        assert_eq!(problems.len(), starts.len(), "{problems:#?}");
        for (problem, start) in problems.iter().zip(starts) {
            assert!(problem.starts_with(start), "{problem}\n{start}");
        }
    }
}
