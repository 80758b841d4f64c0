//! The guest maintpage on a real API server: manifests and objects of the original operator, the
//! toggle, what is changed by hand, and names that must not be mixed up.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

#[path = "maintpage/sample_page.rs"]
mod sample_page;
#[path = "maintpage/toggle.rs"]
mod toggle;

use std::time::Duration;

use anyhow::Result;
use innkeeper_cluster_tests::stage::{MODULES, SOON};
use innkeeper_cluster_tests::{Admin, AuditFilter, Host, Kind, Stage, eventually, kubelet};
use serde_json::{Value, json};

use self::sample_page::SamplePage;
use self::toggle::{MAINTPAGE, toggled, until_published, until_routed};

const SAMPLE: &str = include_str!("../../../deploy/samples/maintpage.yaml");
const CRD: &str = include_str!("../../../guests/maintpage/crd.json");

/// As users of the original operator have it.
const OLD: &str = "
apiVersion: maintpage.example.com/v1alpha1
kind: MaintPage
metadata:
  name: example
spec:
  maintpageconfig:
    maintpagetoggle: false
    maintpageimage: quay.io/daein/maintpage:latest
  appconfig:
    appname: httpd
    appimage: quay.io/daein/prodpage:latest
";

/// What the guest makes, in the order of [`originals`].
const KINDS: [Kind; 3] = [Kind::POD, Kind::DEPLOYMENT, Kind::SERVICE];

/// A stage with the module serving, and a namespace.
async fn stage() -> Result<(Stage, Host, String)> {
    let stage = Stage::new().await?;
    let (host, namespace) = serve(&stage).await?;
    Ok((stage, host, namespace))
}

async fn serve(stage: &Stage) -> Result<(Host, String)> {
    stage
        .module("maintpage", "maintpage", &json!({"allowedCRDGroups": ["maintpage.example.com"]}))
        .await?;
    let host = stage.host().await?;
    stage.ready("maintpage").await?;
    Ok((host, stage.admin.namespace("pages").await?))
}

/// Waits until all that a `MaintPage` wants now is applied and reported.
async fn synced(stage: &Stage, namespace: &str, name: &str) -> Result<Value> {
    stage.synced((MAINTPAGE, namespace, name)).await
}

fn is_owned_by(object: &Value, maintpage: &str) -> bool {
    let owner = &object["metadata"]["ownerReferences"][0];
    owner["kind"] == "MaintPage" && owner["name"] == maintpage && owner["controller"] == true
}

