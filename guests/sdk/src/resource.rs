use serde::de::DeserializeOwned;

use crate::{Kind, Metadata, Scope};

/// A Rust type that represents a kind of Kubernetes resource.
///
/// Several types may represent one kind, for example a builder and a read view.
pub trait Resource {
    /// Group and version (`apps/v1`), or the version alone for the core group (`v1`).
    const API_VERSION: &'static str;
    /// Kind, CamelCase and singular (`Deployment`).
    const KIND: &'static str;
    /// Resource name as in URLs and RBAC rules (`deployments`).
    const PLURAL: &'static str;
    /// Whether objects of the kind are namespaced or cluster-scoped.
    const SCOPE: Scope = Scope::Namespaced;

    /// Returns the kind as the manifest declares it.
    fn kind() -> Kind {
        Kind {
            api_version: Self::API_VERSION.to_owned(),
            kind: Self::KIND.to_owned(),
            plural: Self::PLURAL.to_owned(),
            scope: Self::SCOPE,
        }
    }
}

/// The primary: the kind that a guest reconciles, as the guest deserializes it.
///
/// Declare only the fields that the guest reads; other fields are ignored.
pub trait Primary: Resource + DeserializeOwned {
    /// Returns the primary's metadata.
    fn metadata(&self) -> &Metadata;
}

/// A primary whose CustomResourceDefinition the guest installs.
///
/// `schema::crd` (native only) generates the definition from these types.
pub trait CustomResource: Resource {
    /// The type of `spec`.
    type Spec;
    /// The type of `status`, without `conditions` and `observedGeneration`: the host writes these,
    /// and the definition always has them.
    type Status;
    /// Short names for `kubectl`, in addition to the plural and the kind.
    const SHORT_NAMES: &'static [&'static str] = &[];
    /// Printer columns of `kubectl get`, in addition to name and age.
    const COLUMNS: &'static [Column] = &[];
    /// The subresource `scale`, through which `kubectl scale` and autoscalers set the replicas;
    /// `None` for none.
    const SCALE: Option<Scale> = None;
    /// Validation rules for the whole object, which schemas of single fields cannot express.
    const RULES: &'static [Rule] = &[];
    /// Whether `spec` may be left out; every field of it then needs a default.
    const SPEC_MAY_BE_LEFT_OUT: bool = false;
    /// Whether the host writes `status.lastRun`: the number of objects that were in sync (`ok`) and
    /// that it `changed`, the number of `failures`, and the time of the last run that changed an
    /// object. [`Status`](Self::Status) must then have no field of this name. Each repair of an
    /// object costs one more write of the status.
    const SHOWS_LAST_RUN: bool = false;
    /// Whether the host writes the condition `Running` with the member `ansibleResult`, as Ansible
    /// operators have it: the counts `ok`, `changed`, `skipped` and `failures` of the last run, and
    /// the time of its `completion`. The Module's `runResult` says how often the host renews it.
    const SHOWS_RUN_RESULT: bool = false;
}

/// A validation rule in CEL (`x-kubernetes-validations`): the API server rejects an object for
/// which it is false. `self` is the object; of its metadata only the name is available.
///
/// The API server does not check objects that are older than the rule, so the guest must check
/// them itself. Write a rule about one field at the field:
/// `schemars(extend("x-kubernetes-validations" = [{ "rule": "...", "message": "..." }]))`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// CEL expression that must be true: `self.metadata.name.size() <= 63`.
    pub rule: &'static str,
    /// What to report if it is false: what is wrong and what to do.
    pub message: &'static str,
}

/// The subresource `scale` of a custom resource: where its fields are.
///
/// ```
/// use innkeeper_sdk::Scale;
///
/// const SCALE: Scale = Scale::at(".spec.replicas", ".status.replicas").selector(".status.selector");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    /// JSON path of the desired number of pods, below `.spec`.
    pub spec_replicas_path: &'static str,
    /// JSON path of the observed number of pods, below `.status`.
    pub status_replicas_path: &'static str,
    /// JSON path of the pods' label selector as text (`app=web`), below `.status` or `.spec`; a
    /// `HorizontalPodAutoscaler` needs it.
    pub label_selector_path: Option<&'static str>,
}

impl Scale {
    /// Creates a subresource from the paths of the desired and the observed number of pods.
    pub const fn at(spec_replicas_path: &'static str, status_replicas_path: &'static str) -> Self {
        Self { spec_replicas_path, status_replicas_path, label_selector_path: None }
    }

    /// Sets the path of the pods' label selector.
    pub const fn selector(self, path: &'static str) -> Self {
        Self { label_selector_path: Some(path), ..self }
    }
}

/// A printer column of `kubectl get`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// Heading.
    pub name: &'static str,
    /// Type of the values.
    pub type_: ColumnType,
    /// JSON path of the value: `.spec.replicas`.
    pub json_path: &'static str,
}

impl Column {
    /// Creates a column of text.
    pub const fn text(name: &'static str, json_path: &'static str) -> Self {
        Self { name, type_: ColumnType::String, json_path }
    }

    /// Creates a column of a time (RFC 3339), which `kubectl` shows as an age.
    pub const fn date(name: &'static str, json_path: &'static str) -> Self {
        Self { name, type_: ColumnType::Date, json_path }
    }

    /// Creates a column of integers.
    pub const fn integer(name: &'static str, json_path: &'static str) -> Self {
        Self { name, type_: ColumnType::Integer, json_path }
    }
}

/// The type of a printer column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnType {
    /// Text.
    String,
    /// Integer.
    Integer,
    /// Boolean.
    Boolean,
    /// Time (RFC 3339), shown as an age.
    Date,
}

impl ColumnType {
    /// Returns the type's name in a CustomResourceDefinition.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Integer => "integer",
            Self::Boolean => "boolean",
            Self::Date => "date",
        }
    }
}
