use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Labels, SelectorOperator};

/// Selects objects by their labels (`LabelSelector` of `meta/v1`). An empty selector matches every
/// object.
///
/// It is also a field type for the spec of a custom resource, and its text is what
/// [`Context::list`](crate::Context::list) takes.
///
/// ```
/// use innkeeper_sdk::{kinds::LabelSelector, labels};
///
/// let selector = LabelSelector::from(&labels([("app", "web")])).within("tier", ["a", "b"]).missing("old");
/// assert_eq!(selector.to_string(), "app=web,tier in (a,b),!old");
/// assert!(selector.matches(&labels([("app", "web"), ("tier", "b")])));
/// assert!(!selector.matches(&labels([("app", "web")])));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub struct LabelSelector {
    /// An object matches if it carries all of these labels.
    #[serde(skip_serializing_if = "Labels::is_empty")]
    pub match_labels: Labels,
    /// Further requirements, all of which must hold.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub match_expressions: Vec<LabelRequirement>,
}

// Not the type in a `PrimarySelector`, whose bounds would become part of guests' CRDs.
/// A requirement on one label.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub struct LabelRequirement {
    /// Key of the label.
    pub key: String,
    /// How the label's value relates to the values.
    pub operator: SelectorOperator,
    /// Values, for `In` and `NotIn`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
}

impl LabelSelector {
    /// Requires one of these values.
    pub fn within<S: Into<String>>(self, key: &str, values: impl IntoIterator<Item = S>) -> Self {
        self.require(key, SelectorOperator::In, values.into_iter().map(Into::into).collect())
    }

    /// Requires none of these values; the label may be missing.
    pub fn without<S: Into<String>>(self, key: &str, values: impl IntoIterator<Item = S>) -> Self {
        self.require(key, SelectorOperator::NotIn, values.into_iter().map(Into::into).collect())
    }

    /// Requires the label, with any value.
    pub fn exists(self, key: &str) -> Self {
        self.require(key, SelectorOperator::Exists, Vec::new())
    }

    /// Requires that the label is missing.
    pub fn missing(self, key: &str) -> Self {
        self.require(key, SelectorOperator::DoesNotExist, Vec::new())
    }

    /// Returns whether an object with these labels matches.
    pub fn matches(&self, labels: &Labels) -> bool {
        self.match_labels.iter().all(|(key, value)| labels.get(key) == Some(value))
            && self.match_expressions.iter().all(|one| one.holds(labels.get(&one.key)))
    }

    fn require(mut self, key: &str, operator: SelectorOperator, values: Vec<String>) -> Self {
        self.match_expressions.push(LabelRequirement { key: key.to_owned(), operator, values });
        self
    }
}

impl LabelRequirement {
    fn holds(&self, value: Option<&String>) -> bool {
        let is_listed = value.is_some_and(|value| self.values.contains(value));
        match self.operator {
            SelectorOperator::In => is_listed,
            SelectorOperator::NotIn => !is_listed,
            SelectorOperator::Exists => value.is_some(),
            SelectorOperator::DoesNotExist => value.is_none(),
        }
    }
}

/// For [`PrimarySelector::match_expressions`](crate::PrimarySelector::match_expressions).
impl From<LabelRequirement> for innkeeper_contract::LabelRequirement {
    fn from(LabelRequirement { key, operator, values }: LabelRequirement) -> Self {
        Self { key, operator, values }
    }
}

impl From<&Labels> for LabelSelector {
    fn from(labels: &Labels) -> Self {
        Self { match_labels: labels.clone(), match_expressions: Vec::new() }
    }
}

impl fmt::Display for LabelSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for (key, value) in &self.match_labels {
            write!(f, "{separator}{key}={value}")?;
            separator = ",";
        }
        for LabelRequirement { key, operator, values } in &self.match_expressions {
            f.write_str(separator)?;
            match operator {
                SelectorOperator::In => write!(f, "{key} in ({})", values.join(","))?,
                SelectorOperator::NotIn => write!(f, "{key} notin ({})", values.join(","))?,
                SelectorOperator::Exists => f.write_str(key)?,
                SelectorOperator::DoesNotExist => write!(f, "!{key}")?,
            }
            separator = ",";
        }
        Ok(())
    }
}
