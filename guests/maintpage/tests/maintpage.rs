//! What users of maintpage can rely on.

use expect_test::expect_file;
use innkeeper_sdk::ConditionStatus::{False, True};
use innkeeper_sdk::kinds::{Deployment, Pod, Service};
use innkeeper_sdk::{Policy, Reconciler as _, Reference, Unapplied, schema};
use maintpage::{Guest, MaintPage};
use serde_json::json;

mod support;

use support::{
    APP, PAGE, app_answers, app_fails, changed, given, page_answers, page_fails, routed_to,
    running, sample, toggle,
};

#[test]
fn a_maintpage_becomes_a_pod_a_deployment_and_a_service() {
    let run = given(sample()).run();
    run.is_complete().desires_objects(3);
    run.desires::<Deployment>(APP)
        .with("/spec/replicas", 1)
        .with("/spec/selector/matchLabels", json!({ "app": APP }))
        .with("/spec/template/metadata/labels", json!({ "app": APP }))
        .with("/spec/template/spec/containers/0/name", APP)
        .with("/spec/template/spec/containers/0/image", "production:1")
        .without_policy();
    run.desires::<Pod>(PAGE)
        .with("/metadata/labels", json!({ "app": "shop" }))
        .with("/spec/containers/0/name", "maintpage")
        .with("/spec/containers/0/image", "maintenance:1");
    run.desires::<Service>(APP)
        .with("/spec/ports/0/name", "8080-tcp")
        .with("/spec/ports/0/protocol", "TCP")
        .with("/spec/ports/0/port", 8080)
        .with("/spec/ports/0/targetPort", 8080);
}

#[test]
fn objects_equal_the_golden_file() {
    expect_file!["golden/objects.json"].assert_eq(&given(sample()).run().objects_text());
}

#[test]
fn objects_of_a_published_page_equal_the_golden_file() {
    let primary = changed(|page| page["spec"]["maintpageconfig"]["maintpagetoggle"] = json!(true));
    expect_file!["golden/published.json"].assert_eq(&given(primary).run().objects_text());
}

#[test]
fn a_manifest_without_the_toggle_is_one_with_false() {
    let primary = changed(|page| {
        page["spec"]["maintpageconfig"] = json!({ "maintpageimage": "maintenance:1" });
    });
    given(primary).run().desires::<Service>(APP).with("/spec/selector", json!({ "app": APP }));
}

#[test]
fn first_service_routes_to_the_desired_side() {
    let primary = changed(|page| page["spec"]["maintpageconfig"]["maintpagetoggle"] = json!(true));
    given(primary).run().desires::<Service>(APP).with("/spec/selector", json!({ "app": "shop" }));
}

#[test]
fn the_toggle_moves_the_service_to_the_page_and_back() {
    let mut cluster = running();
    assert_eq!(routed_to(&cluster), APP);

    toggle(&mut cluster, true);
    cluster
        .settle()
        .status("/maintpublishstatus", "Published")
        .condition("Published", True, "Toggled")
        .condition("Ready", True, "AllReady");
    assert_eq!(routed_to(&cluster), "shop");

    toggle(&mut cluster, false);
    cluster
        .settle()
        .status("/maintpublishstatus", "Not Published")
        .condition("Published", False, "NotToggled")
        .condition("Ready", True, "AllReady");
    assert_eq!(routed_to(&cluster), APP);
}

#[test]
fn the_service_stays_with_the_application_until_the_page_answers() {
    let mut cluster = running();
    page_fails(&mut cluster);
    toggle(&mut cluster, true);
    cluster
        .settle()
        .status("/maintpublishstatus", "Not Published")
        .condition("Published", False, "WaitsForPage")
        .condition("Ready", False, "SwitchWaits")
        .condition_says("Ready", "it runs but is not ready");
    assert_eq!(routed_to(&cluster), APP);

    page_answers(&mut cluster);
    cluster.settle().status("/maintpublishstatus", "Published");
    assert_eq!(routed_to(&cluster), "shop");
}

