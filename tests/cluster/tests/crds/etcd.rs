//! Definitions that only an API server of the past could have stored.

use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use innkeeper_cluster_tests::Stage;
use serde_json::{Value, json};

/// Changes a stored CustomResourceDefinition in etcd.
pub(crate) async fn change_definition(
    stage: &Stage,
    name: &str,
    change: impl FnOnce(&mut Value),
) -> Result<()> {
    let path = format!("/registry/apiextensions.k8s.io/customresourcedefinitions/{name}");
    let key = BASE64.encode(path);
    let range = call(stage, "range", &json!({ "key": key })).await?;
    let stored = range["kvs"][0]["value"].as_str().context("etcd does not have the definition")?;
    let mut definition: Value = serde_json::from_slice(&BASE64.decode(stored)?)?;
    change(&mut definition);
    let value = BASE64.encode(definition.to_string());
    call(stage, "put", &json!({ "key": key, "value": value })).await?;
    Ok(())
}

async fn call(stage: &Stage, method: &str, body: &Value) -> Result<Value> {
    let uri = format!("http://{}/v3/kv/{method}", stage.plane.etcd()?);
    let body: Full<Bytes> = Full::from(body.to_string());
    let request = http::Request::post(uri).body(body)?;
    let response = Client::builder(TokioExecutor::new()).build_http().request(request).await?;
    let status = response.status();
    let bytes = response.into_body().collect().await?.to_bytes();
    ensure!(status.is_success(), "etcd says {status}: {}", String::from_utf8_lossy(&bytes));
    Ok(serde_json::from_slice(&bytes)?)
}
