//! A server on pipes and virtual time, its clients, and a reviewer that obeys the Module's name.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use innkeeper_admission::certificates::{Certificates, Lifetimes};
use innkeeper_admission::server::Listener;
use innkeeper_admission::{
    AdmissionRequest, AdmissionResponse, AdmissionServer, Denial, Reviewed, Reviewer, ServerLimits,
    ServerStatistics, TlsCertificate, WebhookRef,
};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, DuplexStream};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

pub(crate) const NAME: &str = "innkeeper-admission.innkeeper-system.svc";
pub(crate) const ADDRESS: [u8; 4] = [10, 0, 0, 1];

/// Less than a body, so that clients wait for the server.
const PIPE_BYTES: usize = 4 << 10;

/// Does what the name of the Module says.
pub(crate) struct FakeReviewer {
    /// Whether the reviews of the Module `waits` go on.
    pub(crate) go_on: watch::Sender<bool>,
}

impl Reviewer for FakeReviewer {
    async fn review(
        &self,
        webhook: WebhookRef,
        request: AdmissionRequest<'_>,
        deadline: Instant,
    ) -> Reviewed {
        let denied = |message: String| {
            let (reason, causes) = ("Forbidden".to_owned(), Vec::new());
            let denial = Some(Denial { message, reason, code: 403, causes });
            Reviewed::Answer(AdmissionResponse { denial, ..AdmissionResponse::default() })
        };
        match &*webhook.module {
            "allows" => {}
            "denies" => return denied(format!("{} by webhook {}", request.name, webhook.index)),
            "times" => {
                let left = deadline - tokio::time::Instant::now().into_std();
                return denied(format!("{} s", left.as_secs_f64()));
            }
            "waits" => drop(self.go_on.subscribe().wait_for(|go_on| *go_on).await),
            "hangs" => std::future::pending().await,
            "panics" => panic!("a mistake in the reviewer"),
            "overloaded" => return Reviewed::Overloaded("64 reviews wait already".to_owned()),
            "fails" => return Reviewed::Failed("policy labels failed: out of fuel".to_owned()),
            _ => return Reviewed::UnknownPolicy,
        }
        Reviewed::Answer(AdmissionResponse::allowed())
    }
}

struct Pipes(mpsc::UnboundedReceiver<(DuplexStream, IpAddr)>);

impl Listener for Pipes {
    type Stream = DuplexStream;

    async fn accept(&mut self) -> std::io::Result<(DuplexStream, IpAddr)> {
        match self.0.recv().await {
            Some(accepted) => Ok(accepted),
            None => std::future::pending().await,
        }
    }
}

pub(crate) fn made_certificates() -> Certificates {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let now = i64::try_from(now).unwrap();
    Certificates::make(&[NAME.to_owned()], Lifetimes::default(), now).unwrap()
}

/// A running server.
pub(crate) struct Server {
    pub(crate) certificate: watch::Sender<TlsCertificate>,
    pub(crate) bundle: String,
    pub(crate) reviewer: Arc<FakeReviewer>,
    statistics: watch::Receiver<ServerStatistics>,
    connect: mpsc::UnboundedSender<(DuplexStream, IpAddr)>,
    stop: Option<oneshot::Sender<()>>,
    pub(crate) task: JoinHandle<()>,
}

impl Server {
    pub(crate) fn start(limits: ServerLimits) -> Self {
        Self::start_for(limits, None)
    }

    /// Starts a server that answers only clients with a certificate of this authority.
    pub(crate) fn start_for(limits: ServerLimits, client_authority: Option<&str>) -> Self {
        let certificates = made_certificates();
        let serving = TlsCertificate::new(certificates.serving()).unwrap();
        let (certificate, receiver) = watch::channel(serving);
        let reviewer = Arc::new(FakeReviewer { go_on: watch::Sender::new(false) });
        let server =
            AdmissionServer::new(receiver, client_authority, Arc::clone(&reviewer), limits);
        let server = server.unwrap();
        let statistics = server.statistics();
        let (connect, accept) = mpsc::unbounded_channel();
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(server.serve(Pipes(accept), async move {
            let _ = stopped.await;
        }));
        let (bundle, stop) = (certificates.bundle(), Some(stop));
        Self { certificate, bundle, reviewer, statistics, connect, stop, task }
    }

    pub(crate) fn stop(&mut self) {
        drop(self.stop.take());
    }

    /// Opens a connection without TLS.
    pub(crate) fn open(&self, address: [u8; 4]) -> DuplexStream {
        let (client, server) = tokio::io::duplex(PIPE_BYTES);
        self.connect.send((server, IpAddr::from(address))).unwrap();
        client
    }

