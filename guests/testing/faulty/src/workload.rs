//! The Deployment and the Service of a Shop.

use innkeeper_sdk::kinds::{Container, Deployment, PodTemplate, Service};
use innkeeper_sdk::prelude::*;
use innkeeper_sdk::read;
use innkeeper_sdk::serde_json::{Value, json};
use serde::Deserialize;

use crate::bug::Bug;
use crate::run::Run;

/// The annotation with the time after which the simulated kubelet starts a Pod.
const START_AFTER: &str = "simulator.innkeeper.dev/start-after";

/// A Deployment that exists.
#[derive(Deserialize)]
struct Running {
    spec: Value,
}

kind!(Resource for Running = Deployment::KIND, Deployment::API_VERSION, Deployment::PLURAL);

impl Run<'_> {
    /// Adds Deployment and Service.
    pub(crate) fn with_workload(&self, mut desired: Desired) -> Desired {
        let name = self.observed.name();
        let is_there = self.running().is_some();
        let is_ready = self.observed.is_ready::<Deployment>(name);
        desired = match self.bug {
            Bug::FlapWhenReady if is_ready => desired,
            Bug::WaitsUntilReady if is_there && !is_ready => desired.keep::<Deployment>("", name),
            Bug::RefusesAfterBadSpec if is_there && self.is_bad() => {
                desired.keep::<Deployment>("", name)
            }
            _ => desired.object(self.deployment()),
        };
        if self.has(Bug::ForgetsWhatExists) && self.observed.owned::<Raw<Service>>(name).is_some() {
            return desired;
        }
        let spec = json!({"selector": {"shop": name}, "ports": [{"port": 80}]});
        desired.object(Raw::<Service>::new(name, json!({ "spec": spec })))
    }

    fn running(&self) -> Option<Running> {
        Some(self.observed.owned::<Running>(self.observed.name())?.object)
    }

    /// The replicas that the Deployment has.
    fn observed_replicas(&self) -> Option<u32> {
        u32::try_from(self.running()?.spec["replicas"].as_u64()?).ok()
    }

    /// The replicas that the Deployment is to have.
    pub(crate) fn replicas(&self) -> u32 {
        let spec = &self.shop().spec;
        let wanted = if spec.paused { 0 } else { spec.replicas };
        match (self.bug, self.observed_replicas()) {
            (Bug::NeverScalesDown, Some(present)) => wanted.max(present),
            (Bug::StaysPaused, Some(0)) => 0,
            (Bug::AdoptsDrift, Some(present)) => present,
            _ => wanted,
        }
    }

    /// The Pods that a ready Deployment has, and that the cache does not.
    pub(crate) fn lost_pods(&self) -> usize {
        let name = self.observed.name();
        if !self.observed.is_ready::<Deployment>(name) {
            return 0;
        }
        let selector = format!("shop={name}");
        let pods = self.context.list::<read::Pod>(self.observed.namespace(), &selector);
        let wanted = usize::try_from(self.replicas()).unwrap_or(0);
        pods.map_or(0, |pods| wanted.saturating_sub(pods.len()))
    }

    /// The image of the spec, or the default.
    pub(crate) fn image(&self) -> String {
        let image = &self.shop().spec.image;
        let first = || {
            let pointer = "/template/spec/containers/0/image";
            Some(self.running()?.spec.pointer(pointer)?.as_str()?.to_owned())
        };
        match self.bug {
            Bug::OldImage => "shop:0".to_owned(),
            Bug::KeepsFirstImage if first().is_some() => first().unwrap_or_default(),
            _ if image.is_empty() => "shop:latest".to_owned(),
            _ => image.clone(),
        }
    }

    fn deployment(&self) -> Deployment {
        let name = self.observed.name();
        let mut labels = Labels::from([("shop".to_owned(), name.to_owned())]);
        match self.bug {
            Bug::SelectorFollowsImage | Bug::HidesRefusal => {
                let safe = |one: char| if one.is_ascii_alphanumeric() { one } else { '0' };
                let image: String = self.image().chars().map(safe).take(60).collect();
                labels.insert("image".to_owned(), image);
            }
            Bug::NewSelector => drop(labels.insert("app".to_owned(), name.to_owned())),
            _ => {}
        }
        let spec = &self.shop().spec;
        let mut container = Container::new("shop", self.image());
        if spec.password {
            let value = self.password().filter(|_| self.has(Bug::PasswordInEnvironment));
            container = match value {
                Some(value) => container.env("PASSWORD", value),
                None => container.env_from_secret("PASSWORD", &self.name("-password"), "password"),
            };
        }
        let mut template = PodTemplate::new(&labels).container(container);
        if self.has(Bug::FlapWhenReady) {
            template = template.annotation(START_AFTER, "12s");
        }
        if spec.is_stuck {
            template = template.annotation(START_AFTER, "never");
        }
        let mut replicas = i32::try_from(self.replicas()).unwrap_or(0);
        if self.has(Bug::OneReplicaLess) {
            replicas -= 1;
        }
        let mut deployment = Deployment::new(name, &labels, template).replicas(replicas);
        if self.has(Bug::LabelFromImage) {
            deployment = deployment.label("image", &spec.image);
        }
        if self.has_rare(Bug::LabelOfRareShop) {
            deployment = deployment.label("pages", &spec.pages.join(", "));
        }
        deployment
    }
}
