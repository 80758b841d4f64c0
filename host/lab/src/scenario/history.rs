//! What happens during a step: for asserts of order and for states that must never be.

use std::collections::BTreeMap;

use serde_json::Value;

use super::case::DocumentLocation;
use super::matching::{fits, name_of_object, named, yaml};
use crate::api::{Api, ApiFailure};

/// An object of a `never` or an `order` file, with the namespace of the case.
#[derive(Clone, Debug)]
pub(super) struct Expectation {
    pub(super) place: DocumentLocation,
    pub(super) object: Value,
}

/// Why a step fails by what happened during it.
pub(super) struct Violation {
    pub(super) message: String,
    pub(super) details: String,
}

/// The changes of the kinds that a step's `never` and `order` files name.
pub(super) struct History {
    api: Api,
    namespace: String,
    nevers: Vec<Expectation>,
    orders: Vec<Expectation>,
    /// The version of the cluster at the begin of the step.
    start: String,
    /// By the path of the objects of a kind.
    followed: BTreeMap<String, Followed>,
}

/// The objects of a kind.
struct Followed {
    /// The version up to which the changes are known.
    version: String,
    /// The version at which each object was created, by its uid; 0 before the step.
    created: BTreeMap<String, u64>,
}

impl History {
    /// Begins before the first write of a step.
    ///
    /// # Errors
    /// If the server does not answer, or refuses to list the kinds.
    pub(super) async fn begin(
        api: &Api,
        namespace: &str,
        nevers: Vec<Expectation>,
        orders: Vec<Expectation>,
    ) -> Result<Self, ApiFailure> {
        let mut history = Self {
            api: api.clone(),
            namespace: namespace.to_owned(),
            nevers,
            orders,
            start: String::new(),
            followed: BTreeMap::new(),
        };
        if history.nevers.is_empty() && history.orders.is_empty() {
            return Ok(history);
        }
        (history.start, _) = history.api.list_at("/api/v1/namespaces").await?;
        for path in history.paths().await {
            let (version, objects) = history.api.list_at(&path).await?;
            let created = objects.iter().map(|one| (uid(one), 0)).collect();
            history.followed.insert(path, Followed { version, created });
        }
        Ok(history)
    }

    /// The paths of the kinds that the server serves now.
    async fn paths(&self) -> Vec<String> {
        let mut paths = Vec::new();
        for expectation in self.nevers.iter().chain(&self.orders) {
            if let Ok(path) = self.path_of(&expectation.object).await {
                paths.push(path);
            }
        }
        paths.sort();
        paths.dedup();
        paths
    }

    async fn path_of(&self, object: &Value) -> Result<String, ApiFailure> {
        let mut any = object.clone();
        if let Some(metadata) = any["metadata"].as_object_mut() {
            metadata.remove("name");
        }
        self.api.path_of(&any, &self.namespace).await
    }

    /// Reads the changes since the last call. Returns the first state that must never be.
    ///
    /// # Errors
    /// If the server does not answer, or refuses to watch the kinds.
    pub(super) async fn advance(&mut self) -> Result<Option<Violation>, ApiFailure> {
        for path in self.paths().await {
            let start = Followed { version: self.start.clone(), created: BTreeMap::new() };
            let mut followed = self.followed.remove(&path).unwrap_or(start);
            let changes = self.api.changes(&path, &followed.version).await?;
            let mut violation = None;
            for (event, object) in changes {
                if let Some(version) = object["metadata"]["resourceVersion"].as_str() {
                    version.clone_into(&mut followed.version);
                }
                if event == "ADDED" {
                    followed.created.insert(uid(&object), version(&object));
                }
                if event != "DELETED" && violation.is_none() {
                    violation = self.violation(&path, &object).await;
                }
            }
            self.followed.insert(path, followed);
            if violation.is_some() {
                return Ok(violation);
            }
        }
        Ok(None)
    }

    /// The first present object that must never be.
    ///
    /// # Errors
    /// If the server does not answer, or refuses to list the kinds.
    pub(super) async fn present(&self) -> Result<Option<Violation>, ApiFailure> {
        if self.nevers.is_empty() {
            return Ok(None);
        }
        for path in self.paths().await {
            for object in self.api.list(&path).await? {
                if let Some(violation) = self.violation(&path, &object).await {
                    return Ok(Some(violation));
                }
            }
        }
        Ok(None)
    }

    async fn violation(&self, path: &str, object: &Value) -> Option<Violation> {
        for Expectation { place, object: never } in &self.nevers {
            if fits(never, object) && self.path_of(never).await.is_ok_and(|one| one == path) {
                let message = format!(
                    "{place}: {} was in a state that must never be",
                    name_of_object(object)
                );
                return Some(Violation { message, details: yaml(&named(never, object)) });
            }
        }
        None
    }

    /// Whether the objects of the `order` files were created in the order of their documents:
    /// otherwise the first that is missing or was created too early.
    ///
    /// # Errors
    /// If the server does not answer, or refuses to list the kinds.
    pub(super) async fn order(&self) -> Result<Option<Violation>, ApiFailure> {
        let mut before: Option<(&DocumentLocation, Value, u64)> = None;
        for Expectation { place, object: expected } in &self.orders {
            let path = match self.path_of(expected).await {
                Err(error @ ApiFailure::NotServed { .. }) => {
                    let message = format!("{place}: {error}");
                    return Ok(Some(Violation { message, details: String::new() }));
                }
                path => path?,
            };
            let found = self.api.list(&path).await?;
            let created = |object: &Value| {
                let known = self.followed.get(&path).and_then(|one| one.created.get(&uid(object)));
                known.copied().unwrap_or(u64::MAX)
            };
            let first = found.into_iter().filter(|one| fits(expected, one)).min_by_key(created);
            let Some(object) = first else {
                let message = format!("{place}: {} not found", name_of_object(expected));
                return Ok(Some(Violation { message, details: String::new() }));
            };
            let (at, time) = (created(&object), time(&object));
            if let Some((other_place, other, other_at)) = &before
                && *other_place.file == *place.file
                && ((at, &time) < (*other_at, &self::time(other)))
            {
                let message = format!(
                    "{place}: {} was created before {}",
                    name_of_object(&object),
                    name_of_object(other)
                );
                return Ok(Some(Violation { message, details: String::new() }));
            }
            before = Some((place, object, at));
        }
        Ok(None)
    }
}

fn uid(object: &Value) -> String {
    object["metadata"]["uid"].as_str().unwrap_or_default().to_owned()
}

fn version(object: &Value) -> u64 {
    let version = object["metadata"]["resourceVersion"].as_str();
    version.and_then(|one| one.parse().ok()).unwrap_or_default()
}

fn time(object: &Value) -> String {
    object["metadata"]["creationTimestamp"].as_str().unwrap_or_default().to_owned()
}
