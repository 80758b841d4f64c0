//! A live cluster: the demo installs Innkeeper there, and removes it at the end.
//!
//! # Guarantees
//! - The demo writes nothing to a cluster that already has one of its objects, unless an earlier
//!   demo left it: every object of the demo carries the label [`LABEL`].
//! - The operator acts as its ServiceAccount, with the rights of deploy/base and no more.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow, bail, ensure};
use innkeeper_cluster::{Cluster, Env, Fence, Kube, SecretDigestKey, Settings};
use innkeeper_core::host_objects::HOST_NAMESPACE;
use innkeeper_lab::{Api, ApiFailure, Content};
use innkeeper_modules::module;
use innkeeper_operator::{Bounds, Execution, ModulesLocation, Operator, ReplicaPolicies};
use innkeeper_sandbox::{CACHE_BYTES_DEFAULT, CacheFolder, CacheKey, CodeCache, Engine};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::backend::Backend;
use super::constants::{LABEL, LABEL_VALUE, NAMESPACE, PRIMARIES};
use super::fake_node::FakeNode;
use super::manifests::{self, Components};
use super::resources::{is_created_by_demo, path};
use super::startup::Startup;
use super::stop::{Stop, Stopped};
use crate::compiler::compile;
use crate::{objects, out};

/// The manifests that the host needs in addition to the definition of Module.
const BASE: [&str; 4] = [
    include_str!("../../../../deploy/base/namespaces.yaml"),
    include_str!("../../../../deploy/base/account.yaml"),
    include_str!("../../../../deploy/base/cluster-role.yaml"),
    include_str!("../../../../deploy/base/roles.yaml"),
];

/// The path that creates a token of the operator's account.
fn token_path() -> String {
    format!("/api/v1/namespaces/{HOST_NAMESPACE}/serviceaccounts/innkeeper/token")
}

/// Longer than a demo runs.
const TOKEN_SECONDS: u32 = 24 * 60 * 60;
/// How long the demo waits for one condition, in real time.
const TIMEOUT: Duration = Duration::from_mins(5);
/// How long one step of the installation or the removal may take.
const STEP_TIMEOUT: Duration = Duration::from_mins(2);
/// How often the demo reads an object that it waits for.
const POLL: Duration = Duration::from_millis(200);
const VOLUMES: &str = "/api/v1/persistentvolumes";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// The steps of [`LiveCluster::start`].
const STARTUP_STEPS: usize = 4;

/// The cluster that the user chose.
pub(super) struct ClusterConfig {
    kube: Kube,
}

impl ClusterConfig {
    /// Reads a kubeconfig. If it has several contexts, `context` is required: the current context
    /// depends on what the user did last.
    ///
    /// # Errors
    /// If the file cannot be read, or has several contexts and none is chosen.
    pub(super) fn new(kubeconfig: &Path, context: Option<&str>) -> anyhow::Result<Self> {
        let text = std::fs::read_to_string(kubeconfig)
            .with_context(|| format!("cannot read --kubeconfig {}", kubeconfig.display()))?;
        let documents = objects::parse(&text, "the kubeconfig")?;
        let contexts = documents.first().and_then(|one| one["contexts"].as_array());
        let names: Vec<&str> =
            contexts.into_iter().flatten().filter_map(|one| one["name"].as_str()).collect();
        if context.is_none() && names.len() > 1 {
            bail!(
                "{} has the contexts {}: choose the demo's cluster with --context",
                kubeconfig.display(),
                names.join(", ")
            );
        }
        let context = context.map(str::to_owned);
        let kube = Kube { kubeconfig: Some(kubeconfig.to_owned()), context, ..Kube::default() };
        Ok(Self { kube })
    }

    /// Connects as the user of the kubeconfig, or as the owner of `token`.
    async fn open(&self, token: Option<&str>) -> anyhow::Result<Cluster> {
        let (kube, env) = (&self.kube, Env::real());
        let mut key = [0; 32];
        getrandom::fill(&mut key)
            .map_err(|error| anyhow!("the system returned no random bytes: {error}"))?;
        let (key, fence) = (SecretDigestKey::new(&key), Fence::open(&env));
        let settings = Settings::default();
        Ok(match token {
            Some(token) => Cluster::open_with_token(kube, token, env, settings, key, fence).await?,
            None => Cluster::open(kube, env, settings, key, fence).await?,
        })
    }
}

/// A live cluster with an operator in this process.
pub(super) struct LiveCluster {
    api: Api,
    /// The paths of the objects that the demo created, in order.
    created: Vec<String>,
    /// The API groups of the guests' definitions.
    groups: BTreeSet<String>,
    fake_node: Option<FakeNode>,
    operator: Option<JoinHandle<()>>,
    end: watch::Sender<bool>,
    stop: Stop,
}

