//! Tenants and guests that disturb an update and its history.

use innkeeper_hostile_tests::{Arena, Attack, GROUP, block_on, condition, guest};
use innkeeper_lab::Content;
use innkeeper_tiny_guests::Tiny;
use serde_json::{Value, json};

use crate::kinds::{namespace, requests};
use crate::revision_history::{
    CHILDREN, PRIMARY, REVISIONS, change, child_definition, colored, colors, echo, evict,
    history_manifest, revisions, stored, with_children, writes,
};

const NAMES: [&str; 4] = ["a", "b", "c", "d"];

/// Gives every Child that exists the condition Ready of its present generation.
async fn make_ready(arena: &Arena) {
    for name in NAMES {
        if arena.get(&format!("{CHILDREN}/{name}")).await.is_some() {
            set_ready(arena, name, "True").await;
        }
    }
}

async fn set_ready(arena: &Arena, name: &str, value: &str) {
    let path = format!("{CHILDREN}/{name}");
    let child = arena.get(&path).await.unwrap();
    let status = json!({"status": {"conditions": [{"type": "Ready", "status": value,
        "observedGeneration": child["metadata"]["generation"]}]}});
    let path = format!("{path}/status");
    arena.lab().api().send("PATCH", &path, Content::MergePatch, &status).await.unwrap();
}

/// The Children that are ready in their present generation.
async fn available(arena: &Arena) -> usize {
    let children = arena.lab().api().list(CHILDREN).await.unwrap();
    let is_available = |child: &&Value| {
        let condition = condition(child, "Ready");
        let generation = &child["metadata"]["generation"];
        child["metadata"]["deletionTimestamp"].is_null()
            && condition.is_some_and(|one| {
                one["status"] == "True" && one["observedGeneration"] == *generation
            })
    };
    children.iter().filter(is_available).count()
}

/// Lets all Children become ready until all have this color.
async fn finish(arena: &Arena, color: &str) {
    for _ in 0..60 {
        make_ready(arena).await;
        arena.pass(10).await;
        if colors(arena).await == [color; 4] {
            break;
        }
    }
    make_ready(arena).await;
    let primary = arena.primary("history").await;
    assert_eq!(colors(arena).await, [color; 4], "{:#}", primary["status"]);
    arena.primary_says("history", "Synced", "True", "Applied").await;
}

/// The condition `Synced` of the primary, as reason and message.
async fn synced(arena: &Arena) -> String {
    let primary = arena.primary("history").await;
    let synced = condition(&primary, "Synced").unwrap();
    format!("{}: {}", synced["reason"].as_str().unwrap(), synced["message"].as_str().unwrap())
}

/// Owner references of a ConfigMap that a tenant makes as another controller.
async fn controller(arena: &Arena) -> Value {
    arena
        .apply(&json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "owner", "namespace": "attack-history"}}))
        .await;
    let owner = arena.get("/api/v1/namespaces/attack-history/configmaps/owner").await.unwrap();
    json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner",
        "uid": owner["metadata"]["uid"], "controller": true}])
}

/// An arena whose update from `aaa` to `bbb` waits for its first Child.
async fn in_the_middle(guest: &Tiny) -> Arena {
    let arena = with_children(guest).await;
    make_ready(&arena).await;
    change(&arena, "bbb").await;
    assert_eq!(colors(&arena).await, ["bbb", "aaa", "aaa", "aaa"]);
    arena
}

/// Deletes the primary, and creates it again under its name with this color.
async fn create_again(arena: &Arena, policy: &str, color: &str, annotations: &Value) {
    let options = json!({"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": policy});
    let api = arena.lab().api();
    api.send("DELETE", PRIMARY, Content::Json, &options).await.unwrap();
    arena.pass(10).await;
    assert_eq!(arena.get(PRIMARY).await, None);
    arena
        .apply(&json!({"apiVersion": format!("{GROUP}/v1"), "kind": "Hostile",
            "metadata": {"name": "history", "namespace": "attack-history", "annotations": annotations},
            "spec": {"echo": color, "zz": 1}}))
        .await;
}

