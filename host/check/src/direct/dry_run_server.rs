//! What an API server would store of an object: the simulated one, by dry runs.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use bytes::Bytes;
use http::Request;
use innkeeper_cluster::SecretDigestKey;
use innkeeper_contract::Kind;
use innkeeper_core::desired::DesiredObject;
use innkeeper_core::{KindMasks, Manager, Object, ObjectKey, ObjectRef};
use innkeeper_lab::{Api, ApiFailure, Resource, Setup};
use innkeeper_operator::MODULES_NAMESPACE;
use innkeeper_simulator::{Controllers, Simulator};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::ready_workload;
use crate::run_error::RunError;
use crate::subject::Subject;

/// The namespace of objects that name none.
const NAMESPACE: &str = "default";

/// The time that controllers get for what is there at the start, in seconds.
const SETTLE_SECONDS: i64 = 60;

/// The most objects whose answers are kept. Most primaries of a run desire the same ones.
const KNOWN_MAX: usize = 50_000;

/// Why the server does not take an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The object is invalid (400, 422).
    Invalid,
    /// Something else, which depends on what is there.
    Other,
}

/// A simulated API server that has what exists before the host starts.
pub(super) struct DryRunServer {
    simulator: Simulator,
    now: Timestamp,
    /// The kinds of the guest's manifest, its primary's first.
    kinds: Vec<Arc<Kind>>,
    /// Those of them that the server does not serve.
    unserved: Vec<Kind>,
    /// The fields that the guest gets of each kind.
    masks: KindMasks,
    existing: BTreeMap<ObjectRef, Arc<Object>>,
    /// The Secrets that the Module grants, with their values.
    granted: BTreeMap<ObjectKey, Arc<Object>>,
    /// The answers for desired objects, by their digests.
    known: HashMap<String, Result<Stored, Refusal>>,
}

/// A desired object as the server stores it.
#[derive(Clone)]
struct Stored {
    applied: Arc<Object>,
    /// The same when controllers report it as ready, if it is a workload.
    ready: Option<Arc<Object>>,
}

impl DryRunServer {
    /// Starts a server and installs what the guest and the samples need.
    ///
    /// # Errors
    /// If the server refuses one of these objects.
    pub(super) fn start(subject: &Subject, seed: u64) -> Result<Self, RunError> {
        let start = Setup::new(seed).start;
        let simulator = Simulator::with(seed, start, Controllers::all());
        let api = Api::simulated(simulator.clone());
        let mut kinds: Vec<Arc<Kind>> = Vec::new();
        for kind in subject.kinds().into_iter().chain(&subject.manifest.reads) {
            if !kinds.iter().any(|known| **known == *kind) {
                kinds.push(Arc::new(kind.clone()));
            }
        }
        let mut server = Self {
            simulator: simulator.clone(),
            now: start,
            kinds,
            unserved: Vec::new(),
            masks: KindMasks::of_manifest(&subject.manifest),
            existing: BTreeMap::new(),
            granted: BTreeMap::new(),
            known: HashMap::new(),
        };
        innkeeper_lab::block_on(async {
            // The Module's account is there.
            let namespace = json!({"apiVersion": "v1", "kind": "Namespace",
                "metadata": {"name": MODULES_NAMESPACE}});
            let definitions: Vec<Value> = subject.manifest.definitions().collect();
            let objects = definitions.iter().chain(&subject.preexisting);
            for object in [&namespace].into_iter().chain(objects) {
                api.apply(object, NAMESPACE).await?;
            }
            simulator.advance(SignedDuration::from_secs(SETTLE_SECONDS));
            server.read_existing(&api, subject).await
        })??;
        server.now = simulator.now();
        Ok(server)
    }

    async fn read_existing(&mut self, api: &Api, subject: &Subject) -> Result<(), ApiFailure> {
        for kind in &self.kinds {
            let resource = match api.resource(&kind.api_version, &kind.kind).await {
                Ok(resource) => resource,
                Err(ApiFailure::NotServed { .. }) => {
                    self.unserved.push((**kind).clone());
                    continue;
                }
                Err(error) => return Err(error),
            };
            for item in api.list(&resource.path("", "")).await? {
                let text = item.to_string();
                let Some(object) = decode(kind, &text) else { continue };
                let key = object.key.clone();
                if is_granted(subject, kind, key.name())
                    && let Ok(secret) = Object::decode(kind, &text, None)
                {
                    self.granted.insert(key.clone(), Arc::new(secret));
                }
                self.existing.insert(ObjectRef::new(kind.clone(), key), Arc::new(object));
            }
        }
        Ok(())
    }

    /// The time after the start.
    pub(super) fn now(&self) -> Timestamp {
        self.now
    }

    /// The kind of the guest's primaries.
    pub(super) fn primary_kind(&self) -> Option<&Arc<Kind>> {
        self.kinds.first()
    }

