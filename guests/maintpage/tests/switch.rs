//! When the Service switches, what it waits for, and how a user ends the wait.

mod support;

use innkeeper_sdk::ConditionStatus::{False, True};
use innkeeper_sdk::kinds::{Deployment, Pod, Service};
use innkeeper_sdk::testing::FakeCluster;
use maintpage::Guest;
use serde_json::{Value, json};
use support::{
    APP, PAGE, app_fails, changed, given, page_answers, page_fails, routed_to, running, sample,
    toggle,
};

const SWITCH_COMMAND: &str = r#"kubectl -n demo patch maintpage shop --type merge -p '{"spec":{"maintpageconfig":{"switch":"Immediately"}}}'"#;

/// Makes the status of the maintenance Pod that of a container that waits.
fn page_waits(cluster: &mut FakeCluster<Guest>, reason: &str, message: &str) {
    cluster
        .change::<Pod>(PAGE, |one| {
            one["status"] = json!({
                "phase": "Pending",
                "conditions": [{ "type": "Ready", "status": "False", "lastTransitionTime": "2026-01-02T03:04:05Z" }],
                "containerStatuses": [{ "name": "maintpage", "image": "maintenance:1",
                    "state": { "waiting": { "reason": reason, "message": message } } }],
            });
        })
        .becomes_unready::<Pod>(PAGE, "it is pending");
}

#[test]
fn waiting_for_the_page_names_the_pod_the_time_the_cause_and_the_command() {
    let mut cluster = running();
    page_waits(&mut cluster, "ImagePullBackOff", "Back-off pulling image");
    toggle(&mut cluster, true);
    let run = cluster.settle();
    for type_ in ["Published", "Ready"] {
        run.condition_says(type_, "Pod shop-maintpage-pod is not ready since 2026-01-02T03:04:05Z")
            .condition_says(type_, "cannot pull image maintenance:1 (ImagePullBackOff)")
            .condition_says(type_, SWITCH_COMMAND)
            .condition_says(type_, "spec.parameters.switch");
    }

    page_waits(&mut cluster, "CreateContainerConfigError", "secret not found");
    let expected = "container maintpage waits: CreateContainerConfigError: secret not found";
    cluster.settle().condition_says("Published", expected);
}

#[test]
fn waiting_for_the_application_names_its_pod_the_time_the_cause_and_the_command() {
    let mut cluster = running();
    toggle(&mut cluster, true);
    cluster.settle();
    cluster
        .change::<Deployment>(APP, |one| {
            one["status"] = json!({ "conditions": [{ "type": "Available", "status": "False",
                "lastTransitionTime": "2026-01-02T03:04:05Z" }] });
        })
        .becomes_unready::<Deployment>(APP, "0 of 1 replicas are available");
    cluster.add(json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": "web-1", "namespace": "demo", "labels": { "app": APP } },
        "status": { "phase": "Pending", "containerStatuses": [{ "name": APP, "image": "production:1",
            "state": { "waiting": { "reason": "ImagePullBackOff", "message": "Back-off" } } }] },
    }));
    toggle(&mut cluster, false);
    let run = cluster.settle();
    for type_ in ["Published", "Ready"] {
        run.condition_says(type_, "Deployment web is not ready since 2026-01-02T03:04:05Z: 0 of 1 replicas are available; Pod web-1: container web cannot pull image production:1 (ImagePullBackOff)")
            .condition_says(type_, SWITCH_COMMAND);
    }
}

#[test]
fn service_switches_at_once_both_ways_when_the_spec_says_immediately() {
    let mut cluster = running();
    page_fails(&mut cluster);
    cluster.edit(|page| page["spec"]["maintpageconfig"]["switch"] = json!("Immediately"));
    toggle(&mut cluster, true);
    cluster
        .settle()
        .status("/maintpublishstatus", "Published")
        .condition("Published", True, "Toggled")
        .condition("Ready", False, "InProgress");
    assert_eq!(routed_to(&cluster), "shop");

    page_answers(&mut cluster);
    app_fails(&mut cluster);
    toggle(&mut cluster, false);
    cluster.settle().condition("Published", False, "NotToggled");
    assert_eq!(routed_to(&cluster), APP);
}