impl LiveCluster {
    /// Installs Innkeeper with the guests, and starts the operator. Prints each step.
    ///
    /// # Errors
    /// If the cluster already has one of the demo's objects: then the demo creates nothing.
    pub(super) async fn start(
        config: &ClusterConfig,
        components: &Components,
        cache_dir: Option<&Path>,
        stop: Stop,
    ) -> anyhow::Result<Self> {
        let mut startup = Startup::new(STARTUP_STEPS);
        startup.step("Checking that the cluster has none of the demo's objects")?;
        let cache = cache_dir
            .map(|folder| {
                CodeCache::open(CacheFolder::open(folder)?, &CacheKey::Kept, CACHE_BYTES_DEFAULT)
            })
            .transpose()?;
        let api = Api::cluster(config.open(None).await?.host());
        let nodes = api.list("/api/v1/nodes").await.context("the demo cannot list the nodes")?;
        let has_nodes = nodes.iter().any(|node| !is_created_by_demo(node));

        // The definition of Module is created first and deleted last.
        let definition = manifests::definition()?;
        let mut objects = Vec::new();
        for text in BASE {
            objects.extend(objects::parse(text, "the rights of the host")?);
        }
        objects.push(manifests::namespace(NAMESPACE));
        if !has_nodes {
            objects.push(FakeNode::manifest());
        }
        objects.extend(manifests::modules(components)?);
        let groups =
            objects.iter().filter_map(|one| one["spec"]["allowedCRDGroups"].as_array()).flatten();
        let groups = groups.filter_map(|one| one.as_str().map(str::to_owned)).collect();

        let (end, ended) = watch::channel(false);
        let (created, fake_node, operator) = (Vec::new(), None, None);
        let mut cluster = Self { api, created, groups, fake_node, operator, end, stop };
        cluster.refuse_existing(definition.iter().chain(&objects)).await?;
        let installed = async {
            startup.step("Creating the CustomResourceDefinition of Module")?;
            cluster.create_definition(&definition).await?;
            startup.step(format_args!("Creating {} objects", objects.len()))?;
            cluster.create(&objects).await?;
            if !has_nodes {
                out::line(
                    "      The cluster has no node: a fake one reports the pods as running.",
                )?;
                cluster.fake_node = Some(FakeNode::start(&cluster.api).await?);
            }
            startup.step("Starting the operator, which compiles the guests")?;
            cluster.start_operator(config, cache, ended).await
        };
        let Err(error) = installed.await else { return Ok(cluster) };
        match cluster.end(&mut |_| ()).await {
            Ok(()) => Err(error),
            Err(left) => Err(anyhow!("{error:#}; {left:#}")),
        }
    }

    /// Fails if the cluster has an object of the demo that the demo did not create.
    async fn refuse_existing(&self, objects: impl Iterator<Item = &Value>) -> anyhow::Result<()> {
        let mut foreign = Vec::new();
        let mut is_left = false;
        for object in objects {
            let at = match self.api.path_of(object, "default").await {
                Ok(at) => at,
                Err(ApiFailure::NotServed { .. }) => continue,
                Err(error) => return Err(error.into()),
            };
            match self.api.get(&at).await? {
                None => {}
                Some(found) if is_created_by_demo(&found) => is_left = true,
                Some(_) => foreign.push(at),
            }
        }
        // An earlier demo also left the definitions that its guests brought.
        if !is_left {
            foreign.extend(self.definitions().await?);
        }
        ensure!(
            foreign.is_empty(),
            "the demo changed nothing: the cluster already has {}; use a cluster without Innkeeper, without these guests and without a namespace {NAMESPACE}",
            foreign.join(", ")
        );
        Ok(())
    }

    /// The paths of the CustomResourceDefinitions that the guests bring.
    async fn definitions(&self) -> Result<Vec<String>, ApiFailure> {
        let all = self.api.list(DEFINITIONS).await?;
        let is_guests = |one: &&Value| {
            one["spec"]["group"].as_str().is_some_and(|group| self.groups.contains(group))
        };
        let at = |one: &Value| {
            format!("{DEFINITIONS}/{}", one["metadata"]["name"].as_str().unwrap_or_default())
        };
        Ok(all.iter().filter(is_guests).map(at).collect())
    }

    /// Creates the definition of Module, and waits until the API server serves it.
    async fn create_definition(&mut self, definition: &[Value]) -> anyhow::Result<()> {
        self.create(definition).await?;
        let deadline = Instant::now() + STEP_TIMEOUT;
        while self.api.resource(module::API_VERSION, "Module").await.is_err() {
            ensure!(
                Instant::now() < deadline,
                "the API server does not serve Modules within {} s, though their definition exists",
                STEP_TIMEOUT.as_secs()
            );
            tokio::time::sleep(POLL).await;
        }
        Ok(())
    }

