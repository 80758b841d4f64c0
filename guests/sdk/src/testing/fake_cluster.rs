#![allow(clippy::panic, clippy::missing_panics_doc, reason = "for tests, which fail by a panic")]

use std::marker::PhantomData;

use innkeeper_contract::DesiredObject;
use serde_json::{Value, json};

use super::primary_selector::selects;
use super::{Run, Scenario};
use crate::{Manifest, Policy, Readiness, ReadinessState, Reconciler, Resource, Time};

/// Maximum number of rounds until the guest settles.
const ROUNDS_MAX: usize = 10;

/// The annotation that the host puts on each object that it applies.
const APPLIED_ANNOTATION: &str = "innkeeper.dev/applied";

/// A cluster in memory with one primary. It applies the outcomes of the guest round by round;
/// everything else happens only when the test calls a method.
///
/// ```ignore
/// let mut cluster = FakeCluster::<Guest>::with(primary);
/// cluster.settle();
/// cluster.becomes_ready::<Deployment>("web");
/// cluster.settle().condition("Ready", True, "AllReady");
/// ```
///
/// It does what the host does when no request fails: apply, merge, prune, keep, write the status
/// with the guest's conditions, remove the finalizer. A desired object replaces the existing one
/// except for its status and its creation time, and gets the annotation `innkeeper.dev/applied`. A
/// new `ConfigMap`, `CronJob`, Route, Secret or Service is ready; an object of any other kind is
/// `InProgress` until the test calls [`becomes_ready`](Self::becomes_ready). A primary that the
/// selector of the manifest leaves out has no finalizer; a round does not call the guest for it and
/// changes no object.
pub struct FakeCluster<R> {
    primary: Option<Value>,
    objects: Vec<Stored>,
    parameters: Value,
    now_ms: f64,
    manifest: Manifest,
    guest: PhantomData<R>,
}

struct Stored {
    object: Value,
    readiness: Readiness,
    /// The policies with which the primary made it; `None` if another client made it.
    made: Option<Vec<Policy>>,
}

impl<R: Reconciler> FakeCluster<R> {
    /// Creates a cluster with this primary. Missing fields are set as by [`Scenario::of`].
    pub fn with(primary: Value) -> Self {
        Self {
            primary: Some(Scenario::<R>::of(primary).into_primary()),
            objects: Vec::new(),
            parameters: Value::Null,
            now_ms: 0.0,
            manifest: R::describe(),
            guest: PhantomData,
        }
    }

    /// Sets the Module's `spec.parameters`.
    pub fn parameters(&mut self, parameters: Value) -> &mut Self {
        self.parameters = parameters;
        self
    }

    /// Sets the time, in milliseconds since 1970-01-01T00:00:00Z.
    pub fn at_ms(&mut self, now_ms: f64) -> &mut Self {
        self.now_ms = now_ms;
        self
    }

    /// Adds an object of another client. It needs `apiVersion` and `kind`.
    pub fn add(&mut self, mut object: Value) -> &mut Self {
        if let Some(namespace) =
            self.primary.as_ref().map(|one| one["metadata"]["namespace"].clone())
            && object["metadata"].get("namespace").is_none()
            && !namespace.is_null()
        {
            object["metadata"]["namespace"] = namespace;
        }
        self.objects.push(Stored { object, readiness: ready(), made: None });
        self
    }

    /// Changes an object, as its controller or another client would.
    pub fn change<K: Resource>(
        &mut self,
        name: &str,
        change: impl FnOnce(&mut Value),
    ) -> &mut Self {
        change(&mut self.find_mut::<K>(name).object);
        self
    }

    /// Makes an object ready.
    pub fn becomes_ready<K: Resource>(&mut self, name: &str) -> &mut Self {
        self.find_mut::<K>(name).readiness = ready();
        self
    }

    /// Makes an object `InProgress` with this message.
    pub fn becomes_unready<K: Resource>(&mut self, name: &str, message: &str) -> &mut Self {
        self.find_mut::<K>(name).readiness = in_progress(message);
        self
    }

