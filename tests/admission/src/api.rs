//! A client of the simulated cluster: plain HTTP with the token of its kubeconfig.

use std::net::SocketAddr;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use bytes::Bytes;
use http::{Method, Request, header};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;

/// A client of the simulated cluster.
#[derive(Clone)]
pub struct Api {
    address: SocketAddr,
    token: String,
}

/// The path of a kind: group and version, plural, and whether it is in a namespace.
const KINDS: [(&str, &str, bool); 8] = [
    ("CustomResourceDefinition", "customresourcedefinitions", false),
    ("Namespace", "namespaces", false),
    ("ServiceAccount", "serviceaccounts", true),
    ("ConfigMap", "configmaps", true),
    ("ClusterRole", "clusterroles", false),
    ("ClusterRoleBinding", "clusterrolebindings", false),
    ("RoleBinding", "rolebindings", true),
    ("Module", "modules", false),
];

impl Api {
    /// A client with the address and the token of a kubeconfig.
    ///
    /// # Errors
    /// If there is no such file, or it is none of a simulated cluster.
    pub fn of(kubeconfig: &Path) -> Result<Self> {
        let config: Value = serde_json::from_slice(&std::fs::read(kubeconfig)?)?;
        let text = |pointer: &str| {
            config.pointer(pointer).and_then(Value::as_str).with_context(|| pointer.to_owned())
        };
        let server = text("/clusters/0/cluster/server")?;
        let address = server.strip_prefix("https://").context("the address is no https URL")?;
        Ok(Self { address: address.parse()?, token: text("/users/0/user/token")?.to_owned() })
    }

    /// Applies an object.
    ///
    /// # Errors
    /// If the cluster refuses it.
    pub async fn apply(&self, object: &Value) -> Result<()> {
        let path = format!("{}?fieldManager=admission-load&force=true", path(object)?);
        let (status, body) = self.send(Method::PATCH, &path, object.to_string()).await?;
        if !(200..300).contains(&status) {
            bail!("{path} answers {status}: {body}");
        }
        Ok(())
    }

    /// Reads what is at a path; `None` if nothing is.
    ///
    /// # Errors
    /// If the cluster answers with another error.
    pub async fn read(&self, path: &str) -> Result<Option<Value>> {
        match self.send(Method::GET, path, String::new()).await? {
            (200, body) => Ok(Some(serde_json::from_str(&body)?)),
            (404, _) => Ok(None),
            (status, body) => bail!("{path} answers {status}: {body}"),
        }
    }

    async fn send(&self, method: Method, path: &str, body: String) -> Result<(u16, String)> {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::HOST, self.address.to_string())
            .header(header::AUTHORIZATION, format!("Bearer {}", self.token))
            .header(header::CONTENT_TYPE, "application/apply-patch+yaml")
            .body(Full::new(Bytes::from(body)))?;
        send(self.address, request).await
    }
}

/// The path of an object.
fn path(object: &Value) -> Result<String> {
    let text = |pointer| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let (kind, name) = (text("/kind"), text("/metadata/name"));
    let (_, plural, is_namespaced) = KINDS
        .iter()
        .find(|(one, ..)| *one == kind)
        .with_context(|| format!("the kind {kind} has no path here"))?;
    let version = text("/apiVersion");
    let root = if version.contains('/') { "/apis" } else { "/api" };
    let within = if *is_namespaced {
        format!("namespaces/{}/", text("/metadata/namespace"))
    } else {
        String::new()
    };
    Ok(format!("{root}/{version}/{within}{plural}/{name}"))
}

/// Gets a path by plain HTTP: status and body.
///
/// # Errors
/// If nobody answers.
pub async fn get(address: SocketAddr, path: &str) -> Result<(u16, String)> {
    let request = Request::get(path).header(header::HOST, address.to_string());
    send(address, request.body(Full::default())?).await
}

async fn send(address: SocketAddr, request: Request<Full<Bytes>>) -> Result<(u16, String)> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let driver = tokio::spawn(connection);
    let response = sender.send_request(request).await?;
    let status = response.status().as_u16();
    let body = response.into_body().collect().await?.to_bytes();
    driver.abort();
    Ok((status, String::from_utf8_lossy(&body).into_owned()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may fail by it")]

    use serde_json::json;

    use super::*;

    #[test]
    fn path_is_that_of_the_kind() {
        let object = |version: &str, kind: &str| {
            json!({"apiVersion": version, "kind": kind,
            "metadata": {"name": "a", "namespace": "n"}})
        };
        assert_eq!(path(&object("v1", "ConfigMap")).unwrap(), "/api/v1/namespaces/n/configmaps/a");
        let module = object("innkeeper.dev/v1alpha1", "Module");
        assert_eq!(path(&module).unwrap(), "/apis/innkeeper.dev/v1alpha1/modules/a");
        assert!(path(&object("v1", "Pod")).is_err());
    }
}
