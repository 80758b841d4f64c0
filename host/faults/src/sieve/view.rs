//! What a watch of one API server knows of the pauses of a session.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use tokio::time::Instant;
use tower::Service;

use crate::body::{self, BoxError};
use crate::sieve::resource_key::ResourceKey;
use crate::sieve::session::Session;
use crate::sieve::view_body::{Opening, View};

/// The view of a watch.
#[derive(Clone)]
pub(crate) struct SessionView<S> {
    pub(crate) api_server: S,
    pub(crate) session: Arc<Mutex<Session>>,
    /// The name of the API server.
    pub(crate) server: String,
    pub(crate) kind: String,
    /// Whether it is a watch of the client under test.
    pub(crate) is_of_client: bool,
}

impl<S> SessionView<S> {
    fn lock(&self) -> MutexGuard<'_, Session> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S, B> View for SessionView<S>
where
    S: Service<Request<Full<Bytes>>, Response = Response<B>> + Clone + Send + Sync + 'static,
    S::Future: Send,
    S::Error: Into<BoxError>,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    fn frozen(&self) -> Option<u64> {
        let mut session = self.lock();
        session.catch_up(Instant::now());
        session.pauses.frozen(&self.server, &self.kind)
    }

    fn is_held(&self, key: Option<&ResourceKey>) -> bool {
        let session = self.lock();
        self.is_of_client
            && match key {
                Some(key) => session.pauses.holds_reads(key),
                None => session.pauses.holds_kind(&self.kind),
            }
    }

    fn changed(&self) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let mut changed = self.lock().changed();
        Box::pin(async move {
            // A session that was dropped does not change.
            if changed.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        })
    }

    fn open(&self, request: Request<Bytes>) -> Opening {
        Box::pin(body::send(self.api_server.clone(), request))
    }
}
