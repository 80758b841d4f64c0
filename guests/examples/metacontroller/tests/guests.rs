//! The guests natively: their definitions, and what the scenarios cannot show cheaply.

use std::collections::BTreeSet;
use std::path::Path;

use expect_test::expect_file;
use innkeeper_sdk::kinds::{ConfigMap, PersistentVolumeClaim, Pod, ReplicaSet, Service};
use innkeeper_sdk::read;
use innkeeper_sdk::schema::crd_text;
use innkeeper_sdk::testing::{FakeCluster, Scenario};
use metacontroller_examples::{
    blue_green, cat_set, config_map_list, config_map_propagation, daemon_job, global_config_map,
    indexed_job, namespace_list, pod_name_label, secret_propagation, service_per_pod,
    shared_config_map, update_strategy,
};
use serde_json::{Value, json};

#[test]
fn crd_files_are_what_the_types_generate() {
    expect_file!["../blue-green/crd.json"]
        .assert_eq(&crd_text::<blue_green::BlueGreenDeployment>());
    expect_file!["../cat-set/crd.json"].assert_eq(&crd_text::<cat_set::CatSet>());
    expect_file!["../secret-propagation/crd.json"]
        .assert_eq(&crd_text::<secret_propagation::SecretPropagation>());
    expect_file!["../update-strategy/crd.json"]
        .assert_eq(&crd_text::<update_strategy::UpdateStrategyDemo>());
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
    expect_file!["../shared-config-map/crd.json"]
        .assert_eq(&crd_text::<shared_config_map::SharedConfigMap>());
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
        let namespace = |name: &str, phase: &str| {
            json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name },
                "status": { "phase": phase } })
        };
        Scenario::<global_config_map::Guest>::of(primary)
            .with_object(namespace("global", "Active"))
            .with_object(namespace("shop", "Active"))
            .with_object(namespace("leaving", "Terminating"))
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
fn shared_config_map_copies_from_its_own_namespace_and_is_finalized_without_copies() {
    let given = || {
        let metadata = json!({ "name": "web", "namespace": "shop" });
        let mut scenario = Scenario::<shared_config_map::Guest>::of(
            json!({ "metadata": metadata, "spec": { "sourceName": "settings" } }),
        );
        for name in ["shop", "blog", "innkeeper-system"] {
            scenario = scenario.with_object(json!({ "apiVersion": "v1", "kind": "Namespace",
                "metadata": { "name": name } }));
        }
        for namespace in ["shop", "other"] {
            let metadata = json!({ "name": "settings", "namespace": namespace });
            scenario = scenario.with_object(json!({ "apiVersion": "v1", "kind": "ConfigMap",
                "metadata": metadata, "data": { "some": namespace } }));
        }
        scenario
    };
    let copies = given().run();
    copies.is_complete().desires_objects(1).status("/copies", 1).is_not_finalized();
    let copy = copies.desires::<ConfigMap>("settings").with("/data/some", "shop");
    copy.with("/metadata/namespace", "blog");
    given().deleting().run().is_complete().desires_objects(0).is_finalized();
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

    // A third template starts from nothing, next to the pods that serve.
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
fn cat_set_makes_and_deletes_its_pods_in_order() {
    let metadata = json!({ "name": "www" });
    let claim = json!({ "metadata": metadata, "spec": { "accessModes": ["ReadWriteOnce"] } });
    let containers = json!([{ "name": "web", "image": "web:1" }]);
    let mut cluster = FakeCluster::<cat_set::Guest>::with(json!({
        "metadata": { "name": "web" },
        "spec": {
            "serviceName": "site",
            "replicas": 3,
            "selector": { "matchLabels": { "app": "web" } },
            "template": { "spec": { "containers": containers } },
            "volumeClaimTemplates": [claim],
        },
    }));
    let start = |cluster: &mut FakeCluster<_>, name| {
        cluster.change::<Pod>(name, |pod: &mut Value| {
            let conditions = json!([{ "type": "Ready", "status": "True" }]);
            pod["status"] = json!({ "phase": "Running", "conditions": conditions });
        });
        cluster.settle()
    };
    let pods = |cluster: &FakeCluster<cat_set::Guest>| {
        ["web-0", "web-1", "web-2"].map(|name| cluster.has::<Pod>(name))
    };
    cluster.settle();
    assert_eq!(pods(&cluster), [true, false, false]);
    start(&mut cluster, "web-0");
    assert_eq!(pods(&cluster), [true, true, false]);
    start(&mut cluster, "web-1").status("/replicas", 3).status("/readyReplicas", 2);
    assert_eq!(pods(&cluster), [true, true, true]);
    let pod = cluster.object::<Pod>("web-2");
    assert_eq!(pod["spec"]["subdomain"], "site");
    let volume = json!({ "name": "www", "persistentVolumeClaim": { "claimName": "www-web-2" } });
    assert_eq!(pod["spec"]["volumes"], json!([volume]));

    // The lower pods are ready, so the third one may go although it is not. Its claim stays.
    cluster.edit(|object| object["spec"]["replicas"] = 2.into());
    cluster.settle();
    assert_eq!(pods(&cluster), [true, true, false]);
    assert!(cluster.has::<PersistentVolumeClaim>("www-web-2"));

    // A template whose pods the API server would refuse does not hinder the teardown.
    cluster.edit(|object| object["spec"]["template"]["spec"]["containers"] = json!([]));
    cluster.delete();
    let (run, _) = cluster.round();
    run.desires_objects(0).keeps::<Pod>("web-0").does_not_keep::<Pod>("web-1");
    run.keeps::<PersistentVolumeClaim>("www-web-0").is_not_finalized();
    assert_eq!(pods(&cluster), [true, false, false]);
    cluster.round().0.is_not_finalized();
    assert_eq!(pods(&cluster), [false, false, false]);
    cluster.round().0.is_finalized();
    assert!(!cluster.has_primary());
}

/// The folder of the examples.
fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The cells of the rows about guests, in the README's table with this many columns.
fn rows(columns: usize) -> Vec<Vec<String>> {
    let readme = include_str!("../README.md");
    let cells = |row: &str| row.trim_matches('|').split('|').map(|one| one.trim().into()).collect();
    let rows = readme.lines().filter(|line| line.starts_with("| ")).map(cells);
    rows.filter(|row: &Vec<String>| row.len() == columns && row[0].contains('`')).collect()
}

/// The names between the grave accents of a cell.
fn names(cell: &str) -> impl Iterator<Item = String> {
    cell.split('`').skip(1).step_by(2).map(str::to_owned)
}

/// Columns of the table of sizes.
const SIZES: usize = 7;
/// Columns of the table of requests.
const REQUESTS: usize = 3;

#[test]
fn readme_has_one_row_for_each_example_in_the_tables_of_sizes_and_requests() {
    let mut examples = Vec::new();
    for entry in folder().read_dir().unwrap().map(Result::unwrap) {
        let name = entry.file_name().into_string().unwrap();
        if entry.path().is_dir() && !["src", "tests"].contains(&name.as_str()) {
            examples.push(name);
        }
    }
    examples.sort();
    assert!(examples.contains(&"global-config-map".to_owned()), "{examples:?}");
    let manifest = std::fs::read_to_string(folder().join("Cargo.toml")).unwrap();
    let paths = manifest.lines().filter_map(|line| line.strip_prefix("path = \""));
    let built: BTreeSet<&str> = paths.filter_map(|path| path.split('/').next()).collect();
    assert_eq!(built, examples.iter().map(String::as_str).collect(), "the manifest's examples");
    for columns in [SIZES, REQUESTS] {
        let mut named: Vec<String> = rows(columns).iter().flat_map(|row| names(&row[0])).collect();
        named.sort();
        assert_eq!(named, examples, "the table with {columns} columns");
    }
}

#[test]
fn readme_says_how_many_lines_each_guest_has() {
    for row in rows(SIZES) {
        let name = names(&row[0]).next().unwrap();
        let is_code = |line: &&str| !line.trim().is_empty() && !line.trim().starts_with("//");
        let (mut paths, mut lines) = (vec![folder().join(&name)], 0);
        while let Some(path) = paths.pop() {
            if path.is_dir() {
                paths.extend(path.read_dir().unwrap().map(|entry| entry.unwrap().path()));
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                lines += std::fs::read_to_string(path).unwrap().lines().filter(is_code).count();
            }
        }
        assert_eq!(row[4], lines.to_string(), "lines of {name}");
        let with_declarations: usize = row[3].parse().unwrap();
        assert!(lines < with_declarations, "{name} is longer than the original");
    }
}