#[test]
fn wait_ends_when_its_command_is_run() {
    let mut cluster = running();
    page_fails(&mut cluster);
    toggle(&mut cluster, true);
    cluster.settle().condition("Published", False, "WaitsForPage");
    let start = SWITCH_COMMAND.find('{').unwrap();
    let patch: Value =
        serde_json::from_str(SWITCH_COMMAND[start..].trim_end_matches('\'')).unwrap();
    cluster.edit(|page| {
        let switch = &patch["spec"]["maintpageconfig"]["switch"];
        page["spec"]["maintpageconfig"]["switch"] = switch.clone();
    });
    cluster.settle().condition("Published", True, "Toggled");
    assert_eq!(routed_to(&cluster), "shop");
}

#[test]
fn parameter_switches_at_once_and_the_spec_wins_over_it() {
    let routed = |spec: Option<&str>, parameter: Option<&str>| {
        let mut cluster = running();
        page_fails(&mut cluster);
        if let Some(switch) = spec {
            cluster.edit(|page| page["spec"]["maintpageconfig"]["switch"] = json!(switch));
        }
        if let Some(switch) = parameter {
            cluster.parameters(json!({ "switch": switch }));
        }
        toggle(&mut cluster, true);
        cluster.settle();
        routed_to(&cluster).to_owned()
    };
    assert_eq!(routed(None, None), APP);
    assert_eq!(routed(None, Some("Immediately")), "shop");
    assert_eq!(routed(Some("WhenReady"), Some("Immediately")), APP);
    assert_eq!(routed(Some("Immediately"), Some("WhenReady")), "shop");
}

#[test]
fn parameters_that_do_not_fit_are_refused() {
    for parameters in [json!({ "switch": "Never" }), json!({ "toggle": true })] {
        let run = given(sample()).parameters(parameters).run();
        run.failed_because("BadParameters").desires_objects(0);
    }
}

/// The Pod of the original operator, which has no owner.
fn page_of_the_original() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": PAGE, "labels": { "app": "shop" } },
        "spec": { "containers": [{ "name": "maintpage", "image": "maintenance:1" }] },
    })
}

#[test]
fn page_without_an_owner_is_reported_with_the_command_that_adopts_it() {
    let command = "kubectl -n demo annotate maintpage shop innkeeper.dev/adopt=true";
    given(sample())
        .with_object(page_of_the_original())
        .run()
        .condition("Ready", False, "PageNotAdopted")
        .condition_says("Ready", &format!("to adopt it: {command}"));

    let mut unlabelled = page_of_the_original();
    unlabelled["metadata"]["labels"] = json!({ "app": "another" });
    let label = "kubectl -n demo label pod shop-maintpage-pod --overwrite app=shop";
    let expected = format!("{label} && {command}");
    given(sample()).with_object(unlabelled).run().condition_says("Ready", &expected);
}

#[test]
fn page_of_another_controller_is_reported_with_its_controller() {
    let mut foreign = page_of_the_original();
    foreign["metadata"]["ownerReferences"] =
        json!([{ "kind": "ReplicaSet", "name": "other", "controller": true }]);
    given(sample())
        .with_object(foreign)
        .run()
        .condition("Ready", False, "PageNotAdopted")
        .condition_says("Ready", "controlled by ReplicaSet other");
}

#[test]
fn waiting_for_a_page_that_is_not_adopted_names_both_commands() {
    let published =
        changed(|page| page["spec"]["maintpageconfig"]["maintpagetoggle"] = json!(true));
    let ready = running();
    let mut application = ready.object::<Deployment>(APP).clone();
    application["status"] = json!({ "availableReplicas": 1 });
    given(published)
        .owns_ready(application)
        .owns_ready(ready.object::<Service>(APP).clone())
        .with_object(page_of_the_original())
        .run()
        .condition("Published", False, "WaitsForPage")
        .condition_says("Published", "innkeeper.dev/adopt=true")
        .condition_says("Published", SWITCH_COMMAND);
}
