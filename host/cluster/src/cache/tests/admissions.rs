//! The rights of members, and the choice of the holder.

use super::support::*;
use super::*;

#[tokio::test(start_paused = true)]
async fn right_granted_later_opens_the_kind_and_its_loss_closes_it() {
    let test = Test::new();
    test.server.always(&format!("GET {MAPS}"), forbidden());
    test.server.always(REVIEW, allowed(false));
    let view = test.open("a");
    view.settled().await;
    let denied = "ServiceAccount m/a may not list configmaps in the whole cluster";
    test.expect_notices(&[&format!("a: ConfigMap Forbidden: {denied}")]).await;
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert_eq!(test.server.count("limit=250"), 1, "reviews, no lists, find the new right");
    let reviews = test.server.count(REVIEW);
    assert!((4..9).contains(&reviews), "{reviews} reviews: 1 s doubling to 30 s");

    test.server.always(&format!("GET {MAPS}"), list(10, &[map("x", "u1", 5)]));
    test.server.always(REVIEW, allowed(true));
    test.expect_notices(&["a: ConfigMap Syncing", "a: ConfigMap Synced"]).await;
    assert_eq!(cached(&view, "x"), "u1@5");

    let watch = test.server.watch(MAPS).await;
    test.server.always(&format!("WATCH {MAPS}"), forbidden());
    test.server.always(REVIEW, allowed(false));
    drop(watch);
    let denied = "ServiceAccount m/a may not watch configmaps in the whole cluster";
    test.expect_notices(&[&format!("a: ConfigMap Forbidden: {denied}")]).await;
    let CacheLookup::Unreadable(CacheReadError::Forbidden(denial)) =
        view.snapshot().get(&maps(), &key("x"))
    else {
        panic!("{}", cached(&view, "x"));
    };
    assert_eq!(denial.verb.as_ref(), "watch");
}

