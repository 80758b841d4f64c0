#![allow(clippy::panic, clippy::missing_panics_doc, reason = "for tests: what cannot go on panics")]

use std::marker::PhantomData;

use innkeeper_contract::DesiredObject;
use serde_json::{Value, json};

use super::{Run, Scenario};
use crate::{Policy, Readiness, ReadinessState, Reconciler, Resource};

/// So many rounds a guest may need until it wants nothing else; the host allows ten that write.
const ROUNDS_MAX: usize = 10;

/// A primary's life, round by round, in a cluster so small that nothing happens in it unless
/// the test says so: what the guest desires is applied, and the guest is run again until it
/// wants nothing else.
///
/// ```ignore
/// let mut cluster = FakeCluster::<Guest>::with(primary);
/// cluster.settle();
/// cluster.becomes_ready::<Deployment>("web");
/// cluster.settle().condition("Ready", True, "AllReady");
/// ```
///
/// What is here is what the host does with an outcome that meets no obstacle: apply, merge,
/// prune, keep, write the status, take the finalizer off. A desired object takes the place of what
/// was there, but for its status. New Deployments, Pods, Jobs, claims and custom resources are
/// on the way until the test says more; all else is ready by nature.
pub struct FakeCluster<R> {
    primary: Option<Value>,
    objects: Vec<Stored>,
    parameters: Value,
    now_ms: f64,
    finalizer: bool,
    guest: PhantomData<R>,
}

struct Stored {
    object: Value,
    readiness: Readiness,
    /// The primary made it; with what policy.
    made: Option<Vec<Policy>>,
}

impl<R: Reconciler> FakeCluster<R> {
    /// A cluster that holds this primary, filled in as by [`Scenario::of`].
    pub fn with(primary: Value) -> Self {
        Self {
            primary: Some(Scenario::<R>::of(primary).into_primary()),
            objects: Vec::new(),
            parameters: Value::Null,
            now_ms: 0.0,
            finalizer: R::describe().finalizer.is_some(),
            guest: PhantomData,
        }
    }

    /// The Module has these parameters from now on.
    pub fn parameters(&mut self, parameters: Value) -> &mut Self {
        self.parameters = parameters;
        self
    }

    /// It is so many milliseconds after 1970.
    pub fn at_ms(&mut self, now_ms: f64) -> &mut Self {
        self.now_ms = now_ms;
        self
    }

    /// Somebody else makes this object (with `apiVersion` and `kind`).
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

    /// An object changes, by its controller or by somebody's hand.
    pub fn change<K: Resource>(
        &mut self,
        name: &str,
        change: impl FnOnce(&mut Value),
    ) -> &mut Self {
        change(&mut self.find_mut::<K>(name).object);
        self
    }

    /// An object becomes ready.
    pub fn becomes_ready<K: Resource>(&mut self, name: &str) -> &mut Self {
        self.find_mut::<K>(name).readiness = ready();
        self
    }

    /// An object is not ready any more, for this reason.
    pub fn becomes_unready<K: Resource>(&mut self, name: &str, message: &str) -> &mut Self {
        self.find_mut::<K>(name).readiness = in_progress(message);
        self
    }

    /// An object goes, by somebody's hand or by the garbage collector's.
    pub fn remove<K: Resource>(&mut self, name: &str) -> &mut Self {
        self.find_mut::<K>(name);
        self.objects.retain(|one| !is::<K>(&one.object, name));
        self
    }

    /// A user changes the primary.
    pub fn edit(&mut self, change: impl FnOnce(&mut Value)) -> &mut Self {
        let primary = self.present();
        change(primary);
        let generation = primary["metadata"]["generation"].as_i64().unwrap_or_default();
        primary["metadata"]["generation"] = json!(generation + 1);
        self
    }

    /// A user deletes the primary. Without a finalizer it is gone, and what it owns with it.
    pub fn delete(&mut self) -> &mut Self {
        self.present()["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        if !self.finalizer {
            self.go();
        }
        self
    }

    /// Whether the primary is there, if only to be finalized.
    pub fn has_primary(&self) -> bool {
        self.primary.is_some()
    }

    /// Whether an object of this kind and name is there.
    pub fn has<K: Resource>(&self, name: &str) -> bool {
        self.objects.iter().any(|one| is::<K>(&one.object, name))
    }

    /// An object of this kind and name.
    #[track_caller]
    pub fn object<K: Resource>(&self, name: &str) -> &Value {
        match self.objects.iter().find(|one| is::<K>(&one.object, name)) {
            Some(found) => &found.object,
            None => panic!("there is no {} {name}", K::KIND),
        }
    }

    /// One round: runs the guest and does what it says. Gives the run and whether anything changed.
    #[track_caller]
    pub fn round(&mut self) -> (Run, bool) {
        let run = self.scenario().run();
        let Some((complete, desired)) = run.desired() else { return (run, false) };
        let mut changed = false;
        for one in &desired.objects {
            changed |= self.apply(one);
        }
        if complete {
            changed |= self.prune(desired);
        }
        if let Some(status) = &desired.status {
            self.present()["status"] = Value::Object(status.clone());
        }
        let deleting = self.present()["metadata"].get("deletionTimestamp").is_some();
        if desired.finalized && deleting {
            self.go();
        }
        (run, changed)
    }

    /// Rounds until the guest wants nothing else. Gives the last run.
    #[track_caller]
    pub fn settle(&mut self) -> Run {
        for _ in 0..ROUNDS_MAX {
            let (run, changed) = self.round();
            if !changed || self.primary.is_none() {
                return run;
            }
        }
        panic!("the guest wants something else after each of {ROUNDS_MAX} rounds");
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

    /// Applies one desired object; whether that changed anything.
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
        let Some(found) = found else {
            if merged {
                return false;
            }
            let readiness = at_first(&wanted);
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
            found.object = wanted;
            found.made = Some(desired.policy.clone());
        }
        found.object != before
    }

    /// Deletes what the primary made and what is neither desired nor kept.
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

    /// The primary is gone, and what it owns with it.
    fn go(&mut self) {
        self.primary = None;
        self.objects.retain(|one| match &one.made {
            Some(policy) => policy.contains(&Policy::Orphan),
            None => true,
        });
    }
}

/// How ready an object is that was just made.
fn at_first(object: &Value) -> Readiness {
    const READY_BY_NATURE: [&str; 5] = ["ConfigMap", "CronJob", "Route", "Secret", "Service"];
    let kind = object["kind"].as_str().unwrap_or_default();
    if READY_BY_NATURE.contains(&kind) { ready() } else { in_progress("it was just made") }
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
