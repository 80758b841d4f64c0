//! The schema of an object: one form for built-in kinds and custom resources.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::OnceLock;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::types::crd::cel_rule::Rule;

/// The built-in kinds and their types, as `cargo xtask openapi` writes them.
pub(crate) const BUILTIN_DOCUMENT: &str = include_str!("../../data/kubernetes.json");

/// The built-in types by name.
pub(crate) struct BuiltinTypes {
    all: BTreeMap<&'static str, BuiltinType>,
}

/// A built-in type, parsed when it is first needed: most clusters use few of them.
struct BuiltinType {
    text: &'static RawValue,
    schema: OnceLock<Schema>,
}

impl BuiltinTypes {
    /// The type of that name.
    pub(crate) fn get(&self, name: &str) -> Option<&Schema> {
        let one = self.all.get(name)?;
        Some(one.schema.get_or_init(|| {
            let value: Value = serde_json::from_str(one.text.get()).unwrap_or_default();
            let mut schema = Schema::parse(&value);
            schema.free = schema.properties.is_empty();
            schema
        }))
    }
}

/// The built-in types. The document is split once.
pub(crate) fn builtin_types() -> &'static BuiltinTypes {
    #[derive(Default, Deserialize)]
    struct Document<'a> {
        #[serde(borrow)]
        types: BTreeMap<&'a str, &'a RawValue>,
    }
    static TYPES: OnceLock<BuiltinTypes> = OnceLock::new();
    TYPES.get_or_init(|| {
        let document: Document<'static> =
            serde_json::from_str(BUILTIN_DOCUMENT).unwrap_or_default();
        let types = document.types.into_iter();
        let types = types.map(|(name, text)| (name, BuiltinType { text, schema: OnceLock::new() }));
        BuiltinTypes { all: types.collect() }
    })
}

/// The type of a value, from `type`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Type {
    /// Absent: any value.
    #[default]
    Any,
    Object,
    Array,
    String,
    Integer,
    Number,
    Boolean,
}

/// How the items of a list are identified.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum ListType {
    /// They are not: the list is one value.
    #[default]
    Atomic,
    /// By themselves.
    Set,
    /// By these of their members.
    Map(Vec<String>),
}

/// Whether a map may have members that its schema does not name.
#[derive(Clone, Debug, Default)]
pub(crate) enum Additional {
    /// Absent.
    #[default]
    Unsaid,
    /// It must not.
    Forbidden,
    /// Of any shape.
    Anything,
    /// Of this shape.
    Of(Box<Schema>),
}

/// How strategic merge patches treat a list or map.
#[derive(Clone, Debug, Default)]
pub(crate) struct Strategy {
    pub(crate) merge: bool,
    pub(crate) key: Option<String>,
}

/// How Go writes a field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Go {
    /// As it is.
    #[default]
    Plain,
    /// Left out if it is zero, or a struct of nothing.
    Omitted,
    /// A list, map or time that is written as null if absent.
    Null,
}

/// The built-in types that Go writes in a way of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scalar {
    Quantity,
    Time,
    MicroTime,
}

/// A built-in type by its name, with the type once it was looked for.
#[derive(Clone)]
pub(crate) struct Reference {
    pub(crate) name: String,
    pub(crate) scalar: Option<Scalar>,
    found: OnceLock<Option<&'static Schema>>,
}

impl Reference {
    /// To the type of that name.
    pub(crate) fn new(name: &str) -> Self {
        let scalar = match name {
            "io.k8s.apimachinery.pkg.api.resource.Quantity" => Some(Scalar::Quantity),
            "io.k8s.apimachinery.pkg.apis.meta.v1.Time" => Some(Scalar::Time),
            "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime" => Some(Scalar::MicroTime),
            _ => None,
        };
        Self { name: name.to_owned(), scalar, found: OnceLock::new() }
    }

    fn schema(&self) -> Option<&'static Schema> {
        *self.found.get_or_init(|| builtin_types().get(&self.name))
    }
}

