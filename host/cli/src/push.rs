//! `innkeeper push`: a guest into the cluster, and a Module pointed at it.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, bail};
use innkeeper_cluster::{ApiClient, ApiError, Force};
use innkeeper_contract::Kind;
use innkeeper_core::{Manager, ObjectKey};
use innkeeper_modules::machine::REJECTED;
use innkeeper_modules::module::{
    self, CandidateStatus, ModuleStatus, NAMESPACE, PreviewStatus, SOURCE_KEY,
};
use innkeeper_modules::{Module, chunks};
use serde_json::{Map, Value, json};

use crate::component::{self, Opened};
use crate::out::{self, Page};
use crate::run::KubeArguments;

/// How often the Module is looked at.
pub(crate) const POLL_PERIOD: Duration = Duration::from_millis(250);

/// Arguments of `innkeeper push`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The guest's component, plain or gzip.
    file: PathBuf,
    /// The Module to point at it. It must exist.
    #[arg(long, value_name = "NAME")]
    module: String,
    /// Wait until the guest serves or is refused, at most so many seconds.
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "60")]
    wait: Option<u64>,
    #[command(flatten)]
    kube: KubeArguments,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    // Checked here, where the person is, before the cluster sees it.
    let opened = component::open(&arguments.file)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(push(arguments, &opened))
}

async fn push(arguments: &Arguments, opened: &Opened) -> anyhow::Result<()> {
    let cluster = arguments.kube.connect().await?;
    let client = cluster.host();
    let name = &arguments.module;
    let pushed = put(&client, name, opened).await?;
    let mut page = Page::default();
    for part in pushed.config_maps.iter().rev() {
        page.line(format_args!("ConfigMap {NAMESPACE}/{part}"));
    }
    page.line(format_args!("Module {name} now has it as its source"));
    out::page(&page)?;
    match arguments.wait {
        Some(seconds) => wait(&client, name, &pushed, Duration::from_secs(seconds)).await,
        None => Ok(()),
    }
}

/// What was pushed, and where.
pub(crate) struct Pushed {
    /// The ConfigMaps, the first part last.
    pub(crate) config_maps: Vec<String>,
    /// The Module's generation that has it as its source.
    generation: i64,
    digest: String,
}

/// The kind of ConfigMaps.
pub(crate) fn config_map_kind() -> Kind {
    Kind::namespaced("v1", "ConfigMap", "configmaps")
}

/// The name of the ConfigMap, or of its first part, that a guest is put into.
pub(crate) fn config_map_name(module: &str, opened: &Opened) -> String {
    format!("{module}-{}", opened.component.digest.short())
}

/// An error unless there is such a Module.
pub(crate) async fn expect_module(client: &ApiClient, name: &str) -> anyhow::Result<()> {
    let found = client.get(&module::kind(), &ObjectKey::new("", name)).await;
    found.map(drop).map_err(|error| explain(error, name))
}

/// Puts a guest into the cluster, and points a Module at it.
pub(crate) async fn put(client: &ApiClient, name: &str, opened: &Opened) -> anyhow::Result<Pushed> {
    // Before anything is written: a ConfigMap that no Module uses helps nobody.
    expect_module(client, name).await?;
    let config_map = config_map_name(name, opened);
    let kind = config_map_kind();
    let mut config_maps = Vec::new();
    for body in chunks::config_maps(&config_map, &opened.component, &metadata(name, opened)) {
        let part = body["metadata"]["name"].as_str().unwrap_or_default();
        client
            .apply(&kind, &ObjectKey::new(NAMESPACE, part), &Manager::Push, &body, Force::Yes)
            .await
            .map_err(|error| explain(error, name))?;
        config_maps.push(part.to_owned());
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

/// What the ConfigMaps have in common. They are named by their content, and never changed.
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
            "the cluster has no Modules yet: `innkeeper crd | kubectl apply -f -`, or install deploy/".to_owned()
        }
        ApiError::NotFound { .. } => format!(
            "there is no Module {module}: create it first (deploy/samples has one); its source may name a ConfigMap that is not there yet"
        ),
        ApiError::NamespaceNotFound { .. } => format!(
            "there is no namespace {NAMESPACE}, where modules live: `kubectl create namespace {NAMESPACE}`, or install deploy/"
        ),
        _ => return error.into(),
    };
    anyhow::Error::new(error).context(hint)
}

/// What the operator says has become of what was pushed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum PushOutcome {
    /// It has not looked at it.
    NotObserved,
    /// It is on its way; what the condition `Loaded` says.
    InProgress(String),
    /// It waits for a person's word, and this is what it would do.
    Held(Box<CandidateStatus>),
    /// It is not taken, for this reason.
    Rejected(String),
    /// It serves, and this is what it was found to change, if that was looked at.
    Active(Option<Box<PreviewStatus>>),
}

