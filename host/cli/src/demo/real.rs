//! A real cluster, on which the demo installs Innkeeper for its time, and which it leaves as it was.
//!
//! # Guarantees
//! - Nothing is written to a cluster that has one of the objects already which would be made, unless it is left of a
//!   demo that did not come to its end: all that is made here carries [`label`].
//! - The operator acts as its ServiceAccount, with the rights of deploy/base and no more.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow, bail, ensure};
use innkeeper_cluster::{Cluster, Env, Fence, Kube, SecretKey, Settings};
use innkeeper_lab::{Api, ApiFailure, Content};
use innkeeper_modules::module;
use innkeeper_operator::{Bounds, Execution, ModulesFrom, Operator};
use innkeeper_sandbox::{CACHE_BYTES_DEFAULT, CacheFolder, CacheKey, CodeCache, Engine};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::cluster::{self, Components};
use super::paper::Paper;
use super::stories::{NAMESPACE, PRIMARIES, path};
use super::teller::Stop;
use crate::{component, objects};

/// What the host needs, besides the definition of Module.
const BASE: [&str; 4] = [
    include_str!("../../../../deploy/base/namespaces.yaml"),
    include_str!("../../../../deploy/base/account.yaml"),
    include_str!("../../../../deploy/base/cluster-role.yaml"),
    include_str!("../../../../deploy/base/roles.yaml"),
];
/// Where a token of the operator's account is made.
const TOKEN: &str = "/api/v1/namespaces/innkeeper-system/serviceaccounts/innkeeper/token";
/// Longer than anybody looks at a demo.
const TOKEN_SECONDS: u32 = 24 * 60 * 60;
/// How long the end of all that was made may take, each step of it.
const END: Duration = Duration::from_mins(2);
/// How often is looked whether something is gone.
const POLL: Duration = Duration::from_millis(200);
const VOLUMES: &str = "/api/v1/persistentvolumes";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// What all that is made here carries.
pub(super) fn label() -> Value {
    json!({"app.kubernetes.io/managed-by": "innkeeper-demo"})
}

