//! Runs a case.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::backend::Backend;
use super::case::{Case, NAMESPACE, Step, TIMEOUT};
use super::causes;
use super::denied::{Denied, DeniedRequest, Mismatch};
use super::document::Reference;
use super::files::Document;
use super::history::{Expectation, History, Violation};
use super::matching::{difference, fits, likeness, name_of_object, yaml};
use super::outcome::{Failure, Outcome};
use super::update;
use crate::api::{ApiFailure, Resource};

/// Runs cases on a cluster.
pub struct Player<'a> {
    backend: &'a Backend,
    namespace: String,
    timeout: Duration,
    update: bool,
}

/// An assert that does not hold.
struct Unmet<'a> {
    message: String,
    details: String,
    /// The assert and the observed object.
    found: Option<(&'a Document, Value)>,
}

impl From<Violation> for Unmet<'_> {
    fn from(violation: Violation) -> Self {
        Self { message: violation.message, details: violation.details, found: None }
    }
}

impl<'a> Player<'a> {
    /// `namespace` is for objects that name none. `timeout` is the maximum time until asserts hold,
    /// unless their step sets one. With `update` the player updates asserts that do not hold.
    pub fn new(
        backend: &'a Backend,
        namespace: String,
        timeout: Option<Duration>,
        update: bool,
    ) -> Self {
        Self { backend, namespace, timeout: timeout.unwrap_or(TIMEOUT), update }
    }

