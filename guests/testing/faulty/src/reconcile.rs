//! The reconcile logic, with the bugs.

use innkeeper_sdk::kinds::{ConfigMap, Container, Deployment, PodTemplate, Service};
use innkeeper_sdk::prelude::*;
use innkeeper_sdk::serde_json::{Value, json};
use innkeeper_sdk::{Labels, Raw, kind};
use serde::Deserialize;

use crate::bug::Bug;
use crate::shop::{Shop, ShopStatus};

/// The parameters of the Module.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
struct Parameters {
    bug: Bug,
}

/// A ConfigMap that exists.
#[derive(Deserialize)]
struct Settings {
    #[serde(default)]
    data: std::collections::BTreeMap<String, String>,
}

kind!(Resource for Settings = ConfigMap::KIND, ConfigMap::API_VERSION, ConfigMap::PLURAL);

/// A Deployment that exists.
#[derive(Deserialize)]
struct Running {
    spec: Value,
}

kind!(Resource for Running = Deployment::KIND, Deployment::API_VERSION, Deployment::PLURAL);

/// The guest.
pub struct Guest;

impl Reconciler for Guest {
    type Primary = Shop;

    fn describe() -> Manifest {
        Describe::reconciler_of::<Shop>("faulty", env!("CARGO_PKG_VERSION"))
            .owns::<ConfigMap>()
            .owns::<Deployment>()
            .owns::<Service>()
            .finalizes("")
            .parameters(json!({"type": "object", "properties": {"bug": {"type": "string"}}}))
            .installs(include_str!("../crd.json"))
            .manifest()
    }

    fn reconcile(context: &Context, observed: &Observed<Shop>) -> Outcome {
        let parameters: Parameters = observed.parameters().unwrap_or_default();
        Run { bug: parameters.bug, context, observed }.outcome()
    }
}

/// One run.
struct Run<'a> {
    bug: Bug,
    context: &'a Context<'a>,
    observed: &'a Observed<'a, Shop>,
}

