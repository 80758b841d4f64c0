//! What the policy allows and denies.

#![allow(clippy::needless_pass_by_value, reason = "literals of tests")]

use allowed_registries::Policy;
use innkeeper_sdk::kinds::{
    CronJob, DaemonSet, Deployment, Job, Pod, ReplicaSet, Service, StatefulSet,
};
use innkeeper_sdk::testing::{ReviewRun, ReviewScenario};
use innkeeper_sdk::{Resource, kind};
use serde_json::{Value, json};

kind!(ReplicationController, "v1", "replicationcontrollers");

const DIGEST: &str = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

fn parameters() -> Value {
    json!({"allowed": ["ghcr.io/shop", "docker.io/library/nginx"]})
}

fn pod(image: &str) -> Value {
    json!({"spec": {"containers": [{"name": "web", "image": image}]}})
}

fn template(image: &str) -> Value {
    json!({"spec": {"template": pod(image)}})
}

fn create<K: Resource>(object: Value) -> ReviewRun {
    ReviewScenario::<Policy>::create::<K>(object).parameters(parameters()).run()
}

fn update(old: Value, new: Value) -> ReviewScenario<Policy> {
    ReviewScenario::update::<Pod>(old, new).parameters(parameters())
}

#[test]
fn pod_with_an_allowed_image_is_allowed() {
    create::<Pod>(pod("ghcr.io/shop/web:1")).is_allowed();
    create::<Pod>(pod("nginx")).is_allowed();
}

#[test]
fn pod_with_another_image_is_denied_with_its_container_and_field() {
    let run = create::<Pod>(pod("quay.io/other/web:1"));
    run.is_denied(
        "the image \"quay.io/other/web:1\" of container web is quay.io/other/web, which is not allowed; use one of ghcr.io/shop, docker.io/library/nginx",
    );
    run.has_cause("spec.containers[0].image");
    create::<Pod>(pod("redis")).is_denied("is docker.io/library/redis, which is not allowed");
    create::<Pod>(pod("ghcr.io/shop/../web")).is_denied("is none: its path is not of");
}

#[test]
fn pod_has_a_cause_for_each_wrong_image_of_each_list() {
    let object = json!({"spec": {
        "initContainers": [
            {"name": "ok", "image": "nginx"},
            {"name": "init", "image": "busybox"},
        ],
        "containers": [{"name": "web", "image": "redis"}, {"name": "web2", "image": "nginx:1"}],
        "ephemeralContainers": [{"name": "debug", "image": "alpine"}],
        "volumes": [{"name": "v", "emptyDir": {}}, {"name": "files", "image": {"reference": "x/y"}}],
    }});
    let run = create::<Pod>(object);
    for (user, field) in [
        ("of init container init is", "spec.initContainers[1].image"),
        ("of container web is", "spec.containers[0].image"),
        ("of ephemeral container debug is", "spec.ephemeralContainers[0].image"),
        ("of volume files is", "spec.volumes[1].image.reference"),
    ] {
        run.is_denied(user).has_cause(field);
    }
    assert_eq!(run.message().matches("; use one of").count(), 4);
}

#[test]
fn template_of_each_workload_is_reviewed() {
    let denied = |run: ReviewRun, field: &str| {
        run.is_denied("of container web is quay.io/web").has_cause(field);
    };
    let template = || template("quay.io/web");
    let field = "spec.template.spec.containers[0].image";
    denied(create::<Deployment>(template()), field);
    denied(create::<StatefulSet>(template()), field);
    denied(create::<DaemonSet>(template()), field);
    denied(create::<ReplicaSet>(template()), field);
    denied(create::<ReplicationController>(template()), field);
    denied(create::<Job>(template()), field);
    let cron_job = json!({"spec": {"jobTemplate": template()}});
    denied(create::<CronJob>(cron_job), "spec.jobTemplate.spec.template.spec.containers[0].image");
}

#[test]
fn kind_without_pods_is_not_reviewed() {
    create::<Service>(json!({})).is_not_reviewed();
}

#[test]
fn workload_without_a_template_is_allowed() {
    create::<ReplicationController>(json!({"spec": {"template": null}})).is_allowed();
    create::<ReplicationController>(json!({})).is_allowed();
}

#[test]
fn image_without_a_digest_is_denied_when_digests_are_required() {
    let create = |image: &str| {
        let parameters = json!({"allowed": ["ghcr.io"], "requireDigests": true});
        ReviewScenario::<Policy>::create::<Pod>(pod(image)).parameters(parameters).run()
    };
    create(&format!("ghcr.io/web@{DIGEST}")).is_allowed();
    create(&format!("ghcr.io/web:1@{DIGEST}")).is_allowed();
    create("ghcr.io/web:1").is_denied("of container web has no digest; add @sha256:");
    create("ghcr.io/web@sha256:12").is_denied("is none: its digest is none like sha256:");
    create(&format!("quay.io/web@{DIGEST}")).is_denied("is not allowed");
}

#[test]
fn update_that_keeps_an_image_is_warned_and_a_new_one_is_denied() {
    let old = || pod("quay.io/web:1");
    update(old(), old()).run().is_allowed().warns("quay.io/web, which is not allowed");
    update(old(), pod("quay.io/web:2")).run().is_denied("\"quay.io/web:2\" of container web");
    update(old(), pod("nginx")).run().is_allowed();
    // The image of one container does not excuse that of another.
    let both = json!({"spec": {"containers": [
        {"name": "web", "image": "quay.io/web:1"},
        {"name": "more", "image": "quay.io/web:1"},
    ]}});
    let run = update(old(), both).run();
    run.is_denied("of container more").has_cause("spec.containers[1].image");
    assert!(!run.message().contains("container web"), "{}", run.message());
}

#[test]
fn ephemeral_container_is_reviewed_when_it_is_added() {
    let mut debugged = pod("nginx");
    debugged["spec"]["ephemeralContainers"] = json!([{"name": "debug", "image": "alpine"}]);
    let request = update(pod("nginx"), debugged).subresource("ephemeralcontainers");
    request.run().is_denied("of ephemeral container debug is docker.io/library/alpine");
    update(pod("nginx"), pod("alpine")).subresource("status").run().is_not_reviewed();
}

#[test]
fn object_that_is_being_deleted_is_allowed() {
    let mut object = pod("alpine");
    object["metadata"] = json!({"deletionTimestamp": "2026-01-01T00:00:00Z"});
    update(pod("nginx"), object).run().is_allowed();
}

#[test]
fn review_fails_when_the_parameters_or_the_object_cannot_be_read() {
    let create = |parameters: Value, object: Value| {
        ReviewScenario::<Policy>::create::<Pod>(object).parameters(parameters).run()
    };
    create(json!({}), pod("nginx")).is_failed("missing field `allowed`");
    create(json!({"allowed": ["shop"]}), pod("nginx"))
        .is_failed("spec.parameters.allowed of the Module: \"shop\": it does not begin with");
    let broken = json!({"spec": {"containers": "many"}});
    create(parameters(), broken).is_failed("spec cannot be read: invalid type");
}
