//! `innkeeper render`: what a guest desires for objects from files, without a cluster.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use innkeeper_contract::{Kind, Manifest, Readiness, Reference};
use innkeeper_core::desired::DesiredState;
use innkeeper_core::host_names::Grants;
use innkeeper_core::observed::{self, Observed};
use innkeeper_core::ownership::Primary;
use innkeeper_core::{Object, ObjectKey, ObjectRef, Selector, control, foreign, plan};
use innkeeper_modules::parameters;
use innkeeper_sandbox::{Host, Level, Outcome, ReadError, ResourceKind, Run};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::document::{Document, Yaml};
use crate::objects::{self, InputObject};
use crate::{component, golden, out};

/// Arguments of `innkeeper render`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The guest's component, plain or gzip.
    file: PathBuf,
    /// Objects, YAML or JSON, several documents a file; `-` is standard input (repeat for more).
    /// One must be of the guest's primary kind; the others are what the guest sees when it reads.
    /// Those whose controller is the primary, by name or uid, and those that were kept for it
    /// (the label innkeeper.dev/retained-for), are what it has made before.
    #[arg(short = 'f', long = "objects", required = true, value_name = "FILE")]
    objects: Vec<PathBuf>,
    /// Which primary, as NAME or NAMESPACE/NAME, if the files have several.
    #[arg(long, value_name = "NAME")]
    primary: Option<String>,
    /// The Module's parameters, as JSON or YAML, or @FILE.
    #[arg(long, value_name = "PARAMETERS")]
    parameters: Option<String>,
    /// What the guest's clock says, RFC 3339: the present time if left out.
    #[arg(long, value_name = "TIME")]
    now: Option<Timestamp>,
    /// Say that the API server does not serve a kind, as APIVERSION/KIND, like
    /// route.openshift.io/v1/Route (repeat for more).
    #[arg(long = "unserved", value_name = "KIND")]
    unserved: Vec<String>,
    /// Ask as if the primary were being deleted: its guest must have a finalizer.
    #[arg(long)]
    deleting: bool,
    /// Print nothing but the difference to this file, and fail if there is one.
    #[arg(long, value_name = "FILE")]
    golden: Option<PathBuf>,
    /// Write the golden file anew.
    #[arg(long, requires = "golden")]
    update: bool,
    /// yaml: the desired objects, with the rest of the answer as comments. json: the whole answer.
    #[arg(short, long, value_enum, default_value = "yaml")]
    output: Format,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Yaml,
    Json,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let opened = component::open(&arguments.file)?;
    let manifest = opened.guest.manifest();
    let parameters = read_parameters(arguments.parameters.as_deref())?;
    parameters::check(manifest, &parameters).context("--parameters")?;
    let mut given = Vec::new();
    for file in &arguments.objects {
        given.extend(objects::read(file)?);
    }
    let now = arguments.now.unwrap_or_else(Timestamp::now);
    let primary = choose(&given, &manifest.primary, arguments.primary.as_deref())?;
    if arguments.deleting && given[primary].text(DELETION).is_empty() {
        given[primary].value["metadata"]["deletionTimestamp"] = seconds(now).into();
    }
    let (primary, _) = given[primary].decode(&manifest.primary)?;
    if primary.is_terminating() && manifest.finalizer.is_none() {
        bail!(
            "{} has no finalizer, so it is never asked about a {} that is being deleted: Kubernetes deletes what it owns (Describe::finalizes in the SDK gives it one)",
            manifest.name,
            manifest.primary.kind
        );
    }
    let mut world = ClusterState::new(manifest, &given, &arguments.unserved, now)?;
    let target = ObjectRef::new(Arc::new(manifest.primary.clone()), primary.key.clone());
    let me =
        Primary::new(&manifest.name, target, &primary.uid).decorating(control::decorates(manifest));
    let owned = world.owned_by(&primary, &me);
    let seen: Vec<_> =
        owned.iter().map(|(_, object, readiness)| (object, readiness.clone())).collect();
    let document = Observed {
        object: &primary,
        owned: &seen,
        unapplied: &[],
        unserved: &world.unserved.clone(),
        parameters: &if parameters.is_null() { String::new() } else { parameters.to_string() },
        // As the operator does.
        deleting: primary.is_terminating(),
    }
    .document();
    let Run { outcome, .. } = opened.guest.reconcile(&document, &mut world)?;
    let mut answer = RenderedOutcome::read(&outcome, manifest, &me)?;
    answer.warn_of_deletions(&owned, &primary, &me);
    let document = match arguments.output {
        Format::Yaml => answer.yaml()?,
        Format::Json => Document::json(&answer.json())?,
    };
    // A failure may be what is expected.
    if let Some(golden) = &arguments.golden {
        return golden::compare(golden, document.text(), arguments.update);
    }
    out::document(&document)?;
    match answer.failure {
        // The document has been printed; the status tells scripts.
        Some(message) => bail!("the guest failed: {message}"),
        None => Ok(()),
    }
}

