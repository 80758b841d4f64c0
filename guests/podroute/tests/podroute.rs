//! What a user of podroute may rely on.

use expect_test::expect_file;
use innkeeper_sdk::ConditionStatus::{False, True};
use innkeeper_sdk::kinds::{Deployment, Service};
use innkeeper_sdk::testing::Scenario;
use innkeeper_sdk::{Reconciler as _, Reference, Unapplied, schema};
use podroute::{DEPLOYMENT, Guest, Podroute, ROUTE, Route, SERVICE};
use serde_json::{Value, json};

/// The sample of the original operator.
fn sample() -> Value {
    json!({
        "metadata": { "name": "test-podroute", "namespace": "demo" },
        "spec": { "image": "quay.io/austincunningham/always200:latest", "replicas": 3 },
    })
}

fn given(primary: Value) -> Scenario<Guest> {
    Scenario::of(primary)
}

#[test]
fn a_podroute_becomes_a_deployment_a_service_and_a_route() {
    let run = given(sample()).run();
    run.is_complete().desires_objects(3);
    run.desires::<Deployment>(DEPLOYMENT);
    run.desires::<Service>(SERVICE);
    run.desires::<Route>(ROUTE);
}

#[test]
fn objects_equal_the_golden_file() {
    expect_file!["golden/objects.json"].assert_eq(&given(sample()).run().objects_text());
}

#[test]
fn pods_and_the_route_carry_the_three_labels_and_no_other_object_does() {
    let labels =
        json!({ "app": "PodRoute", "podroute_cr": "test-podroute", "tier": "backend-podroute" });
    let run = given(sample()).run();
    run.desires::<Route>(ROUTE).with("/metadata/labels", labels.clone());
    run.desires::<Deployment>(DEPLOYMENT)
        .without("/metadata/labels")
        .with("/spec/selector/matchLabels", labels.clone())
        .with("/spec/template/metadata/labels", labels.clone());
    run.desires::<Service>(SERVICE).without("/metadata/labels").with("/spec/selector", labels);
}

#[test]
fn replicas_follow_the_podroute_as_a_number() {
    for replicas in [0, 1, 7] {
        let mut primary = sample();
        primary["spec"]["replicas"] = json!(replicas);
        given(primary).run().desires::<Deployment>(DEPLOYMENT).with("/spec/replicas", replicas);
    }
}

#[test]
fn replicas_left_out_is_0_and_ready_says_so() {
    let mut primary = sample();
    primary["spec"] = json!({ "image": "web:1" });
    let first = given(primary.clone()).run();
    first.desires::<Deployment>(DEPLOYMENT).with("/spec/replicas", 0);
    first.condition("Ready", False, "InProgress");
    given(primary)
        .after(&first)
        .run()
        .is_complete()
        .condition("Ready", True, "NoPods")
        .condition_says("Ready", "spec.replicas is left out")
        .condition_says("Ready", "kubectl -n demo patch podroute test-podroute --type merge -p '{\"spec\":{\"replicas\":1}}'")
        .condition_says("Ready", "spec.parameters.replicasWhenLeftOut");
}

#[test]
fn replicas_of_0_is_ready_without_a_hint() {
    let mut primary = sample();
    primary["spec"]["replicas"] = json!(0);
    let first = given(primary.clone()).run();
    given(primary).after(&first).run().condition("Ready", True, "AllReady");
}

#[test]
fn replicas_left_out_follow_the_parameter() {
    let primary = json!({ "spec": { "image": "web:1" } });
    let scenario = given(primary).parameters(json!({ "replicasWhenLeftOut": 2 }));
    let first = scenario.run();
    first.desires::<Deployment>(DEPLOYMENT).with("/spec/replicas", 2);
    scenario.after(&first).run().condition("Ready", True, "AllReady");
}

#[test]
fn replicas_of_the_spec_win_over_the_parameter() {
    let parameters = json!({ "replicasWhenLeftOut": 2 });
    for replicas in [0, 3] {
        let mut primary = sample();
        primary["spec"]["replicas"] = json!(replicas);
        let run = given(primary).parameters(parameters.clone()).run();
        run.desires::<Deployment>(DEPLOYMENT).with("/spec/replicas", replicas);
    }
}

