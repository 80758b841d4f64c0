//! Views that need only some fields of objects.

use innkeeper_core::FieldMask;

use super::support::*;
use super::*;
use crate::cache::ViewedKind;
use crate::scripted::status;
use crate::settings::DISCOVERY_PERIOD;

/// A view of these members of `data`, or of whole objects without any.
fn open(test: &Test, module: &str, members: &[&str]) -> View {
    let paths = members.iter().map(|name| ["data", name]).collect::<Vec<_>>();
    let paths: Vec<&[&str]> = paths.iter().map(<[_; 2]>::as_slice).collect();
    let kind = ViewedKind { kind: maps(), fields: FieldMask::of_paths(&paths).into() };
    test.caches.open_fields(&test.server.client(module), module, &[kind], &Namespaces::All)
}

/// A ConfigMap with three members of `data`.
fn full(name: &str, uid: &str, version: u64) -> Value {
    let mut map = map(name, uid, version);
    map["metadata"]["labels"] = json!({"app": "x"});
    map["data"] = json!({"a": "1", "b": "2", "c": "3"});
    map
}

/// The members of `data` in the cached object.
fn members(view: &View, name: &str) -> String {
    match view.snapshot().get(&maps(), &key(name)) {
        CacheLookup::Found(object) => {
            let value: Value = serde_json::from_str(&object.text.read()).unwrap();
            let data = value["data"].as_object().unwrap();
            data.keys().cloned().collect::<Vec<_>>().join(" ")
        }
        other => format!("{other:?}"),
    }
}

const NOT_READ_YET: &str = r#"Unreadable(NotSynced("not read yet"))"#;

fn lists(test: &Test) -> usize {
    test.server.count("limit=250")
}

/// Caches on a server that lists these objects.
fn serving(items: &[Value]) -> Test {
    let test = Test::new();
    test.server.always(&format!("GET {MAPS}"), list(10, items));
    test.server.always(REVIEW, allowed(true));
    test
}

#[tokio::test(start_paused = true)]
async fn objects_keep_the_needed_fields_on_every_way_into_a_cache() {
    let test = serving(&[full("listed", "u1", 1)]);
    let view = open(&test, "a", &["a"]);
    let watch = test.server.watch(MAPS).await;
    watch.send("ADDED", &full("watched", "u2", 11));
    test.settle().await;
    test.caches.record_write(&maps(), object(&full("written", "u3", 12)));
    test.caches.mark_unknown(&maps(), &key("got"));
    test.caches.resolve_unknown(&maps(), &key("got"), Some(object(&full("got", "u4", 13))), &[]);
    for name in ["listed", "watched", "written", "got"] {
        assert_eq!(members(&view, name), "a", "{name}");
    }
    let labelled = |labels: &innkeeper_core::Labels| labels.get("app").is_some();
    assert_eq!(view.snapshot().list(&maps(), None, &labelled).unwrap().len(), 4, "heads are whole");
}

