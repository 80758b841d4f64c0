//! The guests of Vitess natively: their definitions, names, and what they pass down.

use expect_test::expect_file;
use innkeeper_sdk::kinds::{Deployment, Job, PersistentVolumeClaim, Pod, Service};
use innkeeper_sdk::schema::crd_text;
use innkeeper_sdk::testing::{FakeCluster, FakeReader, Scenario};
use innkeeper_sdk::{ConditionStatus, RawOutcome, Reconciler, reconcile_text};
use metacontroller_examples::vitess::cell::VitessCell;
use metacontroller_examples::vitess::cell_guest::EtcdCluster;
use metacontroller_examples::vitess::keyspace::VitessKeyspace;
use metacontroller_examples::vitess::shard::VitessShard;
use metacontroller_examples::vitess::{
    cell_guest, cluster_guest, flags, keyspace_guest, shard_guest, tablet,
};
use serde_json::{Value, json};

#[test]
fn crd_files_are_what_the_types_generate() {
    expect_file!["../vitess/cluster/crd.json"]
        .assert_eq(&crd_text::<cluster_guest::VitessCluster>());
    expect_file!["../vitess/cell/crd.json"].assert_eq(&crd_text::<VitessCell>());
    expect_file!["../vitess/keyspace/crd.json"].assert_eq(&crd_text::<VitessKeyspace>());
    expect_file!["../vitess/shard/crd.json"].assert_eq(&crd_text::<VitessShard>());
}

#[test]
fn numbers_and_flags_are_those_of_the_original() {
    let place = ["zone1", "main", "-80", "replica"];
    assert_eq!(tablet::uid(&place, 0), 214_747_900);
    assert_eq!(tablet::uid(&place, 15), 214_747_915);
    assert_eq!(flags::format(&flags::flags([])), "");
    let some = flags::flags([
        ("port", "15000"),
        ("mysqlctl_socket", "$VTDATAROOT/mysqlctl.sock"),
        ("enable_semi_sync", "true"),
        ("db-config-app-uname", "vt_app"),
    ]);
    assert_eq!(
        flags::format(&some),
        r#"-db-config-app-uname="vt_app" -enable_semi_sync="true" -mysqlctl_socket="$VTDATAROOT/mysqlctl.sock" -port="15000""#
    );
}

/// A cluster with two cells and two keyspaces, of which one is in both cells.
fn cluster() -> Value {
    let tablets = json!({
        "defaults": { "image": "vitess:1", "volumeClaim": { "accessModes": ["ReadWriteOnce"] } },
        "masterEligible": { "replicas": 2, "vttablet": { "flags": { "port": "1" } } },
        "batch": { "image": "vitess:2" },
    });
    json!({ "metadata": { "name": "vt" }, "spec": {
        "selector": { "matchLabels": { "app": "vitess" } },
        "template": { "metadata": { "labels": { "app": "vitess", "team": "db" } } },
        "backupFlags": { "backup_storage_implementation": "gcs" },
        "cells": [
            { "name": "global", "etcd": { "version": "3.2.11", "size": 3 },
                "vtctld": { "image": "vitess:1" } },
            { "name": "zone1", "vtgate": { "image": "vitess:1", "replicas": 3 } },
        ],
        "keyspaces": [
            { "name": "main", "cells": ["zone1"], "tablets": tablets,
                "shards": [{ "keyRange": { "end": "80" } }, { "keyRange": { "start": "80" } }] },
            { "name": "all", "cells": ["zone1", "global"], "tablets": tablets },
        ],
    } })
}

/// The desired object of a kind as the primary of the next guest.
fn child<K: innkeeper_sdk::Resource, G: Reconciler>(primary: &Value, name: &str) -> Value {
    Scenario::<G>::of(primary.clone()).run().desires::<K>(name).object().clone()
}

fn cell(name: &str) -> Value {
    child::<VitessCell, cluster_guest::Guest>(&cluster(), name)
}

fn shard(name: &str) -> Value {
    let keyspace = child::<VitessKeyspace, cell_guest::Guest>(&cell("vt-zone1"), "vt-zone1-main");
    child::<VitessShard, keyspace_guest::Guest>(&keyspace, name)
}

#[test]
fn each_level_passes_down_its_part_and_adds_a_label() {
    let global = cell("vt-global");
    assert_eq!(global["spec"]["keyspaces"].as_array().map(Vec::len), Some(1));
    assert_eq!(global["metadata"]["labels"], json!({ "app": "vitess", "team": "db" }));
    let shard = shard("vt-zone1-main-x-80");
    let spec = &shard["spec"];
    let labels = json!({ "app": "vitess", "vitess.io/cell": "zone1", "vitess.io/keyspace": "main",
        "vitess.io/shard": "x-80" });
    assert_eq!(spec["selector"]["matchLabels"], labels);
    assert_eq!(spec["template"]["metadata"]["labels"]["team"], "db");
    assert_eq!(
        (&spec["name"], &spec["cell"], &spec["keyspace"], &spec["cluster"]),
        (&json!("-80"), &json!("zone1"), &json!("main"), &json!("vt"))
    );
    let whole = child::<VitessKeyspace, cell_guest::Guest>(&global, "vt-global-all");
    Scenario::<keyspace_guest::Guest>::of(whole)
        .run()
        .desires_objects(1)
        .desires::<VitessShard>("vt-global-all-0");
    let mut unnamed = child::<VitessKeyspace, cell_guest::Guest>(&global, "vt-global-all");
    unnamed["spec"]["shards"] = json!([{}]);
    Scenario::<keyspace_guest::Guest>::of(unnamed).run().failed_because("InvalidShard");
}

