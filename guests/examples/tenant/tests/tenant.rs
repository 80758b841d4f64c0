//! What users of a Tenant may rely on, and what guests/README.md shows of its guest.

use expect_test::expect_file;
use innkeeper_sdk::ConditionStatus::{False, True};
use innkeeper_sdk::kinds::{Namespace, RoleBinding};
use innkeeper_sdk::schema;
use innkeeper_sdk::testing::{FakeCluster, Scenario};
use serde_json::{Value, json};
use tenant::{Guest, Tenant};

fn tenant() -> Value {
    json!({"metadata": {"name": "shop"}, "spec": {"group": "shop-team"}})
}

#[test]
fn tenant_becomes_a_namespace_and_a_role_binding_in_it() {
    let run = Scenario::<Guest>::of(tenant()).run();
    run.is_complete().desires_objects(2).status("/namespace", "tenant-shop");
    run.desires::<Namespace>("tenant-shop").with("/metadata/labels/tenant", "shop");
    run.desires::<RoleBinding>("editors")
        .with("/metadata/namespace", "tenant-shop")
        .with("/roleRef/name", "edit")
        .with("/subjects/0/name", "shop-team");
    run.condition("Granted", False, "InProgress").condition("Ready", False, "InProgress");
}

#[test]
fn conditions_become_true_when_the_objects_exist() {
    // Given a Tenant, when its objects are ready, then so is the Tenant.
    let mut cluster = FakeCluster::<Guest>::with(tenant());
    cluster.settle().condition("Granted", False, "InProgress");
    cluster.becomes_ready::<Namespace>("tenant-shop").becomes_ready::<RoleBinding>("editors");
    let run = cluster.settle();
    run.condition("Granted", True, "RoleBound")
        .condition_says("Granted", "group shop-team may edit objects")
        .condition("Ready", True, "AllReady");

    // When the RoleBinding disappears, then it is desired again.
    cluster.remove::<RoleBinding>("editors");
    let (run, _) = cluster.round();
    run.condition("Granted", False, "InProgress").desires::<RoleBinding>("editors");
}

#[test]
fn crd_file_is_what_the_types_generate() {
    expect_file!["../crd.json"].assert_eq(&schema::crd_text::<Tenant>());
}

#[test]
fn readme_of_the_guests_shows_this_guest() {
    let readme = include_str!("../../../README.md");
    let block = format!("```rust\n{}```\n", include_str!("../src/lib.rs"));
    assert!(readme.contains(&block), "copy src/lib.rs into its block of guests/README.md");
}
