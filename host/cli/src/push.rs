//! `innkeeper push`: stores a guest in the cluster and makes it the source of a Module.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, bail};
use innkeeper_cluster::{ApiClient, ApiError, Force};
use innkeeper_contract::Kind;
use innkeeper_core::{Manager, ObjectKey};
use innkeeper_modules::machine::REJECTED;
use innkeeper_modules::machine::reason::WOULD_NARROW_CRD;
use innkeeper_modules::module::{self, CandidateStatus, ModuleStatus, NAMESPACE, SOURCE_KEY};
use innkeeper_modules::{Module, chunks};
use serde_json::{Map, Value, json};

use crate::component::{self, Opened};
use crate::definitions;
use crate::kube::KubeArguments;
use crate::modules::digits::short;
use crate::out::{self, Page};
use crate::policy_consent;
use crate::preview::PreviewedChanges;

/// How often the command reads the Module.
pub(crate) const POLL_PERIOD: Duration = Duration::from_millis(250);

/// The message while the operator has not observed a pushed guest.
pub(crate) const NOT_OBSERVED: &str =
    "the operator has not observed the change: check that it runs";

/// Arguments of `innkeeper push`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The guest's component, plain or gzip.
    file: PathBuf,
    /// Module whose source the guest becomes. It must exist.
    #[arg(long, value_name = "NAME")]
    module: String,
    /// Wait until the guest is active, held or rejected, for this time at most (60 without
    /// a value).
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "60")]
    wait: Option<u64>,
    #[command(flatten)]
    kube: KubeArguments,
}

/// Runs the command.
///
/// # Errors
/// If the file is no guest, or the API server refuses a request; with --wait also if the guest does
/// not become active.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    // The user sees problems of the guest here, before anything is written to the cluster.
    let opened = component::open(&arguments.file)?;
    definitions::print_stale_component(&opened);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(push(arguments, &opened))
}

async fn push(arguments: &Arguments, opened: &Opened) -> anyhow::Result<()> {
    let cluster = arguments.kube.connect().await?;
    let client = cluster.host();
    let name = &arguments.module;
    let pushed = put(&client, name, opened).await?;
    let mut page = Page::default();
    for chunk in pushed.config_maps.iter().rev() {
        page.line(format_args!("ConfigMap {NAMESPACE}/{chunk}"));
    }
    let source = pushed.config_maps.last().map_or("", String::as_str);
    page.line(format_args!("Module {name}: source is now ConfigMap {NAMESPACE}/{source}"));
    out::page(&page)?;
    match arguments.wait {
        Some(seconds) => wait(&client, name, &pushed, Duration::from_secs(seconds)).await,
        None => Ok(()),
    }
}

/// A guest in the cluster.
pub(crate) struct Pushed {
    /// The ConfigMaps, the first chunk last.
    pub(crate) config_maps: Vec<String>,
    /// The generation of the Module with this source.
    generation: i64,
    digest: String,
}

impl Pushed {
    /// A guest that was in the cluster already, and is the source of a Module of this generation.
    pub(crate) fn earlier(generation: i64, digest: String) -> Self {
        Self { config_maps: Vec::new(), generation, digest }
    }
}

/// The kind of ConfigMaps.
pub(crate) fn config_map_kind() -> Kind {
    Kind::namespaced("v1", "ConfigMap", "configmaps")
}

/// The name of the ConfigMap of a guest, or of its first chunk.
pub(crate) fn config_map_name(module: &str, opened: &Opened) -> String {
    format!("{module}-{}", opened.component.digest.short())
}

/// Reads a Module.
///
/// # Errors
/// If it does not exist, or the API server cannot be reached.
pub(crate) async fn expect_module(client: &ApiClient, name: &str) -> anyhow::Result<Value> {
    let found = client.get_as(&module::kind(), &ObjectKey::new("", name)).await;
    found.map_err(|error| explain(error, name))
}

