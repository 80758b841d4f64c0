//! Bounded connections of the HTTP server: in number, in size and in time.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::time::Duration;

use axum::{Extension, Router};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::task::{AbortHandle, Id, JoinSet};

/// The wait after an `accept` that failed, for example for lack of file descriptors.
const ACCEPT_RETRY: Duration = Duration::from_millis(200);

/// The limits of the HTTP server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Maximum number of connections. A further one closes the oldest, so that the server always
    /// answers a probe.
    pub(crate) connections: usize,
    /// Maximum number of connections of one address. A further one closes the oldest of this
    /// address: other clients may share the address of the kubelet.
    pub(crate) connections_per_address: usize,
    /// Maximum time in which a client sends the head of its request.
    pub(crate) head_time: Duration,
    /// Maximum time of a connection, from its first byte to the end of the response.
    pub(crate) connection_time: Duration,
    /// Maximum size of the head of a request, in bytes.
    pub(crate) head_bytes: usize,
    /// Maximum number of headers of a request.
    pub(crate) headers: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 64,
            connections_per_address: 16,
            head_time: Duration::from_secs(5),
            connection_time: Duration::from_secs(20),
            head_bytes: 16 << 10,
            headers: 64,
        }
    }
}

/// The address of the client: an extension of each request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Peer(pub(crate) IpAddr);

/// The open connections, the oldest first.
struct Open {
    limits: Limits,
    by_age: VecDeque<(Id, IpAddr, AbortHandle)>,
}

impl Open {
    /// Adds a connection. Closes the oldest one of its address if that has too many; otherwise, if
    /// there are too many in total, the oldest one of the address with most connections.
    fn add(&mut self, address: IpAddr, handle: AbortHandle) {
        if self.count(address) >= self.limits.connections_per_address {
            self.close_oldest_of(address);
        } else if self.by_age.len() >= self.limits.connections
            && let Some(busiest) = self.busiest_address()
        {
            self.close_oldest_of(busiest);
        }
        self.by_age.push_back((handle.id(), address, handle));
    }

    fn count(&self, address: IpAddr) -> usize {
        self.by_age.iter().filter(|(_, other, _)| *other == address).count()
    }

    /// The address with most connections; of several, the one with the oldest connection.
    fn busiest_address(&self) -> Option<IpAddr> {
        let by_age = self.by_age.iter().rev().map(|(_, address, _)| *address);
        by_age.max_by_key(|address| self.count(*address))
    }

    fn close_oldest_of(&mut self, address: IpAddr) {
        let oldest = self.by_age.iter().position(|(_, other, _)| *other == address);
        if let Some((_, _, handle)) = oldest.and_then(|index| self.by_age.remove(index)) {
            tracing::debug!(%address, "connection closed: it was the oldest of too many");
            handle.abort();
        }
    }

    fn remove(&mut self, ended: Id) {
        self.by_age.retain(|(id, _, _)| *id != ended);
    }
}

/// Answers by `router` until `stop` ends, then finishes the running requests.
pub(crate) async fn accept(
    listener: TcpListener,
    router: Router,
    limits: Limits,
    stop: impl Future<Output = ()>,
) {
    let mut stop = std::pin::pin!(stop);
    let mut tasks = JoinSet::new();
    let mut open = Open { limits, by_age: VecDeque::new() };
    loop {
        let accepted = tokio::select! {
            biased;
            () = &mut stop => break,
            Some(ended) = tasks.join_next_with_id() => {
                open.remove(ended.map_or_else(|error| error.id(), |(id, ())| id));
                continue;
            }
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, peer)) => {
                // The response is one write: the kernel must not wait for more data.
                let _ = stream.set_nodelay(true);
                let address = peer.ip().to_canonical();
                let router = router.clone().layer(Extension(Peer(address)));
                let handle = tasks.spawn(serve(stream, router, limits));
                open.add(address, handle);
            }
            Err(error) => {
                tracing::debug!(%error, "connection not accepted");
                tokio::time::sleep(ACCEPT_RETRY).await;
            }
        }
    }
    drop(listener);
    // Each connection has a time limit.
    while tasks.join_next().await.is_some() {}
}

