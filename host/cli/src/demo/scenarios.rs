//! The scenarios: what users do with the systems that the guests come from.

use anyhow::{Context as _, ensure};
use innkeeper_lab::{Api, ApiFailure};
use serde_json::{Value, json};

use super::backend::Backend;
use super::constants::{MODULES, NAMESPACE};
use super::manifests::Components;
use super::resources::{is_true, path};
use super::runner::Runner;
use crate::objects;

/// The samples, which the demo applies first, and their names.
const SAMPLES: [(&str, &str); 5] = [
    ("kabocha", include_str!("../../../../deploy/samples/kabocha.yaml")),
    ("kuri", include_str!("../../../../deploy/samples/kuri.yaml")),
    ("maintpage", include_str!("../../../../deploy/samples/maintpage.yaml")),
    ("podroute", include_str!("../../../../deploy/samples/podroute.yaml")),
    ("postgres", include_str!("../../../../deploy/samples/postgres.yaml")),
];

const MAINTPAGE: (&str, &str, &str) =
    ("maintpage.example.com/v1alpha1", "maintpages", "example-maintpage");
const PODROUTE: (&str, &str, &str) = ("quay.io/v1alpha1", "podroutes", "test-podroute");
const POSTGRESQL: (&str, &str, &str) = ("exp.wheel.jp/v1", "postgresqls", "foodb");
const KABOCHA: (&str, &str, &str) = ("kabocha.example.com/v1alpha1", "kabochas", "example-kabocha");

/// Applies the samples, and runs each scenario. Afterwards it runs until the user stops it, unless
/// `once` is set.
///
/// # Errors
/// The scenario that failed, or [`super::stop::Stopped`].
pub(super) async fn run<B: Backend>(
    runner: &mut Runner<B>,
    components: &Components,
    once: bool,
) -> anyhow::Result<()> {
    start(runner).await?;
    maintenance(runner).await?;
    replicas(runner).await?;
    deleted_pod(runner).await?;
    swap(runner, components).await?;
    family(runner).await?;
    if once {
        return runner.show_action("The demo has shown all scenarios.");
    }
    runner.show_action("The demo has shown all scenarios. It runs until Ctrl-C.")?;
    loop {
        runner.pause().await?;
    }
}

/// The operator loads the guests, and the samples become ready.
async fn start<B: Backend>(runner: &mut Runner<B>) -> anyhow::Result<()> {
    runner.show_action("The operator loads the guests.")?;
    runner
        .until_loaded("all modules are ready", async |api| {
            let all = api.list(MODULES).await?;
            Ok(!all.is_empty() && all.iter().all(|one| is_true(one, "Ready")))
        })
        .await?;
    for (name, sample) in SAMPLES {
        for object in objects::parse(sample, name)? {
            let applied = runner.api().apply(&object, NAMESPACE).await;
            applied.with_context(|| format!("the demo cannot apply the sample {name}"))?;
        }
    }
    runner.show_action(
        "The user applies the samples: an application, three pods, a database, a family.",
    )?;
    for at in [MAINTPAGE, PODROUTE, POSTGRESQL, KABOCHA] {
        runner.until(&format!("{} is ready", at.2), async |api| is_ready(api, at).await).await?;
    }
    let elapsed = runner.elapsed().as_millis();
    runner.show_result(&format!("All samples are ready, {elapsed} ms after the start."))?;
    runner.pause().await
}

/// The toggle moves the Service to the maintenance page and back.
async fn maintenance<B: Backend>(runner: &mut Runner<B>) -> anyhow::Result<()> {
    for (toggle, state) in [(true, "on"), (false, "off")] {
        runner.show_action(&format!("The user switches maintenance {state}."))?;
        let change = json!({"spec": {"maintpageconfig": {"maintpagetoggle": toggle}}});
        patch(runner.api(), MAINTPAGE, "MaintPage", change).await?;
        let mut pods = Vec::new();
        runner
            .until("the Service follows the toggle", async |api| {
                pods = ready_pods(api, "production").await?;
                let are_pages = pods.iter().all(|pod| pod.contains("maintpage-pod") == toggle);
                Ok(!pods.is_empty() && are_pages)
            })
            .await?;
        runner.show_result(&format!("Service production routes to {}", pods.join(", ")))?;
        runner.pause().await?;
    }
    Ok(())
}

/// The number of pods follows the Podroute.
async fn replicas<B: Backend>(runner: &mut Runner<B>) -> anyhow::Result<()> {
    for count in [5, 2] {
        runner.show_action(&format!("The user sets spec.replicas of the Podroute to {count}."))?;
        patch(runner.api(), PODROUTE, "Podroute", json!({"spec": {"replicas": count}})).await?;
        runner
            .until("the Service has as many pods", async |api| {
                Ok(ready_pods(api, "podroute-service").await?.len() == count
                    && is_ready(api, PODROUTE).await?)
            })
            .await?;
        runner.show_result(&format!("Service podroute-service routes to {count} pods"))?;
        runner.pause().await?;
    }
    Ok(())
}

