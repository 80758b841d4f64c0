//! One requirement of a selector: a condition on one label.

/// One requirement on one label.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Requirement {
    /// The key of the label.
    pub key: Box<str>,
    /// The condition on its value.
    pub operator: Operator,
}

/// The condition on the value of a label. Values are sorted and distinct, and there is at least
/// one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operator {
    /// The label has one of these values.
    In(Vec<Box<str>>),
    /// The label is missing, or has none of these values.
    NotIn(Vec<Box<str>>),
    /// The label exists.
    Exists,
    /// The label does not exist.
    DoesNotExist,
    /// The value is an integer greater than this.
    GreaterThan(i64),
    /// The value is an integer less than this.
    LessThan(i64),
}

impl Operator {
    /// The values that the operator lists.
    pub(super) fn values(&self) -> &[Box<str>] {
        match self {
            Self::In(values) | Self::NotIn(values) => values,
            Self::Exists | Self::DoesNotExist | Self::GreaterThan(_) | Self::LessThan(_) => &[],
        }
    }

    /// Values at which this operator may start or cease to hold.
    pub(super) fn boundary_values(&self) -> Vec<String> {
        match self {
            Self::In(values) | Self::NotIn(values) => {
                values.iter().map(ToString::to_string).collect()
            }
            Self::Exists | Self::DoesNotExist => Vec::new(),
            Self::GreaterThan(bound) => bound.checked_add(1).iter().map(i64::to_string).collect(),
            Self::LessThan(bound) => bound.checked_sub(1).iter().map(i64::to_string).collect(),
        }
    }

    /// Whether a label with this value, or a missing label, fulfils the condition.
    pub(super) fn holds(&self, value: Option<&str>) -> bool {
        let is_one_of = |values: &[Box<str>]| {
            value.is_some_and(|value| values.iter().any(|other| **other == *value))
        };
        let number = || value.and_then(|value| value.parse::<i64>().ok());
        match self {
            Self::In(values) => is_one_of(values),
            Self::NotIn(values) => !is_one_of(values),
            Self::Exists => value.is_some(),
            Self::DoesNotExist => value.is_none(),
            Self::GreaterThan(bound) => number().is_some_and(|number| number > *bound),
            Self::LessThan(bound) => number().is_some_and(|number| number < *bound),
        }
    }
}
