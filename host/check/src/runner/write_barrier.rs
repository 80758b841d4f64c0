//! The way into the API server: a write waits here while an incident happens in its middle.

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

/// The way into the simulated API server. Clones are the same one.
#[derive(Clone)]
pub(super) struct Gate {
    simulator: Simulator,
    state: Arc<Mutex<State>>,
    /// How many of the reached incidents are over.
    over: watch::Sender<usize>,
}

#[derive(Default)]
struct State {
    /// The writes that have arrived since [`Gate::plan`].
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

impl Gate {
    pub(super) fn of(simulator: Simulator) -> Self {
        Self { simulator, state: Arc::default(), over: watch::Sender::new(0) }
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

    /// Lets the writes go on that wait for these incidents.
    pub(super) fn let_go(&self, over: usize) {
        self.over.send_replace(over);
    }

    /// The version of the last write that is not one of a Lease.
    pub(super) fn version(&self) -> u64 {
        self.simulator.version().saturating_sub(self.lock().lease_versions)
    }

    /// Counts a write. Gives the incident for whose end it waits, counted from 1.
    fn arrive(&self) -> Option<usize> {
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

impl Service<Request<Full<Bytes>>> for Gate {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Full<Bytes>>) -> Self::Future {
        let gate = self.clone();
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let body = body.collect().await?.to_bytes();
            let request = Request::from_parts(parts, body);
            gate.lock().requests += 1;
            let info = RequestInfo::of(&request, request.body());
            if info.is_write()
                && let Some(incident) = gate.arrive()
            {
                // The sender is in the gate, so the channel is open.
                let _ = gate.over.subscribe().wait_for(|over| *over >= incident).await;
            }
            let before = gate.simulator.version();
            let response = gate.simulator.request(request);
            if info.resource == "leases" {
                gate.lock().lease_versions += gate.simulator.version().saturating_sub(before);
            }
            Ok(response)
        })
    }
}
