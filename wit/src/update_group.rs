use std::fmt;

use serde::de::{self, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::ConditionStatus;

/// Objects of one primary that the host updates together: by which method, how many at a time, and
/// when an updated object is good enough to go on.
///
/// The name of an object must not change between runs: an object of another name is a new object,
/// which the host creates at once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UpdateGroup {
    /// Name of the group, which `updateGroup` of its objects gives; the group may have no objects.
    /// Limits: a DNS label (lower case letters, digits and `-`) of at most 63 characters, unique in
    /// the document.
    pub name: String,
    /// How the host updates the objects.
    pub method: UpdateMethod,
    /// How many objects of the group may be unavailable because of an update: a number, or a
    /// percentage of its desired objects, rounded down, and at least 1. Default: 1. Limits: at
    /// least 1, or "1%" to "100%"; only with `RollingInPlace` and `RollingRecreate`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_unavailable: Option<IntOrPercent>,
    /// Seconds for which an updated object has to be ready before it counts as available. Default:
    /// 0. Limits: at most 86,400; only with `RollingInPlace` and `RollingRecreate`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub min_ready_seconds: u32,
    /// Seconds after which an updated object that is not available has failed, which stops the
    /// update of the group. Default: none, the host waits. Limits: more than `minReadySeconds`, at
    /// most 604,800; only with `RollingInPlace` and `RollingRecreate`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress_deadline_seconds: Option<u32>,
    /// Conditions that an updated object must have to be available, in addition to its readiness.
    /// Limits: at most 16; only with `RollingInPlace` and `RollingRecreate`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub status_checks: Vec<StatusCheck>,
    /// Whether the host updates no object of the group. It still creates missing objects.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub paused: bool,
}

/// How the host updates the objects of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum UpdateMethod {
    /// The host writes to no object that exists: the object changes when somebody deletes it.
    OnDelete,
    /// The host applies all changes at once, as it does without a group.
    InPlace,
    /// The host deletes and creates the objects: one, until an object that has the same change
    /// exists; then all others that have it.
    Recreate,
    /// The host applies the changes to a few objects at a time.
    RollingInPlace,
    /// The host deletes and creates a few objects at a time.
    RollingRecreate,
}

impl UpdateMethod {
    /// Returns the method as documents write it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OnDelete => "OnDelete",
            Self::InPlace => "InPlace",
            Self::Recreate => "Recreate",
            Self::RollingInPlace => "RollingInPlace",
            Self::RollingRecreate => "RollingRecreate",
        }
    }

    /// Returns whether the host updates a few objects at a time.
    pub fn is_rolling(self) -> bool {
        matches!(self, Self::RollingInPlace | Self::RollingRecreate)
    }

    /// Returns whether the host deletes and creates an object to update it.
    pub fn recreates(self) -> bool {
        matches!(self, Self::Recreate | Self::RollingRecreate)
    }
}

impl fmt::Display for UpdateMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A condition in `status.conditions` of an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StatusCheck {
    /// Type of the condition. Limits: at most 316 characters.
    #[serde(rename = "type")]
    pub type_: String,
    /// Status that the condition must have. Default: True.
    #[serde(default = "condition_holds", skip_serializing_if = "is_true")]
    pub status: ConditionStatus,
    /// Reason that the condition must have. Default: any reason. Limits: at most 1,024 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A number of objects: itself, or a percentage of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntOrPercent {
    /// A number, at least 1.
    Int(u32),
    /// A percentage, from 1 to 100.
    Percent(u8),
}

impl fmt::Display for IntOrPercent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(number) => number.fmt(f),
            Self::Percent(percent) => write!(f, "{percent}%"),
        }
    }
}

impl Serialize for IntOrPercent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Int(number) => serializer.serialize_u32(*number),
            Self::Percent(_) => serializer.collect_str(self),
        }
    }
}

impl<'de> Deserialize<'de> for IntOrPercent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(IntOrPercentVisitor)
    }
}

struct IntOrPercentVisitor;

impl Visitor<'_> for IntOrPercentVisitor {
    type Value = IntOrPercent;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a whole number, at least 1, or a text from \"1%\" to \"100%\"")
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<IntOrPercent, E> {
        u32::try_from(number)
            .ok()
            .filter(|number| *number > 0)
            .map(IntOrPercent::Int)
            .ok_or_else(|| E::invalid_value(Unexpected::Unsigned(number), &self))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<IntOrPercent, E> {
        // `parse` also takes a sign and leading zeros.
        text.strip_suffix('%')
            .filter(|digits| digits.starts_with(|c: char| matches!(c, '1'..='9')))
            .and_then(|digits| digits.parse().ok())
            .filter(|percent| *percent <= 100)
            .map(IntOrPercent::Percent)
            .ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self))
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for IntOrPercent {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "IntOrPercent".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "A number of objects: itself, or a percentage of others.",
            "x-kubernetes-int-or-string": true,
            "anyOf": [
                {"type": "integer", "minimum": 1, "maximum": u32::MAX},
                {"type": "string", "pattern": "^([1-9][0-9]?|100)%$"}
            ]
        })
    }
}

fn condition_holds() -> ConditionStatus {
    ConditionStatus::True
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature is serde's")]
fn is_true(status: &ConditionStatus) -> bool {
    *status == ConditionStatus::True
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature is serde's")]
fn is_zero(seconds: &u32) -> bool {
    *seconds == 0
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json, to_value};

    use super::*;

    #[test]
    fn number_or_percentage_in_its_range_is_read_and_written_alike() {
        for (value, expected) in [
            (json!(1), IntOrPercent::Int(1)),
            (json!(u32::MAX), IntOrPercent::Int(u32::MAX)),
            (json!("1%"), IntOrPercent::Percent(1)),
            (json!("100%"), IntOrPercent::Percent(100)),
        ] {
            assert_eq!(from_value::<IntOrPercent>(value.clone()).ok(), Some(expected), "{value}");
            assert_eq!(to_value(expected).ok(), Some(value));
        }
    }

    #[test]
    fn number_or_percentage_out_of_its_range_is_refused() {
        for value in [
            json!(0),
            json!(-1),
            json!(1.5),
            json!(u64::MAX),
            json!("1"),
            json!("%"),
            json!("0%"),
            json!("01%"),
            json!("+1%"),
            json!("101%"),
            json!("1e9%"),
            json!("1%%"),
            json!(null),
        ] {
            let error =
                from_value::<IntOrPercent>(value.clone()).map_err(|error| error.to_string());
            let error = error.expect_err(&value.to_string());
            assert!(error.contains("at least 1, or a text from \"1%\""), "{error}");
        }
    }
}
