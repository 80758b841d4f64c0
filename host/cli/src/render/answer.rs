//! The answer of a guest, as it is printed.

use anyhow::{anyhow, bail};
use innkeeper_contract::Failure;
use innkeeper_core::desired::{DesiredObject, InvalidDesired};
use innkeeper_core::plan::{Action, Plan, SkipReason};
use innkeeper_operator::evaluate::{Evaluated, EvaluationError, EvaluationResult};
use serde_json::{Map, Value, json};

use crate::document::{Document, Yaml};

/// What a guest answered.
pub(super) struct Answer {
    outcome: &'static str,
    /// The desired objects in the order in which the operator applies them, and their policies.
    objects: Vec<(Value, Vec<String>)>,
    /// Everything else, by its name.
    rest: Map<String, Value>,
    /// The reason and message, if the guest reported a failure.
    pub(super) failure: Option<String>,
}

impl Answer {
    /// The answer of an evaluation; `has_module`: the files have the Module.
    ///
    /// # Errors
    /// If the guest gave no answer, or one that the operator would refuse.
    pub(super) fn of(result: EvaluationResult, has_module: bool) -> anyhow::Result<Self> {
        match result {
            EvaluationResult::Planned(evaluated) => {
                if let Some(object) = evaluated.desired.objects.iter().find(|one| one.is_reserved) {
                    let object_ref = &object.object_ref;
                    bail!("the operator would not write {object_ref}: {}", SkipReason::Reserved);
                }
                Ok(Self::planned(&evaluated))
            }
            EvaluationResult::Failed(EvaluationError::Failed(failure)) => {
                Ok(Self::failed(&failure))
            }
            EvaluationResult::Failed(EvaluationError::Call(error)) => Err(error.into()),
            EvaluationResult::Failed(EvaluationError::Invalid(error)) => {
                let advice = if has_module { "" } else { advice(&error) };
                Err(anyhow!("{error}{advice}")
                    .context("the operator would refuse the desired state"))
            }
            EvaluationResult::NeedsRead(_) => Err(anyhow!("files have no unknown objects")),
        }
    }

    fn planned(evaluated: &Evaluated) -> Self {
        let Evaluated { complete, answer, desired, plan, .. } = evaluated;
        let mut rest = Map::new();
        put(&mut rest, "keep", json!(answer.keep));
        put(&mut rest, "finalized", answer.finalized.into());
        put(&mut rest, "status", json!(answer.status));
        put(&mut rest, "conditions", json!(answer.conditions));
        put(&mut rest, "events", json!(answer.events));
        put(&mut rest, "requeueAfterSeconds", json!(answer.requeue_after_seconds));
        put(&mut rest, "wouldDelete", deleted(plan).into());
        put(&mut rest, "missingValues", missing_values(&desired.objects).into());
        Self {
            outcome: if *complete { "complete" } else { "partial" },
            objects: desired.objects.iter().map(object).collect(),
            rest,
            failure: None,
        }
    }

    fn failed(failure: &Failure) -> Self {
        let mut rest = Map::new();
        put(&mut rest, "reason", failure.reason.clone().into());
        put(&mut rest, "message", failure.message.clone().into());
        put(&mut rest, "permanent", failure.permanent.into());
        put(&mut rest, "status", json!(failure.status));
        put(&mut rest, "conditions", json!(failure.conditions));
        put(&mut rest, "events", json!(failure.events));
        put(&mut rest, "requeueAfterSeconds", json!(failure.requeue_after_seconds));
        let failure = Some(format!("{}: {}", failure.reason, failure.message));
        Self { outcome: "failed", objects: Vec::new(), rest, failure }
    }

    /// The status that the guest returned.
    pub(super) fn status(&self) -> Option<&Map<String, Value>> {
        self.rest.get("status")?.as_object()
    }

    /// The whole answer.
    pub(super) fn json(&self) -> Value {
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
    pub(super) fn yaml(&self) -> anyhow::Result<Document> {
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

/// Adds a member, unless it says nothing.
fn put(rest: &mut Map<String, Value>, name: &str, value: Value) {
    let is_nothing = matches!(&value, Value::Null | Value::Bool(false))
        || value.as_array().is_some_and(Vec::is_empty);
    if !is_nothing {
        rest.insert(name.to_owned(), value);
    }
}

/// The objects that the operator would delete.
fn deleted(plan: &Plan) -> Vec<String> {
    let is_deleted = |action: &Action| {
        matches!(action, Action::Delete { .. } | Action::Skip(SkipReason::PrunePending))
    };
    let steps = plan.steps.iter().filter(|step| is_deleted(&step.action));
    steps.map(|step| step.object_ref.to_string()).collect()
}

/// What to do if the Module could allow what the guest desires.
fn advice(error: &InvalidDesired) -> &'static str {
    match error {
        InvalidDesired::CrossNamespace { .. } | InvalidDesired::ValueSourceNotGranted { .. } => {
            "; give the Module with -f to render with what it grants"
        }
        _ => "",
    }
}

/// The objects that the operator would not write, since values of their sources are missing.
fn missing_values(objects: &[DesiredObject]) -> Vec<Value> {
    let missing = objects.iter().filter_map(|desired| {
        let missing = desired.missing_values.as_ref()?;
        Some(json!({
            "object": desired.object_ref.to_string(),
            "reason": missing.reason(),
            "message": missing.to_string(),
        }))
    });
    missing.collect()
}

/// A desired object without what the host adds for its own use, and its policies.
fn object(desired: &DesiredObject) -> (Value, Vec<String>) {
    let mut body = desired.body.clone();
    tidy(&mut body);
    let policies = desired
        .policy
        .iter()
        .filter_map(|policy| serde_json::to_value(policy).ok()?.as_str().map(str::to_owned));
    (body, policies.collect())
}

/// Removes the owner reference, and the digest of the desired object.
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
