//! Definitions as an API server of the past has left them in etcd.

use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use innkeeper_controlplane::ControlPlane;
use serde_json::{Value, json};

/// Where the API server stores definitions.
const DEFINITIONS: &str = "/registry/apiextensions.k8s.io/customresourcedefinitions";

/// Stores a `CustomResourceDefinition` past the API server, in any version that it still reads:
/// `apiextensions.k8s.io/v1beta1` has had no endpoint since Kubernetes 1.22, but what was created
/// by it is still in etcd.
///
/// # Errors
/// If etcd does not answer, or refuses.
pub async fn put_crd(plane: &ControlPlane, definition: &Value) -> Result<()> {
    let name = definition["metadata"]["name"].as_str().context("a definition has a name")?;
    let value = BASE64.encode(definition.to_string());
    call(plane, "put", &json!({ "key": key(name), "value": value })).await?;
    Ok(())
}

/// Changes a stored `CustomResourceDefinition` past the API server.
///
/// # Errors
/// If it is not there, or etcd does not answer.
pub async fn change_crd(
    plane: &ControlPlane,
    name: &str,
    change: impl FnOnce(&mut Value),
) -> Result<()> {
    let range = call(plane, "range", &json!({ "key": key(name) })).await?;
    let stored = range["kvs"][0]["value"].as_str().context("etcd does not have the definition")?;
    let mut definition: Value = serde_json::from_slice(&BASE64.decode(stored)?)?;
    change(&mut definition);
    put_crd(plane, &definition).await
}

fn key(name: &str) -> String {
    BASE64.encode(format!("{DEFINITIONS}/{name}"))
}

async fn call(plane: &ControlPlane, method: &str, body: &Value) -> Result<Value> {
    let body: Full<Bytes> = Full::from(body.to_string());
    let uri = format!("http://{}/v3/kv/{method}", plane.etcd()?);
    let request = http::Request::post(uri).body(body)?;
    let client = Client::builder(TokioExecutor::new()).build_http();
    let answer = client.request(request).await.with_context(|| format!("{method} of etcd"))?;
    let status = answer.status();
    let text = answer.into_body().collect().await?.to_bytes();
    ensure!(status.is_success(), "etcd: {status}: {}", String::from_utf8_lossy(&text));
    Ok(serde_json::from_slice(&text)?)
}