fn is_ours(object: &Value) -> bool {
    object["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "innkeeper-demo"
}

/// Which cluster, as somebody has said it.
pub(super) struct Named {
    kube: Kube,
    /// The file, for people.
    pub(super) kubeconfig: PathBuf,
}

impl Named {
    /// The cluster of a kubeconfig. One that knows several has to be told which: the current one is whatever was
    /// used last.
    pub(super) fn new(kubeconfig: &Path, context: Option<&str>) -> anyhow::Result<Self> {
        let text = std::fs::read_to_string(kubeconfig)
            .with_context(|| format!("--kubeconfig {} cannot be read", kubeconfig.display()))?;
        let documents = objects::parse(&text, "the kubeconfig")?;
        let contexts = documents.first().and_then(|one| one["contexts"].as_array());
        let names: Vec<&str> =
            contexts.into_iter().flatten().filter_map(|one| one["name"].as_str()).collect();
        if context.is_none() && names.len() > 1 {
            bail!(
                "{} has the contexts {}: say with --context which cluster the demo is to be played on",
                kubeconfig.display(),
                names.join(", ")
            );
        }
        let context = context.map(str::to_owned);
        let kube = Kube { kubeconfig: Some(kubeconfig.to_owned()), context, ..Kube::default() };
        Ok(Self { kube, kubeconfig: kubeconfig.to_owned() })
    }

    /// As the kubeconfig says, or as whoever a token is for.
    async fn open(&self, token: Option<&str>) -> anyhow::Result<Cluster> {
        let (kube, env) = (&self.kube, Env::real());
        let mut key = [0; 32];
        getrandom::fill(&mut key)
            .map_err(|error| anyhow!("the system gives no random bytes: {error}"))?;
        let (key, fence) = (SecretKey::new(&key), Fence::open(&env));
        let settings = Settings::default();
        Ok(match token {
            Some(token) => Cluster::open_with_token(kube, token, env, settings, key, fence).await?,
            None => Cluster::open(kube, env, settings, key, fence).await?,
        })
    }
}

/// A real cluster with an operator.
pub(super) struct Real {
    api: Api,
    /// Where all that was made is, in its order.
    made: Vec<String>,
    groups: BTreeSet<String>,
    paper: Option<Paper>,
    operator: Option<JoinHandle<()>>,
    end: watch::Sender<bool>,
    stop: Stop,
}

impl Real {
    /// Installs Innkeeper with the guests, and runs it.
    ///
    /// # Errors
    /// If something is there already that would be made: then nothing is.
    pub(super) async fn start(
        named: &Named,
        components: &Components,
        cache_dir: Option<&Path>,
        stop: Stop,
    ) -> anyhow::Result<Self> {
        let cache = cache_dir
            .map(|folder| {
                CodeCache::open(CacheFolder::open(folder)?, &CacheKey::Kept, CACHE_BYTES_DEFAULT)
            })
            .transpose()?;
        let api = Api::real(named.open(None).await?.host());
        let nodes = api.list("/api/v1/nodes").await.context("the cluster cannot be asked")?;
        let has_nodes = nodes.iter().any(|node| !is_ours(node));

        // The definition is the first to come and the last to go.
        let definition = cluster::definition()?;
        let mut later = Vec::new();
        for text in BASE {
            later.extend(objects::parse(text, "the rights of the host")?);
        }
        later.push(cluster::namespace_named(NAMESPACE));
        if !has_nodes {
            later.push(Paper::node());
        }
        later.extend(cluster::modules(components)?);
        let groups =
            later.iter().filter_map(|one| one["spec"]["allowedCRDGroups"].as_array()).flatten();
        let groups = groups.filter_map(|one| one.as_str().map(str::to_owned)).collect();

        let (end, ended) = watch::channel(false);
        let mut real =
            Self { api, made: Vec::new(), groups, paper: None, operator: None, end, stop };
        real.refuse_what_is_there(definition.iter().chain(&later)).await?;
        let started = real.install(named, &definition, &later, has_nodes, cache, ended).await;
        if let Err(error) = started {
            let mut told = String::new();
            if let Err(left) = real.end(&mut |_| ()).await {
                told = format!("; {left:#}");
            }
            bail!("{error:#}{told}");
        }
        Ok(real)
    }
}

impl Real {
    /// Nothing is taken over that somebody else has made.
    async fn refuse_what_is_there(
        &self,
        objects: impl Iterator<Item = &Value>,
    ) -> anyhow::Result<()> {
        let mut theirs = Vec::new();
        let mut is_left = false;
        for object in objects {
            let at = match self.api.path_of(object, "default").await {
                Ok(at) => at,
                Err(ApiFailure::NotServed { .. }) => continue,
                Err(error) => return Err(error.into()),
            };
            match self.api.get(&at).await? {
                None => {}
                Some(found) if is_ours(&found) => is_left = true,
                Some(_) => theirs.push(at),
            }
        }
        // What a demo has left its modules' definitions are among.
        if !is_left {
            theirs.extend(self.definitions().await?);
        }
        ensure!(
            theirs.is_empty(),
            "the cluster has what the demo would make, so nothing is done to it: {}. Give it a cluster without Innkeeper, without these guests and without a namespace {NAMESPACE}",
            theirs.join(", ")
        );
        Ok(())
    }

    /// Where the definitions are that the guests bring.
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

    async fn install(
        &mut self,
        named: &Named,
        definition: &[Value],
        later: &[Value],
        has_nodes: bool,
        cache: Option<CodeCache>,
        ended: watch::Receiver<bool>,
    ) -> anyhow::Result<()> {
        for object in definition {
            self.put(object).await?;
        }
        let deadline = Instant::now() + END;
        while self.api.resource(module::API_VERSION, "Module").await.is_err() {
            ensure!(Instant::now() < deadline, "Modules are not served, though they are defined");
            tokio::time::sleep(POLL).await;
        }
        for object in later {
            self.put(object).await?;
        }
        if !has_nodes {
            self.paper = Some(Paper::begin(&self.api).await?);
        }
        let asked = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
            "spec": {"expirationSeconds": TOKEN_SECONDS}});
        let answer = self.api.send("POST", TOKEN, Content::Json, &asked).await;
        let answer = answer.context("there is no token for the operator's account")?;
        let token = answer["status"]["token"].as_str().context("the token is empty")?;
        let cluster = named.open(Some(token)).await?;
        let mut engine = Engine::builder().compile(component::compile());
        if let Some(cache) = cache {
            engine = engine.cache(cache);
        }
        let (from, bounds) = (ModulesFrom::Cluster, Bounds::default());
        let engine = engine.build()?;
        let operator =
            Operator::new(cluster, engine, from, bounds, Execution::Threads, "innkeeper-demo")?;
        self.operator = Some(tokio::spawn(async move { operator.run(ended).await }));
        Ok(())
    }

    async fn put(&mut self, object: &Value) -> anyhow::Result<()> {
        let mut object = object.clone();
        for (name, value) in label().as_object().into_iter().flatten() {
            object["metadata"]["labels"][name] = value.clone();
        }
        let at = self.api.path_of(&object, "default").await?;
        let applied = self.api.apply(&object, "default").await;
        applied.with_context(|| format!("{at} cannot be made"))?;
        self.made.push(at);
        Ok(())
    }

    /// Requests to the cluster.
    pub(super) fn api(&self) -> &Api {
        &self.api
    }

    /// What is said at first.
    pub(super) fn title(&self) -> String {
        let node = match self.paper {
            Some(_) => ". It has no node, so that pods only seem to run",
            None => "",
        };
        format!("Innkeeper and its guests on a cluster that stays{node}")
    }

    /// Lets time pass.
    pub(super) async fn pass(&mut self, time: Duration) -> anyhow::Result<()> {
        if self.operator.as_ref().is_some_and(JoinHandle::is_finished) {
            bail!("the operator has ended, though nobody asked it to");
        }
        if let Some(paper) = &mut self.paper {
            paper.look(&self.api).await.context("the node of paper cannot say how its pods are")?;
        }
        tokio::time::sleep(time).await;
        Ok(())
    }

    /// Takes away all that was made, and ends the operator, which has to let go first.
    ///
    /// # Errors
    /// What is left, and what to do about it.
    pub(super) async fn end(mut self, say: &mut impl FnMut(&str)) -> anyhow::Result<()> {
        say("\nWhat the demo has made is taken away; Ctrl-C leaves it.");
        let said = self.stop.said();
        if self.operator.is_some() {
            let mut primaries = Vec::new();
            for (_, api_version, plural) in PRIMARIES {
                let all = self.api.list(&path((api_version, plural, ""))).await;
                for one in all.unwrap_or_default() {
                    let name = one["metadata"]["name"].as_str().unwrap_or_default();
                    primaries.push(path((api_version, plural, name)));
                }
            }
            self.delete(&primaries, said).await?;
            self.delete(&[format!("/api/v1/namespaces/{NAMESPACE}")], said).await?;
            let is_module = |at: &&String| at.contains("/modules/");
            let modules: Vec<_> = self.made.iter().filter(is_module).cloned().collect();
            self.delete(&modules, said).await?;
        }
        let _ = self.end.send(true);
        if let Some(operator) = self.operator.take() {
            // What it still does, it does to what goes anyhow.
            let _ = tokio::time::timeout(Duration::from_secs(10), operator).await;
        }
        let mut rest: Vec<String> = self.made.iter().skip(1).rev().cloned().collect();
        rest.extend(self.definitions().await?);
        for volume in self.api.list(VOLUMES).await? {
            if is_ours(&volume) {
                let name = volume["metadata"]["name"].as_str().unwrap_or_default();
                rest.push(format!("{VOLUMES}/{name}"));
            }
        }
        self.delete(&rest, said).await?;
        let first: Vec<String> = self.made.first().cloned().into_iter().collect();
        self.delete(&first, said).await?;
        // The controller manager tells of a node for a while after it has gone.
        say("Nothing is left of the demo but Events, which the cluster forgets by itself.");
        Ok(())
    }

    /// Deletes what is at these paths, and waits until it is gone.
    async fn delete(&mut self, all: &[String], said: usize) -> anyhow::Result<()> {
        for at in all {
            let deleted = self.api.delete(at).await;
            deleted.with_context(|| format!("{at} cannot be deleted"))?;
        }
        let deadline = Instant::now() + END;
        let mut left = all.to_vec();
        loop {
            let mut still = Vec::new();
            for at in left {
                if self.api.get(&at).await?.is_some() {
                    still.push(at);
                }
            }
            if still.is_empty() {
                return Ok(());
            }
            if self.stop.said() > said || Instant::now() > deadline {
                bail!(
                    "left on the cluster: {}, and what was made before. The next demo on it takes it up, and takes it away in the end",
                    still.join(", ")
                );
            }
            left = still;
            if let Some(paper) = &mut self.paper {
                // Its pods go too, at some time between two questions.
                let _ = paper.look(&self.api).await;
            }
            tokio::time::sleep(POLL).await;
        }
    }
}
