//! `metadata.managedFields`: who wrote which fields when.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use litemap::LiteMap;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::apply::fields_v1;
use crate::apply::fieldset::FieldSet;
use crate::scratch;
use crate::types::kinds::event_names;

/// How the fields were written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Operation {
    /// By server-side apply.
    Apply,
    /// By anything else.
    Update,
}

impl Operation {
    fn text(self) -> &'static str {
        match self {
            Self::Apply => "Apply",
            Self::Update => "Update",
        }
    }
}

/// The identity of a manager.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Manager {
    pub(crate) name: String,
    pub(crate) operation: Operation,
    /// Of an update; an applier is the same in each version.
    version: String,
    pub(crate) subresource: String,
}

impl Ord for Manager {
    /// As the server orders them: those of a subresource first.
    fn cmp(&self, other: &Self) -> Ordering {
        let key = |one: &Self| (one.operation, one.subresource.is_empty());
        self.name
            .cmp(&other.name)
            .then_with(|| self.operation.cmp(&other.operation))
            .then_with(|| self.version.cmp(&other.version))
            .then_with(|| key(self).cmp(&key(other)))
            .then_with(|| self.subresource.cmp(&other.subresource))
    }
}

impl PartialOrd for Manager {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Manager {
    /// The manager of a request.
    pub(crate) fn new(name: &str, operation: Operation, version: &str, subresource: &str) -> Self {
        let version = if operation == Operation::Apply { "" } else { version };
        Self {
            name: if name.is_empty() { "unknown" } else { name }.to_owned(),
            operation,
            version: version.to_owned(),
            subresource: subresource.to_owned(),
        }
    }

    /// The same one in another version.
    pub(crate) fn in_version(&self, version: &str) -> Self {
        Self::new(&self.name, self.operation, version, &self.subresource)
    }

    /// As messages name it.
    pub(crate) fn shown(&self) -> String {
        let mut text = format!("{:?}", self.name);
        if !self.subresource.is_empty() {
            text = format!("{text} with subresource {:?}", self.subresource);
        }
        if self.operation == Operation::Update {
            text = format!("{text} using {}", self.version);
        }
        text
    }
}

/// What one manager owns. The set is shared by those who copy it, until one changes it.
#[derive(Clone, Debug)]
pub(crate) struct Owned {
    set: Arc<FieldSet>,
    /// The set as `fieldsV1`, once it was written.
    text: OnceLock<Bytes>,
    /// The version of the field names.
    pub(crate) version: String,
    pub(crate) time: Option<String>,
}

impl PartialEq for Owned {
    fn eq(&self, other: &Self) -> bool {
        self.time == other.time && self.says_the_same(other)
    }
}

impl Owned {
    /// These fields, named in this version.
    pub(crate) fn new(set: FieldSet, version: &str, time: Option<String>) -> Self {
        Self { set: Arc::new(set), text: OnceLock::new(), version: version.to_owned(), time }
    }

    /// The fields.
    pub(crate) fn set(&self) -> &FieldSet {
        &self.set
    }

    /// The fields, to be changed.
    pub(crate) fn change(&mut self) -> &mut FieldSet {
        self.text = OnceLock::new();
        Arc::make_mut(&mut self.set)
    }

    /// Without these fields, of which most have none.
    pub(crate) fn subtract(&mut self, fields: &FieldSet) {
        if self.set.overlaps(fields) {
            self.change().subtract(fields);
        }
    }

    /// The fields as `fieldsV1`.
    fn text(&self) -> &[u8] {
        self.text.get_or_init(|| {
            if self.version == event_names::API_VERSION {
                let fields = Cow::Owned(self.set.encode());
                let fields = event_names::renamed_fields(&self.version, fields, event_names::other);
                return fields.to_string().into();
            }
            scratch::text(|out| fields_v1::write(&self.set, out))
        })
    }

    fn says_the_same(&self, other: &Self) -> bool {
        self.version == other.version
            && (Arc::ptr_eq(&self.set, &other.set) || self.set == other.set)
    }
}

/// All managers of an object.
pub(crate) type Managers = LiteMap<Manager, Owned>;

/// Entries of updates are joined when there are more than this.
const UPDATERS_MAX: usize = 10;
/// Under which name they are joined.
const ANCIENT: &str = "ancient-changes";

/// Whether the list resets all managers: it is empty, or has one empty entry.
pub(crate) fn is_reset(list: Option<&Value>) -> bool {
    match list.and_then(Value::as_array).map(Vec::as_slice) {
        Some([]) => true,
        Some([Value::Object(only)]) => {
            only.values().all(|value| value.is_null() || value.as_str() == Some(""))
        }
        _ => false,
    }
}

/// Parses the list. The error says why it is invalid.
pub(crate) fn decode(list: Option<&Value>) -> Result<Managers, String> {
    let mut managers = Managers::new();
    for (index, entry) in list.and_then(Value::as_array).into_iter().flatten().enumerate() {
        let text = |name: &str| entry[name].as_str().unwrap_or_default();
        let operation = match text("operation") {
            "Apply" => Operation::Apply,
            "Update" => Operation::Update,
            _ => return Err("operation must be `Apply` or `Update`".to_owned()),
        };
        if text("apiVersion").is_empty() {
            return Err("apiVersion must not be empty".to_owned());
        }
        match text("fieldsType") {
            "FieldsV1" => {}
            "" => return Err(format!("missing fieldsType in managed fields entry {index}")),
            other => {
                return Err(format!(
                    "invalid fieldsType {other:?} in managed fields entry {index}"
                ));
            }
        }
        let version = if operation == Operation::Apply { "" } else { text("apiVersion") };
        let manager = Manager {
            name: text("manager").to_owned(),
            operation,
            version: version.to_owned(),
            subresource: text("subresource").to_owned(),
        };
        let set = match entry.get("fieldsV1") {
            None | Some(Value::Null) => FieldSet::default(),
            Some(fields) => {
                let fields = Cow::Borrowed(fields);
                let fields =
                    event_names::renamed_fields(text("apiVersion"), fields, event_names::core);
                FieldSet::parse(&fields).ok_or("error decoding set")?
            }
        };
        let time = entry["time"].as_str().map(str::to_owned);
        managers.insert(manager, Owned::new(set, text("apiVersion"), time));
    }
    Ok(managers)
}

/// An entry of the list, as it is written.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry<'t> {
    api_version: String,
    #[serde(borrow, rename = "fieldsV1")]
    fields: &'t RawValue,
    manager: String,
    operation: String,
    #[serde(default)]
    subresource: String,
    time: Option<String>,
}

