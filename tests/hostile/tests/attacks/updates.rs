//! Guests that abuse update groups, and objects of groups that others write to.

use innkeeper_hostile_tests::{Arena, Attack, GROUP, block_on, condition, guest, manifest};
use innkeeper_lab::Content;
use serde_json::{Value, json};

use crate::kinds::requests;

/// The longest message of a condition of the host, in bytes.
const MESSAGE_BYTES_MAX: usize = 4_096 + 3;

fn config_map(name: &str, value: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name},
        "data": {"value": value}})
}

fn kind(api_version: &str, kind: &str, plural: &str) -> Value {
    json!({"apiVersion": api_version, "kind": kind, "plural": plural, "scope": "Namespaced"})
}

/// Objects in a group `all` of a method.
fn grouped(method: &str, objects: &[Value]) -> Value {
    let objects: Vec<Value> =
        objects.iter().map(|object| json!({"object": object, "updateGroup": "all"})).collect();
    json!({"objects": objects, "updateGroups": [{"name": "all", "method": method}]})
}

/// The message of the condition `Synced` of the primary of an attack.
async fn synced(arena: &Arena, name: &str) -> String {
    let primary = arena.primary(name).await;
    condition(&primary, "Synced").unwrap()["message"].as_str().unwrap().to_owned()
}

#[test]
fn group_beyond_the_contract_is_refused_with_a_short_message() {
    let group = |change: &Value| {
        let mut group = json!({"name": "all", "method": "RollingInPlace"});
        group.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        json!([group])
    };
    let many: Vec<Value> = (0..2_000)
        .map(|number| json!({"name": format!("g{number}"), "method": "InPlace"}))
        .collect();
    let cases = [
        group(&json!({"maxUnavailable": 0})),
        group(&json!({"maxUnavailable": -1})),
        group(&json!({"maxUnavailable": "0%"})),
        group(&json!({"maxUnavailable": "101%"})),
        group(&json!({"maxUnavailable": "1e9%"})),
        group(&json!({"maxUnavailable": u64::MAX})),
        group(&json!({"minReadySeconds": 4_000_000_000_u32})),
        group(&json!({"progressDeadlineSeconds": 0})),
        group(&json!({"statusChecks": [{"type": "Ready\u{1b}[31m"}]})),
        group(&json!({"name": "a".repeat(20_000)})),
        group(&json!({"method": "Everything"})),
        json!(many),
    ];
    block_on(async {
        let arena = Arena::start(&[]).await;
        for (number, groups) in cases.iter().enumerate() {
            let name = format!("groups-{number}");
            let says =
                json!({"objects": [{"object": config_map("a", "1")}], "updateGroups": groups});
            arena.install(&Attack::new(&name, &guest(&manifest(&[]), &says))).await;
            arena.pass(30).await;
            let message = synced(&arena, &name).await;
            assert!(!message.is_empty() && message.len() <= 600, "{number}: {message}");
            assert!(!message.contains('\u{1b}'), "{number}");
            let path = format!("/api/v1/namespaces/attack-{name}/configmaps/a");
            assert_eq!(arena.get(&path).await, None, "{number}: {message}");
        }
    });
}

#[test]
fn group_that_recreates_deletes_no_object_of_others_no_data_and_not_its_primary() {
    block_on(async {
        // Given an object of nobody, a claim that the module made, and the primary itself.
        let arena = Arena::start(&[]).await;
        let claim = |size: &str| {
            json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"},
                "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}})
        };
        let owned = [
            kind("v1", "PersistentVolumeClaim", "persistentvolumeclaims"),
            kind(&format!("{GROUP}/v1"), "Hostile", "hostiles"),
        ];
        let first = guest(&manifest(&owned), &grouped("Recreate", &[claim("1Gi")]));
        let attack = Attack::new("recreates", &first).has_all_rights();
        arena.install(&attack).await;
        arena.primary_says("recreates", "Synced", "True", "Applied").await;
        let mut theirs = config_map("theirs", "1");
        theirs["metadata"]["namespace"] = "attack-recreates".into();
        arena.apply(&theirs).await;
        let claim_path = "/api/v1/namespaces/attack-recreates/persistentvolumeclaims/data";
        let uid = arena.get(claim_path).await.unwrap()["metadata"]["uid"].clone();

        // When another revision of the guest desires changes of the claim and of the object.
        let second = grouped("Recreate", &[claim("2Gi"), config_map("theirs", "2")]);
        replace(&arena, &guest(&manifest(&owned), &second)).await;

        // Then neither is deleted.
        let message = synced(&arena, "recreates").await;
        assert!(message.contains("it exists and has no controller"), "{message}");
        assert!(message.contains("not recreated since its kind holds data"), "{message}");
        let claim = arena.get(claim_path).await.unwrap();
        assert_eq!(claim["metadata"]["uid"], uid);
        assert_eq!(claim["metadata"]["deletionTimestamp"], Value::Null);
        let path = "/api/v1/namespaces/attack-recreates/configmaps/theirs";
        assert_eq!(arena.get(path).await.unwrap()["data"]["value"], "1");

        // When a group has the primary, then the document is refused.
        let own = json!({"apiVersion": format!("{GROUP}/v1"), "kind": "Hostile",
            "metadata": {"name": "recreates"}, "spec": {"a": 1}});
        replace(&arena, &guest(&manifest(&owned), &grouped("Recreate", &[own]))).await;
        let message = synced(&arena, "recreates").await;
        assert!(message.contains("it is the primary itself"), "{message}");
    });
}

