//! Foreign definitions that a Module asks to change (`spec.crds: Adopt`).

use innkeeper_hostile_tests::{Arena, Attack, MODULES, RBAC, block_on, condition, guest, manifest};
use serde_json::{Value, json};

use crate::kinds::requests;
use crate::things::{
    CRD, DEFINED, SHAPE, attack, grown, object_of, push, size_and_color, stored, thing, things,
    until_installed,
};

const MODULE: &str = "/apis/innkeeper.dev/v1alpha1/modules/things";

/// The module `things` with this definition, which adopts.
fn adopter(definition: &Value) -> Attack {
    attack("things", std::slice::from_ref(definition))
        .spec(json!({"allowedCRDGroups": [DEFINED], "crds": "Adopt"}))
}

/// An arena in which an administrator has installed this definition, with a stored thing.
async fn foreign(definition: &Value, spec: &Value) -> Arena {
    let arena = Arena::start(std::slice::from_ref(definition)).await;
    let home =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "attack-things"}});
    arena.apply(&home).await;
    arena.apply(&thing("a", spec)).await;
    arena
}

/// The spec of the installed definition, and the module that owns it.
async fn installed(arena: &Arena) -> (Value, Value) {
    let live = arena.get(CRD).await.unwrap();
    (live["spec"].clone(), live["metadata"]["labels"]["innkeeper.dev/module"].clone())
}

/// The messages of the Events about adopted definitions.
async fn adopted(arena: &Arena) -> Vec<String> {
    let events = arena.lab().api().list("/apis/events.k8s.io/v1/events").await.unwrap();
    let adopted = events.iter().filter(|event| event["reason"] == "CRDAdopted");
    adopted.map(|event| event["note"].as_str().unwrap().to_owned()).collect()
}

async fn approve(arena: &Arena, digest: &Value) {
    let approve = json!({"metadata": {"annotations": {"innkeeper.dev/approve": digest}}});
    arena.merge(MODULE, &approve).await;
}

/// The definition stays as it is, whatever is approved; gives the message.
async fn is_refused(arena: &Arena, status: (&str, &str, &str)) -> String {
    let before = arena.get(CRD).await.unwrap();
    let message = arena.module_says("things", status.0, status.1, status.2).await;
    let module = arena.module("things").await;
    for digest in [&module["status"]["candidate"]["digest"], &module["status"]["digest"]] {
        approve(arena, digest).await;
        arena.pass(400).await;
    }
    assert_eq!(arena.get(CRD).await.unwrap(), before);
    message
}

#[test]
fn definition_that_only_adds_is_adopted_at_once_when_the_spec_asks_for_it() {
    block_on(async {
        let arena = foreign(&things(&size_and_color()), &json!({"size": 3})).await;
        arena.install(&attack("things", &[things(&grown())])).await;
        arena.module_says("things", "Ready", "True", "RevisionActive").await;
        arena.pass(60).await;
        assert_eq!(installed(&arena).await.1, Value::Null, "it is used as it is");

        arena.merge(MODULE, &json!({"spec": {"crds": "Adopt"}})).await;
        until_installed(&arena, SHAPE).await;
        arena.module_says("things", "Ready", "True", "RevisionActive").await;
        assert_eq!(installed(&arena).await.1, "things");
        assert_eq!(adopted(&arena).await.len(), 1);
    });
}

#[test]
fn nothing_is_adopted_while_the_module_is_paused() {
    block_on(async {
        let arena = foreign(&things(&size_and_color()), &json!({"size": 3})).await;
        let paused = json!({"allowedCRDGroups": [DEFINED], "crds": "Adopt", "paused": true});
        arena.install(&attack("things", &[things(&grown())]).spec(paused)).await;
        arena.module_says("things", "Ready", "False", "Paused").await;
        arena.pass(400).await;
        assert_eq!(installed(&arena).await.1, Value::Null);

        arena.merge(MODULE, &json!({"spec": {"paused": false}})).await;
        until_installed(&arena, SHAPE).await;
        arena.module_says("things", "Ready", "True", "RevisionActive").await;
    });
}