    /// Deletes an object, as another client or the garbage collector would.
    pub fn remove<K: Resource>(&mut self, name: &str) -> &mut Self {
        self.find_mut::<K>(name);
        self.objects.retain(|one| !is::<K>(&one.object, name));
        self
    }

    /// Changes the primary as a user would, and increases its generation.
    pub fn edit(&mut self, change: impl FnOnce(&mut Value)) -> &mut Self {
        let primary = self.present();
        change(primary);
        let generation = primary["metadata"]["generation"].as_i64().unwrap_or_default();
        primary["metadata"]["generation"] = json!(generation + 1);
        self
    }

    /// Deletes the primary. Without a finalizer it is removed at once, with the objects that it
    /// owns.
    pub fn delete(&mut self) -> &mut Self {
        self.present()["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        if self.manifest.finalizer.is_none() || !self.is_selected() {
            self.remove_primary();
        }
        self
    }

    /// Returns whether the primary exists; it also does while it is being finalized.
    pub fn has_primary(&self) -> bool {
        self.primary.is_some()
    }

    /// Returns whether an object of this kind and name exists.
    pub fn has<K: Resource>(&self, name: &str) -> bool {
        self.objects.iter().any(|one| is::<K>(&one.object, name))
    }

    /// Returns the object of this kind and name. Panics if it does not exist.
    #[track_caller]
    pub fn object<K: Resource>(&self, name: &str) -> &Value {
        match self.objects.iter().find(|one| is::<K>(&one.object, name)) {
            Some(found) => &found.object,
            None => panic!("there is no {} {name}", K::KIND),
        }
    }

    /// Runs the guest once and applies the outcome. Returns the run and whether an object changed.
    #[track_caller]
    pub fn round(&mut self) -> (Run, bool) {
        let run = self.scenario().run();
        let is_deleting = self.present()["metadata"].get("deletionTimestamp").is_some();
        if is_deleting && !self.is_selected() {
            self.remove_primary();
        }
        let Some((complete, desired)) = run.desired() else { return (run, false) };
        let mut changed = false;
        for one in &desired.objects {
            changed |= self.apply(one);
        }
        if complete {
            changed |= self.prune(desired);
        }
        if let Some(status) = &desired.status {
            let mut status = Value::Object(status.clone());
            if !desired.conditions.is_empty() {
                status["conditions"] = json!(desired.conditions);
            }
            self.present()["status"] = status;
        }
        if desired.finalized && is_deleting {
            self.remove_primary();
        }
        (run, changed)
    }

    /// Runs rounds until one changes no object, and returns its run. Panics after 10 rounds.
    #[track_caller]
    pub fn settle(&mut self) -> Run {
        for _ in 0..ROUNDS_MAX {
            let (run, changed) = self.round();
            if !changed || self.primary.is_none() {
                return run;
            }
        }
        panic!(
            "the guest does not settle: its outcome changed objects in each of {ROUNDS_MAX} rounds"
        );
    }

    fn is_selected(&self) -> bool {
        let selector = self.manifest.selector.as_ref();
        self.primary.as_ref().is_some_and(|primary| selects(selector, primary))
    }

    #[track_caller]
    fn present(&mut self) -> &mut Value {
        match &mut self.primary {
            Some(primary) => primary,
            None => panic!("the primary is gone"),
        }
    }

    #[track_caller]
    fn find_mut<K: Resource>(&mut self, name: &str) -> &mut Stored {
        match self.objects.iter_mut().find(|one| is::<K>(&one.object, name)) {
            Some(found) => found,
            None => panic!("there is no {} {name}", K::KIND),
        }
    }

    #[track_caller]
    fn scenario(&mut self) -> Scenario<R> {
        let primary = self.present().clone();
        let deleting = primary["metadata"].get("deletionTimestamp").is_some();
        let mut scenario =
            Scenario::of(primary).parameters(self.parameters.clone()).at_ms(self.now_ms);
        for one in &self.objects {
            scenario = match one.made {
                Some(_) => scenario.owns(one.object.clone(), one.readiness.clone()),
                None => {
                    scenario.with_object_and_readiness(one.object.clone(), one.readiness.clone())
                }
            };
        }
        if deleting { scenario.deleting() } else { scenario }
    }

