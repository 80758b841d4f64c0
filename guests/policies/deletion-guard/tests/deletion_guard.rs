//! What the policy lets be deleted.

#![allow(clippy::needless_pass_by_value, reason = "literals of tests")]

use deletion_guard::Policy;
use innkeeper_sdk::kinds::{ConfigMap, Deployment, Namespace, PersistentVolumeClaim};
use innkeeper_sdk::testing::{ReviewRun, ReviewScenario};
use innkeeper_sdk::{Resource, kind};
use serde_json::{Value, json};

kind!(PostgreSQL, "exp.wheel.jp/v1", "postgresqls");
kind!(CustomResourceDefinition, "apiextensions.k8s.io/v1", "customresourcedefinitions", Cluster);

/// The label of claims that outlive the `PostgreSQL` `shop/db`: the host's digest of it.
const RETAINED_FOR_DB: &str = "1821eecf601b5e327c6af411299a656d";

fn parameters() -> Value {
    json!({
        "label": "example.com/protected",
        "releaseAnnotation": "example.com/release",
        "kinds": [{"apiVersion": "apps/v1", "kind": "Deployment"}],
    })
}

fn delete<K: Resource>(object: Value) -> ReviewScenario<Policy> {
    ReviewScenario::delete::<K>(object).parameters(parameters())
}

fn protected(name: &str) -> Value {
    json!({"metadata": {
        "name": name, "namespace": "shop", "labels": {"example.com/protected": ""}}})
}

fn release(mut object: Value, value: &str) -> Value {
    object["metadata"]["annotations"] = json!({"example.com/release": value});
    object
}

fn terminating(mut object: Value) -> Value {
    object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    object
}

fn namespace() -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})
}

fn database(spec: Value) -> Value {
    json!({
        "apiVersion": "exp.wheel.jp/v1",
        "kind": "PostgreSQL",
        "metadata": {"name": "db", "namespace": "shop", "uid": "uid-of-db"},
        "spec": spec,
    })
}

/// A claim of a namespace `shop`, with a volume.
fn claim(name: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "shop"},
        "status": {"phase": "Bound", "capacity": {"storage": "1Gi"}},
    })
}

fn owned_claim() -> Value {
    let mut claim = claim("db-data");
    claim["metadata"]["ownerReferences"] = json!([{"apiVersion": "exp.wheel.jp/v1",
        "kind": "PostgreSQL", "name": "db", "uid": "uid-of-db", "controller": true}]);
    claim
}

fn retained_claim() -> Value {
    let mut claim = claim("db-data");
    claim["metadata"]["labels"] = json!({"innkeeper.dev/retained-for": RETAINED_FOR_DB});
    claim
}

fn pending(mut claim: Value) -> Value {
    claim["status"] = json!({"phase": "Pending"});
    claim
}

#[test]
fn object_without_the_label_is_deleted() {
    let run = delete::<ConfigMap>(json!({"metadata": {"labels": {"a": "b"}}})).run();
    run.is_allowed();
    delete::<PersistentVolumeClaim>(claim("files")).run().is_allowed();
    delete::<Namespace>(namespace()).run().is_allowed();
}

#[test]
fn object_with_the_label_is_not_deleted_until_an_annotation_names_it() {
    delete::<ConfigMap>(protected("one")).run().is_denied(
        "the ConfigMap one is protected by its label example.com/protected; to delete it anyway, set its annotation example.com/release to \"one\"",
    );
    let run = delete::<ConfigMap>(release(protected("one"), "one")).run();
    run.is_allowed().audits("released", "by the annotation example.com/release");
    for other in ["two", "", "shop/one"] {
        delete::<ConfigMap>(release(protected("one"), other)).run().is_denied("is protected");
    }
    delete::<Namespace>(protected("shop")).run().is_denied("the Namespace shop is protected");
}

#[test]
fn object_that_is_being_deleted_already_is_deleted() {
    delete::<ConfigMap>(terminating(protected("one"))).run().is_allowed();
}

#[test]
fn creations_and_updates_are_not_reviewed() {
    let run = ReviewScenario::<Policy>::create::<ConfigMap>(protected("one")).run();
    run.is_not_reviewed();
    let update = ReviewScenario::<Policy>::update::<ConfigMap>(protected("one"), json!({}));
    update.run().is_not_reviewed();
}

#[test]
fn database_is_not_deleted_while_a_claim_of_it_has_a_volume() {
    let denied = |spec: Value, claim: Value| -> ReviewRun {
        delete::<PostgreSQL>(database(spec)).with_object(claim).run()
    };
    denied(json!({"deletionPolicy": "Delete"}), owned_claim()).is_denied(
        "the PostgreSQL db has data in PersistentVolumeClaim db-data (1Gi), and its own claims would be deleted with it (spec.deletionPolicy Delete); to delete it anyway, set its annotation example.com/release to \"db\"",
    );
    denied(json!({}), retained_claim()).is_denied("and nobody would serve them");
    let mounted = json!({"storage": {"claimName": "files"}, "backup": {"claimName": "dumps"}});
    denied(mounted.clone(), claim("files")).is_denied("PersistentVolumeClaim files (1Gi)");
    denied(mounted, claim("dumps")).is_denied("PersistentVolumeClaim dumps (1Gi)");
    denied(json!({}), claim("other")).is_allowed();
    denied(json!({}), pending(owned_claim())).is_allowed();
    let released = release(database(json!({})), "db");
    delete::<PostgreSQL>(released).with_object(owned_claim()).run().is_allowed();
}

