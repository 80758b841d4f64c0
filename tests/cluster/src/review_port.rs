//! AdmissionReviews sent to the port of the hosts, as the API server sends them.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http_body_util::BodyExt as _;
use kube::client::Body;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::interval;

use crate::dry_run::Answer;
use crate::{Admin, Kind};

/// The name that the certificate of the hosts has.
const NAME: &str = "innkeeper-admission.innkeeper-system.svc";

/// How often the webhook configuration is read for another authority.
const PERIOD: Duration = Duration::from_millis(500);

const CONFIGURATION: Kind =
    Kind::new("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration");

/// Sends AdmissionReviews for one policy. It trusts the authorities in the webhook configuration of
/// the policy, and reuses connections. Clones share them.
#[derive(Clone)]
pub struct ReviewPort {
    client: watch::Receiver<kube::Client>,
    path: String,
    _following: Arc<Following>,
}

/// The task that follows the webhook configuration.
struct Following(JoinHandle<()>);

impl Drop for Following {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl ReviewPort {
    /// Reviews by the policy of this Module, whose hosts are reached at this URL.
    ///
    /// # Errors
    /// If the policy has no webhook configuration.
    pub async fn start(admin: &Admin, url: &str, module: &str) -> Result<Self> {
        let (admin, url) = (admin.clone(), url.to_owned());
        let name = format!("innkeeper-policy-{module}");
        let mut bundle = bundle(&admin, &name).await?;
        let (sender, client) = watch::channel(trusting(&url, &bundle)?);
        let task = tokio::spawn(async move {
            let mut period = interval(PERIOD);
            loop {
                period.tick().await;
                // A configuration that cannot be read now is read again.
                let Ok(next) = self::bundle(&admin, &name).await else { continue };
                if next == bundle {
                    continue;
                }
                let Ok(client) = trusting(&url, &next) else { continue };
                bundle = next;
                sender.send_replace(client);
            }
        });
        let path = format!("/v1/policies/{module}/0?timeout=7s");
        Ok(Self { client, path, _following: Arc::new(Following(task)) })
    }

    /// Sends the review of a request that creates a ConfigMap.
    ///
    /// # Errors
    /// If there is no answer. A refusal is one.
    pub async fn create(&self, object: &Value) -> Result<Answer> {
        let request = http::Request::post(&self.path)
            .header("content-type", "application/json")
            .body(Body::from(serde_json::to_vec(&review(object))?))?;
        let client = self.client.borrow().clone();
        let response = client.send(request).await.context("no answer")?;
        let status = response.status().as_u16();
        let body = response.into_body().collect().await?.to_bytes();
        Ok(answer(status, &body))
    }
}

/// The authorities in a webhook configuration, as PEM.
async fn bundle(admin: &Admin, name: &str) -> Result<String> {
    let configuration = admin.must_get(CONFIGURATION, "", name).await?;
    let bundle = configuration.pointer("/webhooks/0/clientConfig/caBundle");
    let bundle = bundle.and_then(Value::as_str).context("no caBundle")?;
    Ok(String::from_utf8(STANDARD.decode(bundle)?)?)
}

/// A client that trusts these authorities, as PEM.
fn trusting(url: &str, bundle: &str) -> Result<kube::Client> {
    let certificates = bundle.split("-----END CERTIFICATE-----").filter_map(|part| {
        let (_, text) = part.split_once("-----BEGIN CERTIFICATE-----")?;
        Some(STANDARD.decode(text.split_whitespace().collect::<String>()))
    });
    let mut config = kube::Config::new(url.parse()?);
    config.root_cert = Some(certificates.collect::<Result<_, _>>()?);
    config.tls_server_name = Some(NAME.to_owned());
    config.default_retry = false;
    Ok(kube::Client::try_from(config)?)
}

fn review(object: &Value) -> Value {
    let mut object = object.clone();
    object["metadata"]["namespace"] = "shop".into();
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "5b2f0a2c-0d3c-4a53-8a55-3a1f6a9d2c11",
        "kind": {"group": "", "version": "v1", "kind": "ConfigMap"},
        "resource": {"group": "", "version": "v1", "resource": "configmaps"},
        "requestKind": {"group": "", "version": "v1", "kind": "ConfigMap"},
        "requestResource": {"group": "", "version": "v1", "resource": "configmaps"},
        "name": object["metadata"]["name"], "namespace": "shop", "operation": "CREATE",
        "userInfo": {"username": "tester", "groups": ["system:authenticated"]},
        "object": object, "oldObject": null, "dryRun": true,
        "options": {"apiVersion": "meta.k8s.io/v1", "kind": "CreateOptions"}}})
}

/// The answer as the API server passes it on.
fn answer(status: u16, body: &[u8]) -> Answer {
    let review: Value = serde_json::from_slice(body).unwrap_or_default();
    let response = &review["response"];
    if status != 200 || !response["allowed"].is_boolean() {
        let message = String::from_utf8_lossy(body).into_owned();
        return Answer { code: status, message, ..Answer::default() };
    }
    let warnings = response["warnings"].as_array().into_iter().flatten();
    let warnings = warnings.filter_map(|one| one.as_str().map(str::to_owned)).collect();
    let is_allowed = response["allowed"] == true;
    let code = response["status"]["code"].as_u64().and_then(|code| u16::try_from(code).ok());
    let code = if is_allowed { 201 } else { code.unwrap_or(400) };
    let message = response["status"]["message"].as_str().unwrap_or_default();
    let message = if is_allowed { String::new() } else { format!("denied the request: {message}") };
    Answer { code, message, warnings, body: review }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answer_has_the_status_the_message_and_the_warnings_of_a_review() {
        let of =
            |response: Value| answer(200, json!({ "response": response }).to_string().as_bytes());
        let allowed = of(json!({"allowed": true, "warnings": ["old"]}));
        assert_eq!((allowed.code, &*allowed.message), (201, ""));
        assert_eq!(allowed.warnings, ["old"]);
        let denied = of(json!({"allowed": false, "status": {"code": 403, "message": "no"}}));
        assert_eq!((denied.code, &*denied.message), (403, "denied the request: no"));
        assert_eq!(answer(404, b"no policy").message, "no policy");
        assert_eq!(answer(200, b"{}").message, "{}");
    }
}
