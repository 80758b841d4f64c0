//! The network between one process of the host and the API server, which can be partitioned.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame};
use http_body_util::{BodyExt as _, Full};
use innkeeper_cluster::Fence;
use innkeeper_faults::{BoxError, Connection, RequestInfo};
use tower::Service;

use super::write_barrier::WriteBarrier;

/// Carries the requests of one process and their answers. Clones are the same one, except for the
/// fence.
#[derive(Clone)]
pub(super) struct NetworkLink {
    connection: Connection<WriteBarrier>,
    state: Arc<Mutex<State>>,
    /// While it is closed nothing is sent, as the host's own connection checks it before each write
    /// to the socket: the process may have been paused since its first check.
    fence: Option<Fence>,
}

#[derive(Default)]
struct State {
    is_partitioned: bool,
    /// The tasks that wait for the end of the partition.
    waiting: Vec<Waker>,
    /// The writes since [`NetworkLink::record_writes`].
    writes: Option<Vec<String>>,
}

impl NetworkLink {
    pub(super) fn new(connection: Connection<WriteBarrier>) -> Self {
        Self { connection, state: Arc::default(), fence: None }
    }

    /// The same link behind a fence.
    pub(super) fn behind(&self, fence: Fence) -> Self {
        Self { fence: Some(fence), ..self.clone() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins or ends a partition. At its end requests, answers and events that were on their way
    /// arrive, unless the host has given them up.
    pub(super) fn set_partitioned(&self, is_partitioned: bool) {
        let mut state = self.lock();
        state.is_partitioned = is_partitioned;
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        waiting.into_iter().for_each(Waker::wake);
    }

    /// Records the writes of the process from here on.
    pub(super) fn record_writes(&self) {
        self.lock().writes = Some(Vec::new());
    }

    /// Takes the recorded writes.
    pub(super) fn take_recorded_writes(&self) -> Vec<String> {
        self.lock().writes.take().unwrap_or_default()
    }

    fn poll_connected(&self, context: &Context<'_>) -> Poll<()> {
        let mut state = self.lock();
        if !state.is_partitioned {
            return Poll::Ready(());
        }
        if !state.waiting.iter().any(|waker| waker.will_wake(context.waker())) {
            state.waiting.push(context.waker().clone());
        }
        Poll::Pending
    }

    /// Waits until there is no partition.
    async fn wait_connected(&self) {
        poll_fn(|context| self.poll_connected(context)).await;
    }

    async fn send(self, request: Request<Bytes>) -> Result<Response<LinkBody>, BoxError> {
        self.wait_connected().await;
        if self.fence.as_ref().is_some_and(Fence::is_closed) {
            return Err("the Lease of this host has expired".into());
        }
        let info = RequestInfo::of(&request, request.body());
        if let Some(writes) = &mut self.lock().writes
            && info.is_write()
        {
            writes.push(info.to_string());
        }
        let mut connection = self.connection.clone();
        let response = connection.call(request.map(Full::new)).await?;
        self.wait_connected().await;
        Ok(response.map(|body| LinkBody { body: Box::pin(body), link: self }))
    }
}

impl<R> Service<Request<R>> for NetworkLink
where
    R: Body + Send + 'static,
    R::Data: Send,
    R::Error: Into<BoxError>,
{
    type Response = Response<LinkBody>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<R>) -> Self::Future {
        let link = self.clone();
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let body = body.collect().await.map_err(Into::into)?.to_bytes();
            link.send(Request::from_parts(parts, body)).await
        })
    }
}

/// The body of an answer, which stops during a partition.
pub(super) struct LinkBody {
    body: Pin<Box<dyn Body<Data = Bytes, Error = BoxError> + Send>>,
    link: NetworkLink,
}

impl Body for LinkBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        ready!(self.link.poll_connected(context));
        self.body.as_mut().poll_frame(context)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use innkeeper_cluster::Env;
    use innkeeper_faults::FaultInjector;
    use innkeeper_simulator::Simulator;
    use jiff::Timestamp;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn request_behind_a_closed_fence_is_not_sent_even_if_it_began_before() {
        let simulator = Simulator::new(1, Timestamp::UNIX_EPOCH);
        let injector = FaultInjector::new(WriteBarrier::new(simulator));
        let link = NetworkLink::new(Connection::through(&injector));
        let env = Env::scripted(1, Timestamp::UNIX_EPOCH);
        let fence = Fence::closed(&env);
        let path = "/api/v1/namespaces/default/configmaps";
        let sent = async || {
            let body =
                r#"{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "a-"}}"#;
            let request = Request::post(path).header("content-type", "application/json");
            let request = request.body(Full::new(Bytes::from(body))).unwrap();
            let mut link = link.behind(fence.clone());
            let sending = link.call(request);
            env.sleep(Duration::from_secs(1)).await;
            link.record_writes();
            let is_answered = sending.await.is_ok();
            (is_answered, link.take_recorded_writes().len())
        };
        fence.extend(env.uptime() + Duration::from_secs(2));
        assert_eq!(sent().await, (true, 1));
        fence.extend(env.uptime() + Duration::from_millis(500));
        assert_eq!(sent().await, (false, 0), "the fence closes before the connection writes");
    }
}
