//! The two servers: a real one and the simulator.

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
use innkeeper_simulator::Simulator;
use jiff::Timestamp;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::Value;
use tokio::runtime::Runtime;

use crate::sentinel::{self, Wait};

/// Whatever goes wrong with the connection.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// What a server answered.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    /// The HTTP status.
    pub code: u16,
    /// The document, or the text.
    pub body: Value,
    /// Its warnings, as in the headers.
    pub warnings: Vec<String>,
}

impl Reply {
    /// The latest time that the document tells of a write: when it was answered, to the second.
    pub fn latest(&self) -> Option<Timestamp> {
        let metadata = &self.body["metadata"];
        let entries = metadata["managedFields"].as_array().into_iter().flatten();
        let times = entries.map(|entry| &entry["time"]).chain([&metadata["creationTimestamp"]]);
        times.filter_map(|time| time.as_str()?.parse().ok()).max()
    }

    fn read(head: &http::response::Parts, bytes: &[u8]) -> Self {
        let warnings = head.headers.get_all(header::WARNING).iter();
        let warnings = warnings.filter_map(|value| value.to_str().ok()).map(str::to_owned);
        let text = String::from_utf8_lossy(bytes);
        let body = serde_json::from_slice(bytes).unwrap_or_else(|_| {
            // A watch is a line for each event.
            let lines: Result<Vec<Value>, _> = text.lines().map(serde_json::from_str).collect();
            lines.map_or_else(|_| Value::from(text.as_ref()), Value::from)
        });
        Self { code: head.status.as_u16(), body, warnings: warnings.collect() }
    }
}

/// Something that answers requests.
pub trait Server {
    /// One request.
    ///
    /// # Errors
    /// If there is no answer at all.
    fn send(&self, request: Request<Bytes>) -> Result<Reply, Failure>;

    /// A watch, until it has told of something in whose text this stands, or it ends. By default
    /// all that there is to tell.
    ///
    /// # Errors
    /// If there is no answer at all.
    fn send_until(&self, request: Request<Bytes>, _until: &str) -> Result<Reply, Failure> {
        self.send(request)
    }

    /// Waits until those who read a collection in no certain version find what was written to it.
    ///
    /// # Errors
    /// If there is no answer at all.
    fn refresh(&self, _collection: &str) -> Result<(), Failure> {
        Ok(())
    }

    /// Brings its clock to this time, if it has one of its own and is behind.
    fn reach(&self, _time: Timestamp) {}

    /// Waits until what was written shows to all who read, at this path in this version, if it does
    /// not at once.
    ///
    /// # Errors
    /// If there is no answer at all.
    fn catch_up(&self, _path: &str, _version: &str) -> Result<(), Failure> {
        Ok(())
    }

    /// Lets its controllers work, if they do so only when they are told; else waits until they have
    /// come to what was written before.
    ///
    /// # Errors
    /// If they do not come to it.
    fn settle(&self, wait: Wait) -> Result<(), Failure>;
}

impl Server for Simulator {
    fn send(&self, request: Request<Bytes>) -> Result<Reply, Failure> {
        let response = self.request(request);
        let (head, mut body) = response.into_parts();
        let parts: Vec<Bytes> = std::iter::from_fn(|| body.try_next()).collect();
        Ok(Reply::read(&head, &parts.concat()))
    }

    fn settle(&self, _: Wait) -> Result<(), Failure> {
        Simulator::settle(self);
        Ok(())
    }

    fn reach(&self, time: Timestamp) {
        let ahead = time.duration_since(self.now());
        if ahead.is_positive() {
            self.advance(ahead);
        }
    }
}

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

/// How long a server may be busy, and how often it is asked then.
const BUSY: Duration = Duration::from_mins(1);
const PAUSE: Duration = Duration::from_millis(50);

/// Whether a server asks to be asked again, as one does whose watch cache of a kind has just begun.
fn is_busy(reply: &Reply) -> bool {
    let said = reply.body["message"].as_str().unwrap_or_default();
    reply.code == 429 && said.contains("storage is (re)initializing")
}

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
                if told(&read, until) {
                    break;
                }
            }
            Ok(Reply::read(&head, &read))
        })
    }
}

/// Whether one of the whole lines has a text.
fn told(lines: &[u8], text: &str) -> bool {
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
        loop {
            let reply = self.ask(Request::from_parts(parts.clone(), body.clone()), until)?;
            if !is_busy(&reply) {
                return Ok(reply);
            }
            if Instant::now() > deadline {
                return Err(format!("the server is busy for {BUSY:?}: {}", reply.body).into());
            }
            std::thread::sleep(PAUSE);
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
