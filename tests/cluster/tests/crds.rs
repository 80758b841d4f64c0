//! CustomResourceDefinitions of guests on a real API server: they come before the version that
//! needs them, they only grow, they stay, and a foreign one is used as it is.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

#[path = "crds/adoption.rs"]
mod adoption;
use anyhow::Result;
use innkeeper_cluster_tests::stage::{SOON, message, output, output_with, says};
use innkeeper_cluster_tests::{AuditFilter, Host, Kind, Stage, eventually};
use innkeeper_tiny_guests::Tiny;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

const WIDGET: Kind = Kind::new("crds.example.com/v1", "Widget");
const GROUP: &str = "crds.example.com";
const CRD: &str = "widgets.crds.example.com";
const MODULE: (Kind, &str, &str) = (Kind::MODULE, "", "widgets");

/// A definition of widgets whose spec has these properties.
fn definition(spec: &Value) -> Value {
    json!({
        "apiVersion": Kind::CRD.api_version, "kind": Kind::CRD.kind,
        "metadata": {"name": CRD},
        "spec": {
            "group": GROUP, "scope": "Namespaced",
            "names": {"kind": "Widget", "listKind": "WidgetList", "plural": "widgets", "singular": "widget"},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "properties": spec},
                    "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                }}},
            }],
        },
    })
}

/// A guest that says which version it is, in the status of each widget.
struct Version {
    bytes: Vec<u8>,
    digest: String,
}

impl Version {
    fn new(number: u32, definition: &Value) -> Self {
        let manifest = json!({"name": "widgets", "version": format!("{number}.0.0"),
            "primary": {"apiVersion": WIDGET.api_version, "kind": WIDGET.kind, "plural": "widgets"},
            "crds": [definition]});
        let status = json!({"status": {"servedBy": number}});
        let bytes = Tiny::default()
            .manifest(&manifest.to_string())
            .outcome(0, &status.to_string())
            .component();
        let digest = hex::encode(Sha256::digest(&bytes));
        Self { bytes, digest }
    }

    fn with_spec(number: u32, spec: &Value) -> Self {
        Self::new(number, &definition(spec))
    }

    async fn push(&self, stage: &Stage) -> Result<()> {
        stage.push_bytes("widgets", &self.bytes).await
    }

    /// Grants the module's account what this version needs.
    async fn grant(&self, stage: &Stage, flags: &[&str]) -> Result<()> {
        let folder = tempfile::tempdir()?;
        let file = folder.path().join("guest.wasm");
        std::fs::write(&file, &self.bytes)?;
        let file = file.to_string_lossy();
        let arguments = [&["rbac", &*file, "--module", "widgets"], flags].concat();
        stage.admin.apply(&output(&arguments).await?).await?;
        Ok(())
    }

    async fn until_serving(&self, stage: &Stage) -> Result<()> {
        let what = format!("{} serves", &self.digest[..12]);
        let serves = |one: &Value| {
            one["status"]["digest"] == self.digest.as_str()
                && says(one, "Ready", "True", "RevisionActive")
        };
        stage.admin.until(&what, SOON, MODULE, serves).await?;
        Ok(())
    }
}

/// A stage with the module `widgets`, and a host.
async fn stage(first: &Version, allowed_crd_groups: &[&str]) -> Result<(Stage, Host, String)> {
    let stage = Stage::new().await?;
    // What the account may hangs on the kinds only, and those are of all versions.
    Version::with_spec(0, &size()).grant(&stage, &[]).await?;
    stage
        .module_of_bytes("widgets", &first.bytes, &json!({"allowedCRDGroups": allowed_crd_groups}))
        .await?;
    let host = stage.host().await?;
    let namespace = stage.admin.namespace("crds").await?;
    Ok((stage, host, namespace))
}

