//! The entries of `managedFields`: those of the host's managers, and the names of the others.

use std::borrow::Cow;
use std::sync::Arc;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::text::ObjectText;
use crate::Manager;

/// How a manager wrote, as `managedFields` calls it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub enum Operation {
    /// Server-side apply.
    Apply,
    /// Any other write.
    Update,
}

/// An entry of `managedFields` by one of the host's managers, with its fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The manager.
    pub manager: Manager,
    /// `Apply`, or `Update` where another client wrote under the host's name.
    pub operation: Operation,
    /// The subresource (`status`), or empty for the object itself.
    pub subresource: Box<str>,
    /// The time of the last write that changed the object, in seconds of Unix time; 0 if it is
    /// missing or cannot be read.
    pub time: i64,
    /// The `fieldsV1` document, as the server wrote it.
    pub fields: ObjectText,
}

impl Entry {
    /// Whether the entry is of a server-side apply to the object itself.
    pub fn is_apply(&self) -> bool {
        self.operation == Operation::Apply && self.subresource.is_empty()
    }
}

/// An entry of `managedFields` by another manager, without its fields.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OtherManager {
    /// The time of the last write, as the server wrote it (RFC 3339); empty if it is missing.
    pub time: Box<str>,
    /// The manager's name.
    pub name: Arc<str>,
    /// The subresource, or empty for the object itself.
    pub subresource: Arc<str>,
}

/// One entry of `managedFields`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawEntry<'a> {
    #[serde(default, borrow)]
    manager: Cow<'a, str>,
    operation: Operation,
    #[serde(default)]
    time: Option<Box<str>>,
    #[serde(default)]
    subresource: Box<str>,
    #[serde(default, rename = "fieldsV1", borrow)]
    fields: Option<&'a RawValue>,
}

/// The entries of the host's managers, and the other managers.
pub(super) type Managers = (Box<[Entry]>, Box<[OtherManager]>);

/// Reads `managedFields`.
///
/// # Errors
/// Returns an error if the text is no list of entries.
pub(super) fn read(fields: &RawValue) -> Result<Managers, serde_json::Error> {
    let mut entries = Vec::new();
    let mut others = Vec::new();
    for entry in
        serde_json::from_str::<Option<Vec<RawEntry<'_>>>>(fields.get())?.unwrap_or_default()
    {
        if let Some(manager) = Manager::parse(&entry.manager) {
            entries.push(Entry {
                manager,
                operation: entry.operation,
                subresource: entry.subresource,
                time: entry.time.as_deref().map_or(0, seconds),
                fields: entry.fields.map_or("{}", RawValue::get).into(),
            });
        } else {
            others.push(OtherManager {
                time: entry.time.unwrap_or_default(),
                name: entry.manager.as_ref().into(),
                subresource: entry.subresource.into(),
            });
        }
    }
    others.sort();
    Ok((entries.into(), others.into()))
}

/// Reads an RFC 3339 time, in seconds of Unix time; 0 if it is none.
fn seconds(time: &str) -> i64 {
    time.parse().map_or(0, Timestamp::as_second)
}
