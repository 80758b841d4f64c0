//! Objects, labels and finalizers of others.

use innkeeper_hostile_tests::{Arena, Attack, GROUP, RBAC, block_on, guest, manifest};
use serde_json::{Value, json};

use crate::objects::{SOON, apply_as, attack, claims, config_map, desires, replace, semver};

/// The annotation on a primary that lets it adopt.
const ADOPT_ANNOTATION: &str = "innkeeper.dev/adopt";

/// The annotation on an object whose kind holds data and that may be deleted all the same.
const ALLOW_DELETION_ANNOTATION: &str = "innkeeper.dev/allow-deletion";

/// The label on an object that outlives its primary.
const RETAINED_FOR_LABEL: &str = "innkeeper.dev/retained-for";

/// An object that outlives its primary.
fn kept() -> Value {
    json!({"object": config_map("kept"), "policy": ["orphan"]})
}

/// The value of the label on what outlives the primary of an attack, which has made [`kept`].
async fn identity(arena: &Arena, name: &str) -> String {
    arena.primary_says(name, "Synced", "True", "Applied").await;
    let path = format!("/api/v1/namespaces/attack-{name}/configmaps/kept");
    let labels = arena.get(&path).await.unwrap()["metadata"]["labels"].clone();
    labels[RETAINED_FOR_LABEL].as_str().unwrap().to_owned()
}

fn claim(home: &str, labels: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": home, "labels": labels},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}})
}

/// What a guest merges into an object of somebody else.
fn merged(kind: &str, name: &str, metadata: &Value) -> Value {
    let mut object = json!({"apiVersion": "v1", "kind": kind, "metadata": metadata});
    if kind == "Hostile" {
        object["apiVersion"] = format!("{GROUP}/v1").into();
    }
    object["metadata"]["name"] = name.into();
    json!({"object": object, "policy": ["merge"]})
}

/// The object at a path is there, is not being deleted and is still nobody's.
async fn is_untouched(arena: &Arena, path: &str, uid: &Value) {
    let object = arena.get(path).await;
    assert!(object.is_some(), "{path} is deleted");
    let metadata = &object.unwrap()["metadata"];
    assert_eq!(metadata["uid"], *uid, "{path} was created again");
    assert_eq!(metadata["deletionTimestamp"], Value::Null, "{path} is being deleted");
    assert_eq!(metadata["ownerReferences"], Value::Null, "{path} is owned: {metadata}");
}

#[test]
fn claim_of_a_tenant_survives_a_guest_that_labels_wants_and_drops_it() {
    block_on(async {
        let arena = Arena::start(&[]).await;
        let home = "attack-retain";
        let path = format!("/api/v1/namespaces/{home}/persistentvolumeclaims/data");
        arena.install(&attack("retain", &desires("1", &json!([kept()])))).await;
        let label = json!({RETAINED_FOR_LABEL: identity(&arena, "retain").await});
        arena.apply(&claim(home, &json!({"team": "a"}))).await;
        let uid = arena.get(&path).await.unwrap()["metadata"]["uid"].clone();
        let merges = merged("PersistentVolumeClaim", "data", &json!({ "labels": label }));
        replace(&arena, "retain", "2", &desires("2", &json!([merges]))).await;
        let message = arena.primary_says("retain", "Synced", "False", "MalformedObject").await;
        assert!(message.contains("innkeeper.dev/retained-for"), "{message}");
        is_untouched(&arena, &path, &uid).await;

        // An earlier version of the host has let the guest do it.
        let primary = arena.primary("retain").await["metadata"]["uid"].clone();
        let manager = format!("innkeeper/retain/{}/merge", primary.as_str().unwrap());
        let labelled = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": {"name": "data", "labels": label}});
        apply_as(&arena, &manager, &path, &labelled).await;

        let mut wants = claim("", &json!({}));
        wants["metadata"] = json!({"name": "data"});
        let wants = json!([{"object": wants, "policy": ["deletable"]}]);
        replace(&arena, "retain", "3", &desires("3", &wants)).await;
        arena.primary_says("retain", "Synced", "False", "Conflict").await;
        is_untouched(&arena, &path, &uid).await;

        replace(&arena, "retain", "4", &desires("4", &json!([]))).await;
        arena.primary_says("retain", "Synced", "True", "Applied").await;
        is_untouched(&arena, &path, &uid).await;
        let labels = &arena.get(&path).await.unwrap()["metadata"]["labels"];
        assert_eq!(*labels, json!({"team": "a"}), "what was merged is taken back");
    });
}

