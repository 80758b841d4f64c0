//! Follows a path through a Rust type, without a value of the type.

use std::cell::Cell;
use std::hash::{Hash as _, Hasher};
use std::mem;

use serde::de::value::StrDeserializer;
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, Error as _, MapAccess, SeqAccess,
};
use serde::de::{IntoDeserializer as _, Visitor};
use serde_json::Error;

/// A name that no field has.
pub(crate) const UNKNOWN_FIELD: &str = "\0";

/// What a type asks its deserializer for at one place.
#[derive(Clone, Copy, Default)]
pub(crate) enum Shape {
    /// Any value, or one that the type decides on by itself.
    #[default]
    Unknown,
    /// A value that the type drops.
    Ignored,
    Boolean,
    Integer,
    Number,
    Text,
    List,
    Map,
    Struct(&'static [&'static str]),
    /// An enum: the names of its variants.
    Enum(&'static [&'static str]),
}

/// One step from a value to a value in it.
#[derive(Clone, Copy)]
pub(crate) enum Step<'a> {
    Field(&'a str),
    Item,
    Value,
    /// The name of a field or of an enum's variant, not its value. It ends a path.
    Name(&'a str),
}

/// What a probe finds at the end of its path.
#[derive(Clone, Copy, Default)]
pub(crate) struct Found {
    pub(crate) shape: Shape,
    /// After [`Step::Name`]: a number that all names of one field or variant have in common.
    pub(super) identity: Option<u64>,
    /// Whether the type asked for the value at the end of the path.
    pub(crate) is_reached: bool,
}

/// A deserializer that follows a path through a type, and takes the shape at its end.
#[derive(Clone, Copy)]
struct Probe<'a> {
    path: &'a [Step<'a>],
    found: &'a Cell<Found>,
}

/// Follows a path through a type.
pub(crate) fn probe<T: DeserializeOwned>(path: &[Step<'_>]) -> Found {
    let found = Cell::default();
    // The probe ends every deserialization with an error, when it has seen enough.
    drop(T::deserialize(Probe { path, found: &found }));
    found.get()
}

impl<'a> Probe<'a> {
    /// Ends the deserialization; the shape counts if this is the end of the path.
    fn end<T>(self, shape: Shape) -> Result<T, Error> {
        if self.path.is_empty() {
            self.found.set(Found { shape, identity: None, is_reached: true });
        }
        Err(Error::custom(""))
    }

    /// Ends the deserialization at the name of a field or variant: `name` is the variant of the
    /// enum of all names, which the type's deserialization has for itself.
    fn end_name<T, N>(self, name: &N) -> Result<T, Error> {
        let mut identity = Identity(0);
        mem::discriminant(name).hash(&mut identity);
        self.found.set(Found { identity: Some(identity.0), ..Found::default() });
        Err(Error::custom(""))
    }

    /// The next step of the path, and the probe for the value that it leads to.
    fn step(self) -> Option<(Step<'a>, Self)> {
        let (step, path) = self.path.split_first()?;
        Some((*step, Self { path, ..self }))
    }
}

/// Methods of a deserializer that end at a shape.
macro_rules! ends {
    ($($method:ident => $shape:ident,)*) => {$(
        fn $method<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
            self.end(Shape::$shape)
        }
    )*};
}

impl<'de> Deserializer<'de> for Probe<'_> {
    type Error = Error;

    ends! {
        deserialize_any => Unknown,
        deserialize_bool => Boolean,
        deserialize_i8 => Integer,
        deserialize_i16 => Integer,
        deserialize_i32 => Integer,
        deserialize_i64 => Integer,
        deserialize_u8 => Integer,
        deserialize_u16 => Integer,
        deserialize_u32 => Integer,
        deserialize_u64 => Integer,
        deserialize_f32 => Number,
        deserialize_f64 => Number,
        deserialize_char => Text,
        deserialize_str => Text,
        deserialize_string => Text,
        deserialize_bytes => Unknown,
        deserialize_byte_buf => Unknown,
        deserialize_unit => Unknown,
        deserialize_identifier => Unknown,
        deserialize_ignored_any => Ignored,
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: V,
    ) -> Result<V::Value, Error> {
        self.end(Shape::Unknown)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.step() {
            Some((Step::Item, probe)) => visitor.visit_seq(One::new("", probe)),
            _ => self.end(Shape::List),
        }
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, _: V) -> Result<V::Value, Error> {
        self.end(Shape::Unknown)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: usize,
        _: V,
    ) -> Result<V::Value, Error> {
        self.end(Shape::Unknown)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.step() {
            Some((Step::Value, probe)) => visitor.visit_map(One::new(UNKNOWN_FIELD, probe)),
            _ => self.end(Shape::Map),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self.step() {
            Some((Step::Field(key), probe)) => visitor.visit_map(One::new(key, probe)),
            Some((Step::Name(name), probe)) => visitor.visit_map(Name { name, probe }),
            _ => self.end(Shape::Struct(fields)),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self.step() {
            Some((Step::Name(name), probe)) => visitor.visit_enum(Name { name, probe }),
            _ => self.end(Shape::Enum(variants)),
        }
    }
}

/// A map or a list of one value. A type may swallow the error of the probe and ask for more.
struct One<'a> {
    key: &'a str,
    /// `None` once the type has had the value.
    probe: Option<Probe<'a>>,
}

impl<'a> One<'a> {
    fn new(key: &'a str, probe: Probe<'a>) -> Self {
        Self { key, probe: Some(probe) }
    }
}

impl<'de> MapAccess<'de> for One<'_> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Error> {
        if self.probe.is_none() {
            return Ok(None);
        }
        seed.deserialize(text(self.key)).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        match self.probe.take() {
            Some(probe) => seed.deserialize(probe),
            None => Err(Error::custom("")),
        }
    }
}

impl<'de> SeqAccess<'de> for One<'_> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Error> {
        self.probe.take().map(|probe| seed.deserialize(probe)).transpose()
    }
}

/// The name of a field or of a variant, which has no value.
struct Name<'a> {
    name: &'a str,
    probe: Probe<'a>,
}

impl<'de> MapAccess<'de> for Name<'_> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Error> {
        self.probe.end_name(&seed.deserialize(text(self.name))?)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, _: V) -> Result<V::Value, Error> {
        Err(Error::custom(""))
    }
}

impl<'de> EnumAccess<'de> for Name<'_> {
    type Error = Error;
    // Nobody gets one.
    type Variant = <StrDeserializer<'de, Error> as EnumAccess<'de>>::Variant;

    fn variant_seed<V: DeserializeSeed<'de>>(
        self,
        seed: V,
    ) -> Result<(V::Value, Self::Variant), Error> {
        self.probe.end_name(&seed.deserialize(text(self.name))?)
    }
}

fn text(text: &str) -> StrDeserializer<'_, Error> {
    text.into_deserializer()
}

/// The bytes that a value gives to a hasher, as a number.
struct Identity(u64);

impl Hasher for Identity {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
