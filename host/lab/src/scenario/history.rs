//! What happens during a step: for asserts of order and for states that must never be.

use std::collections::BTreeMap;

use futures::future::join_all;
use serde_json::Value;

use super::files::DocumentLocation;
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
    /// The version at which each object was created, by its uid: 0 before the step, `None` if the
    /// server had dropped that change.
    created: BTreeMap<String, Option<u64>>,
}

/// What has become of the objects of a kind.
enum Changes {
    /// Types of watch events, and objects.
    Events(Vec<(String, Value)>),
    /// The present objects at a version, since the server has dropped the changes.
    Present(String, Vec<Value>),
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
            let created = objects.iter().map(|one| (uid(one), Some(0))).collect();
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
        let paths = self.paths().await;
        // At the same time: each watch of a real cluster lasts a second.
        let all = join_all(paths.iter().map(|path| self.changes(path))).await;
        let mut first = None;
        for (path, changes) in paths.into_iter().zip(all) {
            let objects = self.record(&path, changes?);
            for object in &objects {
                if first.is_none() {
                    first = self.violation(&path, object).await;
                }
            }
        }
        Ok(first)
    }

    async fn changes(&self, path: &str) -> Result<Changes, ApiFailure> {
        let version = self.followed.get(path).map_or(&self.start, |one| &one.version);
        match self.api.changes(path, version).await {
            Err(ApiFailure::Refused { code: 410, .. }) => {
                let (version, objects) = self.api.list_at(path).await?;
                Ok(Changes::Present(version, objects))
            }
            events => events.map(Changes::Events),
        }
    }

    /// Records when objects were created. Returns the states in which objects were.
    fn record(&mut self, path: &str, changes: Changes) -> Vec<Value> {
        let start = || Followed { version: self.start.clone(), created: BTreeMap::new() };
        let followed = self.followed.entry(path.to_owned()).or_insert_with(start);
        match changes {
            Changes::Events(events) => {
                let mut states = Vec::new();
                for (event, object) in events {
                    if let Some(version) = object["metadata"]["resourceVersion"].as_str() {
                        version.clone_into(&mut followed.version);
                    }
                    if event == "ADDED" {
                        followed.created.insert(uid(&object), Some(version(&object)));
                    }
                    if event != "DELETED" {
                        states.push(object);
                    }
                }
                states
            }
            Changes::Present(version, objects) => {
                followed.version = version;
                for object in &objects {
                    followed.created.entry(uid(object)).or_insert(None);
                }
                objects
            }
        }
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
        let mut before: Option<(&DocumentLocation, Value, Option<u64>)> = None;
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
                // A change that no watch has shown yet is the latest.
                known.copied().unwrap_or(Some(u64::MAX))
            };
            let fitting = found.into_iter().filter(|one| fits(expected, one));
            let first = fitting.min_by_key(|one| (time(one), created(one)));
            let Some(object) = first else {
                let message = format!("{place}: {} not found", name_of_object(expected));
                return Ok(Some(Violation { message, details: String::new() }));
            };
            let at = created(&object);
            if let Some((other_place, other, other_at)) = &before
                && *other_place.file == *place.file
                && is_before((at, &time(&object)), (*other_at, &time(other)))
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

