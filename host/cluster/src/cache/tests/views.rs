//! Views: when they can read, what they read, and the caches that they share.

use super::support::*;
use super::*;

#[tokio::test(start_paused = true)]
async fn kind_is_unreadable_until_its_first_list_has_ended() {
    let test = Test::new();
    test.server.always(&format!("GET {MAPS}"), list(10, &[map("x", "u1", 5)]));
    let view = test.open("a");
    assert_eq!(view.states()[&maps()], KindState::Syncing);
    assert_eq!(cached(&view, "x"), r#"Unreadable(NotSynced("not read yet"))"#);
    view.settled().await;
    assert_eq!(cached(&view, "x"), "u1@5");
    assert_eq!(cached(&view, "y"), "Absent");
    assert_eq!(
        test.notices.take(),
        ["a: ConfigMap Synced"],
        "the listener gets no notice of the objects of the first list"
    );
    let other = Kind::namespaced("v1", "Secret", "secrets");
    assert_eq!(
        view.snapshot().get(&other, &key("x")),
        CacheLookup::Unreadable(CacheReadError::Undeclared),
        "the view reads only declared kinds"
    );
    let log = test.server.log();
    assert_eq!(log[0], "0.0 a GET /api/v1/configmaps?&limit=250", "never resourceVersion=0");
}

#[tokio::test(start_paused = true)]
async fn cache_passes_to_the_next_member_and_closes_with_its_last_view() {
    let (test, a, watch) = Test::synced(&[map("x", "u1", 5)]).await;
    test.server.always(REVIEW, allowed(true));
    let b = test.open("b");
    test.expect_notices(&["b: ConfigMap Synced"]).await;
    test.server.always(&format!("GET {MAPS}"), list(20, &[map("x", "u1", 5), map("y", "u2", 15)]));
    drop(a);
    assert_eq!(cached(&b, "x"), "u1@5");
    let taken = test.server.watch(MAPS).await;
    assert!(test.server.log().pop().unwrap().contains(" b GET"), "with b's client");
    test.expect_notices(&["n/y - -> u2@15 List"]).await;
    drop((taken, watch));

    drop(b);
    let requests = test.server.log().len();
    tokio::time::sleep(Duration::from_mins(5)).await;
    assert_eq!(test.server.log().len(), requests, "a cache without a view has no watch");
    assert_eq!(test.caches.sizes(), []);
}

#[tokio::test(start_paused = true)]
async fn new_view_opened_before_the_old_is_dropped_needs_no_new_list() {
    let (test, old, _watch) = Test::synced(&[map("x", "u1", 5)]).await;
    let new = test.open("a");
    assert_eq!(cached(&new, "x"), "u1@5", "no gap");
    drop(old);
    test.settle().await;
    assert_eq!(cached(&new, "x"), "u1@5");
    assert_eq!(test.server.log().len(), 2, "one list, one watch");
}

#[tokio::test(start_paused = true)]
async fn lists_are_ordered_and_owned_objects_are_found_by_uid() {
    let owned = |name: &str, owner: &str| {
        let mut map = map(name, name, 5);
        map["metadata"]["ownerReferences"] =
            json!([{ "apiVersion": "v1", "kind": "X", "name": "o", "uid": owner }]);
        map
    };
    let mut far = map("a", "u9", 5);
    far["metadata"]["namespace"] = json!("z");
    far["metadata"]["labels"] = json!({ "app": "x" });
    let items = [far, owned("c", "o1"), owned("b", "o1"), map("d", "u4", 5)];
    let (test, view, watch) = Test::synced(&items).await;
    let names = |namespace, selector: &dyn Fn(&innkeeper_core::Labels) -> bool| -> Vec<_> {
        let found = view.snapshot().list(&maps(), namespace, selector).unwrap();
        found.iter().map(|object| object.key.to_string()).collect()
    };
    assert_eq!(names(None, &|_| true), ["n/b", "n/c", "n/d", "z/a"]);
    assert_eq!(names(Some("n"), &|_| true), ["n/b", "n/c", "n/d"]);
    assert_eq!(names(None, &|labels| labels.get("app").is_some()), ["z/a"]);

    let owned_by = |uid| -> Vec<_> {
        view.snapshot()
            .owned_by(uid)
            .into_iter()
            .map(|(_, object)| object.key.name().to_owned())
            .collect()
    };
    assert_eq!(owned_by("o1"), ["b", "c"]);
    let mut moved = owned("b", "o2");
    moved["metadata"]["resourceVersion"] = json!("11");
    watch.send("MODIFIED", &moved);
    watch.send("DELETED", &{
        let mut gone = map("c", "c", 12);
        gone["metadata"]["ownerReferences"] = json!(null);
        gone
    });
    test.settle().await;
    assert_eq!(owned_by("o1"), [""; 0]);
    assert_eq!(owned_by("o2"), ["b"]);
    let sizes = test.caches.sizes();
    assert_eq!(sizes[0].objects, 3);
    let all = view.snapshot().list(&maps(), None, &|_| true).unwrap();
    let bytes: usize = all.iter().map(|object| object.bytes()).sum();
    // The dictionary is the text of the first listed object.
    let first = all.iter().find(|object| object.key == ObjectKey::new("z", "a")).unwrap();
    assert_eq!(sizes[0].bytes, bytes + first.text.len());
}

#[tokio::test(start_paused = true)]
async fn view_of_some_namespaces_lists_and_reads_only_those() {
    let test = Test::new();
    test.server.always("GET /api/v1/namespaces/n/configmaps", list(10, &[map("x", "u1", 5)]));
    test.server.always("GET /api/v1/namespaces/o/configmaps", list(10, &[]));
    let client = test.server.client("a");
    let namespaces = Namespaces::Only(["n".to_owned(), "o".to_owned()].into());
    let view = test.caches.open(&client, "a", &[maps()], &namespaces);
    view.settled().await;
    assert_eq!(cached(&view, "x"), "u1@5");
    assert_eq!(view.snapshot().list(&maps(), None, &|_| true).unwrap().len(), 1);
    assert_eq!(
        view.snapshot().get(&maps(), &ObjectKey::new("p", "x")),
        CacheLookup::Unreadable(CacheReadError::Undeclared)
    );
    assert!(view.covers(&maps(), "n") && !view.covers(&maps(), "p"));
    assert_eq!(test.server.count("/api/v1/configmaps"), 0);
}

#[tokio::test(start_paused = true)]
async fn metadata_view_lists_metadata_into_a_cache_of_its_own() {
    let (test, whole, _watch) = Test::synced(&[map("x", "u1", 5)]).await;
    let client = test.server.client("a");
    let view = test.caches.open_metadata(&client, "a", &[maps()], &Namespaces::All);
    view.settled().await;
    assert_eq!(cached(&view, "x"), "u1@5");
    let accepts = test.server.accepts();
    assert_eq!(accepts.iter().filter(|accept| accept.contains("PartialObjectMeta")).count(), 2);
    test.caches.record_write(&maps(), object(&map("x", "u1", 20)));
    assert_eq!(cached(&whole, "x"), "u1@20");
    assert_eq!(cached(&view, "x"), "u1@5", "the cache of metadata learns of writes from its watch");
    let sizes: Vec<_> = test.caches.sizes().iter().map(|size| size.metadata_only).collect();
    assert_eq!(sizes, [false, true]);
}
