//! Reads a selector as guests and Modules write it.

use innkeeper_contract::{
    LabelRequirement, PrimarySelector as Document, SelectorOperator, ValueRequirement,
};

use super::{PrimarySelector, field_path};
use crate::selector::{Operator, Requirement};
use crate::{Selector, names};

/// The annotation that the host does not keep, since it may hold the values of a Secret.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The most entries of each member, and the most values of a requirement.
const ENTRIES_MAX: usize = 64;

/// The longest path of a field, and the longest value of an annotation or field, in bytes.
const PATH_BYTES_MAX: usize = 317;
const VALUE_BYTES_MAX: usize = 1024;

impl PrimarySelector {
    /// Reads the selector of a guest whose manifest has been checked; without one, all primaries
    /// are selected.
    pub fn of_guest(document: Option<&Document>) -> Self {
        document.map(|one| Self::read(one, "selector", &mut |_, _| {})).unwrap_or_default()
    }

    /// Reads a selector. `field` is its path in the document. Calls `report` with the path of each
    /// field that cannot be used, and why; the selector then must not be used.
    pub fn read(document: &Document, field: &str, report: &mut dyn FnMut(&str, String)) -> Self {
        let mut reader = Reader { field, report };
        if !reader.is_bounded(document) {
            return Self::default();
        }
        Self {
            labels: reader.labels(document),
            annotations: reader.annotations(document),
            fields: reader.fields(&document.match_fields),
        }
    }
}

/// Checks one requirement on a label, which is the member `member` of the object `field` in its
/// document. Calls `report` with the path of each field that cannot be used, and why.
pub fn check_label_requirement(
    requirement: &LabelRequirement,
    (field, member): (&str, &str),
    report: &mut dyn FnMut(&str, String),
) {
    Reader { field, report }.label_requirement(member, requirement);
}

struct Reader<'a> {
    field: &'a str,
    report: &'a mut dyn FnMut(&str, String),
}