#[test]
fn guest_that_annotates_its_primary_adopts_nothing() {
    block_on(async {
        let arena = Arena::start(&[]).await;
        let path = "/api/v1/namespaces/attack-adopt/configmaps/theirs";
        let annotation = json!({"annotations": {ADOPT_ANNOTATION: "true"}});
        let wants = json!({"object": config_map("theirs")});
        let first = json!([merged("Hostile", "adopt", &annotation), wants]);
        arena.install(&attack("adopt", &desires("1", &first))).await;
        let mut theirs = config_map("theirs");
        theirs["metadata"]["namespace"] = "attack-adopt".into();
        theirs["data"] = json!({"whose": "theirs"});
        arena.apply(&theirs).await;
        let uid = arena.get(path).await.unwrap()["metadata"]["uid"].clone();
        let message = arena.primary_says("adopt", "Synced", "False", "MalformedObject").await;
        assert!(message.contains(ADOPT_ANNOTATION), "{message}");

        // An earlier version of the host has let it do so, or another module's guest has done it.
        let primary = arena.primary("adopt").await;
        let manager =
            format!("innkeeper/adopt/{}/merge", primary["metadata"]["uid"].as_str().unwrap());
        let at = format!("/apis/{GROUP}/v1/namespaces/attack-adopt/hostiles/adopt");
        let annotated = json!({"apiVersion": format!("{GROUP}/v1"), "kind": "Hostile",
            "metadata": {"name": "adopt", "annotations": {ADOPT_ANNOTATION: "true"}}});
        apply_as(&arena, &manager, &at, &annotated).await;
        replace(&arena, "adopt", "2", &desires("2", &json!([wants]))).await;
        arena.primary_says("adopt", "Synced", "False", "Conflict").await;
        is_untouched(&arena, path, &uid).await;
        assert_eq!(arena.get(path).await.unwrap()["data"], json!({"whose": "theirs"}));

        // The same annotation of a user does adopt: the guest's is taken off first.
        apply_as(
            &arena,
            &manager,
            &at,
            &json!({"apiVersion": format!("{GROUP}/v1"),
            "kind": "Hostile", "metadata": {"name": "adopt"}}),
        )
        .await;
        apply_as(&arena, "kubectl", &at, &annotated).await;
        arena.primary_says("adopt", "Synced", "True", "Applied").await;
        assert_eq!(arena.get(path).await.unwrap()["data"]["a"], "b");
    });
}

#[test]
fn tenant_who_writes_under_the_name_of_a_manager_by_an_update_gives_the_module_nothing() {
    block_on(async {
        let arena = Arena::start(&[]).await;
        let path = "/api/v1/namespaces/attack-update/configmaps/theirs";
        arena.install(&attack("update", &desires("1", &json!([kept()])))).await;
        let label = json!({RETAINED_FOR_LABEL: identity(&arena, "update").await});
        let uid = arena.primary("update").await["metadata"]["uid"].clone();
        let uid = uid.as_str().unwrap();
        let mut theirs = config_map("theirs");
        theirs["metadata"]["namespace"] = "attack-update".into();
        arena.apply(&theirs).await;
        let object = arena.get(path).await.unwrap()["metadata"]["uid"].clone();
        let labelled = json!({"metadata": {"labels": label}});
        arena.merge(&format!("{path}?fieldManager=innkeeper%2Fupdate%2F{uid}"), &labelled).await;
        arena.pass(30).await;
        is_untouched(&arena, path, &object).await;

        let wants = json!([{"object": config_map("theirs")}]);
        replace(&arena, "update", "2", &desires("2", &wants)).await;
        arena.primary_says("update", "Synced", "False", "Conflict").await;
        is_untouched(&arena, path, &object).await;
    });
}

