use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The fields of a kind that a guest reads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReadFields {
    /// Group and version (`apps/v1`), or the version alone for the core group (`v1`).
    pub api_version: String,
    /// Kind, CamelCase and singular (`Deployment`).
    pub kind: String,
    /// The fields, as `fieldsV1` in `managedFields` has them: `f:name` is a member of an object,
    /// `k:{"name":"a"}` the items of a list with these keys, and `*` every item of a list or every
    /// member of an object. A path that ends in `{}` stands for its whole value; `{}` alone is the
    /// whole object. Limits: 16 elements deep, 4,096 elements, 512 bytes each.
    pub fields: Map<String, Value>,
}