#[test]
fn adoption_by_a_candidate_writes_an_event_with_what_kubectl_loses() {
    block_on(async {
        let mut original = things(&size_and_color());
        original["spec"]["names"]["shortNames"] = json!(["th", "thing1"]);
        original["spec"]["versions"][0]["additionalPrinterColumns"] =
            json!([{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}]);
        let arena = foreign(&original, &json!({"size": 3})).await;
        let mut definition = things(&grown());
        definition["spec"]["names"]["shortNames"] = json!(["th"]);
        arena.install(&adopter(&definition)).await;
        arena.module_says("things", "Ready", "True", "RevisionActive").await;
        assert_eq!(
            adopted(&arena).await,
            [format!(
                "The foreign CustomResourceDefinition things.{DEFINED} is the module's now; kubectl does not know any more: the short name thing1, the column Size of version v1."
            )]
        );
    });
}

#[test]
fn objects_outside_of_the_namespaces_of_the_module_are_counted_and_not_named() {
    block_on(async {
        let arena = foreign(&things(&grown()), &json!({"size": 3})).await;
        let namespace = "/api/v1/namespaces/elsewhere";
        arena
            .apply(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "elsewhere"}}))
            .await;
        assert!(arena.get(namespace).await.is_some());
        let mut secret = thing("secret-name", &json!({"size": 3, "shape": "round"}));
        secret["metadata"]["namespace"] = json!("elsewhere");
        arena.apply(&secret).await;
        let adopter = adopter(&things(&size_and_color())).spec(json!({
            "allowedCRDGroups": [DEFINED], "crds": "Adopt", "namespaces": ["attack-things"]}));
        arena.install(&adopter).await;
        let message = is_refused(&arena, ("Blocked", "True", "WouldLoseData")).await;
        assert!(
            message
                .contains(".spec.shape (1); all are in namespaces that the module does not serve"),
            "{message}"
        );
        // It does not fit either: another type.
        let path = format!("/apis/{DEFINED}/v1/namespaces/elsewhere/things/secret-name");
        arena.merge(&path, &json!({"spec": {"shape": null, "color": "red"}})).await;
        let integer =
            object_of(&json!({"size": {"type": "integer"}, "color": {"type": "integer"}}));
        let adopter = attack("things", &[things(&integer)]).spec(json!({
            "allowedCRDGroups": [DEFINED], "crds": "Adopt", "namespaces": ["attack-things"]}));
        push(&arena, &adopter).await;
        let message = arena.module_says("things", "Blocked", "True", "CRDIncompatible").await;
        assert!(
            message.contains("a Thing in a namespace that the module does not serve: .spec.color is not of type integer"),
            "{message}"
        );
        let module = arena.module("things").await.to_string();
        assert!(!module.contains("secret-name"), "{module}");
    });
}

#[test]
fn definition_that_takes_something_away_is_adopted_after_an_approval_of_that_change_only() {
    block_on(async {
        let arena = foreign(&things(&grown()), &json!({"size": 3})).await;
        let before = installed(&arena).await;
        arena.install(&adopter(&things(&size_and_color()))).await;
        let message = arena.module_says("things", "Held", "True", "WouldNarrowCRD").await;
        assert!(message.contains(".spec.shape is gone"), "{message}");
        let status = arena.module("things").await["status"].clone();
        assert_eq!(status["candidate"]["state"], "Held");
        assert_eq!(
            status["candidate"]["examples"],
            json!([{"action": "Change", "object": format!("CustomResourceDefinition things.{DEFINED}"),
                "fields": [".spec.shape is gone"]}]),
        );
        let change = status["heldCRDChange"].clone();
        assert!(message.contains(&format!("innkeeper.dev/approve={}", change.as_str().unwrap())));
        // The approval of the component does not count, nor that of a change before this one.
        approve(&arena, &status["candidate"]["digest"]).await;
        arena.pass(400).await;
        assert_eq!(installed(&arena).await, before);
        let mut more = grown();
        more["properties"]["weight"] = json!({"type": "integer"});
        arena.merge(CRD, &json!({"spec": things(&more)["spec"]})).await;
        approve(&arena, &change).await;
        arena.pass(400).await;
        assert_eq!(installed(&arena).await.1, Value::Null);
        let message = arena.module_says("things", "Held", "True", "WouldNarrowCRD").await;
        assert!(message.contains(".spec.weight is gone"), "{message}");

        approve(&arena, &arena.module("things").await["status"]["heldCRDChange"]).await;
        arena.module_says("things", "Ready", "True", "RevisionActive").await;
        assert_eq!(installed(&arena).await.1, "things");
        assert!(arena.get(CRD).await.unwrap().pointer(SHAPE).is_none());
        assert_eq!(stored(&arena, "a").await.unwrap()["spec"], json!({"size": 3}));
        // It is the module's now: it only grows.
        push(&arena, &adopter(&things(&object_of(&json!({"size": {"type": "integer"}}))))).await;
        push(&arena, &adopter(&things(&object_of(&json!({"size": {"type": "string"}}))))).await;
        arena.module_says("things", "Blocked", "True", "CRDIncompatible").await;
    });
}

