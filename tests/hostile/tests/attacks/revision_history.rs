//! Guests that abuse the history of their primary, and others that write its revisions.

use innkeeper_hostile_tests::{Arena, Attack, block_on, condition, guest, manifest};
use innkeeper_lab::Content;
use innkeeper_tiny_guests::{OUTCOME_AT, TIME, Tiny};
use serde_json::{Value, json};

pub(crate) const CHILDREN: &str = "/apis/x.example.com/v1/namespaces/attack-history/children";
pub(crate) const REVISIONS: &str = "/apis/apps/v1/namespaces/attack-history/controllerrevisions";
pub(crate) const PRIMARY: &str =
    "/apis/hostile.example.dev/v1/namespaces/attack-history/hostiles/history";

/// The definition of Children, whose status others write.
pub(crate) fn child_definition() -> Value {
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let schema = json!({"type": "object", "properties": {"spec": any, "status": any}});
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "children.x.example.com"},
        "spec": {"group": "x.example.com", "scope": "Namespaced",
            "names": {"kind": "Child", "plural": "children"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "subresources": {"status": {}}, "schema": {"openAPIV3Schema": schema}}]}})
}

pub(crate) fn history_manifest() -> Value {
    manifest(&[
        json!({"apiVersion": "x.example.com/v1", "kind": "Child", "plural": "children",
            "scope": "Namespaced"}),
        json!({"apiVersion": "apps/v1", "kind": "ControllerRevision",
            "plural": "controllerrevisions", "scope": "Namespaced"}),
    ])
}

/// A guest whose Children `a` to `d` have the color of the primary's `echo`.
pub(crate) fn colored(max: u32, history: &Value) -> Tiny {
    let objects: Vec<Value> = ["a", "b", "c", "d"]
        .iter()
        .map(|name| {
            json!({"updateGroup": "all", "object": {"apiVersion": "x.example.com/v1",
                "kind": "Child", "metadata": {"name": name}, "spec": {"color": "@@@"}}})
        })
        .collect();
    let desired = json!({"objects": objects, "revisionHistory": history,
        "updateGroups": [{"name": "all", "method": "RollingRecreate", "maxUnavailable": max,
            "statusChecks": [{"type": "Ready"}]}]});
    guest(&history_manifest(), &desired).echoing()
}

pub(crate) fn echo() -> Value {
    json!({"fieldPaths": ["spec.echo"]})
}

/// A primary whose Children the host makes with the color `aaa`, all of them ready.
pub(crate) async fn with_children(guest: &Tiny) -> Arena {
    let arena = Arena::start(&[child_definition()]).await;
    let attack = Attack::new("history", guest).has_all_rights();
    for mut object in attack.objects() {
        if object["kind"] == "Hostile" {
            object["spec"] = json!({"echo": "aaa", "zz": 1});
        }
        arena.apply(&object).await;
    }
    arena.primary_says("history", "Synced", "True", "Applied").await;
    for name in ["a", "b", "c", "d"] {
        set_condition(&arena, name, "Ready").await;
    }
    arena.pass(10).await;
    arena
}

/// Gives a Child only this condition, with the status True.
pub(crate) async fn set_condition(arena: &Arena, name: &str, type_: &str) {
    let status = json!({"status": {"conditions": [{"type": type_, "status": "True"}]}});
    let path = format!("{CHILDREN}/{name}/status");
    arena.lab().api().send("PATCH", &path, Content::MergePatch, &status).await.unwrap();
}

pub(crate) async fn change(arena: &Arena, echo: &str) {
    arena.merge(PRIMARY, &json!({"spec": {"echo": echo}})).await;
    arena.pass(30).await;
}

pub(crate) async fn evict(arena: &Arena, name: &str) {
    arena.lab().api().delete(&format!("{CHILDREN}/{name}")).await.unwrap();
}

