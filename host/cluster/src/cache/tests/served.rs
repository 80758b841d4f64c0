//! Kinds that the API server serves otherwise than they are declared.

use super::support::*;
use super::*;

const FOOS: &str = "/apis/x.dev/v1/foos";
const X_DEV: &str = "GET /apis/x.dev/v1";

fn foos() -> Kind {
    Kind::namespaced("x.dev/v1", "Foo", "foos")
}

fn served_as(kind: &str, namespaced: bool) -> Reply {
    Reply::Json(200, crate::scripted::resources(&[("foos", kind, namespaced)]))
}

fn foo(kind: &str, name: &str, version: u64) -> Value {
    let mut object = map(name, &format!("u-{name}"), version);
    object["apiVersion"] = "x.dev/v1".into();
    object["kind"] = kind.into();
    object
}

/// A test whose module views Foos, served as declared, and the client of the module.
async fn of_foos(items: &[Value]) -> (Test, crate::ApiClient, View) {
    let test = Test::new();
    test.server.always(X_DEV, served_as("Foo", true));
    test.server.always(&format!("GET {FOOS}"), list(10, items));
    let client = test.server.client("a");
    let view = test.caches.open(&client, "a", &[foos()], &Namespaces::All);
    view.settled().await;
    test.notices.take();
    (test, client, view)
}

fn is_mismatched(view: &View) -> bool {
    matches!(view.states()[&foos()], KindState::Mismatched(_))
}

#[tokio::test(start_paused = true)]
async fn mismatched_kind_is_never_listed_until_the_server_serves_it_as_declared() {
    let test = Test::new();
    test.server.always(&format!("GET {FOOS}"), list(10, &[foo("Foo", "x", 5)]));
    for reply in [served_as("Bar", true), served_as("Foo", false)] {
        test.server.always(X_DEV, reply);
        let client = test.server.client("a");
        let view = test.caches.open(&client, "a", &[foos()], &Namespaces::All);
        view.settled().await;
        tokio::time::sleep(Duration::from_mins(10)).await;
        assert!(is_mismatched(&view));
        assert!(matches!(
            view.snapshot().get(&foos(), &key("x")),
            CacheLookup::Unreadable(CacheReadError::Mismatched(_))
        ));
        assert_eq!(test.server.count(FOOS), 0);
    }
    let client = test.server.client("a");
    let view = test.caches.open(&client, "a", &[foos()], &Namespaces::All);
    view.settled().await;
    assert!(is_mismatched(&view));
    test.server.always(X_DEV, served_as("Foo", true));
    client.discovery().forget("x.dev");
    test.caches.kind_may_be_served("x.dev");
    eventually("it is read", || view.states()[&foos()] == KindState::Synced).await;
}

#[tokio::test(start_paused = true)]
async fn synced_kind_whose_definition_is_replaced_is_closed() {
    for kind in [("Bar", true), ("Foo", false)] {
        let (test, client, view) = of_foos(&[foo("Foo", "x", 5)]).await;
        let _watch = test.server.watch(FOOS).await;
        test.server.always(X_DEV, served_as(kind.0, kind.1));
        client.discovery().forget("x.dev");
        test.caches.kind_may_be_served("x.dev");
        eventually("it is closed", || is_mismatched(&view)).await;
        let notices = test.notices.take();
        assert_eq!(notices[0], "n/x u-x@5 -> - Watch", "the cached object is removed: {notices:?}");
        let before = test.server.count(FOOS);
        tokio::time::sleep(Duration::from_mins(10)).await;
        assert_eq!(test.server.count(FOOS), before, "the watch ends and no other one follows");
    }
}

#[tokio::test(start_paused = true)]
async fn discovery_that_lags_behind_a_definition_is_read_again_soon() {
    let (test, client, view) = of_foos(&[]).await;
    let _watch = test.server.watch(FOOS).await;
    client.discovery().forget("x.dev");
    test.caches.kind_may_be_served("x.dev");
    test.settle().await;
    assert_eq!(view.states()[&foos()], KindState::Synced);
    test.server.always(X_DEV, served_as("Bar", true));
    tokio::time::sleep(crate::settings::DISCOVERY_SETTLES + Duration::from_secs(1)).await;
    assert!(is_mismatched(&view));
}

#[tokio::test(start_paused = true)]
async fn mismatch_without_a_watch_event_is_found_within_the_discovery_period() {
    let (test, _, view) = of_foos(&[]).await;
    let asked = || test.server.count("GET /apis/x.dev/v1") - test.server.count(FOOS);
    assert_eq!(asked(), 1);
    tokio::time::sleep(Duration::from_hours(1)).await;
    assert!(asked() <= 15, "{} in an hour", asked());
    test.server.always(X_DEV, served_as("Bar", true));
    tokio::time::sleep(2 * crate::settings::DISCOVERY_PERIOD).await;
    assert!(is_mismatched(&view));
}

