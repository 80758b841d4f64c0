//! A field with the values that it has in different cases.

use innkeeper_core::diff::changed_values;
use serde_json::{Value, json};

use crate::document::Yaml;
use crate::out::Page;

/// The most fields of one finding.
const FIELDS_MAX: usize = 10;

/// The most lines of one value.
const LINES_MAX: usize = 20;

/// The largest value that a result repeats, in bytes of JSON.
const VALUE_BYTES_MAX: usize = 2_000;

/// A field and its values.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct FieldValues {
    /// The path, as in `.spec.replicas`.
    pub(super) path: String,
    /// What leads to each value, and the value: `Value::Null` for none.
    pub(super) values: Vec<(String, Value)>,
}

impl FieldValues {
    /// The fields in which two objects differ, each of which has a name for people.
    pub(super) fn between(first: (&str, &Value), second: (&str, &Value)) -> Vec<Self> {
        let changes = changed_values(first.1, second.1, FIELDS_MAX);
        let fields = changes.into_iter().map(|change| Self {
            path: change.path,
            values: vec![
                (first.0.to_owned(), shown(change.before)),
                (second.0.to_owned(), shown(change.after)),
            ],
        });
        fields.collect()
    }

    /// Adds the field and its values as YAML.
    pub(super) fn add_to(&self, page: &mut Page) {
        page.line(format_args!("        {}", self.path));
        for (case, value) in &self.values {
            let text = match value {
                Value::Null => "(none)\n".to_owned(),
                value => yaml(value).unwrap_or_else(|_| value.to_string()),
            };
            let mut lines = text.lines();
            if let (Some(only), None) = (lines.next(), lines.next()) {
                page.line(format_args!("          {case}: {only}"));
                continue;
            }
            page.line(format_args!("          {case}:"));
            for line in text.lines().take(LINES_MAX) {
                page.line(format_args!("            {line}"));
            }
            let more = text.lines().count().saturating_sub(LINES_MAX);
            if more > 0 {
                page.line(format_args!("            and {more} more lines"));
            }
        }
    }

    /// The field for programs.
    pub(super) fn json(&self) -> Value {
        let values = self.values.iter().map(|(case, value)| json!({"case": case, "value": value}));
        json!({"path": self.path, "values": values.collect::<Vec<_>>()})
    }
}

fn yaml(value: &Value) -> anyhow::Result<String> {
    let mut yaml = Yaml::default();
    yaml.document(value)?;
    Ok(yaml.finish()?.text().to_owned())
}

/// A value as a result repeats it.
pub(super) fn shown(value: &Value) -> Value {
    match value.to_string().len() {
        bytes if bytes > VALUE_BYTES_MAX => format!("(a value of {bytes} bytes)").into(),
        _ => value.clone(),
    }
}

/// Whether one field is the other one, or a part of it.
pub(super) fn overlap(one: &str, other: &str) -> bool {
    let is_in = |inner: &str, outer: &str| {
        inner
            .strip_prefix(outer)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    };
    is_in(one, other) || is_in(other, one)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn field_overlaps_with_itself_and_its_parts() {
        for (one, other, expected) in [
            (".a.b", ".a.b", true),
            (".a.b", ".a", true),
            (".a", ".a[name=\"x\"].c", true),
            (".a.b", ".a.bc", false),
            (".a.b", ".a.c", false),
        ] {
            assert_eq!(overlap(one, other), expected, "{one} {other}");
        }
    }

    #[test]
    fn values_are_shown_as_yaml_and_large_ones_by_size() {
        let long = Value::from("x".repeat(3_000));
        let before = json!({"a": {"b": ["x", "y"]}, "c": 1});
        let after = json!({"a": {"b": ["x"]}, "c": long});
        let mut page = Page::default();
        page.line("fields");
        for field in FieldValues::between(("one", &before), ("two", &after)) {
            field.add_to(&mut page);
        }
        expect_test::expect![[r#"
            fields
                    .a.b
                      one:
                        - x
                        - "y"
                      two: - x
                    .c
                      one: 1
                      two: (a value of 3002 bytes)
        "#]]
        .assert_eq(page.text());
    }
}
