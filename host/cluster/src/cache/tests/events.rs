//! Watches, lists and their notices.

use super::support::*;
use super::*;

#[tokio::test(start_paused = true)]
async fn events_reach_the_listener_in_order_and_no_earlier_snapshot() {
    let (test, view, watch) = Test::synced(&[]).await;
    let before = view.snapshot();
    watch.send("ADDED", &map("x", "u1", 11));
    watch.send("MODIFIED", &map("x", "u1", 12));
    watch.send("DELETED", &map("x", "u1", 13));
    watch.send("ADDED", &map("x", "u2", 14));
    test.expect_notices(&[
        "n/x - -> u1@11 Watch",
        "n/x u1@11 -> u1@12 Watch",
        "n/x u1@12 -> - Watch",
        "n/x - -> u2@14 Watch",
    ])
    .await;
    assert_eq!(cached(&view, "x"), "u2@14");
    assert_eq!(before.get(&maps(), &key("x")), CacheLookup::Absent);
}

#[tokio::test(start_paused = true)]
async fn relist_removes_missing_objects_but_none_written_since_it_began() {
    let (test, view, watch) = Test::synced(&[map("gone", "u1", 5), map("kept", "u2", 6)]).await;
    // Written before the relist begins and missing from it: another client has deleted it.
    test.caches.record_write(&maps(), object(&map("early", "u3", 11)));
    test.notices.take();

    test.server.once(&format!("GET {MAPS}"), Reply::Hang);
    test.server.always(&format!("GET {MAPS}"), list(30, &[map("kept", "u2", 6)]));
    watch.send(
        "ERROR",
        &json!({ "kind": "Status", "code": 410, "reason": "Expired", "message": "too old" }),
    );
    eventually("the relist has begun", || test.server.count("limit=250") == 2).await;
    // Written while the list hangs: the object stays until a GET does not find it.
    test.caches.record_write(&maps(), object(&map("late", "u4", 12)));
    test.server.always(
        "GET /api/v1/namespaces/n/configmaps/late",
        Reply::Json(
            404,
            crate::scripted::status(
                404,
                "NotFound",
                "no",
                &json!({ "name": "late", "kind": "configmaps" }),
            ),
        ),
    );
    test.expect_notices(&[
        "n/late - -> u4@12 Write",
        "n/early u3@11 -> - List",
        "n/gone u1@5 -> - List",
    ])
    .await;
    assert_eq!(cached(&view, "late"), "u4@12");
    assert_eq!(cached(&view, "kept"), "u2@6");
    test.expect_notices(&["n/late u4@12 -> - List"]).await;
    assert_eq!(test.server.count("configmaps/late"), 1, "one lookup");
}

#[tokio::test(start_paused = true)]
async fn silently_dead_watch_resumes_from_its_last_version() {
    let (test, view, watch) = Test::synced(&[]).await;
    watch.send("ADDED", &map("x", "u1", 11));
    test.server.always(&format!("GET {MAPS}"), list(11, &[map("x", "u1", 11)]));
    // The server sends nothing more and does not end the watch.
    let again = test.server.watch(MAPS).await;
    let resumed = test.server.log().pop().unwrap();
    assert!(resumed.contains("resourceVersion=11"), "{resumed}");
    let seconds: f64 = resumed.split(' ').next().unwrap().parse().unwrap();
    let cut = (crate::settings::WATCH_TIMEOUT + crate::settings::WATCH_GRACE).as_secs_f64();
    assert!((cut..cut + 2.0).contains(&seconds), "{resumed}");
    again.send("MODIFIED", &map("x", "u1", 12));
    eventually("the event arrives", || cached(&view, "x") == "u1@12").await;
    assert_eq!(test.server.count("limit=250"), 1, "no relist");
    drop(watch);
}

#[tokio::test(start_paused = true)]
async fn watch_ended_by_the_server_resumes_at_once_without_a_notice() {
    let (test, view, watch) = Test::synced(&[]).await;
    drop(watch);
    let again = test.server.watch(MAPS).await;
    again.send("ADDED", &map("x", "u1", 11));
    eventually("the event arrives", || cached(&view, "x") == "u1@11").await;
    let log = test.server.log();
    assert!(log.last().unwrap().starts_with("0.0 "), "{log:?}");
    assert_eq!(test.notices.take(), ["n/x - -> u1@11 Watch"]);
}

