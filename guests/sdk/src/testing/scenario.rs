use std::marker::PhantomData;

use serde_json::{Value, json};

use super::parameter_kinds::with_kinds;
use super::primary_selector::selects;
use super::{FakeReader, Run};
use crate::reconciler::reconcile_text;
use crate::{Readiness, ReadinessState, Reconciler, Resource, Unapplied};

/// The namespace of objects without one.
pub(super) const NAMESPACE: &str = "default";

/// The input of one run of a guest.
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
    /// Creates a scenario with this primary and no owned objects. Sets `apiVersion`, `kind`, name,
    /// namespace, uid and generation if they are missing.
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

    /// Adds an object that the primary owns, with this readiness. It needs `apiVersion` and `kind`.
    pub fn owns(mut self, object: Value, readiness: Readiness) -> Self {
        let object = placed(object, &self.primary);
        self.reader.add(object.clone(), readiness.clone());
        self.owned.push((object, readiness));
        self
    }

    /// Adds a ready object that the primary owns.
    pub fn owns_ready(self, object: Value) -> Self {
        self.owns(object, Readiness { state: ReadinessState::Ready, message: String::new() })
    }

    /// Adds an object that the primary owns, with the readiness `InProgress` and this message.
    pub fn owns_unready(self, object: Value, message: &str) -> Self {
        self.owns(
            object,
            Readiness { state: ReadinessState::InProgress, message: message.to_owned() },
        )
    }

    /// Adds the objects that an earlier run desired, all ready.
    pub fn after(mut self, run: &Run) -> Self {
        for object in run.objects() {
            self = self.owns_ready(object.clone());
        }
        self
    }

    /// Adds a ready object of another client. It needs `apiVersion` and `kind`.
    pub fn with_object(self, object: Value) -> Self {
        self.with_object_and_readiness(
            object,
            Readiness { state: ReadinessState::Ready, message: String::new() },
        )
    }

    /// Adds an object of another client, with this readiness.
    pub fn with_object_and_readiness(mut self, object: Value, readiness: Readiness) -> Self {
        let object = placed(object, &self.primary);
        self.reader.add(object, readiness);
        self
    }

    /// Makes the API server not serve this kind.
    pub fn without<K: Resource>(mut self) -> Self {
        self.reader.do_not_serve(&K::kind());
        self.unserved.push(K::kind());
        self
    }

    /// Makes reads of this kind fail with [`ReadError::Forbidden`](crate::ReadError::Forbidden).
    pub fn deny_reads<K: Resource>(mut self) -> Self {
        self.reader.forbid(&K::kind());
        self
    }

    /// Adds an object that the host could not apply after the previous run.
    pub fn unapplied(mut self, unapplied: Unapplied) -> Self {
        self.unapplied.push(unapplied);
        self
    }

    /// Sets the Module's `spec.parameters`.
    pub fn parameters(mut self, parameters: Value) -> Self {
        let manifest = with_kinds(R::describe(), &parameters);
        self.reader.declare(&manifest);
        // The primary has the kind of a parameter unless the test gives it another one.
        let default = R::Primary::kind();
        if self.primary["kind"] == default.kind && self.primary["apiVersion"] == default.api_version
        {
            let kind = manifest.primary.unwrap_or(default);
            self.primary["apiVersion"] = kind.api_version.into();
            self.primary["kind"] = kind.kind.into();
        }
        self.parameters = parameters;
        self
    }

    /// Sets the deletion timestamp of the primary.
    pub fn deleting(mut self) -> Self {
        self.primary["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        self.deleting = true;
        self
    }

    /// Sets the time, in milliseconds since 1970-01-01T00:00:00Z.
    pub fn at_ms(mut self, now_ms: f64) -> Self {
        self.reader.set_now_ms(now_ms);
        self
    }

    /// Returns the `observed` document of the run.
    pub fn document(&self) -> String {
        let mut owned: Vec<&(Value, Readiness)> = self.owned.iter().collect();
        // In the order of the host.
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

    /// Returns the primary with the fields that were set.
    pub(super) fn into_primary(self) -> Value {
        self.primary
    }

    /// Runs the guest once, if the selector of its manifest selects the primary. If not, the run
    /// [`is_not_selected`](Run::is_not_selected).
    pub fn run(&self) -> Run {
        let manifest = with_kinds(R::describe(), &self.parameters);
        if !selects(manifest.selector.as_ref(), &self.primary) {
            return Run::not_selected();
        }
        let outcome = reconcile_text::<R>(&self.reader, &self.document());
        Run::new(&outcome, &manifest, self.reader.logged())
    }
}

/// Returns the primary with the fields that the API server sets.
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

/// Returns the object in the primary's namespace if it has none.
fn placed(mut object: Value, primary: &Value) -> Value {
    if let Some(namespace) = primary["metadata"].get("namespace") {
        fill(&mut object["metadata"], "namespace", namespace.clone());
    }
    object
}

/// Sets a member that is missing.
pub(super) fn fill(object: &mut Value, member: &str, value: Value) {
    if object.get(member).is_none() {
        object[member] = value;
    }
}