impl fmt::Debug for Reference {
    // Types refer to themselves.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.name.fmt(f)
    }
}

/// The value rules of a structural schema.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rules {
    pub(crate) enumeration: Option<Vec<Value>>,
    pub(crate) pattern: Option<String>,
    pub(crate) minimum: Option<f64>,
    pub(crate) exclusive_minimum: bool,
    pub(crate) maximum: Option<f64>,
    pub(crate) exclusive_maximum: bool,
    pub(crate) multiple_of: Option<f64>,
    pub(crate) min_length: Option<u64>,
    pub(crate) max_length: Option<u64>,
    pub(crate) min_items: Option<u64>,
    pub(crate) max_items: Option<u64>,
    pub(crate) min_properties: Option<u64>,
    pub(crate) max_properties: Option<u64>,
    pub(crate) all_of: Vec<Schema>,
    pub(crate) any_of: Vec<Schema>,
    pub(crate) one_of: Vec<Schema>,
    pub(crate) not: Option<Box<Schema>>,
}

/// One node of a schema.
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a member of the document")]
pub(crate) struct Schema {
    /// The name of a built-in type, if this node only names one.
    pub(crate) reference: Option<Reference>,
    pub(crate) kind: Type,
    pub(crate) format: String,
    pub(crate) properties: BTreeMap<String, Schema>,
    /// Those of them that are written although they are absent, if they are.
    pub(crate) filled: Vec<String>,
    pub(crate) required: Vec<String>,
    pub(crate) additional: Additional,
    pub(crate) items: Option<Box<Schema>>,
    pub(crate) list: ListType,
    /// Whether a map is atomic; `None` if the schema does not say.
    pub(crate) atomic: Option<bool>,
    pub(crate) default: Option<Value>,
    pub(crate) nullable: bool,
    pub(crate) preserve: bool,
    pub(crate) embedded: bool,
    pub(crate) int_or_string: bool,
    pub(crate) strategy: Strategy,
    /// As a field of what it is a property of.
    pub(crate) go: Go,
    pub(crate) rules: Rules,
    /// Its rules in CEL.
    pub(crate) validations: Vec<Rule>,
    /// Whether it has such rules, here or below.
    pub(crate) ruled: bool,
    /// A built-in type without known members.
    pub(crate) free: bool,
}

fn text<'a>(value: &'a Value, name: &str) -> Option<&'a str> {
    value.get(name).and_then(Value::as_str)
}

fn flag(value: &Value, name: &str) -> bool {
    value.get(name).and_then(Value::as_bool).unwrap_or(false)
}

