use serde::Serialize;

/// Lets a pod run on nodes with a taint.
///
/// ```
/// use innkeeper_sdk::kinds::{PodTemplate, Toleration};
///
/// let template = PodTemplate::new(&innkeeper_sdk::labels([("app", "agent")]))
///     .toleration(Toleration::exists("node-role.kubernetes.io/control-plane"));
/// assert_eq!(template.spec.verbatim["tolerations"][0]["operator"], "Exists");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Toleration {
    /// Key of the taint; all taints if `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// `Exists` or `Equal`.
    pub operator: String,
    /// Value of the taint, for `Equal`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// `NoSchedule`, `PreferNoSchedule` or `NoExecute`; all effects if `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effect: Option<String>,
}

into_json!(Toleration);

impl Toleration {
    /// Tolerates the taint with any value.
    pub fn exists(key: impl Into<String>) -> Self {
        Self { key: Some(key.into()), operator: "Exists".to_owned(), ..Self::default() }
    }

    /// Tolerates the taint with this value.
    pub fn equal(key: impl Into<String>, value: impl Into<String>) -> Self {
        Self {
            key: Some(key.into()),
            operator: "Equal".to_owned(),
            value: Some(value.into()),
            effect: None,
        }
    }

    setters! {
        /// Tolerates only this effect: `NoSchedule`, `PreferNoSchedule` or `NoExecute`.
        effect(effect: String);
    }
}
