use serde::Serialize;

use super::LabelSelector;
use crate::Metadata;

/// A `PodDisruptionBudget`: how many pods an eviction must leave.
///
/// ```
/// use innkeeper_sdk::kinds::PodDisruptionBudget;
/// use innkeeper_sdk::labels;
///
/// let labels = labels([("app", "web")]);
/// let budget = PodDisruptionBudget::max_unavailable("web", &labels, "25%");
/// assert!(budget.spec.min_available.is_none());
/// PodDisruptionBudget::min_available("db", &labels, 2);
/// ```
#[derive(Clone, Debug, Serialize)]
pub struct PodDisruptionBudget {
    /// Metadata.
    pub metadata: Metadata,
    /// Spec.
    pub spec: PodDisruptionBudgetSpec,
}

/// The spec of a `PodDisruptionBudget`. Set one of the limits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PodDisruptionBudgetSpec {
    /// Selects the pods.
    pub selector: LabelSelector,
    /// Number or percentage of pods that must stay available.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_available: Option<Amount>,
    /// Number or percentage of pods that may be unavailable.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_unavailable: Option<Amount>,
}

/// A number, or a percentage of the desired number (`IntOrString` in Kubernetes).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Amount {
    /// Number.
    Number(i32),
    /// Percentage (`25%`).
    Percent(String),
}

impl From<i32> for Amount {
    fn from(number: i32) -> Self {
        Self::Number(number)
    }
}

impl From<&str> for Amount {
    fn from(percent: &str) -> Self {
        Self::Percent(percent.to_owned())
    }
}

impl PodDisruptionBudget {
    /// Creates a budget by the number or percentage of pods that must stay available.
    pub fn min_available(
        name: impl Into<String>,
        pods: impl Into<LabelSelector>,
        amount: impl Into<Amount>,
    ) -> Self {
        Self::with(name, pods.into(), Some(amount.into()), None)
    }

    /// Creates a budget by the number or percentage of pods that may be unavailable.
    pub fn max_unavailable(
        name: impl Into<String>,
        pods: impl Into<LabelSelector>,
        amount: impl Into<Amount>,
    ) -> Self {
        Self::with(name, pods.into(), None, Some(amount.into()))
    }

    fn with(
        name: impl Into<String>,
        selector: LabelSelector,
        min_available: Option<Amount>,
        max_unavailable: Option<Amount>,
    ) -> Self {
        let spec = PodDisruptionBudgetSpec { selector, min_available, max_unavailable };
        Self { metadata: Metadata::named(name), spec }
    }
}

crate::kind!(Apply for PodDisruptionBudget, "policy/v1", "poddisruptionbudgets");