#[test]
fn group_with_one_object_in_two_versions_never_deletes_it() {
    block_on(async {
        // Given a guest that desires one object in two versions, which differ.
        let autoscaler = |version: &str, replicas: u32| {
            json!({"apiVersion": version, "kind": "HorizontalPodAutoscaler",
                "metadata": {"name": "a"}, "spec": {"maxReplicas": replicas,
                    "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"}}})
        };
        let (v1, v2) = ("autoscaling/v1", "autoscaling/v2");
        let of = |version| kind(version, "HorizontalPodAutoscaler", "horizontalpodautoscalers");
        let arena = Arena::start(&[]).await;
        for (name, method, optional) in [
            ("both", "Recreate", [true, true]),
            ("first", "RollingRecreate", [true, false]),
            ("second", "InPlace", [false, true]),
            ("none", "Recreate", [false, false]),
        ] {
            let mut manifest = manifest(&[of(v1), of(v2)]);
            for (owned, is_optional) in [1, 2].into_iter().zip(optional) {
                manifest["owned"][owned]["optional"] = is_optional.into();
            }
            let objects = [autoscaler(v1, 3), autoscaler(v2, 4), config_map("other", "1")];
            let guest = guest(&manifest, &grouped(method, &objects));
            arena.install(&Attack::new(name, &guest).has_all_rights()).await;

            // When the host has had its time, then it has written one version and deleted nothing.
            arena.pass(300).await;
            let message = synced(&arena, name).await;
            let home = format!("/namespaces/attack-{name}/");
            let stored = arena.get(&format!("/apis/{v1}{home}horizontalpodautoscalers/a")).await;
            let mut writes = requests(&arena, name, &home);
            writes.retain(|line| line.contains("horizontalpodautoscalers/a"));
            if optional == [false, false] {
                assert!(message.contains("in two versions, autoscaling/v1 and"), "{message}");
                assert_eq!((stored, writes.len()), (None, 0));
                continue;
            }
            assert!(message.contains("it is the same object as"), "{message}");
            assert_eq!(stored.unwrap()["spec"]["maxReplicas"], 3);
            assert_eq!(writes.len(), 1, "{writes:#?}");
            let other = arena.get(&format!("/api/v1{home}configmaps/other")).await;
            assert!(other.is_some(), "it holds back no other object");
        }
    });
}

/// Replaces the guest of the attack `recreates`, at once.
async fn replace(arena: &Arena, guest: &innkeeper_tiny_guests::Tiny) {
    let module = "/apis/innkeeper.dev/v1alpha1/modules/recreates";
    let at_once = json!({"spec": {"rollout": {"strategy": "Immediate", "rollbackWindow": "0s"}}});
    arena.merge(module, &at_once).await;
    let attack = Attack::new("recreates", guest).has_all_rights();
    let source = attack.objects().into_iter().find(|one| one["binaryData"].is_object()).unwrap();
    arena.apply(&source).await;
    arena.pass(60).await;
}

/// The collection of the Children of the attack `recreates`.
const CHILDREN: &str = "/apis/x.example.com/v1/namespaces/attack-recreates/children";