#[test]
fn definition_under_which_stored_objects_would_lose_fields_is_not_adopted() {
    block_on(async {
        let arena = foreign(&things(&grown()), &json!({"size": 3, "shape": "round"})).await;
        arena.apply(&thing("b", &json!({"size": 3, "color": "red", "shape": "flat"}))).await;
        arena.apply(&thing("c", &json!({"size": 3}))).await;
        arena.install(&adopter(&things(&object_of(&json!({"size": {"type": "integer"}}))))).await;
        let message = is_refused(&arena, ("Blocked", "True", "WouldLoseData")).await;
        assert!(
            message.contains("2 stored Thing lose fields that it does not have: .spec.color (1), .spec.shape (2); the first is attack-things/a"),
            "{message}"
        );
        for name in ["a", "b"] {
            arena
                .merge(
                    &format!("/apis/{DEFINED}/v1/namespaces/attack-things/things/{name}"),
                    &json!({"spec": {"color": null, "shape": null}}),
                )
                .await;
        }
        arena.pass(400).await;
        arena.module_says("things", "Held", "True", "WouldNarrowCRD").await;
        approve(&arena, &arena.module("things").await["status"]["heldCRDChange"]).await;
        arena.module_says("things", "Ready", "True", "RevisionActive").await;
    });
}

#[test]
fn new_pattern_is_named_when_no_stored_object_is_checked_against_it() {
    block_on(async {
        let free = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        let arena = foreign(&things(&free), &json!({"color": "red"})).await;
        let color = json!({"color": {"type": "string", "pattern": "^blue$"}});
        arena.install(&adopter(&things(&object_of(&color)))).await;
        let message = arena.module_says("things", "Held", "True", "WouldNarrowCRD").await;
        assert!(
            message.contains(&format!("the host does not check stored objects against the new constraints (things.{DEFINED}: .spec.color (pattern))")),
            "{message}"
        );
    });
}

#[test]
fn definition_of_another_kind_scope_or_conversion_is_not_adopted() {
    block_on(async {
        let webhook = json!({"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"],
            "clientConfig": {"url": "https://example.com"}}});
        for (pointer, value, words) in [
            ("/spec/names/singular", json!("widget"), ".spec.names.singular changes"),
            ("/spec/names/listKind", json!("Things"), ".spec.names.listKind changes"),
            ("/spec/names/categories", Value::Null, ".spec.names.categories gets all"),
            ("/spec/versions/0/name", json!("v2"), "version v1, in which objects are stored"),
        ] {
            let arena = foreign(&things(&size_and_color()), &json!({"size": 3})).await;
            let mut other = things(&size_and_color());
            other["spec"]["names"]["categories"] = json!(["all"]);
            if !value.is_null() {
                other["spec"]["names"].as_object_mut().unwrap().remove("categories");
                let (parent, name) = pointer.rsplit_once('/').unwrap();
                other.pointer_mut(parent).unwrap()[name] = value;
            }
            arena.install(&adopter(&other)).await;
            let message = is_refused(&arena, ("Blocked", "True", "CRDIncompatible")).await;
            assert!(message.contains(words), "{message}");
        }
        let mut converted = things(&size_and_color());
        converted["spec"]["conversion"] = webhook;
        let arena = foreign(&converted, &json!({"size": 3})).await;
        arena.install(&adopter(&things(&grown()))).await;
        let message = is_refused(&arena, ("Blocked", "True", "CRDIncompatible")).await;
        assert!(message.contains("is converted by a webhook"), "{message}");
    });
}

