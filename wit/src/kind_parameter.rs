use serde::{Deserialize, Serialize};

/// A parameter of the Module that names a kind: the host adds the kind to the manifest when it
/// loads the guest, with plural and scope from API discovery.
///
/// The value of the parameter is an object with `apiVersion` and `kind`; except for `Primary` it
/// may be a list of at most 20 of these.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KindParameter {
    /// Name of the parameter: a top-level member of `parameters` of the Module. Limits: a property
    /// of `parametersSchema`, unique in the list.
    pub parameter: String,
    /// What the guest does with the kind.
    pub role: KindRole,
    /// As `merges` of an owned kind. Limits: only with the role `Owned`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub merges: bool,
    /// As `optional` of an owned kind. Limits: only with the role `Owned`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub optional: bool,
}

/// What a guest does with a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum KindRole {
    /// The guest reconciles the kind instead of `primary`, which is the default. At most one
    /// parameter has this role, and the guest must decorate its primaries.
    Primary,
    /// The guest creates objects of the kind or merges fields into them, as of a kind in `owned`.
    Owned,
    /// The guest reads objects of the kind, as of a kind in `reads`.
    Reads,
}

impl KindRole {
    /// Returns the role as documents write it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Primary => "Primary",
            Self::Owned => "Owned",
            Self::Reads => "Reads",
        }
    }
}

/// The value of a kind parameter: a kind by the names that a person knows.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KindName {
    /// Group and version (`apps/v1`), or the version alone for the core group (`v1`).
    pub api_version: String,
    /// Kind, CamelCase and singular (`Deployment`).
    pub kind: String,
}

impl std::fmt::Display for KindName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.api_version, self.kind)
    }
}
