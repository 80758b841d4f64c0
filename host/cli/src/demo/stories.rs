//! The stories of the systems that the guests come from.

use anyhow::{Context as _, ensure};
use innkeeper_lab::{Api, ApiFailure, Resource};
use serde_json::{Value, json};

use super::cluster::Components;
use super::teller::Teller;
use crate::objects;

/// Where the stories happen.
pub(super) const NAMESPACE: &str = "demo";

/// What is applied at first, and what each is called.
const SAMPLES: [(&str, &str); 5] = [
    ("kabocha", include_str!("../../../../deploy/samples/kabocha.yaml")),
    ("kuri", include_str!("../../../../deploy/samples/kuri.yaml")),
    ("maintpage", include_str!("../../../../deploy/samples/maintpage.yaml")),
    ("podroute", include_str!("../../../../deploy/samples/podroute.yaml")),
    ("postgres", include_str!("../../../../deploy/samples/postgres.yaml")),
];

/// The kinds of the primaries.
pub(super) const PRIMARIES: [(&str, &str, &str); 6] = [
    ("MaintPage", "maintpage.example.com/v1alpha1", "maintpages"),
    ("Podroute", "quay.io/v1alpha1", "podroutes"),
    ("PostgreSQL", "exp.wheel.jp/v1", "postgresqls"),
    ("Kabocha", "kabocha.example.com/v1alpha1", "kabochas"),
    ("Imo", "imo.example.com/v1alpha1", "imos"),
    ("Kuri", "kuri.example.com/v1alpha1", "kuris"),
];

const MAINTPAGE: (&str, &str, &str) =
    ("maintpage.example.com/v1alpha1", "maintpages", "example-maintpage");
const PODROUTE: (&str, &str, &str) = ("quay.io/v1alpha1", "podroutes", "test-podroute");
const POSTGRESQL: (&str, &str, &str) = ("exp.wheel.jp/v1", "postgresqls", "foodb");
const KABOCHA: (&str, &str, &str) = ("kabocha.example.com/v1alpha1", "kabochas", "example-kabocha");

/// An object of the demo's namespace, or all of the kind if the name is empty.
pub(super) fn path((api_version, plural, name): (&str, &str, &str)) -> String {
    let resource = Resource {
        api_version: api_version.to_owned(),
        plural: plural.to_owned(),
        namespaced: true,
    };
    resource.path(NAMESPACE, name)
}

/// Whether a condition of an object is true.
pub(super) fn is_true(object: &Value, condition: &str) -> bool {
    let all = object["status"]["conditions"].as_array();
    let mut all = all.into_iter().flatten();
    all.any(|one| one["type"] == condition && one["status"] == "True")
}

/// Whether an object is ready, as it is now.
async fn is_ready(api: &Api, at: (&str, &str, &str)) -> Result<bool, ApiFailure> {
    let Some(object) = api.get(&path(at)).await? else { return Ok(false) };
    let is_seen = object["status"]["observedGeneration"] == object["metadata"]["generation"];
    Ok(is_seen && is_true(&object, "Ready"))
}