#[test]
fn primary_created_again_in_the_middle_of_an_update_touches_nothing_of_the_first() {
    block_on(async {
        // Given an update that waits, and a Child that a finalizer holds.
        let arena = in_the_middle(&colored(1, &echo())).await;
        let path = format!("{CHILDREN}/c");
        arena.merge(&path, &json!({"metadata": {"finalizers": ["x.example.com/wait"]}})).await;
        let first = revisions(&arena).await;

        // When the primary is deleted and created again under its name.
        create_again(&arena, "Background", "ccc", &json!({})).await;
        arena.pass(60).await;

        // Then the Child that is left stays as it is, and the history begins again.
        let old = arena.get(&path).await.unwrap();
        assert_eq!(old["spec"]["color"], "aaa");
        assert_eq!(stored(&revisions(&arena).await), [(1, "ccc")]);
        assert!(first.iter().all(|one| one["data"]["spec"]["echo"] != "ccc"));
        assert!(synced(&arena).await.starts_with("Conflict"), "{}", synced(&arena).await);

        // When it is gone, then all are as they are desired now.
        arena.merge(&path, &json!({"metadata": {"finalizers": null}})).await;
        finish(&arena, "ccc").await;
    });
}

#[test]
fn primary_that_adopts_the_objects_of_a_group_keeps_the_limit() {
    block_on(async {
        // Given ready Children that are left without their primary in the middle of an update.
        let arena = in_the_middle(&colored(1, &echo())).await;
        make_ready(&arena).await;
        arena.pass(1).await;
        create_again(&arena, "Orphan", "ccc", &json!({})).await;
        arena.pass(30).await;
        assert!(synced(&arena).await.starts_with("Conflict"), "{}", synced(&arena).await);
        make_ready(&arena).await;
        assert_eq!(available(&arena).await, 4);
        let before = colors(&arena).await;

        // When its user lets a primary of the same name adopt them.
        arena
            .merge(PRIMARY, &json!({"metadata": {"annotations": {"innkeeper.dev/adopt": "true"}}}))
            .await;

        // Then at no time more than one of them is unavailable.
        for _ in 0..30 {
            arena.pass(1).await;
            assert!(available(&arena).await >= 3, "{before:?} {:?}", colors(&arena).await);
        }
        for _ in 0..30 {
            make_ready(&arena).await;
            for _ in 0..5 {
                arena.pass(1).await;
                assert!(available(&arena).await >= 3, "{:?}", colors(&arena).await);
            }
        }
        finish(&arena, "ccc").await;
    });
}

#[test]
fn children_that_a_tenant_takes_or_holds_stay_as_they_are_and_the_rest_keeps_the_limit() {
    block_on(async {
        // Given an update that waits, a Child with another controller, and one with a finalizer.
        let arena = in_the_middle(&colored(1, &echo())).await;
        let theirs = controller(&arena).await;
        let merge = async |name: &str, change: &Value| {
            arena.merge(&format!("{CHILDREN}/{name}"), &json!({ "metadata": change })).await;
        };
        merge("b", &json!({"ownerReferences": theirs})).await;
        merge("c", &json!({"finalizers": ["x.example.com/wait"]})).await;
        let before = arena.get(&format!("{CHILDREN}/b")).await.unwrap();

        // When the update goes on, then the foreign Child stays as it is.
        for _ in 0..10 {
            make_ready(&arena).await;
            arena.pass(30).await;
            assert!(available(&arena).await >= 2, "{}", synced(&arena).await);
        }
        let after = arena.get(&format!("{CHILDREN}/b")).await.unwrap();
        assert_eq!(after["metadata"]["uid"], before["metadata"]["uid"]);
        assert_eq!(after["spec"], before["spec"]);
        assert!(synced(&arena).await.starts_with("Conflict"), "{}", synced(&arena).await);

        // When they are given back, then the update ends.
        merge("b", &json!({"ownerReferences": null})).await;
        arena.pass(60).await;
        merge("c", &json!({"finalizers": null})).await;
        finish(&arena, "bbb").await;
    });
}

