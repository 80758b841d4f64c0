//! Sets of fields: those that a manager owns, or that differ between two objects.

use std::cmp::Ordering;
use std::fmt;

use serde_json::{Map, Value};

use crate::apply::node::{Atom, Node};
use crate::types::value;

/// A step, whether it is in the set, and what is below it.
pub(crate) type Step<'s> = (&'s Element, bool, Option<&'s FieldSet>);

/// A value in a path, with the order of the server.
#[derive(Clone, Debug)]
pub(crate) struct Scalar(pub(crate) Value);

impl PartialEq for Scalar {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Scalar {}

impl PartialOrd for Scalar {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Scalar {
    fn cmp(&self, other: &Self) -> Ordering {
        value::compare(&self.0, &other.0)
    }
}

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Element {
    /// A member of a map.
    Field(String),
    /// An item of a list, by some of its members.
    Key(Vec<(String, Scalar)>),
    /// An item of a set.
    Value(Scalar),
    /// An item of a list, by its place.
    Index(i64),
}

impl Element {
    /// The member of that name.
    pub(crate) fn field(name: &str) -> Self {
        Self::Field(name.to_owned())
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (tag, rest) = text.split_once(':')?;
        Some(match tag {
            "f" => Self::Field(rest.to_owned()),
            "v" => Self::Value(Scalar(serde_json::from_str(rest).ok()?)),
            "k" => {
                let map: Map<String, Value> = serde_json::from_str(rest).ok()?;
                let mut keys: Vec<_> =
                    map.into_iter().map(|(name, value)| (name, Scalar(value))).collect();
                keys.sort();
                Self::Key(keys)
            }
            "i" => Self::Index(rest.parse().ok()?),
            _ => return None,
        })
    }

    pub(crate) fn encode(&self) -> String {
        match self {
            Self::Field(name) => ["f:", name].concat(),
            Self::Value(value) => format!("v:{}", value.0),
            Self::Key(keys) => {
                let parts: Vec<String> = keys
                    .iter()
                    .map(|(name, value)| format!("{}:{}", Value::from(name.as_str()), value.0))
                    .collect();
                format!("k:{{{}}}", parts.join(","))
            }
            Self::Index(index) => format!("i:{index}"),
        }
    }
}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(f, ".{name}"),
            Self::Value(value) => write!(f, "[={}]", value.0),
            Self::Key(keys) => {
                let parts: Vec<String> =
                    keys.iter().map(|(name, value)| format!("{name}={}", value.0)).collect();
                write!(f, "[{}]", parts.join(","))
            }
            Self::Index(index) => write!(f, "[{index}]"),
        }
    }
}

/// A path as the server writes it: `.spec.ports[port=80].name`.
pub(crate) fn path_text(path: &[Element]) -> String {
    path.iter().map(Element::to_string).collect()
}

/// A set of fields. A field can be in it without its members.
///
/// Both lists are sorted by step: sets are small, and most are parsed and dropped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FieldSet {
    members: Vec<Element>,
    children: Vec<(Element, FieldSet)>,
}

impl FieldSet {
    /// Of these paths, each of names.
    pub(crate) fn of(paths: &[&[&str]]) -> Self {
        let mut set = Self::default();
        for path in paths {
            let path: Vec<Element> = path.iter().map(|name| Element::field(name)).collect();
            set.insert(&path);
        }
        set
    }

    /// Whether nothing is in it.
    pub(crate) fn is_empty(&self) -> bool {
        self.members.is_empty() && self.children.iter().all(|(_, child)| child.is_empty())
    }

    fn add(&mut self, element: &Element) {
        if let Err(place) = self.members.binary_search(element) {
            self.members.insert(place, element.clone());
        }
    }

    fn child(&self, element: &Element) -> Option<&Self> {
        let place = self.children.binary_search_by(|(one, _)| one.cmp(element)).ok()?;
        self.children.get(place).map(|(_, child)| child)
    }