    /// Opens a connection that trusts the first authority of the server.
    pub(crate) async fn connect(&self) -> Client {
        self.connect_from(ADDRESS).await
    }

    pub(crate) async fn connect_from(&self, address: [u8; 4]) -> Client {
        self.connect_by(address, client_config(&self.bundle)).await.unwrap()
    }

    pub(crate) async fn connect_by(
        &self,
        address: [u8; 4],
        config: ClientConfig,
    ) -> std::io::Result<Client> {
        Client::handshake(self.open(address), config).await
    }

    /// Waits until the statistics are so.
    pub(crate) async fn wait_for(&self, is_so: impl FnMut(&ServerStatistics) -> bool) {
        let mut statistics = self.statistics.clone();
        let waited = tokio::time::timeout(MINUTES, statistics.wait_for(is_so)).await;
        assert!(waited.is_ok(), "after {MINUTES:?}: {:?}", self.statistics());
    }

    pub(crate) fn statistics(&self) -> ServerStatistics {
        self.statistics.borrow().clone()
    }
}

/// Longer than each limit of the server.
const MINUTES: std::time::Duration = std::time::Duration::from_mins(10);

/// A client that trusts these authorities.
pub(crate) fn client_config(bundle: &str) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    for root in CertificateDer::pem_slice_iter(bundle.as_bytes()) {
        roots.add(root.unwrap()).unwrap();
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider);
    let builder = builder.with_safe_default_protocol_versions().unwrap();
    builder.with_root_certificates(roots).with_no_client_auth()
}

/// A response.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    /// The `response` of the AdmissionReview.
    pub(crate) fn response(&self) -> Value {
        assert_eq!(self.status, 200, "{self:?}");
        let mut review: Value = serde_json::from_str(&self.body).unwrap();
        assert_eq!(review["apiVersion"], "admission.k8s.io/v1");
        review["response"].take()
    }

    pub(crate) fn is_allowed(&self) -> bool {
        self.response()["allowed"] == true
    }

    /// Whether the server announces the end of the connection.
    pub(crate) fn closes(&self) -> bool {
        self.head.contains("connection: close\r\n")
    }
}

/// A connection over TLS.
pub(crate) struct Client<S = DuplexStream> {
    pub(crate) stream: TlsStream<S>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Client<S> {
    pub(crate) async fn handshake(stream: S, config: ClientConfig) -> std::io::Result<Self> {
        let name = ServerName::try_from(NAME).unwrap();
        let connector = TlsConnector::from(Arc::new(config));
        connector.connect(name, stream).await.map(|stream| Self { stream })
    }

    pub(crate) async fn send(&mut self, text: &str) {
        self.stream.write_all(text.as_bytes()).await.unwrap();
        self.stream.flush().await.unwrap();
    }

    /// Sends a review and waits for its answer.
    pub(crate) async fn post(&mut self, path: &str) -> Answer {
        self.send(&request(path, &review())).await;
        self.answer().await
    }

    /// Reads one response.
    pub(crate) async fn answer(&mut self) -> Answer {
        self.try_answer().await.expect("a response")
    }

    /// Reads one response; none if the connection ends.
    pub(crate) async fn try_answer(&mut self) -> Option<Answer> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(self.stream.read_u8().await.ok()?);
        }
        let head = String::from_utf8(head).unwrap();
        let length = head.split("content-length: ").nth(1).unwrap().split("\r\n").next().unwrap();
        let mut body = vec![0; length.parse().unwrap()];
        self.stream.read_exact(&mut body).await.unwrap();
        let status = head["HTTP/1.1 ".len()..][..3].parse().unwrap();
        Some(Answer { status, head, body: String::from_utf8(body).unwrap() })
    }

    /// Reads until the end of the connection.
    pub(crate) async fn end(&mut self) -> String {
        let mut rest = Vec::new();
        let _ = self.stream.read_to_end(&mut rest).await;
        String::from_utf8(rest).unwrap()
    }
}

/// The AdmissionReview of a Pod.
pub(crate) fn review() -> String {
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "name": "web", "namespace": "default", "operation": "CREATE",
        "object": {"kind": "Pod"}, "oldObject": null, "dryRun": false}})
    .to_string()
}

pub(crate) fn request(path: &str, body: &str) -> String {
    let headers = format!("Content-Type: application/json\r\nContent-Length: {}", body.len());
    format!("POST {path} HTTP/1.1\r\nHost: {NAME}\r\n{headers}\r\n\r\n{body}")
}
