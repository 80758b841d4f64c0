//! The definition that an earlier operator left behind becomes the module's.

use anyhow::Result;
use innkeeper_cluster_tests::stage::{SOON, message, output_with, says};
use innkeeper_cluster_tests::{Kind, Stage, etcd, eventually};
use serde_json::{Value, json};

use super::{CRD, GROUP, MODULE, Version, WIDGET, definition, size, size_and_color};

/// The definition of the earlier operator: as operator-sdk generated it for `v1beta1`, without the
/// status subresource and with an empty status.
fn original() -> Value {
    let mut original =
        definition(&json!({"size": {"type": "integer"}, "note": {"type": "string"}}));
    original["metadata"]["creationTimestamp"] = Value::Null;
    original["metadata"]["annotations"] =
        json!({"controller-gen.kubebuilder.io/version": "v0.3.0"});
    original["status"] = json!({"acceptedNames": {"kind": "", "plural": ""}, "conditions": [],
        "storedVersions": []});
    let version = original["spec"]["versions"][0].as_object_mut().unwrap();
    version.remove("subresources");
    let properties = &mut version["schema"]["openAPIV3Schema"]["properties"];
    properties["apiVersion"] = json!({"description": "APIVersion defines", "type": "string"});
    properties["kind"] = json!({"description": "Kind is a string value", "type": "string"});
    properties["metadata"] = json!({"type": "object"});
    original
}

/// A stage with this definition from the time of `v1beta1`, and widgets that have its fields.
async fn stage_of_the_original(namespace: &mut String) -> Result<Stage> {
    let stage = Stage::new().await?;
    stage.admin.apply(&original().to_string()).await?;
    etcd::change_crd(&stage.plane, CRD, |definition| {
        definition["spec"]["preserveUnknownFields"] = true.into();
    })
    .await?;
    *namespace = stage.admin.namespace("crds").await?;
    for (name, spec) in
        [("a", json!({"size": 3, "note": "first"})), ("b", json!({"size": 3, "unknown": {"x": 1}}))]
    {
        let widget = json!({"apiVersion": WIDGET.api_version, "kind": WIDGET.kind,
            "metadata": {"name": name, "namespace": namespace}, "spec": spec});
        eventually("the widget keeps all its fields", SOON, async || {
            let applied = stage.admin.apply(&widget.to_string()).await;
            let stored = stage.admin.get(WIDGET, namespace, name).await.ok().flatten();
            let stored = stored.unwrap_or_default();
            let keeps = applied.is_ok() && stored["spec"] == spec;
            Ok(if keeps { Ok(()) } else { Err(format!("{applied:?}: {stored}")) })
        })
        .await?;
    }
    Ok(stage)
}

#[tokio::test(flavor = "multi_thread")]
async fn crd_of_v1beta1_is_adopted_once_no_object_loses_a_field_and_a_user_approves() -> Result<()>
{
    let mut namespace = String::new();
    let stage = stage_of_the_original(&mut namespace).await?;
    let before = stage.admin.must_get(Kind::CRD, "", CRD).await?["spec"].clone();
    assert_eq!(before["preserveUnknownFields"], true);
    let first = Version::with_spec(1, &size_and_color());
    Version::with_spec(0, &size()).grant(&stage, &[]).await?;
    let spec = json!({"allowedCRDGroups": [GROUP], "crds": "Adopt"});
    stage.module_of_bytes("widgets", &first.bytes, &spec).await?;
    let _host = stage.host().await?;

    // Two widgets have fields that the definition of the module does not name.
    let is_blocked = |one: &Value| says(one, "Blocked", "True", "WouldLoseData");
    let module = stage.admin.until("adoption is blocked", SOON, MODULE, is_blocked).await?;
    let blocked = message(&module, "Blocked");
    assert!(blocked.contains(".spec.note (1), .spec.unknown (1)"), "{blocked}");
    for (name, field) in [("a", "note"), ("b", "unknown")] {
        let without = json!({"spec": {field: null}});
        stage.admin.merge(WIDGET, &namespace, name, "kubectl-edit", &without).await?;
    }
    let is_held = |one: &Value| says(one, "Held", "True", "WouldNarrowCRD");
    let module = stage.admin.until("adoption is held", SOON, MODULE, is_held).await?;
    let held = message(&module, "Held");
    assert!(held.contains(".spec.preserveUnknownFields changes"), "{held}");
    let live = stage.admin.must_get(Kind::CRD, "", CRD).await?;
    assert_eq!(live["spec"], before, "nothing is written without an approval");

    output_with(stage.plane.kubeconfig(), &["modules", "approve", "widgets"]).await?;
    first.until_serving(&stage).await?;
    let live = stage.admin.must_get(Kind::CRD, "", CRD).await?;
    assert_ne!(live["spec"]["preserveUnknownFields"], true);
    assert_eq!(live["spec"]["versions"][0]["subresources"], json!({"status": {}}));
    assert_eq!(live["metadata"]["labels"], json!({"innkeeper.dev/module": "widgets"}));
    for name in ["a", "b"] {
        let is_served = |one: &Value| one["status"]["servedBy"] == 1;
        let at = (WIDGET, namespace.as_str(), name);
        let widget = stage.admin.until("the widget is reconciled", SOON, at, is_served).await?;
        assert_eq!(widget["spec"], json!({"size": 3}));
    }
    Ok(())
}
