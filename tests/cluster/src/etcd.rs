//! Objects as an older API server has left them in etcd.

use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
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
    let encoded = |bytes: &[u8]| base64::engine::general_purpose::STANDARD.encode(bytes);
    let body = json!({
        "key": encoded(format!("{DEFINITIONS}/{name}").as_bytes()),
        "value": encoded(definition.to_string().as_bytes()),
    });
    let request = http::Request::post(format!("http://{}/v3/kv/put", plane.etcd()?))
        .body(Full::new(Bytes::from(body.to_string())))?;
    let client = Client::builder(TokioExecutor::new()).build_http();
    let answer = client.request(request).await.context("writing to etcd")?;
    let status = answer.status();
    let text = answer.into_body().collect().await?.to_bytes();
    ensure!(status.is_success(), "etcd: {status}: {}", String::from_utf8_lossy(&text));
    Ok(())
}