#[test]
fn claim_that_a_stateful_set_made_from_a_labelled_template_is_not_retained() {
    block_on(async {
        let arena = Arena::start(&[]).await;
        let stateful_sets = json!({"apiVersion": "apps/v1", "kind": "StatefulSet",
            "plural": "statefulsets", "scope": "Namespaced"});
        let mut manifest = manifest(&[claims(), stateful_sets]);
        manifest["version"] = semver("1").into();
        let first = guest(&manifest, &json!({"objects": [kept()]}));
        arena.install(&attack("template", &first)).await;
        let identity = identity(&arena, "template").await;
        let metadata = json!({"name": "data", "labels": {RETAINED_FOR_LABEL: identity},
            "annotations": {ALLOW_DELETION_ANNOTATION: "true"}});
        let set = json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "web"},
            "spec": {"replicas": 1, "serviceName": "web", "selector": {"matchLabels": {"app": "web"}},
                "template": {"metadata": {"labels": {"app": "web"}},
                    "spec": {"containers": [{"name": "web", "image": "web:1"}]}},
                "volumeClaimTemplates": [{"metadata": metadata, "spec": claim("", &json!({}))["spec"]}]}});
        manifest["version"] = semver("2").into();
        let second = guest(&manifest, &json!({"objects": [{"object": set}]}));
        replace(&arena, "template", "2", &second).await;
        let path = "/api/v1/namespaces/attack-template/persistentvolumeclaims/data-web-0";
        let there = arena.lab().until("the StatefulSet has its claim", SOON, async |api| {
            Ok(api.get(path).await?.is_some())
        });
        there.await.unwrap();
        let made = arena.get(path).await.unwrap();
        assert_eq!(made["metadata"]["labels"][RETAINED_FOR_LABEL], identity);

        let mut wants = claim("", &json!({}));
        wants["metadata"] = json!({"name": "data-web-0"});
        manifest["version"] = semver("3").into();
        let objects = json!({"objects": [{"object": set}, {"object": wants}]});
        replace(&arena, "template", "3", &guest(&manifest, &objects)).await;
        arena.primary_says("template", "Synced", "False", "Conflict").await;
        is_untouched(&arena, path, &made["metadata"]["uid"]).await;
    });
}

