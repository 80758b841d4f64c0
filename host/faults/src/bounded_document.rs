//! Foreign documents of a limited size, also after their aliases are replaced by what they stand
//! for.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// The most opening brackets of YAML. The parser's time grows with the square of the number of
/// those that are open at once. Quotes and comments make it hard to see which are, so all count.
/// JSON has a parser of its own.
const OPENING_BRACKETS_MAX: usize = 10_000;

/// What a scalar, a list or a map counts in addition to its text, in bytes.
const NODE_BYTES: usize = 16;

/// Reads a document of YAML, of which JSON is a part, whose values have at most as many bytes.
///
/// # Errors
/// Why the text is no YAML, has too much in it, or has a member twice.
pub fn bounded_yaml(text: &[u8], bytes_max: usize) -> Result<Value, String> {
    // The parser of YAML has no limit of time.
    if let Ok(value) = bounded_json(text, bytes_max) {
        return Ok(value);
    }
    if opening_brackets(text) > OPENING_BRACKETS_MAX {
        return Err(format!(
            "YAML with more than {OPENING_BRACKETS_MAX} opening brackets takes too long to read: write it as JSON"
        ));
    }
    let deserializer = serde_yaml_ng::Deserializer::from_slice(text);
    let budget = &mut ValueBudget::refusing_duplicates(bytes_max);
    BoundedValue(budget).deserialize(deserializer).map_err(|error| error.to_string())
}

/// Reads a document of JSON whose values have at most as many bytes.
///
/// # Errors
/// Why the text is no JSON, has too much in it, or has a member twice.
pub fn bounded_json(text: &[u8], bytes_max: usize) -> Result<Value, String> {
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    let budget = &mut ValueBudget::refusing_duplicates(bytes_max);
    let value = BoundedValue(budget).deserialize(&mut deserializer);
    let value = value.and_then(|value| deserializer.end().map(|()| value));
    value.map_err(|error| error.to_string())
}

fn opening_brackets(text: &[u8]) -> usize {
    text.iter().filter(|byte| matches!(byte, b'[' | b'{')).count()
}

/// How many bytes the values of documents may have.
#[derive(Debug)]
pub struct ValueBudget {
    left: usize,
    max: usize,
    refuses_duplicates: bool,
}

impl ValueBudget {
    /// As many bytes for all documents. Of a member that is there twice the last one counts.
    pub fn new(bytes_max: usize) -> Self {
        Self { left: bytes_max, max: bytes_max, refuses_duplicates: false }
    }

    fn refusing_duplicates(bytes_max: usize) -> Self {
        Self { refuses_duplicates: true, ..Self::new(bytes_max) }
    }

    /// Reads the next document.
    ///
    /// # Errors
    /// Those of the parser, and if the values of the documents so far have too many bytes.
    pub fn read<'de, D: Deserializer<'de>>(&mut self, document: D) -> Result<Value, D::Error> {
        BoundedValue(self).deserialize(document)
    }
}

/// Reads a value, and subtracts its size from a budget.
struct BoundedValue<'a>(&'a mut ValueBudget);

impl BoundedValue<'_> {
    fn spend<E: Error>(&mut self, text: usize) -> Result<(), E> {
        let Some(rest) = self.0.left.checked_sub(text.saturating_add(NODE_BYTES)) else {
            let max = self.0.max;
            return Err(E::custom(format_args!(
                "the document is too large: its values have more than {max} bytes"
            )));
        };
        self.0.left = rest;
        Ok(())
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
        let number = Number::from_f64(value);
        number.map(Value::Number).ok_or_else(|| E::custom("a number is not finite"))
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
        while let Some(name) = map.next_key_seed(BoundedValue(&mut *self.0))? {
            let Value::String(name) = name else {
                return Err(A::Error::custom("the name of a member is no text"));
            };
            let value = map.next_value_seed(BoundedValue(&mut *self.0))?;
            if self.0.refuses_duplicates && members.contains_key(&name) {
                return Err(A::Error::custom(format_args!("the member {name:?} is there twice")));
            }
            members.insert(name, value);
        }
        Ok(Value::Object(members))
    }
}
