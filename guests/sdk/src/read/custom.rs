use std::marker::PhantomData;

use serde::Deserialize;

use super::StatusCondition;
use crate::{Metadata, Resource};

/// A custom resource of the kind `K`: metadata and conditions. For a guest that desires primaries
/// of other guests.
#[derive(Clone, Debug, Deserialize)]
pub struct Custom<K> {
    /// Metadata.
    #[serde(default)]
    pub metadata: Metadata,
    /// Status.
    #[serde(default)]
    pub status: CustomStatus,
    /// The kind.
    #[serde(skip)]
    kind: PhantomData<K>,
}

/// The conditions of a custom resource.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct CustomStatus {
    /// Conditions.
    pub conditions: Vec<StatusCondition>,
}

impl<K> Custom<K> {
    /// Returns why the resource is not ready, for people; `None` if it is ready.
    ///
    /// It is ready if its condition `Ready` is `True` for its current generation, or without a
    /// generation. By the rules of kstatus a resource *without* conditions would be ready too,
    /// also between its creation and the first run of its controller.
    pub fn unready(&self) -> Option<&str> {
        let Some(ready) = self.status.conditions.iter().find(|one| one.type_ == "Ready") else {
            return Some("its controller has not reported the condition Ready");
        };
        if ready.observed_generation != 0 && ready.observed_generation < self.metadata.generation {
            return Some("its controller has not observed its current generation");
        }
        if ready.status == "True" {
            return None;
        }
        let texts = [&ready.message, &ready.reason];
        Some(
            texts
                .into_iter()
                .find(|text| !text.is_empty())
                .map_or("it is not ready", String::as_str),
        )
    }

    /// Returns whether the object is being deleted.
    pub fn is_terminating(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }
}

impl<K: Resource> Resource for Custom<K> {
    const API_VERSION: &'static str = K::API_VERSION;
    const KIND: &'static str = K::KIND;
    const PLURAL: &'static str = K::PLURAL;
    const SCOPE: crate::Scope = K::SCOPE;
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    struct Inn;

    impl Resource for Inn {
        const API_VERSION: &'static str = "example.com/v1";
        const KIND: &'static str = "Inn";
        const PLURAL: &'static str = "inns";
    }

    fn unready(conditions: &serde_json::Value) -> Option<String> {
        let object =
            json!({ "metadata": { "generation": 2 }, "status": { "conditions": conditions } });
        let inn: Custom<Inn> = serde_json::from_value(object).unwrap();
        inn.unready().map(str::to_owned)
    }

    #[test]
    fn custom_resource_is_ready_when_the_condition_is_true_for_its_generation() {
        let ready = |generation: i64| json!([{ "type": "Ready", "status": "True", "observedGeneration": generation }]);
        assert_eq!(unready(&ready(2)), None);
        assert_eq!(
            unready(&ready(1)).as_deref(),
            Some("its controller has not observed its current generation")
        );
        assert_eq!(unready(&json!([{ "type": "Ready", "status": "True" }])), None);
    }

    #[test]
    fn custom_resource_is_not_ready_without_the_condition() {
        assert_eq!(
            unready(&json!([])).as_deref(),
            Some("its controller has not reported the condition Ready")
        );
    }

    #[test]
    fn unready_is_the_message_of_the_condition_or_its_reason() {
        let not_ready = |message: &str| json!([{ "type": "Ready", "status": "False", "reason": "Full", "message": message }]);
        assert_eq!(unready(&not_ready("no room left")).as_deref(), Some("no room left"));
        assert_eq!(unready(&not_ready("")).as_deref(), Some("Full"));
    }
}