/// The children of a `MaintPage` are exactly those that its manifest says.
async fn assert_children(admin: &Admin, ns: &str, maintpage: &Value) -> Result<()> {
    let name = maintpage["metadata"]["name"].as_str().unwrap();
    let spec = &maintpage["spec"];
    let app = spec["appconfig"]["appname"].as_str().unwrap();
    let page = format!("{name}-maintpage-pod");
    for (kind, child) in [(Kind::POD, &*page), (Kind::DEPLOYMENT, app), (Kind::SERVICE, app)] {
        let all = admin.list(kind, ns).await?;
        let owned = all.iter().filter(|one| is_owned_by(one, name));
        let names: Vec<_> = owned.map(|one| one["metadata"]["name"].clone()).collect();
        assert_eq!(names, [child], "the {kind} of {name}");
    }
    let pod = admin.must_get(Kind::POD, ns, &page).await?;
    assert_eq!(pod["metadata"]["labels"], json!({ "app": name }));
    assert_eq!(pod["spec"]["containers"].as_array().unwrap().len(), 1);
    assert_eq!(pod["spec"]["containers"][0]["name"], "maintpage");
    assert_eq!(pod["spec"]["containers"][0]["image"], spec["maintpageconfig"]["maintpageimage"]);
    let deployment = &admin.must_get(Kind::DEPLOYMENT, ns, app).await?["spec"];
    assert_eq!(deployment["replicas"], 1);
    assert_eq!(deployment["selector"], json!({"matchLabels": {"app": app}}));
    let template = &deployment["template"];
    assert_eq!(template["metadata"]["labels"], json!({ "app": app }));
    assert_eq!(template["spec"]["containers"].as_array().unwrap().len(), 1);
    assert_eq!(template["spec"]["containers"][0]["name"], app);
    assert_eq!(template["spec"]["containers"][0]["image"], spec["appconfig"]["appimage"]);
    let service = &admin.must_get(Kind::SERVICE, ns, app).await?["spec"];
    assert_eq!(service["selector"], json!({ "app": app }));
    assert_eq!(
        service["ports"],
        json!([{"name": "8080-tcp", "protocol": "TCP", "port": 8080, "targetPort": 8080}])
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn original_manifests_work_unchanged_and_the_toggle_moves_the_service_and_back() -> Result<()>
{
    // Given the manifests of the sample and of a user of the original.
    let (stage, _host, namespace) = stage().await?;
    let (admin, ns) = (&stage.admin, &*namespace);
    for manifest in [SAMPLE, OLD] {
        let applied = admin.apply_in(ns, manifest).await?.swap_remove(0);
        let name = applied["metadata"]["name"].as_str().unwrap();
        let synced = synced(&stage, ns, name).await?;
        let given: Value = serde_yaml_ng::from_str(manifest)?;
        assert_eq!(synced["spec"], given["spec"], "nothing was taken from it, nothing added");
        assert_eq!(synced["status"]["maintpublishstatus"], "Not Published");
        assert_children(admin, ns, &synced).await?;
    }

    // When a user toggles the first, then its Service moves as soon as the page answers.
    let sample = SamplePage { stage: &stage, ns };
    sample.both_sides_answer().await?;
    let condition = sample.switch_waits_for_a_page_that_does_not_answer().await?;
    sample.command_of_the_condition_switches_at_once(&condition).await?;
    sample.service_moves_once_the_page_answers().await?;
    sample.service_moves_back().await?;

    // And nothing of it touches the other MaintPage.
    until_routed(admin, ns, "httpd", "httpd").await?;
    sample.objects_go_with_the_maintpage().await
}

/// What the module has asked of one resource since a mark, but for its watches.
fn asked(stage: &Stage, mark: u64, resource: &str) -> Result<Vec<String>> {
    let account = format!("system:serviceaccount:{MODULES}:maintpage");
    let filter = AuditFilter::new().impersonated(&account).resource(resource);
    let events = stage.plane.audit()?.since(mark, &filter)?;
    let asked = events.iter().filter(|one| one.verb != "watch");
    Ok(asked.map(|one| format!("{} {} {}", one.verb, one.name, one.code)).collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn drift_is_repaired_from_the_watch_with_one_write() -> Result<()> {
    let (stage, _host, namespace) = stage().await?;
    let (admin, ns) = (&stage.admin, &*namespace);
    admin.apply_in(ns, OLD).await?;
    synced(&stage, ns, "example").await?;
    stage.quiet(Duration::from_secs(2)).await?;
    let mark = stage.plane.audit()?.mark()?;

    let image = json!({"spec": {"template": {"spec": {"containers": [
        {"name": "httpd", "image": "example.com/other:1"}]}}}});
    admin.edit((Kind::DEPLOYMENT, ns, "httpd"), &image).await?;
    let at = (Kind::DEPLOYMENT, ns, "httpd");
    let is_back = |one: &Value| {
        one["spec"]["template"]["spec"]["containers"][0]["image"] == "quay.io/daein/prodpage:latest"
    };
    admin.until("the image is back", SOON, at, is_back).await?;
    let other = json!({"spec": {"selector": {"app": "example"}}});
    admin.edit((Kind::SERVICE, ns, "httpd"), &other).await?;
    until_routed(admin, ns, "httpd", "httpd").await?;
    let other = json!({"spec": {"selector": {"app": "httpd", "track": "canary"}}});
    admin.edit((Kind::SERVICE, ns, "httpd"), &other).await?;
    until_routed(admin, ns, "httpd", "httpd").await?;
    // A Pod's image can be changed in place, by somebody and back.
    let before = admin.must_get(Kind::POD, ns, "example-maintpage-pod").await?;
    let image =
        json!({"spec": {"containers": [{"name": "maintpage", "image": "example.com/other:1"}]}});
    let strategic = json!({"apiVersion": "v1", "kind": "Pod", "spec": image["spec"],
        "metadata": {"name": "example-maintpage-pod", "namespace": ns}});
    admin.apply_as("somebody", true, &strategic.to_string()).await?;
    let at = (Kind::POD, ns, "example-maintpage-pod");
    let is_back =
        |one: &Value| one["spec"]["containers"][0]["image"] == "quay.io/daein/maintpage:latest";
    let after = admin.until("the page's image is back", SOON, at, is_back).await?;
    assert_eq!(after["metadata"]["uid"], before["metadata"]["uid"], "the same Pod");

    // One write for each change, and nothing was asked that was not answered by the watches.
    // Nothing polls: neither the guest nor the Module says that anything is to be looked at again.
    stage.quiet(Duration::from_secs(3)).await?;
    assert_eq!(asked(&stage, mark, "deployments")?, ["patch httpd 200"]);
    assert_eq!(asked(&stage, mark, "services")?, ["patch httpd 200"; 2]);
    assert_eq!(asked(&stage, mark, "pods")?, ["patch example-maintpage-pod 200"]);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn changed_appname_keeps_the_old_children_until_the_new_ones_answer() -> Result<()> {
    let (stage, _host, namespace) = stage().await?;
    let (admin, ns) = (&stage.admin, &*namespace);
    admin.apply_in(ns, OLD).await?;
    kubelet::runs_all(admin, ns, ("app", "httpd"), 1).await?;
    synced(&stage, ns, "example").await?;
    let page = admin.must_get(Kind::POD, ns, "example-maintpage-pod").await?;

    let at = (MAINTPAGE, ns, "example");
    admin.edit(at, &json!({"spec": {"appconfig": {"appname": "nginx"}}})).await?;
    until_routed(admin, ns, "nginx", "nginx").await?;
    synced(&stage, ns, "example").await?;
    stage.quiet(Duration::from_secs(1)).await?;
    for kind in [Kind::DEPLOYMENT, Kind::SERVICE] {
        let old = admin.must_get(kind, ns, "httpd").await?;
        assert!(old["metadata"]["deletionTimestamp"].is_null(), "{kind} httpd still serves");
    }
    until_routed(admin, ns, "httpd", "httpd").await?;

    kubelet::runs_all(admin, ns, ("app", "nginx"), 1).await?;
    for kind in [Kind::DEPLOYMENT, Kind::SERVICE] {
        admin.until_gone(SOON, (kind, ns, "httpd")).await?;
    }
    let synced = synced(&stage, ns, "example").await?;
    assert_children(admin, ns, &synced).await?;
    let after = admin.must_get(Kind::POD, ns, "example-maintpage-pod").await?;
    assert_eq!(after["metadata"]["uid"], page["metadata"]["uid"], "the page stays");

    // Another image of the page is another image of the same Pod.
    admin.edit(at, &json!({"spec": {"maintpageconfig": {"maintpageimage": "page:2"}}})).await?;
    let pod = (Kind::POD, ns, "example-maintpage-pod");
    let has_it = |one: &Value| one["spec"]["containers"][0]["image"] == "page:2";
    let after = admin.until("the Pod has the new image", SOON, pod, has_it).await?;
    assert_eq!(after["metadata"]["uid"], page["metadata"]["uid"], "in place");

    // One that has ended is created again.
    kubelet::ends(admin, ns, "example-maintpage-pod", "Failed").await?;
    let is_another = |one: &Value| one["metadata"]["uid"] != page["metadata"]["uid"];
    admin.until("the page is created again", SOON, pod, is_another).await?;
    Ok(())
}

/// All that is in a namespace of the kinds that the guest makes, but for the statuses.
async fn everything(admin: &Admin, ns: &str) -> Result<Vec<Value>> {
    let mut all = Vec::new();
    for kind in KINDS {
        for one in admin.list(kind, ns).await? {
            let metadata = &one["metadata"];
            all.push(json!([
                metadata["uid"],
                metadata["labels"],
                metadata["ownerReferences"],
                one["spec"]
            ]));
        }
    }
    Ok(all)
}

#[tokio::test(flavor = "multi_thread")]
async fn clashing_names_are_refused_and_nothing_is_written() -> Result<()> {
    // A definition from before the rule, which somebody else has installed: it is used as it is.
    let stage = Stage::new().await?;
    let mut crd: Value = serde_json::from_str(CRD)?;
    let schema = &mut crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    let rules = schema.as_object_mut().unwrap().remove("x-kubernetes-validations");
    assert!(rules.is_some(), "the definition has rules");
    for crd in stage.admin.apply(&crd.to_string()).await? {
        stage.admin.until_established(&crd).await?;
    }
    let (_host, namespace) = serve(&stage).await?;
    let (admin, ns) = (&stage.admin, &*namespace);
    admin.apply_in(ns, OLD).await?;
    kubelet::runs_all(admin, ns, ("app", "httpd"), 1).await?;
    synced(&stage, ns, "example").await?;
    stage.quiet(Duration::from_secs(1)).await?;
    let before = everything(admin, ns).await?;

    // One that is there, and one that is new.
    let at = (MAINTPAGE, ns, "example");
    admin.edit(at, &json!({"spec": {"appconfig": {"appname": "example"}}})).await?;
    let message = stage.says(at, ("Synced", "False", "AppnameIsOwnName")).await?;
    assert!(message.contains("give one of them another name"), "{message}");
    stage.says(at, ("Ready", "False", "AppnameIsOwnName")).await?;
    let new = OLD.replace("name: example\n", "name: other\n").replace("httpd", "other");
    admin.apply_in(ns, &new).await?;
    stage.says((MAINTPAGE, ns, "other"), ("Synced", "False", "AppnameIsOwnName")).await?;

    // Pods of another MaintPage's application would be taken for the page.
    let clash =
        OLD.replace("name: example\n", "name: httpd\n").replace("appname: httpd", "appname: x");
    admin.apply_in(ns, &clash).await?;
    let message = stage.says((MAINTPAGE, ns, "httpd"), ("Synced", "False", "NameClash")).await?;
    assert!(message.contains("Deployment httpd"), "{message}");

    // The names of another one are not shared.
    let second = OLD.replace("name: example\n", "name: second\n");
    admin.apply_in(ns, &second).await?;
    let message = stage.says((MAINTPAGE, ns, "second"), ("Synced", "False", "Conflict")).await?;
    assert!(message.contains("MaintPage example"), "{message}");

    stage.quiet(Duration::from_secs(1)).await?;
    assert_eq!(everything(admin, ns).await?, before, "nothing is made, nothing is touched");

    // Set right again, it goes on.
    admin.edit(at, &json!({"spec": {"appconfig": {"appname": "httpd"}}})).await?;
    synced(&stage, ns, "example").await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn crd_refuses_specs_that_are_invalid() -> Result<()> {
    let (stage, _host, namespace) = stage().await?;
    let (admin, ns) = (&stage.admin, &*namespace);
    let refused = async |manifest: &str| {
        admin.apply_in(ns, manifest).await.map_err(|error| format!("{error:#}")).unwrap_err()
    };
    let message = refused(&OLD.replace("httpd", "example")).await;
    assert!(message.contains("must differ from the MaintPage's name"), "{message}");
    let message = refused(&OLD.replace("toggle: false", "toggle: \"false\"")).await;
    assert!(message.contains("maintpagetoggle") && message.contains("boolean"), "{message}");
    let message =
        refused(&OLD.replace("name: example", &format!("name: {}", "a".repeat(64)))).await;
    assert!(message.contains("at most 63 characters"), "{message}");
    let message = refused(&OLD.replace("httpd", "Httpd")).await;
    assert!(message.contains("spec.appconfig.appname"), "{message}");
    let message = refused(&OLD.replace("appname", "app")).await;
    assert!(message.contains("spec.appconfig"), "{message}");
    assert!(admin.list(MAINTPAGE, ns).await?.is_empty());
    assert!(admin.list(Kind::POD, ns).await?.is_empty());
    Ok(())
}

/// The objects of the original operator, without owners, as it made them.
fn originals() -> [Value; 3] {
    let template = |app: &str, container: &str, image: &str| {
        json!({"metadata": {"labels": {"app": app}},
            "spec": {"containers": [{"name": container, "image": image}]}})
    };
    let mut pod = template("example", "maintpage", "quay.io/daein/maintpage:latest");
    pod["apiVersion"] = "v1".into();
    pod["kind"] = "Pod".into();
    pod["metadata"]["name"] = "example-maintpage-pod".into();
    let template = template("httpd", "httpd", "quay.io/daein/prodpage:latest");
    [
        pod,
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "httpd"},
            "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "httpd"}},
                "template": template}}),
        // The page was published.
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "httpd"},
            "spec": {"selector": {"app": "example"},
                "ports": [{"name": "8080-tcp", "protocol": "TCP", "port": 8080, "targetPort": 8080}]}}),
    ]
}