    /// Runs the steps of a case one after the other, until one fails. Does not delete its objects.
    pub async fn play(&self, case: &Case) -> Outcome {
        let (begun, mut passed) = (Instant::now(), Duration::ZERO);
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}});
        if let Err(error) = self.create_namespace(&namespace).await {
            let message = format!("cannot create namespace {}: {error}", self.namespace);
            return Outcome::failed(&case.name, Failure::new("namespace", message));
        }
        let mut outcome = Outcome {
            name: case.name.clone(),
            took: Duration::ZERO,
            passed: None,
            failure: None,
            updated: Vec::new(),
        };
        for step in &case.steps {
            if let Err(mut failure) = self.step(step, &mut outcome.updated, &mut passed).await {
                failure.details += &causes::of_case(self.backend, case, &self.namespace).await;
                outcome.failure = Some(failure);
                break;
            }
        }
        outcome.took = begun.elapsed();
        outcome.passed = self.backend.lab().map(|_| passed);
        outcome
    }

    /// Creates the namespace of the case, unless it is there: a policy could deny its update.
    async fn create_namespace(&self, namespace: &Value) -> Result<(), ApiFailure> {
        let api = self.backend.api();
        if api.get(&api.path_of(namespace, "").await?).await?.is_some() {
            return Ok(());
        }
        api.apply(namespace, "").await
    }

    /// Deletes the namespace of the case and the applied objects outside of it.
    ///
    /// # Errors
    /// If the server refuses a request, or does not answer.
    pub async fn clean_up(&self, case: &Case) -> Result<(), ApiFailure> {
        let api = self.backend.api();
        let namespace = api.resource("v1", "Namespace").await?;
        for document in case.steps.iter().flat_map(|step| &step.apply).rev() {
            let kind = document.value["kind"].as_str().unwrap_or_default();
            // Others may use the definition.
            if kind == "CustomResourceDefinition" {
                continue;
            }
            let version = document.value["apiVersion"].as_str().unwrap_or_default();
            let elsewhere = document.value["metadata"]["namespace"].is_string();
            let Ok(resource) = api.resource(version, kind).await else { continue };
            if !resource.namespaced || elsewhere {
                api.delete(&api.path_of(&document.value, &self.namespace).await?).await?;
            }
        }
        api.delete(&namespace.path("", &self.namespace)).await
    }

    async fn step(
        &self,
        step: &Step,
        updated: &mut Vec<String>,
        passed: &mut Duration,
    ) -> Result<(), Failure> {
        let fail = |message: String, details: String| Failure {
            step: format!("{:02}-{}", step.index, step.name),
            message,
            details,
        };
        let timeout = step.timeout.unwrap_or(self.timeout);
        let lost = |error: ApiFailure| fail(error.to_string(), String::new());
        let (nevers, orders) = (self.expectations(&step.nevers), self.expectations(&step.orders));
        let begun = History::begin(self.backend.api(), &self.namespace, nevers, orders);
        let mut history = begun.await.map_err(lost)?;
        for simulation in &step.simulations {
            let Some(lab) = self.backend.lab() else { continue };
            if let Some(script) = simulation.script() {
                lab.simulator().script_pods(script);
            }
        }
        for (reference, place) in &step.delete {
            self.delete(reference, timeout, passed)
                .await
                .map_err(|why| fail(format!("{place}: {why}"), String::new()))?;
        }
        for document in &step.apply {
            self.apply(document, timeout, passed)
                .await
                .map_err(|error| fail(format!("{}: {error}", document.place), String::new()))?;
        }
        for denied in &step.denied {
            self.expect_denied(denied, timeout, passed)
                .await
                .map_err(|Mismatch { message, details }| fail(message, details))?;
        }
        for simulation in &step.simulations {
            if let Some(lab) = self.backend.lab() {
                lab.pass(simulation.passing()).await;
                *passed += simulation.passing();
            }
        }
        let violated = |Violation { message, details }| fail(message, details);
        if let Some(violation) = history.present().await.map_err(lost)? {
            return Err(violated(violation));
        }
        // What is not there holds at once: something may still make it.
        let mut settled = false;
        if step.has_only_errors() {
            *passed += self.backend.settle(timeout).await;
            settled = true;
        }
        // A look takes time too: on a real cluster it watches for a second.
        let mut deadline = self.backend.instant() + timeout;
        let unmet = loop {
            if let Some(violation) = history.advance().await.map_err(lost)? {
                return Err(violated(violation));
            }
            let unmet = match self.unmet(step).await {
                None => history.order().await.map_err(lost)?.map(Unmet::from),
                unmet => unmet,
            };
            let Some(unmet) = unmet else {
                if settled || step.nevers.is_empty() {
                    return Ok(());
                }
                let settling = self.backend.settle(timeout).await;
                deadline += settling;
                *passed += settling;
                settled = true;
                continue;
            };
            if self.backend.instant() >= deadline {
                break unmet;
            }
            *passed += self.backend.wait().await;
        };
        if self.update && unmet.found.is_some() {
            return self.rewrite(step, updated).await.map_err(|why| fail(why, String::new()));
        }
        let message = format!("{} (after {} s)", unmet.message, timeout.as_secs());
        Err(fail(message, unmet.details))
    }

    fn expectations(&self, documents: &[Document]) -> Vec<Expectation> {
        let expectation = |one: &Document| Expectation {
            place: one.place.clone(),
            object: self.substituted(&one.value),
        };
        documents.iter().map(expectation).collect()
    }

    /// Applies an object. Retries while the server does not serve a new definition.
    async fn apply(
        &self,
        document: &Document,
        timeout: Duration,
        passed: &mut Duration,
    ) -> Result<(), ApiFailure> {
        let object = self.substituted(&document.value);
        let deadline = self.backend.instant() + timeout;
        loop {
            match self.backend.api().apply(&object, &self.namespace).await {
                Err(ApiFailure::NotServed { .. } | ApiFailure::Refused { code: 409 | 404, .. })
                    if self.backend.instant() < deadline =>
                {
                    *passed += self.backend.wait().await;
                }
                other => return other,
            }
        }
    }

    /// Sends a request that must be denied. Retries while the server does not serve a new
    /// definition.
    async fn expect_denied(
        &self,
        denied: &Denied,
        timeout: Duration,
        passed: &mut Duration,
    ) -> Result<(), Mismatch> {
        let api = self.backend.api();
        let message = denied.message.replace(NAMESPACE, &self.namespace);
        let deadline = self.backend.instant() + timeout;
        loop {
            let result = match &denied.request {
                DeniedRequest::Apply(object) => self.apply_once(&self.substituted(object)).await,
                DeniedRequest::Delete(reference) => {
                    let path = self.path_of(reference).await;
                    let path = path.map_err(|error| denied.failed(&error, &message))?;
                    match api.get(&path).await {
                        Ok(Some(_)) => api.delete(&path).await,
                        Ok(None) => return Err(denied.missing(&message)),
                        Err(error) => Err(error),
                    }
                }
            };
            match (denied.check(&result, &message), &result) {
                (Ok(()), _) => return Ok(()),
                (
                    Err(_),
                    Err(ApiFailure::NotServed { .. } | ApiFailure::Refused { code: 409 | 404, .. }),
                ) if self.backend.instant() < deadline => {
                    *passed += self.backend.wait().await;
                }
                (Err(mismatch), _) => return Err(mismatch),
            }
        }
    }

    /// Applies an object that must be denied. One that the server creates nevertheless is deleted
    /// at once, since no step names it.
    async fn apply_once(&self, object: &Value) -> Result<(), ApiFailure> {
        let api = self.backend.api();
        let path = api.path_of(object, &self.namespace).await?;
        let is_new = api.get(&path).await?.is_none();
        api.apply(object, &self.namespace).await?;
        if is_new {
            // A refusal of this is none of the request.
            let _ = api.delete(&path).await;
        }
        Ok(())
    }

    /// The path of the object that a reference names.
    async fn path_of(&self, reference: &Reference) -> Result<String, ApiFailure> {
        let Reference { api_version, kind, name, namespace, .. } = reference;
        let resource = self.backend.api().resource(api_version, kind).await?;
        let namespace = if namespace.is_empty() { &self.namespace } else { namespace };
        Ok(resource.path(namespace, name))
    }

    /// Replaces `$NAMESPACE` by the namespace of the case.
    fn substituted(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => text.replace(NAMESPACE, &self.namespace).into(),
            Value::Array(list) => list.iter().map(|one| self.substituted(one)).collect(),
            Value::Object(map) => {
                let members = map.iter().map(|(name, one)| (name.clone(), self.substituted(one)));
                Value::Object(members.collect())
            }
            other => other.clone(),
        }
    }

    /// Deletes objects and waits until they are gone.
    async fn delete(
        &self,
        reference: &Reference,
        timeout: Duration,
        passed: &mut Duration,
    ) -> Result<(), String> {
        let api = self.backend.api();
        let Reference { api_version, kind, name, namespace, labels } = reference;
        let resource = api.resource(api_version, kind).await.map_err(|error| error.to_string())?;
        let namespace = if namespace.is_empty() { &self.namespace } else { namespace };
        let paths = if name.is_empty() {
            let all = api.list(&resource.path(namespace, "")).await;
            let wanted = Value::Object(labels.clone());
            all.map_err(|error| error.to_string())?
                .into_iter()
                .filter(|one| labels.is_empty() || fits(&wanted, &one["metadata"]["labels"]))
                .map(|one| path(&resource, &one))
                .collect()
        } else {
            vec![resource.path(namespace, name)]
        };
        let mut going = Vec::new();
        for path in paths {
            if let Some(object) = api.get(&path).await.map_err(|error| error.to_string())? {
                api.delete(&path).await.map_err(|error| error.to_string())?;
                going.push((path, object["metadata"]["uid"].clone()));
            }
        }
        let deadline = self.backend.instant() + timeout;
        for (path, uid) in &going {
            // An object of the same name may exist already.
            while api
                .get(path)
                .await
                .map_err(|error| error.to_string())?
                .is_some_and(|object| object["metadata"]["uid"] == *uid)
            {
                if self.backend.instant() >= deadline {
                    return Err(format!(
                        "{path} still exists {} s after its deletion: a finalizer blocks it",
                        timeout.as_secs()
                    ));
                }
                *passed += self.backend.wait().await;
            }
        }
        Ok(())
    }

    /// The first assert that does not hold.
    async fn unmet<'s>(&self, step: &'s Step) -> Option<Unmet<'s>> {
        for document in &step.asserts {
            if let Some(unmet) = self.assert(document).await {
                return Some(unmet);
            }
        }
        for document in &step.errors {
            let expected = self.substituted(&document.value);
            let found = match self.candidates(&expected).await {
                Ok(found) => found,
                // An object of an unknown kind never exists: the kind may be misspelt.
                Err(error) => return Some(unmet(format!("{}: {error}", document.place))),
            };
            if let Some(found) = found.iter().find(|found| fits(&expected, found)) {
                return Some(Unmet {
                    message: format!("{}: {} exists", document.place, name_of_object(found)),
                    details: yaml(&super::matching::named(&expected, found)),
                    found: None,
                });
            }
        }
        None
    }

    async fn assert<'s>(&self, document: &'s Document) -> Option<Unmet<'s>> {
        let expected = self.substituted(&document.value);
        let found = match self.candidates(&expected).await {
            Ok(found) => found,
            Err(error) => return Some(unmet(format!("{}: {error}", document.place))),
        };
        if found.iter().any(|found| fits(&expected, found)) {
            return None;
        }
        let nearest = found.into_iter().max_by_key(|found| likeness(&expected, found));
        let Some(nearest) = nearest else {
            let existing = self.existing(&expected).await;
            let existing = existing + &causes::elsewhere(self.backend, &expected).await;
            let message = format!("{}: {} not found", document.place, name_of_object(&expected));
            return Some(Unmet { message, details: existing, found: None });
        };
        Some(Unmet {
            message: format!("{}: {} is not as expected", document.place, name_of_object(&nearest)),
            details: difference(&expected, &nearest) + &Self::conditions(&nearest),
            found: Some((document, nearest)),
        })
    }

    /// The conditions of an object, for the details of a failure.
    fn conditions(found: &Value) -> String {
        let list = found["status"]["conditions"].as_array().into_iter().flatten();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let lines = list.map(|one| {
            let (name, status) = (text(&one["type"]), text(&one["status"]));
            let line =
                format!("  {name}={status} {}: {}", text(&one["reason"]), text(&one["message"]));
            line.trim_end_matches([':', ' ']).to_owned() + "\n"
        });
        let lines: String = lines.collect();
        if lines.is_empty() { lines } else { format!("its conditions:\n{lines}") }
    }

    /// The names of the existing objects of a kind.
    async fn existing(&self, expected: &Value) -> String {
        let mut any = expected.clone();
        if let Some(metadata) = any["metadata"].as_object_mut() {
            metadata.remove("name");
        }
        let found = self.candidates(&any).await.unwrap_or_default();
        let names: Vec<&str> =
            found.iter().filter_map(|one| one["metadata"]["name"].as_str()).collect();
        let kind = expected["kind"].as_str().unwrap_or_default();
        if names.is_empty() {
            format!("no {kind} exists\n")
        } else {
            format!("existing {kind} objects: {}\n", names.join(", "))
        }
    }

    /// The object that the assert names, or all objects of its kind.
    async fn candidates(&self, expected: &Value) -> Result<Vec<Value>, ApiFailure> {
        let api = self.backend.api();
        if expected["metadata"]["name"].is_string() {
            let path = api.path_of(expected, &self.namespace).await?;
            return Ok(api.get(&path).await?.into_iter().collect());
        }
        api.list(&api.path_of(expected, &self.namespace).await?).await
    }

    async fn rewrite(&self, step: &Step, updated: &mut Vec<String>) -> Result<(), String> {
        for document in &step.asserts {
            let Some(Unmet { found: Some((document, found)), .. }) = self.assert(document).await
            else {
                continue;
            };
            if document.place.in_list {
                let why = "cannot update an item of a List; write it as its own document";
                return Err(format!("{}: {why}", document.place));
            }
            let found = super::matching::named(&document.value, &found);
            let found = update::without_times(&document.value, &found);
            let found = update::generalised(&found, &self.namespace);
            update::write(&document.place, &found).map_err(|error| error.to_string())?;
            updated.push(document.place.file.display().to_string());
        }
        match self.unmet(step).await {
            Some(unmet) if unmet.found.is_none() => Err(unmet.message),
            _ => Ok(()),
        }
    }
}

fn unmet<'a>(message: String) -> Unmet<'a> {
    Unmet { message, details: String::new(), found: None }
}

fn path(resource: &Resource, object: &Value) -> String {
    let text = |name: &str| object["metadata"][name].as_str().unwrap_or_default();
    resource.path(text("namespace"), text("name"))
}
