//! Who may read `/metrics`: the API server authenticates the bearer token and authorizes its user.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::MethodRouter;
use innkeeper_cluster::{ApiClient, ApiError, User};
use sha2::{Digest as _, Sha256};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::Instant;

use crate::connections::Peer;

/// The path whose `get` the user needs, as `nonResourceURLs` of a ClusterRole have it.
const PATH: &str = "/metrics";

/// How long the guard keeps a positive answer: a right that is withdrawn ends after this time.
const ALLOWED_TIME: Duration = Duration::from_mins(1);

/// How long the guard keeps a negative answer. Short, since users often create a right and its
/// reader at the same time.
const REFUSED_TIME: Duration = Duration::from_secs(10);

/// Maximum number of kept answers.
const KNOWN_MAX: usize = 64;

/// Maximum time of both reviews of a token.
const REVIEW_TIME: Duration = Duration::from_secs(5);

/// Maximum number of reviews at the same time. The guard refuses further tokens.
const REVIEWS_MAX: usize = 8;

/// The same for one address, so that it does not lock out readers at other addresses.
const REVIEWS_PER_PEER_MAX: usize = 2;

/// Maximum number of reviews of unknown tokens from one address within [`UNKNOWN_TOKENS_PERIOD`]: a
/// client that invents tokens must not load the API server or lock out readers at other addresses.
const UNKNOWN_TOKENS_MAX: u32 = 60;

/// The same for all addresses. It also bounds the number of stored addresses.
const STRANGERS_TOTAL_MAX: u32 = 240;

/// The period of [`UNKNOWN_TOKENS_MAX`] and [`STRANGERS_TOTAL_MAX`].
const UNKNOWN_TOKENS_PERIOD: Duration = Duration::from_mins(1);

/// The answer of the API server to the reviews of a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// The user may read the metrics.
    Allowed,
    /// The user with this name may not.
    Denied(String),
    /// The token has no user.
    Unknown,
}

/// Reviews tokens.
pub(crate) trait Reviewer: Clone + Send + Sync + 'static {
    /// Reviews a token.
    fn review(&self, token: &str) -> impl Future<Output = Result<Access, ApiError>> + Send;
}

/// Reviews tokens by requests of the host to the API server.
#[derive(Clone)]
pub(crate) struct ApiReviewer {
    pub(crate) client: ApiClient,
    /// The audience that a token must have; the API server itself if absent.
    pub(crate) audience: Option<String>,
}

impl Reviewer for ApiReviewer {
    async fn review(&self, token: &str) -> Result<Access, ApiError> {
        let user = self.client.token_user(token, self.audience.as_deref()).await?;
        let Some(user) = user else { return Ok(Access::Unknown) };
        let allowed = self.client.user_can(&user, "get", PATH).await?;
        let User { username, .. } = user;
        Ok(if allowed { Access::Allowed } else { Access::Denied(username) })
    }
}

/// Replaces the address of a request that has none.
const UNKNOWN_PEER: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

/// The guard of `/metrics`. Clones share the kept answers.
#[derive(Clone)]
pub(crate) struct Guard<R> {
    reviewer: R,
    known: Arc<Mutex<Known>>,
    reviews: Arc<Semaphore>,
}

/// Why the guard refuses a request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum Refused {
    #[error(
        "metrics not shown: the request has no token; send a ServiceAccount's token in the header `Authorization: Bearer TOKEN`"
    )]
    NoToken,
    #[error(
        "metrics not shown: the API server does not accept the token; send a current one, made for this audience"
    )]
    UnknownToken,
    #[error(
        "metrics not shown: user {0:?} may not get {PATH}; bind the ClusterRole innkeeper-metrics-reader to it"
    )]
    Forbidden(String),
    #[error("metrics not shown: clients sent too many unknown tokens; try again in a minute")]
    TooMany,
    #[error("metrics not shown: the API server did not review the token; see the host's log")]
    NoAnswer,
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let text = format!("{self}\n");
        match self {
            Self::NoToken | Self::UnknownToken => {
                (StatusCode::UNAUTHORIZED, [(header::WWW_AUTHENTICATE, "Bearer")], text)
                    .into_response()
            }
            Self::Forbidden(_) => (StatusCode::FORBIDDEN, text).into_response(),
            Self::TooMany => (StatusCode::TOO_MANY_REQUESTS, text).into_response(),
            Self::NoAnswer => (StatusCode::SERVICE_UNAVAILABLE, text).into_response(),
        }
    }
}

/// The digest of a token. The guard does not keep tokens.
type TokenDigest = [u8; 32];

/// The kept answers of the API server, and the counts of reviews.
struct Known {
    answers: HashMap<TokenDigest, (Access, Instant)>,
    /// Reviews of unknown tokens, by the address that sent them: at most [`STRANGERS_TOTAL_MAX`]
    /// addresses, and those of [`REVIEWS_MAX`] reviews that began earlier.
    unknown_tokens: HashMap<IpAddr, Share>,
    strangers_total: u32,
    unknown_tokens_since: Instant,
}

/// The reviews of unknown tokens of one address.
#[derive(Default)]
struct Share {
    /// Reviews that began since the counts began.
    begun: u32,
    /// Running reviews.
    running: usize,
}

impl Known {
    fn new() -> Self {
        Self {
            answers: HashMap::new(),
            unknown_tokens: HashMap::new(),
            strangers_total: 0,
            unknown_tokens_since: Instant::now(),
        }
    }

