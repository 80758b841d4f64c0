//! CustomResourceDefinitions as a weapon: what a guest describes must not delete, prune or block
//! what others have stored.

use innkeeper_hostile_tests::{
    Arena, Attack, GROUP, MODULES, RBAC, block_on, condition, guest, manifest,
};
use serde_json::{Value, json};

use crate::things::{
    CRD, DEFINED, SHAPE, arena, arena_with, attack, grown, push, size_and_color, stored, things,
    until_installed,
};

/// Pushes a definition and expects that its component is refused with these words.
async fn is_refused(arena: &Arena, definition: &Value, words: &str) {
    let before = arena.get(CRD).await.unwrap();
    push(arena, &attack("things", std::slice::from_ref(definition))).await;
    let message = arena.module_says("things", "Ready", "False", "InvalidManifest").await;
    assert!(message.contains(words), "{message}");
    arena.pass(120).await;
    assert_eq!(arena.get(CRD).await.unwrap(), before);
    assert!(stored(arena, "a").await.is_some());
}

#[test]
fn a_definition_is_refused_when_it_names_an_owner_that_does_not_exist() {
    block_on(async {
        let arena = arena().await;
        let mut owned = things(&grown());
        owned["metadata"]["ownerReferences"] = json!([{"apiVersion": "v1", "kind": "Namespace",
            "name": "gone", "uid": "00000000-0000-0000-0000-000000000000"}]);
        is_refused(&arena, &owned, "metadata.ownerReferences: is not the guest's to give").await;
    });
}

#[test]
fn a_definition_is_refused_when_it_gives_other_metadata_that_decides_over_it() {
    block_on(async {
        let arena = arena().await;
        for (name, value) in [
            ("finalizers", json!(["example.com/never"])),
            ("deletionTimestamp", json!("2026-01-01T00:00:00Z")),
            ("uid", json!("00000000-0000-0000-0000-000000000000")),
            ("resourceVersion", json!("1")),
            ("managedFields", json!([{"manager": "innkeeper", "operation": "Apply"}])),
            ("labels", json!({"innkeeper.dev/module": "other"})),
        ] {
            let mut definition = things(&grown());
            definition["metadata"][name] = value;
            is_refused(&arena, &definition, &format!("metadata.{name}")).await;
        }
    });
}

#[test]
fn a_definition_is_installed_without_annotations_status_and_labels_of_deployment_tools() {
    block_on(async {
        let mut definition = things(&size_and_color());
        definition["metadata"]["annotations"] = json!({"helm.sh/hook": "pre-delete",
            "cert-manager.io/inject-ca-from": "a/b"});
        definition["metadata"]["labels"] = json!({"app.kubernetes.io/name": "things",
            "app.kubernetes.io/instance": "argo", "app.kubernetes.io/managed-by": "Helm"});
        definition["status"] = json!({"storedVersions": ["v0"],
            "conditions": [{"type": "Terminating", "status": "True"}],
            "acceptedNames": {"kind": "Pod", "plural": "pods"}});
        let arena = arena_with(&definition, &json!({"size": 3})).await;
        let live = arena.get(CRD).await.unwrap();
        assert_eq!(
            live["metadata"]["labels"],
            json!({"app.kubernetes.io/name": "things", "innkeeper.dev/module": "things"})
        );
        let annotations = live["metadata"]["annotations"].as_object().unwrap();
        assert!(annotations.keys().all(|name| name == "innkeeper.dev/applied"), "{annotations:?}");
        assert_eq!(live["status"]["storedVersions"], json!(["v1"]));
        assert_eq!(live["status"]["acceptedNames"]["kind"], "Thing");
        assert!(condition(&live, "Terminating").is_none());
    });
}

#[test]
fn a_definition_that_grows_is_installed_and_shown_in_the_preview() {
    block_on(async {
        let arena = arena().await;
        arena
            .merge(
                "/apis/innkeeper.dev/v1alpha1/modules/things",
                &json!({"spec": {"rollout": {"strategy": "Manual"}}}),
            )
            .await;
        let mut second = things(&grown());
        second["metadata"]["name"] = json!(format!("others.{DEFINED}"));
        second["spec"]["names"] = json!({"kind": "Other", "plural": "others"});
        push(&arena, &attack("things", &[things(&grown()), second])).await;
        arena.module_says("things", "Held", "True", "NeedsApproval").await;
        let candidate = arena.module("things").await["status"]["candidate"].clone();
        assert_eq!((&candidate["changes"], &candidate["creates"]), (&json!(1), &json!(1)));
        let place =
            ".spec.versions[name=\"v1\"].schema.openAPIV3Schema.properties.spec.properties.shape";
        assert_eq!(
            candidate["examples"],
            json!([
                {"action": "Change", "object": format!("CustomResourceDefinition things.{DEFINED}"), "fields": [place]},
                {"action": "Create", "object": format!("CustomResourceDefinition others.{DEFINED}")},
            ])
        );
        assert!(arena.get(CRD).await.unwrap().pointer(SHAPE).is_none(), "a preview writes nothing");
        let approve =
            json!({"metadata": {"annotations": {"innkeeper.dev/approve": candidate["digest"]}}});
        arena.merge("/apis/innkeeper.dev/v1alpha1/modules/things", &approve).await;
        until_installed(&arena, SHAPE).await;
        assert_eq!(stored(&arena, "a").await.unwrap()["spec"], json!({"size": 3, "color": "red"}));
    });
}