#[test]
fn definition_of_another_module_is_not_adopted() {
    block_on(async {
        let arena = Arena::start(&[]).await;
        arena.install(&attack("owner", &[things(&size_and_color())])).await;
        arena.module_says("owner", "Ready", "True", "RevisionActive").await;
        arena.install(&adopter(&things(&grown()))).await;
        is_refused(&arena, ("Loaded", "False", "CRDOwnedByModule")).await;
        // Also if it lost the entry of the host's field manager.
        arena.merge(CRD, &json!({"metadata": {"managedFields": [{}]}})).await;
        arena.merge(MODULE, &json!({"spec": {"resyncPeriod": "1h"}})).await;
        arena.pass(400).await;
        assert_eq!(installed(&arena).await.1, "owner");
        assert!(arena.get(CRD).await.unwrap().pointer(SHAPE).is_none());
    });
}

#[test]
fn definition_of_a_group_that_is_not_granted_is_not_adopted() {
    block_on(async {
        let arena = foreign(&things(&size_and_color()), &json!({"size": 3})).await;
        let adopter = attack("things", &[things(&grown())])
            .spec(json!({"allowedCRDGroups": ["other.example.dev"], "crds": "Adopt"}));
        arena.install(&adopter).await;
        is_refused(&arena, ("Ready", "True", "RevisionActive")).await;
    });
}

#[test]
fn definition_is_not_adopted_without_the_rights_of_the_account() {
    block_on(async {
        let arena = foreign(&things(&grown()), &json!({"size": 3})).await;
        let spec = json!({"allowedCRDGroups": [DEFINED], "crds": "Adopt"});
        let mut manifest = manifest(&[]);
        manifest["crds"] = json!([things(&size_and_color())]);
        let attack = Attack::new("things", &guest(&manifest, &json!({}))).spec(spec).may(
            &["list"],
            DEFINED,
            "things",
        );
        let bind = async |resource: &str, group: &str, verbs: &[&str]| {
            let name = format!("{resource}-{}", verbs.join("-"));
            let role = json!({"apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRole",
                "metadata": {"name": name},
                "rules": [{"apiGroups": [group], "resources": [resource], "verbs": verbs}]});
            let binding = json!({"apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRoleBinding",
                "metadata": {"name": name},
                "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": name},
                "subjects": [{"kind": "ServiceAccount", "name": "things", "namespace": MODULES}]});
            arena.apply(&role).await;
            arena.apply(&binding).await;
        };
        bind("customresourcedefinitions", "apiextensions.k8s.io", &["get"]).await;
        arena.install(&attack).await;
        // It may list the things of its namespace only: there may be others.
        let message = is_refused(&arena, ("Loaded", "False", "CRDForbidden")).await;
        assert!(message.contains("its stored objects cannot be checked"), "{message}");
        bind("things", DEFINED, &["list"]).await;
        arena.pass(400).await;
        arena.module_says("things", "Held", "True", "WouldNarrowCRD").await;
        let change = arena.module("things").await["status"]["heldCRDChange"].clone();
        approve(&arena, &change).await;
        let message = arena.module_says("things", "Loaded", "False", "CRDForbidden").await;
        assert!(message.contains("patch"), "{message}");
        assert_eq!(installed(&arena).await.1, Value::Null);
        bind("customresourcedefinitions", "apiextensions.k8s.io", &["get", "patch"]).await;
        arena.pass(400).await;
        assert_eq!(installed(&arena).await.1, "things");
    });
}

#[test]
fn active_revision_serves_after_a_restart_while_its_adoption_is_held() {
    block_on(async {
        let arena = foreign(&things(&grown()), &json!({"size": 3})).await;
        arena.install(&attack("things", &[things(&size_and_color())])).await;
        arena.module_says("things", "Ready", "True", "RevisionActive").await;
        arena.merge(MODULE, &json!({"spec": {"crds": "Adopt"}})).await;
        arena.module_says("things", "Held", "True", "WouldNarrowCRD").await;
        let arena = arena.restart().await;
        arena.pass(30).await;
        let module = arena.module("things").await;
        assert_eq!(condition(&module, "Serving").unwrap()["status"], "True");
        assert_eq!(condition(&module, "Held").unwrap()["reason"], "WouldNarrowCRD");
        assert_eq!(installed(&arena).await.1, Value::Null);
        approve(&arena, &module["status"]["heldCRDChange"]).await;
        arena.module_says("things", "Ready", "True", "RevisionActive").await;
        assert_eq!(installed(&arena).await.1, "things");
    });
}

