//! Faults at an API that is served on ports.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame};
use http_body_util::{BodyExt as _, Full};
use tokio::sync::mpsc;
use tower::{Service, ServiceExt as _};

use crate::body::{self, AnswerBody, BoxError};
use crate::connection::Connection;
use crate::crash_signal::CrashSignal;
use crate::injector::FaultInjector;
use crate::plan_file::PlanFile;
use crate::restart::Restart;
use crate::sieve::{Arrival, SieveApi, SievePlan};

/// The maximum number of reports that nobody has read yet.
const REPORTS_MAX: usize = 1000;

/// A served API with the faults of a plan. Clones are the same one.
#[derive(Clone)]
pub struct ServedFaults<S> {
    server: S,
    backend: FaultBackend<S>,
}

/// What has to happen outside of the API, and what a person wants to see.
pub struct ServedEvents {
    /// The client under test has to be started again.
    pub restarts: mpsc::UnboundedReceiver<Restart>,
    /// A line for each fault that happens.
    pub reports: mpsc::Receiver<String>,
}

/// Injects the faults of one kind of plan.
#[derive(Clone)]
enum FaultBackend<S> {
    Faults {
        injector: FaultInjector<S>,
        connection: Arc<Mutex<Connection<S>>>,
        restarts: mpsc::UnboundedSender<Restart>,
    },
    Sieve(SieveApi<S>),
}

impl<S, B> ServedFaults<S>
where
    S: Service<Request<Full<Bytes>>, Response = Response<B>> + Clone + Send + Sync + 'static,
    S::Future: Send,
    S::Error: Into<BoxError>,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    /// Puts the faults of a plan between clients and a server.
    pub fn new(server: S, plan: PlanFile) -> (Self, ServedEvents) {
        let (reports, reported) = mpsc::channel(REPORTS_MAX);
        let (restarts, restarted) = mpsc::unbounded_channel();
        let backend = match plan {
            PlanFile::Faults(plan) => {
                let injector = FaultInjector::reporting(server.clone(), plan, reports);
                let connection = Arc::new(Mutex::new(Connection::through(&injector)));
                FaultBackend::Faults { injector, connection, restarts }
            }
            PlanFile::Sieve(plan) => {
                FaultBackend::Sieve(SieveApi::new(server.clone(), plan, reports, restarts))
            }
        };
        (Self { server, backend }, ServedEvents { restarts: restarted, reports: reported })
    }

    /// Lets the times of the plan pass, until the future is dropped.
    ///
    /// # Errors
    /// If the server has no answer.
    pub async fn run(&self) -> Result<(), BoxError> {
        match &self.backend {
            FaultBackend::Faults { .. } => std::future::pending().await,
            FaultBackend::Sieve(api) => api.run().await,
        }
    }

    /// The client under test was started, at an API server. Its requests are answered from here on.
    pub fn client_started(&self, api_server: &str) {
        match &self.backend {
            FaultBackend::Faults { injector, connection, .. } => {
                *lock(connection) = Connection::through(injector);
            }
            FaultBackend::Sieve(api) => api.client_started(api_server),
        }
    }

    /// A line for each fault or action of the plan that has not happened, in its order.
    pub fn pending_lines(&self) -> Vec<String> {
        match &self.backend {
            FaultBackend::Faults { injector, .. } => injector.unused_lines(),
            FaultBackend::Sieve(api) => api.pending_lines(),
        }
    }

    /// Answers a request that arrived at an API server, by its name. Faults affect the client under
    /// test only, except that a paused API server is paused for all its clients.
    ///
    /// # Errors
    /// If the connection breaks before an answer, or the client has crashed.
    pub async fn call(
        &self,
        api_server: &str,
        is_of_client: bool,
        request: Request<Bytes>,
    ) -> Result<Response<AnswerBody>, BoxError> {
        if !is_of_client {
            return match &self.backend {
                FaultBackend::Faults { .. } => body::send(self.server.clone(), request).await,
                FaultBackend::Sieve(api) => {
                    let arrival = Arrival { server: api_server.to_owned(), is_of_client };
                    api.call(arrival, request).await
                }
            };
        }
        let (crash_signal, answering): (_, Pin<Box<dyn Future<Output = _> + Send>>) =
            match &self.backend {
                FaultBackend::Faults { connection, .. } => {
                    let connection = lock(connection).clone();
                    let request = request.map(Full::new);
                    (connection.crash_signal().clone(), Box::pin(connection.oneshot(request)))
                }
                FaultBackend::Sieve(api) => {
                    let arrival = Arrival { server: api_server.to_owned(), is_of_client };
                    let call = api.clone();
                    (api.crash_signal(), Box::pin(async move { call.call(arrival, request).await }))
                }
            };
        let was_alive = !crash_signal.is_crashed();
        tokio::select! {
            biased;
            () = crash_signal.crashed() => {
                if let (true, FaultBackend::Faults { restarts, .. }) = (was_alive, &self.backend) {
                    request_restart(&crash_signal, restarts);
                }
                Err("the client has crashed".into())
            }
            answer = answering => {
                let answer = answer?;
                // The plan may have ended the client with this very request.
                if crash_signal.is_crashed() {
                    return Err("the client has crashed".into());
                }
                Ok(answer.map(|body| CutBody::new(body, crash_signal).boxed_unsync()))
            }
        }
    }
}

/// Requests one restart for each crash, though it ends several requests.
fn request_restart(crash_signal: &CrashSignal, restarts: &mpsc::UnboundedSender<Restart>) {
    if crash_signal.claim_restart() {
        // Without a receiver nobody starts the client again.
        let _ = restarts.send(Restart { api_server: SievePlan::LEADING.to_owned() });
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A body that breaks when its client crashes.
struct CutBody {
    inner: AnswerBody,
    crashed: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl CutBody {
    fn new(inner: AnswerBody, crash_signal: CrashSignal) -> Self {
        Self { inner, crashed: Box::pin(async move { crash_signal.crashed().await }) }
    }
}

impl Body for CutBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if self.crashed.as_mut().poll(context).is_ready() {
            return Poll::Ready(Some(Err("the client has crashed".into())));
        }
        Pin::new(&mut self.inner).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> http_body::SizeHint {
        self.inner.size_hint()
    }
}
