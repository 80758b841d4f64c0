//! The revision history on a real API server: an evicted Pod of a stopped update returns as it was,
//! and a user scales the primary with kubectl, and returns it to an earlier revision.

use anyhow::{Context as _, Result, ensure};
use innkeeper_cluster_tests::stage::SOON;
use innkeeper_cluster_tests::{Kind, Stage, UserFolder, kubelet};
use serde_json::{Value, json};

const CAT_SET: Kind = Kind::new("ctl.enisoc.com/v1", "CatSet");
const REVISION: Kind = Kind::new("apps/v1", "ControllerRevision");
const PODS: [&str; 3] = ["web-0", "web-1", "web-2"];

/// A CatSet of one Pod with this image.
fn cat_set(namespace: &str, image: &str) -> Value {
    json!({"apiVersion": CAT_SET.api_version, "kind": CAT_SET.kind,
        "metadata": {"name": "web", "namespace": namespace},
        "spec": {"serviceName": "web", "replicas": 1, "selector": {"matchLabels": {"app": "web"}},
            "template": template(image)}})
}

fn template(image: &str) -> Value {
    json!({"metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "app", "image": image}]}})
}

/// Waits for a Pod that has this image and is no earlier one, and has it run as a node does.
async fn runs(stage: &Stage, namespace: &str, name: &str, image: &str) -> Result<()> {
    is_there(stage, namespace, name, image).await?;
    kubelet::runs(&stage.admin, namespace, name).await?;
    Ok(())
}

/// Waits for a Pod that has this image.
async fn is_there(stage: &Stage, namespace: &str, name: &str, image: &str) -> Result<()> {
    let has_image = |pod: &Value| {
        pod["spec"]["containers"][0]["image"] == image
            && pod["metadata"]["deletionTimestamp"].is_null()
    };
    let what = format!("{name} has the image {image}");
    stage.admin.until(&what, SOON, (Kind::POD, namespace, name), has_image).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn evicted_pod_returns_as_it_was_and_a_user_scales_and_undoes() -> Result<()> {
    // Given a CatSet with one Pod.
    let (stage, user) = (Stage::new().await?, UserFolder::new()?);
    let spec = json!({"allowedCRDGroups": ["ctl.enisoc.com"]});
    stage.module("cat-set", "cat-set", &spec).await?;
    let _host = stage.host().await?;
    stage.ready("cat-set").await?;
    let namespace = stage.admin.namespace("cats").await?;
    stage.admin.apply(&cat_set(&namespace, "app:1").to_string()).await?;
    let primary = (CAT_SET, &*namespace, "web");
    runs(&stage, &namespace, PODS[0], "app:1").await?;

    // When a user scales it, then the guest follows, one Pod after the other.
    let shell = async |line: &str| user.run(&stage.plane, &format!("{line} -n {namespace}")).await;
    shell("kubectl scale catset web --replicas=3").await?;
    for name in &PODS[1..] {
        runs(&stage, &namespace, name, "app:1").await?;
    }
    let is_scaled = |set: &Value| set["status"]["readyReplicas"] == 3;
    stage.admin.until("three Pods are ready", SOON, primary, is_scaled).await?;
    let scale =
        shell("kubectl get catset web --subresource=scale -o jsonpath='{.status.replicas}'");
    ensure!(scale.await? == "3");

    // When another image fails in the first Pod, and another Pod is evicted.
    let change = json!({"spec": {"template": template("app:2")}});
    stage.admin.edit(primary, &change).await?;
    is_there(&stage, &namespace, PODS[2], "app:2").await?;
    kubelet::ends(&stage.admin, &namespace, PODS[2], "Failed").await?;
    stage.says(primary, ("Synced", "False", "UpdateFailed")).await?;
    let evicted = stage.admin.must_get(Kind::POD, &namespace, PODS[0]).await?;
    stage.admin.delete(Kind::POD, &namespace, PODS[0]).await?;

    // Then it returns as it was.
    let returned = |pod: &Value| pod["metadata"]["uid"] != evicted["metadata"]["uid"];
    let at = (Kind::POD, &*namespace, PODS[0]);
    let pod = stage.admin.until("the evicted Pod returns", SOON, at, returned).await?;
    ensure!(pod["spec"]["containers"][0]["image"] == "app:1", "{pod:#}");
    kubelet::runs(&stage.admin, &namespace, PODS[0]).await?;

    // And nobody changes what is stored.
    let revisions = stage.admin.list(REVISION, &namespace).await?;
    let earlier = revisions.iter().find(|one| one["revision"] == 1).context("no revision 1")?;
    let annotations = &earlier["metadata"]["annotations"];
    ensure!(annotations["innkeeper.dev/revision-api-version"] == CAT_SET.api_version);
    let name = earlier["metadata"]["name"].as_str().unwrap_or_default();
    let forged = json!({"data": {"spec": {"template": template("forged:1")}}});
    let refused = stage.admin.edit((REVISION, &namespace, name), &forged).await;
    let refused = refused.err().context("the API server changed a revision")?;
    ensure!(format!("{refused:#}").contains("field is immutable"), "{refused:#}");

    // When the user looks at the history, then the last change is the present state.
    let history = shell("innkeeper history catset web").await?;
    let rows: Vec<Vec<&str>> =
        history.lines().skip(1).map(|line| line.split_whitespace().collect()).collect();
    ensure!(rows.len() == 2 && rows[0][0] == "2" && rows[0][3] == "<present>", "{history}");
    ensure!(rows[1][0] == "1" && rows[1][3].starts_with(".spec.template"), "{history}");

    // When the user returns to the first revision, then all Pods are as they were.
    let undone = shell("innkeeper undo catset web --to-revision 1").await?;
    ensure!(undone.contains("-      - image: app:2"), "{undone}");
    ensure!(undone.contains(&format!("web returned to revision 1 ({name})")), "{undone}");
    runs(&stage, &namespace, PODS[2], "app:1").await?;
    stage.synced(primary).await?;
    let set = stage.admin.must_get(CAT_SET, &namespace, "web").await?;
    ensure!(
        set["spec"]["template"] == template("app:1") && set["spec"]["replicas"] == 3,
        "{set:#}"
    );
    Ok(())
}
