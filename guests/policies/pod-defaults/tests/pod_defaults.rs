//! What the policy adds to containers, and what it leaves alone.

#![allow(clippy::needless_pass_by_value, reason = "literals of tests")]

use innkeeper_sdk::kinds::{CronJob, Deployment, Job, Pod, ReplicaSet, StatefulSet};
use innkeeper_sdk::testing::{ReviewRun, ReviewScenario};
use pod_defaults::Policy;
use serde_json::{Value, json};

fn parameters() -> Value {
    json!({
        "resources": {
            "requests": {"cpu": "100m", "memory": "128Mi"},
            "limits": {"memory": "256Mi"},
        },
        "securityContext": {
            "runAsNonRoot": true,
            "allowPrivilegeEscalation": false,
            "capabilities": {"drop": ["ALL"]},
            "seccompProfile": {"type": "RuntimeDefault"},
        },
    })
}

/// The container of [`parameters`] when nothing was written.
fn defaulted() -> Value {
    json!({
        "name": "web",
        "resources": {
            "requests": {"cpu": "100m", "memory": "128Mi"},
            "limits": {"memory": "256Mi"},
        },
        "securityContext": {
            "runAsNonRoot": true,
            "allowPrivilegeEscalation": false,
            "capabilities": {"drop": ["ALL"]},
            "seccompProfile": {"type": "RuntimeDefault"},
        },
    })
}

fn create_pod(spec: Value) -> ReviewRun {
    let pod = json!({"spec": spec});
    ReviewScenario::<Policy>::create::<Pod>(pod).parameters(parameters()).run()
}

/// What a container becomes with the default resources alone.
fn resources_of(written: Value) -> Value {
    let container = json!({"name": "web", "resources": written});
    let parameters = json!({"resources": parameters()["resources"]});
    let pod = json!({"spec": {"containers": [container]}});
    let run = ReviewScenario::<Policy>::create::<Pod>(pod).parameters(parameters).run();
    run.is_allowed().object()["spec"]["containers"][0]["resources"].clone()
}

/// What the security context of a container becomes in a Pod with this spec.
fn context_of(mut spec: Value, written: Value) -> Value {
    spec["containers"] = json!([{"name": "web", "securityContext": written}]);
    let parameters = json!({"securityContext": parameters()["securityContext"]});
    let pod = json!({"spec": spec});
    let run = ReviewScenario::<Policy>::create::<Pod>(pod).parameters(parameters).run();
    run.is_allowed().object()["spec"]["containers"][0]["securityContext"].clone()
}

fn empty_template() -> Value {
    json!({"spec": {"replicas": 1, "template": {"spec": {"containers": [{"name": "web"}]}}}})
}

#[test]
fn container_without_anything_gets_all_defaults() {
    let run = create_pod(json!({
        "containers": [{"name": "web"}],
        "initContainers": [{"name": "web", "restartPolicy": "Always"}],
    }));
    run.is_allowed().with("/spec/containers/0", defaulted());
    let mut sidecar = defaulted();
    sidecar["restartPolicy"] = json!("Always");
    run.with("/spec/initContainers/0", sidecar);
}

#[test]
fn nothing_but_the_containers_changes() {
    let spec =
        json!({"nodeName": "n", "containers": [{"name": "web"}], "volumes": [{"name": "v"}]});
    let run = create_pod(spec.clone());
    let mut expected = spec;
    expected["containers"][0] = defaulted();
    run.with("/spec", expected);
}

#[test]
fn null_counts_as_not_written() {
    let run = create_pod(json!({
        "containers": [{"name": "web", "resources": null, "securityContext": {"runAsNonRoot": null}}],
    }));
    run.is_allowed().with("/spec/containers/0", defaulted());
}

#[test]
fn only_the_given_parameters_have_defaults() {
    let create = |parameters: Value| {
        let pod = json!({"spec": {"containers": [{"name": "web"}]}});
        ReviewScenario::<Policy>::create::<Pod>(pod).parameters(parameters).run()
    };
    create(json!({})).is_allowed().with("/spec/containers/0", json!({"name": "web"}));
    create(json!({"resources": {"limits": {"memory": "1Gi"}}})).is_allowed().with(
        "/spec/containers/0",
        json!({"name": "web", "resources": {"limits": {"memory": "1Gi"}}}),
    );
}

#[test]
fn written_resources_stay_and_no_limit_is_below_a_request() {
    for (written, expected) in [
        // A small request fits below the default limit, a large one does not.
        (
            json!({"requests": {"memory": "64Mi"}}),
            json!({"requests": {"memory": "64Mi", "cpu": "100m"}, "limits": {"memory": "256Mi"}}),
        ),
        (
            json!({"requests": {"memory": "1Gi"}}),
            json!({"requests": {"memory": "1Gi", "cpu": "100m"}}),
        ),
        (
            json!({"requests": {"memory": "268435456"}}),
            json!({"requests": {"memory": "268435456", "cpu": "100m"}, "limits": {"memory": "256Mi"}}),
        ),
        // Kubernetes takes a limit as the request.
        (
            json!({"limits": {"memory": "64Mi", "cpu": "2"}}),
            json!({"limits": {"memory": "64Mi", "cpu": "2"}}),
        ),
        // What cannot be compared stays as it is.
        (
            json!({"requests": {"memory": "much"}}),
            json!({"requests": {"memory": "much", "cpu": "100m"}}),
        ),
        (
            json!({"requests": {"cpu": 1}}),
            json!({"requests": {"cpu": 1, "memory": "128Mi"}, "limits": {"memory": "256Mi"}}),
        ),
    ] {
        assert_eq!(resources_of(written.clone()), expected, "{written}");
    }
}

