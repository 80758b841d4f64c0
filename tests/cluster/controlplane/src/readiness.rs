//! Asking a server over TLS whether it is ready, without a Kubernetes client.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

/// Bound on connecting, and on each read and write.
const TIMEOUT: Duration = Duration::from_secs(2);

/// GET `path` from the server at `address`, whose certificate is signed by `ca_pem`.
/// `Ok` if it answers 200; else its answer, as text for people.
pub(crate) fn get(address: SocketAddr, ca_pem: &str, path: &str) -> Result<(), String> {
    try_get(address, ca_pem, path).map_err(|error| error.to_string())
}

/// Asks for `path` over plain HTTP.
///
/// # Errors
/// Why the answer is not 200: no connection, or another status.
pub fn answers(address: SocketAddr, path: &str) -> Result<(), String> {
    connect(address)
        .and_then(|mut socket| ask(&mut socket, address, path))
        .map_err(|e| e.to_string())
}

type Failure = Box<dyn std::error::Error>;

fn try_get(address: SocketAddr, ca_pem: &str, path: &str) -> Result<(), Failure> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(ca_pem.as_bytes())?)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::IpAddress(address.ip().into());
    let connection = ClientConnection::new(Arc::new(config), name)?;
    ask(&mut StreamOwned::new(connection, connect(address)?), address, path)
}

fn connect(address: SocketAddr) -> Result<TcpStream, Failure> {
    let socket = TcpStream::connect_timeout(&address, TIMEOUT)?;
    socket.set_read_timeout(Some(TIMEOUT))?;
    socket.set_write_timeout(Some(TIMEOUT))?;
    Ok(socket)
}

fn ask(stream: &mut (impl Read + Write), host: SocketAddr, path: &str) -> Result<(), Failure> {
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")?;
    let mut answer = Vec::new();
    // A server that closes without a TLS farewell gives an error after the answer.
    let read = stream.read_to_end(&mut answer);
    let text = String::from_utf8_lossy(&answer);
    match text.lines().next() {
        Some(line) if line.starts_with("HTTP/1.1 200") => Ok(()),
        Some(line) => Err(line.to_owned().into()),
        None => Err(read.err().map_or_else(|| "no answer".into(), Into::into)),
    }
}