/// The colors of the Children `a` to `d`.
pub(crate) async fn colors(arena: &Arena) -> Vec<String> {
    let children = arena.lab().api().list(CHILDREN).await.unwrap();
    children.iter().map(|one| one["spec"]["color"].as_str().unwrap().to_owned()).collect()
}

/// The revisions with their colors, newest first.
pub(crate) async fn revisions(arena: &Arena) -> Vec<Value> {
    let mut revisions = arena.lab().api().list(REVISIONS).await.unwrap();
    revisions.sort_by_key(|one| std::cmp::Reverse(one["revision"].as_i64()));
    revisions
}

/// The numbers and colors of revisions.
pub(crate) fn stored(revisions: &[Value]) -> Vec<(i64, &str)> {
    revisions
        .iter()
        .map(|one| {
            let color = one["data"]["spec"]["echo"].as_str().unwrap_or("-");
            (one["revision"].as_i64().unwrap(), color)
        })
        .collect()
}

#[test]
fn history_beyond_the_contract_is_refused_with_a_short_message() {
    let paths = |paths: &[&str]| json!({ "fieldPaths": paths });
    let many: Vec<String> = (0..10_000).map(|number| format!("spec.f{number}")).collect();
    let cases = [
        paths(&["metadata.finalizers"]),
        paths(&["status"]),
        paths(&["spec", "spec.a"]),
        paths(&["spec.a", "spec.a"]),
        paths(&[]),
        paths(&[".."]),
        paths(&["spec."]),
        paths(&["spec.a,spec.b"]),
        paths(&["spec.\u{1b}[31m"]),
        paths(&[&format!("spec.{}", "a".repeat(8_000))]),
        json!({ "fieldPaths": many }),
        json!({"limit": 0}),
        json!({"limit": 11}),
        json!({"limit": -1}),
        json!({"limit": u64::MAX}),
        json!({"limit": 1, "children": true}),
        json!("all"),
    ];
    block_on(async {
        let arena = Arena::start(&[]).await;
        for (number, history) in cases.iter().enumerate() {
            let name = format!("case-{number}");
            let object =
                json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
            let says = json!({"objects": [{ "object": object }], "revisionHistory": history});
            let attack = Attack::new(&name, &guest(&history_manifest(), &says)).has_all_rights();
            arena.install(&attack).await;
            arena.pass(30).await;
            let primary = arena.primary(&name).await;
            let message = &condition(&primary, "Synced").unwrap()["message"];
            let message = message.as_str().unwrap();
            assert!(!message.is_empty() && message.len() <= 600, "{number}: {message}");
            assert!(!message.contains('\u{1b}'), "{number}");
            let path = format!("/api/v1/namespaces/attack-{name}/configmaps/a");
            assert_eq!(arena.get(&path).await, None, "{number}: {message}");
        }
    });
}

#[test]
fn evicted_objects_of_a_stopped_update_return_as_they_were() {
    block_on(async {
        // Given an update that stops, since its first object fails.
        let arena = with_children(&colored(1, &echo())).await;
        change(&arena, "bbb").await;
        set_condition(&arena, "a", "Stalled").await;
        arena.pass(10).await;
        assert_eq!(colors(&arena).await, ["bbb", "aaa", "aaa", "aaa"]);

        // When somebody evicts all the others, in a row and all at once.
        for name in ["b", "c", "d"] {
            evict(&arena, name).await;
            arena.pass(10).await;
        }
        for name in ["b", "c"] {
            evict(&arena, name).await;
        }
        arena.pass(60).await;

        // Then they are as they were, although none of them is ready.
        assert_eq!(colors(&arena).await, ["bbb", "aaa", "aaa", "aaa"]);

        // When they are ready and the change is taken back, then all have the first color.
        for name in ["b", "c", "d"] {
            set_condition(&arena, name, "Ready").await;
        }
        change(&arena, "aaa").await;
        assert_eq!(colors(&arena).await, ["aaa"; 4]);
        assert_eq!(stored(&revisions(&arena).await), [(3, "aaa"), (2, "bbb")]);
    });
}

