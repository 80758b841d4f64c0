//! Definitions that stored objects do not fit.

use innkeeper_hostile_tests::{Arena, Attack, MODULES, RBAC, block_on, guest, manifest};
use serde_json::{Value, json};

use crate::things::{
    CRD, DEFINED, SHAPE, arena, arena_with, attack, grown, object_of, push, size_and_color, stored,
    thing, things, until_installed,
};

/// Pushes a definition and expects that it is held, that nothing is written, and that no approval
/// helps; gives the message.
async fn is_held(arena: &Arena, definition: &Value) -> String {
    let before = arena.get(CRD).await.unwrap();
    push(arena, &attack("things", std::slice::from_ref(definition))).await;
    let message = arena.module_says("things", "Blocked", "True", "CRDIncompatible").await;
    let module = arena.module("things").await;
    let digest = module["status"]["candidate"]["digest"].clone();
    let approve = json!({"metadata": {"annotations": {"innkeeper.dev/approve": digest}}});
    arena.merge("/apis/innkeeper.dev/v1alpha1/modules/things", &approve).await;
    arena.pass(30).await;
    arena.module_says("things", "Blocked", "True", "CRDIncompatible").await;
    assert_eq!(arena.get(CRD).await.unwrap()["spec"], before["spec"]);
    // What is stored can be read whole, and written.
    let thing = stored(arena, "a").await.unwrap();
    arena
        .merge(
            &format!("/apis/{DEFINED}/v1/namespaces/attack-things/things/a"),
            &json!({"metadata": {"labels": {"touched": "yes"}}}),
        )
        .await;
    assert_eq!(stored(arena, "a").await.unwrap()["spec"], thing["spec"]);
    message
}

#[test]
fn the_storage_version_does_not_move_to_one_without_a_stored_field() {
    block_on(async {
        let arena = arena().await;
        let mut moved = things(&size_and_color());
        moved["spec"]["versions"][0]["storage"] = json!(false);
        let mut second =
            things(&object_of(&json!({"size": {"type": "integer"}})))["spec"]["versions"][0]
                .clone();
        second["name"] = json!("v2");
        moved["spec"]["versions"].as_array_mut().unwrap().push(second);
        let message = is_held(&arena, &moved).await;
        assert!(
            message
                .contains("version v2 would be stored and takes less than v1: .spec.color is gone"),
            "{message}"
        );
        // Nor is it served next to it: a client that writes by it would lose the color.
        moved["spec"]["versions"][0]["storage"] = json!(true);
        moved["spec"]["versions"][1]["storage"] = json!(false);
        let message = is_held(&arena, &moved).await;
        assert!(message.contains("version v2 would be served"), "{message}");
    });
}

#[test]
fn a_logical_keyword_or_rule_that_blocks_what_is_stored_is_held() {
    block_on(async {
        let arena = arena().await;
        for (keyword, value) in [
            ("not", json!({"required": ["size"]})),
            ("allOf", json!([{"required": ["shape"]}])),
            ("anyOf", json!([{"required": ["shape"]}])),
            ("oneOf", json!([{"required": ["size"]}, {"required": ["color"]}])),
            ("maxProperties", json!(1)),
            ("x-kubernetes-validations", json!([{"rule": "self.size > 100"}])),
        ] {
            let mut spec = grown();
            spec[keyword] = value;
            let message = is_held(&arena, &things(&spec)).await;
            assert!(message.contains(".spec has a"), "{keyword}: {message}");
        }
    });
}

#[test]
fn a_type_under_preserve_unknown_fields_is_held() {
    block_on(async {
        let mut spec = size_and_color();
        spec["x-kubernetes-preserve-unknown-fields"] = json!(true);
        let arena = arena_with(&things(&spec), &json!({"shape": {"sides": 3}})).await;
        spec["properties"]["shape"] = json!({"type": "string"});
        let mut typed = things(&spec);
        typed["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"] =
            json!({"type": "object"});
        let message = is_held(&arena, &typed).await;
        assert!(message.contains(".spec.shape has another type"), "{message}");
    });
}

#[test]
fn a_default_that_makes_one_member_too_many_is_held() {
    block_on(async {
        let mut spec = size_and_color();
        spec["maxProperties"] = json!(2);
        let arena = arena_with(&things(&spec), &json!({"size": 3, "color": "red"})).await;
        spec["properties"]["shape"] = json!({"type": "string", "default": "round"});
        let message = is_held(&arena, &things(&spec)).await;
        assert!(message.contains(".spec.shape has a new default"), "{message}");
    });
}