/// Objects with metadata that is not the guest's to give, by name, and a part of the refusal.
fn foreign_metadata() -> Vec<(&'static str, Value, &'static str)> {
    let own = |metadata: Value| {
        let mut object = config_map("made");
        object["metadata"] = metadata;
        object["metadata"]["name"] = "made".into();
        json!({ "object": object })
    };
    let into = |metadata: Value| merged("ConfigMap", "theirs", &metadata);
    let owner = json!([{"apiVersion": format!("{GROUP}/v1"), "kind": "Hostile", "name": "x",
        "uid": "x", "controller": true, "blockOwnerDeletion": true}]);
    vec![
        ("retained", into(json!({"labels": {RETAINED_FOR_LABEL: "x"}})), "belongs to the host"),
        (
            "deletable",
            own(json!({"annotations": {ALLOW_DELETION_ANNOTATION: "true"}})),
            "belongs to the host",
        ),
        (
            "applied",
            into(json!({"annotations": {"innkeeper.dev/applied": "x"}})),
            "belongs to the host",
        ),
        ("subdomain", own(json!({"labels": {"x.innkeeper.dev/a": "b"}})), "belongs to the host"),
        (
            "case",
            own(json!({"annotations": {"Innkeeper.Dev/adopt": "true"}})),
            "belongs to the host",
        ),
        (
            "lookalike",
            own(json!({"labels": {"innkeep\u{435}r.dev/adopt": "true"}})),
            "metadata.labels",
        ),
        ("merged-finalizer", into(json!({"finalizers": ["a.example/b"]})), "somebody else"),
        ("made-finalizer", own(json!({"finalizers": ["a.example/b"]})), "spec.allowFinalizers"),
        ("owner", into(json!({"ownerReferences": owner})), "ownerReferences"),
        ("own-owner", own(json!({"ownerReferences": owner})), "ownerReferences"),
        ("generated", own(json!({"generateName": "made-"})), "generateName"),
        ("managers", into(json!({"managedFields": []})), "managedFields"),
        (
            "itself",
            json!({"object": {"apiVersion": format!("{GROUP}/v1"), "kind": "Hostile",
            "metadata": {"name": "itself"}}}),
            "it is the primary itself",
        ),
        (
            "list-of-metadata",
            json!({"object": {"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": [{"name": "made"}]}}),
            "metadata.name is missing",
        ),
        (
            "status-text",
            json!({"object": {"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "made"}, "status": "x"}}),
            "status belongs",
        ),
    ]
}

#[test]
fn metadata_that_is_not_the_guests_is_refused_and_nothing_is_written() {
    let cases = foreign_metadata();
    block_on(async {
        let arena = Arena::start(&[]).await;
        for (name, object, _) in &cases {
            arena.install(&attack(name, &desires("1", &json!([object])))).await;
            let mut theirs = config_map("theirs");
            theirs["metadata"]["namespace"] = format!("attack-{name}").into();
            arena.apply(&theirs).await;
        }
        for (name, _, expected) in &cases {
            let message = arena.primary_says(name, "Synced", "False", "MalformedObject").await;
            assert!(message.contains(expected), "{name}: {message}");
            let maps = format!("/api/v1/namespaces/attack-{name}/configmaps");
            assert!(arena.get(&format!("{maps}/made")).await.is_none(), "{name}");
            let theirs = arena.get(&format!("{maps}/theirs")).await.unwrap();
            let managers = theirs["metadata"]["managedFields"].as_array().unwrap();
            let is_ours = |one: &&Value| one["manager"].as_str().unwrap().starts_with("innkeeper/");
            assert_eq!(managers.iter().find(is_ours), None, "{name}");
        }
    });
}

#[test]
fn guest_with_all_rights_neither_takes_nor_deletes_the_namespace_it_lives_in() {
    block_on(async {
        let arena = Arena::start(&[]).await;
        let namespaces = json!({"apiVersion": "v1", "kind": "Namespace", "plural": "namespaces",
            "scope": "Cluster"});
        let mut manifest = manifest(&[namespaces]);
        let home = json!({"apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": "attack-home", "annotations": {"a": "b"}}});
        let wants = json!({"objects": [{"object": home, "policy": ["orphan", "deletable"]}]});
        let crossing = json!({"allowCrossNamespace": true,
            "rollout": {"strategy": "Immediate", "rollbackWindow": "0s"}});
        manifest["version"] = semver("1").into();
        let all = Attack::new("home", &guest(&manifest, &wants)).spec(crossing).has_all_rights();
        arena.install(&all).await;
        arena.primary_says("home", "Synced", "False", "Conflict").await;
        manifest["version"] = semver("2").into();
        let merges = json!({"objects": [{"object": home, "policy": ["merge"]}]});
        replace(&arena, "home", "2", &guest(&manifest, &merges)).await;
        arena.primary_says("home", "Synced", "True", "Applied").await;
        manifest["version"] = semver("3").into();
        replace(&arena, "home", "3", &guest(&manifest, &wants)).await;
        manifest["version"] = semver("4").into();
        replace(&arena, "home", "4", &guest(&manifest, &json!({}))).await;
        let home = arena.get("/api/v1/namespaces/attack-home").await.unwrap();
        assert_eq!(home["metadata"]["deletionTimestamp"], Value::Null);
        assert_eq!(home["metadata"]["annotations"], Value::Null, "what was merged is taken back");
    });
}

#[test]
fn kinds_of_the_cluster_are_not_merged_into_without_the_grant_whatever_the_rights() {
    block_on(async {
        let arena = Arena::start(&[]).await;
        let role = json!({"apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRole",
            "metadata": {"name": "theirs"}, "rules": []});
        arena.apply(&role).await;
        for (name, group, kind, plural, target) in [
            ("roles", RBAC, "ClusterRole", "clusterroles", "theirs"),
            ("classes", "storage.k8s.io", "StorageClass", "storageclasses", "any"),
        ] {
            let version = format!("{group}/v1");
            let kinds =
                json!({"apiVersion": version, "kind": kind, "plural": plural, "scope": "Cluster"});
            let object = json!({"apiVersion": version, "kind": kind,
                "metadata": {"name": target, "labels": {"taken": "yes"}}});
            let desired = json!({"objects": [{"object": object, "policy": ["merge"]}]});
            let all = Attack::new(name, &guest(&manifest(&[kinds]), &desired)).has_all_rights();
            arena.install(&all).await;
            arena.primary_says(name, "Synced", "False", "CrossNamespace").await;
        }
        let path = format!("/apis/{RBAC}/v1/clusterroles/theirs");
        assert_eq!(arena.get(&path).await.unwrap()["metadata"]["labels"], Value::Null);
    });
}

#[test]
fn object_that_terminates_when_it_is_desired_is_skipped_until_it_is_deleted() {
    block_on(async {
        let arena = Arena::start(&[]).await;
        let path = "/api/v1/namespaces/attack-going/configmaps/theirs";
        let wants = json!([{"object": config_map("theirs")}]);
        let attack = attack("going", &desires("1", &wants));
        // The primary comes last: the object terminates before it is wanted for the first time.
        let mut objects = attack.objects();
        let primary = objects.pop().unwrap();
        for object in &objects {
            arena.apply(object).await;
        }
        let mut theirs = config_map("theirs");
        theirs["metadata"]["namespace"] = "attack-going".into();
        theirs["metadata"]["finalizers"] = json!(["example.com/slow"]);
        theirs["data"] = json!({"whose": "theirs"});
        arena.apply(&theirs).await;
        arena.lab().api().delete(path).await.unwrap();
        arena.apply(&primary).await;
        arena.pass(60).await;
        let left = arena.get(path).await.unwrap();
        assert_eq!(left["data"], json!({"whose": "theirs"}));
        assert_eq!(left["metadata"]["finalizers"], json!(["example.com/slow"]));
        arena.merge(path, &json!({"metadata": {"finalizers": null}})).await;
        arena.pass(10).await;
        assert_eq!(arena.get(path).await.unwrap()["data"], json!({"a": "b"}), "created again");
    });
}
