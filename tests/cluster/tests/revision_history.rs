//! The revision history on a real API server: an evicted Pod of a stopped update returns as it was,
//! and a user scales the primary with kubectl, and returns it to an earlier revision.

use anyhow::{Context as _, Result, ensure};
use innkeeper_cluster_tests::stage::SOON;
use innkeeper_cluster_tests::{Host, Kind, Stage, UserFolder, kubelet};
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

/// A user and a CatSet `web`.
struct Cats {
    stage: Stage,
    user: UserFolder,
    namespace: String,
    _host: Host,
}

impl Cats {
    /// Starts a host with the guest, and applies a CatSet of one Pod with the image `app:1`.
    async fn start() -> Result<Self> {
        let (stage, user) = (Stage::new().await?, UserFolder::new()?);
        let spec = json!({"allowedCRDGroups": ["ctl.enisoc.com"]});
        stage.module("cat-set", "cat-set", &spec).await?;
        let host = stage.host().await?;
        stage.ready("cat-set").await?;
        let namespace = stage.admin.namespace("cats").await?;
        stage.admin.apply(&cat_set(&namespace, "app:1").to_string()).await?;
        runs(&stage, &namespace, PODS[0], "app:1").await?;
        Ok(Self { stage, user, namespace, _host: host })
    }

    fn primary(&self) -> (Kind, &str, &str) {
        (CAT_SET, &self.namespace, "web")
    }

    /// Runs a command as the user, in the namespace.
    async fn shell(&self, line: &str) -> Result<String> {
        self.user.run(&self.stage.plane, &format!("{line} -n {}", self.namespace)).await
    }

    /// The guest follows a user who scales, one Pod after the other.
    async fn scale_to_three(&self) -> Result<()> {
        self.shell("kubectl scale catset web --replicas=3").await?;
        for name in &PODS[1..] {
            runs(&self.stage, &self.namespace, name, "app:1").await?;
        }
        let is_scaled = |set: &Value| set["status"]["readyReplicas"] == 3;
        self.stage.admin.until("three Pods are ready", SOON, self.primary(), is_scaled).await?;
        let scale = "kubectl get catset web --subresource=scale -o jsonpath='{.status.replicas}'";
        ensure!(self.shell(scale).await? == "3");
        Ok(())
    }

    /// Gives the CatSet an image that fails in the first Pod of the update.
    async fn fail_an_update(&self) -> Result<()> {
        let (stage, namespace) = (&self.stage, &*self.namespace);
        let change = json!({"spec": {"template": template("app:2")}});
        stage.admin.edit(self.primary(), &change).await?;
        is_there(stage, namespace, PODS[2], "app:2").await?;
        kubelet::ends(&stage.admin, namespace, PODS[2], "Failed").await?;
        stage.says(self.primary(), ("Synced", "False", "UpdateFailed")).await?;
        Ok(())
    }

    /// Evicts the Pod that is not updated, and waits for its successor.
    async fn evict_a_pod(&self) -> Result<Value> {
        let (admin, namespace) = (&self.stage.admin, &*self.namespace);
        let evicted = admin.must_get(Kind::POD, namespace, PODS[0]).await?;
        admin.delete(Kind::POD, namespace, PODS[0]).await?;
        let returned = |pod: &Value| pod["metadata"]["uid"] != evicted["metadata"]["uid"];
        let at = (Kind::POD, namespace, PODS[0]);
        let pod = admin.until("the evicted Pod returns", SOON, at, returned).await?;
        kubelet::runs(admin, namespace, PODS[0]).await?;
        Ok(pod)
    }

    /// Checks that nobody can change the first revision; gives its name.
    async fn stored_revision_is_immutable(&self) -> Result<String> {
        let (admin, namespace) = (&self.stage.admin, &*self.namespace);
        let revisions = admin.list(REVISION, namespace).await?;
        let first = revisions.iter().find(|one| one["revision"] == 1).context("no revision 1")?;
        let annotations = &first["metadata"]["annotations"];
        ensure!(annotations["innkeeper.dev/revision-api-version"] == CAT_SET.api_version);
        let name = first["metadata"]["name"].as_str().unwrap_or_default();
        let forged = json!({"data": {"spec": {"template": template("forged:1")}}});
        let refused = admin.edit((REVISION, namespace, name), &forged).await;
        let refused = refused.err().context("the API server changed a revision")?;
        ensure!(format!("{refused:#}").contains("field is immutable"), "{refused:#}");
        Ok(name.to_owned())
    }

    /// Checks that the history has two revisions, and that the last is the present state.
    async fn history_names_the_present_revision(&self) -> Result<()> {
        let history = self.shell("innkeeper history catset web").await?;
        let rows: Vec<Vec<&str>> =
            history.lines().skip(1).map(|line| line.split_whitespace().collect()).collect();
        ensure!(rows.len() == 2 && rows[0][0] == "2" && rows[0][3] == "<present>", "{history}");
        ensure!(rows[1][0] == "1" && rows[1][3].starts_with(".spec.template"), "{history}");
        Ok(())
    }

    /// Returns to the first revision, of this name.
    async fn undo(&self, revision: &str) -> Result<()> {
        let undone = self.shell("innkeeper undo catset web --to-revision 1").await?;
        ensure!(undone.contains("-      - image: app:2"), "{undone}");
        ensure!(undone.contains(&format!("web returned to revision 1 ({revision})")), "{undone}");
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn evicted_pod_returns_as_it_was_and_a_user_scales_and_undoes() -> Result<()> {
    // Given a CatSet that a user has scaled, and whose update fails.
    let cats = Cats::start().await?;
    cats.scale_to_three().await?;
    cats.fail_an_update().await?;

    // When another Pod is evicted, then it returns as it was.
    let pod = cats.evict_a_pod().await?;
    ensure!(pod["spec"]["containers"][0]["image"] == "app:1", "{pod:#}");

    // And the stored revisions are what the user reads of the history.
    let first = cats.stored_revision_is_immutable().await?;
    cats.history_names_the_present_revision().await?;

    // When the user returns to the first revision, then all Pods are as they were.
    cats.undo(&first).await?;
    runs(&cats.stage, &cats.namespace, PODS[2], "app:1").await?;
    let set = cats.stage.synced(cats.primary()).await?;
    ensure!(
        set["spec"]["template"] == template("app:1") && set["spec"]["replicas"] == 3,
        "{set:#}"
    );
    Ok(())
}