#[test]
fn parameters_that_do_not_fit_are_refused() {
    for parameters in [json!({ "replicasWhenLeftOut": "2" }), json!({ "replicas": 2 })] {
        given(sample())
            .parameters(parameters)
            .run()
            .failed_because("BadParameters")
            .desires_objects(0)
            .condition_says("Ready", "spec.parameters");
    }
}

#[test]
fn nothing_is_created_when_the_image_is_missing() {
    for spec in [json!({}), json!({ "image": "", "replicas": 3 })] {
        let mut primary = sample();
        primary["spec"] = spec;
        given(primary)
            .run()
            .is_partial()
            .desires_objects(0)
            .condition("Ready", False, "ImageMissing")
            .condition_says("Ready", "no object is created")
            .condition_says("Ready", "kubectl -n demo patch podroute test-podroute");
    }
}

#[test]
fn objects_stay_when_the_image_goes_missing_later() {
    let first = given(sample()).run();
    let mut primary = sample();
    primary["spec"]["image"] = json!("");
    given(primary)
        .after(&first)
        .run()
        .is_partial()
        .desires_objects(0)
        .condition("Ready", False, "ImageMissing")
        .condition_says("Ready", "the existing objects stay as they are");
}

#[test]
fn image_pull_policy_is_always() {
    given(sample())
        .run()
        .desires::<Deployment>(DEPLOYMENT)
        .with("/spec/template/spec/containers/0/imagePullPolicy", "Always");
}

#[test]
fn podroute_is_not_ready_before_its_objects_exist() {
    let run = given(sample()).run();
    run.condition("Ready", False, "InProgress")
        .condition_says("Ready", "pod-route does not exist yet");
}

#[test]
fn podroute_is_not_ready_while_the_deployment_is_not() {
    let first = given(sample()).run();
    let mut scenario = given(sample());
    for object in first.objects() {
        scenario = if object["kind"] == "Deployment" {
            let mut deployment = object.clone();
            deployment["status"] = json!({ "replicas": 3, "readyReplicas": 1 });
            scenario.owns_unready(deployment, "1 of 3 pods are ready")
        } else {
            scenario.owns_ready(object.clone())
        };
    }
    scenario
        .run()
        .is_complete()
        .condition("Ready", False, "InProgress")
        .condition_says("Ready", "1 of 3 pods are ready")
        .status("/replicas", 3)
        .status("/readyReplicas", 1);
}

#[test]
fn podroute_is_ready_when_all_objects_are() {
    let first = given(sample()).run();
    given(sample()).after(&first).run().is_complete().condition("Ready", True, "AllReady");
}

#[test]
fn outcome_is_the_same_text_for_the_same_state() {
    let scenario = given(sample());
    assert_eq!(scenario.run().objects_text(), scenario.run().objects_text());
}

#[test]
fn without_the_route_kind_the_route_stays_desired_and_the_podroute_is_ready_all_the_same() {
    let first = given(sample()).without::<Route>().run();
    // The host reports that the kind is not served, and creates the Route as soon as it is.
    first.is_complete().desires::<Route>(ROUTE);

    let mut second = given(sample()).without::<Route>();
    for object in first.objects().iter().filter(|object| object["kind"] != "Route") {
        second = second.owns_ready(object.clone());
    }
    second.run().condition("Ready", True, "AllReady");
}

#[test]
fn podroute_is_not_ready_until_the_route_is_when_the_route_kind_is_served() {
    let first = given(sample()).without::<Route>().run();
    let mut second = given(sample());
    for object in first.objects().iter().filter(|object| object["kind"] != "Route") {
        second = second.owns_ready(object.clone());
    }
    second
        .run()
        .condition("Ready", False, "InProgress")
        .condition_says("Ready", "Route podroute-route does not exist yet");
}

