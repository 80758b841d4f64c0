use innkeeper_sdk::{Labels, kind, one_line};
use serde::Deserialize;

/// The longest text of another component that a message quotes, in characters.
const QUOTE_MAX: usize = 300;

/// A Pod, with the fields that say why it is not ready.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ObservedPod {
    /// Metadata.
    pub(crate) metadata: PodMetadata,
    status: PodStatus,
}

/// The metadata of a [`ObservedPod`].
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct PodMetadata {
    /// Name.
    pub(crate) name: String,
    /// Labels.
    pub(crate) labels: Labels,
    /// Owners.
    pub(crate) owner_references: Vec<Owner>,
    /// Set when the Pod is being deleted.
    pub(crate) deletion_timestamp: Option<String>,
}

/// An owner of a Pod.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Owner {
    /// Kind.
    pub(crate) kind: String,
    /// Name.
    pub(crate) name: String,
    /// Whether the owner controls the Pod.
    pub(crate) controller: Option<bool>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PodStatus {
    conditions: Vec<TimedCondition>,
    container_statuses: Vec<ContainerStatus>,
}

/// A condition with the time of its last transition.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct TimedCondition {
    #[serde(rename = "type")]
    type_: String,
    status: String,
    // The API server sends null for a time that was not set.
    last_transition_time: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct ContainerStatus {
    name: String,
    image: String,
    state: ContainerState,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct ContainerState {
    waiting: Option<Waiting>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Waiting {
    reason: String,
    message: String,
}

/// A Deployment, with the fields that say since when it is not available.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ObservedDeployment {
    status: DeploymentStatus,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct DeploymentStatus {
    conditions: Vec<TimedCondition>,
}

impl ObservedPod {
    /// Returns ` since TIME` if the Pod reports the time at which it stopped being ready.
    pub(crate) fn since(&self) -> String {
        since(&self.status.conditions, "Ready")
    }

    /// Returns why the first container that waits does so; `None` if none waits.
    pub(crate) fn obstacle(&self) -> Option<String> {
        self.status.container_statuses.iter().find_map(|container| {
            let Waiting { reason, message } = container.state.waiting.as_ref()?;
            let ContainerStatus { name, image, .. } = container;
            // The kubelet alternates between these two, and each change would be a write.
            if matches!(reason.as_str(), "ErrImagePull" | "ImagePullBackOff") {
                let image = quote(image);
                return Some(format!(
                    "container {name} cannot pull image {image} (ImagePullBackOff)"
                ));
            }
            let colon = if message.is_empty() { "" } else { ": " };
            let (reason, message) = (quote(reason), quote(message));
            Some(format!("container {name} waits: {reason}{colon}{message}"))
        })
    }
}

impl ObservedDeployment {
    /// Returns ` since TIME` if the Deployment reports the time at which it stopped being
    /// available.
    pub(crate) fn since(&self) -> String {
        since(&self.status.conditions, "Available")
    }
}

fn since(conditions: &[TimedCondition], type_: &str) -> String {
    let found = conditions.iter().find(|one| one.type_ == type_ && one.status == "False");
    let time = found.and_then(|one| one.last_transition_time.as_deref());
    time.map(|time| format!(" since {}", quote(time))).unwrap_or_default()
}

/// Returns the beginning of a text of another component, in one line.
fn quote(text: &str) -> String {
    one_line(text, QUOTE_MAX)
}

kind!(Resource for ObservedPod = "Pod", "v1", "pods");

kind!(Resource for ObservedDeployment = "Deployment", "apps/v1", "deployments");

#[cfg(test)]
mod tests {
    use innkeeper_sdk::serde_json::{from_value, json};

    use super::*;

    fn obstacle(reason: &str, message: &str) -> String {
        let pod: ObservedPod = from_value(json!({ "status": { "containerStatuses": [
            { "name": "maintpage", "image": "maintenance:1",
                "state": { "waiting": { "reason": reason, "message": message } } },
        ] } }))
        .unwrap();
        pod.obstacle().unwrap()
    }

    #[test]
    fn obstacle_is_the_same_while_the_kubelet_alternates_between_its_reasons() {
        let pulling = obstacle("ErrImagePull", "not found");
        assert_eq!(pulling, obstacle("ImagePullBackOff", "Back-off pulling image"));
        assert_eq!(
            pulling,
            "container maintpage cannot pull image maintenance:1 (ImagePullBackOff)"
        );
    }

    #[test]
    fn since_is_empty_when_the_api_server_has_no_time() {
        let pod = |time| -> ObservedPod {
            from_value(json!({ "status": { "conditions": [
                { "type": "Ready", "status": "False", "lastTransitionTime": time },
            ] } }))
            .unwrap()
        };
        assert_eq!(pod(json!(null)).since(), "");
        assert_eq!(pod(json!("2026-01-02T03:04:05Z")).since(), " since 2026-01-02T03:04:05Z");
    }

    #[test]
    fn obstacle_is_one_short_line_when_the_status_of_the_pod_is_hostile() {
        let found = obstacle(&"R\n".repeat(50_000), &"\u{7}line\n".repeat(50_000));
        assert!(found.chars().count() < 700, "{} characters", found.chars().count());
        assert!(!found.contains(char::is_control), "{found}");
    }
}