#[test]
fn evictions_make_no_more_objects_new_than_the_group_allows() {
    block_on(async {
        let arena = with_children(&colored(2, &echo())).await;
        change(&arena, "bbb").await;
        assert_eq!(colors(&arena).await, ["bbb", "bbb", "aaa", "aaa"]);
        for name in ["c", "d", "c"] {
            evict(&arena, name).await;
            arena.pass(30).await;
            assert_eq!(colors(&arena).await, ["bbb", "bbb", "aaa", "aaa"], "{name}");
        }
    });
}

#[test]
fn revision_that_a_tenant_writes_is_never_used() {
    block_on(async {
        // Given a stopped update, and a revision of a tenant that looks like one of the host.
        let arena = with_children(&colored(1, &echo())).await;
        change(&arena, "bbb").await;
        set_condition(&arena, "a", "Stalled").await;
        arena.pass(10).await;
        let before = revisions(&arena).await;
        let manager = before[0]["metadata"]["managedFields"][0]["manager"].clone();
        let mut forged = before[1].clone();
        forged["metadata"] = json!({"name": "history-0123456789",
            "annotations": forged["metadata"]["annotations"],
            "ownerReferences": forged["metadata"]["ownerReferences"]});
        forged["revision"] = 99.into();
        forged["data"] = json!({"spec": {"echo": "evl"}});
        let path = format!(
            "{REVISIONS}/history-0123456789?force=true&fieldManager={}",
            manager.as_str().unwrap().replace('/', "%2F")
        );
        arena.lab().api().send("PATCH", &path, Content::Apply, &forged).await.unwrap();
        arena.pass(10).await;

        // When an object is evicted, then it is as it was, and the genuine revisions stay.
        evict(&arena, "c").await;
        arena.pass(60).await;
        assert_eq!(colors(&arena).await, ["bbb", "aaa", "aaa", "aaa"]);
        let after = revisions(&arena).await;
        let genuine: Vec<_> =
            after.iter().filter(|one| one["data"]["spec"]["echo"] != "evl").cloned().collect();
        assert_eq!(stored(&genuine), stored(&before));
        set_condition(&arena, "c", "Ready").await;
        change(&arena, "aaa").await;
        assert_eq!(colors(&arena).await, ["aaa"; 4]);
    });
}

#[test]
fn annotations_and_impossible_number_of_a_tenant_are_repaired_and_content_cannot_change() {
    block_on(async {
        let arena = with_children(&colored(1, &echo())).await;
        change(&arena, "bbb").await;
        let before = revisions(&arena).await;
        let name = before[1]["metadata"]["name"].as_str().unwrap();
        let path = format!("{REVISIONS}/{name}");
        let merge = async |change: &Value| {
            arena.lab().api().send("PATCH", &path, Content::MergePatch, change).await
        };
        assert!(merge(&json!({"data": {"spec": {"echo": "evl"}}})).await.is_err());
        let version = "innkeeper.dev/revision-api-version";
        for value in [json!("hostile.example.dev/v0"), json!("x".repeat(1 << 16)), Value::Null] {
            merge(&json!({"metadata": {"annotations": {version: value}}})).await.unwrap();
            arena.pass(60).await;
            let after = arena.get(&path).await.unwrap();
            let annotations = "annotations";
            assert_eq!(after["metadata"][annotations], before[1]["metadata"][annotations]);
        }
        merge(&json!({"revision": i64::MAX})).await.unwrap();
        arena.pass(60).await;
        let after = revisions(&arena).await;
        assert_eq!(stored(&after), [(2, "bbb"), (1, "aaa")]);
    });
}