    async fn start_operator(
        &mut self,
        config: &ClusterConfig,
        cache: Option<CodeCache>,
        ended: watch::Receiver<bool>,
    ) -> anyhow::Result<()> {
        let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
            "spec": {"expirationSeconds": TOKEN_SECONDS}});
        let answer = self.api.send("POST", &token_path(), Content::Json, &request).await;
        let answer = answer.context("the demo cannot create a token for the operator's account")?;
        let token = answer["status"]["token"]
            .as_str()
            .context("the API server returned no token for the operator's account")?;
        let cluster = config.open(Some(token)).await?;
        let mut engine = Engine::builder().compile(compile());
        if let Some(cache) = cache {
            engine = engine.cache(cache);
        }
        let (from, bounds) = (ModulesLocation::Cluster, Bounds::default());
        let engine = engine.build()?;
        let policies = ReplicaPolicies::new(cluster.env().clone(), &engine, Execution::Threads)?;
        let operator = Operator::new(cluster, engine, from, bounds, policies, "innkeeper-demo")?;
        self.operator = Some(tokio::spawn(async move { operator.run(ended).await }));
        Ok(())
    }

    /// Creates objects with the demo's label. Stops between two of them if the user wants it.
    async fn create(&mut self, objects: &[Value]) -> anyhow::Result<()> {
        for object in objects {
            if self.stop.requests() > 0 {
                return Err(Stopped.into());
            }
            let mut object = object.clone();
            object["metadata"]["labels"][LABEL] = LABEL_VALUE.into();
            let at = self.api.path_of(&object, "default").await?;
            let applied = self.api.apply(&object, "default").await;
            applied.with_context(|| format!("the demo cannot create {at}"))?;
            self.created.push(at);
        }
        Ok(())
    }

    /// Deletes the objects at these paths, and waits until they are gone. Stops early if the user
    /// asks more than `requests` times to stop.
    async fn delete(&mut self, all: &[String], requests: usize) -> anyhow::Result<()> {
        for at in all {
            let deleted = self.api.delete(at).await;
            deleted.with_context(|| format!("the demo cannot delete {at}"))?;
        }
        let deadline = Instant::now() + STEP_TIMEOUT;
        let mut left = all.to_vec();
        loop {
            let mut existing = Vec::new();
            for at in left {
                if self.api.get(&at).await?.is_some() {
                    existing.push(at);
                }
            }
            if existing.is_empty() {
                return Ok(());
            }
            if self.stop.requests() > requests || Instant::now() > deadline {
                bail!(
                    "the demo left objects on the cluster: {}, and what it created before them; run it again on this cluster to remove them",
                    existing.join(", ")
                );
            }
            left = existing;
            if let Some(node) = &mut self.fake_node {
                // A failure is not final: the next round updates the pods again.
                let _ = node.update(&self.api).await;
            }
            tokio::time::sleep(POLL).await;
        }
    }
}

impl Backend for LiveCluster {
    fn api(&self) -> &Api {
        &self.api
    }

    fn has_own_clock(&self) -> bool {
        true
    }

    fn timeout(&self) -> Duration {
        TIMEOUT
    }

    async fn advance(&mut self, time: Duration) -> anyhow::Result<()> {
        if self.operator.as_ref().is_some_and(JoinHandle::is_finished) {
            bail!("the operator ended without a request to stop");
        }
        if let Some(node) = &mut self.fake_node {
            node.update(&self.api).await.context("the fake node cannot report its pods")?;
        }
        tokio::time::sleep(time).await;
        Ok(())
    }

    async fn end(mut self, print: &mut impl FnMut(&str)) -> anyhow::Result<()> {
        print("");
        print(
            "The demo removes everything that it created. Ctrl-C leaves the rest on the cluster.",
        );
        let requests = self.stop.requests();
        if self.operator.is_some() {
            // The operator must remove its finalizers before it ends.
            let mut primaries = Vec::new();
            for (_, api_version, plural) in PRIMARIES {
                let all = self.api.list(&path((api_version, plural, ""))).await;
                for one in all.unwrap_or_default() {
                    let name = one["metadata"]["name"].as_str().unwrap_or_default();
                    primaries.push(path((api_version, plural, name)));
                }
            }
            self.delete(&primaries, requests).await?;
            self.delete(&[format!("/api/v1/namespaces/{NAMESPACE}")], requests).await?;
            let is_module = |at: &&String| at.contains("/modules/");
            let modules: Vec<_> = self.created.iter().filter(is_module).cloned().collect();
            self.delete(&modules, requests).await?;
        }
        let _ = self.end.send(true);
        if let Some(operator) = self.operator.take() {
            // Its last writes concern only objects that the demo deletes next.
            let _ = tokio::time::timeout(Duration::from_secs(10), operator).await;
        }
        let mut rest: Vec<String> = self.created.iter().skip(1).rev().cloned().collect();
        rest.extend(self.definitions().await?);
        for volume in self.api.list(VOLUMES).await? {
            if is_created_by_demo(&volume) {
                let name = volume["metadata"]["name"].as_str().unwrap_or_default();
                rest.push(format!("{VOLUMES}/{name}"));
            }
        }
        self.delete(&rest, requests).await?;
        let first: Vec<String> = self.created.first().cloned().into_iter().collect();
        self.delete(&first, requests).await?;
        print(
            "The demo left nothing on the cluster but Events, which the cluster deletes by itself.",
        );
        Ok(())
    }
}
