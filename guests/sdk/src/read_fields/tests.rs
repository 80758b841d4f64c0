//! Tests of the fields that types read.

use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::json;

use super::*;
use crate::read;

fn of<T: DeserializeOwned>() -> Value {
    fields::<T>().into()
}

fn metadata() -> Value {
    json!({
        "f:name": {}, "f:namespace": {}, "f:labels": {}, "f:annotations": {}, "f:uid": {},
        "f:generation": {}, "f:creationTimestamp": {}, "f:deletionTimestamp": {},
    })
}

#[test]
fn fields_of_a_view_are_those_that_it_names() {
    let state = json!({"f:terminated": {"f:exitCode": {}, "f:message": {}}});
    assert_eq!(
        of::<read::Pod>(),
        json!({
            "f:metadata": metadata(),
            "f:spec": {"f:containers": {"*": {"f:name": {}, "f:image": {}, "f:readinessProbe": {}}}},
            "f:status": {
                "f:phase": {},
                "f:conditions": {"*": {"f:type": {}, "f:status": {}, "f:reason": {}, "f:message": {},
                    "f:observedGeneration": {}}},
                "f:initContainerStatuses": {"*": {"f:name": {}, "f:state": state, "f:lastState": state}},
            },
        })
    );
}

#[derive(Deserialize)]
#[allow(dead_code, reason = "only the types count")]
struct Odd {
    #[serde(alias = "old")]
    new: String,
    map: BTreeMap<String, Item>,
    texts: Vec<String>,
    mode: Mode,
    value: Value,
    tagged: Tagged,
    strict: Strict,
    open: Open,
    custom: Custom,
    nothing: Nothing,
    pair: (Item, Item),
    #[serde(skip)]
    skipped: String,
}

#[derive(Deserialize)]
#[allow(dead_code, reason = "only the types count")]
struct Item {
    size: Option<u32>,
}

#[derive(Deserialize)]
enum Mode {
    Fast,
}

#[derive(Deserialize)]
#[serde(untagged)]
#[allow(dead_code, reason = "only the types count")]
enum Tagged {
    Item(Item),
    Text(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(dead_code, reason = "only the types count")]
struct Strict {
    size: u32,
}

#[derive(Deserialize)]
#[allow(dead_code, reason = "only the types count")]
struct Open {
    size: u32,
    #[serde(flatten)]
    others: BTreeMap<String, Value>,
}

/// Takes every member, one of which has a type of its own and the name that a probe may use.
#[derive(Deserialize)]
#[allow(dead_code, reason = "only the types count")]
struct Keyed {
    key: Item,
    #[serde(flatten)]
    others: BTreeMap<String, Value>,
}

/// Names one field, and keeps the others too.
struct Keeper;

impl<'de> Deserialize<'de> for Keeper {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_struct("Keeper", &["size"], KeeperVisitor)
    }
}

struct KeeperVisitor;

impl<'de> Visitor<'de> for KeeperVisitor {
    type Value = Keeper;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an item")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut members: M) -> Result<Keeper, M::Error> {
        while members.next_entry::<String, Value>()?.is_some() {}
        Ok(Keeper)
    }
}

#[derive(Deserialize)]
struct Nothing {}

/// Reads an item, but as a type of its own.
struct Custom;

impl<'de> Deserialize<'de> for Custom {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Item::deserialize(deserializer).map(|_| Self)
    }
}

#[test]
fn type_that_cannot_be_followed_reads_the_whole_value() {
    let item = json!({"f:size": {}});
    assert_eq!(
        of::<Odd>(),
        json!({
            "f:new": {}, "f:old": {}, "f:map": {"*": item}, "f:texts": {}, "f:mode": {},
            "f:value": {}, "f:tagged": {}, "f:strict": {}, "f:open": {}, "f:custom": item,
            "f:nothing": {}, "f:pair": {},
        })
    );
    assert_eq!(of::<Value>(), json!({}));
    assert_eq!(of::<BTreeMap<String, Value>>(), json!({}));
    assert_eq!(of::<Strict>(), json!({}));
    assert_eq!(of::<Keyed>(), json!({}));
    assert_eq!(of::<Keeper>(), json!({}));
    assert_eq!(of::<Nothing>(), json!({"f:apiVersion": {}}));
    assert_eq!(of::<crate::Raw<read::Pod>>(), json!({}));
}

#[derive(Deserialize)]
#[allow(dead_code, reason = "only the types count")]
struct Endless {
    left: Option<Box<Endless>>,
    right: Option<Box<Endless>>,
}

#[test]
fn type_that_contains_itself_is_listed_to_a_limit() {
    let text = Value::from(fields::<Endless>()).to_string();
    assert!(text.len() < 8_192 && text.matches("f:left").count() <= FIELDS_MAX, "{text}");
}

#[test]
fn fields_of_all_types_of_a_kind_are_united() {
    let record = ReadFieldsRecord::default();
    record.add::<Item>("v1", "Item");
    record.add::<Item>("v1", "Item");
    record.add::<Endless>("v1", "Whole");
    record.add::<Value>("v1", "Whole");
    let list = record.list();
    assert_eq!(
        (&*list[0].kind, Value::from(list[0].fields.clone())),
        ("Item", json!({"f:size": {}}))
    );
    assert_eq!((&*list[1].kind, Value::from(list[1].fields.clone())), ("Whole", json!({})));
    let both = union(fields::<read::Deployment>(), fields::<read::Custom<read::Pod>>());
    assert_eq!(both["f:spec"], Value::from(fields::<read::Deployment>())["f:spec"]);
    assert!(
        both["f:status"]["f:conditions"].is_object() && both["f:status"]["f:replicas"].is_object()
    );
}
