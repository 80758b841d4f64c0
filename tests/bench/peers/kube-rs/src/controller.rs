//! The reconciler: a Deployment and a Service of each Bench, and its status.

use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt as _, future};
use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec};
use k8s_openapi::api::core::v1::{
    Container, ContainerPort, PodSpec, PodTemplateSpec, Service, ServicePort, ServiceSpec,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, LabelSelector, Time};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::api::{Api, ObjectMeta, Patch, PatchParams};
use kube::runtime::controller::{Action, Config, Controller};
use kube::runtime::{WatchStreamExt as _, predicates, reflector, watcher};
use kube::{Client, Resource as _, ResourceExt as _};
use serde_json::json;

use crate::bench::{Bench, BenchStatus};

/// The field manager.
const MANAGER: &str = "kube-rs-peer";

/// Why a Bench is not reconciled.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The API server refused a request.
    #[error(transparent)]
    Kube(#[from] kube::Error),
    /// The Bench has no namespace.
    #[error("the Bench has no {0}")]
    Missing(&'static str),
}

struct Context {
    client: Client,
}

/// Runs the controller until the process gets a signal. An update of the status of a Bench does not
/// wake it.
pub async fn run(client: Client, concurrency: u16) {
    let benches: Api<Bench> = Api::all(client.clone());
    let deployments: Api<Deployment> = Api::all(client.clone());
    let services: Api<Service> = Api::all(client.clone());
    let (reader, writer) = reflector::store();
    let stream = watcher(benches, watcher::Config::default())
        .default_backoff()
        .reflect(writer)
        .applied_objects()
        .predicate_filter(predicates::generation, Default::default());
    Controller::for_stream(stream, reader)
        .with_config(Config::default().concurrency(concurrency))
        .owns(deployments, watcher::Config::default())
        .owns(services, watcher::Config::default())
        .shutdown_on_signal()
        .run(reconcile, error_policy, Arc::new(Context { client }))
        .for_each(|result| {
            if let Err(error) = result {
                tracing::warn!(%error, "reconcile failed");
            }
            future::ready(())
        })
        .await;
}

async fn reconcile(bench: Arc<Bench>, context: Arc<Context>) -> Result<Action, Error> {
    let namespace = bench.namespace().ok_or(Error::Missing("namespace"))?;
    let name = bench.name_any();
    let deployments: Api<Deployment> = Api::namespaced(context.client.clone(), &namespace);
    let services: Api<Service> = Api::namespaced(context.client.clone(), &namespace);
    let apply = PatchParams::apply(MANAGER).force();
    let deployment = deployments.patch(&name, &apply, &Patch::Apply(deployment(&bench)?)).await?;
    services.patch(&name, &apply, &Patch::Apply(service(&bench)?)).await?;

    let status = status(&bench, &deployment);
    if bench.status.as_ref() != Some(&status) {
        let benches: Api<Bench> = Api::namespaced(context.client.clone(), &namespace);
        let patch = json!({
            "apiVersion": Bench::api_version(&()), "kind": Bench::kind(&()), "status": status,
        });
        benches.patch_status(&name, &apply, &Patch::Apply(patch)).await?;
    }
    Ok(Action::await_change())
}

fn error_policy(_: Arc<Bench>, _: &Error, _: Arc<Context>) -> Action {
    Action::requeue(Duration::from_secs(5))
}

fn metadata(bench: &Bench) -> Result<ObjectMeta, Error> {
    let owner = bench.controller_owner_ref(&()).ok_or(Error::Missing("UID"))?;
    Ok(ObjectMeta {
        name: Some(bench.name_any()),
        namespace: bench.namespace(),
        labels: Some([("app".to_owned(), bench.name_any())].into()),
        owner_references: Some(vec![owner]),
        ..ObjectMeta::default()
    })
}

fn deployment(bench: &Bench) -> Result<Deployment, Error> {
    let metadata = metadata(bench)?;
    let labels = metadata.labels.clone();
    let container = Container {
        name: "app".to_owned(),
        image: Some(bench.spec.image.clone()),
        ports: Some(vec![ContainerPort {
            name: Some("http".to_owned()),
            container_port: 8080,
            protocol: Some("TCP".to_owned()),
            ..ContainerPort::default()
        }]),
        ..Container::default()
    };
    let template = PodTemplateSpec {
        metadata: Some(ObjectMeta { labels: labels.clone(), ..ObjectMeta::default() }),
        spec: Some(PodSpec { containers: vec![container], ..PodSpec::default() }),
    };
    let spec = DeploymentSpec {
        replicas: Some(bench.spec.replicas),
        selector: LabelSelector { match_labels: labels, ..LabelSelector::default() },
        template,
        ..DeploymentSpec::default()
    };
    Ok(Deployment { metadata, spec: Some(spec), ..Deployment::default() })
}

fn service(bench: &Bench) -> Result<Service, Error> {
    let metadata = metadata(bench)?;
    let port = ServicePort {
        name: Some("http".to_owned()),
        port: 80,
        target_port: Some(IntOrString::String("http".to_owned())),
        protocol: Some("TCP".to_owned()),
        ..ServicePort::default()
    };
    let spec = ServiceSpec {
        selector: metadata.labels.clone(),
        ports: Some(vec![port]),
        ..ServiceSpec::default()
    };
    Ok(Service { metadata, spec: Some(spec), ..Service::default() })
}

/// The status that a Bench should have; the condition keeps its time while its status is the same.
fn status(bench: &Bench, deployment: &Deployment) -> BenchStatus {
    let ready_replicas =
        deployment.status.as_ref().and_then(|status| status.ready_replicas).unwrap_or(0);
    let (status, reason) = if ready_replicas == bench.spec.replicas {
        ("True", "AllReady")
    } else {
        ("False", "InProgress")
    };
    let before = bench.status.iter().flat_map(|status| &status.conditions);
    let since = before.clone().find(|one| one.type_ == "Ready" && one.status == status);
    let condition = Condition {
        type_: "Ready".to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message: format!("{ready_replicas} of {} replicas are ready", bench.spec.replicas),
        observed_generation: bench.metadata.generation,
        last_transition_time: since.map_or_else(now, |one| one.last_transition_time.clone()),
    };
    BenchStatus {
        observed_generation: bench.metadata.generation,
        ready_replicas,
        conditions: vec![condition],
    }
}

/// The time in whole seconds, as the API server keeps it.
fn now() -> Time {
    let seconds = jiff::Timestamp::now().as_second();
    Time(jiff::Timestamp::from_second(seconds).unwrap_or_default())
}
