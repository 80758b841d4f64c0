//! Recorded writes, deletions and unknown objects.

use super::support::*;
use super::*;

#[tokio::test(start_paused = true)]
async fn recorded_write_is_read_at_once_and_older_events_are_dropped() {
    let (test, view, watch) = Test::synced(&[map("x", "u1", 5)]).await;
    test.caches.record_write(&maps(), object(&map("x", "u1", 20)));
    assert_eq!(cached(&view, "x"), "u1@20");
    watch.send("MODIFIED", &map("x", "u1", 15));
    watch.send("MODIFIED", &map("x", "u1", 20));
    watch.send("MODIFIED", &map("x", "u1", 21));
    test.expect_notices(&["n/x u1@5 -> u1@20 Write", "n/x u1@20 -> u1@21 Watch"]).await;
    // A write response that is older than the last watch event.
    test.caches.record_write(&maps(), object(&map("x", "u1", 19)));
    assert_eq!(cached(&view, "x"), "u1@21");
    assert_eq!(test.notices.take(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn deleted_object_stays_deleted_after_late_events_and_responses() {
    let (test, view, watch) = Test::synced(&[map("x", "u1", 5)]).await;
    test.caches.record_deletion(&maps(), &key("x"), "u1");
    assert_eq!(test.notices.take(), ["n/x u1@5 -> - Write"]);
    watch.send("MODIFIED", &map("x", "u1", 18));
    watch.send("DELETED", &map("x", "u1", 19));
    test.settle().await;
    test.caches.record_write(&maps(), object(&map("x", "u1", 18)));
    assert_eq!(cached(&view, "x"), "Absent");
    // Another object takes the name.
    test.caches.record_write(&maps(), object(&map("x", "u2", 25)));
    watch.send("DELETED", &map("x", "u1", 19));
    test.settle().await;
    assert_eq!(cached(&view, "x"), "u2@25");
    assert_eq!(test.notices.take(), ["n/x - -> u2@25 Write"]);
}

#[tokio::test(start_paused = true)]
async fn unknown_object_is_resolved_by_an_event_a_relist_or_a_lookup() {
    let (test, view, watch) = Test::synced(&[map("x", "u1", 5), map("y", "u2", 6)]).await;
    let mark = |name| test.caches.mark_unknown(&maps(), &key(name));
    mark("x");
    mark("z");
    assert_eq!(cached(&view, "x"), "Unknown");
    assert_eq!(cached(&view, "y"), "u2@6");
    assert_eq!(view.snapshot().unknown().len(), 2);

    // An event that is older than the cached object resolves nothing; a newer one does.
    watch.send("MODIFIED", &map("x", "u1", 4));
    test.settle().await;
    assert_eq!(cached(&view, "x"), "Unknown");
    watch.send("MODIFIED", &map("x", "u1", 11));
    test.settle().await;
    assert_eq!(cached(&view, "x"), "u1@11");
    // A response "not found" that arrives after the event is older.
    test.caches.resolve_unknown(&maps(), &key("x"), None, &[]);
    assert_eq!(cached(&view, "x"), "u1@11");

    test.caches.resolve_unknown(&maps(), &key("z"), Some(object(&map("z", "u3", 12))), &[]);
    assert_eq!(cached(&view, "z"), "u3@12");
    mark("y");
    test.caches.resolve_unknown(&maps(), &key("y"), None, &[]);
    assert_eq!(cached(&view, "y"), "Absent");
    assert_eq!(
        test.notices.take(),
        ["n/x u1@5 -> u1@11 Watch", "n/z - -> u3@12 Lookup", "n/y u2@6 -> - Lookup"]
    );

    mark("w");
    test.server.always(&format!("GET {MAPS}"), list(30, &[]));
    watch.send(
        "ERROR",
        &json!({ "kind": "Status", "code": 410, "reason": "Expired", "message": "too old" }),
    );
    eventually("the relist resolves it", || cached(&view, "w") == "Absent").await;
}

#[tokio::test(start_paused = true)]
async fn event_before_the_response_to_its_write_waits_for_the_response() {
    let (test, view, watch) = Test::synced(&[map("x", "u1", 5), map("y", "u2", 6)]).await;
    let writing = test.caches.begin_write(&maps(), &key("x"));
    let other = test.caches.begin_write(&maps(), &key("x"));
    watch.send("MODIFIED", &map("x", "u1", 20));
    watch.send("MODIFIED", &map("x", "u1", 21));
    watch.send("MODIFIED", &map("y", "u2", 22));
    test.expect_notices(&["n/y u2@6 -> u2@22 Watch"]).await;
    assert_eq!(cached(&view, "x"), "u1@5");
    test.caches.record_write(&maps(), object(&map("x", "u1", 20)));
    drop(writing);
    assert_eq!(test.notices.take(), ["n/x u1@5 -> u1@20 Write"], "another write is in flight");
    drop(other);
    assert_eq!(test.notices.take(), ["n/x u1@20 -> u1@21 Watch"]);

    // The end of a failed write releases the waiting event.
    let writing = test.caches.begin_write(&maps(), &key("x"));
    watch.send("DELETED", &map("x", "u1", 23));
    test.settle().await;
    assert_eq!(cached(&view, "x"), "u1@21");
    drop(writing);
    assert_eq!(test.notices.take(), ["n/x u1@21 -> - Watch"]);
}
