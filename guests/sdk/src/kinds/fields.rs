//! Structs of typed fields and of fields as JSON.

use serde::ser::{SerializeMap, SerializeSeq as _};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

/// A list that begins with elements as JSON.
struct Joined<'a, T> {
    verbatim: &'a [Value],
    typed: &'a [T],
}

impl<T: Serialize> Serialize for Joined<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(Some(self.verbatim.len() + self.typed.len()))?;
        for element in self.verbatim {
            list.serialize_element(element)?;
        }
        for element in self.typed {
            list.serialize_element(element)?;
        }
        list.end()
    }
}

/// Writes typed fields, remembers which, and at the end writes the other fields as JSON.
pub(super) struct Fields<'a, M> {
    map: M,
    verbatim: &'a Map<String, Value>,
    written: Vec<&'static str>,
}

impl<'a, M: SerializeMap> Fields<'a, M> {
    /// Begins the struct with these fields as JSON.
    pub(super) fn new<S>(serializer: S, verbatim: &'a Map<String, Value>) -> Result<Self, S::Error>
    where
        S: Serializer<SerializeMap = M>,
    {
        Ok(Self { map: serializer.serialize_map(None)?, verbatim, written: Vec::new() })
    }

    /// Writes a field, which replaces the one as JSON.
    pub(super) fn field<T: Serialize>(
        &mut self,
        key: &'static str,
        value: &T,
    ) -> Result<(), M::Error> {
        self.written.push(key);
        self.map.serialize_entry(key, value)
    }

    /// Writes a field that is set.
    pub(super) fn option<T: Serialize>(
        &mut self,
        key: &'static str,
        value: Option<&T>,
    ) -> Result<(), M::Error> {
        value.map_or(Ok(()), |value| self.field(key, value))
    }

    /// Writes a list after the elements as JSON. Leaves it out if it is empty and not `required`.
    pub(super) fn list<T: Serialize>(
        &mut self,
        key: &'static str,
        typed: &[T],
        required: bool,
    ) -> Result<(), M::Error> {
        let verbatim = self.verbatim.get(key).and_then(Value::as_array).map_or(&[][..], |all| all);
        if verbatim.is_empty() && typed.is_empty() && !required {
            return Ok(());
        }
        self.field(key, &Joined { verbatim, typed })
    }

    /// Writes the fields as JSON that have not been written.
    pub(super) fn end(mut self) -> Result<M::Ok, M::Error> {
        for (key, value) in self.verbatim {
            if !self.written.contains(&&**key) {
                self.map.serialize_entry(key, value)?;
            }
        }
        self.map.end()
    }
}