/// A new widget is worked on by this version.
async fn served_by(stage: &Stage, namespace: &str, name: &str, number: u32) -> Result<Value> {
    let widget = json!({"apiVersion": WIDGET.api_version, "kind": WIDGET.kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"size": 3, "color": "red"}});
    // Discovery may lag behind the definition.
    eventually("widgets are served", SOON, async || {
        Ok(stage.admin.create(&widget.to_string()).await.map_err(|error| format!("{error:#}")))
    })
    .await?;
    let what = format!("{name} is served by {number}");
    let at = (WIDGET, namespace, name);
    stage.admin.until(&what, SOON, at, |one| one["status"]["servedBy"] == number).await
}

/// Waits until the Module says that it is not ready, for this reason and with these words.
async fn until_refused(stage: &Stage, reason: &str, words: &str) -> Result<Value> {
    let is_reported =
        |one: &Value| says(one, "Ready", "False", reason) && message(one, "Ready").contains(words);
    stage.admin.until(&format!("the Module says {words:?}"), SOON, MODULE, is_reported).await
}

/// The definition as it is installed, without what the server says of it.
async fn installed(stage: &Stage) -> Result<(Value, Value)> {
    let live = stage.admin.must_get(Kind::CRD, "", CRD).await?;
    Ok((live["spec"].clone(), live["metadata"]["uid"].clone()))
}

fn size() -> Value {
    json!({"size": {"type": "integer"}})
}

fn size_and_color() -> Value {
    json!({"size": {"type": "integer"}, "color": {"type": "string"}})
}

