use std::fmt;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

/// Any JSON value, as its compact text.
///
/// For large parts of a document that are kept for long and seldom read, such as the definitions in
/// a [`Manifest`](crate::Manifest): a tree takes about nine times as much memory as the text. In
/// the host the members of an object are in the order of their names, so objects with equal members
/// have equal texts.
#[derive(Clone, PartialEq, Eq)]
pub struct JsonText(Box<str>);

impl JsonText {
    /// Returns the compact text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the value, which it parses each time: a caller that reads several members keeps it.
    pub fn value(&self) -> Value {
        // The text of a document has been read once. Only a value that a program has nested deeper
        // itself, in more than 127 levels, reads as null.
        serde_json::from_str(&self.0).unwrap_or_default()
    }
}

impl From<&Value> for JsonText {
    fn from(value: &Value) -> Self {
        Self(value.to_string().into_boxed_str())
    }
}

impl From<Value> for JsonText {
    fn from(value: Value) -> Self {
        Self::from(&value)
    }
}

impl fmt::Debug for JsonText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for JsonText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.value().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for JsonText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Value::deserialize(deserializer).map(Self::from)?;
        // The marker of a raw value nests more levels in a document than one parse reads.
        serde_json::from_str::<Value>(&text.0).map_err(D::Error::custom)?;
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn text_is_compact_and_reads_as_the_same_value() {
        let text: JsonText =
            serde_json::from_str(r#"{ "b": [1, 0.1, null], "a": "\u00e9\n" }"#).unwrap();
        assert_eq!(text.as_str(), r#"{"a":"é\n","b":[1,0.1,null]}"#);
        let value = json!({"a": "é\n", "b": [1, 0.1, null]});
        assert_eq!(text.value(), value);
        assert_eq!(text, JsonText::from(&value));
        assert_eq!(serde_json::to_value(&text).unwrap(), value);
    }

    #[test]
    fn deepest_value_of_a_document_reads_as_itself() {
        let nested = |levels| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        let text: JsonText = serde_json::from_str(&nested(127)).unwrap();
        assert_eq!(text.value().to_string(), nested(127));
        assert!(serde_json::from_str::<JsonText>(&nested(128)).is_err());
        let raw = |levels| {
            let marker = json!({"$serde_json::private::RawValue": nested(levels)});
            serde_json::from_str::<JsonText>(&format!("[{marker}]"))
        };
        assert_eq!(raw(126).unwrap().as_str(), nested(127));
        let error = raw(127).unwrap_err().to_string();
        assert!(error.starts_with("recursion limit exceeded"), "{error}");
    }
}
