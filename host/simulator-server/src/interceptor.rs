//! A function between the clients of a port and the simulator.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use http_body_util::combinators::UnsyncBoxBody;
use innkeeper_simulator::{Body, Simulator, User};
use tower::Service;

/// Any error of a body or a service.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The answer of an interceptor. After an error the server closes the connection without an answer.
pub type InterceptedAnswer = Pin<
    Box<dyn Future<Output = Result<Response<UnsyncBoxBody<Bytes, BoxError>>, BoxError>> + Send>,
>;

/// Answers the requests of a port in place of the simulator. It passes requests on by a
/// [`SimulatorService`], which finds the user in the extensions of the request.
pub type Interceptor = Arc<dyn Fn(Request<Bytes>) -> InterceptedAnswer + Send + Sync>;

/// The simulator as a service for the users of a served API.
#[derive(Clone, Debug)]
pub struct SimulatorService {
    simulator: Simulator,
}

impl SimulatorService {
    /// A service for a simulator.
    pub fn new(simulator: Simulator) -> Self {
        Self { simulator }
    }
}

impl Service<Request<Full<Bytes>>> for SimulatorService {
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    /// Answers a request of the user in its extensions; the admin if there is none.
    fn call(&mut self, request: Request<Full<Bytes>>) -> Self::Future {
        use http_body_util::BodyExt as _;

        let simulator = self.simulator.clone();
        Box::pin(async move {
            let (mut parts, body) = request.into_parts();
            let user = parts.extensions.remove::<User>().unwrap_or_else(User::admin);
            let body = body.collect().await?.to_bytes();
            Ok(simulator.request_as(user, Request::from_parts(parts, body)))
        })
    }
}
