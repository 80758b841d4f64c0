//! Parses and prints sets of fields as `fieldsV1`. Most are only parsed and printed again.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, Visitor};

use crate::apply::fieldset::{Element, FieldSet, Step};
use crate::scratch::json;

/// The name of a member: a step, or the mark that the step above is in the set itself.
enum Name {
    Itself,
    Step(Element),
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = Name;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a step of a path")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Name, E> {
                if text == "." {
                    return Ok(Name::Itself);
                }
                Element::parse(text).map(Name::Step).ok_or_else(|| E::custom("no such step"))
            }
        }
        deserializer.deserialize_str(Text)
    }
}

/// The fields below a step.
struct Below {
    /// Whether the step itself is in the set.
    member: bool,
    set: FieldSet,
}

impl<'de> Deserialize<'de> for Below {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Steps;
        impl<'de> Visitor<'de> for Steps {
            type Value = Below;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a set of fields")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Below, A::Error> {
                let mut below = Below { member: false, set: FieldSet::default() };
                let (mut named, mut any) = (false, false);
                while let Some(name) = map.next_key::<Name>()? {
                    any = true;
                    if let Name::Step(element) = name {
                        let inner: Self::Value = map.next_value()?;
                        below.set.put(&element, inner.member, inner.set);
                    } else {
                        named = true;
                        map.next_value::<IgnoredAny>()?;
                    }
                }
                below.member = named || !any;
                Ok(below)
            }
        }
        deserializer.deserialize_map(Steps)
    }
}

/// Reads a text.
pub(crate) fn read(text: &str) -> Option<FieldSet> {
    serde_json::from_str::<Below>(text).ok().map(|below| below.set)
}

/// Writes a set.
pub(crate) fn write(set: &FieldSet, out: &mut Vec<u8>) {
    inside(set, false, out);
}

fn inside(set: &FieldSet, member: bool, out: &mut Vec<u8>) {
    out.push(b'{');
    let begin = out.len();
    let comma = |out: &mut Vec<u8>| {
        if out.len() > begin {
            out.push(b',');
        }
    };
    if member {
        out.extend_from_slice(b"\".\":{}");
    }
    let names = |step: &Step<'_>| matches!(step.0, Element::Field(_));
    let steps: Vec<Step<'_>> = set.steps().collect();
    if steps.iter().all(names) {
        for (element, member, child) in steps {
            comma(out);
            if let Element::Field(name) = element {
                field(name, out);
            }
            below(member, child, out);
        }
    } else {
        // Names are in the order of their texts; other steps are not.
        let mut texts: Vec<(String, bool, Option<&FieldSet>)> =
            steps.into_iter().map(|(step, member, child)| (step.encode(), member, child)).collect();
        texts.sort_by(|(one, ..), (other, ..)| one.cmp(other));
        for (text, member, child) in texts {
            comma(out);
            json(&text, out);
            below(member, child, out);
        }
    }
    out.push(b'}');
}

fn below(member: bool, child: Option<&FieldSet>, out: &mut Vec<u8>) {
    out.push(b':');
    match child {
        Some(child) => inside(child, member, out),
        None => out.extend_from_slice(b"{}"),
    }
}

fn field(name: &str, out: &mut Vec<u8>) {
    if name.bytes().all(|byte| byte >= b' ' && byte != b'"' && byte != b'\\') {
        out.extend_from_slice(b"\"f:");
        out.extend_from_slice(name.as_bytes());
        out.push(b'"');
    } else {
        json(&["f:", name].concat(), out);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{FieldSet, read, write};

    #[test]
    fn field_set_is_printed_as_its_json_tree() {
        for tree in [
            json!({}),
            json!({"f:data": {".": {}, "f:a": {}, "f:b\"\n": {}}, "f:x": {"f:y": {}}}),
            json!({"f:spec": {"f:ports": {
                "k:{\"port\":10,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}},
                "k:{\"port\":9,\"protocol\":\"TCP\"}": {"f:port": {}},
            }}}),
            json!({"f:metadata": {"f:finalizers": {".": {}, "v:\"b\"": {}, "v:\"a\"": {}}}}),
            json!({"f:list": {"i:10": {}, "i:9": {"f:a": {}}}}),
        ] {
            let set = FieldSet::parse(&tree).unwrap();
            let mut text = Vec::new();
            write(&set, &mut text);
            let text = String::from_utf8(text).unwrap();
            assert_eq!(text, set.encode().to_string());
            assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), tree);
            assert_eq!(read(&text), Some(set));
        }
        assert_eq!(read("{\"x\":{}}"), None);
        assert_eq!(read("[]"), None);
    }
}
