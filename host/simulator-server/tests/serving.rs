//! The simulator on a port with real clients.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use innkeeper_simulator::Simulator;
use innkeeper_simulator_server::{Error, Interceptor, Options, Server, SimulatorService, Time};
use jiff::{SignedDuration, Timestamp};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tower::ServiceExt as _;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
/// Maximum time of a wait.
const TIMEOUT: Duration = Duration::from_mins(2);

fn simulator() -> Simulator {
    Simulator::new(1, "2026-11-22T00:00:00Z".parse().unwrap())
}

/// A server with its token and its certificate authority.
struct Fixture {
    simulator: Simulator,
    server: Server,
    token: String,
    authority: Vec<u8>,
}

impl Fixture {
    async fn start(time: Time) -> Self {
        let simulator = simulator();
        let options = Options { port: 0, time };
        let server = Server::start(simulator.clone(), &options).await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        let file = server.write_kubeconfig(&folder.path().join("config")).unwrap();
        let text = std::fs::read(file.path()).unwrap();
        let config: Value = serde_json::from_slice(&text).unwrap();
        let token = config["users"][0]["user"]["token"].as_str().unwrap().to_owned();
        let authority = &config["clusters"][0]["cluster"]["certificate-authority-data"];
        let authority =
            base64::engine::general_purpose::STANDARD.decode(authority.as_str().unwrap());
        Self { simulator, server, token, authority: authority.unwrap() }
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.server.address()).await.unwrap()
    }
}

/// Sends a request without a body.
async fn ask<S: AsyncWrite + Unpin>(stream: &mut S, path: &str, token: &str, close: bool) {
    let token =
        if token.is_empty() { String::new() } else { format!("Authorization: Bearer {token}\r\n") };
    let close = if close { "Connection: close\r\n" } else { "" };
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{token}{close}\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
}

/// Reads until a text arrives, or until the end.
async fn read<S: AsyncRead + Unpin>(stream: &mut S, until: Option<&str>) -> String {
    let mut text = String::new();
    let mut buffer = [0; 4096];
    let reading = async {
        while until.is_none_or(|until| !text.contains(until)) {
            match stream.read(&mut buffer).await.unwrap() {
                0 => break,
                length => text.push_str(&String::from_utf8_lossy(&buffer[..length])),
            }
        }
    };
    let done = tokio::time::timeout(TIMEOUT, reading).await.is_ok();
    assert!(done, "{until:?} did not arrive in {TIMEOUT:?}: {text}");
    text
}

/// Whether the server closes a connection without an answer.
async fn is_closed(stream: &mut TcpStream) -> bool {
    let reading = async { stream.read(&mut [0; 16]).await };
    // A server that has not read everything resets the connection.
    matches!(tokio::time::timeout(TIMEOUT, reading).await.unwrap(), Ok(0) | Err(_))
}

async fn whole(fixture: &Fixture, path: &str, token: &str) -> String {
    let mut stream = fixture.connect().await;
    ask(&mut stream, path, token, true).await;
    read(&mut stream, None).await
}

fn create(simulator: &Simulator, name: &str) {
    let body = Bytes::from(format!("{{\"metadata\": {{\"name\": {name:?}}}}}"));
    let request = Request::post(MAPS).header("content-type", "application/json").body(body);
    assert_eq!(simulator.request(request.unwrap()).status(), 201);
}

#[tokio::test]
async fn only_client_with_the_token_may_do_everything() {
    let fixture = Fixture::start(Time::Still).await;
    assert!(whole(&fixture, MAPS, &fixture.token).await.starts_with("HTTP/1.1 200"));
    let nobody = whole(&fixture, MAPS, "").await;
    assert!(nobody.starts_with("HTTP/1.1 403") && nobody.contains("system:anonymous"), "{nobody}");
    assert!(whole(&fixture, "/version", "").await.starts_with("HTTP/1.1 200"));
    assert!(whole(&fixture, "/apis", "").await.starts_with("HTTP/1.1 403"));
    let wrong = whole(&fixture, "/version", "wrong").await;
    assert!(wrong.starts_with("HTTP/1.1 401"), "{wrong}");
    assert!(!format!("{:?}", fixture.server).contains(&fixture.token));
    fixture.server.stop().await;
}

#[tokio::test]
async fn port_serves_https_with_a_certificate_of_its_own_authority() {
    let fixture = Fixture::start(Time::Still).await;
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(&fixture.authority).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("127.0.0.1").unwrap();
    let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
    let mut stream = connector.connect(name, fixture.connect().await).await.unwrap();
    ask(&mut stream, "/version", &fixture.token, false).await;
    let answer = read(&mut stream, Some("platform")).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    drop(stream);
    fixture.server.stop().await;
}

