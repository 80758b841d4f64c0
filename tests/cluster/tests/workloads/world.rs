//! One side, the real cluster or the simulated one, and the namespace of a scenario.

use std::time::Duration;

use anyhow::{Result, bail};
use bytes::Bytes;
use innkeeper_cluster_tests::{Admin, shared};
use innkeeper_simulator::{Controllers, Simulator, Workload};
use jiff::SignedDuration;
use serde_json::{Value, json};

use crate::lines::normalised;

/// The kind that is in no namespace.
pub(crate) const VOLUMES: &str = "api/v1 persistentvolumes";

/// Either side.
enum Side {
    Real(Admin),
    Simulated(Simulator),
}

/// A side, and the namespace of the scenario.
pub(crate) struct World {
    side: Side,
    pub(crate) namespace: &'static str,
}

impl World {
    pub(crate) async fn send(
        &self,
        method: &str,
        path: &str,
        kind: &str,
        body: &Value,
    ) -> Result<Value> {
        let text = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let request = http::Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", kind)
            .header("user-agent", "test")
            .body(text)?;
        match &self.side {
            Side::Real(admin) => Ok(admin.client().request(request).await?),
            Side::Simulated(simulator) => {
                let response = simulator.request(request.map(Bytes::from));
                let code = response.status();
                let body = response.into_body().try_next().unwrap_or_default();
                let body: Value = serde_json::from_slice(&body)?;
                if !code.is_success() {
                    bail!("{method} {path}: {body}");
                }
                Ok(body)
            }
        }
    }

    /// Where a kind's objects are, or one of them.
    pub(crate) fn path(&self, kind: &str) -> String {
        let (version, plural) = kind.split_once(' ').unwrap();
        if kind.starts_with(VOLUMES) {
            return format!("/{version}/{plural}");
        }
        format!("/{version}/namespaces/{}/{plural}", self.namespace)
    }

    /// Creates the namespace of the scenario.
    pub(crate) async fn begin(&self) -> Result<()> {
        let namespace = json!({"metadata": {"name": self.namespace}});
        self.send("POST", "/api/v1/namespaces", "application/json", &namespace).await.map(|_| ())
    }

    pub(crate) async fn list(&self, kind: &str) -> Result<Vec<Value>> {
        let list = self.send("GET", &self.path(kind), "", &Value::Null).await?;
        Ok(list["items"].as_array().cloned().unwrap_or_default())
    }

    pub(crate) async fn create(&self, kind: &str, object: &Value) -> Result<()> {
        self.send("POST", &self.path(kind), "application/json", object).await.map(|_| ())
    }

    pub(crate) async fn patch(&self, what: &str, change: &Value) -> Result<()> {
        let kind = "application/merge-patch+json";
        self.send("PATCH", &self.path(what), kind, change).await.map(|_| ())
    }

    pub(crate) async fn delete(&self, what: &str) -> Result<()> {
        self.send("DELETE", &self.path(what), "application/json", &Value::Null).await.map(|_| ())
    }

    pub(crate) async fn wait(&self) {
        match &self.side {
            Side::Real(_) => tokio::time::sleep(Duration::from_millis(200)).await,
            Side::Simulated(one) => one.advance(SignedDuration::from_millis(200)),
        }
    }

    /// Waits until all objects of a kind are so: at most two minutes, since a schedule may need
    /// one.
    pub(crate) async fn until_all(
        &self,
        what: &str,
        kind: &str,
        holds: impl Fn(&[Value]) -> bool,
    ) -> Result<()> {
        let mut seen = Vec::new();
        for _ in 0..600 {
            seen = self.list(kind).await?;
            if holds(&seen) {
                return Ok(());
            }
            self.wait().await;
        }
        bail!("{what}: not within two minutes: {seen:#?}")
    }

    /// All objects of these kinds, as lines.
    pub(crate) async fn all(&self, kinds: &[&str]) -> Result<Vec<String>> {
        let mut all = Vec::new();
        for kind in kinds {
            for mut object in self.list(kind).await? {
                object["kind"] = kind.split_once(' ').unwrap().1.into();
                all.push(object);
            }
        }
        Ok(normalised(&all))
    }
}

/// Both sides, where the scenario writes the statuses of Pods.
pub(crate) async fn sides(namespace: &'static str) -> Result<[World; 2]> {
    let mut controllers = Controllers::all();
    controllers.workloads = controllers.workloads.without(Workload::Pods);
    let simulator = Simulator::with(1, jiff::Timestamp::now(), controllers);
    let real = Side::Real(Admin::of(shared()?).await?);
    Ok([real, Side::Simulated(simulator)].map(|side| World { side, namespace }))
}