/// How often the account of the module has listed all things.
fn checks(arena: &Arena) -> usize {
    requests(arena, "things", &format!("GET /apis/{DEFINED}/v1/things")).len()
}

#[test]
fn adoption_and_candidate_that_both_fail_are_tried_again_less_and_less_often() {
    block_on(async {
        let arena = foreign(&things(&grown()), &json!({"size": 3, "shape": "round"})).await;
        arena.install(&attack("things", &[things(&size_and_color())])).await;
        arena.module_says("things", "Ready", "True", "RevisionActive").await;
        arena.merge(MODULE, &json!({"spec": {"crds": "Adopt"}})).await;
        arena.module_says("things", "Blocked", "True", "WouldLoseData").await;
        push(&arena, &adopter(&things(&object_of(&json!({"size": {"type": "integer"}}))))).await;
        arena.module_says("things", "Loaded", "False", "WouldLoseData").await;
        let before = checks(&arena);
        arena.pass(3_600).await;
        let tries = checks(&arena) - before;
        assert!((20..=60).contains(&tries), "{tries} checks of stored objects in an hour");
    });
}

#[test]
fn held_adoption_rests_until_the_definition_changes() {
    block_on(async {
        let arena = foreign(&things(&grown()), &json!({"size": 3})).await;
        arena.install(&attack("things", &[things(&size_and_color())])).await;
        arena.module_says("things", "Ready", "True", "RevisionActive").await;
        arena.merge(MODULE, &json!({"spec": {"crds": "Adopt"}})).await;
        arena.module_says("things", "Held", "True", "WouldNarrowCRD").await;
        let before = checks(&arena);
        arena.merge(CRD, &json!({"metadata": {"labels": {"touched": "yes"}}})).await;
        arena.pass(3_600).await;
        assert_eq!(checks(&arena), before, "nothing that it depends on has changed");

        arena.merge(CRD, &json!({"spec": things(&size_and_color())["spec"]})).await;
        arena.module_says("things", "Ready", "True", "RevisionActive").await;
        assert_eq!(installed(&arena).await.1, "things", "nothing is taken away any more");
    });
}

#[test]
fn definition_that_keeps_unknown_fields_is_narrowed_with_an_approval_when_the_guest_claims_to_keep_them()
 {
    block_on(async {
        // As `apiextensions.k8s.io/v1beta1` created it: `v1` accepts only `false`, which the host
        // sends whatever the guest writes.
        let mut preserving = things(&size_and_color());
        preserving["spec"]["preserveUnknownFields"] = true.into();
        let arena = foreign(&preserving, &json!({"size": 3})).await;
        arena.install(&adopter(&preserving)).await;
        let message = arena.module_says("things", "Held", "True", "WouldNarrowCRD").await;
        assert!(message.contains(".spec.preserveUnknownFields changes"), "{message}");
        let (spec, owner) = installed(&arena).await;
        assert_eq!((&spec["preserveUnknownFields"], owner), (&json!(true), Value::Null));

        approve(&arena, &arena.module("things").await["status"]["heldCRDChange"]).await;
        arena.module_says("things", "Ready", "True", "RevisionActive").await;
        let (spec, owner) = installed(&arena).await;
        assert_ne!(spec["preserveUnknownFields"], true);
        assert_eq!(owner, "things");
    });
}

#[test]
fn definition_is_not_adopted_when_a_served_version_that_is_not_stored_would_lose_fields() {
    block_on(async {
        let two = |schema_of_v2: &Value| {
            let mut two = things(&grown());
            let mut v2 = things(schema_of_v2)["spec"]["versions"][0].clone();
            (v2["name"], v2["storage"]) = (json!("v2"), json!(false));
            two["spec"]["versions"].as_array_mut().unwrap().push(v2);
            two
        };
        let arena = foreign(&two(&grown()), &json!({"size": 3, "shape": "round"})).await;
        // A write in version v2 prunes the shape of an object that is stored in v1.
        arena.install(&adopter(&two(&size_and_color()))).await;
        let message = is_refused(&arena, ("Blocked", "True", "WouldLoseData")).await;
        assert!(message.contains(".spec.shape (1); the first is attack-things/a"), "{message}");
    });
}
