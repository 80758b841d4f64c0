//! All connections: accepts them within the limits, and drains them when the server stops.

use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::{AbortHandle, Id, JoinError, JoinSet};
use tokio_rustls::TlsAcceptor;

use super::activity::{Activity, Phase};
use super::connection;
use super::drain::Drain;
use super::limits::ServerLimits;
use super::listener::Listener;
use super::shared::Shared;
use crate::reviewer::Reviewer;

/// The wait after an `accept` that failed, for example for lack of file descriptors.
const ACCEPT_RETRY: Duration = Duration::from_millis(200);

struct Connection {
    address: IpAddr,
    activity: Arc<Activity>,
    handle: AbortHandle,
}

/// The open connections, the oldest first.
struct Open {
    limits: ServerLimits,
    by_age: VecDeque<Connection>,
}

impl Open {
    /// Makes room for a connection of this address: if there is none, closes one that has no
    /// running request.
    ///
    /// Closes first a connection that had no answer yet, since those of the API server had one,
    /// then one of the address with the most connections, then the oldest.
    fn make_room(&mut self, address: IpAddr) -> Room {
        let mut counts: BTreeMap<IpAddr, usize> = BTreeMap::new();
        for connection in &self.by_age {
            *counts.entry(connection.address).or_default() += 1;
        }
        let of_address = counts.get(&address).copied().unwrap_or_default();
        let is_address_full = of_address >= self.limits.connections_per_address;
        if !is_address_full && self.by_age.len() < self.limits.connections {
            return Room::Free;
        }
        let candidates = self.by_age.iter().enumerate().filter(|(_, connection)| {
            (!is_address_full || connection.address == address)
                && connection.activity.phase() != Phase::Request
        });
        let closed = candidates.min_by_key(|(index, connection)| {
            let of_address = counts.get(&connection.address).copied();
            (connection.activity.has_answered(), Reverse(of_address), *index)
        });
        let closed = closed.map(|(index, _)| index).and_then(|index| self.by_age.remove(index));
        let Some(closed) = closed else { return Room::None };
        tracing::debug!(address = %closed.address, "connection closed: there were too many");
        closed.handle.abort();
        Room::Made
    }

    fn remove(&mut self, ended: Result<(Id, ()), JoinError>) {
        let id = match ended {
            Ok((id, ())) => id,
            Err(error) => {
                if error.is_panic() {
                    tracing::error!(%error, "connection aborted");
                }
                error.id()
            }
        };
        self.by_age.retain(|connection| connection.handle.id() != id);
    }
}

/// Whether there is room for a connection.
#[derive(PartialEq, Eq)]
enum Room {
    Free,
    /// Another connection was closed.
    Made,
    /// All connections have running requests.
    None,
}

/// Answers until `stop` ends, and drains.
pub(super) async fn serve<R: Reviewer>(
    tls: TlsAcceptor,
    shared: Arc<Shared<R>>,
    mut listener: impl Listener,
    stop: impl Future<Output = ()>,
) {
    let drain = watch::Sender::new(Drain::No);
    let mut drained = pin!(async {
        stop.await;
        drain.send_replace(Drain::Asking);
        tokio::time::sleep(shared.limits.drain_time).await;
    });
    let mut tasks = JoinSet::new();
    let mut open = Open { limits: shared.limits, by_age: VecDeque::new() };
    loop {
        tokio::select! {
            biased;
            () = &mut drained => break,
            Some(ended) = tasks.join_next_with_id() => {
                open.remove(ended);
            }
            accepted = listener.accept() => match accepted {
                Ok((stream, address)) => {
                    let room = open.make_room(address);
                    if room != Room::Free {
                        shared.count_refusal("connections");
                    }
                    if room != Room::None {
                        let activity = Arc::new(Activity::new(shared.limits));
                        let (tls, shared) = (tls.clone(), Arc::clone(&shared));
                        let handle = tasks.spawn(connection::serve(
                            tls, shared, stream, address, Arc::clone(&activity), drain.subscribe(),
                        ));
                        open.by_age.push_back(Connection { address, activity, handle });
                    }
                }
                Err(error) => {
                    tracing::debug!(%error, "connection not accepted");
                    tokio::time::sleep(ACCEPT_RETRY).await;
                }
            },
        }
        count(&shared, open.by_age.len());
    }
    drop(listener);
    drain.send_replace(Drain::Closing);
    // Each phase of a connection has a time limit.
    while let Some(ended) = tasks.join_next_with_id().await {
        open.remove(ended);
        count(&shared, open.by_age.len());
    }
}

fn count<R>(shared: &Shared<R>, connections: usize) {
    shared.statistics.send_modify(|statistics| statistics.connections = connections);
}
