//! A port: accepts connections, within a limit.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::task::{JoinHandle, JoinSet};
use tokio_rustls::TlsAcceptor;

use crate::Error;
use crate::answer::Answerer;
use crate::connection;
use crate::stop::Stop;

/// The maximum number of connections of a port whose requests are answered.
pub(crate) const CONNECTIONS_MAX: usize = 1000;
/// The maximum number of further connections, which get 429. The server closes all others.
const REFUSED_MAX: usize = 24;
/// The pause after an accept that failed.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// The maximum time of a connection that gets 429.
const REFUSED_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum time until connections end when the server stops.
const STOP_TIMEOUT: Duration = Duration::from_secs(2);

/// A port on which a server listens.
pub(crate) struct Listener {
    address: SocketAddr,
    accepting: Option<JoinHandle<()>>,
}

impl Listener {
    /// Listens on a port of 127.0.0.1; 0 chooses a free one. It serves as many connections at once
    /// as `limit` says.
    ///
    /// # Errors
    /// If the port is in use.
    pub(crate) async fn start(
        port: u16,
        acceptor: TlsAcceptor,
        answerer: Answerer,
        stop: Stop,
        limit: usize,
    ) -> Result<Self, Error> {
        let requested = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let listen = |source| Error::Listen { address: requested, source };
        let listener = TcpListener::bind(requested).await.map_err(listen)?;
        let address = listener.local_addr().map_err(listen)?;
        let accepting = tokio::spawn(accept(listener, acceptor, Arc::new(answerer), stop, limit));
        Ok(Self { address, accepting: Some(accepting) })
    }

    /// The address of the port.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Waits until all connections have ended after a stop.
    pub(crate) async fn ended(&mut self) {
        if let Some(accepting) = self.accepting.take() {
            // A task that panicked has ended too.
            let _ = accepting.await;
        }
    }
}

async fn accept(
    listener: TcpListener,
    acceptor: TlsAcceptor,
    answerer: Arc<Answerer>,
    stop: Stop,
    limit: usize,
) {
    let (mut connections, mut refused) = (JoinSet::new(), JoinSet::new());
    loop {
        tokio::select! {
            biased;
            () = stop.clone().requested() => break,
            _ = connections.join_next(), if !connections.is_empty() => {}
            _ = refused.join_next(), if !refused.is_empty() => {}
            accepted = listener.accept() => {
                // A client that disconnected before the accept, or too many open files, which would
                // repeat at once.
                let Ok((stream, _)) = accepted else {
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                };
                let serve = |answerer| {
                    connection::serve(stream, acceptor.clone(), answerer, stop.clone())
                };
                if connections.len() < limit {
                    connections.spawn(serve(Some(answerer.clone())));
                } else if refused.len() < REFUSED_MAX {
                    let one = serve(None);
                    refused.spawn(async { drop(tokio::time::timeout(REFUSED_TIMEOUT, one).await) });
                }
            }
        }
    }
    drop(listener);
    refused.shutdown().await;
    let all = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(STOP_TIMEOUT, all).await.is_err() {
        connections.shutdown().await;
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may fail by it")]
mod tests {
    use innkeeper_simulator::Simulator;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpStream;

    use super::*;
    use crate::credentials::Credentials;

    /// What a server answers on a connection: a document, or nothing if it closes the connection.
    async fn answer(stream: &mut TcpStream) -> String {
        // The server may have closed the connection already.
        let _ = stream.write_all(b"GET /version HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
        let mut text = String::new();
        while !text.trim_end().ends_with('}') {
            let mut buffer = [0; 1024];
            let reading = tokio::time::timeout(Duration::from_mins(1), stream.read(&mut buffer));
            // A reset is a close, too.
            match reading.await.unwrap() {
                Ok(0) | Err(_) => break,
                Ok(length) => text.push_str(&String::from_utf8_lossy(&buffer[..length])),
            }
        }
        text
    }

    #[tokio::test]
    async fn connection_beyond_the_limit_gets_429_and_further_ones_are_closed() {
        let credentials = Credentials::make().unwrap();
        let (sender, stop) = Stop::new();
        let answerer = Answerer {
            simulator: Simulator::new(1, jiff::Timestamp::UNIX_EPOCH),
            token: credentials.token.clone(),
            stop: stop.clone(),
            interceptor: None,
        };
        let mut listener =
            Listener::start(0, credentials.acceptor, answerer, stop, 1).await.unwrap();
        let connect = || TcpStream::connect(listener.address());
        let mut first = connect().await.unwrap();
        assert!(answer(&mut first).await.starts_with("HTTP/1.1 200"));
        let mut second = connect().await.unwrap();
        assert!(answer(&mut second).await.starts_with("HTTP/1.1 429"));
        // Given as many waiting connections as get 429.
        let mut waiting = Vec::new();
        for _ in 0..=REFUSED_MAX {
            waiting.push(connect().await.unwrap());
        }
        assert_eq!(answer(&mut connect().await.unwrap()).await, "");
        assert!(answer(&mut first).await.starts_with("HTTP/1.1 200"), "the first one is served");
        sender.send_replace(true);
        listener.ended().await;
    }
}
