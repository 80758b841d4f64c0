//! Sets of fields, as `fieldsV1` in `managedFields` writes them.
//!
//! The format is that of structured-merge-diff. A set is a tree. Each element of a path is a field
//! (`f:name`), an item of a list by its keys (`k:{"name":"a"}`), a member of a list that is a set
//! (`v:"x"`) or an item by its index (`i:0`). The element `.` means that the path above it is
//! itself in the set. A path that ends without further elements is in the set too.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Element {
    /// A member of an object.
    Field(Box<str>),
    /// An item of a list, by its keys: their names, and their values as JSON text.
    Key(BTreeMap<Box<str>, Box<str>>),
    /// A member of a list that is a set: its value as JSON text.
    Value(Box<str>),
    /// An item of a list, by its index.
    Index(u64),
}

/// Why a text is no set of fields.
#[derive(Debug, thiserror::Error)]
pub enum FieldSetError {
    /// The text is not JSON, or has an element that is none of `f:`, `k:`, `v:`, `i:` and `.`.
    #[error("not a set of fields (fieldsV1): {0}")]
    Json(#[from] serde_json::Error),
}

/// A set of fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSet {
    nodes: BTreeMap<Element, Node>,
}

/// One element of a set, with the fields below it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Node {
    member: bool,
    below: FieldSet,
}

impl Node {
    /// Whether the path of the element is itself in the set.
    pub fn is_member(&self) -> bool {
        self.member
    }

    /// The fields below; empty for a leaf.
    pub fn below(&self) -> &FieldSet {
        &self.below
    }

    /// Whether no fields are below: the path stands for its whole value.
    pub fn is_leaf(&self) -> bool {
        self.below.is_empty()
    }

    fn is_empty(&self) -> bool {
        !self.member && self.below.is_empty()
    }
}

impl FieldSet {
    /// Parses a `fieldsV1` document.
    ///
    /// # Errors
    /// Returns an error with line and column if the text is not JSON or not of that format.
    pub fn parse(text: &str) -> Result<Self, FieldSetError> {
        Ok(serde_json::from_str(text)?)
    }

    /// Whether the set has no paths.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The number of paths in the set.
    pub fn len(&self) -> usize {
        self.nodes.values().map(|node| usize::from(node.member) + node.below.len()).sum()
    }

    /// The top-level element, if the set has it.
    pub fn get(&self, element: &Element) -> Option<&Node> {
        self.nodes.get(element)
    }

    /// The top-level field with this name, if the set has it.
    pub fn field(&self, name: &str) -> Option<&Node> {
        self.nodes.get(&Element::Field(name.into()))
    }

    /// The top-level elements, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&Element, &Node)> {
        self.nodes.iter()
    }

    /// Returns the paths that are in this set, in the other, or in both.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        let mut union = self.clone();
        for (element, node) in &other.nodes {
            let own = union.nodes.entry(element.clone()).or_default();
            own.member |= node.member;
            own.below = own.below.union(&node.below);
        }
        union
    }

    /// Returns the paths that are in this set and not in the other.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        let nodes = self.nodes.iter().filter_map(|(element, node)| {
            let rest = match other.nodes.get(element) {
                None => node.clone(),
                Some(theirs) => Node {
                    member: node.member && !theirs.member,
                    below: node.below.difference(&theirs.below),
                },
            };
            (!rest.is_empty()).then(|| (element.clone(), rest))
        });
        Self { nodes: nodes.collect() }
    }

    /// Returns the paths that are in both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        let nodes = self.nodes.iter().filter_map(|(element, node)| {
            let theirs = other.nodes.get(element)?;
            let common = Node {
                member: node.member && theirs.member,
                below: node.below.intersection(&theirs.below),
            };
            (!common.is_empty()).then(|| (element.clone(), common))
        });
        Self { nodes: nodes.collect() }
    }

    /// Whether every path of the other set is in this one.
    pub fn contains(&self, other: &Self) -> bool {
        other.nodes.iter().all(|(element, node)| {
            self.nodes
                .get(element)
                .is_some_and(|own| (own.member || !node.member) && own.below.contains(&node.below))
        })
    }

    /// Lists the paths in order, as in `.spec.containers[name="a"].image`.
    ///
    /// It omits a path if the set has a longer one that begins with it.
    pub fn paths(&self) -> Vec<String> {
        let mut paths = Vec::new();
        self.collect(&mut String::new(), false, &mut paths);
        paths
    }

    /// Collects the paths. `whole`: do not descend into an item that is itself in the set.
    fn collect(&self, prefix: &mut String, whole: bool, paths: &mut Vec<String>) {
        for (element, node) in &self.nodes {
            let length = prefix.len();
            // Writing into a String does not fail.
            let _ = fmt::write(prefix, format_args!("{element}"));
            let is_item = !matches!(element, Element::Field(_));
            if node.is_leaf() || (whole && is_item && node.member) {
                paths.push(prefix.clone());
            } else {
                node.below.collect(prefix, whole, paths);
            }
            prefix.truncate(length);
        }
    }
}