    /// The kinds of the manifest that the server does not serve.
    pub(super) fn unserved(&self) -> &[Kind] {
        &self.unserved
    }

    /// An object with the fields that the guest gets of its kind.
    pub(super) fn shown<'o>(&self, kind: &Kind, object: &'o Object) -> Cow<'o, Object> {
        self.masks.shown(kind, object)
    }

    /// The kind of the manifest with this name.
    pub(super) fn kind(&self, api_version: &str, kind: &str) -> Option<&Arc<Kind>> {
        self.kinds.iter().find(|one| one.api_version == api_version && one.kind == kind)
    }

    /// The objects of the manifest's kinds that exist before the host starts.
    pub(super) fn existing(&self) -> &BTreeMap<ObjectRef, Arc<Object>> {
        &self.existing
    }

    /// A Secret with its values, if the Module grants it.
    pub(super) fn granted(&self, object_ref: &ObjectRef) -> Option<&Arc<Object>> {
        let is_secret = &*object_ref.kind.plural == "secrets" && object_ref.kind.group().is_empty();
        self.granted.get(&object_ref.key).filter(|_| is_secret)
    }

    /// A primary as the server stores it, with defaults and without unknown fields; `None` if it
    /// refuses it.
    pub(super) fn create(&self, primary: &Value) -> Option<String> {
        let kind = self.kinds.first()?;
        let text = |pointer| primary.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let namespace = match text("/metadata/namespace") {
            "" => NAMESPACE,
            given => given,
        };
        let path = format!("{}?dryRun=All", resource(kind).path(namespace, ""));
        let (code, body) = self.send("POST", &path, "application/json", primary.to_string())?;
        (code < 300).then_some(body)
    }

    /// A desired object as the server stores it after an apply.
    ///
    /// # Errors
    /// If the server refuses it.
    pub(super) fn apply(
        &mut self,
        desired: &DesiredObject,
        manager: &Manager,
        force: bool,
    ) -> Result<Arc<Object>, Refusal> {
        if let Some(known) = self.known.get(desired.digest()) {
            return known.clone().map(|stored| stored.applied);
        }
        let ObjectRef { kind, key } = &desired.object_ref;
        let path = format!(
            "{}?fieldManager={}&force={force}&fieldValidation=Strict&dryRun=All",
            resource(kind).path(key.namespace(), key.name()),
            manager.to_string().replace('/', "%2F"),
        );
        let body = desired.body.to_string();
        let answer = self.send("PATCH", &path, "application/apply-patch+yaml", body);
        let applied = match answer {
            Some((200..300, text)) => decode(kind, &text).ok_or(Refusal::Other).map(|applied| {
                let ready = ready_workload::ready(kind, &applied).map(Arc::new);
                Stored { applied: Arc::new(applied), ready }
            }),
            // No path has a name that cannot be in a request.
            Some((400 | 422, _)) | None => Err(Refusal::Invalid),
            Some(_) => Err(Refusal::Other),
        };
        if self.known.len() >= KNOWN_MAX {
            self.known.clear();
        }
        self.known.insert(desired.digest().to_owned(), applied.clone());
        applied.map(|stored| stored.applied)
    }

    /// The applied object with this digest when controllers report it as ready, if it is a
    /// workload.
    pub(super) fn ready(&self, digest: &str) -> Option<&Arc<Object>> {
        self.known.get(digest)?.as_ref().ok()?.ready.as_ref()
    }

    /// Sends a request. Returns the code and the body of the answer; `None` if it is no request.
    fn send(&self, method: &str, path: &str, content: &str, body: String) -> Option<(u16, String)> {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", content)
            .header("accept", "application/json")
            .body(Bytes::from(body))
            .ok()?;
        let response = self.simulator.request(request);
        let code = response.status().as_u16();
        let body = response.into_body().try_next().unwrap_or_default();
        Some((code, String::from_utf8_lossy(&body).into_owned()))
    }
}

/// An object as the host keeps it: a Secret without its values.
pub(super) fn decode(kind: &Kind, text: &str) -> Option<Object> {
    // Few objects are Secrets.
    let digest = |secret: &ObjectKey, name: &str, value: &str| {
        SecretDigestKey::new(b"check").digest(secret, name, value)
    };
    Object::decode(kind, text, Some(&digest)).ok()
}

fn resource(kind: &Kind) -> Resource {
    Resource {
        api_version: kind.api_version.clone(),
        plural: kind.plural.clone(),
        namespaced: kind.is_namespaced(),
    }
}

fn is_granted(subject: &Subject, kind: &Kind, name: &str) -> bool {
    let names = subject.module["spec"]["secretNames"].as_array();
    &*kind.plural == "secrets"
        && kind.group().is_empty()
        && names.into_iter().flatten().any(|one| one == name)
}
