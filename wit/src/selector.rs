use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Which objects are selected: all members must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PrimarySelector {
    /// Labels with exactly these values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[cfg_attr(feature = "schema", schemars(extend("maxProperties" = 64)))]
    pub match_labels: BTreeMap<String, String>,

    /// Requirements on labels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", schemars(length(max = 64)))]
    pub match_expressions: Vec<LabelRequirement>,

    /// Annotations with exactly these values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[cfg_attr(feature = "schema", schemars(extend("maxProperties" = 64)))]
    pub match_annotations: BTreeMap<String, String>,

    /// Requirements on annotations.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", schemars(length(max = 64)))]
    pub match_annotation_expressions: Vec<ValueRequirement>,

    /// Requirements on fields. The key is the path of a field, for example spec.type or
    /// metadata.name. A value is the field's text; of a field that is no text, it is the JSON, for
    /// example true or 3.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", schemars(length(max = 64)))]
    pub match_fields: Vec<ValueRequirement>,
}

/// A requirement on one label.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LabelRequirement {
    /// The label.
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = 317)))]
    pub key: String,

    /// How its value and `values` are related.
    pub operator: SelectorOperator,

    /// For `In` and `NotIn`, at least one; for `Exists` and `DoesNotExist`, none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", schemars(length(max = 64), inner(length(max = 63))))]
    pub values: Vec<String>,
}

/// A requirement on one annotation or field.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ValueRequirement {
    /// The annotation, or the path of the field.
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = 317)))]
    pub key: String,

    /// How its value and `values` are related.
    pub operator: SelectorOperator,

    /// For `In` and `NotIn`, at least one; for `Exists` and `DoesNotExist`, none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", schemars(length(max = 64), inner(length(max = 1024))))]
    pub values: Vec<String>,
}

/// How a value and the values of a requirement are related.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum SelectorOperator {
    /// One of the values.
    In,
    /// None of the values, or nothing of this key.
    NotIn,
    /// Any value.
    Exists,
    /// Nothing of this key.
    DoesNotExist,
}

impl PrimarySelector {
    /// Returns whether there is no requirement, so that all objects are selected.
    pub fn is_everything(&self) -> bool {
        *self == Self::default()
    }
}