#[test]
fn a_definition_that_grows_is_held_when_a_stored_object_does_not_fit() {
    block_on(async {
        let arena = arena().await;
        arena.apply(&thing("b", &json!({"size": 9}))).await;
        // An administrator narrows the definition; what is stored stays.
        let narrow = |spec: Value| {
            let mut spec = spec;
            spec["properties"]["size"]["maximum"] = json!(5);
            things(&spec)
        };
        arena.apply(&narrow(size_and_color())).await;
        let message = is_held(&arena, &narrow(grown())).await;
        assert!(
            message.contains("Thing attack-things/b: .spec.size is more than maximum"),
            "{message}"
        );
        // As soon as the object fits, the definition is installed.
        let small = json!({"spec": {"size": 5}});
        arena.merge(&format!("/apis/{DEFINED}/v1/namespaces/attack-things/things/b"), &small).await;
        until_installed(&arena, SHAPE).await;
    });
}

#[test]
fn a_stored_object_beyond_the_first_page_of_a_list_is_checked() {
    block_on(async {
        let arena = arena().await;
        for index in 0..120 {
            arena.apply(&thing(&format!("b{index}"), &json!({"size": 1}))).await;
        }
        arena.apply(&thing("z", &json!({"size": -1}))).await;
        let mut scaled = things(&size_and_color());
        scaled["spec"]["versions"][0]["subresources"] = json!({"scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"}});
        let message = is_held(&arena, &scaled).await;
        assert!(message.contains("Thing attack-things/z: .spec.size"), "{message}");
    });
}

#[test]
fn a_scale_that_a_stored_object_does_not_fit_is_held() {
    block_on(async {
        let arena = arena_with(&things(&size_and_color()), &json!({"size": -1})).await;
        let mut scaled = things(&size_and_color());
        scaled["spec"]["versions"][0]["subresources"] = json!({"scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"}});
        let message = is_held(&arena, &scaled).await;
        assert!(
            message.contains("Thing attack-things/a: .spec.size is not a replica count"),
            "{message}"
        );
    });
}

/// What an account may that is to install definitions, but has no right in the whole cluster.
fn may_install(name: &str) -> [Value; 2] {
    let role = json!({"apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRole",
        "metadata": {"name": format!("installs-{name}")},
        "rules": [{"apiGroups": ["apiextensions.k8s.io"], "resources": ["customresourcedefinitions"],
            "verbs": ["get", "create", "patch"]}]});
    let binding = json!({"apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRoleBinding",
        "metadata": {"name": format!("installs-{name}")},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": format!("installs-{name}")},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": MODULES}]});
    [role, binding]
}

fn attack_in_its_namespace(definition: &Value) -> Attack {
    let mut manifest = manifest(&[]);
    manifest["crds"] = json!([definition]);
    Attack::new("things", &guest(&manifest, &json!({})))
        .spec(json!({"allowedCRDGroups": [DEFINED]}))
}

#[test]
fn a_definition_is_not_changed_when_its_objects_cannot_be_listed() {
    block_on(async {
        let arena = Arena::start(&may_install("things")).await;
        arena.install(&attack_in_its_namespace(&things(&size_and_color()))).await;
        arena.module_says("things", "Ready", "True", "RevisionActive").await;
        push(&arena, &attack_in_its_namespace(&things(&grown()))).await;
        let message = arena.module_says("things", "Ready", "False", "CRDForbidden").await;
        assert!(message.contains("may not list things"), "{message}");
        assert!(arena.get(CRD).await.unwrap().pointer(SHAPE).is_none());
        // With the right in its namespaces it is.
        let rights = attack_in_its_namespace(&things(&grown())).may(&["list"], DEFINED, "things");
        for object in rights.objects().iter().filter(|one| one["kind"] == "Role") {
            arena.apply(object).await;
        }
        until_installed(&arena, SHAPE).await;
    });
}

#[test]
fn map_whose_objects_the_api_server_would_empty_is_held() {
    block_on(async {
        let map = |others: &Value| {
            things(&object_of(&json!({"map": {"type": "object", "additionalProperties": others}})))
        };
        let spec = json!({"map": {"k": {"color": "red"}}});
        let arena =
            arena_with(&map(&object_of(&json!({"color": {"type": "string"}}))), &spec).await;
        // It reads as if it accepted more, but the API server keeps only the names of the members.
        let message = is_held(&arena, &map(&json!(true))).await;
        assert!(message.contains(".spec.map{}.color is gone"), "{message}");
        assert_eq!(stored(&arena, "a").await.unwrap()["spec"], spec);
    });
}
