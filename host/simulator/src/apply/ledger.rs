//! `metadata.managedFields` outside of its object: parsed when managers are needed, printed once.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use serde_json::Value;

use crate::apply::managed_fields;
use crate::apply::managed_fields::Managers;
use crate::scratch;

/// The list of an object; none if nobody owns anything.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ledger(Option<Arc<List>>);

/// One of both is there from the beginning.
#[derive(Debug)]
struct List {
    text: OnceLock<Bytes>,
    /// With how many entries there are.
    managers: OnceLock<(Managers, usize)>,
}

impl List {
    fn read(&self) -> &(Managers, usize) {
        self.managers.get_or_init(|| {
            let text = self.text.get();
            text.and_then(|text| managed_fields::read(text)).unwrap_or_default()
        })
    }

    fn write(&self, out: &mut Vec<u8>) {
        match (self.text.get(), self.managers.get()) {
            (Some(text), _) => out.extend_from_slice(text),
            (None, Some((managers, _))) => managed_fields::write(managers, out),
            (None, None) => {}
        }
    }

    /// Whether a manager has two entries, as after a write of a scale. The next write drops one of
    /// them.
    fn is_doubled(&self) -> bool {
        let (managers, entries) = self.read();
        managers.len() != *entries
    }
}

impl Ledger {
    /// The list of these managers.
    pub(crate) fn of(managers: Managers) -> Self {
        if managers.is_empty() {
            return Self::default();
        }
        let entries = managers.len();
        let list = List { text: OnceLock::new(), managers: OnceLock::from((managers, entries)) };
        Self(Some(Arc::new(list)))
    }

    /// What was written by [`Ledger::text`].
    pub(crate) fn written(text: Bytes) -> Self {
        let list = List { text: OnceLock::from(text), managers: OnceLock::new() };
        Self(Some(Arc::new(list)))
    }

    /// The same after printing and parsing, which join two managers that print alike.
    pub(crate) fn as_read(&self) -> Self {
        self.text().cloned().map(Self::written).unwrap_or_default()
    }

    /// The managedFields of a foreign object; invalid ones count as none.
    pub(crate) fn parsed(list: Option<&Value>) -> Self {
        Self::of(managed_fields::decode(list).unwrap_or_default())
    }

    /// Who owns what.
    pub(crate) fn managers(&self) -> Managers {
        self.0.as_ref().map(|list| list.read().0.clone()).unwrap_or_default()
    }

    /// The list as JSON, if there is one.
    pub(crate) fn text(&self) -> Option<&Bytes> {
        let list = self.0.as_ref()?;
        Some(list.text.get_or_init(|| scratch::text(|out| list.write(out))))
    }

    /// Whether no manager owns anything.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Writes the list as JSON.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        if let Self(Some(list)) = self {
            list.write(out);
        }
    }

    /// The same as a tree.
    pub(crate) fn value(&self) -> Option<Value> {
        self.text().and_then(|text| serde_json::from_slice(text).ok())
    }

    /// Whether both are equal but for the times.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (None, None) => true,
            (Some(one), Some(two)) => {
                Arc::ptr_eq(one, two)
                    || (one.is_doubled() == two.is_doubled()
                        && managed_fields::same_but_times(&one.read().0, &two.read().0))
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn entry(manager: &str, field: &str, time: &str) -> Value {
        json!({
            "manager": manager, "operation": "Update", "apiVersion": "v1", "time": time,
            "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {field: {}}},
        })
    }

    #[test]
    fn managed_fields_are_printed_as_they_were_parsed() {
        let list = json!([entry("", "f:a", "1"), entry("b", "f:b", "2")]);
        let parsed = Ledger::parsed(Some(&list));
        assert_eq!(parsed.value(), Some(list));
        let read = parsed.as_read();
        assert_eq!(read.managers(), parsed.managers());
        assert!(read.is_like(&parsed));
        assert_eq!(Ledger::of(read.managers()).text(), parsed.text());
    }

    #[test]
    fn ledgers_differ_by_fields_and_duplicate_managers_not_by_times() {
        let of = |list: Value| Ledger::parsed(Some(&list));
        let one = of(json!([entry("a", "f:a", "1")]));
        assert!(one.is_like(&of(json!([entry("a", "f:a", "2")]))));
        assert!(!one.is_like(&of(json!([entry("a", "f:b", "1")]))));
        assert!(!one.is_like(&Ledger::default()));
        assert!(Ledger::default().is_like(&of(json!([]))));
        let twice = json!([entry("a", "f:b", "0"), entry("a", "f:a", "1")]);
        let twice = Ledger::written(Bytes::from(twice.to_string()));
        assert_eq!(twice.managers(), one.managers());
        assert!(!one.is_like(&twice));
    }
}
