//! An object with its managedFields, which are kept outside of its tree: they are often larger than
//! the rest of the object, and few callers read them.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::OnceLock;

use bytes::Bytes;
use serde::de::{Deserialize, DeserializeSeed, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::apply::ledger::Ledger;
use crate::scratch;
use crate::scratch::json;

const MANAGED: &str = "managedFields";

/// An object. As a tree it is seen without `metadata.managedFields`.
#[derive(Clone, Debug)]
pub(crate) struct ManagedObject {
    body: Value,
    ledger: Ledger,
    /// All of it as JSON, once it was needed, until it changes.
    text: OnceLock<Bytes>,
}

impl Deref for ManagedObject {
    type Target = Value;

    fn deref(&self) -> &Value {
        &self.body
    }
}

impl DerefMut for ManagedObject {
    fn deref_mut(&mut self) -> &mut Value {
        self.text = OnceLock::new();
        &mut self.body
    }
}

impl From<ManagedObject> for Value {
    /// Without `managedFields`, which its writer does not give.
    fn from(object: ManagedObject) -> Self {
        object.body
    }
}

impl ManagedObject {
    /// An object from a client, perhaps with `managedFields`.
    pub(crate) fn new(mut whole: Value) -> Self {
        let metadata = whole.get_mut("metadata").and_then(Value::as_object_mut);
        let list = metadata.and_then(|metadata| metadata.remove(MANAGED));
        Self::of(whole, Ledger::parsed(list.as_ref()))
    }

    /// An object without `managedFields`, and its `managedFields`.
    pub(crate) fn of(body: Value, ledger: Ledger) -> Self {
        Self { body, ledger, text: OnceLock::new() }
    }

    /// Parses the text of [`ManagedObject::text`].
    pub(crate) fn read(text: &Bytes) -> Self {
        let text_of_it = OnceLock::from(text.clone());
        match serde_json::from_slice::<Parts>(text) {
            Ok(Parts { body, ledger }) => Self { body, ledger, text: text_of_it },
            Err(_) => Self::new(serde_json::from_slice(text).unwrap_or_default()),
        }
    }

    /// The managers and their fields.
    pub(crate) fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// The same object with other managers.
    pub(crate) fn set_ledger(&mut self, ledger: Ledger) {
        self.text = OnceLock::new();
        self.ledger = ledger;
    }

    /// All of it as a tree.
    pub(crate) fn whole(&self) -> Value {
        let mut whole = self.body.clone();
        if let Some(list) = self.ledger.value() {
            whole["metadata"][MANAGED] = list;
        }
        whole
    }

    /// All of it as JSON.
    pub(crate) fn text(&self) -> &Bytes {
        self.text.get_or_init(|| scratch::text(|out| self.write(out)))
    }

    fn write(&self, out: &mut Vec<u8>) {
        let Value::Object(body) = &self.body else { return json(&self.body, out) };
        if self.ledger.is_empty() {
            return json(&self.body, out);
        }
        let mut sign = b'{';
        for (name, member) in body {
            out.push(std::mem::replace(&mut sign, b','));
            json(name, out);
            out.push(b':');
            match member {
                Value::Object(metadata) if name == "metadata" => {
                    listed(metadata, &self.ledger, out);
                }
                other => json(other, out),
            }
        }
        out.push(b'}');
    }
}

/// Writes metadata with a list, in its place in the order of names.
fn listed(metadata: &Map<String, Value>, list: &Ledger, out: &mut Vec<u8>) {
    let mut sign = b'{';
    let mut put = |name: &str, out: &mut Vec<u8>| {
        out.push(std::mem::replace(&mut sign, b','));
        json(name, out);
        out.push(b':');
    };
    let mut waits = true;
    for (name, member) in metadata {
        if waits && name.as_str() > MANAGED {
            put(MANAGED, out);
            list.write(out);
            waits = false;
        }
        put(name, out);
        json(member, out);
    }
    if waits {
        put(MANAGED, out);
        list.write(out);
    }
    out.push(b'}');
}

/// The target of parsing.
struct Parts {
    body: Value,
    ledger: Ledger,
}

impl<'de> Deserialize<'de> for Parts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = Parts;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Parts, A::Error> {
                let (mut body, mut ledger) = (Map::new(), Ledger::default());
                while let Some(name) = map.next_key::<String>()? {
                    let member = if name == "metadata" {
                        map.next_value_seed(Metadata(&mut ledger))?
                    } else {
                        map.next_value()?
                    };
                    body.insert(name, member);
                }
                Ok(Parts { body: body.into(), ledger })
            }
        }
        deserializer.deserialize_map(Members)
    }
}

/// Reads metadata, and puts the list where it belongs.
struct Metadata<'l>(&'l mut Ledger);

impl<'de> DeserializeSeed<'de> for Metadata<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Metadata<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("metadata")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut metadata = Map::new();
        while let Some(name) = map.next_key::<String>()? {
            if name == MANAGED {
                let list: Box<RawValue> = map.next_value()?;
                *self.0 = Ledger::written(Bytes::from(String::from(Box::<str>::from(list))));
            } else {
                metadata.insert(name, map.next_value()?);
            }
        }
        Ok(metadata.into())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Bytes, Ledger, ManagedObject, Value};

    fn object() -> Value {
        json!({
            "apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "1"},
            "metadata": {"name": "n", "labels": {"x": "y"}, "managedFields": [{
                "manager": "m", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1",
                "time": "2026-11-22T00:00:00Z", "fieldsV1": {"f:data": {"f:a": {}}},
            }]},
        })
    }

    #[test]
    fn managed_fields_are_printed_at_their_place_in_the_object() {
        let tracked = ManagedObject::new(object());
        assert!(tracked["metadata"].get("managedFields").is_none());
        assert_eq!(tracked.whole(), object());
        assert_eq!(tracked.text(), object().to_string().as_bytes());
        let mut read = ManagedObject::read(tracked.text());
        assert!(read["metadata"].get("managedFields").is_none());
        assert!(read.ledger().is_like(tracked.ledger()));
        assert_eq!(read.ledger().managers().len(), 1);
        read["data"]["a"] = "2".into();
        let mut changed = object();
        changed["data"]["a"] = "2".into();
        assert_eq!(read.text(), changed.to_string().as_bytes());
        read.set_ledger(Ledger::default());
        assert_eq!(read.whole(), *read);
        assert_eq!(read.text(), read.to_string().as_bytes());
    }

    #[test]
    fn value_that_is_no_object_is_read_unchanged() {
        for text in ["null", "{\"metadata\":null}", "{\"metadata\":{}}", "[1]"] {
            assert_eq!(
                ManagedObject::read(&Bytes::from_static(text.as_bytes())).text(),
                text.as_bytes()
            );
        }
    }
}
