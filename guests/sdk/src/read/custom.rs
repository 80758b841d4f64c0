use std::marker::PhantomData;

use serde::Deserialize;

use super::StatusCondition;
use crate::{Metadata, Resource};

/// A custom resource of the kind `K`: its metadata and what its controller says in conditions.
/// For a primary that makes primaries of another guest.
#[derive(Clone, Debug, Deserialize)]
pub struct Custom<K> {
    /// Its metadata.
    #[serde(default)]
    pub metadata: Metadata,
    /// What its controller says.
    #[serde(default)]
    pub status: CustomStatus,
    /// The kind.
    #[serde(skip)]
    kind: PhantomData<K>,
}

/// What a custom resource's controller says in conditions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct CustomStatus {
    /// Its conditions.
    pub conditions: Vec<StatusCondition>,
}

impl<K> Custom<K> {
    /// What stands between it and being ready; `None` if it is ready.
    ///
    /// It is ready when its condition `Ready` is `True` and about its present generation (or does
    /// not say which). By the rules of kstatus a resource *without* conditions is ready too:
    /// one that was just made would be, before its controller has seen it.
    pub fn unready(&self) -> Option<&str> {
        let Some(ready) = self.status.conditions.iter().find(|one| one.type_ == "Ready") else {
            return Some("its controller has not said that it is ready");
        };
        if ready.observed_generation != 0 && ready.observed_generation < self.metadata.generation {
            return Some("its controller has not seen its newest version yet");
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

    /// It is being deleted.
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
    fn it_is_ready_when_its_controller_says_so_about_its_present_generation() {
        let ready = |generation: i64| json!([{ "type": "Ready", "status": "True", "observedGeneration": generation }]);
        assert_eq!(unready(&ready(2)), None);
        assert_eq!(
            unready(&ready(1)).as_deref(),
            Some("its controller has not seen its newest version yet")
        );
        assert_eq!(unready(&json!([{ "type": "Ready", "status": "True" }])), None);
    }

    #[test]
    fn it_is_not_ready_before_its_controller_has_said_anything() {
        assert_eq!(
            unready(&json!([])).as_deref(),
            Some("its controller has not said that it is ready")
        );
    }

    #[test]
    fn what_its_controller_says_is_why_it_is_not_ready() {
        let said = |message: &str| json!([{ "type": "Ready", "status": "False", "reason": "Full", "message": message }]);
        assert_eq!(unready(&said("no room left")).as_deref(), Some("no room left"));
        assert_eq!(unready(&said("")).as_deref(), Some("Full"));
    }
}