impl Reader<'_> {
    fn error(&mut self, member: &str, problem: impl Into<String>) {
        (self.report)(&format!("{}.{member}", self.field), problem.into());
    }

    /// Whether no member has too many entries, which are then not looked at one by one.
    fn is_bounded(&mut self, document: &Document) -> bool {
        let counts = [
            ("matchLabels", document.match_labels.len()),
            ("matchExpressions", document.match_expressions.len()),
            ("matchAnnotations", document.match_annotations.len()),
            ("matchAnnotationExpressions", document.match_annotation_expressions.len()),
            ("matchFields", document.match_fields.len()),
        ];
        for (member, count) in counts {
            if count > ENTRIES_MAX {
                self.error(member, format!("has {count} entries: at most {ENTRIES_MAX}"));
            }
        }
        counts.iter().all(|(_, count)| *count <= ENTRIES_MAX)
    }

    fn labels(&mut self, document: &Document) -> Selector {
        let mut requirements = Vec::new();
        for (key, value) in &document.match_labels {
            let member = format!("matchLabels[{key:?}]");
            self.label_key(&member, key);
            self.label_value(&member, value);
            requirements.push(equals(key, value));
        }
        for (index, requirement) in document.match_expressions.iter().enumerate() {
            let member = format!("matchExpressions[{index}]");
            requirements.push(self.label_requirement(&member, requirement));
        }
        Selector::new(requirements)
    }

    fn label_requirement(&mut self, member: &str, requirement: &LabelRequirement) -> Requirement {
        let LabelRequirement { key, operator, values } = requirement;
        self.label_key(&format!("{member}.key"), key);
        for (index, value) in values.iter().enumerate().take(ENTRIES_MAX) {
            self.label_value(&format!("{member}.values[{index}]"), value);
        }
        self.requirement(member, key, *operator, values)
    }

    fn annotations(&mut self, document: &Document) -> Selector {
        let mut requirements = Vec::new();
        for (key, value) in &document.match_annotations {
            let member = format!("matchAnnotations[{key:?}]");
            self.annotation_key(&member, key);
            self.value(&member, value);
            requirements.push(equals(key, value));
        }
        for (index, ValueRequirement { key, operator, values }) in
            document.match_annotation_expressions.iter().enumerate()
        {
            let member = format!("matchAnnotationExpressions[{index}]");
            self.annotation_key(&format!("{member}.key"), key);
            requirements.push(self.requirement(&member, key, *operator, values));
        }
        Selector::new(requirements)
    }

    fn fields(&mut self, of_fields: &[ValueRequirement]) -> Selector {
        let mut requirements = Vec::new();
        for (index, ValueRequirement { key, operator, values }) in of_fields.iter().enumerate() {
            let member = format!("matchFields[{index}]");
            if key.len() > PATH_BYTES_MAX || !field_path::is_valid(key) {
                self.error(&format!("{member}.key"), format!("{key:?} is not the path of a field: names of letters, digits, '-', '_' and '$', separated by dots, as in spec.type"));
            } else if let Some(problem) = field_path::problem(key) {
                self.error(&format!("{member}.key"), problem);
            }
            requirements.push(self.requirement(&member, key, *operator, values));
        }
        Selector::new(requirements)
    }

    fn requirement(
        &mut self,
        member: &str,
        key: &str,
        operator: SelectorOperator,
        values: &[String],
    ) -> Requirement {
        if values.len() > ENTRIES_MAX {
            self.error(
                &format!("{member}.values"),
                format!("has {} entries: at most {ENTRIES_MAX}", values.len()),
            );
        }
        for (index, value) in values.iter().enumerate() {
            self.value(&format!("{member}.values[{index}]"), value);
        }
        let takes_values = matches!(operator, SelectorOperator::In | SelectorOperator::NotIn);
        if takes_values && values.is_empty() {
            self.error(
                &format!("{member}.values"),
                "is empty: In and NotIn need at least one value",
            );
        }
        if !takes_values && !values.is_empty() {
            self.error(
                &format!("{member}.values"),
                "must be left out with Exists and DoesNotExist",
            );
        }
        let mut values: Vec<Box<str>> = values.iter().map(|value| value.as_str().into()).collect();
        values.sort();
        values.dedup();
        let operator = match operator {
            SelectorOperator::In => Operator::In(values),
            SelectorOperator::NotIn => Operator::NotIn(values),
            SelectorOperator::Exists => Operator::Exists,
            SelectorOperator::DoesNotExist => Operator::DoesNotExist,
        };
        Requirement { key: key.into(), operator }
    }

    fn label_key(&mut self, member: &str, key: &str) {
        if !names::is_qualified(key) {
            self.error(member, format!("{key:?} is not a label: letters, digits, '-', '_' and '.', at most 63 characters, perhaps after a DNS name and '/'"));
        }
    }

    fn label_value(&mut self, member: &str, value: &str) {
        if !names::is_label_value(value) {
            self.error(member, format!("{value:?} is not a label's value: letters, digits, '-', '_' and '.', at most 63 characters"));
        }
    }

    fn value(&mut self, member: &str, value: &str) {
        if value.len() > VALUE_BYTES_MAX {
            let problem = format!("has {} bytes: at most {VALUE_BYTES_MAX}", value.len());
            self.error(member, problem);
        }
    }

    fn annotation_key(&mut self, member: &str, key: &str) {
        if key == LAST_APPLIED {
            self.error(
                member,
                "the host does not keep this annotation, which may hold the values of a Secret; select by another one",
            );
        } else if !names::is_qualified(key) {
            self.error(member, format!("{key:?} is not an annotation: letters, digits, '-', '_' and '.', at most 63 characters, perhaps after a DNS name and '/'"));
        }
    }
}

fn equals(key: &str, value: &str) -> Requirement {
    Requirement { key: key.into(), operator: Operator::In(vec![value.into()]) }
}