#[test]
fn claim_of_another_database_of_the_same_name_does_not_count() {
    let mut elsewhere = database(json!({}));
    elsewhere["metadata"]["namespace"] = json!("test");
    elsewhere["metadata"]["uid"] = json!("another");
    for mut claim in [retained_claim(), owned_claim()] {
        claim["metadata"]["namespace"] = json!("test");
        delete::<PostgreSQL>(elsewhere.clone()).with_object(claim).run().is_allowed();
    }
}

#[test]
fn claim_is_not_deleted_while_its_database_is_there() {
    let request = || delete::<PersistentVolumeClaim>(owned_claim());
    let run = request().with_object(database(json!({}))).run();
    run.is_denied("the PersistentVolumeClaim db-data (1Gi) holds data of the PostgreSQL db");
    // The deletion of the database was allowed: its claims follow.
    request().run().is_allowed();
    request().with_object(terminating(database(json!({})))).run().is_allowed();
    let mut created_again = database(json!({}));
    created_again["metadata"]["uid"] = json!("another");
    request().with_object(created_again).run().is_allowed();
    // Nobody knows.
    request().without::<PostgreSQL>().run().is_denied("holds data of the PostgreSQL db");
    let empty = delete::<PersistentVolumeClaim>(pending(owned_claim()));
    empty.with_object(database(json!({}))).run().is_allowed();
}

#[test]
fn claim_that_outlives_its_database_is_not_deleted_until_it_is_released() {
    let request = delete::<PersistentVolumeClaim>(retained_claim());
    request.run().is_denied("(1Gi) holds data that was retained for its database");
    let released = release(retained_claim(), "db-data");
    delete::<PersistentVolumeClaim>(released).run().is_allowed();
    let mounted = database(json!({"storage": {"claimName": "files"}}));
    let request = delete::<PersistentVolumeClaim>(claim("files")).with_object(mounted);
    request.run().is_denied("(1Gi) holds data of the PostgreSQL db");
}

#[test]
fn namespace_is_not_deleted_while_it_has_protected_objects_or_data() {
    let deployment = |name: &str| {
        let mut object = protected(name);
        object["apiVersion"] = json!("apps/v1");
        object["kind"] = json!("Deployment");
        object
    };
    let mut all = delete::<Namespace>(namespace())
        .with_object(owned_claim())
        .with_object(claim("files"))
        .with_object(database(json!({})));
    for name in ["a", "b", "c", "d", "e", "f"] {
        all = all.with_object(deployment(name));
    }
    all.run().is_denied(
        "the Namespace shop has PersistentVolumeClaim db-data (1Gi), Deployment a, Deployment b, Deployment c, Deployment d and 2 more; to delete it anyway, set its annotation example.com/release to \"shop\"",
    );
    let run = |object: Value| delete::<Namespace>(namespace()).with_object(object).run();
    run(retained_claim()).is_denied("has PersistentVolumeClaim db-data (1Gi);");
    run(release(deployment("a"), "a")).is_allowed();
    run(terminating(deployment("a"))).is_allowed();
    let mut elsewhere = deployment("a");
    elsewhere["metadata"]["namespace"] = json!("test");
    run(elsewhere).is_allowed();
    let mut labelled = database(json!({}));
    labelled["metadata"]["labels"] = json!({"example.com/protected": "yes"});
    run(labelled).is_denied("the Namespace shop has PostgreSQL db;");
    delete::<Namespace>(release(namespace(), "shop")).with_object(owned_claim()).run().is_allowed();
}

#[test]
fn contents_of_a_released_namespace_are_deleted_with_it() {
    let request = || delete::<PersistentVolumeClaim>(retained_claim());
    let released = || release(namespace(), "shop");
    let run = request().with_object(terminating(released())).run();
    run.is_allowed().audits("released", "by the annotation of the Namespace");
    request().with_object(released()).run().is_denied("was retained");
    request().with_object(terminating(namespace())).run().is_denied("was retained");
}

#[test]
fn definition_of_databases_is_not_deleted_while_one_has_data() {
    let definition = || json!({"metadata": {"name": "postgresqls.exp.wheel.jp"}});
    let request = || delete::<CustomResourceDefinition>(definition());
    let with_data = request().with_object(database(json!({}))).with_object(owned_claim());
    with_data.run().is_denied("has the PostgreSQL shop/db with data");
    request().with_object(database(json!({}))).run().is_allowed();
    request().without::<PostgreSQL>().run().is_allowed();
    let released = release(database(json!({})), "db");
    request().with_object(released).with_object(owned_claim()).run().is_allowed();
    delete::<CustomResourceDefinition>(json!({"metadata": {"name": "sites.example.com"}}))
        .with_object(database(json!({})))
        .with_object(owned_claim())
        .run()
        .is_allowed();
}

#[test]
fn review_fails_when_the_account_may_not_read() {
    let run = delete::<Namespace>(namespace()).deny_reads::<PersistentVolumeClaim>().run();
    run.is_failed("a read failed: the module's ServiceAccount may not read this");
    let run = delete::<Namespace>(namespace()).deny_reads::<Deployment>().run();
    run.is_failed("a read failed");
    // Nothing is read about an object that no rule guards.
    delete::<ConfigMap>(json!({})).deny_reads::<Namespace>().run().is_allowed();
}

#[test]
fn cluster_without_databases_is_guarded_too() {
    let request =
        || delete::<Namespace>(namespace()).without::<PostgreSQL>().without::<Deployment>();
    request().run().is_allowed();
    request().with_object(retained_claim()).run().is_denied("has PersistentVolumeClaim db-data");
}