#[tokio::test(start_paused = true)]
async fn second_module_reads_only_after_its_own_review() {
    let (test, a, _watch) = Test::synced(&[map("x", "u1", 5)]).await;
    test.server.always(&format!("b {REVIEW}"), allowed(false));
    test.server.always(&format!("c {REVIEW}"), allowed(true));
    let b = test.open("b");
    let c = test.open("c");
    assert_eq!(cached(&c, "x"), r#"Unreadable(NotSynced("not read yet"))"#);
    let denied = "ServiceAccount m/b may not list configmaps in the whole cluster";
    test.expect_notices(&[&format!("b: ConfigMap Forbidden: {denied}"), "c: ConfigMap Synced"])
        .await;
    assert_eq!(cached(&a, "x"), "u1@5");
    assert_eq!(cached(&c, "x"), "u1@5");
    assert!(matches!(b.states()[&maps()], KindState::Forbidden(_)));
    assert_eq!(test.server.count("limit=250"), 1, "one list for all");

    test.server.always(&format!("b {REVIEW}"), allowed(true));
    test.expect_notices(&["b: ConfigMap Synced"]).await;
    test.server.always(&format!("c {REVIEW}"), allowed(false));
    let denied = "ServiceAccount m/c may not list configmaps in the whole cluster";
    test.expect_notices(&[&format!("c: ConfigMap Forbidden: {denied}")]).await;
    assert_eq!(cached(&b, "x"), "u1@5");
}

#[tokio::test(start_paused = true)]
async fn holder_that_loses_its_right_is_replaced_by_a_member() {
    let (test, _a, watch) = Test::synced(&[map("x", "u1", 5)]).await;
    test.server.always(&format!("b {REVIEW}"), allowed(true));
    let b = test.open("b");
    test.expect_notices(&["b: ConfigMap Synced"]).await;
    test.server.always(&format!("a {REVIEW}"), allowed(false));
    test.server.always(&format!("a WATCH {MAPS}"), forbidden());
    drop(watch);
    let denied = "ServiceAccount m/a may not watch configmaps in the whole cluster";
    test.expect_notices(&[&format!("a: ConfigMap Forbidden: {denied}")]).await;
    let _taken = test.server.watch(MAPS).await;
    assert!(test.server.log().pop().unwrap().contains(" b GET"), "with b's client");
    assert_eq!(cached(&b, "x"), "u1@5");
}

/// The server answers no review of this account any more.
fn reviews_fail(test: &Test, account: &str) {
    test.server.always(&format!("{account} {REVIEW}"), Reply::Busy(503, 1));
}

#[tokio::test(start_paused = true)]
async fn member_whose_reviews_fail_for_five_minutes_reads_nothing_until_one_is_answered() {
    let (test, a, _watch) = Test::synced(&[map("x", "u1", 5)]).await;
    test.server.always(REVIEW, allowed(true));
    let b = test.open("b");
    test.expect_notices(&["b: ConfigMap Synced"]).await;
    reviews_fail(&test, "b");
    tokio::time::sleep(Duration::from_mins(4)).await;
    assert_eq!(cached(&b, "x"), "u1@5", "a short outage changes nothing");
    tokio::time::sleep(Duration::from_mins(3)).await;
    let KindState::Failing(why) = b.states()[&maps()].clone() else { panic!("{:?}", b.states()) };
    assert!(why.contains("ServiceAccount m/b") && why.contains("5 minutes"), "{why}");
    assert!(!cached(&b, "x").contains("u1"), "{}", cached(&b, "x"));
    assert_eq!(cached(&a, "x"), "u1@5", "the other member reads on");
    test.server.always(&format!("b {REVIEW}"), allowed(true));
    eventually("b reads again", || cached(&b, "x") == "u1@5").await;
}

#[tokio::test(start_paused = true)]
async fn holder_whose_reviews_fail_for_five_minutes_reads_nothing_until_one_is_answered() {
    let (test, a, _watch) = Test::synced(&[map("x", "u1", 5)]).await;
    reviews_fail(&test, "a");
    tokio::time::sleep(Duration::from_mins(4)).await;
    assert_eq!(cached(&a, "x"), "u1@5", "a short outage changes nothing");
    tokio::time::sleep(Duration::from_mins(4)).await;
    assert!(matches!(a.states()[&maps()], KindState::Failing(_)), "{:?}", a.states());
    assert!(!cached(&a, "x").contains("u1"), "{}", cached(&a, "x"));
    assert_eq!(test.server.count("limit=250"), 1, "its watch goes on");
    test.server.always(&format!("a {REVIEW}"), allowed(true));
    eventually("a reads again", || cached(&a, "x") == "u1@5").await;
}

#[tokio::test(start_paused = true)]
async fn holder_whose_review_denies_a_right_is_forbidden_though_its_watch_goes_on() {
    let (test, a, _watch) = Test::synced(&[map("x", "u1", 5)]).await;
    test.server.always(REVIEW, allowed(true));
    let b = test.open("b");
    test.expect_notices(&["b: ConfigMap Synced"]).await;
    test.server.always(&format!("a {REVIEW}"), allowed(false));
    tokio::time::sleep(Duration::from_mins(3)).await;
    assert!(matches!(a.states()[&maps()], KindState::Forbidden(_)), "{:?}", a.states());
    assert_eq!(cached(&b, "x"), "u1@5", "b's client fills the cache now");
    assert!(test.server.log().iter().any(|line| line.contains(&format!(" b GET {MAPS}"))));
}

#[tokio::test(start_paused = true)]
async fn holder_that_may_watch_but_not_list_reads_nothing() {
    let (test, a, _watch) = Test::synced(&[map("x", "u1", 5)]).await;
    test.server.always(REVIEW, allowed(true));
    test.server.always("a REVIEW list", allowed(false));
    tokio::time::sleep(Duration::from_mins(3)).await;
    let KindState::Forbidden(denial) = a.states()[&maps()].clone() else {
        panic!("{:?}", a.states());
    };
    assert_eq!(denial.verb.as_ref(), "list");
    assert!(!cached(&a, "x").contains("u1"), "{}", cached(&a, "x"));
    test.server.always("a REVIEW list", allowed(true));
    eventually("a reads again", || cached(&a, "x") == "u1@5").await;
}

#[tokio::test(start_paused = true)]
async fn holder_denied_by_a_single_review_reads_on() {
    let (test, a, _watch) = Test::synced(&[map("x", "u1", 5)]).await;
    test.server.always(REVIEW, allowed(true));
    test.server.once(&format!("a {REVIEW}"), allowed(false));
    tokio::time::sleep(Duration::from_mins(5)).await;
    assert!(test.server.count(REVIEW) > 2, "it is reviewed");
    assert_eq!(test.notices.take(), Vec::<String>::new());
    assert_eq!(cached(&a, "x"), "u1@5");
}

#[tokio::test(start_paused = true)]
async fn watch_refused_three_times_by_a_starting_server_stays_synced() {
    let (test, view, watch) = Test::synced(&[map("x", "u1", 5)]).await;
    for _ in 0..3 {
        test.server.once(&format!("WATCH {MAPS}"), forbidden());
    }
    drop(watch);
    let again = test.server.watch(MAPS).await;
    again.send("MODIFIED", &map("x", "u1", 11));
    eventually("the event arrives", || cached(&view, "x") == "u1@11").await;
    assert_eq!(
        test.notices.take(),
        ["n/x u1@5 -> u1@11 Watch"],
        "the listener gets no notice of the refusals"
    );
}

#[tokio::test(start_paused = true)]
async fn refused_impersonation_denies_the_host() {
    let test = Test::new();
    let refused = crate::scripted::status(
        403,
        "Forbidden",
        "cannot impersonate",
        &json!({ "name": "a", "kind": "serviceaccounts" }),
    );
    test.server.always(&format!("GET {MAPS}"), Reply::Json(403, refused.clone()));
    test.server.always(REVIEW, Reply::Json(403, refused));
    let view = test.open("a");
    view.settled().await;
    let KindState::Forbidden(denial) = &view.states()[&maps()] else { panic!() };
    assert_eq!(denial.to_string(), "the host may not impersonate serviceaccounts in namespace m");
    let error = test.server.client("a").get(&maps(), &key("x")).await.unwrap_err();
    assert!(matches!(error, ApiError::NotServed { .. }));
}
