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

/// How long a right holds that the API server granted: one that is taken away ends after this time.
const ALLOWED_TIME: Duration = Duration::from_mins(1);

/// How long a refusal of the API server holds. Short, since a right and its reader are often made
/// together.
const REFUSED_TIME: Duration = Duration::from_secs(10);

/// Tokens whose answer is known at one time.
const KNOWN_MAX: usize = 64;

/// How long the API server may take to answer both reviews.
const REVIEW_TIME: Duration = Duration::from_secs(5);

/// Tokens that are reviewed at one time; a further one is refused until one of them is done.
const REVIEWS_MAX: usize = 8;

/// The same for one address, so that it does not keep readers at others out.
const REVIEWS_PER_PEER_MAX: usize = 2;

/// Reviews of tokens of one address that were never accepted, within [`UNKNOWN_TOKENS_PERIOD`]: a
/// client that invents tokens should neither load the API server nor keep readers at other
/// addresses out.
const UNKNOWN_TOKENS_MAX: u32 = 60;

/// The same for all addresses. It also bounds how many addresses are remembered.
const STRANGERS_TOTAL_MAX: u32 = 240;

/// The time in which [`UNKNOWN_TOKENS_MAX`] and [`STRANGERS_TOTAL_MAX`] count.
const UNKNOWN_TOKENS_PERIOD: Duration = Duration::from_mins(1);

/// What the API server says of a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Its user may read the figures.
    Allowed,
    /// Its user may not; the user's name.
    Denied(String),
    /// The token is nobody's.
    Unknown,
}

/// Who is asked about tokens.
pub(crate) trait Reviewer: Clone + Send + Sync + 'static {
    /// What is said of a token.
    fn review(&self, token: &str) -> impl Future<Output = Result<Access, ApiError>> + Send;
}

