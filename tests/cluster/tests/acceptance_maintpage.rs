//! The story of maintpage with real containers: whoever asks by the name of the Service sees the
//! application, the maintenance page after the toggle, and the application again. Needs root;
//! `cargo xtask test` runs it.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

use std::process::Stdio;
use std::sync::{Arc, Mutex};

use anyhow::Result;
use innkeeper_cluster_tests::stage::SOON;
use innkeeper_cluster_tests::{Client, Kind, NodeStage, eventually};
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

const MAINTPAGE: Kind = Kind::new("maintpage.example.com/v1alpha1", "MaintPage");
const SAMPLE: &str = include_str!("../../../deploy/samples/maintpage.yaml");
const NAME: &str = "example-maintpage";
const URL: &str = "http://production:8080/";
const PRODUCTION: &str = "Production Page !";
const MAINTENANCE: &str = "Maintenance Page !";

/// Somebody who asks for the page again and again, and what was answered, in order.
struct Visitor {
    _process: Child,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Visitor {
    /// Asks from the client's pod; what is not answered within 2 seconds is `LOST`.
    fn start(client: &Client) -> Result<Self> {
        let ask = format!("while :; do timeout 2 wget -q -O - {URL} || echo LOST; done");
        let mut process = Command::from(client.command(&["sh", "-c", &ask]))
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()?;
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let collected = Arc::clone(&seen);
        tokio::spawn(async move {
            while let Ok(Some(line)) = lines.next_line().await {
                collected.lock().unwrap().push(line);
            }
        });
        Ok(Self { _process: process, seen })
    }

    /// Waits until the last twenty answers are this page: whatever was on its way has arrived.
    async fn until_sees(&self, page: &str) -> Result<()> {
        eventually(&format!("visitors see {page:?}"), SOON, async || {
            let seen = self.seen.lock().unwrap();
            let last = &seen[seen.len().saturating_sub(20)..];
            Ok(if last.len() == 20 && last.iter().all(|one| one == page) {
                Ok(())
            } else {
                Err(format!("the last answers are {last:?}"))
            })
        })
        .await
    }

    /// What was seen, each run of the same answer as one, with its length.
    fn story(&self) -> Vec<(String, usize)> {
        let mut story: Vec<(String, usize)> = Vec::new();
        for line in self.seen.lock().unwrap().iter() {
            match story.last_mut() {
                Some((last, count)) if last == line => *count += 1,
                _ => story.push((line.clone(), 1)),
            }
        }
        story
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs root: cargo xtask test runs it"]
async fn visitors_see_the_application_the_maintenance_page_and_the_application_and_lose_no_request()
-> Result<()> {
    let modules = [("maintpage", "maintpage.example.com")];
    let (stage, _host, namespace) = NodeStage::serving(&modules).await?;
    let (admin, ns) = (&stage.admin, &*namespace);
    admin.apply_in(ns, SAMPLE).await?;
    let client = stage.client(ns).await?;
    client.until_page(URL, PRODUCTION).await?;
    stage.until_ready(ns, "example-maintpage-maintpage-pod").await?;

    let visitor = Visitor::start(&client)?;
    visitor.until_sees(PRODUCTION).await?;
    for (toggle, page) in [(true, MAINTENANCE), (false, PRODUCTION)] {
        let patch = json!({"spec": {"maintpageconfig": {"maintpagetoggle": toggle}}});
        admin.merge(MAINTPAGE, ns, NAME, "kubectl-edit", &patch).await?;
        visitor.until_sees(page).await?;
        let described = ["describe", "maintpage", NAME, "--namespace", ns];
        let described = stage.kubectl_prints(&described).await?;
        let status = if toggle { "Published" } else { "Not Published" };
        let line = described.lines().find(|line| line.contains("Maintpublishstatus")).unwrap();
        let (_, said) = line.split_once(':').unwrap();
        assert_eq!(said.trim(), status, "{described}");
    }

    // An image that is changed by hand comes back before anybody sees it.
    let patch = json!({"spec": {"template": {"spec": {"containers": [
        {"name": "production", "image": "quay.io/example/maintenance:latest"}]}}}});
    let strategic = patch.to_string();
    let edit = ["patch", "deployment", "production", "--namespace", ns, "--patch", &strategic];
    stage.kubectl_prints(&edit).await?;
    let at = (Kind::DEPLOYMENT, ns, "production");
    admin
        .until("the image is set back and rolled out", SOON, at, |one| {
            let container = &one["spec"]["template"]["spec"]["containers"][0];
            container["image"] == "quay.io/example/production:latest"
                && one["status"]["observedGeneration"] == one["metadata"]["generation"]
                && one["status"]["updatedReplicas"] == 1
                && one["status"]["replicas"] == 1
                && one["status"]["availableReplicas"] == 1
        })
        .await?;
    visitor.until_sees(PRODUCTION).await?;

    let story = visitor.story();
    let pages: Vec<&str> = story.iter().map(|(page, _)| &**page).collect();
    assert_eq!(pages, [PRODUCTION, MAINTENANCE, PRODUCTION], "answers in order: {story:?}");
    Ok(())
}