impl Run<'_> {
    fn has(&self, bug: Bug) -> bool {
        self.bug == bug
    }

    fn outcome(&self) -> Outcome {
        let shop = self.observed.primary();
        let name = self.observed.name();
        if self.observed.is_deleting() {
            return self.deleted();
        }
        self.misbehave();
        let replicas = self.replicas();
        let mut desired = Desired::new();
        desired = if self.has(Bug::SetsUpOnce) && shop.status.initialized {
            desired.keep::<ConfigMap>("", &format!("{name}-settings"))
        } else {
            desired.object(self.settings())
        };
        let flaps = self.has(Bug::FlapWhenReady) && self.observed.is_ready::<Deployment>(name);
        if !flaps {
            desired = desired.object(self.deployment(replicas));
        }
        let forgets =
            self.has(Bug::ForgetsWhatExists) && self.observed.owned::<Raw<Service>>(name).is_some();
        if !forgets {
            let spec = json!({"selector": {"shop": name}, "ports": [{"port": 80}]});
            desired = desired.object(Raw::<Service>::new(name, json!({ "spec": spec })));
        }
        desired = desired.objects(self.pages());
        let is_shown = self.has(Bug::StatusOnce) && shop.status.initialized;
        let shown = if is_shown { shop.status.replicas } else { replicas };
        let status = ShopStatus { initialized: true, replicas: shown };
        desired = desired.status(&status).ready_condition(self.observed);
        if self.has(Bug::TimeInData) {
            desired = desired.requeue_after(5);
        }
        desired.complete()
    }

    /// Bugs that give no usable answer.
    fn misbehave(&self) {
        let spec = &self.observed.primary().spec;
        if self.has(Bug::TrapOnEmptyImage) {
            assert!(!spec.image.is_empty(), "there is an image");
        }
        if self.has(Bug::DivideByReplicas) {
            let share = 100_u32.checked_div(spec.replicas);
            assert!(share.is_some(), "division by zero");
        }
        if self.has(Bug::LoopOnZeroReplicas) && spec.replicas == 0 {
            loop {
                std::hint::spin_loop();
            }
        }
    }

    fn deleted(&self) -> Outcome {
        let shop = self.observed.primary();
        let waits = match self.bug {
            Bug::NeverFinalized => true,
            Bug::FinalizedIfReady => !self.observed.is_ready::<Deployment>(self.observed.name()),
            Bug::FinalizedIfInitialized => !shop.status.initialized,
            _ => false,
        };
        let desired = Desired::new();
        if waits { desired.partial() } else { desired.finalized().complete() }
    }

    /// The replicas that the Deployment has.
    fn observed_replicas(&self) -> Option<u32> {
        let running = self.observed.owned::<Running>(self.observed.name())?;
        u32::try_from(running.object.spec["replicas"].as_u64()?).ok()
    }

    fn replicas(&self) -> u32 {
        let shop = self.observed.primary();
        let wanted = if shop.spec.paused { 0 } else { shop.spec.replicas };
        let present = self.observed_replicas();
        match (self.bug, present) {
            (Bug::NeverScalesDown, Some(present)) => wanted.max(present),
            (Bug::StaysPaused, Some(0)) => 0,
            (Bug::AdoptsDrift, Some(present)) => present,
            _ => wanted,
        }
    }

    fn settings(&self) -> ConfigMap {
        let shop = self.observed.primary();
        let name = format!("{}-settings", self.observed.name());
        let present = self.observed.owned::<Settings>(&name).map(|owned| owned.object.data);
        let mut data = shop.spec.settings.clone();
        match self.bug {
            Bug::TimeInData => {
                data.insert("time".to_owned(), self.context.now().to_string());
            }
            Bug::CountRuns => {
                let count = present.as_ref().and_then(|data| data.get("runs")?.parse().ok());
                data.insert("runs".to_owned(), (count.unwrap_or(0_u64) + 1).to_string());
            }
            Bug::Alternate => {
                let is_a = present
                    .as_ref()
                    .is_some_and(|data| data.get("side").is_some_and(|side| side == "a"));
                data.insert("side".to_owned(), if is_a { "b" } else { "a" }.to_owned());
            }
            Bug::PartOfUid => {
                let part: String = shop.metadata.uid.chars().take(8).collect();
                data.insert("id".to_owned(), part);
            }
            Bug::KeepsSettings => {
                for (key, value) in present.unwrap_or_default() {
                    data.entry(key).or_insert(value);
                }
            }
            _ => {}
        }
        let mut map = ConfigMap::new(name);
        for (key, value) in data {
            map = map.data(&key, value);
        }
        map
    }

    fn deployment(&self, replicas: u32) -> Deployment {
        let name = self.observed.name();
        let labels = Labels::from([("shop".to_owned(), name.to_owned())]);
        let mut image = self.observed.primary().spec.image.clone();
        if image.is_empty() {
            "shop:latest".clone_into(&mut image);
        }
        if self.has(Bug::KeepsFirstImage)
            && let Some(running) = self.observed.owned::<Running>(name)
            && let Some(first) = running
                .object
                .spec
                .pointer("/template/spec/containers/0/image")
                .and_then(Value::as_str)
        {
            first.clone_into(&mut image);
        }
        let template = PodTemplate::new(&labels).container(Container::new("shop", image));
        Deployment::new(name, &labels, template).replicas(i32::try_from(replicas).unwrap_or(0))
    }

    fn pages(&self) -> Vec<Raw<ConfigMap>> {
        let shop = self.observed.primary();
        let mut pages = shop.spec.pages.clone();
        pages.sort();
        if !self.has(Bug::DuplicatePages) {
            pages.dedup();
        }
        let prefix = format!("{}-page-", self.observed.name());
        // What makes a name of a text: other characters become a digit.
        let name = |page: &str| {
            if self.has(Bug::NameFromSetting) {
                return format!("{prefix}{page}");
            }
            let safe = page.chars().map(|one| if one.is_ascii_lowercase() { one } else { '0' });
            format!("{prefix}{}0", safe.take(20).collect::<String>())
        };
        let mut names: Vec<String> = pages.iter().map(|page| name(page)).collect();
        if !self.has(Bug::DuplicatePages) {
            names.dedup();
        }
        if self.has(Bug::KeepsPages) {
            for owned in self.observed.all_owned::<Raw<ConfigMap>>() {
                let present = owned.object.metadata.name.clone();
                if present.starts_with(&prefix) && !names.contains(&present) {
                    names.push(present);
                }
            }
        }
        let namespace = shop.spec.settings.get("a").filter(|_| self.has(Bug::ForeignNamespace));
        let object = |name: &String| {
            let page = Raw::<ConfigMap>::new(name, json!({"data": {"page": name}}));
            match namespace {
                Some(namespace) => page.namespace(namespace),
                None => page,
            }
        };
        names.iter().map(object).collect()
    }
}
