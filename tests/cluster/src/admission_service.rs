//! The Service by which the API server reaches the hosts that review requests.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Result;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{interval, timeout};

/// How often a replica is asked whether it is ready.
const PROBE_PERIOD: Duration = Duration::from_millis(500);

/// How long an answer about readiness, and a connection to a replica, may take.
const PROBE_TIMEOUT: Duration = Duration::from_secs(3);

/// The most bytes of an answer about readiness that count.
const STATUS_BYTES: usize = 64;

/// A port of this machine in front of the admission ports of replicas, as a Service is: each
/// connection goes to the next replica that is ready, and stays there. It ends when dropped.
pub struct AdmissionService {
    address: SocketAddr,
    shared: Arc<Shared>,
    _tasks: JoinSet<()>,
}

#[derive(Default)]
struct Shared {
    replicas: Mutex<Replicas>,
}

#[derive(Default)]
struct Replicas {
    by_name: BTreeMap<String, Replica>,
    connections: usize,
}

#[derive(Clone, Copy)]
struct Replica {
    admission: SocketAddr,
    health: SocketAddr,
    is_ready: bool,
}

impl AdmissionService {
    /// A Service without replicas.
    ///
    /// # Errors
    /// If no port is free.
    pub async fn start() -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let shared = Arc::<Shared>::default();
        let mut tasks = JoinSet::new();
        tasks.spawn(serve(listener, Arc::clone(&shared)));
        tasks.spawn(probe(Arc::clone(&shared)));
        Ok(Self { address, shared, _tasks: tasks })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Adds a replica, which gets connections once its address for health says that it is ready.
    pub fn join(&self, name: &str, admission: SocketAddr, health: SocketAddr) {
        let replica = Replica { admission, health, is_ready: false };
        self.shared.lock().by_name.insert(name.to_owned(), replica);
    }

    /// Sends no further connection to a replica, as when its Pod is being deleted. The open ones
    /// stay.
    pub fn leave(&self, name: &str) {
        self.shared.lock().by_name.remove(name);
    }

    /// The replicas that are ready.
    pub fn ready(&self) -> Vec<String> {
        let replicas = self.shared.lock();
        let ready = replicas.by_name.iter().filter(|(_, replica)| replica.is_ready);
        ready.map(|(name, _)| name.clone()).collect()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Replicas> {
        self.replicas.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The replica of the next connection; `None` if none is ready.
    fn next(&self) -> Option<SocketAddr> {
        let mut replicas = self.lock();
        let ready: Vec<_> = replicas.by_name.values().filter(|replica| replica.is_ready).collect();
        let chosen = ready.get(replicas.connections.checked_rem(ready.len())?)?.admission;
        replicas.connections += 1;
        Some(chosen)
    }
}

async fn serve(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let Ok((mut client, _)) = accepted else { continue };
                // A client without a replica is cut off, and nothing is tried twice.
                let Some(address) = shared.next() else { continue };
                connections.spawn(async move {
                    let connected = timeout(PROBE_TIMEOUT, TcpStream::connect(address)).await;
                    if let Ok(Ok(mut replica)) = connected {
                        let _ = replica.set_nodelay(true).and_then(|()| client.set_nodelay(true));
                        let _ = copy_bidirectional(&mut client, &mut replica).await;
                    }
                });
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn probe(shared: Arc<Shared>) {
    let mut period = interval(PROBE_PERIOD);
    loop {
        period.tick().await;
        let replicas = shared.lock().by_name.clone();
        for (name, replica) in replicas {
            let is_ready =
                matches!(timeout(PROBE_TIMEOUT, asked(replica.health)).await, Ok(Ok(true)));
            if let Some(replica) = shared.lock().by_name.get_mut(&name) {
                replica.is_ready = is_ready;
            }
        }
    }
}

/// Whether /readyz at an address answers 200.
async fn asked(address: SocketAddr) -> std::io::Result<bool> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(b"GET /readyz HTTP/1.1\r\nHost: replica\r\nConnection: close\r\n\r\n").await?;
    let mut answer = Vec::new();
    stream.take(STATUS_BYTES as u64).read_to_end(&mut answer).await?;
    Ok(answer.split(|byte| *byte == b' ').nth(1) == Some(b"200"))
}
