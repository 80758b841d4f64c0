//! ControllerRevisions that the commands cannot read: others write this kind too, and a JSON text
//! may be deeper than the host reads.

use serde::Deserialize;
use serde_json::value::RawValue;

/// The ControllerRevisions of a namespace that the commands leave out, since they cannot read them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Unreadable {
    count: usize,
    /// Name of the first one, and why it cannot be read.
    first: Option<(String, String)>,
}

impl Unreadable {
    /// Adds one.
    pub(super) fn add(&mut self, item: &RawValue, error: &serde_json::Error) {
        self.count += 1;
        if self.first.is_none() {
            self.first = Some((name_of(item), error.to_string()));
        }
    }

    /// The line about them; `None` if there are none. `namespace` is that of the revisions.
    pub(crate) fn note(&self, namespace: &str) -> Option<String> {
        let (name, reason) = self.first.as_ref()?;
        let what = match self.count {
            1 => format!("ControllerRevision {name}"),
            count => format!("{count} ControllerRevisions, the first is {name},"),
        };
        Some(format!(
            "left out: {what} in namespace {namespace} cannot be read: {reason}; the host stores no such object: delete it if nobody needs it"
        ))
    }
}

/// The name of an object of which nothing else is read.
fn name_of(item: &RawValue) -> String {
    #[derive(Deserialize)]
    struct Head {
        metadata: Metadata,
    }
    #[derive(Deserialize)]
    struct Metadata {
        name: String,
    }
    let head: Result<Head, _> = serde_json::from_str(item.get());
    head.map_or_else(|_| "<unknown>".to_owned(), |head| head.metadata.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(unreadable: &mut Unreadable, item: &str) {
        let item: Box<RawValue> = serde_json::from_str(item).unwrap();
        let error = serde_json::from_str::<serde_json::Value>(item.get()).unwrap_err();
        unreadable.add(&item, &error);
    }

    #[test]
    fn note_names_the_first_and_counts_all() {
        let mut unreadable = Unreadable::default();
        assert_eq!(unreadable.note("shop"), None);
        let deep = format!(r#"{}1{}"#, "[".repeat(10_000), "]".repeat(10_000));
        add(&mut unreadable, &format!(r#"{{"data": {deep}, "metadata": {{"name": "deep"}}}}"#));
        let note = unreadable.note("shop").unwrap();
        let expected =
            "left out: ControllerRevision deep in namespace shop cannot be read: recursion limit";
        assert!(note.starts_with(expected), "{note}");
        add(&mut unreadable, &deep);
        let note = unreadable.note("shop").unwrap();
        let expected = "left out: 2 ControllerRevisions, the first is deep, in namespace shop";
        assert!(note.starts_with(expected), "{note}");
    }

    #[test]
    fn object_without_a_name_is_unknown() {
        for item in ["[1e999]", r#"{"metadata": {}, "a": 1e999}"#, r#"{"metadata": 1e999}"#] {
            let mut unreadable = Unreadable::default();
            add(&mut unreadable, item);
            assert!(unreadable.note("n").unwrap().contains("<unknown>"), "{item}");
        }
    }
}
