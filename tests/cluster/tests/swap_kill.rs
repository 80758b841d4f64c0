//! The host is killed at random writes of a swap: afterwards the revision that was decided on
//! is active, and no object goes back and forth between two versions.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Result, ensure};
use futures::{StreamExt as _, TryStreamExt as _};
use innkeeper_cluster_tests::stage::SOON;
use innkeeper_cluster_tests::{
    Chance, Host, HostOptions, Kind, Proxy, Stage, When, eventually, manifests,
};
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind};
use kube::runtime::{WatchStreamExt as _, watcher};
use serde_json::json;

const PRIMARIES: usize = 100;
const KILLS: usize = 20;

/// Two versions, and what they make of the text `hello`.
const VERSIONS: [(&str, &str); 2] = [("settings", "hello"), ("settings-shouting", "HELLO")];

/// The texts that each ConfigMap of a namespace has had, in turn.
struct Texts {
    by_name: Arc<Mutex<BTreeMap<String, Vec<String>>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Texts {
    fn follow(stage: &Stage, namespace: &str) -> Self {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "ConfigMap"));
        let client = stage.admin.client().clone();
        let api: Api<DynamicObject> = Api::namespaced_with(client, namespace, &resource);
        let by_name: Arc<Mutex<BTreeMap<String, Vec<String>>>> = Arc::default();
        let noted = by_name.clone();
        let task = tokio::spawn(async move {
            let mut objects = watcher(api, watcher::Config::default())
                .default_backoff()
                .applied_objects()
                .boxed();
            while let Ok(Some(object)) = objects.try_next().await {
                let text = object.data["data"]["text"].as_str().unwrap_or_default().to_owned();
                let name = object.metadata.name.unwrap_or_default();
                // The namespace has one of Kubernetes' own.
                if !name.ends_with("-a") {
                    continue;
                }
                let mut noted = noted.lock().unwrap();
                let texts = noted.entry(name).or_default();
                if texts.last() != Some(&text) {
                    texts.push(text);
                }
            }
        });
        Self { by_name, task }
    }

    /// Waits until all have this text, and gives the most that one has had since the last time.
    async fn until_all_have(&self, text: &str) -> Result<usize> {
        eventually(&format!("all have {text}"), SOON, async || {
            let by_name = self.by_name.lock().unwrap();
            let so = by_name.values().filter(|texts| texts.last().unwrap() == text).count();
            Ok(if so == PRIMARIES { Ok(()) } else { Err(format!("{so} of {PRIMARIES} do")) })
        })
        .await?;
        let mut by_name = self.by_name.lock().unwrap();
        let most = by_name.values().map(Vec::len).max().unwrap_or_default();
        for texts in by_name.values_mut() {
            texts.drain(..texts.len() - 1);
        }
        Ok(most)
    }
}

impl Drop for Texts {
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn host_killed_at_any_write_of_a_swap_returns_to_the_decided_revision() -> Result<()> {
    let mut chance = Chance::from_seed()?;
    let stage = Stage::new().await?;
    stage
        .module("settings", "settings", &json!({"allowedCRDGroups": ["example.innkeeper.dev"]}))
        .await?;
    let proxy = Proxy::start(stage.plane.kubeconfig()).await?;
    let options = stage.host_options(&proxy.kubeconfig()).await?;
    let mut host = Host::start(&options)?;
    host.ready(SOON).await?;
    stage.ready("settings").await?;
    let namespace = stage.admin.namespace("swap").await?;
    for index in 0..PRIMARIES {
        let manifest = manifests::settings(&namespace, &format!("s{index:03}"), &["a"], "hello");
        stage.admin.apply(&manifest).await?;
    }
    stage.all_synced(Kind::SETTINGS, &namespace, PRIMARIES).await?;
    let texts = Texts::follow(&stage, &namespace);
    texts.until_all_have("hello").await?;

    for kill in 0..KILLS {
        let (component, text) = VERSIONS[(kill + 1) % 2];
        // The first ten writes are the states of the Module, its copy and the decision; then
        // come the ConfigMaps.
        let nth = 1 + chance.below(if kill % 2 == 0 { 10 } else { 100 });
        let when = if chance.below(2) == 0 { When::Before } else { When::After };
        proxy.at_write(proxy.writes() + nth, when, host.killer());
        stage.push("settings", component).await?;
        let ended = host.ended(SOON).await;
        ensure!(ended.is_ok(), "kill {kill} at write {nth}: the host did not write so much");

        host = Host::start(&options)?;
        host.ready(SOON).await?;
        stage.ready("settings").await?;
        let most = texts.until_all_have(text).await?;
        ensure!(
            most <= 2,
            "kill {kill} at write {nth} ({when:?}): one ConfigMap had {most} texts in turn, so two versions wrote it in turn"
        );
    }
    let host = killed_while_it_waits(&stage, host, &options, &texts).await?;
    let (status, _) = host.stop(Duration::from_secs(10)).await?;
    ensure!(status.success(), "{status}");
    Ok(())
}

/// Killed where a version waits for something: held, rejected, and without the source.
async fn killed_while_it_waits(
    stage: &Stage,
    mut host: Host,
    options: &HostOptions,
    texts: &Texts,
) -> Result<Host> {
    let (serving, text) = VERSIONS[KILLS % 2];
    let digest =
        stage.admin.must_get(Kind::MODULE, "", "settings").await?["status"]["digest"].clone();
    let again = async |host: Host| -> Result<Host> {
        host.kill().await?;
        let mut host = Host::start(options)?;
        host.ready(SOON).await?;
        Ok(host)
    };

    // It would take everything away.
    stage.push("settings", "settings-fewer").await?;
    stage.module_says("settings", "Held", "True", "WouldDelete").await?;
    host = again(host).await?;
    stage.module_says("settings", "Held", "True", "WouldDelete").await?;
    let module = stage.admin.must_get(Kind::MODULE, "", "settings").await?;
    ensure!(module["status"]["digest"] == digest, "{serving} serves: {}", module["status"]);

    let candidate = &module["status"]["candidate"]["digest"];
    let reject = json!({"metadata": {"annotations": {"innkeeper.dev/reject": candidate}}});
    stage.admin.merge(Kind::MODULE, "", "settings", "kubectl-annotate", &reject).await?;
    stage.module_says("settings", "Ready", "False", "Rejected").await?;
    host = again(host).await?;
    stage.module_says("settings", "Ready", "False", "Rejected").await?;

    // Without a source what served is fetched from its copy, as often as it takes.
    stage.admin.delete(Kind::CONFIG_MAP, "innkeeper-modules", "settings").await?;
    for _ in 0..3 {
        host = again(host).await?;
        stage.module_says("settings", "Serving", "True", "RevisionActive").await?;
    }
    let module = stage.admin.must_get(Kind::MODULE, "", "settings").await?;
    ensure!(module["status"]["digest"] == digest, "{serving} serves: {}", module["status"]);
    let most = texts.until_all_have(text).await?;
    ensure!(most == 1, "nothing was written meanwhile: one ConfigMap had {most} texts in turn");
    Ok(host)
}
