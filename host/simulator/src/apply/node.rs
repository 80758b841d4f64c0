//! A schema as merging sees it: scalars, lists and maps.

use std::sync::OnceLock;

use serde_json::Value;

use crate::types::schema::{Additional, ListType, Schema, Type};

/// A place in a schema, with what it inherits from above.
#[derive(Clone, Copy)]
pub(crate) struct Node<'a> {
    schema: &'a Schema,
    /// What a reference says of the map it refers to.
    atomic: Option<bool>,
    /// Unknown members are kept here and below.
    preserve: bool,
    free: Free,
}

/// The shapes that no schema has.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Free {
    /// There is a schema.
    No,
    /// Maps are merged, lists are one value.
    Deduced,
    /// Maps and lists are one value.
    Atomic,
}

/// What kind of scalar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScalarKind {
    Numeric,
    String,
    Boolean,
    Any,
}

/// What a place holds.
pub(crate) enum Atom<'a> {
    Scalar(ScalarKind),
    List(List<'a>),
    Map(Map<'a>),
}

impl Atom<'_> {
    /// Whether both are scalars, both lists or both maps.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

/// A list.
#[derive(Clone, Copy)]
pub(crate) struct List<'a> {
    node: Node<'a>,
}

/// A map.
#[derive(Clone, Copy)]
pub(crate) struct Map<'a> {
    node: Node<'a>,
}

fn nothing() -> &'static Schema {
    static NOTHING: OnceLock<Schema> = OnceLock::new();
    NOTHING.get_or_init(Schema::default)
}

/// Whether a schema refers to an object of any content, as RawExtension is: it is one value.
fn is_raw(schema: &Schema) -> bool {
    let resolved = schema.resolved();
    schema.reference.is_some()
        && resolved.kind == Type::Object
        && resolved.properties.is_empty()
        && matches!(resolved.additional, Additional::Unsaid)
        && !resolved.preserve
}

impl<'a> Node<'a> {
    /// The root of a schema.
    pub(crate) fn root(schema: &'a Schema) -> Self {
        Self::of(schema, false)
    }

    /// Where no schema says anything.
    pub(crate) fn none() -> Self {
        Self { schema: nothing(), atomic: None, preserve: false, free: Free::Deduced }
    }

    fn atomic() -> Self {
        Self { schema: nothing(), atomic: None, preserve: false, free: Free::Atomic }
    }

    fn of(schema: &'a Schema, preserve: bool) -> Self {
        let resolved = schema.resolved();
        // The type of a reference starts again.
        let preserve = if schema.reference.is_some() { false } else { preserve };
        Self {
            schema: resolved,
            atomic: schema.atomic.or(resolved.atomic).or(is_raw(schema).then_some(true)),
            preserve: preserve || resolved.preserve,
            free: Free::No,
        }
    }

    /// What is here, if it is to hold `value`.
    pub(crate) fn atom(self, value: Option<&Value>) -> Atom<'a> {
        let any = |scalar| match value {
            Some(Value::Array(_)) => Atom::List(List { node: self }),
            Some(Value::String(_) | Value::Number(_) | Value::Bool(_)) => Atom::Scalar(scalar),
            _ => Atom::Map(Map { node: self }),
        };
        if self.free != Free::No {
            return any(ScalarKind::Any);
        }
        match self.schema.kind {
            Type::Any => any(ScalarKind::Any),
            Type::Object => Atom::Map(Map { node: self }),
            Type::Array => Atom::List(List { node: self }),
            Type::Integer | Type::Number => Atom::Scalar(ScalarKind::Numeric),
            Type::Boolean => Atom::Scalar(ScalarKind::Boolean),
            Type::String => match self.schema.format.as_str() {
                "" | "byte" => Atom::Scalar(ScalarKind::String),
                _ => Atom::Scalar(ScalarKind::Any),
            },
        }
    }

    /// As a map, if it can be one.
    pub(crate) fn as_map(self) -> Option<Map<'a>> {
        let can = self.free != Free::No || matches!(self.schema.kind, Type::Any | Type::Object);
        can.then_some(Map { node: self })
    }

    /// As a list, if it can be one; else whatever it is.
    pub(crate) fn list_atom(self) -> Atom<'a> {
        let can = self.free != Free::No || matches!(self.schema.kind, Type::Any | Type::Array);
        if can { Atom::List(List { node: self }) } else { self.atom(None) }
    }
}

impl<'a> List<'a> {
    /// Whether it is one value.
    pub(crate) fn is_atomic(self) -> bool {
        self.node.free != Free::No || self.node.schema.list == ListType::Atomic
    }

    /// How items are identified.
    pub(crate) fn kind(self) -> &'a ListType {
        if self.node.free == Free::No { &self.node.schema.list } else { &ListType::Atomic }
    }

    /// An item.
    pub(crate) fn element(self) -> Node<'a> {
        if self.node.free != Free::No {
            return Node::atomic();
        }
        match &self.node.schema.items {
            Some(items) => Node::of(items, self.node.preserve),
            None => Node::atomic(),
        }
    }

    /// What the member `name` of an item is if it is absent.
    pub(crate) fn key_default(self, name: &str) -> Option<&'a Value> {
        let items = self.node.schema.items.as_deref()?;
        items.resolved().properties.get(name)?.default.as_ref()
    }
}

impl<'a> Map<'a> {
    /// Whether it is one value.
    pub(crate) fn is_atomic(self) -> bool {
        match self.node.free {
            Free::No => self.node.atomic == Some(true),
            Free::Deduced => false,
            Free::Atomic => true,
        }
    }

    /// A member that the schema names.
    pub(crate) fn field(self, name: &str) -> Option<Node<'a>> {
        if self.node.free != Free::No {
            return None;
        }
        self.node.schema.properties.get(name).map(|schema| Node::of(schema, self.node.preserve))
    }

    /// A member that the schema does not name, if there may be one.
    pub(crate) fn element(self) -> Option<Node<'a>> {
        match self.node.free {
            Free::Deduced => return Some(Node::none()),
            Free::Atomic => return Some(Node::atomic()),
            Free::No => {}
        }
        match &self.node.schema.additional {
            Additional::Of(schema) => Some(Node::of(schema, self.node.preserve)),
            Additional::Anything => Some(Node::none()),
            Additional::Forbidden => None,
            Additional::Unsaid => {
                let free = self.node.preserve || self.node.schema.properties.is_empty();
                free.then(Node::none)
            }
        }
    }

    /// A member.
    pub(crate) fn member(self, name: &str) -> Node<'a> {
        self.field(name).or_else(|| self.element()).unwrap_or(Node::none())
    }
}