/// Whether an object was created before another, by their versions and times of creation. Without
/// the version of one, the seconds count.
fn is_before(one: (Option<u64>, &str), other: (Option<u64>, &str)) -> bool {
    match (one.0, other.0) {
        (Some(version), Some(other)) if version != other => version < other,
        _ => one.1 < other.1,
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use innkeeper_cluster::{Cluster, Env, SecretDigestKey, Settings};
    use innkeeper_simulator::Simulator;
    use jiff::{SignedDuration, Timestamp};
    use serde_json::json;

    use super::*;
    use crate::scenario::{Backend, Player, Suite};

    const TICK: Duration = Duration::from_millis(100);

    /// Runs a test with an API as of a real cluster: a watch lasts as long as it asks for. The
    /// cluster is a simulated one, whose clock goes with the virtual time.
    fn with_cluster(test: impl AsyncFnOnce(&Simulator, Api, Env)) {
        let running = async {
            let start = Timestamp::from_second(1_767_225_600).unwrap();
            let simulator = Simulator::new(1, start);
            let env = Env::scripted(1, start);
            let key = SecretDigestKey::new(b"test");
            let cluster = Cluster::over(simulator.clone(), env.clone(), Settings::default(), key);
            let (clock, timer) = (simulator.clone(), env.clone());
            let _time = env.spawn("time", async move {
                loop {
                    timer.sleep(TICK).await;
                    clock.advance(SignedDuration::try_from(TICK).unwrap());
                }
            });
            test(&simulator, Api::cluster(cluster.host()), env).await;
        };
        crate::block_on(running).unwrap();
    }

    fn map(name: &str, value: &str) -> Value {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name},
            "data": {"key": value}})
    }

    fn expected(object: Value) -> Expectation {
        let place = DocumentLocation { file: "00.yaml".into(), index: 0, in_list: false };
        Expectation { place, object }
    }

    #[test]
    fn state_is_seen_and_order_holds_when_the_server_has_dropped_changes() {
        with_cluster(async |simulator, api, env| {
            let nevers = vec![expected(map("c", "bad"))];
            let orders = ["a", "b"].map(|name| expected(map(name, "good"))).to_vec();
            let mut history = History::begin(&api, "default", nevers, orders).await.unwrap();

            api.apply(&map("a", "good"), "default").await.unwrap();
            simulator.compact();
            assert!(history.advance().await.unwrap().is_none());
            api.apply(&map("b", "good"), "default").await.unwrap();
            assert!(history.advance().await.unwrap().is_none());
            assert!(history.order().await.unwrap().is_none());

            api.apply(&map("c", "bad"), "default").await.unwrap();
            env.sleep(TICK).await;
            simulator.compact();
            let violation = history.advance().await.unwrap().unwrap();
            assert!(violation.message.contains("ConfigMap c was in a state"));
        });
    }

    #[test]
    fn objects_of_which_one_creation_is_unknown_are_ordered_by_time() {
        let (early, late) = ("2026-01-01T00:00:01Z", "2026-01-01T00:00:02Z");
        assert!(is_before((Some(5), late), (Some(6), late)));
        assert!(!is_before((Some(6), early), (Some(5), late)));
        assert!(is_before((None, early), (Some(1), late)));
        assert!(!is_before((Some(1), late), (None, early)));
        assert!(!is_before((None, late), (None, late)));
    }

    #[test]
    fn step_takes_as_long_as_its_timeout_when_it_watches_many_kinds() {
        with_cluster(async |_, api, env| {
            let folder = tempfile::tempdir().unwrap();
            let case = folder.path().join("slow");
            std::fs::create_dir(&case).unwrap();
            let of_kind =
                |kind| format!("apiVersion: v1\nkind: {kind}\nmetadata: {{name: never}}\n---\n");
            let nevers = ["ConfigMap", "Pod", "Secret", "Service"].map(of_kind).concat();
            for (file, text) in [
                ("00-install.yaml", map("a", "good").to_string()),
                ("00-assert.yaml", map("b", "good").to_string()),
                ("00-never.yaml", nevers),
            ] {
                std::fs::write(case.join(file), text).unwrap();
            }
            let suite = Suite::read(folder.path()).unwrap();
            let backend = Backend::Cluster(api, env.clone());
            let timeout = Duration::from_secs(10);
            let player = Player::new(&backend, "default".to_owned(), Some(timeout), false);

            let begun = env.instant();
            let outcome = player.play(&suite.cases[0]).await;

            let took = begun.elapsed();
            assert!(
                outcome.failure.unwrap().message.contains("ConfigMap b not found (after 10 s)")
            );
            // The last look begins before the timeout.
            assert!(took >= timeout && took < timeout + Duration::from_secs(3), "{took:?}");
        });
    }
}