#[tokio::test]
async fn watch_ends_cleanly_when_the_server_stops() {
    let fixture = Fixture::start(Time::Still).await;
    let mut stream = fixture.connect().await;
    ask(&mut stream, &format!("{MAPS}?watch=true"), &fixture.token, false).await;
    let head = read(&mut stream, Some("\r\n\r\n")).await;
    assert!(head.to_lowercase().contains("transfer-encoding: chunked"), "{head}");
    create(&fixture.simulator, "created");
    let line = read(&mut stream, Some("ADDED")).await;
    assert!(line.contains("created"), "{line}");
    let (rest, ()) = tokio::join!(read(&mut stream, None), fixture.server.stop());
    assert!(rest.ends_with("0\r\n\r\n"), "the last chunk is missing: {rest:?}");
}

#[tokio::test]
async fn watch_ends_when_its_client_disconnects() {
    let fixture = Fixture::start(Time::Still).await;
    let mut stream = fixture.connect().await;
    ask(&mut stream, &format!("{MAPS}?watch=true"), &fixture.token, false).await;
    read(&mut stream, Some("\r\n\r\n")).await;
    assert_eq!(fixture.simulator.watchers(), 1);
    drop(stream);
    let gone = async {
        while fixture.simulator.watchers() > 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(TIMEOUT, gone).await.expect("the watch outlives its client");
    fixture.server.stop().await;
}

#[tokio::test]
async fn interceptor_answers_or_breaks_the_connection_of_its_port_only() {
    let mut fixture = Fixture::start(Time::Still).await;
    let service = SimulatorService::new(fixture.simulator.clone());
    let interceptor: Interceptor = Arc::new(move |request| {
        let service = service.clone();
        Box::pin(async move {
            match request.uri().path() {
                "/broken" => Err("broken".into()),
                "/hanging" => std::future::pending().await,
                _ => {
                    let response = service.oneshot(request.map(Full::new)).await?;
                    Ok(response.map(|body| body.map_err(|never| match never {}).boxed_unsync()))
                }
            }
        })
    });
    let endpoint = fixture.server.serve_also(interceptor).await.unwrap();
    let connect = || TcpStream::connect(endpoint.address());
    let mut stream = connect().await.unwrap();
    ask(&mut stream, MAPS, &fixture.token, true).await;
    assert!(read(&mut stream, None).await.starts_with("HTTP/1.1 200"));
    // The user is the one of the token.
    let mut stream = connect().await.unwrap();
    ask(&mut stream, MAPS, "", true).await;
    assert!(read(&mut stream, None).await.starts_with("HTTP/1.1 403"));
    let mut stream = connect().await.unwrap();
    ask(&mut stream, "/broken", &fixture.token, false).await;
    assert!(is_closed(&mut stream).await);
    assert!(whole(&fixture, "/broken", &fixture.token).await.starts_with("HTTP/1.1 404"));
    // A request without an answer does not delay the end of the server.
    let mut stream = connect().await.unwrap();
    ask(&mut stream, "/hanging", &fixture.token, false).await;
    let (is_closed, ()) = tokio::join!(is_closed(&mut stream), fixture.server.stop());
    assert!(is_closed);
}

#[tokio::test]
async fn time_follows_the_wall_clock_or_is_frozen() {
    let wall = Fixture::start(Time::Wall).await;
    let caught_up = async {
        while Timestamp::now().duration_since(wall.simulator.now()) > SignedDuration::from_secs(1) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(TIMEOUT, caught_up).await.expect("the simulator is behind the wall clock");
    wall.server.stop().await;
    let still = Fixture::start(Time::Still).await;
    let begun = still.simulator.now();
    whole(&still, MAPS, &still.token).await;
    assert_eq!(still.simulator.now(), begun);
    still.server.stop().await;
}

#[tokio::test]
async fn kubeconfig_is_private_to_its_owner_and_removed_on_drop() {
    let server = Server::start(simulator(), &Options::default()).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config");
    let file = server.write_kubeconfig(&path).unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let again = server.write_kubeconfig(&path).unwrap_err();
    assert!(matches!(&again, Error::KubeconfigExists(_)), "{again}");
    drop(file);
    assert!(!path.exists());
    server.stop().await;
}

#[tokio::test]
async fn start_fails_with_advice_when_the_port_is_in_use() {
    let server = Server::start(simulator(), &Options::default()).await.unwrap();
    let port = server.address().port();
    let options = Options { port, time: Time::Still };
    let error = Server::start(simulator(), &options).await.unwrap_err().to_string();
    assert!(error.contains(&port.to_string()) && error.contains("another port"), "{error}");
    server.stop().await;
}