/// When the deletion of an object was asked for.
const DELETION: &str = "/metadata/deletionTimestamp";

/// As Kubernetes writes times: without fractions.
fn seconds(time: Timestamp) -> String {
    Timestamp::from_second(time.as_second()).unwrap_or(time).to_string()
}

fn read_parameters(given: Option<&str>) -> anyhow::Result<Value> {
    let Some(given) = given else { return Ok(Value::Null) };
    let text = match given.strip_prefix('@') {
        Some(file) => std::fs::read_to_string(file)
            .with_context(|| format!("--parameters: {file} cannot be read"))?,
        None => given.to_owned(),
    };
    let value: Value =
        serde_yaml_ng::from_str(&text).context("--parameters is neither JSON nor YAML")?;
    if !value.is_object() && !value.is_null() {
        bail!("--parameters must be an object, as in '{{\"size\": 3}}'");
    }
    Ok(value)
}

/// The primary, by its place: the one that is named, or the only one.
fn choose(given: &[InputObject], kind: &Kind, name: Option<&str>) -> anyhow::Result<usize> {
    let key = |given: &InputObject| {
        ObjectKey::new(given.text("/metadata/namespace"), given.text("/metadata/name")).to_string()
    };
    let all: Vec<usize> = (0..given.len()).filter(|&index| given[index].is(kind)).collect();
    let chosen: Vec<usize> = all
        .iter()
        .copied()
        .filter(|&index| {
            name.is_none_or(|name| {
                given[index].text("/metadata/name") == name || key(&given[index]) == name
            })
        })
        .collect();
    let names = || all.iter().map(|&index| key(&given[index])).collect::<Vec<_>>().join(", ");
    match (chosen.as_slice(), name) {
        ([only], _) => Ok(*only),
        (_, _) if all.is_empty() => {
            bail!("there is no {kind} in the files: add the object that the guest is to reconcile")
        }
        ([], Some(name)) => bail!("there is no {kind} {name} in the files; there is {}", names()),
        _ => bail!("the files have several of {kind} ({}): choose one with --primary", names()),
    }
}

/// The cluster that the files make.
struct ClusterState {
    kinds: Vec<Kind>,
    unserved: Vec<Kind>,
    objects: BTreeMap<(Kind, ObjectKey), (Object, Readiness)>,
    now: Timestamp,
}

impl ClusterState {
    fn new(
        manifest: &Manifest,
        given: &[InputObject],
        unserved: &[String],
        now: Timestamp,
    ) -> anyhow::Result<Self> {
        let owned = manifest.owned.iter().map(|owned| &owned.kind);
        let mut kinds: Vec<Kind> =
            [&manifest.primary].into_iter().chain(owned).chain(&manifest.reads).cloned().collect();
        kinds.sort();
        kinds.dedup();
        let unserved = unserved.iter().map(|name| {
            kinds
                .iter()
                .find(|kind| format!("{}/{}", kind.api_version, kind.kind) == *name)
                .cloned()
                .with_context(|| format!("--unserved {name}: the guest declares no such kind"))
        });
        let unserved = unserved.collect::<anyhow::Result<Vec<_>>>()?;
        let mut objects = BTreeMap::new();
        for given in given {
            let Some(kind) = kinds.iter().find(|kind| given.is(kind)) else {
                out::eprint(&format!(
                    "innkeeper: {}: the guest declares no {} {}, so it cannot see it",
                    given.place,
                    given.text("/apiVersion"),
                    given.text("/kind"),
                ));
                continue;
            };
            let decoded = given.decode(kind)?;
            let key = decoded.0.key.clone();
            if objects.insert((kind.clone(), key), decoded).is_some() {
                bail!("{}: {} {} is given twice", given.place, kind, given.text("/metadata/name"));
            }
        }
        Ok(Self { kinds, unserved, objects, now })
    }