/// An arena whose attack `recreates` has made the Children `a` and `b` of size 1 in a group, and
/// has updated `a` to size 2. Others write the status of Children.
async fn arena_with_children(change: &Value) -> Arena {
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let schema = json!({"type": "object", "properties": {"spec": any, "status": any}});
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "children.x.example.com"},
        "spec": {"group": "x.example.com", "scope": "Namespaced",
            "names": {"kind": "Child", "plural": "children"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "subresources": {"status": {}}, "schema": {"openAPIV3Schema": schema}}]}});
    let arena = Arena::start(&[definition]).await;
    let child = |name: &str, size: u32| {
        json!({"apiVersion": "x.example.com/v1", "kind": "Child", "metadata": {"name": name},
            "spec": {"size": size}})
    };
    let owned = [kind("x.example.com/v1", "Child", "children")];
    let guest = |size: u32| {
        let mut says = grouped("RollingRecreate", &[child("a", size), child("b", size)]);
        let group = says["updateGroups"][0].as_object_mut().unwrap();
        group.insert("statusChecks".to_owned(), json!([{"type": "Ready"}]));
        group.extend(change.as_object().unwrap().clone());
        guest(&manifest(&owned), &says)
    };
    let attack = Attack::new("recreates", &guest(1)).has_all_rights();
    arena.install(&attack).await;
    arena.primary_says("recreates", "Synced", "True", "Applied").await;
    replace(&arena, &guest(2)).await;
    assert_eq!(sizes(&arena).await, [2, 1]);
    arena
}

/// The sizes of the Children `a` and `b`.
async fn sizes(arena: &Arena) -> [i64; 2] {
    let mut sizes = [0; 2];
    for (size, name) in sizes.iter_mut().zip(["a", "b"]) {
        let child = arena.get(&format!("{CHILDREN}/{name}")).await.unwrap();
        *size = child["spec"]["size"].as_i64().unwrap();
    }
    sizes
}

/// Writes the conditions of the Child `a`, as a tenant.
async fn write_conditions(arena: &Arena, conditions: &Value) {
    let status = json!({"status": {"conditions": conditions}});
    let path = format!("{CHILDREN}/a/status");
    arena.lab().api().send("PATCH", &path, Content::MergePatch, &status).await.unwrap();
}

#[test]
fn status_of_a_child_of_any_size_and_text_gives_a_short_visible_message() {
    block_on(async {
        // Given Children of a group whose status others write.
        let arena = arena_with_children(&json!({})).await;

        // When the status is large, of other types, or has escape sequences.
        let many: Vec<Value> = (0..5_000)
            .map(|number| json!({"type": format!("T{number}"), "status": "True"}))
            .collect();
        let ready =
            |message: &str| json!([{"type": "Ready", "status": "False", "message": message}]);
        for conditions in [
            json!(many),
            ready(&"x".repeat(100_000)),
            ready("\u{1b}[31mred\u{202e}"),
            json!([{"type": 1, "status": {}}]),
            json!("conditions"),
            json!({"type": "Ready"}),
        ] {
            write_conditions(&arena, &conditions).await;
            arena.pass(60).await;

            // Then the update waits, and the message is short and visible.
            let message = synced(&arena, "recreates").await;
            assert!(
                message.starts_with("update group all: 1 of 2 objects is updated"),
                "{message}"
            );
            assert!(message.len() <= MESSAGE_BYTES_MAX, "{}", message.len());
            assert!(!message.contains(['\u{1b}', '\u{202e}']), "{message}");
            assert_eq!(sizes(&arena).await, [2, 1]);
        }
    });
}

#[test]
fn tenant_that_writes_transition_times_of_2099_causes_few_runs() {
    block_on(async {
        // Given an update that waits until an object is ready for 1 s, and a deadline.
        let change = json!({"minReadySeconds": 1, "progressDeadlineSeconds": 1_800});
        let arena = arena_with_children(&change).await;

        // When a tenant writes times that are far in the future, or no times.
        let condition =
            |time: &str| json!([{"type": "Ready", "status": "True", "lastTransitionTime": time}]);
        for time in ["9999-12-30T00:00:00Z", "2099-01-01T00:00:00Z"] {
            write_conditions(&arena, &condition(time)).await;
            let before = arena.reconciles("recreates");
            arena.pass(600).await;

            // Then the host runs the guest a few times, and names condition and time.
            let runs = arena.reconciles("recreates") - before;
            assert!(runs <= 5, "{time}: {runs} runs in 10 minutes");
            let message = synced(&arena, "recreates").await;
            let named = format!("its condition Ready changed at {time}, which is in the future");
            assert!(message.contains(&named), "{message}");
            assert_eq!(sizes(&arena).await, [2, 1]);
        }

        // When the deadline is over, then the update is stopped.
        arena.pass(600).await;
        let message = arena.primary_says("recreates", "Synced", "False", "UpdateFailed").await;
        assert!(message.contains("2099-01-01T00:00:00Z"), "{message}");

        // When the clock is right, then the update goes on.
        write_conditions(&arena, &condition("2000-01-01T00:00:00Z")).await;
        arena.pass(60).await;
        assert_eq!(sizes(&arena).await, [2, 2]);
    });
}
