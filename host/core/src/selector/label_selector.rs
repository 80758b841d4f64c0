//! The form of a selector in objects.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::error::SelectorError;
use super::requirement::{Operator, Requirement};
use super::{Selector, labels};

/// A selector as objects hold it: `metav1.LabelSelector`, with `matchLabels` and
/// `matchExpressions`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LabelSelector {
    /// Labels and the values that they must have.
    #[serde(default)]
    pub match_labels: Option<BTreeMap<String, String>>,
    /// Further requirements.
    #[serde(default)]
    pub match_expressions: Option<Vec<Expression>>,
}

/// One of `matchExpressions`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Expression {
    /// The key of the label.
    pub key: String,
    /// `In`, `NotIn`, `Exists` or `DoesNotExist`.
    pub operator: String,
    /// The values, for `In` and `NotIn`.
    #[serde(default)]
    pub values: Option<Vec<String>>,
}

impl TryFrom<&LabelSelector> for Selector {
    type Error = SelectorError;

    fn try_from(selector: &LabelSelector) -> Result<Self, SelectorError> {
        let mut requirements = Vec::new();
        for (key, value) in selector.match_labels.iter().flatten() {
            labels::check_key(key)
                .and_then(|()| labels::check_value(value))
                .map_err(SelectorError::Label)?;
            let operator = Operator::In(vec![value.as_str().into()]);
            requirements.push(Requirement { key: key.as_str().into(), operator });
        }
        for expression in selector.match_expressions.iter().flatten() {
            requirements.push(expression.try_into()?);
        }
        Ok(Self::new(requirements))
    }
}

impl TryFrom<&Expression> for Requirement {
    type Error = SelectorError;

    fn try_from(expression: &Expression) -> Result<Self, SelectorError> {
        let key = expression.key.as_str();
        let bad = |problem: String| SelectorError::Expression { key: key.to_owned(), problem };
        labels::check_key(key).map_err(SelectorError::Label)?;
        let mut values: Vec<Box<str>> = Vec::new();
        for value in expression.values.iter().flatten() {
            labels::check_value(value).map_err(SelectorError::Label)?;
            values.push(value.as_str().into());
        }
        values.sort();
        values.dedup();
        let operator = match (expression.operator.as_str(), values.is_empty()) {
            ("In", false) => Operator::In(values),
            ("NotIn", false) => Operator::NotIn(values),
            ("Exists", true) => Operator::Exists,
            ("DoesNotExist", true) => Operator::DoesNotExist,
            ("In" | "NotIn", true) => {
                return Err(bad(format!("{} needs at least one value", expression.operator)));
            }
            ("Exists" | "DoesNotExist", false) => {
                return Err(bad(format!("{} takes no values", expression.operator)));
            }
            (operator, _) => {
                return Err(bad(format!(
                    "the operator `{operator}` is none of In, NotIn, Exists and DoesNotExist"
                )));
            }
        };
        Ok(Self { key: key.into(), operator })
    }
}