/// The database loses its pod; another pod takes the volume.
async fn deleted_pod<B: Backend>(runner: &mut Runner<B>) -> anyhow::Result<()> {
    let before = ready_pods(runner.api(), "foodb").await?;
    let pod = before.first().context("the database has no pod")?.clone();
    runner.show_action(&format!("A user deletes the database's pod {pod}."))?;
    runner.api().delete(&path(("v1", "pods", &pod))).await?;
    let mut pods = Vec::new();
    runner
        .until("another pod runs the database", async |api| {
            pods = ready_pods(api, "foodb").await?;
            Ok(!pods.is_empty() && !pods.contains(&pod) && is_ready(api, POSTGRESQL).await?)
        })
        .await?;
    let pods = pods.join(", ");
    runner.show_result(&format!("Service foodb routes to {pods}, with the same volume"))?;
    runner.pause().await
}

/// A candidate revision replaces the active revision of a guest.
async fn swap<B: Backend>(runner: &mut Runner<B>, components: &Components) -> anyhow::Result<()> {
    runner.show_action("The user puts a new revision of podroute into its ConfigMap.")?;
    let before = ready_pods(runner.api(), "podroute-service").await?;
    runner.api().apply(&components.candidate(), NAMESPACE).await?;
    runner
        .until("the new revision has written its label", async |api| {
            let deployment = api.get(&path(("apps/v1", "deployments", "pod-route"))).await?;
            Ok(deployment.is_some_and(|one| one["metadata"]["labels"]["guest-version"] == "v2"))
        })
        .await?;
    let after = ready_pods(runner.api(), "podroute-service").await?;
    ensure!(
        after == before,
        "the new revision replaced pods: {} instead of {}",
        after.join(", "),
        before.join(", ")
    );
    runner.show_result(
        "The host previewed the new revision and made it active. It labelled all objects; no pod restarted.",
    )?;
    runner.pause().await
}

/// A user deletes a parent, and the guests delete its children.
async fn family<B: Backend>(runner: &mut Runner<B>) -> anyhow::Result<()> {
    runner.show_action("The user deletes the Kabocha: the guests delete its children first.")?;
    runner.api().delete(&path(KABOCHA)).await?;
    runner
        .until("the Kabocha and its children are gone", async |api| {
            let mut left = api.list(&path(("apps/v1", "deployments", ""))).await?;
            left.extend(api.list(&path(("batch/v1", "jobs", ""))).await?);
            let is_child = |one: &Value| {
                one["metadata"]["name"].as_str().is_some_and(|name| name.starts_with(KABOCHA.2))
            };
            Ok(api.get(&path(KABOCHA)).await?.is_none() && !left.iter().any(is_child))
        })
        .await?;
    runner.show_result("The Kabocha, its children and their objects are gone.")?;
    runner.pause().await
}

/// Whether an object is ready in its current generation. A status with `manageStatus: false` does
/// not name its generation.
async fn is_ready(api: &Api, at: (&str, &str, &str)) -> Result<bool, ApiFailure> {
    let Some(object) = api.get(&path(at)).await? else { return Ok(false) };
    let observed = &object["status"]["observedGeneration"];
    let is_current = observed.is_null() || *observed == object["metadata"]["generation"];
    Ok(is_current && is_true(&object, "Ready"))
}

/// The ready pods of a Service, from its EndpointSlices.
async fn ready_pods(api: &Api, service: &str) -> Result<Vec<String>, ApiFailure> {
    let mut pods = Vec::new();
    for slice in api.list(&path(("discovery.k8s.io/v1", "endpointslices", ""))).await? {
        if slice["metadata"]["labels"]["kubernetes.io/service-name"] != service {
            continue;
        }
        for endpoint in slice["endpoints"].as_array().into_iter().flatten() {
            if endpoint["conditions"]["ready"] == true
                && let Some(name) = endpoint["targetRef"]["name"].as_str()
            {
                pods.push(name.to_owned());
            }
        }
    }
    pods.sort();
    Ok(pods)
}

/// Applies a change to an object of the demo's namespace.
async fn patch(api: &Api, at: (&str, &str, &str), kind: &str, change: Value) -> anyhow::Result<()> {
    let mut object = json!({"apiVersion": at.0, "kind": kind, "metadata": {"name": at.2}});
    for (member, value) in change.as_object().into_iter().flatten() {
        object[member] = value.clone();
    }
    Ok(api.apply(&object, NAMESPACE).await?)
}
