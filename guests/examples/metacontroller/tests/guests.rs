//! The guests natively: their definitions, and what the scenarios cannot show cheaply.

use expect_test::expect_file;
use innkeeper_sdk::kinds::{ConfigMap, Pod, ReplicaSet, Service};
use innkeeper_sdk::read;
use innkeeper_sdk::schema::crd_text;
use innkeeper_sdk::testing::{FakeCluster, Scenario};
use metacontroller_examples::{
    blue_green, config_map_list, config_map_propagation, daemon_job, global_config_map,
    indexed_job, namespace_list, pod_name_label, service_per_pod,
};
use serde_json::{Value, json};

#[test]
fn crd_files_are_what_the_types_generate() {
    expect_file!["../blue-green/crd.json"]
        .assert_eq(&crd_text::<blue_green::BlueGreenDeployment>());
    expect_file!["../config-map-propagation/crd.json"]
        .assert_eq(&crd_text::<config_map_propagation::ConfigMapPropagation>());
    expect_file!["../config-map-list/crd.json"]
        .assert_eq(&crd_text::<config_map_list::ConfigMapList>());
    expect_file!["../daemon-job/crd.json"].assert_eq(&crd_text::<daemon_job::DaemonJob>());
    expect_file!["../global-config-map/crd.json"]
        .assert_eq(&crd_text::<global_config_map::GlobalConfigMap>());
    expect_file!["../indexed-job/crd.json"].assert_eq(&crd_text::<indexed_job::IndexedJob>());
    expect_file!["../namespace-list/crd.json"]
        .assert_eq(&crd_text::<namespace_list::NamespaceList>());
}

#[test]
fn service_per_pod_fails_with_advice_when_the_ports_are_unreadable() {
    let set = |ports: &str| {
        let annotations = json!({ "service-per-pod-label": "pod", "service-per-pod-ports": ports });
        json!({ "metadata": { "name": "web", "annotations": annotations }, "spec": { "replicas": 2 } })
    };
    let run = |ports| Scenario::<service_per_pod::Guest>::of(set(ports)).run();
    let message = "cannot read the annotation service-per-pod-ports `80`: write 80:8080,443:8443";
    let failed = run("80");
    let failure = failed.failed_because("InvalidPorts").failure().unwrap();
    assert!(failure.permanent && failure.message == message, "{failure:?}");
    let services = run("80:8080, 443:8443");
    services.is_complete().desires_objects(2);
    services.desires::<Service>("web-1").with("/spec/selector/pod", "web-1");
    services.desires::<Service>("web-1").with("/spec/ports/1/targetPort", 8443);
}

#[test]
fn pod_name_label_is_run_only_for_pods_with_the_annotation() {
    let run = |annotations: Value| {
        let metadata = json!({ "name": "web", "annotations": annotations });
        Scenario::<pod_name_label::Guest>::of(json!({ "metadata": metadata })).run()
    };
    run(json!({ "pod-name-label": "who" }))
        .desires::<Pod>("web")
        .with("/metadata/labels/who", "web");
    run(json!({ "other": "who" })).is_not_selected();
}

#[test]
fn indexed_job_runs_each_index_once_even_when_its_pods_are_deleted_later() {
    let template = json!({ "spec": { "containers": [{ "name": "main", "image": "busybox" }] } });
    let spec = json!({ "completions": 3, "parallelism": 2, "template": template });
    let mut cluster = FakeCluster::<indexed_job::Guest>::with(
        json!({ "metadata": { "name": "count" }, "spec": spec }),
    );
    let succeed = |cluster: &mut FakeCluster<_>, name| {
        cluster.change::<Pod>(name, |pod: &mut Value| {
            pod["status"] = json!({ "phase": "Succeeded" });
        });
        cluster.settle();
    };
    cluster.settle();
    let env = &cluster.object::<Pod>("count-1")["spec"]["containers"][0]["env"];
    assert_eq!(env, &json!([{ "name": "JOB_INDEX", "value": "1" }]));
    assert!(!cluster.has::<Pod>("count-2"), "two run at the same time");
    succeed(&mut cluster, "count-1");
    assert!(cluster.has::<Pod>("count-2"));
    succeed(&mut cluster, "count-0");
    succeed(&mut cluster, "count-2");
    cluster.remove::<Pod>("count-1");
    cluster.settle();
    assert!(!cluster.has::<Pod>("count-1"));
}