/// The same as [`colored`], with independent objects.
fn independent() -> Tiny {
    let objects: Vec<Value> = NAMES
        .iter()
        .map(|name| {
            json!({"updateGroup": "all", "policy": ["independent"],
                "object": {"apiVersion": "x.example.com/v1", "kind": "Child",
                    "metadata": {"name": name}, "spec": {"color": "@@@"}}})
        })
        .collect();
    let desired = json!({"objects": objects, "revisionHistory": echo(),
        "updateGroups": [{"name": "all", "method": "RollingRecreate",
            "statusChecks": [{"type": "Ready"}]}]});
    guest(&history_manifest(), &desired).echoing()
}

#[test]
fn somebody_who_takes_each_name_that_becomes_free_gets_no_more_than_the_limit() {
    block_on(async {
        // Given independent objects in a group, and somebody who creates each that is missing.
        let arena = with_children(&independent()).await;
        make_ready(&arena).await;
        arena.merge(PRIMARY, &json!({"spec": {"echo": "bbb"}})).await;

        // When the name of the first is taken while the host is away.
        let simulator = arena.end().await;
        let api = innkeeper_lab::Api::simulated(simulator.clone());
        api.delete(&format!("{CHILDREN}/a")).await.unwrap();
        let theirs = json!({"apiVersion": "x.example.com/v1", "kind": "Child",
            "metadata": {"name": "a", "namespace": "attack-history"}, "spec": {"color": "evl"}});
        api.apply(&theirs, "default").await.unwrap();
        let arena = Arena::on(simulator).await;
        arena.pass(120).await;

        // Then no other object is deleted while the name is taken.
        assert_eq!(colors(&arena).await, ["evl", "aaa", "aaa", "aaa"], "{}", synced(&arena).await);
        evict(&arena, "a").await;
        finish(&arena, "bbb").await;
    });
}

#[test]
fn numbers_that_a_tenant_writes_cost_the_history_no_state() {
    for number in [0, 3, (1 << 53) - 1, 1 << 53, (1 << 53) + 1, i64::MAX] {
        block_on(async {
            // Given a history with an earlier state, whose number a tenant changes.
            let arena = with_children(&colored(4, &echo())).await;
            change(&arena, "bbb").await;
            finish(&arena, "bbb").await;
            let oldest = revisions(&arena).await.pop().unwrap();
            let path = format!("{REVISIONS}/{}", oldest["metadata"]["name"].as_str().unwrap());
            arena.merge(&path, &json!({ "revision": number })).await;
            arena.pass(30).await;

            // When the primary changes again and again.
            for color in ["ccc", "ddd", "eee"] {
                change(&arena, color).await;
                finish(&arena, color).await;
                let revisions = revisions(&arena).await;
                let now = stored(&revisions);
                assert_eq!(now[0].1, color, "{number}: the present state is the newest, {now:?}");
                assert!(now.len() <= 3 && now[0].0 > now[1].0, "{number}: {now:?}");
            }

            // Then the history has the two states before the present one.
            let revisions = revisions(&arena).await;
            let now = stored(&revisions);
            let states: Vec<&str> = now.iter().map(|(_, color)| *color).collect();
            assert_eq!(states, ["eee", "ddd", "ccc"], "{number}: {now:?}");
            let before = writes(&arena, "controllerrevisions");
            arena.pass(600).await;
            assert_eq!(writes(&arena, "controllerrevisions"), before, "{number}");
        });
    }
}

