//! A real API server.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine as _;
use bytes::Bytes;
use http::{Request, header};
use http_body_util::{BodyExt as _, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::Value;
use tokio::runtime::Runtime;

use crate::outcome::{Outcome, OutcomeUnknown};
use crate::sentinel;
use crate::server::{Failure, Reply, Server, Wait};

/// A real API server.
pub struct Real {
    runtime: Runtime,
    client: Client<hyper_rustls::HttpsConnector<HttpConnector>, Full<Bytes>>,
    base: String,
    controllers: bool,
}

impl Real {
    /// The one of a kubeconfig with certificates, with or without a controller manager.
    ///
    /// # Errors
    /// If the kubeconfig has not what is needed.
    pub fn connect(kubeconfig: &Path, controllers: bool) -> Result<Self, Failure> {
        let config: Value = serde_json::from_slice(&std::fs::read(kubeconfig)?)?;
        let cluster = &config["clusters"][0]["cluster"];
        let user = &config["users"][0]["user"];
        let pem = |value: &Value| -> Result<Vec<u8>, Failure> {
            let text = value.as_str().ok_or("the kubeconfig has no certificates")?;
            Ok(base64::engine::general_purpose::STANDARD.decode(text)?)
        };
        let mut roots = rustls::RootCertStore::empty();
        roots
            .add(CertificateDer::from_pem_slice(&pem(&cluster["certificate-authority-data"])?)?)?;
        let certificate = CertificateDer::from_pem_slice(&pem(&user["client-certificate-data"])?)?;
        let key = PrivateKeyDer::from_pem_slice(&pem(&user["client-key-data"])?)?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_client_auth_cert(vec![certificate], key)?;
        let connector = hyper_rustls::HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_only()
            .enable_http1()
            .build();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let client = Client::builder(TokioExecutor::new()).build(connector);
        let base = cluster["server"].as_str().ok_or("the kubeconfig has no server")?.to_owned();
        Ok(Self { runtime, client, base, controllers })
    }
}

/// How long a server may be busy, as one is whose watch cache of a kind has just begun, and how
/// often it is asked then.
const BUSY: Duration = Duration::from_mins(1);
const PAUSE: Duration = Duration::from_millis(50);
/// How often a request that writes nothing is sent, if the server is too slow for it.
const TOO_SLOW_MAX: usize = 5;

impl Real {
    /// One request, with the whole address.
    fn ask(&self, request: Request<Bytes>, until: &str) -> Result<Reply, Failure> {
        let (parts, body) = request.into_parts();
        let asked = format!("{} {} {}", parts.method, parts.uri, String::from_utf8_lossy(&body));
        let request = Request::from_parts(parts, Full::new(body));
        self.runtime.block_on(async {
            let response = self.client.request(request).await;
            let response = response.map_err(|error| format!("{asked}: {error:?}"))?;
            let (head, mut body) = response.into_parts();
            if until.is_empty() {
                return Ok(Reply::read(&head, &body.collect().await?.to_bytes()));
            }
            let mut read = Vec::new();
            while let Some(frame) = body.frame().await {
                let Ok(data) = frame?.into_data() else { continue };
                read.extend_from_slice(&data);
                if has_line_with(&read, until) {
                    break;
                }
            }
            Ok(Reply::read(&head, &read))
        })
    }
}

/// Whether one of the whole lines has a text.
fn has_line_with(lines: &[u8], text: &str) -> bool {
    lines.ends_with(b"\n") && String::from_utf8_lossy(lines).contains(text)
}

impl Server for Real {
    fn send(&self, request: Request<Bytes>) -> Result<Reply, Failure> {
        self.send_until(request, "")
    }

    fn send_until(&self, request: Request<Bytes>, until: &str) -> Result<Reply, Failure> {
        let (mut parts, body) = request.into_parts();
        parts.uri = format!("{}{}", self.base, parts.uri).parse()?;
        parts.headers.remove(header::HOST);
        let deadline = Instant::now() + BUSY;
        let mut slow = 0;
        loop {
            let reply = self.ask(Request::from_parts(parts.clone(), body.clone()), until)?;
            let asked = || format!("{} {}: {} {}", parts.method, parts.uri, reply.code, reply.body);
            match Outcome::of(&parts.method, &parts.uri, &reply) {
                Outcome::Answered => return Ok(reply),
                Outcome::Unknown => return Err(OutcomeUnknown(asked()).into()),
                Outcome::TooSlow => {
                    slow += 1;
                    if slow == TOO_SLOW_MAX {
                        return Err(format!("too slow {slow} times: {}", asked()).into());
                    }
                }
                Outcome::Busy => {
                    if Instant::now() > deadline {
                        return Err(format!("busy for {BUSY:?}: {}", asked()).into());
                    }
                    std::thread::sleep(PAUSE);
                }
            }
        }
    }

    /// A list of what is there now is answered when the cache has it.
    fn refresh(&self, collection: &str) -> Result<(), Failure> {
        let uri = format!("{collection}?limit=1");
        self.send(Request::builder().uri(uri).body(Bytes::new())?).map(|_| ())
    }

    fn settle(&self, wait: Wait) -> Result<(), Failure> {
        sentinel::wait(self, if self.controllers { wait } else { Wait::Roles })
    }

    /// A write of an object begins with what the server's watch cache has of it. Whether that is a
    /// moment old decides whether a write that changes only what is not shown (an empty list of
    /// finalizers) counts as one.
    fn catch_up(&self, path: &str, version: &str) -> Result<(), Failure> {
        // The cache answers as soon as it is there.
        let uri = format!("{path}?resourceVersion={version}");
        self.send(Request::builder().uri(uri).body(Bytes::new())?).map(|_| ())
    }
}
