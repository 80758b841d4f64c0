mod served;

use std::sync::Mutex;
use std::time::Duration;

use serde_json::{Value, json};

use super::*;
use crate::scripted::{Reply, Server, allowed, eventually, forbidden, list};
use crate::{ApiError, KindState};

const MAPS: &str = "/api/v1/configmaps";
const REVIEW: &str = "POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews";

fn maps() -> Kind {
    Kind::namespaced("v1", "ConfigMap", "configmaps")
}

fn map(name: &str, uid: &str, version: u64) -> Value {
    json!({ "metadata": {
        "namespace": "n", "name": name, "uid": uid, "resourceVersion": version.to_string(),
    }})
}

fn object(value: &Value) -> Arc<Object> {
    Arc::new(Object::decode(&maps(), &value.to_string(), None).unwrap())
}

fn key(name: &str) -> ObjectKey {
    ObjectKey::new("n", name)
}

/// Writes down what it is told.
#[derive(Default)]
struct Told(Mutex<Vec<String>>);

impl Told {
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }

    fn count(&self) -> usize {
        self.0.lock().unwrap().len()
    }
}

impl Listener for Told {
    fn changed(&self, change: &Change) {
        let version = |object: &Option<Arc<Object>>| {
            object.as_ref().map_or("-".into(), |o| format!("{}@{}", o.uid, o.resource_version))
        };
        let line = format!(
            "{} {} -> {} {:?}",
            change.key,
            version(&change.before),
            version(&change.after),
            change.source
        );
        self.0.lock().unwrap().push(line);
    }

    fn state_changed(&self, change: &StateChange) {
        let state = match &change.state {
            KindState::Forbidden(denial) => format!("Forbidden: {denial}"),
            state => format!("{state:?}"),
        };
        self.0.lock().unwrap().push(format!("{}: {} {state}", change.module, change.kind.kind));
    }
}

struct Test {
    server: Server,
    caches: Caches,
    told: Arc<Told>,
}

impl Test {
    fn new() -> Self {
        let server = Server::new();
        let told = Arc::new(Told::default());
        let caches = Caches::new(Server::env(), told.clone());
        Self { server, caches, told }
    }

    fn open(&self, module: &str) -> View {
        let client = self.server.client(module);
        self.caches.open(&client, module, &[maps()], &Namespaces::All)
    }

    /// A view that has synced, with one watch open; what was told so far is forgotten.
    async fn synced(items: &[Value]) -> (Self, View, crate::scripted::Watch) {
        let test = Self::new();
        test.server.always(&format!("GET {MAPS}"), list(10, items));
        let view = test.open("a");
        let watch = test.server.watch(MAPS).await;
        assert_eq!(test.told.take(), ["a: ConfigMap Synced"]);
        (test, view, watch)
    }

    async fn tells(&self, lines: &[&str]) {
        eventually(&format!("{} lines are told", lines.len()), || self.told.count() >= lines.len())
            .await;
        assert_eq!(self.told.take(), lines);
    }

