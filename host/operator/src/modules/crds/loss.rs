//! The fields that stored objects would lose under another definition.

use std::collections::{BTreeMap, BTreeSet};

use innkeeper_contract::Kind;
use innkeeper_core::crd_compat;
use innkeeper_modules::machine::reason::WOULD_LOSE_DATA;
use innkeeper_modules::{CrdRequest, Rejection, RetryPolicy};

/// The most lost fields that are named of one definition.
const FIELDS_NAMED_MAX: usize = 10;

/// The most lost fields that are counted of one definition.
const FIELDS_COUNTED_MAX: usize = 1_000;

/// Objects that would lose fields.
#[derive(Debug, Default)]
pub(super) struct Loss {
    /// How many.
    objects: usize,
    /// The first one in a namespace that the module serves.
    first: Option<String>,
    /// How many are in other namespaces.
    elsewhere: usize,
    /// The fields, and how many objects have each.
    fields: BTreeMap<String, usize>,
    /// There are fields that are not counted.
    has_more_fields: bool,
}

impl Loss {
    /// Counts an object that would lose these fields; it has no name if its namespace is not the
    /// module's.
    pub(super) fn add(&mut self, name: Option<String>, fields: BTreeSet<String>) {
        self.objects += 1;
        match name {
            Some(name) => _ = self.first.get_or_insert(name),
            None => self.elsewhere += 1,
        }
        self.has_more_fields |= fields.len() >= crd_compat::LOST_FIELDS_MAX;
        for field in fields {
            if self.fields.len() < FIELDS_COUNTED_MAX || self.fields.contains_key(&field) {
                *self.fields.entry(field).or_default() += 1;
            } else {
                self.has_more_fields = true;
            }
        }
    }

    /// Why the definition must not change; nothing if no object would lose a field.
    /// `is_status_apart` says whether the status of the objects is a subresource.
    pub(super) fn check(
        &self,
        request: &CrdRequest,
        kind: &Kind,
        is_status_apart: bool,
    ) -> Result<(), Rejection> {
        if self.objects == 0 {
            return Ok(());
        }
        let is_in_status = |field: &String| {
            field == ".status"
                || [".status.", ".status["].iter().any(|start| field.starts_with(start))
        };
        let how = if is_status_apart && self.fields.keys().any(is_in_status) {
            " (those of the status with `kubectl edit --subresource=status`)"
        } else {
            ""
        };
        let message = format!(
            "the CustomResourceDefinition {} would make {} stored {} lose fields that it does not have: {}; {}; remove the fields from the objects{how}, or set spec.crds to Keep",
            request.name,
            self.objects,
            kind.kind,
            self.fields(),
            self.places()
        );
        Err(Rejection::new(WOULD_LOSE_DATA, message, RetryPolicy::Later))
    }

    /// The fields, and how many objects have each.
    fn fields(&self) -> String {
        let named = self.fields.iter().take(FIELDS_NAMED_MAX);
        let named: Vec<String> = named.map(|(field, count)| format!("{field} ({count})")).collect();
        let more = match (self.fields.len().saturating_sub(FIELDS_NAMED_MAX), self.has_more_fields)
        {
            (0, false) => String::new(),
            (0, true) => " and more".to_owned(),
            (more, false) => format!(" and {more} more"),
            (more, true) => format!(" and at least {more} more"),
        };
        format!("{}{more}", named.join(", "))
    }

    /// Where the objects are. Who may read the Module may not be allowed to see other namespaces.
    fn places(&self) -> String {
        match (&self.first, self.elsewhere) {
            (Some(first), 0) => format!("the first is {first}"),
            (Some(first), elsewhere) => {
                format!(
                    "the first is {first}, and {elsewhere} are in namespaces that the module does not serve"
                )
            }
            (None, _) => "all are in namespaces that the module does not serve".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn lost_fields_are_named_up_to_a_bound_and_only_the_modules_objects_are() {
        let request = CrdRequest {
            name: "things.example.dev".into(),
            group: "example.dev".into(),
            granted: true,
            dropped: Vec::new(),
            definition: Value::Null,
        };
        let kind = Kind::namespaced("example.dev/v1", "Thing", "things");
        let fields = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        let message = |loss: &Loss, is_status_apart| {
            loss.check(&request, &kind, is_status_apart).unwrap_err().message
        };
        let mut loss = Loss::default();
        assert_eq!(loss.check(&request, &kind, true), Ok(()));
        loss.add(None, fields(&[".spec.color"]));
        assert!(message(&loss, true).contains(
            ".spec.color (1); all are in namespaces that the module does not serve; remove the fields from the objects, or"
        ));
        loss.add(Some("web/a".into()), fields(&[".spec.color", ".status.phase"]));
        loss.add(Some("web/b".into()), fields(&[".spec.color"]));
        assert_eq!(
            message(&loss, true),
            "the CustomResourceDefinition things.example.dev would make 3 stored Thing lose fields that it does not have: .spec.color (3), .status.phase (1); the first is web/a, and 1 are in namespaces that the module does not serve; remove the fields from the objects (those of the status with `kubectl edit --subresource=status`), or set spec.crds to Keep"
        );
        assert!(!message(&loss, false).contains("subresource"));
        let many: Vec<String> = (0..12).map(|index| format!(".a{index:02}")).collect();
        loss.add(None, many.into_iter().collect());
        assert!(message(&loss, true).contains(".a09 (1) and 4 more; the first"));
        let most = (0..crd_compat::LOST_FIELDS_MAX).map(|index| format!(".b{index:02}"));
        loss.add(None, most.collect());
        assert!(message(&loss, true).contains(" and at least 24 more; the first"));
    }
}