    /// Applies one desired object. Returns whether that changed an object.
    fn apply(&mut self, desired: &DesiredObject) -> bool {
        let mut wanted = desired.object.clone();
        if wanted["metadata"].get("namespace").is_none() {
            let namespace = self.present()["metadata"]["namespace"].clone();
            if !namespace.is_null() {
                wanted["metadata"]["namespace"] = namespace;
            }
        }
        let found = self.objects.iter_mut().find(|one| same_name(&one.object, &wanted));
        let merged = desired.policy.contains(&Policy::Merge);
        if !merged {
            wanted["metadata"]["annotations"][APPLIED_ANNOTATION] = json!("digest");
        }
        let Some(found) = found else {
            if merged {
                return false;
            }
            let readiness = at_first(&wanted);
            wanted["metadata"]["creationTimestamp"] = json!(Time::from_ms(self.now_ms).to_string());
            self.objects.push(Stored {
                object: wanted,
                readiness,
                made: Some(desired.policy.clone()),
            });
            return true;
        };
        let before = found.object.clone();
        if merged {
            merge(&mut found.object, &wanted);
        } else if !desired.policy.contains(&Policy::CreateOnly) {
            if let Some(status) = before.get("status") {
                wanted["status"] = status.clone();
            }
            if let Some(created) = before["metadata"].get("creationTimestamp") {
                wanted["metadata"]["creationTimestamp"] = created.clone();
            }
            found.object = wanted;
            found.made = Some(desired.policy.clone());
        }
        found.object != before
    }

    /// Deletes owned objects that are neither desired nor kept.
    fn prune(&mut self, desired: &innkeeper_contract::Desired) -> bool {
        let before = self.objects.len();
        self.objects.retain(|one| {
            let Some(policy) = &one.made else { return true };
            let wanted = desired
                .objects
                .iter()
                .any(|wanted| same_kind_and_name(&one.object, &wanted.object));
            let kept = desired.keep.iter().any(|keep| {
                one.object["kind"] == keep.kind
                    && one.object["apiVersion"] == keep.api_version
                    && one.object["metadata"]["name"] == keep.name
            });
            let holds_data = one.object["kind"] == "PersistentVolumeClaim";
            wanted || kept || (holds_data && !policy.contains(&Policy::Deletable))
        });
        self.objects.len() != before
    }

    /// Removes the primary and the objects that it owns.
    fn remove_primary(&mut self) {
        self.primary = None;
        self.objects.retain(|one| match &one.made {
            Some(policy) => policy.contains(&Policy::Orphan),
            None => true,
        });
    }
}

/// Returns the readiness of a new object.
fn at_first(object: &Value) -> Readiness {
    const READY_WHEN_CREATED: [&str; 5] = ["ConfigMap", "CronJob", "Route", "Secret", "Service"];
    let kind = object["kind"].as_str().unwrap_or_default();
    if READY_WHEN_CREATED.contains(&kind) {
        ready()
    } else {
        in_progress("the object was just created")
    }
}

fn ready() -> Readiness {
    Readiness { state: ReadinessState::Ready, message: String::new() }
}

fn in_progress(message: &str) -> Readiness {
    Readiness { state: ReadinessState::InProgress, message: message.to_owned() }
}

fn is<K: Resource>(object: &Value, name: &str) -> bool {
    object["apiVersion"] == K::API_VERSION
        && object["kind"] == K::KIND
        && object["metadata"]["name"] == name
}

fn same_kind_and_name(a: &Value, b: &Value) -> bool {
    a["apiVersion"] == b["apiVersion"]
        && a["kind"] == b["kind"]
        && a["metadata"]["name"] == b["metadata"]["name"]
}

fn same_name(a: &Value, b: &Value) -> bool {
    same_kind_and_name(a, b) && a["metadata"]["namespace"] == b["metadata"]["namespace"]
}

fn merge(into: &mut Value, from: &Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                merge(into.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from.clone(),
    }
}