#[test]
fn the_service_stays_with_the_page_until_the_application_answers() {
    let mut cluster = running();
    toggle(&mut cluster, true);
    cluster.settle();
    app_fails(&mut cluster);
    toggle(&mut cluster, false);
    cluster
        .settle()
        .status("/maintpublishstatus", "Published")
        .condition("Published", True, "WaitsForApplication")
        .condition_says("Ready", "0 of 1 replicas are available");
    assert_eq!(routed_to(&cluster), "shop");

    app_answers(&mut cluster, APP);
    cluster.settle().status("/maintpublishstatus", "Not Published");
    assert_eq!(routed_to(&cluster), APP);
}

#[test]
fn service_switches_at_once_when_neither_side_serves() {
    let mut cluster = running();
    app_fails(&mut cluster);
    page_fails(&mut cluster);
    toggle(&mut cluster, true);
    cluster.settle();
    assert_eq!(routed_to(&cluster), "shop");
}

#[test]
fn service_stays_with_a_published_page_when_it_becomes_unready() {
    let mut cluster = running();
    toggle(&mut cluster, true);
    cluster.settle();
    page_fails(&mut cluster);
    cluster.settle().condition("Ready", False, "InProgress");
    assert_eq!(routed_to(&cluster), "shop");
}

#[test]
fn a_page_of_an_older_image_does_not_take_over() {
    let mut cluster = running();
    cluster.edit(|page| {
        page["spec"]["maintpageconfig"] =
            json!({ "maintpageimage": "maintenance:2", "maintpagetoggle": true });
    });
    // The Pod is ready, but with the former image, and this round restarts it.
    let (run, _) = cluster.round();
    run.desires::<Service>(APP).with("/spec/selector", json!({ "app": APP }));
    run.desires::<Pod>(PAGE).with("/spec/containers/0/image", "maintenance:2");
}

#[test]
fn service_switches_to_the_application_during_its_rollout() {
    let mut cluster = running();
    toggle(&mut cluster, true);
    cluster.settle();
    cluster.becomes_unready::<Deployment>(APP, "0 of 1 replicas are updated");
    toggle(&mut cluster, false);
    cluster.settle();
    assert_eq!(routed_to(&cluster), APP);
}

#[test]
fn changes_by_hand_of_image_and_selector_are_set_back() {
    let mut cluster = running();
    cluster.change::<Deployment>(APP, |one| {
        one["spec"]["template"]["spec"]["containers"][0]["image"] = json!("other:1");
    });
    cluster.change::<Service>(APP, |one| one["spec"]["selector"] = json!({ "app": "other" }));
    cluster.settle();
    assert_eq!(
        cluster.object::<Deployment>(APP)["spec"]["template"]["spec"]["containers"][0]["image"],
        "production:1"
    );
    assert_eq!(routed_to(&cluster), APP);

    cluster.change::<Service>(APP, |one| one["spec"]["selector"] = json!({ "app": "shop" }));
    cluster.settle();
    assert_eq!(routed_to(&cluster), APP);
}

#[test]
fn a_pods_image_is_changed_in_place_and_whatever_else_is_immutable_recreates_it() {
    given(sample()).run().desires::<Pod>(PAGE).policy(Policy::RecreateWhenImmutable);
}

#[test]
fn page_is_recreated_when_it_was_evicted() {
    let mut cluster = running();
    cluster.change::<Pod>(PAGE, |one| one["status"] = json!({ "phase": "Failed" }));
    let (run, _) = cluster.round();
    run.is_complete().does_not_desire::<Pod>(PAGE).event("PageReplaced");
    assert!(!cluster.has::<Pod>(PAGE));
    cluster.settle().condition_says("Ready", "Pod shop-maintpage-pod");
    assert!(cluster.has::<Pod>(PAGE));
}