/// Stores a guest in the cluster and makes it the source of a Module.
///
/// # Errors
/// If the Module does not exist, or the API server refuses a request.
pub(crate) async fn put(client: &ApiClient, name: &str, opened: &Opened) -> anyhow::Result<Pushed> {
    // Before the writes: no ConfigMap should be left that no Module uses.
    let module = expect_module(client, name).await?;
    policy_consent::print_mismatch(&module, opened);
    let allowed = module.pointer("/spec/allowedCRDGroups").and_then(Value::as_array);
    let allowed: Vec<String> =
        allowed.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect();
    definitions::print_installed(client, opened, &allowed).await;
    let config_map = config_map_name(name, opened);
    let kind = config_map_kind();
    let mut config_maps = Vec::new();
    for body in chunks::config_maps(&config_map, &opened.component, &metadata(name, opened)) {
        let chunk = body["metadata"]["name"].as_str().unwrap_or_default();
        client
            .apply(&kind, &ObjectKey::new(NAMESPACE, chunk), &Manager::Push, &body, Force::Yes)
            .await
            .map_err(|error| explain(error, name))?;
        config_maps.push(chunk.to_owned());
    }
    let source = json!({
        "apiVersion": module::API_VERSION,
        "kind": module::KIND,
        "metadata": { "name": name },
        "spec": { "source": { "configMap": { "name": config_map, "key": SOURCE_KEY } } },
    });
    let applied = client
        .apply(&module::kind(), &ObjectKey::new("", name), &Manager::Push, &source, Force::Yes)
        .await
        .map_err(|error| explain(error, name))?;
    Ok(Pushed {
        config_maps,
        generation: applied.object.generation,
        digest: opened.component.digest.to_string(),
    })
}

/// The labels and annotations of all ConfigMaps of a guest.
fn metadata(module: &str, opened: &Opened) -> Map<String, Value> {
    let manifest = opened.guest.manifest();
    let guest = format!("{} {}", manifest.name, manifest.version);
    let labels = json!({ "innkeeper.dev/module": module });
    let annotations = json!({ "innkeeper.dev/guest": guest.trim_end() });
    Map::from_iter([("labels".to_owned(), labels), ("annotations".to_owned(), annotations)])
}

fn explain(error: ApiError, module: &str) -> anyhow::Error {
    let hint = match &error {
        ApiError::NotServed { .. } => {
            "the cluster has no kind Module; run `kubectl apply -k deploy/` or `innkeeper crd | kubectl apply -f -`".to_owned()
        }
        ApiError::NotFound { .. } => format!(
            "Module {module} not found; create it first (deploy/samples has an example), its source may name a ConfigMap that does not exist yet"
        ),
        ApiError::NamespaceNotFound { .. } => format!(
            "namespace {NAMESPACE} not found; run `kubectl apply -k deploy/` or `kubectl create namespace {NAMESPACE}`"
        ),
        _ => return error.into(),
    };
    anyhow::Error::new(error).context(hint)
}

/// The state of the rollout of a pushed guest, from the status of the Module.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum PushOutcome {
    /// The operator has not observed the change.
    NotObserved,
    /// The candidate is loaded or previewed; its state.
    InProgress(String),
    /// The candidate requires an approval.
    Held(Box<CandidateStatus>),
    /// The guest is rejected, for this reason.
    Rejected(String),
    /// The guest is the active revision; with its preview, if it had one.
    Active(Option<Box<PreviewedChanges>>),
}

/// Reads the state of the rollout.
///
/// # Errors
/// If the Module cannot be read.
pub(crate) async fn outcome(
    client: &ApiClient,
    name: &str,
    pushed: &Pushed,
) -> anyhow::Result<PushOutcome> {
    let module: Value = client.get_as(&module::kind(), &ObjectKey::new("", name)).await?;
    let status = Module::from_value(&module)
        .with_context(|| format!("cannot read Module {name}"))?
        .status
        .unwrap_or_default();
    Ok(outcome_of(&status, pushed))
}