/// Lists the paths of `before` that `after` lacks, in order, as [`FieldSet::paths`] writes them.
///
/// An item of a list that `after` lacks as a whole is listed once, without its fields.
pub fn lost_paths(before: &FieldSet, after: &FieldSet) -> Vec<String> {
    let mut paths = Vec::new();
    before.difference(after).collect(&mut String::new(), true, &mut paths);
    paths
}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) if is_plain(name) => write!(f, ".{name}"),
            Self::Field(name) => write!(f, "[{}]", Value::from(&**name)),
            Self::Key(keys) => {
                for (index, (name, value)) in keys.iter().enumerate() {
                    write!(f, "{}{name}={value}", if index == 0 { "[" } else { "," })?;
                }
                f.write_str("]")
            }
            Self::Value(value) => write!(f, "[={value}]"),
            Self::Index(index) => write!(f, "[{index}]"),
        }
    }
}

/// Whether the name of a field can follow a dot.
fn is_plain(name: &str) -> bool {
    !name.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

impl Element {
    /// Parses an element of `fieldsV1`.
    fn parse(text: &str) -> Result<Self, String> {
        let bad = |error: serde_json::Error| format!("the element `{text}`: {error}");
        match text.split_once(':') {
            Some(("f", name)) => Ok(Self::Field(name.into())),
            Some(("k", keys)) => {
                let keys: BTreeMap<Box<str>, Value> = serde_json::from_str(keys).map_err(bad)?;
                Ok(Self::Key(keys.into_iter().map(|(name, value)| (name, json(&value))).collect()))
            }
            Some(("v", value)) => {
                Ok(Self::Value(json(&serde_json::from_str::<Value>(value).map_err(bad)?)))
            }
            Some(("i", index)) => Ok(Self::Index(
                index.parse().map_err(|error| format!("the element `{text}`: {error}"))?,
            )),
            _ => Err(format!("the element `{text}` is none of f:, k:, v:, i: and .")),
        }
    }
}

/// The JSON text of a value in an element. Such values are scalars, so equal values have equal
/// texts.
pub(crate) fn json(value: &Value) -> Box<str> {
    value.to_string().into()
}

impl<'de> Deserialize<'de> for FieldSet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Node::deserialize(deserializer)?.below)
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NodeVisitor;

        impl<'de> Visitor<'de> for NodeVisitor {
            type Value = Node;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of path elements")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node, A::Error> {
                let mut node = Node::default();
                while let Some(Step(element)) = map.next_key()? {
                    if let Some(element) = element {
                        node.below.nodes.insert(element, map.next_value()?);
                    } else {
                        node.member = true;
                        map.next_value::<IgnoredAny>()?;
                    }
                }
                node.member |= node.below.is_empty();
                Ok(node)
            }
        }

        deserializer.deserialize_map(NodeVisitor)
    }
}

/// A name in `fieldsV1`: an element, or `None` for `.`.
struct Step(Option<Element>);

impl<'de> Deserialize<'de> for Step {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct StepVisitor;