#[test]
fn global_config_map_desires_copies_none_without_its_source_and_fails_when_it_may_not_read() {
    let spec = json!({ "sourceName": "settings", "sourceNamespace": "global" });
    let given = || {
        let primary = json!({ "metadata": { "name": "settings" }, "spec": spec.clone() });
        let namespace = |name: &str| json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
        Scenario::<global_config_map::Guest>::of(primary)
            .with_object(namespace("global"))
            .with_object(namespace("shop"))
    };
    let source = json!({ "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": "settings", "namespace": "global" }, "data": { "some": "value" } });
    let copies = given().with_object(source).run();
    copies.is_complete().desires_objects(1).status("/copies", 1);
    let copy = copies.desires::<ConfigMap>("settings").with("/data/some", "value");
    copy.with("/metadata/namespace", "shop");
    given().run().is_complete().desires_objects(0);
    given().deny_reads::<read::ConfigMap>().run().failed_because("ReadFailed");
}

#[test]
fn blue_green_changes_over_only_to_pods_that_all_are_available() {
    let object = |image: &str| {
        let labels = json!({ "app": "web" });
        let containers = json!([{ "name": "web", "image": image }]);
        json!({ "metadata": { "name": "web" }, "spec": {
            "replicas": 2,
            "selector": { "matchLabels": labels },
            "template": { "metadata": { "labels": labels }, "spec": { "containers": containers } },
            "service": {
                "metadata": { "name": "site" },
                "spec": { "selector": labels, "ports": [{ "port": 80 }] },
            },
        } })
    };
    let mut cluster = FakeCluster::<blue_green::Guest>::with(object("web:1"));
    let available = |cluster: &mut FakeCluster<_>, name, pods: i32| {
        cluster.change::<ReplicaSet>(name, |set: &mut Value| {
            set["status"] = json!({ "replicas": 2, "availableReplicas": pods });
        });
        cluster.settle();
    };
    let color = |cluster: &FakeCluster<blue_green::Guest>| {
        cluster.object::<Service>("site")["spec"]["selector"]["color"].clone()
    };
    let set_image = |cluster: &mut FakeCluster<_>, image: &str| {
        let spec = object(image)["spec"].clone();
        cluster.edit(|object| object["spec"] = spec);
        cluster.settle();
    };
    cluster.settle();
    available(&mut cluster, "web-blue", 2);
    set_image(&mut cluster, "web:2");
    available(&mut cluster, "web-green", 1);
    assert_eq!(color(&cluster), "blue");
    assert_eq!(cluster.object::<ReplicaSet>("web-blue")["status"]["availableReplicas"], 2);

    // A third template starts from nothing, in addition to the pods that are available.
    set_image(&mut cluster, "web:3");
    let green = cluster.object::<ReplicaSet>("web-green");
    assert_eq!(green["spec"]["template"]["spec"]["containers"][0]["image"], "web:3");
    assert_eq!(green.get("status"), None);
    available(&mut cluster, "web-green", 2);
    assert_eq!(color(&cluster), "green");
    assert!(!cluster.has::<ReplicaSet>("web-blue"));

    // Back to what runs: nothing is started.
    set_image(&mut cluster, "web:3");
    assert!(!cluster.has::<ReplicaSet>("web-blue"));
}

#[test]
fn readme_says_how_many_lines_each_guest_has() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let readme = std::fs::read_to_string(folder.join("README.md")).unwrap();
    let rows: Vec<Vec<&str>> = readme
        .lines()
        .filter(|line| line.starts_with("| [`"))
        .map(|line| line.split('|').map(str::trim).collect())
        .collect();
    assert_eq!(rows.len(), 11);
    for row in rows {
        let name = row[1].split('`').nth(1).unwrap();
        let guest = std::fs::read_to_string(folder.join(name).join("guest.rs")).unwrap();
        let is_code = |line: &&str| !line.trim().is_empty() && !line.trim().starts_with("//");
        let lines = guest.lines().filter(is_code).count();
        assert_eq!(row[5], lines.to_string(), "lines of {name}");
        let with_declarations: usize = row[4].parse().unwrap();
        assert!(lines < with_declarations, "{name} is longer than the original");
    }
}
