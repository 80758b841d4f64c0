//! Connections to the admission server over TLS, as an API server keeps them.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, Result, bail};
use bytes::Bytes;
use http::{Request, header};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio_rustls::TlsConnector;

use crate::review::UID;

/// Connections that stay open. The one that waited longest takes the next request, so that all of
/// them are in use.
pub struct Pool {
    address: SocketAddr,
    permits: Semaphore,
    idle: Mutex<VecDeque<SendRequest<Full<Bytes>>>>,
}

impl Pool {
    /// Opens this many connections. Trusts the authorities in `bundle` (PEM) only.
    ///
    /// # Errors
    /// If the server does not accept one.
    pub async fn open(address: SocketAddr, bundle: &str, count: usize) -> Result<Self> {
        let mut roots = RootCertStore::empty();
        for root in CertificateDer::pem_slice_iter(bundle.as_bytes()) {
            roots.add(root?)?;
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let connector = TlsConnector::from(Arc::new(config));
        let mut idle = VecDeque::with_capacity(count);
        for _ in 0..count {
            idle.push_back(connect(&connector, address).await?);
        }
        Ok(Self { address, permits: Semaphore::new(count), idle: Mutex::new(idle) })
    }

    /// Posts an AdmissionReview on the next free connection, and checks that the answer allows it.
    ///
    /// # Errors
    /// If the answer is another one, or the server closes the connection.
    pub async fn post(&self, path: &str, body: Bytes) -> Result<()> {
        let _permit = self.permits.acquire().await?;
        let mut connection = self.idle().pop_front().context("a permit without a connection")?;
        let request = Request::post(path)
            .header(header::HOST, self.address.to_string())
            .header(header::CONTENT_TYPE, "application/json")
            .body(Full::new(body))?;
        connection.ready().await.context("the server has closed a connection")?;
        let response = connection.send_request(request).await?;
        let status = response.status().as_u16();
        let answer = response.into_body().collect().await?.to_bytes();
        let text = std::str::from_utf8(&answer)?;
        if status != 200 || !text.contains(UID) || !text.contains(r#""allowed":true"#) {
            bail!("{path} answers {status}: {text}");
        }
        self.idle().push_back(connection);
        Ok(())
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, VecDeque<SendRequest<Full<Bytes>>>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn connect(
    connector: &TlsConnector,
    address: SocketAddr,
) -> Result<SendRequest<Full<Bytes>>> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let stream = connector.connect(ServerName::from(address.ip()), stream).await?;
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    Ok(sender)
}