#[tokio::test(start_paused = true)]
async fn second_list_of_a_watch_compares_the_kind_with_discovery_first() {
    let (test, _, view) = of_foos(&[foo("Foo", "x", 5)]).await;
    let watch = test.server.watch(FOOS).await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    test.server.always(X_DEV, served_as("Bar", true));
    test.server.always(&format!("GET {FOOS}"), list(20, &[foo("Bar", "y", 15)]));
    let before = test.server.count(&format!("GET {FOOS}?"));
    // 410: the watcher lists again by itself.
    let expired = crate::scripted::status(410, "Expired", "too old", &json!({}));
    watch.send("ERROR", &expired);
    eventually("it is closed", || is_mismatched(&view)).await;
    assert_eq!(test.server.count(&format!("GET {FOOS}?")), before, "{:#?}", test.server.log());
}

#[tokio::test(start_paused = true)]
async fn object_of_another_kind_is_left_out() {
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "data": {"a": "aHVudGVyMg=="},
        "metadata": {"namespace": "n", "name": "s", "uid": "u", "resourceVersion": "6"}});
    let (test, client, view) = of_foos(&[foo("Foo", "x", 5), secret.clone()]).await;
    let watch = test.server.watch(FOOS).await;
    let mut late = secret.clone();
    late["metadata"]["name"] = "t".into();
    watch.send("ADDED", &late);
    watch.send("ADDED", &foo("Foo", "y", 8));
    let get = |name: &str| view.snapshot().get(&foos(), &key(name));
    eventually("the watch goes on", || matches!(get("y"), CacheLookup::Found(_))).await;
    assert!(matches!(get("x"), CacheLookup::Found(_)));
    assert_eq!((get("s"), get("t")), (CacheLookup::Absent, CacheLookup::Absent));
    let path = "GET /apis/x.dev/v1/namespaces/n/foos/s";
    test.server.always(path, Reply::Json(200, secret));
    let error = client.get(&foos(), &key("s")).await.unwrap_err().to_string();
    assert!(error.contains("the object says that it is v1 Secret"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn object_of_another_namespace_or_scope_is_left_out() {
    let at = |namespace: Value, name: &str| {
        let mut object = foo("Foo", name, 5);
        object["metadata"]["namespace"] = namespace;
        object
    };
    let test = Test::new();
    test.server.always(X_DEV, served_as("Foo", true));
    let items = [at("n".into(), "a"), at("victim".into(), "b"), at("".into(), "c")];
    let path = "GET /apis/x.dev/v1/namespaces/n/foos";
    test.server.always(path, list(10, &items));
    let only = Namespaces::Only(["n".to_owned()].into());
    let client = test.server.client("a");
    let view = test.caches.open(&client, "a", &[foos()], &only);
    view.settled().await;
    let all = view.snapshot().list(&foos(), None, &|_| true).unwrap();
    let names: Vec<_> = all.iter().map(|object| object.key.to_string()).collect();
    assert_eq!(names, ["n/a"]);
}

#[tokio::test(start_paused = true)]
async fn secrets_of_the_host_are_left_out_of_a_modules_cache() {
    let test = Test::new();
    let secrets = Kind::namespaced("v1", "Secret", "secrets");
    let secret = |namespace: &str, name: &str| {
        json!({"metadata": {"namespace": namespace, "name": name, "uid": name, "resourceVersion": "5"},
            "data": {"key": "aHVudGVyMg=="}})
    };
    let items = [
        secret("innkeeper-modules", "token"),
        secret("innkeeper-system", "innkeeper-digest-key"),
        secret("n", "a"),
    ];
    test.server.always("GET /api/v1/secrets", list(10, &items));
    let client = test.server.client("a");
    let view = test.caches.open(&client, "a", std::slice::from_ref(&secrets), &Namespaces::All);
    let watch = test.server.watch("/api/v1/secrets").await;
    let mut added = secret("innkeeper-system", "innkeeper-digest-key");
    added["metadata"]["resourceVersion"] = "12".into();
    watch.send("MODIFIED", &added);
    let mut other = secret("n", "b");
    other["metadata"]["resourceVersion"] = "13".into();
    watch.send("ADDED", &other);
    let all = || view.snapshot().list(&secrets, None, &|_| true).unwrap();
    eventually("the watch is read", || all().len() > 1).await;
    let names: Vec<_> = all().iter().map(|object| object.key.to_string()).collect();
    assert_eq!(names, ["n/a", "n/b"]);
    assert!(all().iter().all(|object| !object.text.read().contains("aHVudGVyMg")));
}

#[tokio::test(start_paused = true)]
async fn failed_discovery_keeps_the_kind_unlisted_until_it_answers() {
    let test = Test::new();
    let away = crate::scripted::status(503, "ServiceUnavailable", "away", &json!({}));
    test.server.always(X_DEV, Reply::Json(503, away));
    test.server.always(&format!("GET {FOOS}"), list(10, &[]));
    let client = test.server.client("a");
    let view = test.caches.open(&client, "a", &[foos()], &Namespaces::All);
    eventually("the failure is reported", || {
        matches!(view.states()[&foos()], KindState::Failing(_))
    })
    .await;
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert_eq!(test.server.count(FOOS), 0);
    test.server.always(X_DEV, served_as("Foo", true));
    eventually("it is read", || view.states()[&foos()] == KindState::Synced).await;
}