    /// The answer about a token, if it is recent.
    fn answer(&self, token: &TokenDigest) -> Option<Access> {
        let (access, at) = self.answers.get(token)?;
        let holds = if *access == Access::Allowed { ALLOWED_TIME } else { REFUSED_TIME };
        (at.elapsed() < holds).then(|| access.clone())
    }

    /// Whether the last answer about a token was that its user may read.
    fn was_allowed(&self, token: &TokenDigest) -> bool {
        matches!(self.answers.get(token), Some((Access::Allowed, _)))
    }

    /// Counts the review of a token that was not accepted before, which an address sent; `false` if
    /// there are too many. [`Known::end_stranger`] has to follow.
    fn begin_stranger(&mut self, peer: IpAddr) -> bool {
        if self.unknown_tokens_since.elapsed() >= UNKNOWN_TOKENS_PERIOD {
            (self.strangers_total, self.unknown_tokens_since) = (0, Instant::now());
            self.unknown_tokens.retain(|_, share| {
                share.begun = 0;
                share.running > 0
            });
        }
        let (begun, running) =
            self.unknown_tokens.get(&peer).map_or((0, 0), |share| (share.begun, share.running));
        if self.strangers_total >= STRANGERS_TOTAL_MAX
            || begun >= UNKNOWN_TOKENS_MAX
            || running >= REVIEWS_PER_PEER_MAX
        {
            return false;
        }
        self.strangers_total += 1;
        self.unknown_tokens.insert(peer, Share { begun: begun + 1, running: running + 1 });
        true
    }

    fn end_stranger(&mut self, peer: IpAddr) {
        if let Some(share) = self.unknown_tokens.get_mut(&peer) {
            share.running = share.running.saturating_sub(1);
        }
    }

    /// Keeps an answer. The first to be forgotten are those that let nobody in, then the oldest.
    fn keep(&mut self, token: TokenDigest, access: Access) {
        self.answers.insert(token, (access, Instant::now()));
        if self.answers.len() > KNOWN_MAX {
            let least = self.answers.iter().filter(|(other, _)| **other != token);
            let least = least.min_by_key(|(_, (access, at))| (*access == Access::Allowed, *at));
            if let Some(least) = least.map(|(token, _)| *token) {
                self.answers.remove(&least);
            }
        }
    }
}

impl<R: Reviewer> Guard<R> {
    pub(crate) fn new(reviewer: R) -> Self {
        Self {
            reviewer,
            known: Arc::new(Mutex::new(Known::new())),
            reviews: Arc::new(Semaphore::new(REVIEWS_MAX)),
        }
    }

    /// Puts the guard in front of a route.
    pub(crate) fn before<S: Clone + Send + Sync + 'static>(
        self,
        route: MethodRouter<S>,
    ) -> MethodRouter<S> {
        route.layer(middleware::from_fn_with_state(self, check::<R>))
    }

    async fn allow(&self, peer: IpAddr, headers: &HeaderMap) -> Result<(), Refused> {
        let token = bearer(headers).ok_or(Refused::NoToken)?;
        let digest: TokenDigest = Sha256::digest(token).into();
        if let Some(access) = self.known().answer(&digest) {
            return access.into();
        }
        // The guard always reviews a token that was accepted before, so that invented tokens do not
        // lock out Prometheus.
        let _stranger = if self.known().was_allowed(&digest) {
            None
        } else {
            let permit = self.reviews.try_acquire().map_err(|_| Refused::TooMany)?;
            if !self.known().begin_stranger(peer) {
                return Err(Refused::TooMany);
            }
            Some(Stranger { known: &self.known, peer, _permit: permit })
        };
        let review = tokio::time::timeout(REVIEW_TIME, self.reviewer.review(token));
        let access = match review.await {
            Ok(Ok(access)) => access,
            Ok(Err(error)) => {
                tracing::warn!(%error, "reader of /metrics refused: the token review failed");
                return Err(Refused::NoAnswer);
            }
            Err(_) => {
                tracing::warn!(limit = ?REVIEW_TIME, "reader of /metrics refused: the token review took too long");
                return Err(Refused::NoAnswer);
            }
        };
        self.known().keep(digest, access.clone());
        access.into()
    }

    fn known(&self) -> std::sync::MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The running review of an unknown token. It ends on drop, also if the client disconnects.
struct Stranger<'a> {
    known: &'a Mutex<Known>,
    peer: IpAddr,
    _permit: SemaphorePermit<'a>,
}

impl Drop for Stranger<'_> {
    fn drop(&mut self) {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).end_stranger(self.peer);
    }
}

impl From<Access> for Result<(), Refused> {
    fn from(access: Access) -> Self {
        match access {
            Access::Allowed => Ok(()),
            Access::Denied(user) => Err(Refused::Forbidden(user)),
            Access::Unknown => Err(Refused::UnknownToken),
        }
    }
}

/// The token of a request that has exactly one.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let (Some(value), None) = (values.next(), values.next()) else { return None };
    let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
    let token = token.trim_matches(' ');
    let is_token = !token.is_empty() && !token.contains(char::is_whitespace);
    (scheme.eq_ignore_ascii_case("bearer") && is_token).then_some(token)
}

async fn check<R: Reviewer>(
    State(guard): State<Guard<R>>,
    request: Request,
    next: Next,
) -> Response {
    // Every connection has an address; requests without one share a limit.
    let peer = request.extensions().get::<Peer>().map_or(UNKNOWN_PEER, |Peer(address)| *address);
    match guard.allow(peer, request.headers()).await {
        Ok(()) => next.run(request).await,
        Err(refused) => refused.into_response(),
    }
}

#[cfg(test)]
mod tests;