fn texts(value: &Value, name: &str) -> Vec<String> {
    let items = value.get(name).and_then(Value::as_array);
    items.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn many(value: &Value, name: &str) -> Vec<Schema> {
    value.get(name).and_then(Value::as_array).into_iter().flatten().map(Schema::parse).collect()
}

impl Schema {
    /// Reads a schema: of the table of built-in kinds, or the structural one of a definition.
    pub(crate) fn parse(value: &Value) -> Self {
        let kind = match text(value, "type") {
            Some("object") => Type::Object,
            Some("array") => Type::Array,
            Some("string") => Type::String,
            Some("integer") => Type::Integer,
            Some("number") => Type::Number,
            Some("boolean") => Type::Boolean,
            _ => Type::Any,
        };
        let properties = value.get("properties").and_then(Value::as_object);
        let additional = match value.get("additionalProperties") {
            None | Some(Value::Null) => Additional::Unsaid,
            Some(Value::Bool(true)) => Additional::Anything,
            Some(Value::Bool(false)) => Additional::Forbidden,
            Some(inner) => Additional::Of(Box::new(Self::parse(inner))),
        };
        let strategy = text(value, "x-kubernetes-patch-strategy").unwrap_or_default();
        let strategy = Strategy {
            merge: strategy.split(',').any(|one| one == "merge"),
            key: text(value, "x-kubernetes-patch-merge-key").map(str::to_owned),
        };
        let mut properties: BTreeMap<String, Self> = properties
            .into_iter()
            .flatten()
            .map(|(name, one)| (name.clone(), Self::parse(one)))
            .collect();
        let go = value.get("x-go").cloned().unwrap_or_default();
        for (list, how) in [("null", Go::Null), ("zero", Go::Omitted), ("omit", Go::Omitted)] {
            for name in texts(&go, list) {
                if let Some(property) = properties.get_mut(&name) {
                    property.go = how;
                }
            }
        }
        let filled = properties.iter().filter(|(_, one)| {
            one.go == Go::Null || (one.go == Go::Plain && one.default.is_some())
        });
        let filled = filled.map(|(name, _)| name.clone()).collect();
        let items = value.get("items").map(|items| Box::new(Self::parse(items)));
        let validations = value.get("x-kubernetes-validations").and_then(Value::as_array);
        let validations: Vec<Rule> = validations.into_iter().flatten().map(Rule::parse).collect();
        let ruled = !validations.is_empty()
            || properties.values().any(|one| one.ruled)
            || items.as_ref().is_some_and(|items| items.ruled)
            || matches!(&additional, Additional::Of(inner) if inner.ruled);
        Self {
            reference: text(value, "$ref").map(Reference::new),
            kind,
            format: text(value, "format").unwrap_or_default().to_owned(),
            properties,
            filled,
            required: texts(value, "required"),
            additional,
            items,
            list: list_type(value, &strategy),
            atomic: text(value, "x-kubernetes-map-type").map(|kind| kind == "atomic"),
            default: value.get("default").cloned(),
            nullable: flag(value, "nullable"),
            preserve: flag(value, "x-kubernetes-preserve-unknown-fields"),
            embedded: flag(value, "x-kubernetes-embedded-resource"),
            int_or_string: flag(value, "x-kubernetes-int-or-string")
                || text(value, "format") == Some("int-or-string"),
            strategy,
            go: Go::Plain,
            rules: Rules::parse(value),
            validations,
            ruled,
            free: false,
        }
    }

    /// This node, or the built-in type that it names.
    pub(crate) fn resolved(&self) -> &Schema {
        match &self.reference {
            Some(reference) => reference.schema().map_or(self, Schema::resolved),
            None => self,
        }
    }

    /// Whether Go has a struct here: its own members only, and empty rather than absent.
    pub(crate) fn is_struct(&self) -> bool {
        let resolved = self.resolved();
        resolved.kind == Type::Object && !resolved.properties.is_empty()
    }
}

fn list_type(value: &Value, strategy: &Strategy) -> ListType {
    match text(value, "x-kubernetes-list-type") {
        Some("set") => ListType::Set,
        Some("map") => ListType::Map(texts(value, "x-kubernetes-list-map-keys")),
        None if strategy.merge => match &strategy.key {
            Some(key) => ListType::Map(vec![key.clone()]),
            None => ListType::Set,
        },
        _ => ListType::Atomic,
    }
}

impl Rules {
    fn parse(value: &Value) -> Self {
        let number = |name: &str| value.get(name).and_then(Value::as_f64);
        let count = |name: &str| value.get(name).and_then(Value::as_u64);
        Self {
            enumeration: value.get("enum").and_then(Value::as_array).cloned(),
            pattern: text(value, "pattern").map(str::to_owned),
            minimum: number("minimum"),
            exclusive_minimum: flag(value, "exclusiveMinimum"),
            maximum: number("maximum"),
            exclusive_maximum: flag(value, "exclusiveMaximum"),
            multiple_of: number("multipleOf"),
            min_length: count("minLength"),
            max_length: count("maxLength"),
            min_items: count("minItems"),
            max_items: count("maxItems"),
            min_properties: count("minProperties"),
            max_properties: count("maxProperties"),
            all_of: many(value, "allOf"),
            any_of: many(value, "anyOf"),
            one_of: many(value, "oneOf"),
            not: value.get("not").map(|not| Box::new(Schema::parse(not))),
        }
    }
}
