//! A scenario of maintpage with real containers: a client that asks by the name of the Service sees
//! the application, the maintenance page after the toggle, and the application again. Needs root;
//! `cargo xtask test` runs it.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

use anyhow::Result;
use innkeeper_cluster_tests::screens::Screens;
use innkeeper_cluster_tests::stage::SOON;
use innkeeper_cluster_tests::{Kind, Lines, NodeStage, PodClient};
use serde_json::Value;

const MAINTPAGE: Kind = Kind::new("maintpage.example.com/v1alpha1", "MaintPage");
const NAMESPACE: &str = "default";
const NAME: &str = "example-maintpage";
const URL: &str = "http://production:8080/";
const PRODUCTION: &str = "Production Page !";
const MAINTENANCE: &str = "Maintenance Page !";

/// Somebody who asks for the page again and again, and what was answered, in order.
struct Visitor {
    seen: Lines,
}

impl Visitor {
    /// Asks from the client's pod; what is not answered within 10 seconds is `LOST`.
    fn start(client: &PodClient) -> Result<Self> {
        let ask = format!("while :; do timeout 10 wget -q -O - {URL} || echo LOST; done");
        Ok(Self { seen: client.follow(&ask)? })
    }

    /// Waits until the last twenty answers are this page: whatever was on its way has arrived.
    async fn until_sees(&self, page: &str) -> Result<()> {
        let what = format!("visitors see {page:?}");
        self.seen
            .until(&what, SOON, |seen| {
                let last = &seen[seen.len().saturating_sub(20)..];
                let is_seen = last.len() == 20 && last.iter().all(|one| one == page);
                if is_seen { Ok(()) } else { Err(format!("the last answers are {last:?}")) }
            })
            .await
    }

    /// The answers in order: each run of equal answers as one, with its length.
    fn runs(&self) -> Vec<(String, usize)> {
        let mut runs: Vec<(String, usize)> = Vec::new();
        for line in self.seen.so_far() {
            match runs.last_mut() {
                Some((last, count)) if *last == line => *count += 1,
                _ => runs.push((line, 1)),
            }
        }
        runs
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs root: cargo xtask test runs it"]
async fn maintpage_toggle_switches_visitors_without_a_lost_request() -> Result<()> {
    let stage = NodeStage::new().await?;
    let mut screens = Screens::new(&stage, "maintpage", "An application and its maintenance page");
    screens
        .say("An application behind a Service, next to it a page for the time of its maintenance.");
    screens.show("cat deploy/samples/maintpage.yaml").await?;
    screens.show("kubectl apply -f deploy/samples/maintpage.yaml").await?;
    let client = stage.client(NAMESPACE).await?;
    client.until_page(URL, PRODUCTION).await?;
    stage.until_ready(NAMESPACE, "example-maintpage-maintpage-pod").await?;
    stage.says((MAINTPAGE, NAMESPACE, NAME), ("Ready", "True", "AllReady")).await?;
    screens.show("kubectl get maintpage,deployment,service,pod -l '!component'").await?;
    assert!(screens.show(&ask()).await?.contains(PRODUCTION));

    let visitor = Visitor::start(&client)?;
    visitor.until_sees(PRODUCTION).await?;
    screens.say("The toggle moves the Service to the page, without a request lost.");
    toggle_moves_the_visitors(&stage, &mut screens, &visitor, true).await?;
    screens.say("And back.");
    toggle_moves_the_visitors(&stage, &mut screens, &visitor, false).await?;
    screens.say("What somebody changes by hand is set back, before a visitor has seen it.");
    changed_image_is_set_back(&stage, &mut screens).await?;
    visitor.until_sees(PRODUCTION).await?;
    let image = "{.spec.template.spec.containers[0].image}";
    screens.show(&format!("kubectl get deployment production -o jsonpath='{image}'")).await?;

    let runs = visitor.runs();
    let pages: Vec<&str> = runs.iter().map(|(page, _)| &**page).collect();
    assert_eq!(pages, [PRODUCTION, MAINTENANCE, PRODUCTION], "answers in order: {runs:?}");
    screens.end()
}

/// The command of a client that asks for the page.
fn ask() -> String {
    format!("kubectl exec client -- wget -q -O - {URL}")
}

async fn toggle_moves_the_visitors(
    stage: &NodeStage,
    screens: &mut Screens<'_>,
    visitor: &Visitor,
    toggle: bool,
) -> Result<()> {
    let (page, status) =
        if toggle { (MAINTENANCE, "Published") } else { (PRODUCTION, "Not Published") };
    let patch = format!(r#"{{"spec":{{"maintpageconfig":{{"maintpagetoggle":{toggle}}}}}}}"#);
    let patch = format!("kubectl patch maintpage {NAME} --type merge --patch '{patch}'");
    screens.show(&patch).await?;
    visitor.until_sees(page).await?;
    let at = (MAINTPAGE, NAMESPACE, NAME);
    let has = |one: &Value| one["status"]["maintpublishstatus"] == status;
    stage.admin.until("the status says it", SOON, at, has).await?;
    let described = format!("kubectl describe maintpage {NAME} | grep Maintpublishstatus");
    let output = screens.show(&described).await?;
    assert_eq!(output.split_once(':').unwrap().1.trim(), status, "{output}");
    assert!(screens.show(&ask()).await?.contains(page));
    Ok(())
}

async fn changed_image_is_set_back(stage: &NodeStage, screens: &mut Screens<'_>) -> Result<()> {
    let set =
        "kubectl set image deployment/production production=quay.io/example/maintenance:latest";
    screens.show(set).await?;
    let at = (Kind::DEPLOYMENT, NAMESPACE, "production");
    let is_rolled_out = |one: &Value| {
        let container = &one["spec"]["template"]["spec"]["containers"][0];
        container["image"] == "quay.io/example/production:latest"
            && one["status"]["observedGeneration"] == one["metadata"]["generation"]
            && one["status"]["updatedReplicas"] == 1
            && one["status"]["replicas"] == 1
            && one["status"]["availableReplicas"] == 1
    };
    stage.admin.until("the image is set back and rolled out", SOON, at, is_rolled_out).await?;
    Ok(())
}
