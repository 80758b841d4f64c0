use std::marker::PhantomData;

use serde_json::{Value, json};

use super::{FakeReader, Run};
use crate::reconciler::reconcile_text;
use crate::{Readiness, ReadinessState, Reconciler, Resource, Unapplied};

/// The namespace of objects that name none.
const NAMESPACE: &str = "default";

/// What one run of a guest is given.
pub struct Scenario<R> {
    primary: Value,
    owned: Vec<(Value, Readiness)>,
    unapplied: Vec<Unapplied>,
    unserved: Vec<crate::Kind>,
    parameters: Value,
    deleting: bool,
    reader: FakeReader,
    guest: PhantomData<R>,
}

impl<R: Reconciler> Scenario<R> {
    /// A user has written this primary, and nothing has happened yet. What every object has
    /// (`apiVersion`, `kind`, a namespace, a uid, a generation) is filled in where it is missing.
    pub fn of(primary: Value) -> Self {
        let primary = filled::<R::Primary>(primary);
        let mut reader = FakeReader::of(&R::describe());
        reader.add(primary.clone(), Readiness::default());
        Self {
            primary,
            owned: Vec::new(),
            unapplied: Vec::new(),
            unserved: Vec::new(),
            parameters: Value::Null,
            deleting: false,
            reader,
            guest: PhantomData,
        }
    }

    /// The primary has made this object (with `apiVersion` and `kind`), and it is so ready.
    pub fn owns(mut self, object: Value, readiness: Readiness) -> Self {
        let object = placed(object, &self.primary);
        self.reader.add(object.clone(), readiness.clone());
        self.owned.push((object, readiness));
        self
    }

    /// The primary has made this object, and it is ready.
    pub fn owns_ready(self, object: Value) -> Self {
        self.owns(object, Readiness { state: ReadinessState::Ready, message: String::new() })
    }

    /// The primary has made this object, and it is on the way, for this reason.
    pub fn owns_unready(self, object: Value, message: &str) -> Self {
        self.owns(
            object,
            Readiness { state: ReadinessState::InProgress, message: message.to_owned() },
        )
    }

    /// The objects that the run desired exist now and are ready: the next round.
    pub fn after(mut self, run: &Run) -> Self {
        for object in run.objects() {
            self = self.owns_ready(object.clone());
        }
        self
    }

    /// The cluster holds this object (with `apiVersion` and `kind`), which somebody else made.
    pub fn with_object(self, object: Value) -> Self {
        self.with_object_and_readiness(
            object,
            Readiness { state: ReadinessState::Ready, message: String::new() },
        )
    }

    /// The cluster holds this object, which somebody else made, and it is so ready.
    pub fn with_object_and_readiness(mut self, object: Value, readiness: Readiness) -> Self {
        let object = placed(object, &self.primary);
        self.reader.add(object, readiness);
        self
    }

    /// The API server does not serve this kind.
    pub fn without<K: Resource>(mut self) -> Self {
        self.reader.do_not_serve(&K::kind());
        self.unserved.push(K::kind());
        self
    }

    /// The module may not read this kind.
    pub fn deny_reads<K: Resource>(mut self) -> Self {
        self.reader.forbid(&K::kind());
        self
    }

    /// This could not be applied in the round before.
    pub fn unapplied(mut self, unapplied: Unapplied) -> Self {
        self.unapplied.push(unapplied);
        self
    }

    /// The Module has these parameters.
    pub fn parameters(mut self, parameters: Value) -> Self {
        self.parameters = parameters;
        self
    }

    /// The primary is being deleted.
    pub fn deleting(mut self) -> Self {
        self.primary["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        self.deleting = true;
        self
    }

    /// The time is this many milliseconds after 1970.
    pub fn at_ms(mut self, now_ms: f64) -> Self {
        self.reader.set_now_ms(now_ms);
        self
    }

    /// The `observed` document that the guest is given.
    pub fn document(&self) -> String {
        let mut owned: Vec<&(Value, Readiness)> = self.owned.iter().collect();
        // As the host orders them.
        owned.sort_by_key(|(object, _)| {
            let of = |pointer| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
            (of("/kind"), of("/metadata/namespace"), of("/metadata/name"))
        });
        let owned: Vec<Value> = owned
            .into_iter()
            .map(|(object, readiness)| json!({ "object": object, "readiness": readiness }))
            .collect();
        json!({
            "object": self.primary,
            "owned": owned,
            "unapplied": self.unapplied,
            "unserved": self.unserved,
            "parameters": self.parameters,
            "deleting": self.deleting,
        })
        .to_string()
    }

    /// The primary with what was filled in.
    pub(super) fn into_primary(self) -> Value {
        self.primary
    }

    /// Runs the guest.
    pub fn run(&self) -> Run {
        let ending = reconcile_text::<R>(&self.reader, &self.document());
        Run::new(&ending, &R::describe(), self.reader.logged())
    }
}

/// The primary with what the API server would have filled in.
fn filled<P: Resource>(mut primary: Value) -> Value {
    fill(&mut primary, "apiVersion", json!(P::API_VERSION));
    fill(&mut primary, "kind", json!(P::KIND));
    fill(&mut primary["metadata"], "name", json!("example"));
    if P::kind().is_namespaced() {
        fill(&mut primary["metadata"], "namespace", json!(NAMESPACE));
    }
    fill(&mut primary["metadata"], "uid", json!("5ce1ab1e-0000-4000-8000-000000000001"));
    fill(&mut primary["metadata"], "generation", json!(1));
    primary
}

/// An object in the primary's namespace, unless it names one.
fn placed(mut object: Value, primary: &Value) -> Value {
    if let Some(namespace) = primary["metadata"].get("namespace") {
        fill(&mut object["metadata"], "namespace", namespace.clone());
    }
    object
}

fn fill(object: &mut Value, member: &str, value: Value) {
    if object.get(member).is_none() {
        object[member] = value;
    }
}