        impl Visitor<'_> for StepVisitor {
            type Value = Step;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a path element")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Step, E> {
                if text == "." {
                    return Ok(Step(None));
                }
                Element::parse(text).map(|element| Step(Some(element))).map_err(E::custom)
            }
        }

        deserializer.deserialize_str(StepVisitor).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    const POD: &str = r#"{
        "f:metadata":{"f:labels":{"f:app":{},"f:app.kubernetes.io/name":{}},"f:finalizers":{".":{},"v:\"a/b\"":{}}},
        "f:spec":{"f:containers":{
            "k:{\"name\":\"a\"}":{".":{},"f:image":{},"f:name":{},"f:ports":{
                "k:{\"containerPort\":53,\"protocol\":\"UDP\"}":{".":{},"f:containerPort":{}}}}}},
        "f:old":{"i:2":{}}}"#;

    fn set(text: &str) -> FieldSet {
        FieldSet::parse(text).unwrap()
    }

    fn check(set: &FieldSet, expect: &Expect) {
        expect.assert_eq(&set.paths().join("\n"));
    }

    #[test]
    fn paths_are_listed_in_order() {
        check(
            &set(POD),
            &expect![[r#"
                .metadata.finalizers[="a/b"]
                .metadata.labels.app
                .metadata.labels["app.kubernetes.io/name"]
                .old[2]
                .spec.containers[name="a"].image
                .spec.containers[name="a"].name
                .spec.containers[name="a"].ports[containerPort=53,protocol="UDP"].containerPort"#]],
        );
    }

    #[test]
    fn lost_item_is_listed_once() {
        let after = r#"{"f:metadata":{"f:labels":{"f:app":{}}},
            "f:spec":{"f:containers":{"k:{\"name\":\"a\"}":{".":{},"f:name":{}}}},"f:old":{"i:2":{}}}"#;
        expect![[r#"
            [
                ".metadata.finalizers[=\"a/b\"]",
                ".metadata.labels[\"app.kubernetes.io/name\"]",
                ".spec.containers[name=\"a\"].image",
                ".spec.containers[name=\"a\"].ports[containerPort=53,protocol=\"UDP\"]",
            ]
        "#]]
        .assert_debug_eq(&lost_paths(&set(POD), &set(after)));
        assert_eq!(lost_paths(&set(after), &set(POD)), Vec::<String>::new());
    }

    #[test]
    fn union_difference_and_intersection_agree() {
        let a = set(r#"{"f:a":{".":{},"f:b":{}},"f:c":{}}"#);
        let b = set(r#"{"f:a":{"f:b":{},"f:d":{}},"f:e":{}}"#);
        let union = a.union(&b);
        assert_eq!(union, set(r#"{"f:a":{".":{},"f:b":{},"f:d":{}},"f:c":{},"f:e":{}}"#));
        assert_eq!(a.difference(&b), set(r#"{"f:a":{},"f:c":{}}"#));
        assert_eq!(a.intersection(&b), set(r#"{"f:a":{"f:b":{}}}"#));
        assert!(union.contains(&a) && union.contains(&b) && !a.contains(&b) && !a.contains(&union));
        assert_eq!(a.difference(&b).union(&a.intersection(&b)), a);
        assert_eq!((a.len(), union.len()), (3, 5));
        assert!(a.difference(&a).is_empty());
    }

    #[test]
    fn keys_are_equal_when_their_texts_differ_in_form() {
        assert_eq!(
            set(r#"{"f:p":{"k:{\"port\": 80, \"name\":\"a\\u003cb\"}":{}}}"#),
            set(r#"{"f:p":{"k:{\"name\":\"a<b\",\"port\":80}":{}}}"#)
        );
    }

    #[test]
    fn malformed_set_is_refused_with_the_element() {
        for (text, message) in [
            ("", "EOF"),
            ("[]", "an object of path elements"),
            (r#"{"spec":{}}"#, "the element `spec` is none of"),
            (r#"{"k:name":{}}"#, "the element `k:name`"),
            (r#"{"i:x":{}}"#, "the element `i:x`"),
            (r#"{"f:a":1}"#, "an object of path elements"),
        ] {
            let error = FieldSet::parse(text).unwrap_err().to_string();
            assert!(error.contains(message), "{text}: {error}");
        }
    }
}