#[test]
fn tenant_that_changes_numbers_all_the_time_causes_few_writes_for_each() {
    block_on(async {
        let arena = with_children(&colored(4, &echo())).await;
        change(&arena, "bbb").await;
        finish(&arena, "bbb").await;
        let oldest = revisions(&arena).await.pop().unwrap();
        let path = format!("{REVISIONS}/{}", oldest["metadata"]["name"].as_str().unwrap());
        let before = requests(&arena, "history", "controllerrevisions/").len();
        for number in 0..200 {
            arena.merge(&path, &json!({"revision": 10 + number * 3})).await;
            arena.pass(1).await;
        }
        arena.pass(60).await;
        let caused = requests(&arena, "history", "controllerrevisions/").len() - before;
        assert!(caused <= 450, "{caused} requests for 200 changes");
        assert!(revisions(&arena).await.len() <= 3);
        finish(&arena, "bbb").await;
    });
}

#[test]
fn revisions_that_a_tenant_deletes_or_spoils_never_stop_an_update() {
    block_on(async {
        let arena = with_children(&colored(1, &echo())).await;
        make_ready(&arena).await;
        let foreign = controller(&arena).await;
        for (color, spoil) in [
            ("bbb", json!({"metadata": {"ownerReferences": null}})),
            ("ccc", json!({"metadata": {"ownerReferences": foreign}})),
            ("ddd", json!({"metadata": {"labels": {"innkeeper.dev/retained-for": "x"}}})),
            ("eee", json!({"metadata": {"finalizers": ["x.example.com/wait"]}})),
            (
                "fff",
                json!({"metadata": {"annotations": {
                "innkeeper.dev/revision-field-paths": "metadata.finalizers",
                "innkeeper.dev/applied": "x"}}}),
            ),
            ("ggg", Value::Null),
        ] {
            // Given an update in whose middle a tenant spoils all revisions.
            change(&arena, color).await;
            for revision in revisions(&arena).await {
                let path =
                    format!("{REVISIONS}/{}", revision["metadata"]["name"].as_str().unwrap());
                if spoil.is_null() {
                    arena.lab().api().delete(&path).await.unwrap();
                } else {
                    arena.merge(&path, &spoil).await;
                }
            }
            arena.pass(30).await;

            // Then the update goes on within its limit.
            for _ in 0..8 {
                make_ready(&arena).await;
                arena.pass(10).await;
                assert!(available(&arena).await >= 3, "{color}: {}", synced(&arena).await);
            }
            make_ready(&arena).await;
            assert_eq!(colors(&arena).await, [color; 4], "{}", synced(&arena).await);
        }
        let before = writes(&arena, "controllerrevisions");
        arena.pass(600).await;
        assert!(writes(&arena, "controllerrevisions") - before <= 12);
    });
}

#[test]
fn thousands_of_revisions_of_a_tenant_disturb_no_other_namespace() {
    block_on(async {
        // Given two primaries of one module in two namespaces.
        let arena = Arena::start(&[child_definition(), namespace("other")]).await;
        let spec = json!({"namespaces": ["attack-history", "other"]});
        let attack = Attack::new("history", &colored(1, &echo())).has_all_rights().spec(spec);
        arena.install(&attack).await;
        let other = |echo: &str| {
            json!({"apiVersion": format!("{GROUP}/v1"), "kind": "Hostile",
                "metadata": {"name": "other", "namespace": "other"}, "spec": {"echo": echo, "zz": 1}})
        };
        arena.apply(&other("aaa")).await;
        arena.merge(PRIMARY, &json!({"spec": {"echo": "aaa", "zz": 1}})).await;
        arena.primary_says("history", "Synced", "True", "Applied").await;

        // When a tenant makes many large revisions that its primary, or that of the other
        // namespace, seems to own, some under the name of the host's manager.
        let uid = async |path: &str| arena.get(path).await.unwrap()["metadata"]["uid"].clone();
        let others = format!("/apis/{GROUP}/v1/namespaces/other/hostiles/other");
        for (owner, uid) in [("history", uid(PRIMARY).await), ("other", uid(&others).await)] {
            let manager = format!("innkeeper%2Fhistory%2F{}", uid.as_str().unwrap());
            for number in 0..70 {
                let name = format!("forged-{owner}-{number}");
                let text = "x".repeat(1_000_000);
                let revision = json!({"apiVersion": "apps/v1", "kind": "ControllerRevision",
                    "metadata": {"name": name, "namespace": "attack-history",
                        "annotations": {"innkeeper.dev/revision-field-paths": "spec"},
                        "ownerReferences": [{"apiVersion": format!("{GROUP}/v1"), "kind": "Hostile",
                            "name": owner, "uid": uid, "controller": true}]},
                    "revision": i64::MAX - number, "data": {"spec": {"echo": text}}});
                let path = format!(
                    "{REVISIONS}/{name}?force=true&fieldManager={}",
                    if number % 2 == 0 { &manager } else { "tenant" }
                );
                arena.lab().api().send("PATCH", &path, Content::Apply, &revision).await.unwrap();
            }
        }
        arena.pass(120).await;
        let message = synced(&arena).await;
        assert!(message.starts_with("ObservedTooLarge"), "{message}");

        // Then the other primary works on, its history is its own, and the module is healthy.
        arena.apply(&other("bbb")).await;
        arena.pass(60).await;
        let theirs = "/apis/apps/v1/namespaces/other/controllerrevisions";
        let theirs = arena.lab().api().list(theirs).await.unwrap();
        assert_eq!(theirs.len(), 2);
        let child = "/apis/x.example.com/v1/namespaces/other/children/a";
        assert_eq!(arena.get(child).await.unwrap()["spec"]["color"], "bbb");
        arena.module_says("history", "Ready", "True", "RevisionActive").await;
        arena.module_says("history", "Healthy", "True", "SomeWritesRefused").await;
    });
}