/// Asks the Module what has become of what was pushed.
pub(crate) async fn outcome(
    client: &ApiClient,
    name: &str,
    pushed: &Pushed,
) -> anyhow::Result<PushOutcome> {
    let module: Value = client.get_as(&module::kind(), &ObjectKey::new("", name)).await?;
    let status = Module::from_value(&module)
        .with_context(|| format!("Module {name} cannot be read"))?
        .status
        .unwrap_or_default();
    Ok(outcome_of(&status, pushed))
}

fn outcome_of(status: &ModuleStatus, pushed: &Pushed) -> PushOutcome {
    if status.observed_generation < Some(pushed.generation) {
        return PushOutcome::NotObserved;
    }
    let told = |reason: &str, message: &str| format!("{reason}: {message}");
    let condition =
        |type_: &str| status.conditions.iter().find(|condition| condition.type_ == type_);
    // What was pushed before may still be on its way.
    if let Some(mut candidate) = status.candidate.clone().filter(|one| one.digest == pushed.digest)
    {
        if let Some(held) = condition("Held").filter(|held| held.status == "True") {
            candidate.reason.get_or_insert_with(|| held.reason.clone());
            candidate.message.get_or_insert_with(|| held.message.clone());
            return PushOutcome::Held(Box::new(candidate));
        }
        if candidate.state == REJECTED {
            let (reason, message) = (candidate.reason.as_deref(), candidate.message.as_deref());
            return PushOutcome::Rejected(told(
                reason.unwrap_or(REJECTED),
                message.unwrap_or_default(),
            ));
        }
        return PushOutcome::InProgress(candidate.state);
    }
    if status.digest.as_deref() == Some(&pushed.digest) {
        let its = status.preview.clone().filter(|told| told.digest == pushed.digest);
        return PushOutcome::Active(its.map(Box::new));
    }
    if let Some(rejected) = status.rejected.iter().find(|one| one.digest == pushed.digest) {
        return PushOutcome::Rejected(told(&rejected.reason, &rejected.message));
    }
    match condition("Loaded") {
        Some(loaded) if loaded.status == "False" => {
            PushOutcome::Rejected(told(&loaded.reason, &loaded.message))
        }
        Some(loaded) => PushOutcome::InProgress(told(&loaded.reason, &loaded.message)),
        None => PushOutcome::NotObserved,
    }
}

/// Waits until the operator says what has become of it.
async fn wait(
    client: &ApiClient,
    name: &str,
    pushed: &Pushed,
    limit: Duration,
) -> anyhow::Result<()> {
    let mut last = "the operator has not looked at it; does it run?".to_owned();
    let waited = client.env().timeout(limit, async {
        loop {
            match outcome(client, name, pushed).await? {
                PushOutcome::Active(_) => return Ok(()),
                PushOutcome::Held(candidate) => bail!(
                    "the guest is held ({}): {}",
                    candidate.reason.unwrap_or_default(),
                    candidate.message.unwrap_or_default()
                ),
                PushOutcome::Rejected(why) => bail!("the guest is refused: {why}"),
                PushOutcome::InProgress(why) => last = why,
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
        Err(_) => bail!("the guest does not serve after {} s: {last}", limit.as_secs()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fate(status: Value) -> PushOutcome {
        let pushed = Pushed { config_maps: Vec::new(), generation: 3, digest: "a".repeat(64) };
        outcome_of(&serde_json::from_value(status).unwrap(), &pushed)
    }

    fn condition(type_: &str, status: &str, reason: &str) -> Value {
        json!({"type": type_, "status": status, "reason": reason, "message": "so it is",
            "lastTransitionTime": "2026-01-01T00:00:00Z"})
    }

    #[test]
    fn what_is_said_of_another_version_is_not_taken_for_this_one() {
        let (mine, other) = ("a".repeat(64), "b".repeat(64));
        let held =
            [condition("Held", "True", "WouldDelete"), condition("Loaded", "True", "SourceLoaded")];
        assert_eq!(
            fate(json!({"observedGeneration": 2, "digest": mine})),
            PushOutcome::NotObserved,
            "the operator has not seen the source yet"
        );
        assert_eq!(
            fate(json!({"observedGeneration": 3, "digest": mine})),
            PushOutcome::Active(None)
        );
        let of = |digest: &str, state: &str| {
            fate(json!({"observedGeneration": 3, "digest": other, "conditions": held,
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
    fn a_version_that_is_refused_or_taken_back_is_told_with_the_reason() {
        let (mine, other) = ("a".repeat(64), "b".repeat(64));
        let refused = PushOutcome::Rejected("Trapped: it traps".into());
        assert_eq!(
            fate(
                json!({"observedGeneration": 3, "candidate": {"digest": mine, "state": "Rejected",
                "reason": "Trapped", "message": "it traps"}})
            ),
            refused
        );
        assert_eq!(
            fate(json!({"observedGeneration": 3, "digest": other, "rejected": [
                {"digest": mine, "reason": "Trapped", "message": "it traps"}]})),
            refused
        );
        assert_eq!(
            fate(json!({"observedGeneration": 3,
                "conditions": [condition("Loaded", "False", "SourceNotFound")]})),
            PushOutcome::Rejected("SourceNotFound: so it is".into())
        );
    }
}
