//! A Deployment and a Service from structs of the crate `k8s-openapi`. With the SDK's feature
//! `k8s-openapi` a guest desires, owns and reads them as it does builders. A primary is a struct of
//! the guest or a `Raw`.

use innkeeper_sdk::k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec};
use innkeeper_sdk::k8s_openapi::api::core::v1::{
    Container, ContainerPort, PodSpec, PodTemplateSpec, Service, ServicePort, ServiceSpec,
};
use innkeeper_sdk::k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use innkeeper_sdk::{
    Context, Describe, Desired, Labels, Manifest, Metadata, Observed, Outcome, Reconciler, kind,
    labels,
};
use serde::Deserialize;

/// A Web, as the guest reads it.
#[derive(Deserialize)]
pub struct Web {
    /// Metadata.
    pub metadata: Metadata,
    /// Spec.
    pub spec: WebSpec,
}

/// Desired state of a Web.
#[derive(Deserialize)]
pub struct WebSpec {
    /// Image.
    pub image: String,
    /// Number of pods.
    pub replicas: i32,
}

kind!(Primary for Web, "example.com/v1", "webs");

/// The reconcile logic.
pub struct Guest;

impl Reconciler for Guest {
    type Primary = Web;

    fn describe() -> Manifest {
        Describe::reconciler_of::<Web>("typed", env!("CARGO_PKG_VERSION"))
            .owns::<Deployment>()
            .owns::<Service>()
            .manifest()
    }

    fn reconcile(_context: &Context, observed: &Observed<Web>) -> Outcome {
        let labels = labels([("app", observed.name())]);
        let ready = observed
            .owned::<Deployment>(observed.name())
            .and_then(|found| found.object.status?.ready_replicas);
        Desired::new()
            .object(deployment(observed.primary(), &labels))
            .object(service(observed.name(), labels))
            .status(&innkeeper_sdk::serde_json::json!({ "readyReplicas": ready.unwrap_or(0) }))
            .ready_condition(observed)
            .complete()
    }
}

fn deployment(web: &Web, labels: &Labels) -> Deployment {
    let container = Container {
        name: "web".to_owned(),
        image: Some(web.spec.image.clone()),
        ports: Some(vec![ContainerPort {
            container_port: 8080,
            protocol: Some("TCP".to_owned()),
            ..ContainerPort::default()
        }]),
        ..Container::default()
    };
    Deployment {
        metadata: ObjectMeta { name: Some(web.metadata.name.clone()), ..ObjectMeta::default() },
        spec: Some(DeploymentSpec {
            replicas: Some(web.spec.replicas),
            selector: LabelSelector {
                match_labels: Some(labels.clone()),
                ..LabelSelector::default()
            },
            template: PodTemplateSpec {
                metadata: Some(ObjectMeta {
                    labels: Some(labels.clone()),
                    ..ObjectMeta::default()
                }),
                spec: Some(PodSpec { containers: vec![container], ..PodSpec::default() }),
            },
            ..DeploymentSpec::default()
        }),
        ..Deployment::default()
    }
}

fn service(name: &str, labels: Labels) -> Service {
    Service {
        metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
        spec: Some(ServiceSpec {
            selector: Some(labels),
            ports: Some(vec![ServicePort {
                port: 80,
                protocol: Some("TCP".to_owned()),
                ..ServicePort::default()
            }]),
            ..ServiceSpec::default()
        }),
        ..Service::default()
    }
}

innkeeper_sdk::export!(Guest);
