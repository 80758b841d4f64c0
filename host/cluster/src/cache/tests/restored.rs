//! Watches of a server that ends them at once, and a cluster whose etcd goes back to a backup.

use super::support::*;
use super::*;
use crate::settings::{WATCH_BURST, WATCH_BURST_PERIOD};

/// The event by which a server ends a watch whose version it does not have.
fn expired() -> Value {
    json!({"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"})
}

/// Records the answer to a write.
fn write(test: &Test, name: &str, uid: &str, version: u64) {
    let _write = test.caches.begin_write(&maps(), &key(name));
    test.caches.record_write(&maps(), object(&map(name, uid, version)));
}

/// Looks an object up whose state is unknown.
async fn look_up(test: &Test, name: &str, uid: &str, version: u64) {
    test.caches.mark_unknown(&maps(), &key(name));
    let get = async { Ok::<_, ()>(Some(object(&map(name, uid, version)))) };
    test.caches.look_up_unknown(&maps(), &key(name), get).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn relist_replaces_objects_that_are_newer_than_what_it_shows() {
    let (test, view, watch) = Test::synced(&[map("x", "u1", 5), map("y", "u2", 6)]).await;
    watch.send("MODIFIED", &map("x", "u1", 20));
    watch.send("DELETED", &map("y", "u2", 21));
    watch.send("ADDED", &map("y", "u3", 22));
    eventually("the events arrive", || cached(&view, "y") == "u3@22").await;
    test.notices.take();

    // The backup is of version 10, and its versions were bumped.
    let restored = list(1_000_010, &[map("x", "u1", 5), map("y", "u2", 6)]);
    test.server.always(&format!("GET {MAPS}"), restored);
    watch.send("ERROR", &expired());

    test.expect_notices(&["n/x u1@20 -> u1@5 List", "n/y u3@22 -> u2@6 List"]).await;
    let watch = test.server.watch(MAPS).await;
    watch.send("MODIFIED", &map("x", "u1", 1_000_011));
    eventually("events arrive", || cached(&view, "x") == "u1@1000011").await;
}

#[tokio::test(start_paused = true)]
async fn write_during_a_relist_stays_if_it_is_newer_than_what_the_relist_shows() {
    let (test, view, watch) = Test::synced(&[map("x", "u1", 5)]).await;
    test.server.once(&format!("GET {MAPS}"), Reply::Hang);
    test.server.always(&format!("GET {MAPS}"), list(30, &[map("x", "u1", 6)]));
    watch.send("ERROR", &expired());
    eventually("the relist has begun", || test.server.count("limit=250") == 2).await;
    test.caches.record_write(&maps(), object(&map("x", "u1", 12)));
    let _watch = test.server.watch(MAPS).await;
    assert_eq!(cached(&view, "x"), "u1@12");
}

#[tokio::test(start_paused = true)]
async fn event_from_before_a_relist_does_not_come_back_when_its_write_ends() {
    let (test, view, watch) = Test::synced(&[map("x", "u1", 5)]).await;
    let write = test.caches.begin_write(&maps(), &key("x"));
    watch.send("MODIFIED", &map("x", "u1", 20));
    test.settle().await;
    assert_eq!(cached(&view, "x"), "u1@5", "the event waits for the write");
    watch.send("ERROR", &expired());
    let _watch = test.server.watch(MAPS).await;
    drop(write);
    assert_eq!(cached(&view, "x"), "u1@5");
}

#[tokio::test(start_paused = true)]
async fn versions_that_went_back_are_found_after_a_watch_that_ends_early() {
    let (test, view, watch) = Test::synced(&[map("x", "u1", 5)]).await;
    watch.send("MODIFIED", &map("x", "u1", 20));
    eventually("the event arrives", || cached(&view, "x") == "u1@20").await;
    // The API servers start again with the backup of version 10.
    drop(watch);
    test.expect_notices(&["n/x u1@5 -> u1@20 Watch", "n/x u1@20 -> u1@5 List"]).await;
    let _watch = test.server.watch(MAPS).await;
    let last = test.server.log().pop().unwrap();
    assert!(last.contains("resourceVersion=10"), "{last}");
}

#[tokio::test(start_paused = true)]
async fn watch_that_ends_in_time_is_followed_by_the_next_one_alone() {
    let (test, _view, watch) = Test::synced(&[]).await;
    tokio::time::sleep(crate::settings::WATCH_TIMEOUT).await;
    drop(watch);
    let _watch = test.server.watch(MAPS).await;
    assert_eq!(test.server.count("limit=1&") + test.server.count("limit=250"), 1);
    assert!(!test.server.log().iter().any(|line| line.ends_with("limit=1")));
}

/// The most lists or watches of one cache in ten minutes.
fn most_in_ten_minutes() -> usize {
    let periods = Duration::from_mins(10).as_secs() / WATCH_BURST_PERIOD.as_secs();
    WATCH_BURST * (usize::try_from(periods).unwrap() + 1)
}

#[tokio::test(start_paused = true)]
async fn server_that_ends_each_watch_at_once_is_not_asked_without_a_pause() {
    let (test, _view, watch) = Test::synced(&[]).await;
    test.server.always(&format!("WATCH {MAPS}"), Reply::Text(200, ""));
    drop(watch);
    tokio::time::sleep(Duration::from_mins(10)).await;
    let watches = test.server.count("watch=true");
    assert!((100..=most_in_ten_minutes()).contains(&watches), "{watches} watches");
    assert_eq!(test.server.count("limit=250"), 1, "no relist");
}

#[tokio::test(start_paused = true)]
async fn server_that_answers_each_watch_with_410_is_not_listed_without_a_pause() {
    let (test, view, watch) = Test::synced(&[map("x", "u1", 5)]).await;
    let gone = "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":410,\"reason\":\"Expired\",\"message\":\"old\"}}\n";
    test.server.always(&format!("WATCH {MAPS}"), Reply::Text(200, gone));
    drop(watch);
    tokio::time::sleep(Duration::from_mins(10)).await;
    let lists = test.server.count("limit=250");
    assert!((50..=most_in_ten_minutes()).contains(&lists), "{lists} lists");
    assert_eq!(cached(&view, "x"), "u1@5");
}

#[tokio::test(start_paused = true)]
async fn watch_does_not_begin_before_the_server_has_given_its_version() {
    let (test, view, watch) = Test::synced(&[map("x", "u1", 5)]).await;
    watch.send("MODIFIED", &map("x", "u1", 20));
    eventually("the event arrives", || cached(&view, "x") == "u1@20").await;
    let watches = || test.server.count("watch=true");
    let before = watches();
    test.server.always(&format!("GET {MAPS}"), Reply::Busy(503, 1));
    drop(watch);
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(watches(), before, "{:#?}", test.server.log());
    test.server.always(&format!("GET {MAPS}"), list(12, &[map("x", "u1", 5)]));
    let _watch = test.server.watch(MAPS).await;
    assert_eq!(cached(&view, "x"), "u1@5");
}

#[tokio::test(start_paused = true)]
async fn cache_of_metadata_asks_for_a_list_of_metadata() {
    let test = Test::new();
    test.server.always(&format!("GET {MAPS}"), list(10, &[map("x", "u1", 5)]));
    let client = test.server.client("a");
    let view = test.caches.open_metadata(&client, "a", &[maps()], &Namespaces::All);
    let watch = test.server.watch(MAPS).await;
    drop(watch);
    let _watch = test.server.watch(MAPS).await;
    let (log, accepts) = (test.server.log(), test.server.accepts());
    let probe = log.iter().position(|line| line.ends_with("limit=1")).unwrap();
    assert!(accepts[probe].contains("as=PartialObjectMetadataList;"), "{}", accepts[probe]);
    drop(view);
}

#[tokio::test(start_paused = true)]
async fn versions_that_are_no_numbers_are_not_compared() {
    let named = |version: &str| {
        let mut map = map("x", "u1", 5);
        map["metadata"]["resourceVersion"] = version.into();
        map
    };
    let (test, _view, watch) = Test::synced(&[named("a")]).await;
    let write = test.caches.begin_write(&maps(), &key("x"));
    test.caches.record_write(&maps(), object(&named("b")));
    drop(write);
    test.server.always(&format!("GET {MAPS}"), list(3, &[named("b")]));
    drop(watch);
    let _watch = test.server.watch(MAPS).await;
    test.settle().await;
    assert_eq!(
        lists(&test),
        2,
        "the version of the list itself is a number: {:#?}",
        test.server.log()
    );
}

#[tokio::test(start_paused = true)]
async fn version_of_the_list_counts_for_a_kind_that_seldom_changes() {
    // The list is of version 10, its object of version 5.
    let (test, _view, _watch) = Test::synced(&[map("x", "u1", 5)]).await;
    test.server.always(&format!("GET {MAPS}"), list(9, &[map("x", "u1", 9)]));
    let write = test.caches.begin_write(&maps(), &key("x"));
    test.caches.record_write(&maps(), object(&map("x", "u1", 9)));
    drop(write);
    let _watch = test.server.watch(MAPS).await;
    assert_eq!(lists(&test), 2);
}

#[tokio::test(start_paused = true)]
async fn created_object_below_the_list_and_one_whose_deletion_was_undone_make_all_caches_list() {
    for uid in ["u2", "u1"] {
        let (test, view, watch) = Test::synced(&[map("x", "u1", 5)]).await;
        watch.send("DELETED", &map("x", "u1", 20));
        eventually("the event arrives", || cached(&view, "x") == "Absent").await;
        test.server.always(&format!("GET {MAPS}"), list(12, &[map("x", uid, 12)]));
        let write = test.caches.begin_write(&maps(), &key("x"));
        test.caches.record_write(&maps(), object(&map("x", uid, 12)));
        drop(write);
        let _watch = test.server.watch(MAPS).await;
        assert_eq!((lists(&test), cached(&view, "x")), (2, format!("{uid}@12")));
    }
}

#[tokio::test(start_paused = true)]
async fn server_whose_versions_have_no_order_is_listed_once() {
    let (test, _view, watch) = Test::synced(&[map("x", "u1", 5)]).await;
    let mut watches = vec![watch];
    for version in [4, 3, 2, 8, 1, 7].into_iter().cycle().take(60) {
        tokio::time::sleep(Duration::from_secs(10)).await;
        let write = test.caches.begin_write(&maps(), &key("x"));
        test.caches.record_write(&maps(), object(&map("x", "u1", version)));
        drop(write);
        if lists(&test) == watches.len() + 1 {
            watches.push(test.server.watch(MAPS).await);
        }
    }
    assert!(lists(&test) <= 3, "{} lists in ten minutes", lists(&test));
}

/// The lists of whole pages so far.
fn lists(test: &Test) -> usize {
    test.server.count("limit=250")
}

#[tokio::test(start_paused = true)]
async fn answer_to_a_write_below_the_last_event_makes_all_caches_list_again() {
    let (test, view, watch) = Test::synced(&[map("x", "u1", 5), map("y", "u2", 6)]).await;
    watch.send("MODIFIED", &map("y", "u2", 20));
    eventually("the event arrives", || cached(&view, "y") == "u2@20").await;
    test.notices.take();
    let restored = list(12, &[map("x", "u1", 12), map("y", "u2", 6)]);
    test.server.always(&format!("GET {MAPS}"), restored);
    write(&test, "x", "u1", 12);
    test.expect_notices(&["n/x u1@5 -> u1@12 List", "n/y u2@20 -> u2@6 List"]).await;
    assert_eq!(lists(&test), 2);
    let _watch = test.server.watch(MAPS).await;

    // Another such answer soon after it causes no list.
    write(&test, "x", "u1", 3);
    test.settle().await;
    assert_eq!((lists(&test), cached(&view, "x")), (2, "u1@3".into()));
}

#[tokio::test(start_paused = true)]
async fn found_object_below_the_cached_one_makes_all_caches_list_again() {
    let (test, view, watch) = Test::synced(&[map("x", "u1", 5)]).await;
    watch.send("MODIFIED", &map("x", "u1", 20));
    eventually("the event arrives", || cached(&view, "x") == "u1@20").await;
    test.notices.take();
    look_up(&test, "x", "u1", 5).await;
    test.expect_notices(&["n/x u1@20 -> u1@5 List"]).await;
}

#[tokio::test(start_paused = true)]
async fn objects_of_answers_that_contradict_the_cache_are_there_before_the_list_has_come() {
    let objects = [map("a", "u1", 5), map("b", "u2", 6), map("c", "u3", 7), map("d", "u4", 8)];
    let (test, view, watch) = Test::synced(&objects).await;
    watch.send("MODIFIED", &map("a", "u1", 20));
    watch.send("MODIFIED", &map("b", "u2", 21));
    watch.send("DELETED", &map("c", "u3", 22));
    watch.send("DELETED", &map("d", "u4", 23));
    watch.send("ADDED", &map("d", "u5", 24));
    eventually("the events arrive", || cached(&view, "d") == "u5@24").await;
    test.notices.take();
    // The server that has just started again fails the first list, and does not answer the next.
    test.server.once(&format!("GET {MAPS}"), Reply::Text(500, ""));
    test.server.always(&format!("GET {MAPS}"), Reply::Hang);
    write(&test, "a", "u1", 12);
    assert_eq!(cached(&view, "a"), "u1@12");
    eventually("the second list has begun", || lists(&test) == 3).await;

    write(&test, "a", "u1", 13);
    write(&test, "b", "u2", 14);
    // The restore undid the deletions of the backup's objects.
    look_up(&test, "c", "u3", 7).await;
    look_up(&test, "d", "u4", 8).await;
    test.expect_notices(&[
        "n/a u1@20 -> u1@12 List",
        "n/a u1@12 -> u1@13 List",
        "n/b u2@21 -> u2@14 List",
        "n/c - -> u3@7 List",
        "n/d u5@24 -> u4@8 List",
    ])
    .await;
    assert_eq!(lists(&test), 3, "no list after the one that runs");
}

#[tokio::test(start_paused = true)]
async fn write_of_an_object_that_the_running_list_has_shown_is_one_as_usual() {
    let (test, view, watch) = Test::synced(&[map("x", "u1", 5)]).await;
    watch.send("MODIFIED", &map("x", "u1", 20));
    eventually("the event arrives", || cached(&view, "x") == "u1@20").await;
    test.notices.take();
    let first = json!({"metadata": {"resourceVersion": "12", "continue": "more"},
        "items": [map("x", "u1", 6)]});
    test.server.once(&format!("GET {MAPS}"), Reply::Json(200, first));
    test.server.always(&format!("GET {MAPS}"), Reply::Hang);
    watch.send("ERROR", &expired());
    eventually("the first page has come", || cached(&view, "x") == "u1@6").await;
    write(&test, "x", "u1", 13);
    test.expect_notices(&["n/x u1@20 -> u1@6 List", "n/x u1@6 -> u1@13 Write"]).await;
}

#[tokio::test(start_paused = true)]
async fn write_to_a_server_whose_versions_have_no_order_is_one_of_a_list_until_it_has_listed() {
    let (test, _view, watch) = Test::synced(&[map("x", "u1", 5), map("y", "u2", 500)]).await;
    test.server
        .always(&format!("GET {MAPS}"), list(500, &[map("x", "u1", 6), map("y", "u2", 500)]));
    write(&test, "x", "u1", 6);
    let _second = test.server.watch(MAPS).await;
    drop(watch);
    write(&test, "x", "u1", 7);
    tokio::time::sleep(Duration::from_secs(20)).await;
    write(&test, "x", "u1", 8);
    test.expect_notices(&[
        "n/x u1@5 -> u1@6 List",
        "n/x u1@6 -> u1@7 Write",
        "n/x u1@7 -> u1@8 Write",
    ])
    .await;
    assert_eq!(lists(&test), 2);
}

#[tokio::test(start_paused = true)]
async fn answer_that_contradicts_the_cache_does_not_replace_what_a_list_has_shown_since() {
    let (test, view, watch) = Test::synced(&[map("x", "u1", 5)]).await;
    watch.send("MODIFIED", &map("x", "u1", 20));
    eventually("the event arrives", || cached(&view, "x") == "u1@20").await;
    let write = test.caches.begin_write(&maps(), &key("x"));
    // The write came through as version 12, and somebody changed the object after it.
    test.server.always(&format!("GET {MAPS}"), list(14, &[map("x", "u1", 13)]));
    watch.send("ERROR", &expired());
    let _watch = test.server.watch(MAPS).await;
    assert_eq!(cached(&view, "x"), "u1@13");
    test.caches.record_write(&maps(), object(&map("x", "u1", 12)));
    drop(write);
    test.settle().await;
    assert_eq!(cached(&view, "x"), "u1@13");
}

#[tokio::test(start_paused = true)]
async fn late_watch_is_no_reason_to_list_again() {
    let (test, view, watch) = Test::synced(&[map("x", "u1", 5), map("y", "u2", 6)]).await;
    let write = |name, uid, version| write(&test, name, uid, version);
    // The host writes y as version 30, and then x, which others have changed before: the write of
    // x changes nothing.
    write("y", "u2", 30);
    write("x", "u1", 20);
    // A write that changes nothing has the version of the cached object.
    watch.send("MODIFIED", &map("x", "u1", 20));
    watch.send("MODIFIED", &map("y", "u2", 30));
    watch.send("ADDED", &map("z", "u3", 40));
    eventually("the events arrive", || cached(&view, "z") == "u3@40").await;
    write("x", "u1", 20);
    // The event of a write in flight waits, and another object's is newer. Meanwhile somebody gets
    // the object, and another task writes the same.
    let first = test.caches.begin_write(&maps(), &key("x"));
    watch.send("MODIFIED", &map("x", "u1", 50));
    watch.send("MODIFIED", &map("z", "u3", 60));
    eventually("the event arrives", || cached(&view, "z") == "u3@60").await;
    let get = async { Ok::<_, ()>(Some(object(&map("x", "u1", 50)))) };
    test.caches.look_up_unknown(&maps(), &key("x"), get).await.unwrap();
    write("x", "u1", 50);
    test.caches.record_write(&maps(), object(&map("x", "u1", 50)));
    drop(first);
    test.settle().await;
    assert_eq!(lists(&test), 1);
}

#[tokio::test(start_paused = true)]
async fn write_during_a_list_is_no_reason_to_list_again() {
    let (test, view, watch) = Test::synced(&[map("x", "u1", 5)]).await;
    test.server.once(&format!("GET {MAPS}"), Reply::Hang);
    test.server.always(&format!("GET {MAPS}"), list(30, &[map("x", "u1", 6), map("y", "u2", 30)]));
    watch.send("ERROR", &expired());
    eventually("the list has begun", || lists(&test) == 2).await;
    let write = test.caches.begin_write(&maps(), &key("x"));
    test.caches.record_write(&maps(), object(&map("x", "u1", 6)));
    drop(write);
    let _watch = test.server.watch(MAPS).await;
    let before = lists(&test);
    assert_eq!(cached(&view, "y"), "u2@30");
    test.settle().await;
    assert_eq!(lists(&test), before);
}
