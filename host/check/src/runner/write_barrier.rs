//! The entrance of the API server: a write waits here while an incident happens in its middle.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use innkeeper_faults::RequestInfo;
use innkeeper_simulator::{Body, Simulator};
use tokio::sync::watch;
use tower::Service;

/// Passes requests to the simulated API server, and holds writes back until their incidents are
/// completed. Clones are the same one.
#[derive(Clone)]
pub(super) struct WriteBarrier {
    simulator: Simulator,
    state: Arc<Mutex<State>>,
    /// How many of the reached incidents are completed.
    completed: watch::Sender<usize>,
}

#[derive(Default)]
struct State {
    /// The writes that have arrived since [`WriteBarrier::plan`].
    writes: u32,
    /// The writes at which incidents happen, in order.
    planned: VecDeque<u32>,
    /// How many incidents have been reached.
    reached: usize,
    /// All requests that have arrived.
    requests: u64,
    /// The versions that Leases have taken: they are renewed for ever.
    lease_versions: u64,
}

impl WriteBarrier {
    pub(super) fn new(simulator: Simulator) -> Self {
        Self { simulator, state: Arc::default(), completed: watch::Sender::new(0) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the writes at which incidents happen, in order. Writes are counted from here on.
    pub(super) fn plan(&self, writes: impl IntoIterator<Item = u32>) {
        let mut state = self.lock();
        state.writes = 0;
        state.planned = writes.into_iter().collect();
    }

    /// How many incidents have been reached.
    pub(super) fn reached(&self) -> usize {
        self.lock().reached
    }

    /// How many requests have arrived.
    pub(super) fn requests(&self) -> u64 {
        self.lock().requests
    }

    /// Releases the writes that wait for the first so many incidents.
    pub(super) fn release(&self, completed: usize) {
        self.completed.send_replace(completed);
    }

    /// The version of the last write that is not one of a Lease.
    pub(super) fn version(&self) -> u64 {
        self.simulator.version().saturating_sub(self.lock().lease_versions)
    }

    /// Counts a write. Returns the incident for whose end it waits, counted from 1.
    fn count_write(&self) -> Option<usize> {
        let mut state = self.lock();
        state.writes += 1;
        let before = state.reached;
        while state.planned.front().is_some_and(|write| *write <= state.writes) {
            state.planned.pop_front();
            state.reached += 1;
        }
        (state.reached > before).then_some(state.reached)
    }
}

impl Service<Request<Full<Bytes>>> for WriteBarrier {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Full<Bytes>>) -> Self::Future {
        let barrier = self.clone();
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let body = body.collect().await?.to_bytes();
            let request = Request::from_parts(parts, body);
            barrier.lock().requests += 1;
            let info = RequestInfo::of(&request, request.body());
            if info.is_write()
                && let Some(incident) = barrier.count_write()
            {
                // The sender is in the barrier, so the channel is open.
                let mut completed = barrier.completed.subscribe();
                let _ = completed.wait_for(|completed| *completed >= incident).await;
            }
            let before = barrier.simulator.version();
            let response = barrier.simulator.request(request);
            if info.resource == "leases" {
                let versions = barrier.simulator.version().saturating_sub(before);
                barrier.lock().lease_versions += versions;
            }
            Ok(response)
        })
    }
}