/// The API server, asked as the host.
#[derive(Clone)]
pub(crate) struct ApiReviewer {
    pub(crate) client: ApiClient,
    /// For whom a token has to be made; the API server itself if left out.
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

/// Stands for the address of a request that has none.
const UNKNOWN_PEER: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

/// The guard in front of `/metrics`. Clones share what is known.
#[derive(Clone)]
pub(crate) struct Guard<R> {
    reviewer: R,
    known: Arc<Mutex<Known>>,
    reviews: Arc<Semaphore>,
}

/// Why a request is refused. The texts say what to do.
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
    #[error("metrics not shown: too many unknown tokens were sent; try again in a minute")]
    TooMany,
    #[error("metrics not shown: the API server did not review the token; the host's log says why")]
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

/// A token is kept as its digest only.
type TokenDigest = [u8; 32];

/// What the API server said lately.
struct Known {
    answers: HashMap<TokenDigest, (Access, Instant)>,
    /// Reviews of strangers, by the address that sent their tokens: at most [`STRANGERS_TOTAL_MAX`]
    /// addresses, and those of [`REVIEWS_MAX`] reviews that began earlier.
    unknown_tokens: HashMap<IpAddr, Share>,
    strangers_total: u32,
    unknown_tokens_since: Instant,
}

/// What one address has of the reviews of strangers.
#[derive(Default)]
struct Share {
    /// Reviews that began since the counts began.
    begun: u32,
    /// Reviews under way.
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
        // One that was accepted before is always reviewed, so that invented tokens do not keep
        // Prometheus out.
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

/// The review of a stranger; it ends when this is dropped, also if the client goes away meanwhile.
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
    // Every connection has an address; requests without one share a share.
    let peer = request.extensions().get::<Peer>().map_or(UNKNOWN_PEER, |Peer(address)| *address);
    match guard.allow(peer, request.headers()).await {
        Ok(()) => next.run(request).await,
        Err(refused) => refused.into_response(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Knows the tokens `reader` and `other`; counts what it is asked.
    #[derive(Clone, Default)]
    struct Fake {
        asked: Arc<AtomicUsize>,
        down: bool,
        hangs: bool,
        revoked: Arc<AtomicUsize>,
    }

    impl Reviewer for Fake {
        async fn review(&self, token: &str) -> Result<Access, ApiError> {
            self.asked.fetch_add(1, Ordering::SeqCst);
            if self.hangs {
                std::future::pending::<()>().await;
            }
            if self.down {
                return Err(ApiError::Unavailable { message: "refused".to_owned() });
            }
            let revoked = self.revoked.load(Ordering::SeqCst) > 0;
            Ok(match token {
                "reader" | "second" if !revoked => Access::Allowed,
                "reader" | "other" => Access::Denied("system:serviceaccount:m:other".to_owned()),
                _ => Access::Unknown,
            })
        }
    }

    fn headers(values: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(header::AUTHORIZATION, value.parse().unwrap());
        }
        headers
    }

    /// Another address each.
    fn peer(number: u8) -> IpAddr {
        IpAddr::V4(Ipv4Addr::new(10, 0, 0, number))
    }

    async fn ask(guard: &Guard<Fake>, token: &str) -> Result<(), Refused> {
        ask_from(guard, 1, token).await
    }

    async fn ask_from(guard: &Guard<Fake>, number: u8, token: &str) -> Result<(), Refused> {
        guard.allow(peer(number), &headers(&[&format!("Bearer {token}")])).await
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_is_allowed_and_others_are_told_what_they_lack() {
        let guard = Guard::new(Fake::default());
        assert_eq!(ask(&guard, "reader").await, Ok(()));
        assert_eq!(ask(&guard, "invented").await, Err(Refused::UnknownToken));
        let denied = ask(&guard, "other").await.unwrap_err();
        assert!(denied.to_string().contains("bind the ClusterRole innkeeper-metrics-reader"));
        assert_eq!(denied.into_response().status(), 403);
        let response = Refused::NoToken.into_response();
        assert_eq!(response.status(), 401);
        assert_eq!(response.headers()[header::WWW_AUTHENTICATE], "Bearer");
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_without_exactly_one_bearer_token_is_refused_unasked() {
        let fake = Fake::default();
        let guard = Guard::new(fake.clone());
        let wrong: [&[&str]; 8] = [
            &[],
            &["reader"],
            &["Basic reader"],
            &["Bearer"],
            &["Bearer "],
            &["Bearer reader x"],
            &["Bearer reader", "Bearer other"],
            &["Bearer reader\tx"],
        ];
        for values in wrong {
            assert_eq!(
                guard.allow(peer(1), &headers(values)).await,
                Err(Refused::NoToken),
                "{values:?}"
            );
        }
        assert_eq!(fake.asked.load(Ordering::SeqCst), 0);
        assert_eq!(guard.allow(peer(1), &headers(&["bearer reader"])).await, Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_is_kept_for_its_time_and_then_asked_again() {
        let fake = Fake::default();
        let guard = Guard::new(fake.clone());
        for _ in 0..5 {
            assert_eq!(ask(&guard, "reader").await, Ok(()));
        }
        assert_eq!(fake.asked.load(Ordering::SeqCst), 1);
        fake.revoked.store(1, Ordering::SeqCst);
        tokio::time::advance(ALLOWED_TIME).await;
        assert!(matches!(ask(&guard, "reader").await, Err(Refused::Forbidden(_))));
        fake.revoked.store(0, Ordering::SeqCst);
        assert!(matches!(ask(&guard, "reader").await, Err(Refused::Forbidden(_))));
        tokio::time::advance(REFUSED_TIME).await;
        assert_eq!(ask(&guard, "reader").await, Ok(()));
        assert_eq!(fake.asked.load(Ordering::SeqCst), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_is_allowed_when_the_api_server_does_not_answer() {
        for fake in
            [Fake { down: true, ..Fake::default() }, Fake { hangs: true, ..Fake::default() }]
        {
            let guard = Guard::new(fake);
            let started = Instant::now();
            assert_eq!(ask(&guard, "reader").await, Err(Refused::NoAnswer));
            assert!(started.elapsed() <= REVIEW_TIME);
            assert_eq!(Refused::NoAnswer.into_response().status(), 503);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_is_too_old_is_not_used_when_the_api_server_is_down() {
        let guard = Guard::new(Fake::default());
        assert_eq!(ask(&guard, "reader").await, Ok(()));
        let down = Guard { reviewer: Fake { down: true, ..Fake::default() }, ..guard };
        assert_eq!(ask(&down, "reader").await, Ok(()));
        tokio::time::advance(ALLOWED_TIME).await;
        assert_eq!(ask(&down, "reader").await, Err(Refused::NoAnswer));
    }

    #[tokio::test(start_paused = true)]
    async fn invented_tokens_are_bounded_and_do_not_keep_a_reader_out() {
        let fake = Fake::default();
        let guard = Guard::new(fake.clone());
        assert_eq!(ask(&guard, "reader").await, Ok(()));
        for number in 0..1000 {
            let _ = ask(&guard, &format!("invented-{number}")).await;
        }
        let asked = fake.asked.load(Ordering::SeqCst);
        assert!(asked <= 1 + UNKNOWN_TOKENS_MAX as usize, "{asked} reviews");
        assert_eq!(ask(&guard, "invented-again").await, Err(Refused::TooMany));
        assert_eq!(ask(&guard, "reader").await, Ok(()));
        // Also when its answer has to be asked for again.
        tokio::time::advance(Duration::from_millis(59_999)).await;
        for number in 0..1000 {
            let _ = ask(&guard, &format!("more-{number}")).await;
        }
        assert_eq!(ask(&guard, "more-again").await, Err(Refused::TooMany));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(ask(&guard, "reader").await, Ok(()));
        assert!(guard.known().answers.len() <= KNOWN_MAX);
    }

    #[tokio::test(start_paused = true)]
    async fn invented_tokens_of_one_address_keep_no_new_token_of_another_out() {
        let fake = Fake::default();
        let guard = Guard::new(fake.clone());
        for number in 0..1000 {
            let _ = ask_from(&guard, 1, &format!("invented-{number}")).await;
        }
        assert_eq!(ask_from(&guard, 1, "reader").await, Err(Refused::TooMany));
        assert_eq!(ask_from(&guard, 2, "reader").await, Ok(()));
        assert_eq!(fake.asked.load(Ordering::SeqCst), 1 + UNKNOWN_TOKENS_MAX as usize);
        tokio::time::advance(UNKNOWN_TOKENS_PERIOD).await;
        assert_eq!(ask_from(&guard, 1, "second").await, Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn invented_tokens_of_many_addresses_are_bounded_in_reviews_and_in_memory() {
        let fake = Fake::default();
        let guard = Guard::new(fake.clone());
        for minute in 1..=3 {
            for number in 0..1000 {
                let last = u8::try_from(number % 250).unwrap();
                let _ = ask_from(&guard, last, &format!("invented-{minute}-{number}")).await;
            }
            let asked = fake.asked.load(Ordering::SeqCst);
            assert_eq!(asked, minute * STRANGERS_TOTAL_MAX as usize);
            let remembered = guard.known().unknown_tokens.len();
            assert!(remembered <= STRANGERS_TOTAL_MAX as usize, "{remembered} addresses");
            tokio::time::advance(UNKNOWN_TOKENS_PERIOD).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn reviews_of_one_address_that_hang_leave_room_for_other_addresses() {
        let fake = Fake { hangs: true, ..Fake::default() };
        let guard = Guard::new(fake.clone());
        let asks = [1, 1, 1, 1, 2].into_iter().enumerate().map(|(number, peer)| {
            let guard = guard.clone();
            tokio::spawn(async move { ask_from(&guard, peer, &format!("invented-{number}")).await })
        });
        let mut answers = Vec::new();
        for one in asks.collect::<Vec<_>>() {
            answers.push(one.await.unwrap());
        }
        let (late, many) = (Err(Refused::NoAnswer), Err(Refused::TooMany));
        assert_eq!(answers, [late.clone(), late.clone(), many.clone(), many, late.clone()]);
        // A review that has ended makes room again.
        assert_eq!(ask_from(&guard, 1, "invented").await, late);
    }

    #[tokio::test(start_paused = true)]
    async fn reviews_that_hang_are_bounded_in_number() {
        let fake = Fake { hangs: true, ..Fake::default() };
        let guard = Guard::new(fake.clone());
        // All counts of strangers are free: only the number at one time is in the way.
        const { assert!(REVIEWS_MAX < 20 && 20 < UNKNOWN_TOKENS_MAX as usize) };
        let asks = (0..20).map(|number| {
            let guard = guard.clone();
            tokio::spawn(
                async move { ask_from(&guard, number, &format!("invented-{number}")).await },
            )
        });
        let asks: Vec<_> = asks.collect();
        let mut refused = 0;
        for one in asks {
            refused += usize::from(one.await.unwrap() == Err(Refused::TooMany));
        }
        assert_eq!(fake.asked.load(Ordering::SeqCst), REVIEWS_MAX);
        assert_eq!(refused, 20 - REVIEWS_MAX);
    }
}
