//! From the original maintpage operator.

use anyhow::Result;
use innkeeper_cluster_tests::stage::SOON;
use innkeeper_cluster_tests::{Admin, Kind, Stage, kubelet};
use serde_json::{Value, json};

use crate::definitions::v1beta1;
use crate::original::{Original, OriginalObject};
use crate::takeover::{Takeover, controlled_by, uids};

const MAINTPAGE: Kind = Kind::new("maintpage.example.com/v1alpha1", "MaintPage");
const NAME: &str = "example";
const POD: &str = "example-maintpage-pod";
const APP: &str = "httpd";

// The beginnings of the blocks of commands in the README.
const INSTALL: &str = "kubectl apply -f deploy/samples/module-maintpage.yaml";
const STOP: &str = "kubectl --namespace operators scale deployment maintpage-operator";
const ADOPT: &str = "kubectl get maintpages --all-namespaces";
const REPLACE_CRD: &str = "kubectl patch module maintpage";
const RETURN: &str = "kubectl delete module maintpage";
const BLOCKS: [&str; 5] = [INSTALL, STOP, ADOPT, REPLACE_CRD, RETURN];

fn definition() -> Value {
    let schema = json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {
            "maintpageconfig": {"type": "object", "properties": {
                "maintpagetoggle": {"type": "boolean"}, "maintpageimage": {"type": "string"}}},
            "appconfig": {"type": "object", "properties": {
                "appname": {"type": "string"}, "appimage": {"type": "string"}}}}},
        "status": {"type": "object", "properties": {
            "maintpublishstatus": {"type": "string"}}}}});
    let names = ("MaintPage", "maintpages", "maintpage");
    v1beta1(("maintpage.example.com", "v1alpha1"), names, &schema, true)
}

fn maintpage(ns: &str) -> Value {
    json!({"apiVersion": MAINTPAGE.api_version, "kind": MAINTPAGE.kind,
        "metadata": {"name": NAME, "namespace": ns},
        "spec": {
            "maintpageconfig": {"maintpagetoggle": false,
                "maintpageimage": "quay.io/daein/maintpage:latest"},
            "appconfig": {"appname": APP, "appimage": "quay.io/daein/prodpage:latest"}}})
}

/// The same, with the toggle left out.
fn without_toggle(ns: &str) -> Value {
    let mut maintpage = maintpage(ns);
    maintpage["spec"]["maintpageconfig"].as_object_mut().unwrap().remove("maintpagetoggle");
    maintpage
}

/// What the original makes. Its maintenance Pod has no controller reference.
fn objects(ns: &str, toggle: bool) -> [Value; 3] {
    let template = |app: &str, container: &str, image: &str| {
        json!({"metadata": {"labels": {"app": app}},
            "spec": {"containers": [{"name": container, "image": image}]}})
    };
    let mut pod = template(NAME, "maintpage", "quay.io/daein/maintpage:latest");
    pod["apiVersion"] = "v1".into();
    pod["kind"] = "Pod".into();
    pod["metadata"]["name"] = POD.into();
    pod["metadata"]["namespace"] = ns.into();
    let selected = if toggle { NAME } else { APP };
    [
        pod,
        json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": APP, "namespace": ns},
            "spec": {"replicas": 1, "selector": {"matchLabels": {"app": APP}},
                "template": template(APP, APP, "quay.io/daein/prodpage:latest")}}),
        json!({"apiVersion": "v1", "kind": "Service",
            "metadata": {"name": APP, "namespace": ns},
            "spec": {"selector": {"app": selected}, "ports": [
                {"name": "8080-tcp", "protocol": "TCP", "port": 8080, "targetPort": 8080}]}}),
    ]
}

/// The fields that the original compares: it does not look at the Service's selector otherwise
/// than to switch it.
fn original_objects(objects: [Value; 3]) -> Vec<OriginalObject> {
    let [pod, deployment, service] = objects;
    vec![
        OriginalObject::new(pod, &["/spec/containers/0/image"]),
        OriginalObject::new(deployment, &["/spec/template/spec/containers/0/image"]),
        OriginalObject::new(service, &["/spec/selector"]),
    ]
}

