//! The guard with a fake API server, on virtual time.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

/// An API server that knows the tokens `reader` and `other`, and counts the reviews.
#[derive(Clone, Default)]
struct Fake {
    reviews: Arc<AtomicUsize>,
    down: bool,
    hangs: bool,
    revoked: Arc<AtomicUsize>,
}

impl Reviewer for Fake {
    async fn review(&self, token: &str) -> Result<Access, ApiError> {
        self.reviews.fetch_add(1, Ordering::SeqCst);
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

/// A different address for each number.
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
async fn reader_is_allowed_and_others_are_refused_with_what_they_lack() {
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
    assert_eq!(fake.reviews.load(Ordering::SeqCst), 0);
    assert_eq!(guard.allow(peer(1), &headers(&["bearer reader"])).await, Ok(()));
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_kept_for_its_time_and_then_asked_again() {
    let fake = Fake::default();
    let guard = Guard::new(fake.clone());
    for _ in 0..5 {
        assert_eq!(ask(&guard, "reader").await, Ok(()));
    }
    assert_eq!(fake.reviews.load(Ordering::SeqCst), 1);
    fake.revoked.store(1, Ordering::SeqCst);
    tokio::time::advance(ALLOWED_TIME).await;
    assert!(matches!(ask(&guard, "reader").await, Err(Refused::Forbidden(_))));
    fake.revoked.store(0, Ordering::SeqCst);
    assert!(matches!(ask(&guard, "reader").await, Err(Refused::Forbidden(_))));
    tokio::time::advance(REFUSED_TIME).await;
    assert_eq!(ask(&guard, "reader").await, Ok(()));
    assert_eq!(fake.reviews.load(Ordering::SeqCst), 3);
}

#[tokio::test(start_paused = true)]
async fn nobody_is_allowed_when_the_api_server_does_not_answer() {
    for fake in [Fake { down: true, ..Fake::default() }, Fake { hangs: true, ..Fake::default() }] {
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
    let reviews = fake.reviews.load(Ordering::SeqCst);
    assert!(reviews <= 1 + UNKNOWN_TOKENS_MAX as usize, "{reviews} reviews");
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
    assert_eq!(fake.reviews.load(Ordering::SeqCst), 1 + UNKNOWN_TOKENS_MAX as usize);
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
        let reviews = fake.reviews.load(Ordering::SeqCst);
        assert_eq!(reviews, minute * STRANGERS_TOTAL_MAX as usize);
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
        tokio::spawn(async move { ask_from(&guard, number, &format!("invented-{number}")).await })
    });
    let asks: Vec<_> = asks.collect();
    let mut refused = 0;
    for one in asks {
        refused += usize::from(one.await.unwrap() == Err(Refused::TooMany));
    }
    assert_eq!(fake.reviews.load(Ordering::SeqCst), REVIEWS_MAX);
    assert_eq!(refused, 20 - REVIEWS_MAX);
}