/// Reads the text of a list that was written by [`write()`]. Says how many entries it has too: of
/// two of one manager the last counts.
pub(crate) fn read(text: &[u8]) -> Option<(Managers, usize)> {
    let entries: Vec<Entry<'_>> = serde_json::from_slice(text).ok()?;
    let count = entries.len();
    let mut managers = Managers::new();
    for entry in entries {
        let operation =
            if entry.operation == "Apply" { Operation::Apply } else { Operation::Update };
        let updates = operation == Operation::Update;
        let manager = Manager {
            name: entry.manager,
            operation,
            version: if updates { entry.api_version.clone() } else { String::new() },
            subresource: entry.subresource,
        };
        let fields = entry.fields.get();
        let set = if entry.api_version == event_names::API_VERSION {
            let fields = Cow::Owned(serde_json::from_str(fields).ok()?);
            let fields = event_names::renamed_fields(&entry.api_version, fields, event_names::core);
            FieldSet::parse(&fields)?
        } else {
            fields_v1::read(fields)?
        };
        let owned = Owned::new(set, &entry.api_version, entry.time);
        let _ = owned.text.set(Bytes::copy_from_slice(fields.as_bytes()));
        managers.insert(manager, owned);
    }
    Some((managers, count))
}

/// Without those that wrote an Event of the other group: between groups the server does not convert
/// what they own, and forgets them.
pub(crate) fn of_group(mut managers: Managers, version: &str) -> Managers {
    managers.retain(|_, owned| {
        (owned.version == event_names::API_VERSION) == (version == event_names::API_VERSION)
    });
    managers
}

/// The managers in the order of the server.
fn ordered(managers: &Managers) -> Vec<(&Manager, &Owned)> {
    let mut ordered: Vec<(&Manager, &Owned)> = managers.iter().collect();
    ordered.sort_by(|(a, x), (b, y)| {
        let key = |manager: &Manager| manager.operation;
        let seconds = |owned: &Owned| owned.time.clone().unwrap_or_default();
        (key(a), seconds(x), &a.name, &x.version, &a.subresource).cmp(&(
            key(b),
            seconds(y),
            &b.name,
            &y.version,
            &b.subresource,
        ))
    });
    ordered
}

/// Writes the list in the order of the server.
pub(crate) fn write(managers: &Managers, out: &mut Vec<u8>) {
    let mut first = true;
    out.push(b'[');
    for (manager, owned) in ordered(managers) {
        if !first {
            out.push(b',');
        }
        first = false;
        out.extend_from_slice(b"{\"apiVersion\":");
        scratch::json(&owned.version, out);
        out.extend_from_slice(b",\"fieldsType\":\"FieldsV1\",\"fieldsV1\":");
        out.extend_from_slice(owned.text());
        out.extend_from_slice(b",\"manager\":");
        scratch::json(&manager.name, out);
        out.extend_from_slice(b",\"operation\":");
        scratch::json(manager.operation.text(), out);
        if !manager.subresource.is_empty() {
            out.extend_from_slice(b",\"subresource\":");
            scratch::json(&manager.subresource, out);
        }
        if let Some(time) = &owned.time {
            out.extend_from_slice(b",\"time\":");
            scratch::json(time, out);
        }
        out.push(b'}');
    }
    out.push(b']');
}

/// Whether two lists are equal but for the times.
pub(crate) fn same_but_times(one: &Managers, other: &Managers) -> bool {
    one.len() == other.len()
        && ordered(one)
            .into_iter()
            .zip(ordered(other))
            .all(|((a, x), (b, y))| a == b && x.says_the_same(y))
}

/// Joins the oldest entries of updates when there are too many.
pub(crate) fn cap(managers: &mut Managers) {
    if managers.len() <= UPDATERS_MAX {
        return;
    }
    let mut updaters: Vec<(String, Manager)> = managers
        .iter()
        .filter(|(manager, _)| manager.operation == Operation::Update)
        .map(|(manager, owned)| (owned.time.clone().unwrap_or_default(), manager.clone()))
        .collect();
    let mut count = updaters.len();
    updaters.sort();
    let mut first: BTreeMap<String, Manager> = BTreeMap::new();
    for (time, manager) in updaters {
        if count <= UPDATERS_MAX {
            break;
        }
        let version = manager.version.clone();
        let Some(oldest) = first.get(&version).cloned() else {
            first.insert(version, manager);
            continue;
        };
        let bucket = Manager::new(ANCIENT, Operation::Update, &version, "");
        if !managers.contains_key(&bucket)
            && let Some(owned) = managers.remove(&oldest)
        {
            managers.insert(bucket.clone(), owned);
        }
        let Some(joined) = managers.remove(&manager) else { continue };
        if let Some(owned) = managers.get_mut(&bucket) {
            owned.change().extend(&joined.set);
            owned.time = Some(time).filter(|time| !time.is_empty());
        }
        count -= 1;
    }
}