/// Creates what the original made in a namespace, and has its Pods run. Gives the objects, in the
/// order of [`KINDS`].
async fn create_originals(admin: &Admin, ns: &str) -> Result<Vec<Value>> {
    // Without it no pod can be made, as it is in a namespace that has just come.
    let account = (Kind::SERVICE_ACCOUNT, ns, "default");
    admin.until("the namespace has its account", SOON, account, |_| true).await?;
    let mut created = Vec::new();
    for mut original in originals() {
        original["metadata"]["namespace"] = ns.into();
        created.push(admin.create(&original.to_string()).await?);
    }
    kubelet::runs_all(admin, ns, ("app", "httpd"), 1).await?;
    kubelet::runs(admin, ns, "example-maintpage-pod").await?;
    Ok(created)
}

/// The objects as they are now.
async fn present(admin: &Admin, ns: &str, objects: &[Value]) -> Result<Vec<Value>> {
    let mut present = Vec::new();
    for (kind, one) in KINDS.into_iter().zip(objects) {
        let name = one["metadata"]["name"].as_str().unwrap();
        present.push(admin.must_get(kind, ns, name).await?);
    }
    Ok(present)
}

/// The application gets its new pod, with a probe, and the Service moves to it. Only then the guest
/// creates the page again: a Pod cannot be given a probe.
async fn page_is_created_again_with_a_probe_after_the_switch(
    stage: &Stage,
    ns: &str,
) -> Result<()> {
    let (admin, at) = (&stage.admin, (MAINTPAGE, ns, "example"));
    let at_pod = (Kind::POD, ns, "example-maintpage-pod");
    let page = admin.must_get(Kind::POD, ns, at_pod.2).await?;
    assert!(page["spec"]["containers"][0]["readinessProbe"].is_null());
    eventually("the application answers", SOON, async || {
        kubelet::runs_those_there(admin, ns, ("app", "httpd")).await?;
        let deployment = admin.must_get(Kind::DEPLOYMENT, ns, "httpd").await?;
        let status = &deployment["status"];
        let is_done = status["updatedReplicas"] == 1 && status["replicas"] == 1;
        Ok(if is_done { Ok(()) } else { Err(status.to_string()) })
    })
    .await?;
    admin.edit(at, &toggled(false)).await?;
    until_routed(admin, ns, "httpd", "httpd").await?;
    let is_another = |one: &Value| {
        one["metadata"]["uid"] != page["metadata"]["uid"]
            && one["spec"]["containers"][0]["readinessProbe"]["tcpSocket"]["port"] == 8080
    };
    admin.until("the page is created again with a probe", SOON, at_pod, is_another).await?;
    kubelet::runs(admin, ns, at_pod.2).await?;
    stage.says(at, ("Ready", "True", "AllReady")).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn originals_objects_are_adopted_without_an_interruption() -> Result<()> {
    // Given the objects of the original, which has published the page.
    let (stage, _host, namespace) = stage().await?;
    let (admin, ns, at) = (&stage.admin, &*namespace, (MAINTPAGE, &*namespace, "example"));
    let before = create_originals(admin, ns).await?;

    // When its MaintPage comes, then the guest leaves them alone and says how to adopt them.
    admin.apply_in(ns, &OLD.replace("toggle: false", "toggle: true")).await?;
    stage.says(at, ("Synced", "False", "Conflict")).await?;
    let hint = stage.says(at, ("Ready", "False", "PageNotAdopted")).await?;
    let command = format!("kubectl -n {ns} annotate maintpage example innkeeper.dev/adopt=true");
    assert!(hint.contains(&command), "{hint}");
    for now in present(admin, ns, &before).await? {
        assert!(now["metadata"]["ownerReferences"].is_null(), "left alone without a word");
    }

    // When the user follows, then they stay the same, and the page stays published.
    let adopt = json!({"metadata": {"annotations": {"innkeeper.dev/adopt": "true"}}});
    admin.edit(at, &adopt).await?;
    synced(&stage, ns, "example").await?;
    for (now, one) in present(admin, ns, &before).await?.iter().zip(&before) {
        assert_eq!(now["metadata"]["uid"], one["metadata"]["uid"], "the same object: {now:#}");
        assert!(is_owned_by(now, "example"), "{now:#}");
    }
    until_routed(admin, ns, "httpd", "example").await?;
    until_published(&stage, ns, "example", ("Published", "Toggled")).await?;

    // And the guest switches back as it does for its own objects.
    page_is_created_again_with_a_probe_after_the_switch(&stage, ns).await
}
