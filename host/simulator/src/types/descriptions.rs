//! What only people and some clients need to know of the built-in kinds: descriptions, the columns
//! of tables, and the numbers of fields in protobuf. From a file of its own that `cargo xtask
//! openapi` writes, and that is read when it is needed.

use std::sync::OnceLock;

use serde_json::{Map, Value};

/// The file as a text.
const TEXT: &str = include_str!("../../data/texts.json");

/// The file.
#[derive(Debug, Default)]
pub(crate) struct Texts {
    all: Value,
    /// Texts that occur more than once.
    shared: Vec<Value>,
}

/// The file, read once.
pub(crate) fn texts() -> &'static Texts {
    static TEXTS: OnceLock<Texts> = OnceLock::new();
    TEXTS.get_or_init(|| {
        let all: Value = serde_json::from_str(TEXT).unwrap_or_default();
        // Their names are their places, of equal length.
        let shared = all["texts"].as_object().into_iter().flatten();
        let shared = shared.map(|(_, text)| text.clone()).collect();
        Texts { all, shared }
    })
}

impl Texts {
    /// A text, or the index of a shared one.
    fn text<'a>(&'a self, value: &'a Value) -> &'a str {
        let place = value.as_u64().and_then(|place| usize::try_from(place).ok());
        place.and_then(|place| self.shared.get(place)).unwrap_or(value).as_str().unwrap_or_default()
    }

    /// The description of a type, or of a field; an empty field name means the type.
    pub(crate) fn description(&self, name: &str, field: &str) -> Option<&str> {
        self.all["descriptions"].get(name)?.get(field).map(|value| self.text(value))
    }

    /// The columns of a kind, if it has some of its own.
    pub(crate) fn columns(&self, group: &str, kind: &str) -> Option<Vec<Value>> {
        let columns = self.all["columns"].get(format!("{group}/{kind}"))?.as_array()?;
        let described = columns.iter().map(|column| {
            let mut column = column.clone();
            column["description"] = self.text(&column["description"]).into();
            column
        });
        Some(described.collect())
    }

    /// The numbers of a type's fields in protobuf.
    pub(crate) fn wire(&self, name: &str) -> Option<&Map<String, Value>> {
        self.all["wire"].get(name)?.as_object()
    }
}
