//! A document of a limited size, also after its aliases are replaced by what they stand for.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// Reads a value, and subtracts its size from a budget in bytes.
pub(crate) struct BoundedValue<'a>(pub(crate) &'a mut usize);

/// What a scalar, a list or a map counts in addition to its text, in bytes.
const NODE_BYTES: usize = 8;

impl BoundedValue<'_> {
    fn spend<E: Error>(&mut self, text: usize) -> Result<(), E> {
        match self.0.checked_sub(text + NODE_BYTES) {
            Some(rest) => {
                *self.0 = rest;
                Ok(())
            }
            None => Err(E::custom("the document is too large")),
        }
    }
}

impl<'de> DeserializeSeed<'de> for BoundedValue<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for BoundedValue<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value as in JSON")
    }

    fn visit_unit<E: Error>(mut self) -> Result<Value, E> {
        self.spend(0)?;
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(mut self, value: bool) -> Result<Value, E> {
        self.spend(0)?;
        Ok(value.into())
    }

    fn visit_i64<E: Error>(mut self, value: i64) -> Result<Value, E> {
        self.spend(0)?;
        Ok(value.into())
    }

    fn visit_u64<E: Error>(mut self, value: u64) -> Result<Value, E> {
        self.spend(0)?;
        Ok(value.into())
    }

    fn visit_f64<E: Error>(mut self, value: f64) -> Result<Value, E> {
        self.spend(0)?;
        let number = Number::from_f64(value).ok_or_else(|| E::custom("no finite number"))?;
        Ok(Value::Number(number))
    }

    fn visit_str<E: Error>(mut self, value: &str) -> Result<Value, E> {
        self.spend(value.len())?;
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut seq: A) -> Result<Value, A::Error> {
        self.spend(0)?;
        let mut items = Vec::new();
        while let Some(item) = seq.next_element_seed(BoundedValue(&mut *self.0))? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<Value, A::Error> {
        self.spend(0)?;
        let mut members = Map::new();
        while let Some(name) = map.next_key::<String>()? {
            self.spend(name.len())?;
            let value = map.next_value_seed(BoundedValue(&mut *self.0))?;
            if members.contains_key(&name) {
                return Err(A::Error::custom(format_args!("`{name}` is there twice")));
            }
            members.insert(name, value);
        }
        Ok(Value::Object(members))
    }
}