    /// What the primary has made before: what it controls, what its field manager wrote, and what
    /// was kept for it. In files a uid is seldom known, so kind and name do as well.
    fn owned_by(&self, primary: &Object, me: &Primary) -> Vec<(ObjectRef, Object, Readiness)> {
        let controls = |object: &Object| {
            object.controller().is_some_and(|owner| {
                let by_uid = !primary.uid.is_empty() && owner.uid == primary.uid;
                let by_name = (primary.uid.is_empty() || owner.uid.is_empty())
                    && &*owner.name == primary.key.name()
                    && (primary.key.namespace().is_empty()
                        || object.key.namespace() == primary.key.namespace());
                by_uid || by_name
            })
        };
        let made = |object: &Object| !primary.uid.is_empty() && object.is_made_for(&primary.uid);
        self.objects
            .iter()
            .filter(|(_, (object, _))| {
                controls(object) || made(object) || me.has_retained_label(object)
            })
            .map(|((kind, key), (object, readiness))| {
                let target = ObjectRef::new(Arc::new(kind.clone()), key.clone());
                (target, object.clone(), readiness.clone())
            })
            .collect()
    }

    fn kind(&self, kind: &ResourceKind) -> Result<&Kind, ReadError> {
        let found = |declared: &&Kind| {
            declared.api_version == kind.api_version && declared.kind == kind.kind
        };
        if self.unserved.iter().any(|unserved| found(&unserved)) {
            return Err(ReadError::NotServed);
        }
        self.kinds.iter().find(found).ok_or(ReadError::Undeclared)
    }
}

impl Host for ClusterState {
    fn get(
        &mut self,
        kind: &ResourceKind,
        namespace: &str,
        name: &str,
        _: usize,
    ) -> Result<String, ReadError> {
        let kind = self.kind(kind)?.clone();
        let (object, readiness) = self
            .objects
            .get(&(kind, ObjectKey::new(namespace, name)))
            .ok_or(ReadError::NotFound)?;
        Ok(observed::object_document(object, readiness))
    }

    fn list(
        &mut self,
        kind: &ResourceKind,
        namespace: &str,
        label_selector: &str,
        _: usize,
    ) -> Result<String, ReadError> {
        let kind = self.kind(kind)?;
        let selector: Selector =
            label_selector.parse().map_err(|error| ReadError::Invalid(format!("{error}")))?;
        let objects: Vec<_> = self
            .objects
            .iter()
            .filter(|((of, key), (object, _))| {
                of == kind
                    && (namespace.is_empty() || key.namespace() == namespace)
                    && selector.matches(&object.labels)
            })
            .map(|(_, (object, readiness))| (object, readiness.clone()))
            .collect();
        Ok(observed::list_document(&objects))
    }

    fn now_ms(&mut self) -> u64 {
        u64::try_from(self.now.as_millisecond()).unwrap_or(0)
    }

    fn log(&mut self, level: Level, message: &str) {
        let level = match level {
            Level::Debug => "debug",
            Level::Info => "info",
            Level::Warn => "warn",
            Level::Error => "error",
        };
        let line = format_args!("guest: {level}: {message}");
        out::eprint(&foreign::one_line(line, foreign::LINE_BYTES_MAX));
    }
}

/// What the guest said.
struct RenderedOutcome {
    outcome: &'static str,
    /// In the order in which they would be applied, with the namespace filled in.
    objects: Vec<(Value, Vec<String>)>,
    rest: Map<String, Value>,
    failure: Option<String>,
    /// What is wanted and what is to stay, if all else goes.
    remain: Option<BTreeSet<Reference>>,
}