/// The children of a `MaintPage`, as an original makes them that sets its references.
fn referenced(ns: &str, toggle: bool, owner: &Value) -> [Value; 3] {
    let [pod, deployment, service] = objects(ns, toggle);
    [pod, controlled_by(deployment, owner), controlled_by(service, owner)]
}

fn at(ns: &str) -> [(Kind, &str, &str); 3] {
    [(Kind::POD, ns, POD), (Kind::DEPLOYMENT, ns, APP), (Kind::SERVICE, ns, APP)]
}

async fn create_all(admin: &Admin, objects: &[Value]) -> Result<()> {
    for object in objects {
        admin.create(&object.to_string()).await?;
    }
    Ok(())
}

async fn pods_run(admin: &Admin, ns: &str) -> Result<()> {
    kubelet::runs_all(admin, ns, ("app", APP), 1).await?;
    kubelet::runs(admin, ns, POD).await?;
    Ok(())
}

async fn owners(admin: &Admin, ns: &str) -> Result<Vec<Value>> {
    let mut owners = Vec::new();
    for (kind, ns, name) in at(ns) {
        let object = admin.must_get(kind, ns, name).await?;
        owners.push(object["metadata"]["ownerReferences"][0]["name"].clone());
    }
    Ok(owners)
}

async fn selector(admin: &Admin, ns: &str) -> Result<Value> {
    Ok(admin.must_get(Kind::SERVICE, ns, APP).await?["spec"]["selector"].clone())
}

/// Whatever fields the original's definition has, the Module's parameter applies. The guest
/// recreates the adopted Pod, of this uid, with a readiness probe; the new Pod never starts.
async fn parameter_switches_at_once(stage: &Stage, ns: &str, adopted: &Value) -> Result<()> {
    let (admin, at) = (&stage.admin, (MAINTPAGE, ns, NAME));
    let is_new = |one: &Value| one["metadata"]["uid"] != *adopted;
    admin.until("the Pod is recreated", SOON, (Kind::POD, ns, POD), is_new).await?;
    let toggled = json!({"spec": {"maintpageconfig": {"maintpagetoggle": true}}});
    admin.edit(at, &toggled).await?;
    stage.says(at, ("Published", "False", "WaitsForPage")).await?;
    let parameters = json!({"spec": {"parameters": {"switch": "Immediately"}}});
    admin.edit((Kind::MODULE, "", "maintpage"), &parameters).await?;
    let is_switched = |one: &Value| one["spec"]["selector"] == json!({"app": NAME});
    admin.until("the page is published", SOON, (Kind::SERVICE, ns, APP), is_switched).await?;
    Ok(())
}

/// Two namespaces with a MaintPage and what the original makes for it.
struct Originals {
    /// The namespace in which the original runs.
    running: String,
    /// The namespace whose objects were left by `kubectl delete --cascade=orphan`.
    orphaned: String,
    /// The MaintPage in the first.
    owner: Value,
}

impl Originals {
    /// Makes them. The original runs on.
    async fn start(takeover: &Takeover) -> Result<(Self, Original)> {
        let admin = takeover.admin();
        let (running, orphaned) =
            (takeover.namespace("running").await?, takeover.namespace("left").await?);
        let owner = admin.apply(&maintpage(&running).to_string()).await?.remove(0);
        admin.apply(&without_toggle(&orphaned).to_string()).await?;
        create_all(admin, &objects(&orphaned, false)).await?;
        let objects = original_objects(referenced(&running, false, &owner));
        let original = Original::start(admin, "maintpage", objects).await?;
        for ns in [&running, &orphaned] {
            pods_run(admin, ns).await?;
        }
        Ok((Self { running, orphaned, owner }, original))
    }

    fn namespaces(&self) -> [&str; 2] {
        [&self.running, &self.orphaned]
    }

    /// The uids of the objects in both namespaces.
    async fn uids(&self, admin: &Admin) -> Result<[Vec<Value>; 2]> {
        Ok([uids(admin, &at(&self.running)).await?, uids(admin, &at(&self.orphaned)).await?])
    }