#[test]
fn pod_with_resources_of_its_own_gets_none_for_its_containers() {
    let run = create_pod(json!({
        "resources": {"limits": {"memory": "64Mi"}},
        "containers": [{"name": "web"}],
    }));
    run.is_allowed().without("/spec/containers/0/resources");
    run.with("/spec/containers/0/securityContext/runAsNonRoot", true);
}

#[test]
fn written_security_context_stays() {
    let written = json!({
        "runAsNonRoot": false,
        "allowPrivilegeEscalation": true,
        "capabilities": {"drop": ["NET_RAW"]},
        "seccompProfile": {"type": "Unconfined"},
    });
    assert_eq!(context_of(json!({}), written.clone()), written);
}

#[test]
fn field_of_the_pod_counts_for_its_containers() {
    let spec = json!({"securityContext": {
        "runAsNonRoot": false, "seccompProfile": {"type": "Localhost", "localhostProfile": "x"}}});
    assert_eq!(
        context_of(spec, json!({})),
        json!({"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}}),
    );
}

#[test]
fn container_that_runs_as_root_is_not_forbidden_to() {
    let rest = || {
        json!({"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"}})
    };
    let with = |member: &str, value: Value| {
        let mut context = rest();
        context[member] = value;
        context
    };
    let root = json!({"securityContext": {"runAsUser": 0}});
    assert_eq!(context_of(root.clone(), json!({})), rest());
    assert_eq!(context_of(json!({}), json!({"runAsUser": 0})), with("runAsUser", json!(0)));
    let mut expected = with("runAsUser", json!(1000));
    expected["runAsNonRoot"] = json!(true);
    assert_eq!(context_of(root, json!({"runAsUser": 1000})), expected);
}

#[test]
fn privileged_container_is_left_alone() {
    let written = json!({"privileged": true});
    assert_eq!(context_of(json!({}), written.clone()), written);
    let run = create_pod(json!({"containers": [{"name": "web", "securityContext": written}]}));
    run.is_allowed().with("/spec/containers/0/resources/limits/memory", "256Mi");
}

#[test]
fn capabilities_that_are_added_decide_what_may_be_denied() {
    let context = |add: Value| context_of(json!({}), json!({"capabilities": {"add": add}}));
    for name in ["SYS_ADMIN", "CAP_SYS_ADMIN"] {
        let context = context(json!([name]));
        assert_eq!(context["capabilities"], json!({"add": [name], "drop": ["ALL"]}));
        assert!(context.get("allowPrivilegeEscalation").is_none(), "{context}");
    }
    let bind = context(json!(["NET_BIND_SERVICE"]));
    assert_eq!(bind["capabilities"], json!({"add": ["NET_BIND_SERVICE"], "drop": ["ALL"]}));
    assert_eq!(bind["allowPrivilegeEscalation"], json!(false));
    let all = context(json!(["ALL"]));
    assert_eq!(all["capabilities"], json!({"add": ["ALL"]}));
    assert!(all.get("allowPrivilegeEscalation").is_none(), "{all}");
}

#[test]
fn capability_that_is_added_is_not_dropped_by_name() {
    let pod = json!({"spec": {"containers": [
        {"name": "web", "securityContext": {"capabilities": {"add": ["CAP_NET_RAW"]}}},
    ]}});
    let drop = json!({"securityContext": {"capabilities": {"drop": ["NET_RAW", "MKNOD"]}}});
    let run = ReviewScenario::<Policy>::create::<Pod>(pod).parameters(drop).run();
    let expected = json!({"add": ["CAP_NET_RAW"], "drop": ["MKNOD"]});
    run.is_allowed().with("/spec/containers/0/securityContext/capabilities", expected);
}

#[test]
fn pod_for_windows_gets_only_what_windows_has() {
    let windows = || json!({"os": {"name": "windows"}});
    assert_eq!(context_of(windows(), json!({})), json!({"runAsNonRoot": true}));
    let host_process = json!({"windowsOptions": {"hostProcess": true}});
    assert_eq!(context_of(windows(), host_process.clone()), host_process);
    let mut spec = windows();
    spec["securityContext"] = host_process;
    assert_eq!(context_of(spec, json!({})), json!({}));
}

#[test]
fn ephemeral_containers_are_left_alone() {
    let debug = json!([{"name": "debug"}]);
    let run = create_pod(json!({
        "containers": [{"name": "web"}], "ephemeralContainers": debug,
    }));
    run.with("/spec/ephemeralContainers", debug.clone());
    let old = json!({"spec": {"containers": [{"name": "web"}]}});
    let mut new = old.clone();
    new["spec"]["ephemeralContainers"] = debug;
    ReviewScenario::<Policy>::update::<Pod>(old, new)
        .subresource("ephemeralcontainers")
        .parameters(parameters())
        .run()
        .is_not_reviewed();
}

#[test]
fn template_of_a_workload_gets_the_defaults_when_it_is_created() {
    let container = "/spec/template/spec/containers/0";
    let create = ReviewScenario::<Policy>::create::<Deployment>(empty_template());
    create.parameters(parameters()).run().is_allowed().with(container, defaulted());
    let cron_job = json!({"spec": {"jobTemplate": empty_template()}});
    let create = ReviewScenario::<Policy>::create::<CronJob>(cron_job);
    let run = create.parameters(parameters()).run();
    run.is_allowed().with(&format!("/spec/jobTemplate{container}"), defaulted());
    let create = ReviewScenario::<Policy>::create::<Job>(empty_template());
    create.parameters(parameters()).run().is_allowed().with(container, defaulted());
}

#[test]
fn template_gets_the_defaults_when_it_changes_and_not_when_something_else_does() {
    let update = |old: Value, new: Value| {
        ReviewScenario::<Policy>::update::<StatefulSet>(old, new).parameters(parameters()).run()
    };
    let mut scaled = empty_template();
    scaled["spec"]["replicas"] = json!(2);
    update(empty_template(), scaled.clone()).is_allowed().with("/spec", scaled["spec"].clone());
    let mut changed = empty_template();
    changed["spec"]["template"]["spec"]["containers"][0]["image"] = json!("web:2");
    let run = update(empty_template(), changed);
    run.is_allowed().with("/spec/template/spec/containers/0/resources/limits/memory", "256Mi");
    // A client that leaves the defaults out again changes nothing.
    let mut defaults = empty_template();
    defaults["spec"]["template"]["spec"]["containers"][0] = defaulted();
    let run = update(defaults.clone(), empty_template());
    run.is_allowed().with("/spec", defaults["spec"].clone());
}

#[test]
fn pod_and_job_are_left_alone_when_they_are_updated() {
    let changed = |mut object: Value, pointer: &str| {
        *object.pointer_mut(pointer).unwrap() = json!([{"name": "web", "image": "web:2"}]);
        object
    };
    let job = changed(empty_template(), "/spec/template/spec/containers");
    let update = ReviewScenario::<Policy>::update::<Job>(empty_template(), job.clone());
    let run = update.parameters(parameters()).run();
    run.is_allowed().with("/spec", job["spec"].clone());
    let pod = || json!({"spec": {"containers": [{"name": "web"}]}});
    let update = ReviewScenario::<Policy>::update::<Pod>(pod(), pod());
    update.parameters(parameters()).run().is_not_reviewed();
}

#[test]
fn template_of_a_controller_is_left_alone_and_its_pods_are_not() {
    let owned = |mut object: Value| {
        object["metadata"] = json!({"ownerReferences": [
            {"apiVersion": "apps/v1", "kind": "Any", "name": "web", "uid": "u", "controller": true},
        ]});
        object
    };
    let replica_set = owned(empty_template());
    let create = ReviewScenario::<Policy>::create::<ReplicaSet>(replica_set.clone());
    let run = create.parameters(parameters()).run();
    run.is_allowed().with("/spec", replica_set["spec"].clone());
    let pod = owned(json!({"spec": {"containers": [{"name": "web"}]}}));
    let create = ReviewScenario::<Policy>::create::<Pod>(pod);
    create.parameters(parameters()).run().is_allowed().with("/spec/containers/0", defaulted());
}

#[test]
fn object_that_is_being_deleted_is_left_alone() {
    let mut object = empty_template();
    object["metadata"] = json!({"deletionTimestamp": "2026-01-01T00:00:00Z"});
    object["spec"]["template"]["spec"]["containers"][0]["image"] = json!("web:2");
    let update = ReviewScenario::<Policy>::update::<Deployment>(empty_template(), object.clone());
    update.parameters(parameters()).run().is_allowed().with("/spec", object["spec"].clone());
}

#[test]
fn request_above_its_limit_in_the_parameters_fails_the_review() {
    let pod = json!({"spec": {"containers": [{"name": "web"}]}});
    let parameters = json!({"resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "1500m"}}});
    let run = ReviewScenario::<Policy>::create::<Pod>(pod).parameters(parameters).run();
    run.is_failed("the request of cpu, 2, is above its limit, 1500m; lower the request");
}

#[test]
fn object_of_an_unexpected_shape_is_left_alone() {
    for spec in
        [json!({"containers": null}), json!({"containers": "many"}), json!({"containers": ["web"]})]
    {
        create_pod(spec.clone()).is_allowed().with("/spec", spec);
    }
    let spec = json!({"containers": [{"name": "web", "resources": 1, "securityContext": []}]});
    create_pod(spec.clone()).is_allowed().with("/spec", spec);
    let create =
        ReviewScenario::<Policy>::create::<Deployment>(json!({"spec": {"template": null}}));
    create.parameters(parameters()).run().is_allowed();
}