/// The pods to which a Service leads.
async fn answering(api: &Api, service: &str) -> Result<Vec<String>, ApiFailure> {
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

/// Applies what all begins with, and tells each story; goes on until somebody has seen enough, unless `once`.
pub(super) async fn tell(
    teller: &mut Teller,
    components: &Components,
    once: bool,
) -> anyhow::Result<()> {
    teller.say("The guests are put into the cluster, and the operator compiles them.")?;
    teller
        .until_before("all modules serve", async |api| {
            let all = api.list("/apis/innkeeper.dev/v1alpha1/modules").await?;
            Ok(!all.is_empty() && all.iter().all(|one| is_true(one, "Ready")))
        })
        .await?;
    for (name, sample) in SAMPLES {
        for object in objects::parse(sample, name)? {
            let applied = teller.api().apply(&object, NAMESPACE).await;
            applied.with_context(|| format!("the sample {name} cannot be applied"))?;
        }
    }
    teller.say("Samples are applied: an application, three pods, a database, a family.")?;
    for at in [MAINTPAGE, PODROUTE, POSTGRESQL, KABOCHA] {
        teller.until(&format!("{} is ready", at.2), async |api| is_ready(api, at).await).await?;
    }
    let since = teller.since();
    teller.tell(&format!("All are ready, {} ms after the start.", since.as_millis()))?;
    teller.look().await?;

    maintenance(teller).await?;
    replicas(teller).await?;
    lost_pod(teller).await?;
    swap(teller, components).await?;
    family(teller).await?;
    teller.say("That was all.")?;
    if once {
        return Ok(());
    }
    // Until somebody has seen enough.
    loop {
        teller.look().await?;
    }
}

async fn patch(
    teller: &Teller,
    at: (&str, &str, &str),
    kind: &str,
    change: Value,
) -> anyhow::Result<()> {
    let mut object = json!({"apiVersion": at.0, "kind": kind, "metadata": {"name": at.2}});
    for (member, value) in change.as_object().into_iter().flatten() {
        object[member] = value.clone();
    }
    Ok(teller.api().apply(&object, NAMESPACE).await?)
}

/// The toggle moves the Service to the maintenance page, and back.
async fn maintenance(teller: &mut Teller) -> anyhow::Result<()> {
    for (toggle, says) in [(true, "on: the Service leads to the page"), (false, "off again")] {
        teller.say(&format!("Maintenance is switched {says}."))?;
        let change = json!({"spec": {"maintpageconfig": {"maintpagetoggle": toggle}}});
        patch(teller, MAINTPAGE, "MaintPage", change).await?;
        let mut pods = Vec::new();
        teller
            .until("the Service follows", async |api| {
                pods = answering(api, "production").await?;
                let are_pages = pods.iter().all(|pod| pod.contains("maintpage-pod") == toggle);
                Ok(!pods.is_empty() && are_pages)
            })
            .await?;
        teller.tell(&format!("production is answered by {}", pods.join(", ")))?;
        teller.look().await?;
    }
    Ok(())
}

/// The number of pods follows.
async fn replicas(teller: &mut Teller) -> anyhow::Result<()> {
    for count in [5, 2] {
        teller.say(&format!("The Podroute is to have {count} pods."))?;
        patch(teller, PODROUTE, "Podroute", json!({"spec": {"replicas": count}})).await?;
        teller
            .until("as many pods answer", async |api| {
                Ok(answering(api, "podroute-service").await?.len() == count
                    && is_ready(api, PODROUTE).await?)
            })
            .await?;
        teller.tell(&format!("podroute-service is answered by {count} pods"))?;
        teller.look().await?;
    }
    Ok(())
}

/// The pod of the database is deleted; another one takes its place, with its volume.
async fn lost_pod(teller: &mut Teller) -> anyhow::Result<()> {
    let before = answering(teller.api(), "foodb").await?;
    let pod = before.first().context("the database has no pod")?.clone();
    teller.say(&format!("Somebody deletes the database's pod {pod}."))?;
    teller.api().delete(&path(("v1", "pods", &pod))).await?;
    let mut now = Vec::new();
    teller
        .until("another pod has the database", async |api| {
            now = answering(api, "foodb").await?;
            Ok(!now.is_empty() && !now.contains(&pod) && is_ready(api, POSTGRESQL).await?)
        })
        .await?;
    teller.tell(&format!("foodb is answered by {}, with the same volume", now.join(", ")))?;
    teller.look().await
}

/// Another version of a guest, while it runs.
async fn swap(teller: &mut Teller, components: &Components) -> anyhow::Result<()> {
    teller.say("Another version of podroute is put into its ConfigMap, while it serves.")?;
    let before = answering(teller.api(), "podroute-service").await?;
    teller.api().apply(&components.second(), NAMESPACE).await?;
    teller
        .until("the second version has written its label", async |api| {
            let deployment = api.get(&path(("apps/v1", "deployments", "pod-route"))).await?;
            Ok(deployment.is_some_and(|one| one["metadata"]["labels"]["guest-version"] == "v2"))
        })
        .await?;
    let now = answering(teller.api(), "podroute-service").await?;
    ensure!(
        now == before,
        "pods were made anew: {} instead of {}",
        now.join(", "),
        before.join(", ")
    );
    teller.tell("It was previewed, serves, and has put its label on all; no pod was made anew.")?;
    teller.look().await
}

/// A parent is deleted, and nothing of it is left.
async fn family(teller: &mut Teller) -> anyhow::Result<()> {
    teller.say("The Kabocha is deleted: its children go first, and what they made.")?;
    teller.api().delete(&path(KABOCHA)).await?;
    teller
        .until("nothing is left of the family", async |api| {
            let mut left = api.list(&path(("apps/v1", "deployments", ""))).await?;
            left.extend(api.list(&path(("batch/v1", "jobs", ""))).await?);
            let is_its = |one: &Value| {
                one["metadata"]["name"].as_str().is_some_and(|name| name.starts_with(KABOCHA.2))
            };
            Ok(api.get(&path(KABOCHA)).await?.is_none() && !left.iter().any(is_its))
        })
        .await?;
    teller.tell("Nothing of it is left.")?;
    teller.look().await
}