/// Replaces the guest of the attack `history` at once.
async fn replace(arena: &Arena, guest: &Tiny) {
    let module = "/apis/innkeeper.dev/v1alpha1/modules/history";
    let at_once = json!({"spec": {"rollout": {"strategy": "Immediate", "rollbackWindow": "0s"}}});
    arena.merge(module, &at_once).await;
    let attack = Attack::new("history", guest).has_all_rights();
    let source = attack.objects().into_iter().find(|one| one["binaryData"].is_object()).unwrap();
    arena.apply(&source).await;
}

#[test]
fn module_that_changes_pauses_and_returns_in_the_middle_of_an_update_keeps_the_limit() {
    block_on(async {
        let first = colored(1, &echo());
        let arena = in_the_middle(&first).await;
        let module = "/apis/innkeeper.dev/v1alpha1/modules/history";
        let other = |text: &str| {
            let json = json!({"objects": NAMES.map(|name| json!({"updateGroup": "all",
                "object": {"apiVersion": "x.example.com/v1", "kind": "Child",
                    "metadata": {"name": name}, "spec": {"color": "@@@", "text": text}}})),
                "revisionHistory": echo(),
                "updateGroups": [{"name": "all", "method": "RollingRecreate",
                    "statusChecks": [{"type": "Ready"}]}]});
            guest(&history_manifest(), &json).echoing()
        };
        let keeps = async |seconds: u64| {
            for _ in 0..seconds {
                arena.pass(1).await;
                assert!(available(&arena).await >= 3, "{}", synced(&arena).await);
            }
        };
        // When the module changes while an object is not ready.
        keeps(10).await;
        replace(&arena, &other("x")).await;
        keeps(30).await;

        // When it is paused, then nothing changes whatever becomes ready.
        arena.merge(module, &json!({"spec": {"paused": true}})).await;
        arena.pass(10).await;
        make_ready(&arena).await;
        let paused = arena.lab().api().list(CHILDREN).await.unwrap();
        keeps(60).await;
        assert_eq!(arena.lab().api().list(CHILDREN).await.unwrap(), paused);

        // When it goes on and returns to the first component in the middle.
        arena.merge(module, &json!({"spec": {"paused": false}})).await;
        keeps(10).await;
        make_ready(&arena).await;
        keeps(5).await;
        replace(&arena, &first).await;
        keeps(20).await;
        evict(&arena, "d").await;
        arena.pass(20).await;
        for _ in 0..10 {
            make_ready(&arena).await;
            keeps(5).await;
        }
        finish(&arena, "bbb").await;
    });
}