    /// A user toggles while both work on the MaintPage. The original switches at once; the guest
    /// does not switch it back.
    async fn toggle(&self, admin: &Admin, original: &Original) -> Result<()> {
        let toggled = json!({"spec": {"maintpageconfig": {"maintpagetoggle": true}}});
        admin.edit((MAINTPAGE, &self.running, NAME), &toggled).await?;
        original.set_objects(original_objects(referenced(&self.running, true, &self.owner)));
        Ok(())
    }
}

/// What has no reference waits until the user allows it.
async fn guest_next_to_the_original_adopts_nothing(stage: &Stage, ns: &str) -> Result<()> {
    let message = stage.says((MAINTPAGE, ns, NAME), ("Synced", "False", "Conflict")).await?;
    assert!(message.contains("innkeeper.dev/adopt"), "{message}");
    Ok(())
}

/// Adoption keeps the Deployment and the Service, with these uids.
async fn objects_are_adopted(takeover: &Takeover, ns: &str, before: &[Value]) -> Result<()> {
    let admin = takeover.admin();
    takeover.stage.synced((MAINTPAGE, ns, NAME)).await?;
    assert_eq!(owners(admin, ns).await?, [NAME; 3]);
    let now = uids(admin, &at(ns)).await?;
    assert_eq!(now[1..], before[1..], "Deployment and Service stay the same");
    takeover.has_no_consent((MAINTPAGE, ns, NAME)).await
}

async fn definition_is_the_modules(admin: &Admin) -> Result<()> {
    let definition = admin.must_get(Kind::CRD, "", "maintpages.maintpage.example.com").await?;
    assert_ne!(definition["spec"]["preserveUnknownFields"], true, "{definition:#}");
    assert_eq!(definition["metadata"]["labels"]["innkeeper.dev/module"], "maintpage");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn maintpages_are_handed_over_with_their_objects_and_no_write_is_undone() -> Result<()> {
    // Given an original with its objects.
    let takeover = Takeover::new(&[("maintpage", &BLOCKS)], &[definition()]).await?;
    let (stage, admin) = (&takeover.stage, takeover.admin());
    let (originals, original) = Originals::start(&takeover).await?;
    let before = originals.uids(admin).await?;

    // When a user installs the module next to it, then none undoes what the other writes.
    takeover.run_block("maintpage", INSTALL).await?;
    for ns in originals.namespaces() {
        guest_next_to_the_original_adopts_nothing(stage, ns).await?;
    }
    originals.toggle(admin, &original).await?;
    takeover.run_block("maintpage", STOP).await?;
    let writes = original.writes().await?;
    assert!(writes.len() <= 1, "the two undo each other's writes: {writes:#?}");

    // When the user allows the adoption, then the guest works with the same objects.
    takeover.run_block("maintpage", ADOPT).await?;
    for (ns, before) in originals.namespaces().into_iter().zip(&before) {
        objects_are_adopted(&takeover, ns, before).await?;
    }
    let is_toggled = |one: &Value| one["spec"]["selector"] == json!({"app": NAME});
    let at_service = (Kind::SERVICE, &*originals.running, APP);
    admin.until("the page is published", SOON, at_service, is_toggled).await?;
    let orphaned = &*originals.orphaned;
    assert_eq!(selector(admin, orphaned).await?, json!({"app": APP}), "without a toggle");
    parameter_switches_at_once(stage, orphaned, &before[1][0]).await?;

    // And replaces the definition on request.
    takeover.run_block("maintpage", REPLACE_CRD).await?;
    definition_is_the_modules(admin).await?;
    for ns in originals.namespaces() {
        stage.synced((MAINTPAGE, ns, NAME)).await?;
    }

    // And the objects stay on the way back.
    let before = originals.uids(admin).await?;
    takeover.run_block("maintpage", RETURN).await?;
    assert_eq!(originals.uids(admin).await?, before, "the same objects");
    Ok(())
}