#[test]
fn a_module_that_may_not_write_a_definition_that_stays_serves_all_the_same() {
    block_on(async {
        let arena = arena().await;
        // As a host before this label wrote it.
        arena.merge(CRD, &json!({"metadata": {"labels": {"innkeeper.dev/module": null}}})).await;
        let role = json!({"apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRole",
            "metadata": {"name": "reads"},
            "rules": [{"apiGroups": ["apiextensions.k8s.io"],
                "resources": ["customresourcedefinitions"], "verbs": ["get"]}]});
        arena.apply(&role).await;
        let reader = |spec: &Value| {
            let mut manifest = manifest(&[]);
            manifest["crds"] = json!([things(spec)]);
            Attack::new("reader", &guest(&manifest, &json!({})))
                .spec(json!({"allowedCRDGroups": [DEFINED]}))
        };
        let binding = json!({"apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRoleBinding",
            "metadata": {"name": "reads"},
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "reads"},
            "subjects": [{"kind": "ServiceAccount", "name": "reader", "namespace": MODULES}]});
        arena.apply(&binding).await;
        arena.install(&reader(&size_and_color())).await;
        arena.module_says("reader", "Ready", "True", "RevisionActive").await;
        push(&arena, &reader(&grown())).await;
        arena.module_says("reader", "Ready", "False", "CRDForbidden").await;
    });
}

/// A guest that describes things, without any right to definitions.
fn without_rights(name: &str, definition: &Value) -> Attack {
    let mut manifest = manifest(&[]);
    manifest["crds"] = json!([definition]);
    Attack::new(name, &guest(&manifest, &json!({}))).spec(json!({"allowedCRDGroups": [DEFINED]}))
}

#[test]
fn a_module_without_rights_to_definitions_uses_the_installed_one_and_asks_for_one_that_is_not() {
    block_on(async {
        let arena = arena().await;
        let before = arena.get(CRD).await.unwrap();
        arena.install(&without_rights("reader", &things(&size_and_color()))).await;
        arena.module_says("reader", "Ready", "True", "RevisionActive").await;
        let mut other = things(&size_and_color());
        other["metadata"]["name"] = json!(format!("others.{DEFINED}"));
        other["spec"]["names"] = json!({"kind": "Other", "plural": "others"});
        arena.install(&without_rights("asker", &other)).await;
        let message = arena.module_says("asker", "Ready", "False", "CRDForbidden").await;
        assert!(message.contains("may not patch customresourcedefinitions"), "{message}");
        assert!(
            message.contains("innkeeper inspect GUEST.wasm --crds | kubectl apply"),
            "{message}"
        );
        assert_eq!(arena.get(CRD).await.unwrap(), before);
    });
}

#[test]
fn no_definition_is_written_when_one_of_them_is_held() {
    block_on(async {
        let arena = arena().await;
        let mut typed = grown();
        typed["properties"]["size"] = json!({"type": "string"});
        let mut other = things(&grown());
        other["metadata"]["name"] = json!(format!("others.{DEFINED}"));
        other["spec"]["names"] = json!({"kind": "Other", "plural": "others"});
        push(&arena, &attack("things", &[other, things(&typed)])).await;
        arena.module_says("things", "Blocked", "True", "CRDIncompatible").await;
        let path = format!("{}/others.{DEFINED}", CRD.rsplit_once('/').unwrap().0);
        assert!(arena.get(&path).await.is_none());
    });
}

