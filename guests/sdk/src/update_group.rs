use serde::Serialize;

use innkeeper_contract::{ConditionStatus, IntOrPercent, StatusCheck, UpdateMethod};

/// Objects that the host updates together: by which method, how many at a time, and when an
/// updated object is good enough to go on. Missing objects are created at once.
///
/// An object is updated under its name: a name that changes with the content makes a new object
/// instead. `docs/updates.md` describes the methods.
///
/// ```
/// use innkeeper_sdk::kinds::ConfigMap;
/// use innkeeper_sdk::{Desired, IntoObject as _, UpdateGroup};
///
/// let maps = (0..5).map(|number| ConfigMap::new(format!("shard-{number}")).data("mode", "fast"));
/// let desired = Desired::new()
///     .update_group(UpdateGroup::rolling_in_place("shards").max_unavailable(2))
///     .objects(maps.map(|map| map.in_update_group("shards")));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct UpdateGroup(innkeeper_contract::UpdateGroup);

impl UpdateGroup {
    /// Creates a group whose objects the host never writes to: each changes when somebody deletes
    /// it.
    pub fn on_delete(name: &str) -> Self {
        Self::new(name, UpdateMethod::OnDelete)
    }

    /// Creates a group to whose objects the host applies all changes at once, as without a group.
    pub fn in_place(name: &str) -> Self {
        Self::new(name, UpdateMethod::InPlace)
    }

    /// Creates a group whose objects the host deletes and creates: one, then all others that have
    /// the same change.
    pub fn recreate(name: &str) -> Self {
        Self::new(name, UpdateMethod::Recreate)
    }

    /// Creates a group to whose objects the host applies changes, one at a time.
    pub fn rolling_in_place(name: &str) -> Self {
        Self::new(name, UpdateMethod::RollingInPlace)
    }

    /// Creates a group whose objects the host deletes and creates, one at a time.
    pub fn rolling_recreate(name: &str) -> Self {
        Self::new(name, UpdateMethod::RollingRecreate)
    }

    fn new(name: &str, method: UpdateMethod) -> Self {
        Self(innkeeper_contract::UpdateGroup {
            name: name.to_owned(),
            method,
            max_unavailable: None,
            min_ready_seconds: 0,
            progress_deadline_seconds: None,
            status_checks: Vec::new(),
            paused: false,
        })
    }

    /// Sets how many objects may be unavailable because of an update; at least 1. Default: 1.
    pub fn max_unavailable(mut self, objects: u32) -> Self {
        self.0.max_unavailable = Some(IntOrPercent::Int(objects));
        self
    }

    /// Sets the share of the objects that may be unavailable because of an update, from 1 to 100,
    /// rounded down to at least one object.
    pub fn max_unavailable_percent(mut self, percent: u8) -> Self {
        self.0.max_unavailable = Some(IntOrPercent::Percent(percent));
        self
    }

    /// Sets for how many seconds an updated object has to be ready before the host goes on.
    pub fn min_ready_seconds(mut self, seconds: u32) -> Self {
        self.0.min_ready_seconds = seconds;
        self
    }

    /// Sets after how many seconds an updated object that is not available has failed, which stops
    /// the update.
    pub fn progress_deadline_seconds(mut self, seconds: u32) -> Self {
        self.0.progress_deadline_seconds = Some(seconds);
        self
    }

    /// Requires a condition of the status `True`, in addition to readiness, before the host goes
    /// on.
    pub fn check(self, type_: &str) -> Self {
        self.check_status(type_, ConditionStatus::True)
    }

    /// Requires a condition of this status before the host goes on.
    pub fn check_status(mut self, type_: &str, status: ConditionStatus) -> Self {
        self.0.status_checks.push(StatusCheck { type_: type_.to_owned(), status, reason: None });
        self
    }

    /// Requires a condition of this status and reason before the host goes on.
    pub fn check_reason(mut self, type_: &str, status: ConditionStatus, reason: &str) -> Self {
        let reason = Some(reason.to_owned());
        self.0.status_checks.push(StatusCheck { type_: type_.to_owned(), status, reason });
        self
    }

    /// Sets whether the host updates no object; it still creates missing ones.
    pub fn paused(mut self, paused: bool) -> Self {
        self.0.paused = paused;
        self
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kinds::{ConfigMap, Pod, PodTemplate};
    use crate::{Desired, IntoObject as _, Policy, labels};

    #[test]
    fn group_and_its_objects_are_written_with_what_is_set() {
        let group = UpdateGroup::rolling_recreate("pods")
            .max_unavailable_percent(25)
            .min_ready_seconds(10)
            .progress_deadline_seconds(600)
            .check("Ready")
            .check_reason("Synced", ConditionStatus::False, "Held")
            .paused(true);
        let desired = Desired::new()
            .update_group(group)
            .update_group(UpdateGroup::on_delete("maps"))
            .object(
                Pod::new("web-0", PodTemplate::new(&labels([])))
                    .in_update_group("pods")
                    .policy(Policy::Orphan),
            )
            .object_with(ConfigMap::new("a").in_update_group("maps"), [Policy::Independent])
            .object(ConfigMap::new("b"));
        let document: serde_json::Value = serde_json::from_str(&desired.text().unwrap()).unwrap();
        let objects = document["objects"].as_array().unwrap();
        assert_eq!(objects[0]["updateGroup"], "pods");
        assert_eq!(objects[0]["policy"], json!(["orphan"]));
        assert_eq!(objects[1]["updateGroup"], "maps");
        assert_eq!(objects[1]["policy"], json!(["independent"]));
        assert_eq!(objects[2].get("updateGroup"), None);
        let checks = json!([
            { "type": "Ready" },
            { "type": "Synced", "status": "False", "reason": "Held" }
        ]);
        let pods = json!({
            "name": "pods",
            "method": "RollingRecreate",
            "maxUnavailable": "25%",
            "minReadySeconds": 10,
            "progressDeadlineSeconds": 600,
            "statusChecks": checks,
            "paused": true
        });
        let maps = json!({ "name": "maps", "method": "OnDelete" });
        assert_eq!(document["updateGroups"], json!([pods, maps]));
    }
}
