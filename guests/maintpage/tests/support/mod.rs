//! A `MaintPage` and what happens to its objects, for the tests.

// Each test file uses a part of it.
#![allow(dead_code)]

use innkeeper_sdk::kinds::{Deployment, Pod, Service};
use innkeeper_sdk::testing::{FakeCluster, Scenario};
use maintpage::Guest;
use serde_json::{Value, json};

/// Name of the application.
pub(crate) const APP: &str = "web";
/// Name of the maintenance Pod.
pub(crate) const PAGE: &str = "shop-maintpage-pod";

/// A manifest of the original operator.
pub(crate) fn sample() -> Value {
    json!({
        "metadata": { "name": "shop", "namespace": "demo" },
        "spec": {
            "maintpageconfig": { "maintpageimage": "maintenance:1", "maintpagetoggle": false },
            "appconfig": { "appname": APP, "appimage": "production:1" },
        },
    })
}

/// The sample with a change.
pub(crate) fn changed(change: impl FnOnce(&mut Value)) -> Value {
    let mut primary = sample();
    change(&mut primary);
    primary
}

/// A scenario with this `MaintPage`.
pub(crate) fn given(primary: Value) -> Scenario<Guest> {
    Scenario::of(primary)
}

/// Sets the toggle.
pub(crate) fn toggle(cluster: &mut FakeCluster<Guest>, toggle: bool) {
    cluster.edit(|page| page["spec"]["maintpageconfig"]["maintpagetoggle"] = json!(toggle));
}

/// Makes the application available.
pub(crate) fn app_answers(cluster: &mut FakeCluster<Guest>, name: &str) {
    cluster
        .change::<Deployment>(name, |one| one["status"] = json!({ "availableReplicas": 1 }))
        .becomes_ready::<Deployment>(name);
}

/// Makes the application unavailable.
pub(crate) fn app_fails(cluster: &mut FakeCluster<Guest>) {
    cluster
        .change::<Deployment>(APP, |one| one["status"] = json!({}))
        .becomes_unready::<Deployment>(APP, "0 of 1 replicas are available");
}

/// Makes the maintenance Pod ready.
pub(crate) fn page_answers(cluster: &mut FakeCluster<Guest>) {
    cluster
        .change::<Pod>(PAGE, |one| {
            one["status"] = json!({
                "phase": "Running", "conditions": [{ "type": "Ready", "status": "True" }],
            });
        })
        .becomes_ready::<Pod>(PAGE);
}

/// Makes the maintenance Pod unready.
pub(crate) fn page_fails(cluster: &mut FakeCluster<Guest>) {
    cluster
        .change::<Pod>(PAGE, |one| one["status"] = json!({ "phase": "Running" }))
        .becomes_unready::<Pod>(PAGE, "it runs but is not ready");
}

/// The sample with both sides ready.
pub(crate) fn running() -> FakeCluster<Guest> {
    let mut cluster = FakeCluster::with(sample());
    cluster.settle();
    app_answers(&mut cluster, APP);
    page_answers(&mut cluster);
    cluster.settle();
    cluster
}

/// The label `app` that the Service selects.
pub(crate) fn routed_to(cluster: &FakeCluster<Guest>) -> &str {
    cluster.object::<Service>(APP)["spec"]["selector"]["app"].as_str().unwrap_or_default()
}