    fn child_mut(&mut self, element: &Element) -> &mut Self {
        let place = match self.children.binary_search_by(|(one, _)| one.cmp(element)) {
            Ok(place) => place,
            Err(place) => {
                self.children.insert(place, (element.clone(), Self::default()));
                place
            }
        };
        &mut self.children[place].1
    }

    /// Inserts a path; the empty path is no field.
    pub(crate) fn insert(&mut self, path: &[Element]) {
        match path {
            [] => {}
            [last] => self.add(last),
            [first, rest @ ..] => self.child_mut(first).insert(rest),
        }
    }

    /// Inserts a step, if it is to be a member, and the fields below it.
    pub(crate) fn put(&mut self, element: &Element, member: bool, below: Self) {
        if member {
            self.add(element);
        }
        if !below.members.is_empty() || !below.children.is_empty() {
            *self.child_mut(element) = below;
        }
    }

    /// Whether everything in it is in the other.
    pub(crate) fn is_within(&self, other: &Self) -> bool {
        self.members.iter().all(|element| other.has(element))
            && self.children.iter().all(|(element, child)| {
                child.is_empty()
                    || other.child(element).is_some_and(|theirs| child.is_within(theirs))
            })
    }

    /// Removes the fields of the other set.
    pub(crate) fn subtract(&mut self, other: &Self) {
        if !other.members.is_empty() {
            self.members.retain(|element| !other.has(element));
        }
        self.children.retain_mut(|(element, child)| {
            if let Some(theirs) = other.child(element) {
                child.subtract(theirs);
            }
            !child.is_empty()
        });
    }

    /// Removes the fields of the other set, and all fields below them.
    pub(crate) fn cut(&mut self, other: &Self) {
        if !other.members.is_empty() {
            self.members.retain(|element| !other.has(element));
        }
        self.children.retain_mut(|(element, child)| {
            if other.has(element) {
                return false;
            }
            if let Some(theirs) = other.child(element) {
                child.cut(theirs);
            }
            !child.is_empty()
        });
    }

    /// Whether the one step is in it.
    pub(crate) fn has(&self, element: &Element) -> bool {
        self.members.binary_search(element).is_ok()
    }