#[test]
fn ready_is_false_when_an_object_could_not_be_applied() {
    let conflict = Unapplied {
        reference: Reference {
            api_version: "apps/v1".to_owned(),
            kind: "Deployment".to_owned(),
            namespace: "demo".to_owned(),
            name: DEPLOYMENT.to_owned(),
        },
        reason: "Conflict".to_owned(),
        message: "it belongs to Podroute demo/other".to_owned(),
    };
    given(sample())
        .unapplied(conflict)
        .run()
        .condition("Ready", False, "Conflict")
        .condition_says("Ready", "Deployment demo/pod-route: it belongs to Podroute demo/other");
}

#[test]
fn run_fails_when_a_field_has_the_wrong_type() {
    let run = given(json!({ "spec": { "image": "web:1", "replicas": "three" } })).run();
    run.failed_because("UnreadablePrimary");
    let failure = run.failure().unwrap();
    assert!(failure.permanent, "trying again does not change the object");
    assert!(failure.message.contains("expected i32"), "{}", failure.message);
}

#[test]
fn podroute_is_refused_when_its_name_is_too_long_for_a_label() {
    let mut primary = sample();
    primary["metadata"]["name"] = json!("a".repeat(64));
    given(primary).run().failed_because("NameTooLong").desires_objects(0).condition(
        "Ready",
        False,
        "NameTooLong",
    );
}

#[test]
fn only_the_route_kind_is_optional() {
    let optional: Vec<String> = Guest::describe()
        .owned
        .into_iter()
        .filter(|owned| owned.optional)
        .map(|owned| owned.kind.to_string())
        .collect();
    assert_eq!(optional, ["route.openshift.io/v1 Route"]);
}

#[test]
fn crd_has_the_names_and_fields_of_the_original() {
    let crd = schema::crd::<Podroute>();
    assert_eq!(crd["spec"]["group"], "quay.io");
    assert_eq!(crd["spec"]["names"]["kind"], "Podroute");
    assert_eq!(crd["spec"]["scope"], "Namespaced");
    let version = &crd["spec"]["versions"][0];
    assert_eq!(version["name"], "v1alpha1");
    assert_eq!(version["subresources"], json!({ "status": {} }));
    let schema = &version["schema"]["openAPIV3Schema"]["properties"];
    for (field, type_) in [
        ("/spec/properties/image/type", "string"),
        ("/spec/properties/replicas/type", "integer"),
        ("/spec/properties/replicas/format", "int32"),
    ] {
        assert_eq!(schema.pointer(field), Some(&json!(type_)), "{field}");
    }
    assert_eq!(schema["spec"].get("required"), None);
    assert_eq!(schema["spec"]["properties"]["replicas"]["minimum"], 0);
}

#[test]
fn objects_have_the_names_and_ports_of_the_original() {
    let run = given(sample()).run();
    let container = "/spec/template/spec/containers/0";
    run.desires::<Deployment>("pod-route")
        .with(&format!("{container}/name"), "podroute-pod")
        .with(&format!("{container}/image"), "quay.io/austincunningham/always200:latest")
        .with(&format!("{container}/ports/0/containerPort"), 8080)
        .with(&format!("{container}/ports/0/name"), "podroute");
    run.desires::<Service>("podroute-service")
        .with("/spec/ports", json!([{ "port": 8080, "targetPort": 8080, "protocol": "TCP" }]));
    run.desires::<Route>("podroute-route")
        .with("/spec/to", json!({ "kind": "Service", "name": "podroute-service" }))
        .with("/spec/port/targetPort", 8080);
}

#[test]
fn crd_file_is_what_the_types_generate() {
    expect_file!["../crd.json"].assert_eq(&schema::crd_text::<Podroute>());
}

#[test]
fn sample_manifest_is_a_podroute() {
    let text = include_str!("../../../deploy/samples/podroute.yaml");
    // The sample's values, one by one: a YAML library would be a dependency for five lines.
    for line in [
        "apiVersion: quay.io/v1alpha1",
        "kind: Podroute",
        "  name: test-podroute",
        "  image: quay.io/austincunningham/always200:latest",
        "  replicas: 3",
    ] {
        assert!(text.lines().any(|found| found == line), "the sample lacks `{line}`");
    }
}