    /// Long enough for everything that is on the way.
    async fn settle(&self) {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

fn seen(view: &View, name: &str) -> String {
    match view.snapshot().get(&maps(), &key(name)) {
        Lookup::Found(object) => format!("{}@{}", object.uid, object.resource_version),
        other => format!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_kind_is_not_read_before_it_has_synced() {
    let test = Test::new();
    test.server.always(&format!("GET {MAPS}"), list(10, &[map("x", "u1", 5)]));
    let view = test.open("a");
    assert_eq!(view.states()[&maps()], KindState::Syncing);
    assert_eq!(seen(&view, "x"), r#"Unreadable(NotSynced("not read yet"))"#);
    view.settled().await;
    assert_eq!(seen(&view, "x"), "u1@5");
    assert_eq!(seen(&view, "y"), "Absent");
    assert_eq!(
        test.told.take(),
        ["a: ConfigMap Synced"],
        "what the first list shows is not told one by one"
    );
    let other = Kind::namespaced("v1", "Secret", "secrets");
    assert_eq!(
        view.snapshot().get(&other, &key("x")),
        Lookup::Unreadable(CacheReadError::Undeclared),
        "nothing but declared kinds"
    );
    let log = test.server.log();
    assert_eq!(log[0], "0.0 a GET /api/v1/configmaps?&limit=250", "never resourceVersion=0");
}

#[tokio::test(start_paused = true)]
async fn events_are_told_in_order_and_a_frozen_view_stays_as_it_is() {
    let (test, view, watch) = Test::synced(&[]).await;
    let before = view.snapshot();
    watch.send("ADDED", &map("x", "u1", 11));
    watch.send("MODIFIED", &map("x", "u1", 12));
    watch.send("DELETED", &map("x", "u1", 13));
    watch.send("ADDED", &map("x", "u2", 14));
    test.tells(&[
        "n/x - -> u1@11 Watch",
        "n/x u1@11 -> u1@12 Watch",
        "n/x u1@12 -> - Watch",
        "n/x - -> u2@14 Watch",
    ])
    .await;
    assert_eq!(seen(&view, "x"), "u2@14");
    assert_eq!(before.get(&maps(), &key("x")), Lookup::Absent);
}

#[tokio::test(start_paused = true)]
async fn a_write_is_read_at_once_and_its_echo_and_what_is_older_are_dropped() {
    let (test, view, watch) = Test::synced(&[map("x", "u1", 5)]).await;
    test.caches.record_write(&maps(), &object(&map("x", "u1", 20)));
    assert_eq!(seen(&view, "x"), "u1@20");
    watch.send("MODIFIED", &map("x", "u1", 15));
    watch.send("MODIFIED", &map("x", "u1", 20));
    watch.send("MODIFIED", &map("x", "u1", 21));
    test.tells(&["n/x u1@5 -> u1@20 Write", "n/x u1@20 -> u1@21 Watch"]).await;
    // The response of a write that is older than what the watch has brought.
    test.caches.record_write(&maps(), &object(&map("x", "u1", 19)));
    assert_eq!(seen(&view, "x"), "u1@21");
    assert_eq!(test.told.take(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_deleted_object_does_not_come_back_by_late_news() {
    let (test, view, watch) = Test::synced(&[map("x", "u1", 5)]).await;
    test.caches.record_deletion(&maps(), &key("x"), "u1");
    assert_eq!(test.told.take(), ["n/x u1@5 -> - Write"]);
    watch.send("MODIFIED", &map("x", "u1", 18));
    watch.send("DELETED", &map("x", "u1", 19));
    test.settle().await;
    test.caches.record_write(&maps(), &object(&map("x", "u1", 18)));
    assert_eq!(seen(&view, "x"), "Absent");
    // Another of that name is another.
    test.caches.record_write(&maps(), &object(&map("x", "u2", 25)));
    watch.send("DELETED", &map("x", "u1", 19));
    test.settle().await;
    assert_eq!(seen(&view, "x"), "u2@25");
    assert_eq!(test.told.take(), ["n/x - -> u2@25 Write"]);
}

#[tokio::test(start_paused = true)]
async fn a_relist_sweeps_what_is_gone_but_not_what_was_written_since_it_began() {
    let (test, view, watch) = Test::synced(&[map("gone", "u1", 5), map("kept", "u2", 6)]).await;
    // Written before the relist begins, and not in it: it was deleted meanwhile.
    test.caches.record_write(&maps(), &object(&map("early", "u3", 11)));
    test.told.take();

    test.server.once(&format!("GET {MAPS}"), Reply::Hang);
    test.server.always(&format!("GET {MAPS}"), list(30, &[map("kept", "u2", 6)]));
    watch.send(
        "ERROR",
        &json!({ "kind": "Status", "code": 410, "reason": "Expired", "message": "too old" }),
    );
    eventually("the relist has begun", || test.server.count("limit=250") == 2).await;
    // Written while the list hangs: vouched for, until it is looked up.
    test.caches.record_write(&maps(), &object(&map("late", "u4", 12)));
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
    test.tells(&["n/late - -> u4@12 Write", "n/early u3@11 -> - Watch", "n/gone u1@5 -> - Watch"])
        .await;
    assert_eq!(seen(&view, "late"), "u4@12");
    assert_eq!(seen(&view, "kept"), "u2@6");
    test.tells(&["n/late u4@12 -> - Watch"]).await;
    assert_eq!(test.server.count("configmaps/late"), 1, "one lookup");
}

#[tokio::test(start_paused = true)]
async fn what_is_unknown_is_settled_by_an_event_a_relist_or_a_lookup() {
    let (test, view, watch) = Test::synced(&[map("x", "u1", 5), map("y", "u2", 6)]).await;
    let mark = |name| test.caches.mark_unknown(&maps(), &key(name));
    mark("x");
    mark("z");
    assert_eq!(seen(&view, "x"), "Unknown");
    assert_eq!(seen(&view, "y"), "u2@6");
    assert_eq!(view.snapshot().unknown().len(), 2);

    // What is older than the cache proves nothing; what is newer does.
    watch.send("MODIFIED", &map("x", "u1", 4));
    test.settle().await;
    assert_eq!(seen(&view, "x"), "Unknown");
    watch.send("MODIFIED", &map("x", "u1", 11));
    test.settle().await;
    assert_eq!(seen(&view, "x"), "u1@11");
    // An answer "not found" that comes after the event is older news.
    test.caches.resolve_unknown(&maps(), &key("x"), None);
    assert_eq!(seen(&view, "x"), "u1@11");

    test.caches.resolve_unknown(&maps(), &key("z"), Some(&object(&map("z", "u3", 12))));
    assert_eq!(seen(&view, "z"), "u3@12");
    mark("y");
    test.caches.resolve_unknown(&maps(), &key("y"), None);
    assert_eq!(seen(&view, "y"), "Absent");
    assert_eq!(
        test.told.take(),
        ["n/x u1@5 -> u1@11 Watch", "n/z - -> u3@12 Lookup", "n/y u2@6 -> - Lookup"]
    );

    mark("w");
    test.server.always(&format!("GET {MAPS}"), list(30, &[]));
    watch.send(
        "ERROR",
        &json!({ "kind": "Status", "code": 410, "reason": "Expired", "message": "too old" }),
    );
    eventually("the relist settles it", || seen(&view, "w") == "Absent").await;
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_dies_in_silence_is_resumed_where_it_was() {
    let (test, view, watch) = Test::synced(&[]).await;
    watch.send("ADDED", &map("x", "u1", 11));
    // The server never says anything again, and does not end the watch either.
    let again = test.server.watch(MAPS).await;
    let resumed = test.server.log().pop().unwrap();
    assert!(resumed.contains("resourceVersion=11"), "{resumed}");
    let seconds: f64 = resumed.split(' ').next().unwrap().parse().unwrap();
    let cut = (crate::settings::WATCH_TIMEOUT + crate::settings::WATCH_GRACE).as_secs_f64();
    assert!((cut..cut + 2.0).contains(&seconds), "{resumed}");
    again.send("MODIFIED", &map("x", "u1", 12));
    eventually("the event arrives", || seen(&view, "x") == "u1@12").await;
    assert_eq!(test.server.count("limit=250"), 1, "no relist");
    drop(watch);
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_the_server_ends_is_resumed_at_once_and_quietly() {
    let (test, view, watch) = Test::synced(&[]).await;
    drop(watch);
    let again = test.server.watch(MAPS).await;
    again.send("ADDED", &map("x", "u1", 11));
    eventually("the event arrives", || seen(&view, "x") == "u1@11").await;
    let log = test.server.log();
    assert!(log.last().unwrap().starts_with("0.0 "), "{log:?}");
    assert_eq!(test.told.take(), ["n/x - -> u1@11 Watch"]);
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_is_not_served_is_polled_and_works_when_it_is() {
    let test = Test::new();
    let view = test.open("a");
    view.settled().await;
    assert_eq!(seen(&view, "x"), "Unreadable(NotServed)");
    test.tells(&["a: ConfigMap NotServed"]).await;
    tokio::time::sleep(Duration::from_mins(10)).await;
    let asked = test.server.count("limit=250");
    assert!((20..35).contains(&asked), "{asked} lists: 1 s doubling to 30 s");

    test.server.always(&format!("GET {MAPS}"), list(10, &[map("x", "u1", 5)]));
    test.caches.kind_may_be_served("apps");
    test.settle().await;
    assert_eq!(seen(&view, "x"), "Unreadable(NotServed)", "another group");
    test.caches.kind_may_be_served("");
    test.settle().await;
    assert_eq!(seen(&view, "x"), "u1@5", "at once");
    test.tells(&["a: ConfigMap Synced"]).await;

    // Its definition is deleted: the watch ends, and does not start again.
    let watch = test.server.watch(MAPS).await;
    for verb in ["GET", "WATCH"] {
        test.server.always(&format!("{verb} {MAPS}"), Reply::Text(404, "404 page not found"));
    }
    drop(watch);
    test.tells(&["n/x u1@5 -> - Watch", "a: ConfigMap NotServed"]).await;
    assert_eq!(seen(&view, "x"), "Unreadable(NotServed)");
}

#[tokio::test(start_paused = true)]
async fn a_right_that_is_granted_later_works_then_and_one_taken_away_is_noticed() {
    let test = Test::new();
    test.server.always(&format!("GET {MAPS}"), forbidden());
    test.server.always(REVIEW, allowed(false));
    let view = test.open("a");
    view.settled().await;
    let denied = "ServiceAccount m/a may not list configmaps in the whole cluster";
    test.tells(&[&format!("a: ConfigMap Forbidden: {denied}")]).await;
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert_eq!(test.server.count("limit=250"), 1, "rights are asked for by reviews");
    let reviews = test.server.count(REVIEW);
    assert!((4..9).contains(&reviews), "{reviews} reviews: 1 s doubling to 30 s");

    test.server.always(&format!("GET {MAPS}"), list(10, &[map("x", "u1", 5)]));
    test.server.always(REVIEW, allowed(true));
    test.tells(&["a: ConfigMap Syncing", "a: ConfigMap Synced"]).await;
    assert_eq!(seen(&view, "x"), "u1@5");

    let watch = test.server.watch(MAPS).await;
    test.server.always(&format!("WATCH {MAPS}"), forbidden());
    test.server.always(REVIEW, allowed(false));
    drop(watch);
    let denied = "ServiceAccount m/a may not watch configmaps in the whole cluster";
    test.tells(&[&format!("a: ConfigMap Forbidden: {denied}")]).await;
    let Lookup::Unreadable(CacheReadError::Forbidden(denial)) =
        view.snapshot().get(&maps(), &key("x"))
    else {
        panic!("{}", seen(&view, "x"));
    };
    assert_eq!(denial.verb.as_ref(), "watch");
}

#[tokio::test(start_paused = true)]
async fn another_module_is_admitted_after_its_own_review_only() {
    let (test, a, _watch) = Test::synced(&[map("x", "u1", 5)]).await;
    test.server.always(&format!("b {REVIEW}"), allowed(false));
    test.server.always(&format!("c {REVIEW}"), allowed(true));
    let b = test.open("b");
    let c = test.open("c");
    assert_eq!(seen(&c, "x"), r#"Unreadable(NotSynced("not read yet"))"#);
    let denied = "ServiceAccount m/b may not list configmaps in the whole cluster";
    test.tells(&[&format!("b: ConfigMap Forbidden: {denied}"), "c: ConfigMap Synced"]).await;
    assert_eq!(seen(&a, "x"), "u1@5");
    assert_eq!(seen(&c, "x"), "u1@5");
    assert!(matches!(b.states()[&maps()], KindState::Forbidden(_)));
    assert_eq!(test.server.count("limit=250"), 1, "one list for all");

    test.server.always(&format!("b {REVIEW}"), allowed(true));
    test.tells(&["b: ConfigMap Synced"]).await;
    test.server.always(&format!("c {REVIEW}"), allowed(false));
    let denied = "ServiceAccount m/c may not list configmaps in the whole cluster";
    test.tells(&[&format!("c: ConfigMap Forbidden: {denied}")]).await;
    assert_eq!(seen(&b, "x"), "u1@5");
}

#[tokio::test(start_paused = true)]
async fn a_cache_is_taken_over_without_a_gap_and_closed_with_its_last_view() {
    let (test, a, watch) = Test::synced(&[map("x", "u1", 5)]).await;
    test.server.always(REVIEW, allowed(true));
    let b = test.open("b");
    test.tells(&["b: ConfigMap Synced"]).await;
    test.server.always(&format!("GET {MAPS}"), list(20, &[map("x", "u1", 5), map("y", "u2", 15)]));
    drop(a);
    assert_eq!(seen(&b, "x"), "u1@5");
    let taken = test.server.watch(MAPS).await;
    assert!(test.server.log().pop().unwrap().contains(" b GET"), "with b's session");
    test.tells(&["n/y - -> u2@15 Watch"]).await;
    drop((taken, watch));

    drop(b);
    let requests = test.server.log().len();
    tokio::time::sleep(Duration::from_mins(5)).await;
    assert_eq!(test.server.log().len(), requests, "nobody views, nobody watches");
    assert_eq!(test.caches.sizes(), []);
}

#[tokio::test(start_paused = true)]
async fn a_module_keeps_its_view_when_it_opens_a_new_one_before_it_drops_the_old() {
    let (test, old, _watch) = Test::synced(&[map("x", "u1", 5)]).await;
    let new = test.open("a");
    assert_eq!(seen(&new, "x"), "u1@5", "no gap");
    drop(old);
    test.settle().await;
    assert_eq!(seen(&new, "x"), "u1@5");
    assert_eq!(test.server.log().len(), 2, "one list, one watch");
}

#[tokio::test(start_paused = true)]
async fn a_holder_that_loses_its_right_is_replaced() {
    let (test, _a, watch) = Test::synced(&[map("x", "u1", 5)]).await;
    test.server.always(&format!("b {REVIEW}"), allowed(true));
    let b = test.open("b");
    test.tells(&["b: ConfigMap Synced"]).await;
    test.server.always(&format!("a {REVIEW}"), allowed(false));
    test.server.always(&format!("a WATCH {MAPS}"), forbidden());
    drop(watch);
    let denied = "ServiceAccount m/a may not watch configmaps in the whole cluster";
    test.tells(&[&format!("a: ConfigMap Forbidden: {denied}")]).await;
    let _taken = test.server.watch(MAPS).await;
    assert!(test.server.log().pop().unwrap().contains(" b GET"), "with b's session");
    assert_eq!(seen(&b, "x"), "u1@5");
}

/// No review of this account is answered any more.
fn reviews_fail(test: &Test, account: &str) {
    test.server.always(&format!("{account} {REVIEW}"), Reply::Busy(503, 1));
}

#[tokio::test(start_paused = true)]
async fn member_whose_reviews_fail_for_five_minutes_reads_nothing_until_one_is_answered() {
    let (test, a, _watch) = Test::synced(&[map("x", "u1", 5)]).await;
    test.server.always(REVIEW, allowed(true));
    let b = test.open("b");
    test.tells(&["b: ConfigMap Synced"]).await;
    reviews_fail(&test, "b");
    tokio::time::sleep(Duration::from_mins(4)).await;
    assert_eq!(seen(&b, "x"), "u1@5", "a short outage changes nothing");
    tokio::time::sleep(Duration::from_mins(3)).await;
    let KindState::Failing(why) = b.states()[&maps()].clone() else { panic!("{:?}", b.states()) };
    assert!(why.contains("ServiceAccount m/b") && why.contains("5 minutes"), "{why}");
    assert!(!seen(&b, "x").contains("u1"), "{}", seen(&b, "x"));
    assert_eq!(seen(&a, "x"), "u1@5", "others are not concerned");
    test.server.always(&format!("b {REVIEW}"), allowed(true));
    eventually("b reads again", || seen(&b, "x") == "u1@5").await;
}

#[tokio::test(start_paused = true)]
async fn holder_whose_reviews_fail_for_five_minutes_reads_nothing_until_one_is_answered() {
    let (test, a, _watch) = Test::synced(&[map("x", "u1", 5)]).await;
    reviews_fail(&test, "a");
    tokio::time::sleep(Duration::from_mins(4)).await;
    assert_eq!(seen(&a, "x"), "u1@5", "a short outage changes nothing");
    tokio::time::sleep(Duration::from_mins(4)).await;
    assert!(matches!(a.states()[&maps()], KindState::Failing(_)), "{:?}", a.states());
    assert!(!seen(&a, "x").contains("u1"), "{}", seen(&a, "x"));
    assert_eq!(test.server.count("limit=250"), 1, "its watch goes on");
    test.server.always(&format!("a {REVIEW}"), allowed(true));
    eventually("a reads again", || seen(&a, "x") == "u1@5").await;
}

#[tokio::test(start_paused = true)]
async fn holder_whose_right_goes_while_its_watches_are_accepted_is_told_by_its_review() {
    let (test, a, _watch) = Test::synced(&[map("x", "u1", 5)]).await;
    test.server.always(REVIEW, allowed(true));
    let b = test.open("b");
    test.tells(&["b: ConfigMap Synced"]).await;
    test.server.always(&format!("a {REVIEW}"), allowed(false));
    tokio::time::sleep(Duration::from_mins(3)).await;
    assert!(matches!(a.states()[&maps()], KindState::Forbidden(_)), "{:?}", a.states());
    assert_eq!(seen(&b, "x"), "u1@5", "b's session fills the cache now");
    assert!(test.server.log().iter().any(|line| line.contains(&format!(" b GET {MAPS}"))));
}

#[tokio::test(start_paused = true)]
async fn holder_that_may_no_longer_list_reads_nothing_though_it_may_watch() {
    let (test, a, _watch) = Test::synced(&[map("x", "u1", 5)]).await;
    test.server.always(REVIEW, allowed(true));
    test.server.always("a REVIEW list", allowed(false));
    tokio::time::sleep(Duration::from_mins(3)).await;
    let KindState::Forbidden(denial) = a.states()[&maps()].clone() else {
        panic!("{:?}", a.states());
    };
    assert_eq!(denial.verb.as_ref(), "list");
    assert!(!seen(&a, "x").contains("u1"), "{}", seen(&a, "x"));
    test.server.always("a REVIEW list", allowed(true));
    eventually("a reads again", || seen(&a, "x") == "u1@5").await;
}

#[tokio::test(start_paused = true)]
async fn holder_that_one_review_refuses_and_the_next_does_not_goes_on() {
    let (test, a, _watch) = Test::synced(&[map("x", "u1", 5)]).await;
    test.server.always(REVIEW, allowed(true));
    test.server.once(&format!("a {REVIEW}"), allowed(false));
    tokio::time::sleep(Duration::from_mins(5)).await;
    assert!(test.server.count(REVIEW) > 2, "it is reviewed");
    assert_eq!(test.told.take(), Vec::<String>::new());
    assert_eq!(seen(&a, "x"), "u1@5");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_not_there_is_said_and_waited_for() {
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
    eventually("it is read", || seen(&view, "x") == "u1@5").await;
    assert_eq!(test.told.take().len(), 2, "failing once, synced once");
}

#[tokio::test(start_paused = true)]
async fn lists_are_ordered_and_owners_found_over_all_kinds() {
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
    assert_eq!(sizes[0].bytes, all.iter().map(|object| object.bytes()).sum::<usize>());
}

#[tokio::test(start_paused = true)]
async fn a_view_of_some_namespaces_asks_for_those_and_sees_those() {
    let test = Test::new();
    test.server.always("GET /api/v1/namespaces/n/configmaps", list(10, &[map("x", "u1", 5)]));
    test.server.always("GET /api/v1/namespaces/o/configmaps", list(10, &[]));
    let client = test.server.client("a");
    let namespaces = Namespaces::Only(["n".to_owned(), "o".to_owned()].into());
    let view = test.caches.open(&client, "a", &[maps()], &namespaces);
    view.settled().await;
    assert_eq!(seen(&view, "x"), "u1@5");
    assert_eq!(view.snapshot().list(&maps(), None, &|_| true).unwrap().len(), 1);
    assert_eq!(
        view.snapshot().get(&maps(), &ObjectKey::new("p", "x")),
        Lookup::Unreadable(CacheReadError::Undeclared)
    );
    assert!(view.covers(&maps(), "n") && !view.covers(&maps(), "p"));
    assert_eq!(test.server.count("/api/v1/configmaps"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_refuses_everybody_while_it_starts_is_not_believed() {
    let (test, view, watch) = Test::synced(&[map("x", "u1", 5)]).await;
    for _ in 0..3 {
        test.server.once(&format!("WATCH {MAPS}"), forbidden());
    }
    drop(watch);
    let again = test.server.watch(MAPS).await;
    again.send("MODIFIED", &map("x", "u1", 11));
    eventually("the event arrives", || seen(&view, "x") == "u1@11").await;
    assert_eq!(test.told.take(), ["n/x u1@5 -> u1@11 Watch"], "no word of it");
}

/// A listener that uses the caches while it is told must not hang or lose the order.
#[tokio::test(start_paused = true)]
async fn a_listener_may_use_the_caches() {
    struct Nosy {
        caches: std::sync::OnceLock<Caches>,
        told: Told,
    }
    impl Listener for Nosy {
        fn changed(&self, change: &Change) {
            self.told.changed(change);
            if change.key == key("x") {
                let caches = self.caches.get().unwrap();
                caches.record_write(&maps(), &object(&map("y", "u2", 99)));
                assert_eq!(caches.sizes()[0].objects, 2);
            }
        }
        fn state_changed(&self, _: &StateChange) {}
    }
    let server = Server::new();
    server.always(&format!("GET {MAPS}"), list(10, &[]));
    let nosy = Arc::new(Nosy { caches: std::sync::OnceLock::new(), told: Told::default() });
    let caches = Caches::new(Server::env(), nosy.clone());
    let _ = nosy.caches.set(caches.clone());
    let view = caches.open(&server.client("a"), "a", &[maps()], &Namespaces::All);
    view.settled().await;
    caches.record_write(&maps(), &object(&map("x", "u1", 20)));
    assert_eq!(nosy.told.take(), ["n/x - -> u1@20 Write", "n/y - -> u2@99 Write"]);
}

/// The same script twice gives the same requests at the same times, and the same news.
#[test]
fn the_same_seed_asks_the_same() {
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
            (test.server.log(), test.told.take())
        })
    };
    let (log, told) = run();
    assert!(log.len() > 30, "{log:?}");
    assert_eq!((log, told), run());
}

#[tokio::test(start_paused = true)]
async fn a_refused_impersonation_names_the_host() {
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

#[tokio::test(start_paused = true)]
async fn metadata_alone_is_asked_for_and_cached_apart() {
    let (test, whole, _watch) = Test::synced(&[map("x", "u1", 5)]).await;
    let client = test.server.client("a");
    let view = test.caches.open_metadata(&client, "a", &[maps()], &Namespaces::All);
    view.settled().await;
    assert_eq!(seen(&view, "x"), "u1@5");
    let accepts = test.server.accepts();
    assert_eq!(accepts.iter().filter(|accept| accept.contains("PartialObjectMeta")).count(), 2);
    test.caches.record_write(&maps(), &object(&map("x", "u1", 20)));
    assert_eq!(seen(&whole, "x"), "u1@20");
    assert_eq!(seen(&view, "x"), "u1@5", "it learns from its watch");
    let sizes: Vec<_> = test.caches.sizes().iter().map(|size| size.metadata_only).collect();
    assert_eq!(sizes, [false, true]);
}

#[tokio::test(start_paused = true)]
async fn an_event_that_overtakes_the_answer_to_its_write_waits_for_it() {
    let (test, view, watch) = Test::synced(&[map("x", "u1", 5), map("y", "u2", 6)]).await;
    let writing = test.caches.begin_write(&maps(), &key("x"));
    let other = test.caches.begin_write(&maps(), &key("x"));
    watch.send("MODIFIED", &map("x", "u1", 20));
    watch.send("MODIFIED", &map("x", "u1", 21));
    watch.send("MODIFIED", &map("y", "u2", 22));
    test.tells(&["n/y u2@6 -> u2@22 Watch"]).await;
    assert_eq!(seen(&view, "x"), "u1@5");
    test.caches.record_write(&maps(), &object(&map("x", "u1", 20)));
    drop(writing);
    assert_eq!(test.told.take(), ["n/x u1@5 -> u1@20 Write"], "another write is under way");
    drop(other);
    assert_eq!(test.told.take(), ["n/x u1@20 -> u1@21 Watch"]);

    // A write that is given up lets everything pass.
    let writing = test.caches.begin_write(&maps(), &key("x"));
    watch.send("DELETED", &map("x", "u1", 23));
    test.settle().await;
    assert_eq!(seen(&view, "x"), "u1@21");
    drop(writing);
    assert_eq!(test.told.take(), ["n/x u1@21 -> - Watch"]);
}