impl RenderedOutcome {
    fn read(outcome: &Outcome, manifest: &Manifest, primary: &Primary) -> anyhow::Result<Self> {
        let mut rest = Map::new();
        let mut put = |name: &str, value: Value| {
            let is_nothing = matches!(&value, Value::Null | Value::Bool(false))
                || value.as_array().is_some_and(Vec::is_empty);
            if !is_nothing {
                rest.insert(name.to_owned(), value);
            }
        };
        let (name, desired) = match outcome {
            Outcome::Complete(desired) => ("complete", desired),
            Outcome::Partial(desired) => ("partial", desired),
            Outcome::Failed(failure) => {
                put("reason", failure.reason.clone().into());
                put("message", failure.message.clone().into());
                put("permanent", failure.permanent.into());
                put("status", json!(failure.status));
                put("conditions", json!(failure.conditions));
                put("events", json!(failure.events));
                put("requeueAfterSeconds", json!(failure.requeue_after_seconds));
                let message = format!("{}: {}", failure.reason, failure.message);
                return Ok(Self {
                    outcome: "failed",
                    objects: Vec::new(),
                    rest,
                    failure: Some(message),
                    remain: None,
                });
            }
        };
        let wish = DesiredState::read(desired, manifest, primary, Grants::default())
            .context("the operator would refuse what the guest desires")?;
        let objects = wish
            .objects
            .iter()
            .map(|wanted| {
                // Without what the host adds for its own use: it says nothing about the guest.
                let mut body = wanted.body.clone();
                tidy(&mut body);
                let policy = wanted.policy.iter().filter_map(|policy| {
                    serde_json::to_value(policy).ok()?.as_str().map(str::to_owned)
                });
                (body, policy.collect())
            })
            .collect();
        put("keep", json!(desired.keep));
        put("finalized", desired.finalized.into());
        put("status", json!(desired.status));
        put("conditions", json!(desired.conditions));
        put("events", json!(desired.events));
        put("requeueAfterSeconds", json!(desired.requeue_after_seconds));
        let remain = matches!(outcome, Outcome::Complete(_)).then(|| {
            let wanted = wish.objects.iter().map(|wanted| wanted.object_ref.reference());
            wanted.chain(wish.keep.iter().cloned()).collect()
        });
        Ok(Self { outcome: name, objects, rest, failure: None, remain })
    }

    /// Adds what the operator would delete: what was made before and is no longer wanted.
    fn warn_of_deletions(
        &mut self,
        owned: &[(ObjectRef, Object, Readiness)],
        primary: &Object,
        me: &Primary,
    ) {
        let Some(remain) = &self.remain else { return };
        let stays = |target: &ObjectRef, object: &Object| {
            remain.contains(&target.reference())
                || (primary.is_terminating() && me.has_retained_label(object))
                || !plan::may_be_deleted(me, target, object)
        };
        let goes = owned.iter().filter(|(target, object, _)| !stays(target, object));
        let goes: Vec<String> = goes.map(|(target, ..)| target.to_string()).collect();
        if !goes.is_empty() {
            self.rest.insert("goes".to_owned(), goes.into());
        }
    }

    fn json(&self) -> Value {
        let mut all = self.rest.clone();
        all.insert("outcome".into(), self.outcome.into());
        let objects = self.objects.iter().map(|(object, policy)| {
            let mut entry = json!({ "object": object });
            if !policy.is_empty() {
                entry["policy"] = json!(policy);
            }
            entry
        });
        all.insert("objects".into(), objects.collect());
        Value::Object(all)
    }

    /// The objects, fit for `kubectl apply -f -`; the rest as comments.
    fn yaml(&self) -> anyhow::Result<Document> {
        let mut yaml = Yaml::default();
        yaml.comment(format_args!("outcome: {}", self.outcome));
        if !self.rest.is_empty() {
            let mut rest = Yaml::default();
            rest.document(&Value::Object(self.rest.clone()))?;
            for line in rest.finish()?.text().lines() {
                yaml.comment(line);
            }
        }
        for (object, policy) in &self.objects {
            yaml.separator();
            if !policy.is_empty() {
                yaml.comment(format_args!("policy: {}", policy.join(", ")));
            }
            yaml.document(object)?;
        }
        yaml.finish()
    }
}

/// Takes off what the host adds: the owner reference and the digest of what is desired.
fn tidy(body: &mut Value) {
    let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    metadata.remove("ownerReferences");
    if let Some(Value::Object(annotations)) = metadata.get_mut("annotations") {
        annotations
            .retain(|name, _| !name.starts_with(innkeeper_core::in_sync::APPLIED_ANNOTATION));
        if annotations.is_empty() {
            metadata.remove("annotations");
        }
    }
}