#[test]
fn a_new_appname_moves_the_application_and_the_old_one_serves_until_the_new_one_answers() {
    let mut cluster = running();
    cluster.edit(|page| page["spec"]["appconfig"]["appname"] = json!("web2"));
    cluster.settle().keeps::<Deployment>(APP).keeps::<Service>(APP);
    assert!(cluster.has::<Deployment>("web2") && cluster.has::<Service>("web2"));
    assert!(cluster.has::<Deployment>(APP) && cluster.has::<Service>(APP));

    app_answers(&mut cluster, "web2");
    cluster.settle().does_not_keep::<Deployment>(APP).condition("Ready", True, "AllReady");
    assert!(!cluster.has::<Deployment>(APP) && !cluster.has::<Service>(APP));
    assert!(cluster.has::<Pod>(PAGE), "the page does not depend on the application's name");
}

#[test]
fn an_appname_that_is_the_maintpages_own_name_is_refused_and_touches_nothing() {
    let mut cluster = running();
    cluster.edit(|page| page["spec"]["appconfig"]["appname"] = json!("shop"));
    let run = cluster.settle();
    run.failed_because("AppnameIsOwnName").desires_objects(0);
    assert!(run.failure().unwrap().permanent, "a retry does not help");
    run.condition("Ready", False, "AppnameIsOwnName").condition_says("Ready", "another name");
    assert!(cluster.has::<Deployment>(APP) && cluster.has::<Service>(APP));
}

#[test]
fn maintpage_is_refused_when_a_name_is_too_long_or_invalid() {
    let long = "a".repeat(64);
    let run = given(changed(|page| page["metadata"]["name"] = json!(long.clone()))).run();
    run.failed_because("NameTooLong").desires_objects(0);
    for appname in ["", "Web", "1web", "web.shop", &long] {
        let run =
            given(changed(|page| page["spec"]["appconfig"]["appname"] = json!(appname))).run();
        run.failed_because("UnusableAppname").desires_objects(0);
        assert!(run.failure().unwrap().permanent, "{appname}");
    }
}

#[test]
fn a_deployment_whose_pods_look_like_the_page_is_a_clash() {
    let deployment = |label: &str| {
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "shop" },
            "spec": { "template": { "metadata": { "labels": { "app": label } } } },
        })
    };
    given(sample())
        .with_object(deployment("shop"))
        .run()
        .failed_because("NameClash")
        .condition_says("Ready", "there is a Deployment shop");
    given(sample()).with_object(deployment("other")).run().is_complete();
}

#[test]
fn a_page_of_another_maintpage_that_looks_like_the_application_is_a_clash() {
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": "web-maintpage-pod", "labels": { "app": "web" } },
    });
    given(sample())
        .with_object(pod)
        .run()
        .failed_because("NameClash")
        .condition_says("Ready", "there is a Pod web-maintpage-pod");
}

#[test]
fn run_is_retried_when_names_cannot_be_compared() {
    let run = given(sample()).deny_reads::<Deployment>().run();
    run.failed_because("Unreadable");
    assert!(!run.failure().unwrap().permanent);
}

#[test]
fn ready_is_false_when_an_object_could_not_be_applied() {
    let conflict = Unapplied {
        reference: Reference {
            api_version: "v1".to_owned(),
            kind: "Service".to_owned(),
            namespace: "demo".to_owned(),
            name: APP.to_owned(),
        },
        reason: "Conflict".to_owned(),
        message: "it belongs to MaintPage demo/other".to_owned(),
    };
    given(sample()).unapplied(conflict).run().condition("Ready", False, "Conflict");
}

#[test]
fn maintpage_is_not_published_before_the_service_exists() {
    given(sample())
        .run()
        .status("/maintpublishstatus", "Not Published")
        .condition("Published", False, "NotRouted")
        .condition("Ready", False, "InProgress");
}

#[test]
fn run_fails_when_the_toggle_is_a_string() {
    let primary = changed(|page| page["spec"]["maintpageconfig"]["maintpagetoggle"] = json!("on"));
    let run = given(primary).run();
    let message = &run.failed_because("UnreadablePrimary").failure().unwrap().message;
    assert!(message.contains("expected a boolean"), "{message}");
}