#[test]
fn revision_whose_digest_a_tenant_changes_is_deleted_and_the_present_one_is_repaired() {
    for value in [json!("0123456789abcdef"), Value::Null] {
        block_on(async {
            let arena = with_children(&colored(1, &echo())).await;
            change(&arena, "bbb").await;
            let before = revisions(&arena).await;
            let forged = json!({"metadata": {"annotations": {
                "innkeeper.dev/revision-digest": value,
                "innkeeper.dev/revision-api-version": "hostile.example.dev/v0"}}});
            for one in &before {
                let path = format!("{REVISIONS}/{}", one["metadata"]["name"].as_str().unwrap());
                arena.merge(&path, &forged).await;
            }
            arena.pass(60).await;
            let after = revisions(&arena).await;
            assert_eq!(stored(&after), [(2, "bbb")]);
            let annotations = "annotations";
            assert_eq!(after[0]["metadata"][annotations], before[0]["metadata"][annotations]);

            // When an object is evicted, then it is as it would be without a history.
            evict(&arena, "c").await;
            arena.pass(60).await;
            assert_eq!(colors(&arena).await, ["bbb", "aaa", "bbb", "aaa"]);
        });
    }
}

#[test]
fn guest_that_names_other_fields_in_each_run_writes_a_bounded_number_of_revisions() {
    block_on(async {
        let says = json!({"objects": [],
            "revisionHistory": {"limit": 10, "fieldPaths": [format!("spec.f{TIME}")]}});
        let guest = guest(&history_manifest(), &says).timed();
        let arena = Arena::start(&[]).await;
        arena.install(&Attack::new("history", &guest).has_all_rights()).await;
        arena.pass(3_600).await;
        let written = writes(&arena, "controllerrevisions");
        assert!((1..=200).contains(&written), "{written} writes in an hour");
        assert!(revisions(&arena).await.len() <= 30);
    });
}

/// How many successful writes of a resource the API server has seen.
pub(crate) fn writes(arena: &Arena, resource: &str) -> usize {
    let log = arena.log();
    let is_write = |line: &&String| {
        line.contains(&format!("/{resource}/"))
            && (line.contains("PATCH") || line.contains("DELETE"))
    };
    log.iter().filter(is_write).count()
}

#[test]
fn spec_that_changes_all_the_time_leaves_no_more_revisions_than_the_limit() {
    block_on(async {
        let arena = with_children(&colored(4, &echo())).await;
        for number in 0..100 {
            arena.merge(PRIMARY, &json!({"spec": {"echo": format!("{number:03}")}})).await;
            arena.lab().pass(std::time::Duration::from_millis(600)).await;
        }
        arena.pass(120).await;
        let revisions = revisions(&arena).await;
        let newest = stored(&revisions);
        assert_eq!((revisions.len(), newest[0].1), (3, "099"), "{newest:?}");
    });
}

#[test]
fn conflict_that_stays_lets_a_history_grow_no_further_than_its_limit() {
    block_on(async {
        // Given a primary with an object that somebody else has made.
        let arena = Arena::start(&[child_definition()]).await;
        let attack = Attack::new("history", &colored(1, &echo())).has_all_rights();
        for object in attack.objects() {
            arena.apply(&object).await;
            if object["kind"] == "Namespace" && object["metadata"]["name"] == "attack-history" {
                let theirs = json!({"apiVersion": "x.example.com/v1", "kind": "Child",
                    "metadata": {"name": "a", "namespace": "attack-history"}});
                arena.apply(&theirs).await;
            }
        }
        arena.primary_says("history", "Synced", "False", "Conflict").await;

        // When its spec changes again and again, then the host stores no more of its states.
        for number in 0..50 {
            change(&arena, &format!("{number:03}")).await;
            let revisions = revisions(&arena).await;
            assert_eq!(stored(&revisions)[0].1, format!("{number:03}"));
            assert!(revisions.len() <= 3, "{number}: {:?}", stored(&revisions));
        }
        arena.primary_says("history", "Synced", "False", "Conflict").await;
    });
}