#[tokio::test(start_paused = true)]
async fn unserved_kind_is_listed_again_until_it_is_served() {
    let test = Test::new();
    let view = test.open("a");
    view.settled().await;
    assert_eq!(cached(&view, "x"), "Unreadable(NotServed)");
    test.expect_notices(&["a: ConfigMap NotServed"]).await;
    tokio::time::sleep(Duration::from_mins(10)).await;
    let asked = test.server.count("limit=250");
    assert!((20..35).contains(&asked), "{asked} lists: 1 s doubling to 30 s");

    test.server.always(&format!("GET {MAPS}"), list(10, &[map("x", "u1", 5)]));
    test.caches.kind_may_be_served("apps");
    test.settle().await;
    assert_eq!(cached(&view, "x"), "Unreadable(NotServed)", "another group");
    test.caches.kind_may_be_served("");
    test.settle().await;
    assert_eq!(cached(&view, "x"), "u1@5", "at once");
    test.expect_notices(&["a: ConfigMap Synced"]).await;

    // A user deletes the definition: the watch ends and does not start again.
    let watch = test.server.watch(MAPS).await;
    for verb in ["GET", "WATCH"] {
        test.server.always(&format!("{verb} {MAPS}"), Reply::Text(404, "404 page not found"));
    }
    drop(watch);
    test.expect_notices(&["n/x u1@5 -> - Watch", "a: ConfigMap NotServed"]).await;
    assert_eq!(cached(&view, "x"), "Unreadable(NotServed)");
}

#[tokio::test(start_paused = true)]
async fn unreachable_server_makes_the_kind_failing_until_it_answers() {
    let test = Test::new();
    test.server.always(&format!("GET {MAPS}"), Reply::Refused);
    let view = test.open("a");
    view.settled().await;
    let KindState::Failing(message) = &view.states()[&maps()] else {
        panic!("{:?}", view.states());
    };
    assert_eq!(message, "the API server is unavailable: connection refused");
    tokio::time::sleep(Duration::from_mins(3)).await;
    test.server.always(&format!("GET {MAPS}"), list(10, &[map("x", "u1", 5)]));
    eventually("it is read", || cached(&view, "x") == "u1@5").await;
    assert_eq!(test.notices.take().len(), 2, "failing once, synced once");
}

/// A listener that uses the caches during its call must neither hang nor lose the order.
#[tokio::test(start_paused = true)]
async fn listener_that_records_a_write_gets_its_notice_next() {
    struct WritingListener {
        caches: std::sync::OnceLock<Caches>,
        notices: NoticeLog,
    }
    impl Listener for WritingListener {
        fn changed(&self, change: &Change) {
            self.notices.changed(change);
            if change.key == key("x") {
                let caches = self.caches.get().unwrap();
                caches.record_write(&maps(), object(&map("y", "u2", 99)));
                assert_eq!(caches.sizes()[0].objects, 2);
            }
        }
        fn state_changed(&self, _: &StateChange) {}
    }
    let server = Server::new();
    server.always(&format!("GET {MAPS}"), list(10, &[]));
    let listener = Arc::new(WritingListener {
        caches: std::sync::OnceLock::new(),
        notices: NoticeLog::default(),
    });
    let caches = Caches::new(Server::env(), listener.clone());
    let _ = listener.caches.set(caches.clone());
    let view = caches.open(&server.client("a"), "a", &[maps()], &Namespaces::All);
    view.settled().await;
    caches.record_write(&maps(), object(&map("x", "u1", 20)));
    assert_eq!(listener.notices.take(), ["n/x - -> u1@20 Write", "n/y - -> u2@99 Write"]);
}

/// The same script run twice gives the same requests at the same times, and the same notices.
#[test]
fn same_seed_gives_the_same_requests_and_notices() {
    let run = || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(async {
            let test = Test::new();
            test.server.always(&format!("GET {MAPS}"), Reply::Broken);
            test.server.always(REVIEW, Reply::Busy(503, 1));
            let kinds: Vec<_> = ["b", "c", "d"]
                .map(|kind| Kind::namespaced(format!("{kind}/v1"), kind, format!("{kind}s")))
                .into();
            let a = test.open("a");
            let b = test.open("b");
            let c = test.caches.open(&test.server.client("c"), "c", &kinds, &Namespaces::All);
            tokio::time::sleep(Duration::from_mins(2)).await;
            test.server.always(&format!("GET {MAPS}"), list(10, &[map("x", "u1", 5)]));
            test.server.always(REVIEW, allowed(true));
            tokio::time::sleep(Duration::from_mins(2)).await;
            drop((a, b, c));
            (test.server.log(), test.notices.take())
        })
    };
    let (log, notices) = run();
    assert!(log.len() > 30, "{log:?}");
    assert_eq!((log, notices), run());
}