#[test]
fn a_preview_shows_a_definition_that_would_be_held() {
    block_on(async {
        let arena = arena().await;
        arena
            .merge(
                "/apis/innkeeper.dev/v1alpha1/modules/things",
                &json!({"spec": {"rollout": {"strategy": "Manual"}}}),
            )
            .await;
        let mut typed = grown();
        typed["properties"]["size"] = json!({"type": "string"});
        push(&arena, &attack("things", &[things(&typed)])).await;
        arena.module_says("things", "Held", "True", "NeedsApproval").await;
        let example = arena.module("things").await["status"]["candidate"]["examples"][0].clone();
        assert_eq!(example["action"], "Change");
        let why = example["fields"][0].as_str().unwrap();
        assert!(why.contains(".spec.size has another type"), "{why}");
    });
}

#[test]
fn the_definition_of_one_module_is_not_changed_by_another() {
    block_on(async {
        let arena = arena().await;
        let before = arena.get(CRD).await.unwrap();
        arena.install(&attack("second", &[things(&grown())])).await;
        let message = arena.module_says("second", "Ready", "False", "CRDOwnedByModule").await;
        assert!(message.contains("belongs to the module things"), "{message}");
        assert!(message.contains(".spec.shape is gone"), "{message}");
        assert_eq!(arena.get(CRD).await.unwrap(), before);
        // It may use what takes all that it needs.
        push(&arena, &attack("second", &[things(&size_and_color())])).await;
        arena.module_says("second", "Ready", "True", "RevisionActive").await;
        assert_eq!(arena.get(CRD).await.unwrap(), before);
        // A person hands it over by the label.
        let label = json!({"metadata": {"labels": {"innkeeper.dev/module": "second"}}});
        arena.merge(CRD, &label).await;
        let mut more = grown();
        more["properties"]["weight"] = json!({"type": "integer"});
        push(&arena, &attack("second", &[things(&more)])).await;
        until_installed(&arena, SHAPE).await;
    });
}

#[test]
fn a_guest_does_not_write_definitions_as_objects_of_its_own() {
    block_on(async {
        let arena = arena().await;
        let kind = json!({"apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition", "plural": "customresourcedefinitions", "scope": "Cluster"});
        let mut object = things(&grown());
        object["metadata"]["finalizers"] = json!(["example.com/never"]);
        let desired = json!({"objects": [{"object": object}]});
        let owner = guest(&manifest(&[kind]), &desired);
        arena.install(&Attack::new("owner", &owner).has_all_rights()).await;
        let message = arena.module_says("owner", "Ready", "False", "InvalidManifest").await;
        assert!(message.contains("CustomResourceDefinition cannot be owned"), "{message}");
        assert!(arena.get(CRD).await.unwrap().pointer(SHAPE).is_none());
    });
}

#[test]
fn names_of_kubernetes_and_endless_texts_are_refused() {
    block_on(async {
        let arena = arena().await;
        let mut named = things(&grown());
        named["spec"]["names"]["shortNames"] = json!(["po", "secrets"]);
        is_refused(&arena, &named, "po is a name of Kubernetes' own").await;
        let mut long = grown();
        long["properties"]["shape"]["description"] = json!("x".repeat(1 << 20));
        is_refused(&arena, &things(&long), "at most 1048576 are allowed").await;
        let mut twice = things(&grown());
        let mut second = twice["spec"]["versions"][0].clone();
        second["name"] = json!("v2");
        twice["spec"]["versions"].as_array_mut().unwrap().push(second);
        is_refused(&arena, &twice, "more than one is the storage version").await;
    });
}

#[test]
fn a_group_below_a_granted_one_is_not_granted() {
    block_on(async {
        let arena = Arena::start(&[]).await;
        let mut below = things(&size_and_color());
        below["spec"]["group"] = json!(format!("sub.{DEFINED}"));
        below["metadata"]["name"] = json!(format!("things.sub.{DEFINED}"));
        arena.install(&attack("things", &[below])).await;
        arena.module_says("things", "Ready", "False", "CRDGroupNotAllowed").await;
        let path = format!("{}/things.sub.{DEFINED}", CRD.rsplit_once('/').unwrap().0);
        assert!(arena.get(&path).await.is_none());
    });
}

#[test]
fn the_kind_of_all_attacks_is_somebody_elses() {
    block_on(async {
        let arena = arena().await;
        let path =
            format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/hostiles.{GROUP}");
        let before = arena.get(&path).await.unwrap();
        let mut theirs = innkeeper_hostile_tests::definition();
        theirs["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["more"] =
            json!({"type": "string"});
        let taker = attack("taker", &[theirs]).spec(json!({"allowedCRDGroups": [GROUP]}));
        arena.install(&taker).await;
        arena.module_says("taker", "Ready", "True", "RevisionActive").await;
        assert_eq!(arena.get(&path).await.unwrap(), before);
    });
}