#[test]
fn the_objects_of_the_original_operator_are_the_ones_that_are_desired() {
    // The original Pod has no owner: the host adopts it only if it carries all desired labels, and
    // Deployment and Service must desire none.
    let run = given(sample()).run();
    run.desires::<Pod>(PAGE).with("/metadata/labels", json!({ "app": "shop" }));
    run.desires::<Deployment>(APP).without("/metadata/labels");
    run.desires::<Service>(APP).without("/metadata/labels");
}

#[test]
fn pod_of_the_original_operator_is_adopted_and_recreated_with_a_probe_when_not_published() {
    // An existing Pod cannot get a probe.
    let original = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": PAGE, "labels": { "app": "shop" } },
        "spec": { "containers": [{ "name": "maintpage", "image": "maintenance:1" }] },
    });
    let probe = "/spec/containers/0/readinessProbe";
    given(sample()).with_object(original.clone()).run().desires::<Pod>(PAGE).without(probe);

    let service = |app: &str| {
        json!({
            "apiVersion": "v1", "kind": "Service", "metadata": { "name": APP },
            "spec": { "selector": { "app": app } },
        })
    };
    let ours = given(sample()).owns_ready(original.clone()).owns_ready(service("web")).run();
    ours.desires::<Pod>(PAGE).with(&format!("{probe}/tcpSocket/port"), 8080);

    let published =
        changed(|page| page["spec"]["maintpageconfig"]["maintpagetoggle"] = json!(true));
    let ours = given(published).owns_ready(original).owns_ready(service("shop")).run();
    ours.desires::<Pod>(PAGE).without(probe);
}

#[test]
fn crd_has_the_names_and_fields_of_the_original() {
    let crd = schema::crd::<MaintPage>();
    assert_eq!(crd["spec"]["group"], "maintpage.example.com");
    assert_eq!(crd["spec"]["names"]["kind"], "MaintPage");
    assert_eq!(crd["spec"]["scope"], "Namespaced");
    let version = &crd["spec"]["versions"][0];
    assert_eq!(version["name"], "v1alpha1");
    assert_eq!(version["subresources"], json!({ "status": {} }));
    let schema = &version["schema"]["openAPIV3Schema"]["properties"];
    for (field, type_) in [
        ("/spec/properties/maintpageconfig/properties/maintpagetoggle/type", "boolean"),
        ("/spec/properties/maintpageconfig/properties/maintpageimage/type", "string"),
        ("/spec/properties/appconfig/properties/appname/type", "string"),
        ("/spec/properties/appconfig/properties/appimage/type", "string"),
        ("/status/properties/maintpublishstatus/type", "string"),
    ] {
        assert_eq!(schema.pointer(field), Some(&json!(type_)), "{field}");
    }
    assert_eq!(
        schema.pointer("/status/properties/maintpublishstatus/enum"),
        Some(&json!(["Published", "Not Published"]))
    );
    let spec = &schema["spec"]["properties"];
    assert_eq!(spec["maintpageconfig"]["required"], json!(["maintpageimage"]));
    assert_eq!(spec["appconfig"]["required"], json!(["appname", "appimage"]));
}

#[test]
fn guest_runs_on_changes_only() {
    assert_eq!(Guest::describe().resync_seconds, None);
}

#[test]
fn crd_file_is_what_the_types_generate() {
    expect_file!["../crd.json"].assert_eq(&schema::crd_text::<MaintPage>());
}

#[test]
fn sample_manifest_is_a_maintpage() {
    let text = include_str!("../../../deploy/samples/maintpage.yaml");
    // The sample's values, one by one: a YAML library would be a dependency for a few lines.
    for line in [
        "apiVersion: maintpage.example.com/v1alpha1",
        "kind: MaintPage",
        "    maintpagetoggle: false",
        "    maintpageimage: quay.io/example/maintenance:latest",
        "    appname: production",
        "    appimage: quay.io/example/production:latest",
    ] {
        assert!(text.lines().any(|found| found == line), "the sample lacks `{line}`");
    }
}