/// Answers one request. A connection has only one, so that no connection is idle.
async fn serve<S>(stream: S, router: Router, limits: Limits)
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head_time)
        .max_buf_size(limits.head_bytes)
        .max_headers(limits.headers)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    match tokio::time::timeout(limits.connection_time, connection).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(%error, "connection aborted"),
        Err(_) => {
            tracing::debug!(limit = ?limits.connection_time, "connection closed: it took too long");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use axum::body::{Body, Bytes};
    use axum::routing::get;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
    use tokio::net::TcpStream;
    use tokio::sync::oneshot;
    use tokio::time::Instant;

    use super::*;

    const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n";

    fn router() -> Router {
        // More than the pipe to the client holds.
        let large = Bytes::from(vec![b'x'; 1 << 20]);
        Router::new()
            .route("/", get(async || "ok\n"))
            .route("/hangs", get(async || std::future::pending::<()>().await))
            .route("/large", get(async move || Body::from(large)))
    }

    /// A client of one connection on virtual time.
    fn connect() -> (DuplexStream, tokio::task::JoinHandle<()>) {
        let (client, server) = tokio::io::duplex(4096);
        (client, tokio::spawn(serve(server, router(), Limits::default())))
    }

    /// Waits for the end of a connection, and gives how long it lasted in seconds and the answer.
    async fn end(mut client: DuplexStream, started: Instant) -> (f64, String) {
        let mut answer = Vec::new();
        let _ = client.read_to_end(&mut answer).await;
        (started.elapsed().as_secs_f64(), String::from_utf8(answer).unwrap())
    }

    #[tokio::test(start_paused = true)]
    async fn connection_is_closed_after_one_response() {
        let started = Instant::now();
        let (mut client, _task) = connect();
        client.write_all(GET).await.unwrap();
        let (seconds, answer) = end(client, started).await;
        assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("ok\n"), "{answer}");
        assert!(seconds < 0.1, "{seconds}");
    }

    #[tokio::test(start_paused = true)]
    async fn connection_is_closed_after_the_head_time_when_the_client_sends_nothing() {
        let started = Instant::now();
        let (client, _task) = connect();
        let (seconds, answer) = end(client, started).await;
        assert!((4.9..5.2).contains(&seconds), "{seconds}");
        assert!(!answer.contains("200"), "{answer}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_sends_its_head_byte_by_byte_is_closed_after_the_head_time() {
        let started = Instant::now();
        let (mut client, _task) = connect();
        for byte in GET {
            if client.write_all(&[*byte]).await.is_err() {
                break;
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        let (seconds, answer) = end(client, started).await;
        assert!((4.9..7.0).contains(&seconds), "{seconds}");
        assert!(!answer.contains("200"), "{answer}");
    }

    #[tokio::test(start_paused = true)]
    async fn connection_is_closed_after_the_connection_time_without_a_body() {
        let started = Instant::now();
        let (mut client, _task) = connect();
        let head = b"GET /hangs HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000\r\n\r\n";
        client.write_all(head).await.unwrap();
        let (seconds, _) = end(client, started).await;
        assert!((19.9..20.2).contains(&seconds), "{seconds}");
    }

    #[tokio::test(start_paused = true)]
    async fn connection_is_closed_after_the_connection_time_when_the_client_does_not_read() {
        let started = Instant::now();
        let (mut client, task) = connect();
        client.write_all(b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
        task.await.unwrap();
        assert!((19.9..20.2).contains(&started.elapsed().as_secs_f64()));
    }

    #[tokio::test(start_paused = true)]
    async fn request_is_refused_when_its_head_is_too_long_or_has_too_many_headers() {
        let long = format!("X: {}\r\n", "a".repeat(17 << 10));
        for headers in [long, "X: y\r\n".repeat(65)] {
            let started = Instant::now();
            let (client, _task) = connect();
            let (read, mut write) = tokio::io::split(client);
            let head = format!("GET / HTTP/1.1\r\nHost: x\r\n{headers}\r\n");
            // The server closes before it has read all.
            let sent = tokio::spawn(async move { write.write_all(head.as_bytes()).await.is_ok() });
            let mut answer = String::new();
            let _ = { read }.read_to_string(&mut answer).await;
            assert!(answer.starts_with("HTTP/1.1 431"), "{answer}");
            assert!(started.elapsed() < Duration::from_secs(5));
            let _ = sent.await;
        }
    }

    /// A server on a port that answers until the sender is dropped.
    async fn server(limits: Limits) -> (SocketAddr, oneshot::Sender<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let stopped = async move {
            let _ = stopped.await;
        };
        tokio::spawn(accept(listener, router(), limits, stopped));
        (address, stop)
    }

    /// Reads to the end: the answer, or nothing if the server closed the connection.
    async fn answer(stream: &mut TcpStream) -> String {
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        String::from_utf8(answer).unwrap()
    }

    #[tokio::test]
    async fn a_further_connection_closes_the_oldest_and_is_answered() {
        let limits = Limits { connections: 3, connections_per_address: 100, ..Limits::default() };
        let (address, _stop) = server(limits).await;
        let mut idle = Vec::new();
        for _ in 0..3 {
            idle.push(TcpStream::connect(address).await.unwrap());
        }
        let mut probe = TcpStream::connect(address).await.unwrap();
        probe.write_all(GET).await.unwrap();
        assert!(answer(&mut probe).await.contains("200 OK"));
        // The first is closed, the others are still answered.
        assert_eq!(answer(&mut idle[0]).await, "");
        for stream in &mut idle[1..] {
            stream.write_all(GET).await.unwrap();
            assert!(answer(stream).await.contains("200 OK"));
        }
    }

    /// A client of another address of this machine.
    async fn connect_from(source: &str, address: SocketAddr) -> TcpStream {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind(format!("{source}:0").parse().unwrap()).unwrap();
        socket.connect(address).await.unwrap()
    }

    #[tokio::test]
    async fn a_further_connection_of_one_address_closes_its_oldest_and_is_answered() {
        let limits = Limits { connections_per_address: 2, ..Limits::default() };
        let (address, _stop) = server(limits).await;
        let mut other = connect_from("127.0.0.2", address).await;
        let mut idle = Vec::new();
        for _ in 0..2 {
            idle.push(TcpStream::connect(address).await.unwrap());
        }
        // The probe of a kubelet that has the address of those who hold connections open.
        let mut probe = TcpStream::connect(address).await.unwrap();
        probe.write_all(GET).await.unwrap();
        assert!(answer(&mut probe).await.contains("200 OK"));
        assert_eq!(answer(&mut idle[0]).await, "");
        for stream in [&mut idle[1], &mut other] {
            stream.write_all(GET).await.unwrap();
            assert!(answer(stream).await.contains("200 OK"));
        }
    }

    #[tokio::test]
    async fn too_many_connections_close_the_oldest_of_the_address_that_has_most() {
        let limits = Limits { connections: 4, connections_per_address: 3, ..Limits::default() };
        let (address, _stop) = server(limits).await;
        // The oldest of all is the probe of the kubelet, which has no other connection.
        let mut probe = connect_from("127.0.0.2", address).await;
        let mut idle = Vec::new();
        for number in 0..20 {
            idle.push(connect_from(&format!("127.0.1.{}", number % 2 + 1), address).await);
        }
        // The server has accepted all of them when it answers another one.
        let mut last = connect_from("127.0.0.3", address).await;
        last.write_all(GET).await.unwrap();
        assert!(answer(&mut last).await.contains("200 OK"));
        probe.write_all(GET).await.unwrap();
        assert!(answer(&mut probe).await.contains("200 OK"));
    }

    #[tokio::test]
    async fn running_request_is_answered_after_the_stop() {
        let (address, stop) = server(Limits::default()).await;
        let mut stream = TcpStream::connect(address).await.unwrap();
        // The server has accepted it when it answers another one.
        let mut other = TcpStream::connect(address).await.unwrap();
        other.write_all(GET).await.unwrap();
        answer(&mut other).await;
        drop(stop);
        stream.write_all(GET).await.unwrap();
        assert!(answer(&mut stream).await.contains("200 OK"));
    }
}