fn outcome_of(status: &ModuleStatus, pushed: &Pushed) -> PushOutcome {
    if status.observed_generation < Some(pushed.generation) {
        return PushOutcome::NotObserved;
    }
    let condition =
        |type_: &str| status.conditions.iter().find(|condition| condition.type_ == type_);
    // The candidate may still be a guest that was pushed before.
    if let Some(mut candidate) = status.candidate.clone().filter(|one| one.digest == pushed.digest)
    {
        if let Some(held) = condition("Held").filter(|held| held.status == "True") {
            candidate.reason.get_or_insert_with(|| held.reason.clone());
            candidate.message.get_or_insert_with(|| held.message.clone());
            return PushOutcome::Held(Box::new(candidate));
        }
        if candidate.state == REJECTED {
            let (reason, message) = (candidate.reason.as_deref(), candidate.message.as_deref());
            let reason = reason.unwrap_or(REJECTED);
            return PushOutcome::Rejected(rejection(reason, message.unwrap_or_default()));
        }
        return PushOutcome::InProgress(candidate.state);
    }
    if status.digest.as_deref() == Some(&pushed.digest) {
        // A policy is of use when a replica reviews with it.
        let serving = condition("Serving").filter(|_| status.policy.is_some());
        if let Some(serving) = serving.filter(|serving| serving.status == "False") {
            let state = format!("{}: {}", serving.reason, serving.message);
            return PushOutcome::InProgress(state);
        }
        let preview = PreviewedChanges::of_active(status, Some(&pushed.digest));
        return PushOutcome::Active(preview.map(Box::new));
    }
    if let Some(rejected) = status.rejected.iter().find(|one| one.digest == pushed.digest) {
        return PushOutcome::Rejected(rejection(&rejected.reason, &rejected.message));
    }
    match condition("Loaded") {
        Some(loaded) if loaded.status == "False" => {
            PushOutcome::Rejected(rejection(&loaded.reason, &loaded.message))
        }
        Some(loaded) => PushOutcome::InProgress(format!("{}: {}", loaded.reason, loaded.message)),
        None => PushOutcome::NotObserved,
    }
}

/// The reason and the message of a rejection, without the word that the outcome says already.
fn rejection(reason: &str, message: &str) -> String {
    match (reason, message) {
        (reason, "") => reason.to_owned(),
        (REJECTED, message) => message.to_owned(),
        (reason, message) => format!("{reason}: {message}"),
    }
}

/// Why a candidate is held, and the commands that show and approve it.
fn held(name: &str, candidate: &CandidateStatus) -> String {
    let (reason, message) = (candidate.reason.as_deref(), candidate.message.as_deref());
    // The approval of a change of definitions names the change, which the command finds.
    let digest = match reason {
        Some(WOULD_NARROW_CRD) => String::new(),
        _ => format!(" {}", short(&candidate.digest)),
    };
    format!(
        "({}): {}; `innkeeper modules describe {name}` shows what it would do, and `innkeeper modules approve {name}{digest}` activates it without another preview",
        reason.unwrap_or_default(),
        message.unwrap_or_default()
    )
}

