//! The line between one process of the host and the API server, which can be cut.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame};
use http_body_util::{BodyExt as _, Full};
use innkeeper_faults::{BoxError, Connection, RequestInfo};
use tower::Service;

use super::gate::Gate;

/// The line of one process. Clones are the same one.
#[derive(Clone)]
pub(super) struct Line {
    connection: Connection<Gate>,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    is_cut: bool,
    /// What waits for the end of the cut.
    waiting: Vec<Waker>,
    /// The writes since [`Line::record`].
    writes: Option<Vec<String>>,
}

impl Line {
    pub(super) fn of(connection: Connection<Gate>) -> Self {
        Self { connection, state: Arc::default() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Cuts the line, or repairs it: requests, answers and events that were on their way arrive
    /// then, unless the host has given them up.
    pub(super) fn set_cut(&self, is_cut: bool) {
        let mut state = self.lock();
        state.is_cut = is_cut;
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        waiting.into_iter().for_each(Waker::wake);
    }

    /// Records the writes of the process from here on.
    pub(super) fn record(&self) {
        self.lock().writes = Some(Vec::new());
    }

    /// The recorded writes.
    pub(super) fn recorded(&self) -> Vec<String> {
        self.lock().writes.take().unwrap_or_default()
    }

    fn poll_whole(&self, context: &Context<'_>) -> Poll<()> {
        let mut state = self.lock();
        if !state.is_cut {
            return Poll::Ready(());
        }
        if !state.waiting.iter().any(|waker| waker.will_wake(context.waker())) {
            state.waiting.push(context.waker().clone());
        }
        Poll::Pending
    }

    async fn whole(&self) {
        poll_fn(|context| self.poll_whole(context)).await;
    }

    async fn send(self, request: Request<Bytes>) -> Result<Response<LineBody>, BoxError> {
        self.whole().await;
        let info = RequestInfo::of(&request, request.body());
        if let Some(writes) = &mut self.lock().writes
            && info.is_write()
        {
            writes.push(info.to_string());
        }
        let mut connection = self.connection.clone();
        let response = connection.call(request.map(Full::new)).await?;
        self.whole().await;
        Ok(response.map(|body| LineBody { body: Box::pin(body), line: self }))
    }
}

impl<R> Service<Request<R>> for Line
where
    R: Body + Send + 'static,
    R::Data: Send,
    R::Error: Into<BoxError>,
{
    type Response = Response<LineBody>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<R>) -> Self::Future {
        let line = self.clone();
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let body = body.collect().await.map_err(Into::into)?.to_bytes();
            line.send(Request::from_parts(parts, body)).await
        })
    }
}

/// The body of an answer, which stops while the line is cut.
pub(super) struct LineBody {
    body: Pin<Box<dyn Body<Data = Bytes, Error = BoxError> + Send>>,
    line: Line,
}

impl Body for LineBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        ready!(self.line.poll_whole(context));
        self.body.as_mut().poll_frame(context)
    }
}
