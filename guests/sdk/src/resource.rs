use serde::de::DeserializeOwned;

use crate::{Kind, Metadata, Scope};

/// A Rust type that stands for a kind of Kubernetes resource.
///
/// Several types may stand for one kind: a builder and a thin view of it, say.
pub trait Resource {
    /// Group and version (`apps/v1`), or the version alone for the core group (`v1`).
    const API_VERSION: &'static str;
    /// CamelCase, singular (`Deployment`).
    const KIND: &'static str;
    /// As in URLs and RBAC (`deployments`).
    const PLURAL: &'static str;
    /// Where its objects live.
    const SCOPE: Scope = Scope::Namespaced;

    /// The kind, as the contract names it.
    fn kind() -> Kind {
        Kind {
            api_version: Self::API_VERSION.to_owned(),
            kind: Self::KIND.to_owned(),
            plural: Self::PLURAL.to_owned(),
            scope: Self::SCOPE,
        }
    }
}

/// A kind that a guest reconciles, as the guest reads it.
///
/// Only the fields that the type names are read; the rest is skipped.
pub trait Primary: Resource + DeserializeOwned {
    /// Its metadata.
    fn metadata(&self) -> &Metadata;
}

/// A primary whose CustomResourceDefinition the guest brings along.
///
/// `schema::crd` (native only) makes the definition from these types.
pub trait CustomResource: Resource {
    /// What users write under `spec`.
    type Spec;
    /// What is reported under `status`, without `conditions` and `observedGeneration`,
    /// which the host writes and the definition always has.
    type Status;
    /// Names that `kubectl` takes besides the plural and the kind.
    const SHORT_NAMES: &'static [&'static str] = &[];
    /// What `kubectl get` shows besides the name; the age comes last by itself.
    const COLUMNS: &'static [Column] = &[];
    /// What must hold of a whole object, which its fields' schemas cannot say.
    const RULES: &'static [Rule] = &[];
    /// A manifest without `spec` is as one with an empty spec: every field has a default.
    const SPEC_MAY_BE_LEFT_OUT: bool = false;
    /// The status shows what the last run that changed something came to, under `lastRun`: how
    /// many objects were in order (`ok`), `changed`, and how many `failures` there were, with the
    /// time. The host writes it, so a status has no member of that name of its own. It costs a
    /// write of the status for each repair of an object.
    const SHOWS_LAST_RUN: bool = false;
}

/// What must hold of an object, in CEL: the API server refuses an object of which it does not.
/// `self` is the object, of whose metadata only the name can be used.
///
/// Objects that were made before the rule was are not refused, so a guest checks by itself too.
/// A rule about one field stands at the field:
/// `schemars(extend("x-kubernetes-validations" = [{ "rule": "...", "message": "..." }]))`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// An expression that must be true: `self.metadata.name.size() <= 63`.
    pub rule: &'static str,
    /// What is wrong if it is not, and what to do, for people.
    pub message: &'static str,
}

/// A column of `kubectl get`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its heading.
    pub name: &'static str,
    /// What it shows.
    pub type_: ColumnType,
    /// Where the value is: `.spec.replicas`.
    pub json_path: &'static str,
}

impl Column {
    /// A column of text.
    pub const fn text(name: &'static str, json_path: &'static str) -> Self {
        Self { name, type_: ColumnType::String, json_path }
    }

    /// A column of a time (RFC 3339), shown as an age.
    pub const fn date(name: &'static str, json_path: &'static str) -> Self {
        Self { name, type_: ColumnType::Date, json_path }
    }

    /// A column of whole numbers.
    pub const fn integer(name: &'static str, json_path: &'static str) -> Self {
        Self { name, type_: ColumnType::Integer, json_path }
    }
}

/// The type of a column's values, as schemas name types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnType {
    /// Text.
    String,
    /// Whole numbers.
    Integer,
    /// True or false.
    Boolean,
    /// A time, shown as an age.
    Date,
}

impl ColumnType {
    /// As a CustomResourceDefinition writes it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Integer => "integer",
            Self::Boolean => "boolean",
            Self::Date => "date",
        }
    }
}