/// Waits for the end of the rollout.
///
/// # Errors
/// If the guest does not become active in this time.
pub(crate) async fn wait(
    client: &ApiClient,
    name: &str,
    pushed: &Pushed,
    limit: Duration,
) -> anyhow::Result<()> {
    let mut last = NOT_OBSERVED.to_owned();
    let waited = client.env().timeout(limit, async {
        loop {
            match outcome(client, name, pushed).await? {
                PushOutcome::Active(_) => return Ok(()),
                PushOutcome::Held(candidate) => {
                    bail!("the guest is held {}", held(name, &candidate))
                }
                PushOutcome::Rejected(reason) => bail!("the guest is rejected: {reason}"),
                PushOutcome::InProgress(state) => last = state,
                PushOutcome::NotObserved => {}
            }
            client.env().sleep(POLL_PERIOD).await;
        }
    });
    match waited.await {
        Ok(result) => {
            result.context("waiting for the revision to become active")?;
            out::line("the revision is active")
        }
        Err(_) => bail!("the guest is not active after {} s: {last}", limit.as_secs()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(status: Value) -> PushOutcome {
        let pushed = Pushed { config_maps: Vec::new(), generation: 3, digest: "a".repeat(64) };
        outcome_of(&serde_json::from_value(status).unwrap(), &pushed)
    }

    fn condition(type_: &str, status: &str, reason: &str) -> Value {
        json!({"type": type_, "status": status, "reason": reason, "message": "so it is",
            "lastTransitionTime": "2026-01-01T00:00:00Z"})
    }

    #[test]
    fn outcome_ignores_the_status_of_other_revisions() {
        let (mine, other) = ("a".repeat(64), "b".repeat(64));
        let held =
            [condition("Held", "True", "WouldDelete"), condition("Loaded", "True", "SourceLoaded")];
        assert_eq!(
            outcome(json!({"observedGeneration": 2, "digest": mine})),
            PushOutcome::NotObserved,
            "the operator has not seen the source yet"
        );
        assert_eq!(
            outcome(json!({"observedGeneration": 3, "digest": mine})),
            PushOutcome::Active(None)
        );
        let policy = json!({"kind": "Validate", "mode": "Enforce"});
        let serves = |is: &str| {
            outcome(json!({"observedGeneration": 3, "digest": mine, "policy": policy,
                "conditions": [condition("Serving", is, "NoReplica")]}))
        };
        assert_eq!(serves("True"), PushOutcome::Active(None));
        assert_eq!(
            serves("False"),
            PushOutcome::InProgress("NoReplica: so it is".into()),
            "no replica reviews with the policy yet"
        );
        let of = |digest: &str, state: &str| {
            outcome(json!({"observedGeneration": 3, "digest": other, "conditions": held,
                "candidate": {"digest": digest, "state": state}}))
        };
        assert_eq!(
            of(&"c".repeat(64), "Held"),
            PushOutcome::InProgress("SourceLoaded: so it is".into())
        );
        let PushOutcome::Held(candidate) = of(&mine, "Held") else { panic!("it is held") };
        assert_eq!(candidate.reason.as_deref(), Some("WouldDelete"));
    }

    #[test]
    fn held_guest_comes_with_the_command_that_approves_it() {
        let candidate = |reason: &str| CandidateStatus {
            digest: "a".repeat(64),
            reason: Some(reason.to_owned()),
            message: Some("so it is".to_owned()),
            ..CandidateStatus::default()
        };
        assert_eq!(
            held("web", &candidate("WouldDelete")),
            "(WouldDelete): so it is; `innkeeper modules describe web` shows what it would do, and `innkeeper modules approve web aaaaaaaaaaaa` activates it without another preview"
        );
        let change = held("web", &candidate(WOULD_NARROW_CRD));
        assert!(change.contains("`innkeeper modules approve web`"), "{change}");
    }

    #[test]
    fn outcome_says_once_that_a_user_has_rejected_the_revision() {
        let (mine, other) = ("a".repeat(64), "b".repeat(64));
        let rejected = |message: &str| json!({"digest": mine, "state": "Rejected", "reason": "Rejected", "message": message});
        let refused = |why: &str| PushOutcome::Rejected(why.into());
        let of =
            |candidate: Value| outcome(json!({"observedGeneration": 3, "candidate": candidate}));
        assert_eq!(of(rejected("a user has rejected it")), refused("a user has rejected it"));
        assert_eq!(of(rejected("")), refused("Rejected"));
        assert_eq!(of(json!({"digest": mine, "state": "Rejected"})), refused("Rejected"));
        assert_eq!(
            outcome(json!({"observedGeneration": 3, "digest": other,
                "rejected": [rejected("a user has rejected it")]})),
            refused("a user has rejected it")
        );
    }

    #[test]
    fn outcome_has_the_reason_when_the_revision_is_rejected_or_rolled_back() {
        let (mine, other) = ("a".repeat(64), "b".repeat(64));
        let refused = PushOutcome::Rejected("Trapped: it traps".into());
        assert_eq!(
            outcome(
                json!({"observedGeneration": 3, "candidate": {"digest": mine, "state": "Rejected",
                "reason": "Trapped", "message": "it traps"}})
            ),
            refused
        );
        assert_eq!(
            outcome(json!({"observedGeneration": 3, "digest": other, "rejected": [
                {"digest": mine, "reason": "Trapped", "message": "it traps"}]})),
            refused
        );
        assert_eq!(
            outcome(json!({"observedGeneration": 3,
                "conditions": [condition("Loaded", "False", "SourceNotFound")]})),
            PushOutcome::Rejected("SourceNotFound: so it is".into())
        );
    }
}