#[test]
fn cell_global_has_no_tablets_and_tells_when_nobody_runs_its_etcd() {
    let scenario = || Scenario::<cell_guest::Guest>::of(cell("vt-global"));
    let run = scenario().run();
    run.desires::<EtcdCluster>("vt-global-etcd").with("/spec/size", 3);
    run.does_not_desire::<Service>("vt-vttablet-global")
        .does_not_desire::<Job>("vt-global-cell-info");
    run.status("/cellInfoRegistered", true);
    let run = scenario().without::<EtcdCluster>().run();
    run.condition("Ready", ConditionStatus::False, "InProgress")
        .condition_says("Ready", "EtcdCluster vt-global-etcd (install the etcd operator)");
}

/// Whether a cell pauses the group of its keyspaces.
fn pauses_keyspaces(scenario: &Scenario<cell_guest::Guest>) -> Option<bool> {
    let reader = FakeReader::of(&cell_guest::Guest::describe());
    let outcome = reconcile_text::<cell_guest::Guest>(&reader, &scenario.document());
    let RawOutcome::Complete(text) = outcome else { return None };
    let desired: Value = serde_json::from_str(&text).ok()?;
    let group = desired["updateGroups"].as_array()?.iter().find(|one| one["name"] == "keyspaces");
    Some(group?["paused"] == true)
}

#[test]
fn cell_updates_its_keyspaces_when_all_servers_are_updated() {
    let scenario = |primary: &Value| Scenario::<cell_guest::Guest>::of(primary.clone());
    let old = cell("vt-zone1");
    let settled = scenario(&old).run();
    assert_eq!(pauses_keyspaces(&scenario(&old).after(&settled)), Some(false));

    let mut new = old.clone();
    new["spec"]["vtgate"]["image"] = "vitess:2".into();
    assert_eq!(pauses_keyspaces(&scenario(&new).after(&settled)), Some(true));
    let deployment = scenario(&new).run().desires::<Deployment>("vt-zone1-vtgate").object().clone();
    let rolls_out = scenario(&new).owns_unready(deployment.clone(), "1 of 3 pods are updated");
    assert_eq!(pauses_keyspaces(&rolls_out), Some(true));
    assert_eq!(pauses_keyspaces(&scenario(&new).owns_ready(deployment)), Some(false));
}

#[test]
fn cell_is_ready_when_its_servers_and_keyspaces_are_and_the_cluster_knows_it() {
    let mut cluster = FakeCluster::<cell_guest::Guest>::with(cell("vt-zone1"));
    let is_true = |type_: &str| {
        let condition = json!({ "type": type_, "status": "True", "observedGeneration": 0 });
        move |object: &mut Value| object["status"] = json!({ "conditions": [condition] })
    };
    cluster
        .settle()
        .condition_says(
            "Ready",
            "not ready: keyspace main, keyspace all, Deployment vt-zone1-vtgate",
        )
        .condition_says("Ready", "Job vt-zone1-cell-info")
        .status("/cellInfoRegistered", false);
    cluster.change::<Job>("vt-zone1-cell-info", |job| {
        let failed = json!({ "type": "Failed", "status": "True", "message": "too slow" });
        job["status"] = json!({ "conditions": [failed] });
    });
    cluster.settle().condition_says("Ready", "(too slow; delete it to try again)");
    cluster
        .change::<Job>("vt-zone1-cell-info", is_true("Complete"))
        .change::<Deployment>("vt-zone1-vtgate", is_true("Available"))
        .change::<VitessKeyspace>("vt-zone1-main", is_true("Ready"))
        .change::<VitessKeyspace>("vt-zone1-all", is_true("Ready"));
    cluster
        .settle()
        .condition("Ready", ConditionStatus::True, "AllReady")
        .status("/readyKeyspaces", json!(["all", "main"]))
        .status("/vtgate/availableDeployments", 1)
        .status("/vttablet/services", 1);
}

#[test]
fn shard_has_its_tablets_in_the_order_of_updates_and_keeps_claims_of_earlier_ones() {
    let mut cluster = FakeCluster::<shard_guest::Guest>::with(shard("vt-zone1-main-x-80"));
    let run = cluster.settle();
    let pods = run.objects().iter().filter(|object| object["kind"] == "Pod");
    let of = |pod: &Value| {
        let text = |pointer| pod.pointer(pointer).and_then(Value::as_str).unwrap().to_owned();
        (text("/metadata/name"), text("/spec/containers/0/image"))
    };
    let pods: Vec<_> = pods.map(of).collect();
    let expected = [
        ("vt-vttablet-zone1-1327744200", "vitess:2"),
        ("vt-vttablet-zone1-0214747900", "vitess:1"),
        ("vt-vttablet-zone1-0214747901", "vitess:1"),
    ];
    assert_eq!(pods, expected.map(|(name, image)| (name.to_owned(), image.to_owned())));
    let pod = run.desires::<Pod>("vt-vttablet-zone1-0214747901");
    pod.with("/spec/hostname", "zone1-0214747901").with("/spec/subdomain", "vt-vttablet-zone1");
    let command = &pod.object()["spec"]["containers"][0]["command"][2];
    let expected = r#"-port="1" "#;
    assert!(command.as_str().unwrap().contains(expected), "the user's flag counts: {command}");

    cluster.edit(|shard| shard["spec"]["tablets"]["masterEligible"]["replicas"] = 1.into());
    cluster.settle().keeps::<PersistentVolumeClaim>("vt-vttablet-zone1-0214747901");
    assert!(!cluster.has::<Pod>("vt-vttablet-zone1-0214747901"));
    cluster.edit(|shard| shard["spec"]["tablets"]["defaults"] = json!({}));
    cluster.settle().failed_because("InvalidTablets");
}