#[tokio::test(start_paused = true)]
async fn object_that_the_host_has_written_stays_whole() {
    let mut applied = full("x", "u1", 1);
    applied["metadata"]["managedFields"] = json!([{"manager": "innkeeper/m/u0",
        "operation": "Apply", "apiVersion": "v1", "time": "2026-01-01T00:00:00Z",
        "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {"f:a": {}}}}]);
    let test = serving(&[applied]);
    let view = open(&test, "a", &["a"]);
    view.settled().await;
    assert_eq!(members(&view, "x"), "a b c");
}

#[tokio::test(start_paused = true)]
async fn view_that_needs_more_reads_after_another_list_and_the_others_read_on() {
    let test = serving(&[full("x", "u1", 5)]);
    let narrow = open(&test, "a", &["a"]);
    let _watch = test.server.watch(MAPS).await;
    test.expect_notices(&["a: ConfigMap Synced"]).await;
    assert_eq!(members(&narrow, "x"), "a");

    let same = open(&test, "a", &["a"]);
    assert_eq!(members(&same, "x"), "a", "no gap");
    let wide = open(&test, "a", &["b"]);
    assert_eq!(members(&wide, "x"), NOT_READ_YET);
    assert_eq!(wide.states()[&maps()], KindState::Syncing);
    assert_eq!(members(&narrow, "x"), "a", "it reads on");
    wide.settled().await;
    assert_eq!(members(&wide, "x"), "a b");
    assert_eq!(members(&narrow, "x"), "a b");
    test.expect_notices(&["a: ConfigMap Synced"]).await;
    assert_eq!(lists(&test), 2);

    // A whole view lists once more. It is no change of the object, whose version is the same.
    let whole = test.open("b");
    whole.settled().await;
    assert_eq!(members(&whole, "x"), "a b c");
    test.expect_notices(&["b: ConfigMap Synced"]).await;
    assert_eq!(lists(&test), 3);
}

#[tokio::test(start_paused = true)]
async fn view_that_joins_during_a_list_waits_for_the_one_that_shows_its_fields() {
    let test = serving(&[full("x", "u1", 5)]);
    // Both join before the first list begins, which shows the fields of both.
    let one = open(&test, "a", &["a"]);
    let other = open(&test, "a", &["b"]);
    one.settled().await;
    assert_eq!((members(&one, "x"), members(&other, "x")), ("a b".into(), "a b".into()));
    assert_eq!(lists(&test), 1);
    let _watch = test.server.watch(MAPS).await;

    // The list for the next view does not end. Another view of its fields joins that list.
    test.server.once(&format!("GET {MAPS}"), Reply::Hang);
    let second = open(&test, "a", &["c"]);
    test.settle().await;
    let same = open(&test, "a", &["c"]);
    test.settle().await;
    assert_eq!(lists(&test), 2);
    assert_eq!(
        (members(&second, "x"), members(&same, "x")),
        (NOT_READ_YET.into(), NOT_READ_YET.into())
    );

    // One that needs more ends no list: the next one shows the fields of all.
    let whole = test.open("a");
    test.settle().await;
    assert_eq!(lists(&test), 2);
    eventually("all views read", || members(&whole, "x") == "a b c").await;
    assert_eq!((members(&second, "x"), members(&same, "x")), ("a b c".into(), "a b c".into()));
}

#[tokio::test(start_paused = true)]
async fn view_that_joins_during_a_list_and_needs_more_gets_a_list_after_it() {
    let test = serving(&[full("x", "u1", 5)]);
    let slow = Reply::Slow(5, list(10, &[full("x", "u1", 5)]).into());
    test.server.once(&format!("GET {MAPS}"), slow);
    let narrow = open(&test, "a", &["a"]);
    test.settle().await;
    let wide = open(&test, "a", &["b"]);
    eventually("the first view reads", || members(&narrow, "x").starts_with('a')).await;
    eventually("the second view reads", || members(&wide, "x") == "a b").await;
    assert_eq!(lists(&test), 2);
}

#[tokio::test(start_paused = true)]
async fn view_that_needs_more_says_why_the_kind_cannot_be_listed_and_the_others_read_on() {
    let test = serving(&[full("x", "u1", 5)]);
    let narrow = open(&test, "a", &["a"]);
    let watch = test.server.watch(MAPS).await;
    test.expect_notices(&["a: ConfigMap Synced"]).await;
    let failure = status(500, "InternalError", "conversion webhook failed", &json!({}));
    test.server.always(&format!("GET {MAPS}"), Reply::Json(500, failure));
    let wide = open(&test, "b", &["b"]);
    let failing = || matches!(&wide.states()[&maps()], KindState::Failing(why) if why.contains("conversion webhook"));
    eventually("the view says why", failing).await;
    assert_eq!(members(&narrow, "x"), "a");
    watch.send("ADDED", &full("new", "u2", 11));
    eventually("the other view gets events", || members(&narrow, "new") == "a b").await;
    let items = [full("x", "u1", 5), full("new", "u2", 11)];
    test.server.always(&format!("GET {MAPS}"), list(12, &items));
    eventually("the view reads", || members(&wide, "x") == "a b").await;
    assert_eq!(members(&wide, "new"), "a b");
}

#[tokio::test(start_paused = true)]
async fn each_cache_of_a_kind_keeps_the_fields_that_its_views_need() {
    let listed = [full("listed", "u2", 5)];
    let test = serving(&listed);
    test.server.always("GET /api/v1/namespaces/n/configmaps", list(10, &listed));
    let narrow = open(&test, "a", &["a"]);
    let namespaces = Namespaces::Only(["n".to_owned()].into());
    let whole = test.caches.open(&test.server.client("b"), "b", &[maps()], &namespaces);
    narrow.settled().await;
    whole.settled().await;
    assert_eq!(
        (members(&whole, "listed"), members(&narrow, "listed")),
        ("a b c".into(), "a".into())
    );
    // Both caches share the text of an answer.
    test.caches.mark_unknown(&maps(), &key("x"));
    test.caches.resolve_unknown(&maps(), &key("x"), Some(object(&full("x", "u1", 13))), &[]);
    assert_eq!((members(&whole, "x"), members(&narrow, "x")), ("a b c".into(), "a b c".into()));
}

#[tokio::test(start_paused = true)]
async fn fields_that_no_view_needs_any_more_are_left_out_after_some_minutes() {
    let test = serving(&[]);
    let narrow = open(&test, "a", &["a"]);
    let wide = open(&test, "a", &["b"]);
    wide.settled().await;
    drop(wide);
    test.caches.record_write(&maps(), object(&full("before", "u1", 1)));
    assert_eq!(members(&narrow, "before"), "a b");
    drop(open(&test, "a", &["b"]));
    test.settle().await;
    assert_eq!(lists(&test), 1, "a view that comes back in time needs no list");

    tokio::time::sleep(DISCOVERY_PERIOD * 2).await;
    test.caches.record_write(&maps(), object(&full("after", "u2", 2)));
    assert_eq!((members(&narrow, "before"), members(&narrow, "after")), ("a b".into(), "a".into()));
    assert_eq!(lists(&test), 1);
    let items = [full("before", "u1", 1), full("after", "u2", 2)];
    test.server.always(&format!("GET {MAPS}"), list(10, &items));
    let wide = open(&test, "a", &["b"]);
    assert_eq!(members(&wide, "after"), NOT_READ_YET);
    wide.settled().await;
    assert_eq!(lists(&test), 2);
    assert_eq!((members(&wide, "before"), members(&wide, "after")), ("a b".into(), "a b".into()));
}

#[tokio::test(start_paused = true)]
async fn view_that_joins_while_the_watch_fails_gets_its_fields() {
    let test = serving(&[full("x", "u1", 5)]);
    let narrow = open(&test, "a", &["a"]);
    let watch = test.server.watch(MAPS).await;
    let failure = status(500, "InternalError", "no", &json!({}));
    test.server.once(&format!("WATCH {MAPS}"), Reply::Json(500, failure));
    drop(watch);
    eventually("the watch fails", || test.server.count("watch=true") >= 2).await;
    let wide = open(&test, "a", &["b"]);
    eventually("the view reads", || members(&wide, "x") == "a b").await;
    assert_eq!((lists(&test), members(&narrow, "x")), (2, "a b".into()));
}

#[tokio::test(start_paused = true)]
async fn event_that_waits_for_a_write_enters_with_the_fields_of_views_that_joined_meanwhile() {
    let test = serving(&[full("x", "u1", 5)]);
    let narrow = open(&test, "a", &["a"]);
    let watch = test.server.watch(MAPS).await;
    let write = test.caches.begin_write(&maps(), &key("x"));
    watch.send("MODIFIED", &full("x", "u1", 11));
    test.settle().await;
    assert_eq!(cached(&narrow, "x"), "u1@5", "the event waits");
    let wide = open(&test, "a", &["b"]);
    eventually("the view reads", || members(&wide, "x") == "a b").await;
    drop(write);
    assert_eq!(cached(&wide, "x"), "u1@11");
    assert!(members(&wide, "x").contains("a b"), "{}", members(&wide, "x"));
}

#[tokio::test(start_paused = true)]
async fn object_that_the_list_of_fields_does_not_show_is_not_read_without_its_fields() {
    let test = serving(&[full("x", "u1", 5)]);
    let narrow = open(&test, "a", &["a"]);
    let watch = test.server.watch(MAPS).await;
    watch.send("ADDED", &full("gone", "u2", 7));
    eventually("the event arrives", || members(&narrow, "gone") == "a").await;

    // It was deleted before the list, and the event of the deletion is on its way.
    let wide = open(&test, "a", &["b"]);
    test.settle().await;
    assert_eq!((lists(&test), members(&wide, "gone")), (2, NOT_READ_YET.into()));
    watch.send("DELETED", &full("gone", "u2", 8));
    eventually("the view reads", || members(&wide, "x") == "a b").await;
    assert_eq!((lists(&test), members(&wide, "gone")), (2, "Absent".into()));

    // Without the event, the watch lists again.
    watch.send("ADDED", &full("lost", "u3", 9));
    eventually("the event arrives", || members(&wide, "lost") == "a b").await;
    let whole = test.open("a");
    eventually("the view reads", || members(&whole, "x") == "a b c").await;
    assert_eq!((lists(&test), members(&whole, "lost")), (4, "Absent".into()));
}

#[tokio::test(start_paused = true)]
async fn objects_of_which_a_view_needs_one_field_take_a_fraction_of_their_memory() {
    let bytes = async |members: &[&str]| {
        let maps: Vec<Value> = (0..100)
            .map(|number| {
                let mut map = full(&format!("p{number}"), &format!("u{number}"), number);
                let unlike = format!("{:064x}", fastrand::Rng::with_seed(number).u128(..));
                map["data"] = json!({"a": "short", "b": unlike.repeat(8), "c": unlike});
                map
            })
            .collect();
        let test = serving(&maps);
        let view = open(&test, "a", members);
        view.settled().await;
        test.caches.sizes()[0].bytes
    };
    let (whole, pruned) = (bytes(&[]).await, bytes(&["a"]).await);
    println!("{whole} bytes whole, {pruned} with one field");
    assert!(pruned * 2 < whole, "{pruned} of {whole} bytes");
}

#[tokio::test(start_paused = true)]
async fn fields_that_take_much_memory_count_as_whole_objects() {
    let test = serving(&[full("x", "u1", 5)]);
    let names: Vec<String> = (0..400).map(|number| format!("{number:0>200}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).chain(["a"]).collect();
    let view = open(&test, "a", &names);
    view.settled().await;
    assert_eq!(members(&view, "x"), "a b c");
}

/// Views come and go in random order, and watch events and lists arrive in between. A view that can
/// read finds every field that it needs, of each object.
#[tokio::test(start_paused = true)]
async fn view_that_can_read_finds_its_fields_in_every_order_of_events() {
    for seed in 0..60 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let test = serving(&[full("x", "u0", 5)]);
        let mut views: Vec<(View, &[&str])> = Vec::new();
        let mut watch = None;
        let mut reads = 0;
        for step in 0..60 {
            let needs: &[&[&str]] = &[&[], &["a"], &["b"], &["c"], &["a", "b"], &["b", "c"]];
            let needs = needs[rng.usize(0..needs.len())];
            match rng.usize(0..8) {
                0 | 1 if views.len() < 4 => views.push((open(&test, "a", needs), needs)),
                2 if views.len() > 1 => drop(views.swap_remove(rng.usize(0..views.len()))),
                3 => {
                    let object =
                        full(&format!("n{}", rng.u8(0..3)), &format!("u{step}"), 100 + step);
                    test.caches.record_write(&maps(), self::object(&object));
                }
                4 => tokio::time::sleep(Duration::from_secs(rng.u64(0..400))).await,
                5 => {
                    let slow = Reply::Slow(rng.u64(1..9), list(10, &[full("x", "u0", 5)]).into());
                    test.server.once(&format!("GET {MAPS}"), slow);
                }
                6 => {
                    let failure = Reply::Json(500, status(500, "InternalError", "no", &json!({})));
                    let ask = ["GET", "WATCH"][rng.usize(0..2)];
                    test.server.once(&format!("{ask} {MAPS}"), failure);
                }
                _ => {
                    // A watch that ends by an error lists again.
                    watch = tokio::time::timeout(Duration::from_secs(1), test.server.watch(MAPS))
                        .await
                        .ok()
                        .or(watch);
                    if let Some(watch) = watch.as_ref().filter(|_| rng.bool()) {
                        watch.send("ERROR", &status(410, "Expired", "old", &json!({})));
                    }
                }
            }
            for (view, needs) in &views {
                let Ok(all) = view.snapshot().list(&maps(), None, &|_| true) else { continue };
                for cached in all {
                    reads += 1;
                    let found = members(view, cached.key.name());
                    let needs = if needs.is_empty() { &["a", "b", "c"] } else { *needs };
                    for name in needs {
                        assert!(
                            found.contains(name),
                            "seed {seed}, step {step}: {found} of {needs:?}"
                        );
                    }
                }
            }
        }
        for (view, _) in &views {
            let reads = || view.snapshot().list(&maps(), None, &|_| true).is_ok();
            eventually(&format!("a view reads, seed {seed}"), reads).await;
        }
        assert!(reads > 10, "seed {seed}: {reads} reads");
    }
}
