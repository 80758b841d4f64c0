//! `metadata.managedFields`: who wrote which fields when.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::BTreeMap;

use serde_json::{Map as JsonMap, Value};

use crate::apply::fieldset::FieldSet;
use crate::kinds::event_names;

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

/// What tells managers apart.
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
    /// The one that makes a request.
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

/// What one manager owns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Owned {
    pub(crate) set: FieldSet,
    /// In which version the fields are named.
    pub(crate) version: String,
    pub(crate) time: Option<String>,
}

/// All managers of an object.
pub(crate) type Managers = BTreeMap<Manager, Owned>;

/// Entries of updates are joined when there are more than this.
const UPDATERS_MAX: usize = 10;
/// Under which name they are joined.
const ANCIENT: &str = "ancient-changes";

/// Whether the list asks to forget all managers: it is empty, or one empty entry.
pub(crate) fn is_reset(list: Option<&Value>) -> bool {
    match list.and_then(Value::as_array).map(Vec::as_slice) {
        Some([]) => true,
        Some([Value::Object(only)]) => {
            only.values().all(|value| value.is_null() || value.as_str() == Some(""))
        }
        _ => false,
    }
}

/// Reads the list; the error says what is wrong with it.
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
        let owned = Owned {
            set,
            version: text("apiVersion").to_owned(),
            time: entry["time"].as_str().map(str::to_owned),
        };
        managers.insert(manager, owned);
    }
    Ok(managers)
}

/// Without those that wrote an Event of the other group: between groups the server does not convert what they own, and forgets them.
pub(crate) fn of_group(mut managers: Managers, version: &str) -> Managers {
    managers.retain(|_, owned| {
        (owned.version == event_names::API_VERSION) == (version == event_names::API_VERSION)
    });
    managers
}

/// Writes the list in the order of the server; `None` if nobody owns anything.
pub(crate) fn encode(managers: &Managers) -> Option<Value> {
    if managers.is_empty() {
        return None;
    }
    let mut ordered: Vec<(&Manager, &Owned)> = managers.iter().collect();
    ordered.sort_by(|(a, x), (b, y)| {
        let seconds = |owned: &Owned| owned.time.clone().unwrap_or_default();
        (a.operation, seconds(x), &a.name, &x.version, &a.subresource).cmp(&(
            b.operation,
            seconds(y),
            &b.name,
            &y.version,
            &b.subresource,
        ))
    });
    let entries = ordered.into_iter().map(|(manager, owned)| {
        let mut entry = JsonMap::new();
        entry.insert("manager".to_owned(), manager.name.as_str().into());
        entry.insert("operation".to_owned(), manager.operation.text().into());
        entry.insert("apiVersion".to_owned(), owned.version.as_str().into());
        if let Some(time) = &owned.time {
            entry.insert("time".to_owned(), time.as_str().into());
        }
        entry.insert("fieldsType".to_owned(), "FieldsV1".into());
        let fields = Cow::Owned(owned.set.encode());
        let fields = event_names::renamed_fields(&owned.version, fields, event_names::other);
        entry.insert("fieldsV1".to_owned(), fields.into_owned());
        if !manager.subresource.is_empty() {
            entry.insert("subresource".to_owned(), manager.subresource.as_str().into());
        }
        Value::Object(entry)
    });
    Some(entries.collect())
}

/// Whether two lists say the same but for the times.
pub(crate) fn same_but_times(one: Option<&Value>, other: Option<&Value>) -> bool {
    fn entries(list: Option<&Value>) -> &[Value] {
        list.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
    }
    let timeless = |entry: &Value| {
        let members = entry.as_object().into_iter().flatten();
        members
            .filter(|(name, _)| *name != "time")
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect::<JsonMap<_, _>>()
    };
    let (one, other) = (entries(one), entries(other));
    one.len() == other.len()
        && one.iter().zip(other).all(|(a, b)| a == b || timeless(a) == timeless(b))
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
            owned.set = owned.set.union(&joined.set);
            owned.time = Some(time).filter(|time| !time.is_empty());
        }
        count -= 1;
    }
}
