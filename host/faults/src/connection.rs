//! The requests of one process of a client, which a crash ends.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use tower::Service;

use crate::body::{self, AnswerBody, BoxError};
use crate::crash_signal::CrashSignal;
use crate::fault::{ConcurrentWrite, CrashPoint, Fault};
use crate::injector::FaultInjector;
use crate::read_log::ReadBody;
use crate::request_info::{RequestInfo, Verb};
use crate::watch_body::WatchBody;

/// A connection of one process. Clones are the same one.
#[derive(Clone)]
pub struct Connection<S> {
    injector: FaultInjector<S>,
    crash_signal: CrashSignal,
}

impl<S: Clone> Connection<S> {
    /// A connection of a new process, whose requests go through the injector.
    pub fn through(injector: &FaultInjector<S>) -> Self {
        Self { injector: injector.clone(), crash_signal: CrashSignal::default() }
    }

    /// Ends the process: no request of it reaches the server any more, and none is answered.
    pub fn crash(&self) {
        self.crash_signal.crash();
    }

    /// Says whether the process has crashed.
    pub(crate) fn crash_signal(&self) -> &CrashSignal {
        &self.crash_signal
    }

    /// Whether the process has ended.
    pub fn is_crashed(&self) -> bool {
        self.crash_signal.is_crashed()
    }

    /// Waits until the process ends.
    pub async fn crashed(&self) {
        self.crash_signal.crashed().await;
    }
}

impl<S, B> Connection<S>
where
    S: Service<Request<Full<Bytes>>, Response = Response<B>> + Clone + Send + Sync + 'static,
    S::Future: Send,
    S::Error: Into<BoxError>,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    async fn serve(self, request: Request<Bytes>) -> Result<Response<AnswerBody>, BoxError> {
        if self.is_crashed() {
            return std::future::pending().await;
        }
        let info = RequestInfo::of(&request, request.body());
        let (fault, index) = self.injector.choose_and_record(info.clone(), request.body().clone());
        let response = self.send_with_fault(request, fault).await?;
        if self.is_crashed() {
            return std::future::pending().await;
        }
        self.injector.record_answer(index, &info, response.status().as_u16());
        if !self.injector.records_reads() || !response.status().is_success() {
            return Ok(response);
        }
        let is_watch = info.verb == Verb::Watch;
        if !is_watch && !matches!(info.verb, Verb::Get | Verb::List) {
            return Ok(response);
        }
        let injector = self.injector.clone();
        let describe = move |read| injector.record_read(read);
        Ok(response.map(|body| ReadBody::new(body, is_watch, describe).boxed_unsync()))
    }

    /// Sends a request as its fault, if it has one, says.
    async fn send_with_fault(
        &self,
        request: Request<Bytes>,
        fault: Option<Fault>,
    ) -> Result<Response<AnswerBody>, BoxError> {
        let Some(fault) = fault else { return self.send(request).await };
        let broken = || -> BoxError { "the connection was reset".into() };
        match fault {
            Fault::Refuse(refusal) => Ok(body::refusal(&refusal)?),
            Fault::Hang {} => std::future::pending().await,
            Fault::LoseAnswer {} => {
                self.send(request).await?;
                Err(broken())
            }
            Fault::DelayAnswer { milliseconds } => {
                let response = self.send(request).await?;
                tokio::time::sleep(Duration::from_millis(milliseconds)).await;
                Ok(response)
            }
            Fault::DelayRequest { milliseconds } => {
                let connection = self.clone();
                // Beyond the limit a request is lost.
                if let Some(delayed) = self.injector.delay(request.body().len()) {
                    tokio::spawn(async move {
                        tokio::time::sleep(Duration::from_millis(milliseconds)).await;
                        drop(delayed);
                        // It arrives also if the process has ended meanwhile.
                        let _ = connection.send(request).await;
                    });
                }
                Err(broken())
            }
            Fault::Duplicate {} => {
                self.send(request.clone()).await?;
                self.send(request).await
            }
            Fault::Crash { point } => {
                if point == CrashPoint::BeforeAnswer {
                    self.send(request).await?;
                }
                self.crash();
                std::future::pending().await
            }
            Fault::ConcurrentWriter(other) if other.after_request => {
                let response = self.send(request).await?;
                self.send(request_of(&other)?).await?;
                Ok(response)
            }
            Fault::ConcurrentWriter(other) => {
                self.send(request_of(&other)?).await?;
                self.send(request).await
            }
            Fault::Watch(fault) => {
                let response = self.send(request).await?;
                if !response.status().is_success() {
                    return Ok(response);
                }
                Ok(response.map(|body| WatchBody::new(body, fault).boxed_unsync()))
            }
        }
    }

    /// Has the server carry out a request.
    async fn send(&self, request: Request<Bytes>) -> Result<Response<AnswerBody>, BoxError> {
        body::send(self.injector.server(), request).await
    }
}

fn request_of(other: &ConcurrentWrite) -> Result<Request<Bytes>, http::Error> {
    let content =
        if other.content_type.is_empty() { "application/json" } else { &other.content_type };
    let body = if other.body.is_null() { Bytes::new() } else { other.body.to_string().into() };
    Request::builder()
        .method(other.method.as_str())
        .uri(&other.path)
        .header("content-type", content)
        .body(body)
}

impl<S, B, R> Service<Request<R>> for Connection<S>
where
    S: Service<Request<Full<Bytes>>, Response = Response<B>> + Clone + Send + Sync + 'static,
    S::Future: Send,
    S::Error: Into<BoxError>,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
    R: http_body::Body + Send + 'static,
    R::Data: Send,
    R::Error: Into<BoxError>,
{
    type Response = Response<AnswerBody>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<R>) -> Self::Future {
        let connection = self.clone();
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let body = body.collect().await.map_err(Into::into)?.to_bytes();
            connection.serve(Request::from_parts(parts, body)).await
        })
    }
}