#[tokio::test(flavor = "multi_thread")]
async fn crd_that_grows_is_installed_before_the_revision_that_needs_it() -> Result<()> {
    let first = Version::with_spec(1, &size());
    let (stage, _host, namespace) = stage(&first, &[GROUP]).await?;
    first.until_serving(&stage).await?;
    let widget = served_by(&stage, &namespace, "a", 1).await?;
    assert_eq!(widget["spec"], json!({"size": 3}), "a field that is not defined is pruned");

    // As long as the definition cannot be installed the version does not serve, and the old one
    // does.
    let second = Version::with_spec(2, &size_and_color());
    second.grant(&stage, &["--without-crds"]).await?;
    second.push(&stage).await?;
    until_refused(&stage, "CRDForbidden", CRD).await?;
    served_by(&stage, &namespace, "b", 1).await?;
    let (before, uid) = installed(&stage).await?;
    assert!(
        before
            .pointer("/versions/0/schema/openAPIV3Schema/properties/spec/properties/color")
            .is_none()
    );

    second.grant(&stage, &[]).await?;
    second.until_serving(&stage).await?;
    let widget = served_by(&stage, &namespace, "c", 2).await?;
    assert_eq!(widget["spec"], json!({"size": 3, "color": "red"}));
    let (grown, same) = installed(&stage).await?;
    assert!(
        grown
            .pointer("/versions/0/schema/openAPIV3Schema/properties/spec/properties/color")
            .is_some()
    );
    assert_eq!(uid, same);

    // The older version again: it needs no more than what is installed, which stays.
    first.push(&stage).await?;
    first.until_serving(&stage).await?;
    assert_eq!(installed(&stage).await?, (grown.clone(), uid.clone()));
    let widget = served_by(&stage, &namespace, "d", 1).await?;
    assert_eq!(widget["spec"], json!({"size": 3, "color": "red"}));

    // The Module goes, and the definition with all widgets stays.
    stage.admin.delete(Kind::MODULE, "", "widgets").await?;
    stage.admin.until_gone(SOON, MODULE).await?;
    assert_eq!(installed(&stage).await?, (grown, uid));
    assert_eq!(stage.admin.list(WIDGET, &namespace).await?.len(), 4);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn crd_that_accepts_less_blocks_its_candidate_and_names_the_field() -> Result<()> {
    let first = Version::with_spec(1, &size_and_color());
    let (stage, _host, namespace) = stage(&first, &[GROUP]).await?;
    first.until_serving(&stage).await?;
    served_by(&stage, &namespace, "a", 1).await?;
    let before = installed(&stage).await?;

    // Another field instead: what is stored would lose its color.
    let other_field = json!({"size": {"type": "integer"}, "hue": {"type": "string"}});
    let other_type = json!({"size": {"type": "string"}, "color": {"type": "string"}});
    for (number, spec, place) in [
        (2, other_type, ".spec.size has another type"),
        (3, other_field.clone(), ".spec.color is gone"),
    ] {
        let version = Version::with_spec(number, &spec);
        version.push(&stage).await?;
        let module = until_refused(&stage, "CRDIncompatible", place).await?;
        module_reports_the_blocked_candidate(&module, &version, place);
        assert_eq!(module["status"]["digest"], first.digest.as_str());
        assert!(says(&module, "Serving", "True", "RevisionActive"), "{module:#}");
        let widget = served_by(&stage, &namespace, &format!("b{number}"), 1).await?;
        assert_eq!(widget["spec"], json!({"size": 3, "color": "red"}));
        assert_eq!(installed(&stage).await?, before);
        commands_report_the_blocked_candidate(&stage, &version, place).await?;
    }

    let last = Version::with_spec(3, &other_field);
    approving_annotation_changes_nothing(&stage, &last).await?;
    assert_eq!(installed(&stage).await?, before);
    served_by(&stage, &namespace, "c", 1).await?;

    // A person may change what is installed, and then it serves by itself.
    stage.admin.apply(&definition(&other_field).to_string()).await?;
    last.until_serving(&stage).await?;
    stage.module_says("widgets", "Held", "False", "NoApprovalNeeded").await?;
    Ok(())
}

fn module_reports_the_blocked_candidate(module: &Value, version: &Version, place: &str) {
    assert!(says(module, "Blocked", "True", "CRDIncompatible"), "{module:#}");
    assert!(says(module, "Held", "False", "NoApprovalNeeded"), "{module:#}");
    let blocked = message(module, "Blocked");
    assert!(blocked.contains(place) && blocked.contains(CRD), "{blocked}");
    assert!(blocked.contains("an approval does not help"), "{blocked}");
    let candidate = &module["status"]["candidate"];
    assert_eq!(candidate["digest"], version.digest.as_str());
    assert_eq!(candidate["reason"], "CRDIncompatible", "{candidate:#}");
    assert!(candidate["message"].as_str().unwrap().contains(place), "{candidate:#}");
}

/// The commands show the same, and do not approve it.
async fn commands_report_the_blocked_candidate(
    stage: &Stage,
    version: &Version,
    place: &str,
) -> Result<()> {
    let modules = async |arguments: &[&str]| {
        output_with(stage.plane.kubeconfig(), &[&["modules"], arguments].concat()).await
    };
    let listed = modules(&["list"]).await?;
    assert!(listed.contains("Rejected CRDIncompatible"), "{listed}");
    let output = modules(&["describe", "widgets"]).await?;
    assert!(output.contains("Blocked=True CRDIncompatible") && output.contains(place), "{output}");
    let in_vain = modules(&["approve", "widgets", &version.digest[..12]]).await.unwrap_err();
    assert!(in_vain.to_string().contains(place), "{in_vain}");
    Ok(())
}

/// The host looks at the definition again, and does not approve the candidate.
async fn approving_annotation_changes_nothing(stage: &Stage, version: &Version) -> Result<()> {
    let approve = json!({"metadata": {"annotations": {"innkeeper.dev/approve": version.digest}}});
    let mark = stage.plane.audit()?.mark()?;
    stage.admin.merge(Kind::MODULE, "", "widgets", "kubectl-annotate", &approve).await?;
    eventually("the definition is looked at again", SOON, async || {
        let events = stage.plane.audit()?.since(mark, &AuditFilter::new())?;
        let looked = events.iter().any(|event| event.verb == "get" && event.name == CRD);
        Ok(if looked { Ok(()) } else { Err("it is not".to_owned()) })
    })
    .await?;
    until_refused(stage, "CRDIncompatible", ".spec.color is gone").await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn crd_that_is_deleted_is_installed_again_and_new_primaries_are_reconciled() -> Result<()> {
    let first = Version::with_spec(1, &size());
    let (stage, _host, namespace) = stage(&first, &[GROUP]).await?;
    first.until_serving(&stage).await?;
    served_by(&stage, &namespace, "a", 1).await?;
    let (before, uid) = installed(&stage).await?;

    stage.admin.delete(Kind::CRD, "", CRD).await?;
    eventually("the definition is installed again", SOON, async || {
        let live = stage.admin.get(Kind::CRD, "", CRD).await?;
        let is_another = live.as_ref().is_some_and(|live| live["metadata"]["uid"] != uid);
        Ok(if is_another { Ok(()) } else { Err(format!("it is {live:?}")) })
    })
    .await?;
    assert_eq!(installed(&stage).await?.0, before);
    first.until_serving(&stage).await?;
    served_by(&stage, &namespace, "b", 1).await?;
    assert!(stage.admin.get(WIDGET, &namespace, "a").await?.is_none());
    let reasons = ["CRDDeleted", "CRDReinstalled"];
    let events = stage.admin.list(Kind::EVENT, "default").await?;
    for reason in reasons {
        assert!(events.iter().any(|event| event["reason"] == reason), "{reason}: {events:#?}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn crd_of_another_owner_is_used_unchanged() -> Result<()> {
    let first = Version::with_spec(1, &size_and_color());
    let (stage, _host, namespace) = stage(&first, &[]).await?;
    // It is not there, and the Module grants no group.
    let module = until_refused(
        &stage,
        "CRDGroupNotAllowed",
        "add crds.example.com to spec.allowedCRDGroups",
    )
    .await?;
    assert!(message(&module, "Ready").contains(CRD), "{module:#}");
    assert!(stage.admin.get(Kind::CRD, "", CRD).await?.is_none());

    // It is there, without the version.
    let mut theirs = definition(&size());
    theirs["spec"]["versions"][0]["name"] = "v1beta1".into();
    stage.admin.apply(&theirs.to_string()).await?;
    until_refused(&stage, "CRDVersionMissing", "does not serve v1").await?;

    // With the version it does, although it has less than the guest's own, and nobody touches it.
    let mut both = definition(&size());
    let mut old = theirs["spec"]["versions"][0].clone();
    old["storage"] = false.into();
    both["spec"]["versions"].as_array_mut().unwrap().push(old);
    stage.admin.apply(&both.to_string()).await?;
    first.until_serving(&stage).await?;
    let before = installed(&stage).await?;
    let widget = served_by(&stage, &namespace, "a", 1).await?;
    assert_eq!(widget["spec"], json!({"size": 3}));

    // Also if the group is granted: it is still foreign.
    let granted = json!({"spec": {"allowedCRDGroups": [GROUP]}});
    stage.admin.merge(Kind::MODULE, "", "widgets", "kubectl-edit", &granted).await?;
    let second = Version::with_spec(2, &size_and_color());
    second.push(&stage).await?;
    second.until_serving(&stage).await?;
    served_by(&stage, &namespace, "b", 2).await?;
    assert_eq!(installed(&stage).await?, before);
    let live = stage.admin.must_get(Kind::CRD, "", CRD).await?;
    let managers = live["metadata"]["managedFields"].as_array().unwrap();
    let managers: Vec<&str> =
        managers.iter().filter_map(|entry| entry["manager"].as_str()).collect();
    assert!(managers.iter().all(|manager| !manager.contains("innkeeper")), "{managers:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn crd_with_a_conversion_webhook_is_refused() -> Result<()> {
    let mut converts = definition(&size());
    converts["spec"]["conversion"] = json!({"strategy": "Webhook", "webhook": {
        "conversionReviewVersions": ["v1"],
        "clientConfig": {"service": {"name": "converter", "namespace": "default"}}}});
    let (stage, _host, namespace) = stage(&Version::new(1, &converts), &[GROUP]).await?;
    let message = "spec.conversion: a conversion webhook is not supported";
    until_refused(&stage, "InvalidManifest", message).await?;
    assert!(stage.admin.get(Kind::CRD, "", CRD).await?.is_none());

    // Nor does it displace one that serves.
    let first = Version::with_spec(1, &size());
    first.push(&stage).await?;
    first.until_serving(&stage).await?;
    let before = installed(&stage).await?;
    Version::new(2, &converts).push(&stage).await?;
    until_refused(&stage, "InvalidManifest", message).await?;
    served_by(&stage, &namespace, "a", 1).await?;
    assert_eq!(installed(&stage).await?, before);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn crd_is_blocked_while_a_stored_object_does_not_fit() -> Result<()> {
    let first = Version::with_spec(1, &size());
    let (stage, _host, namespace) = stage(&first, &[GROUP]).await?;
    first.until_serving(&stage).await?;
    served_by(&stage, &namespace, "a", 1).await?;

    // An administrator narrows the definition; what is stored stays.
    let narrow = |spec: Value| {
        let mut spec = spec;
        spec["size"]["maximum"] = 2.into();
        spec
    };
    stage.admin.apply(&definition(&narrow(size())).to_string()).await?;
    let before = installed(&stage).await?;
    let second = Version::with_spec(2, &narrow(size_and_color()));
    second.push(&stage).await?;
    let words = format!("Widget {namespace}/a: .spec.size is more than maximum");
    let module = until_refused(&stage, "CRDIncompatible", &words).await?;
    assert!(says(&module, "Blocked", "True", "CRDIncompatible"), "{module:#}");
    assert_eq!(installed(&stage).await?, before);

    // As soon as the object fits, the definition is installed, and is the module's.
    let small = json!({"spec": {"size": 2}});
    stage.admin.merge(WIDGET, &namespace, "a", "kubectl-edit", &small).await?;
    second.until_serving(&stage).await?;
    let live = stage.admin.must_get(Kind::CRD, "", CRD).await?;
    assert_eq!(live["metadata"]["labels"], json!({"innkeeper.dev/module": "widgets"}));
    let owners = &live["metadata"]["ownerReferences"];
    assert!(owners.is_null(), "{owners}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn crd_with_an_owner_or_a_lossy_storage_version_is_refused() -> Result<()> {
    let first = Version::with_spec(1, &size_and_color());
    let (stage, _host, namespace) = stage(&first, &[GROUP]).await?;
    first.until_serving(&stage).await?;
    served_by(&stage, &namespace, "a", 1).await?;
    let before = installed(&stage).await?;

    let mut owned = definition(&size_and_color());
    owned["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["more"] =
        json!({"type": "string"});
    owned["metadata"]["ownerReferences"] = json!([{"apiVersion": "v1", "kind": "Namespace",
        "name": "gone", "uid": "00000000-0000-0000-0000-000000000000"}]);
    Version::new(2, &owned).push(&stage).await?;
    let message = "metadata.ownerReferences: is not the guest's to give";
    until_refused(&stage, "InvalidManifest", message).await?;

    let mut moved = definition(&size_and_color());
    moved["spec"]["versions"][0]["storage"] = false.into();
    let mut second = definition(&size())["spec"]["versions"][0].clone();
    second["name"] = "v2".into();
    moved["spec"]["versions"].as_array_mut().unwrap().push(second);
    Version::new(3, &moved).push(&stage).await?;
    let message = "version v2 would be stored and takes less than v1: .spec.color is gone";
    until_refused(&stage, "CRDIncompatible", message).await?;

    let mut shut = size_and_color();
    shut["shape"] = json!({"type": "string"});
    let mut shut = definition(&shut);
    shut["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["not"] = json!({"required": ["spec"]});
    Version::new(4, &shut).push(&stage).await?;
    until_refused(&stage, "CRDIncompatible", "the object has another not").await?;

    assert_eq!(installed(&stage).await?, before);
    let widget = stage.admin.must_get(WIDGET, &namespace, "a").await?;
    assert_eq!(widget["spec"], json!({"size": 3, "color": "red"}));
    Ok(())
}