#[test]
fn guest_that_fails_only_for_an_earlier_primary_has_no_problem() {
    let garbage = format!("(i32.store8 (i32.const {OUTCOME_AT}) (i32.const 0))");
    for (what, code) in
        [("traps", "unreachable"), ("loops", "(loop $forever (br $forever))"), ("lies", &*garbage)]
    {
        block_on(async {
            // Given a guest that fails if it sees the earlier primary with an object of the later.
            let texts = [r#""echo":"aaa","zz""#, r#""color":"bbb""#];
            let arena = with_children(&colored(1, &echo()).when_observed(&texts, code)).await;
            change(&arena, "bbb").await;
            assert_eq!(colors(&arena).await, ["bbb", "aaa", "aaa", "aaa"], "{what}");

            // When objects over the limit vanish, then the guest's answer for now counts.
            for name in ["c", "d"] {
                evict(&arena, name).await;
            }
            arena.pass(120).await;
            assert_eq!(colors(&arena).await, ["bbb", "aaa", "bbb", "bbb"], "{what}");
            let primary = arena.primary("history").await;
            let synced = condition(&primary, "Synced").unwrap();
            assert_eq!(synced["reason"], "Updating", "{what}: {synced}");
            arena.module_says("history", "Ready", "True", "RevisionActive").await;
        });
    }
}

#[test]
fn guest_that_desires_a_revision_of_the_host_gives_it_twice() {
    block_on(async {
        let arena = with_children(&colored(1, &echo())).await;
        let mut own = revisions(&arena).await.remove(0);
        own["metadata"] = json!({"name": own["metadata"]["name"]});
        let says = json!({"objects": [{ "object": own }], "revisionHistory": echo()});
        let twice = Attack::new("history", &guest(&history_manifest(), &says)).has_all_rights();
        let at_once =
            json!({"spec": {"rollout": {"strategy": "Immediate", "rollbackWindow": "0s"}}});
        arena.merge("/apis/innkeeper.dev/v1alpha1/modules/history", &at_once).await;
        let objects = twice.objects();
        let source = objects.iter().find(|one| one["binaryData"].is_object()).unwrap();
        arena.apply(source).await;
        let message = arena.primary_says("history", "Synced", "False", "MalformedObject").await;
        assert!(message.contains("twice"), "{message}");
    });
}

#[test]
fn fields_that_are_too_large_are_named_by_an_event_and_the_update_goes_on() {
    block_on(async {
        let arena = with_children(&colored(4, &json!({}))).await;
        let spec = json!({"spec": {"echo": "bbb", "large": "x".repeat(300 << 10)}});
        arena.merge(PRIMARY, &spec).await;
        arena.pass(60).await;
        assert_eq!(colors(&arena).await, ["bbb"; 4]);
        assert_eq!(stored(&revisions(&arena).await), [(1, "aaa")]);
        let events = "/apis/events.k8s.io/v1/namespaces/attack-history/events";
        let events = arena.lab().api().list(events).await.unwrap();
        let named: Vec<&Value> =
            events.iter().filter(|event| event["reason"] == "RevisionTooLarge").collect();
        assert_eq!(named.len(), 1, "{events:?}");
        assert!(named[0]["note"].as_str().unwrap().len() < 300);
    });
}

#[test]
fn decorator_gets_no_history() {
    block_on(async {
        let arena = Arena::start(&[]).await;
        let mut decorator = history_manifest();
        decorator["decorates"] = true.into();
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
        let says = json!({"objects": [{ "object": object }], "revisionHistory": {}});
        let attack = Attack::new("history", &guest(&decorator, &says)).has_all_rights();
        arena.install(&attack).await;
        arena.pass(60).await;
        assert_eq!(revisions(&arena).await.len(), 0);
        assert_eq!(arena.get("/api/v1/namespaces/attack-history/configmaps/a").await, None);
    });
}