    /// Whether both have a field in common.
    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        self.members.iter().any(|element| other.has(element))
            || self.children.iter().any(|(element, child)| {
                other.child(element).is_some_and(|theirs| child.overlaps(theirs))
            })
    }

    /// Each step in its order, with whether it is in it and what is below it.
    pub(crate) fn steps(&self) -> impl Iterator<Item = Step<'_>> {
        let (mut members, mut children) =
            (self.members.iter().peekable(), self.children.iter().peekable());
        std::iter::from_fn(move || {
            let order = match (members.peek(), children.peek()) {
                (None, None) => return None,
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(member), Some((element, _))) => (*member).cmp(element),
            };
            let member = if order.is_le() { members.next() } else { None };
            let child = if order.is_ge() { children.next() } else { None };
            let element = member.or(child.map(|(element, _)| element))?;
            Some((element, member.is_some(), child.map(|(_, child)| child)))
        })
    }

    /// Whether the path is in it.
    pub(crate) fn has_path(&self, path: &[Element]) -> bool {
        match path {
            [] => false,
            [last] => self.has(last),
            [first, rest @ ..] => self.child(first).is_some_and(|child| child.has_path(rest)),
        }
    }

    /// The fields below a step.
    pub(crate) fn below(&self, element: &Element) -> Option<&Self> {
        self.child(element).filter(|child| !child.is_empty())
    }

    /// The union.
    pub(crate) fn union(&self, other: &Self) -> Self {
        let mut result = self.clone();
        result.extend(other);
        result
    }

    /// Inserts the fields of the other set.
    pub(crate) fn extend(&mut self, other: &Self) {
        for element in &other.members {
            self.add(element);
        }
        for (element, child) in &other.children {
            self.child_mut(element).extend(child);
        }
    }

    /// The intersection.
    pub(crate) fn intersection(&self, other: &Self) -> Self {
        let both = self.children.iter().filter_map(|(element, child)| {
            let both = child.intersection(other.child(element)?);
            (!both.is_empty()).then(|| (element.clone(), both))
        });
        let members = self.members.iter().filter(|element| other.has(element));
        Self { children: both.collect(), members: members.cloned().collect() }
    }

    /// The difference.
    pub(crate) fn difference(&self, other: &Self) -> Self {
        let mut result = self.clone();
        result.subtract(other);
        result
    }

    /// The set with the named fields above its members, as the schema has them.
    pub(crate) fn with_named(&self, node: Node<'_>) -> Self {
        let mut result = Self { members: self.members.clone(), children: Vec::new() };
        for (element, child) in &self.children {
            let mut below = Node::none();
            match element {
                Element::Field(name) => {
                    if let Some(map) = node.as_map() {
                        if let Some(field) = map.field(name) {
                            result.add(element);
                            below = field;
                        } else {
                            below = map.element().unwrap_or(Node::none());
                        }
                    }
                }
                Element::Key(_) => {
                    if let Atom::List(list) = node.list_atom() {
                        below = list.element();
                    }
                }
                Element::Value(_) | Element::Index(_) => {}
            }
            result.children.push((element.clone(), child.with_named(below)));
        }
        result
    }

    /// Replaces the parts of a field by the field itself where the schema is now atomic.
    pub(crate) fn joined(&self, node: Node<'_>) -> Self {
        let mut result = Self { members: self.members.clone(), children: Vec::new() };
        for (element, child) in &self.children {
            let below = match element {
                Element::Field(name) => node.as_map().map_or(Node::none(), |map| map.member(name)),
                Element::Key(_) => match node.list_atom() {
                    Atom::List(list) => list.element(),
                    _ => Node::none(),
                },
                Element::Value(_) | Element::Index(_) => Node::none(),
            };
            let one = below.as_map().is_some_and(crate::apply::node::Map::is_atomic)
                || matches!(below.list_atom(), Atom::List(list) if list.is_atomic());
            if one {
                result.add(element);
            } else {
                result.children.push((element.clone(), child.joined(below)));
            }
        }
        result
    }

    /// Calls `visit` with each path, parents before what is below the next.
    pub(crate) fn each(&self, visit: &mut dyn FnMut(&[Element])) {
        self.each_below(&mut Vec::new(), visit);
    }

    fn each_below(&self, prefix: &mut Vec<Element>, visit: &mut dyn FnMut(&[Element])) {
        for element in &self.members {
            prefix.push(element.clone());
            visit(prefix);
            prefix.pop();
        }
        for (element, child) in &self.children {
            prefix.push(element.clone());
            child.each_below(prefix, visit);
            prefix.pop();
        }
    }

    /// Reads `fieldsV1`.
    pub(crate) fn parse(value: &Value) -> Option<Self> {
        let mut set = Self::default();
        for (name, inner) in value.as_object()? {
            if name == "." {
                continue;
            }
            let element = Element::parse(name)?;
            let below = inner.as_object()?;
            let member = below.is_empty() || below.contains_key(".");
            set.put(&element, member, Self::parse(inner)?);
        }
        Some(set)
    }

    /// Writes `fieldsV1`.
    pub(crate) fn encode(&self) -> Value {
        let mut map = Map::new();
        for element in &self.members {
            if self.child(element).is_none() {
                map.insert(element.encode(), Value::Object(Map::new()));
            }
        }
        for (element, child) in &self.children {
            let mut inner = child.encode();
            if let Value::Object(inner) = &mut inner
                && self.has(element)
            {
                inner.insert(".".to_owned(), Value::Object(Map::new()));
            }
            map.insert(element.encode(), inner);
        }
        Value::Object(map)
    }
}
