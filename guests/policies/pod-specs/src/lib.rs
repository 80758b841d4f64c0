//! Where the specs of Pods are in the objects of Kubernetes, for policies about Pods.
//!
//! A library and no guest: each policy that uses it has a copy in its component.

use innkeeper_sdk::serde_json::Value;
use innkeeper_sdk::{GroupVersionKind, RequestRule};

/// The field of an object that has the spec of its Pods.
///
/// ```
/// use innkeeper_sdk::GroupVersionKind;
/// use pod_specs::PodSpecField;
///
/// let kind = |group: &str, kind: &str| GroupVersionKind {
///     group: group.to_owned(),
///     version: "v1".to_owned(),
///     kind: kind.to_owned(),
/// };
/// let field = PodSpecField::of(&kind("batch", "CronJob")).unwrap();
/// assert_eq!(field.path(), "spec.jobTemplate.spec.template.spec");
/// assert!(PodSpecField::of(&kind("", "Service")).is_none());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PodSpecField {
    members: &'static [&'static str],
}

impl PodSpecField {
    /// Returns the field of a kind; `None` for a kind without Pods, or of another API than
    /// Kubernetes' own.
    pub fn of(kind: &GroupVersionKind) -> Option<Self> {
        let members: &[&str] = match (kind.group.as_str(), kind.kind.as_str()) {
            ("", "Pod") => &["spec"],
            ("", "ReplicationController")
            | ("apps", "DaemonSet" | "Deployment" | "ReplicaSet" | "StatefulSet")
            | ("batch", "Job") => &["spec", "template", "spec"],
            ("batch", "CronJob") => &["spec", "jobTemplate", "spec", "template", "spec"],
            _ => return None,
        };
        Some(Self { members })
    }

    /// Returns the spec of the Pods of an object; `None` if it has none.
    pub fn get<'a>(&self, object: &'a Value) -> Option<&'a Value> {
        self.members.iter().try_fold(object, |value, member| value.get(member))
    }

    /// Returns the spec of the Pods of an object, to change it; `None` if it has none.
    pub fn get_mut<'a>(&self, object: &'a mut Value) -> Option<&'a mut Value> {
        self.members.iter().try_fold(object, |value, member| value.get_mut(member))
    }

    /// Returns the path of the field, for example `spec.template.spec`.
    pub fn path(&self) -> String {
        self.members.join(".")
    }
}

/// Returns rules for requests that create or change an object with a template of Pods: each kind
/// of [`PodSpecField`] but the Pod.
pub fn template_rules() -> [RequestRule; 3] {
    [
        RequestRule::of_resources("", ["replicationcontrollers"]),
        RequestRule::of_resources(
            "apps",
            ["daemonsets", "deployments", "replicasets", "statefulsets"],
        ),
        RequestRule::of_resources("batch", ["cronjobs", "jobs"]),
    ]
}
