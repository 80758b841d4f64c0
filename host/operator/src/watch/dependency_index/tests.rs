use serde_json::json;

use super::*;
use crate::watch::read_scope::ReadScope;

fn kind(name: &str) -> Arc<Kind> {
    Arc::new(Kind::namespaced("v1", name, ""))
}

fn object(name: &str, labels: &serde_json::Value, owner: &str) -> Arc<Object> {
    let text = json!({"metadata": {"name": name, "namespace": "n", "labels": labels,
        "ownerReferences": [{"apiVersion": "v1", "kind": "P", "name": "p", "uid": owner}]}});
    Arc::new(Object::decode(&kind("Pod"), &text.to_string(), None).unwrap())
}

fn change(before: Option<Arc<Object>>, after: Option<Arc<Object>>) -> Arc<Change> {
    Arc::new(Change { kind: kind("Pod"), before, after, writer: None })
}

fn request(name: &str) -> ReconcileRequest {
    ReconcileRequest { module: "m".into(), key: ObjectKey::new("n", name) }
}

fn get(name: &str) -> Read {
    Read::Get { kind: kind("Pod"), key: ObjectKey::new("n", name) }
}

fn list(namespace: &str, selector: &str) -> Read {
    Read::List {
        kind: kind("Pod"),
        namespace: namespace.into(),
        selector: Arc::new(selector.parse().unwrap()),
    }
}

fn owned(uid: &str, namespace: &str) -> Read {
    Read::Owned { uid: uid.into(), namespace: namespace.into() }
}

/// A limit that nothing reaches.
const ALL: usize = usize::MAX;

/// Compares no fields: every change counts.
fn reads_all(_: &Change, _: Option<&KindMasks>) -> Unread {
    Unread::default()
}

fn record(read: &Read) -> ReadRecord {
    let mut record = ReadRecord::default();
    match read {
        Read::Get { kind, key } => record.get(kind, key),
        Read::List { kind, namespace, selector } => {
            record.list(kind, namespace, (**selector).clone());
        }
        Read::Owned { uid, namespace } => record.owned(uid, namespace),
    }
    record
}

fn index(reads: &[(&str, Read)]) -> DependencyIndex {
    let mut index = DependencyIndex::default();
    for (name, read) in reads {
        let begun = index.begin(&request(name));
        assert!(!index.record(&request(name), begun, record(read), ALL, reads_all));
    }
    index
}

/// The names of those that a change wakes, each of which is run then.
fn woken(index: &mut DependencyIndex, change: &Arc<Change>) -> Vec<String> {
    let woken = index.changed(change, &UnreadByModule::default());
    for request in &woken {
        let begun = index.begin(request);
        index.abandon(begun);
    }
    woken.into_iter().map(|request| request.key.name().into()).collect()
}

#[test]
fn a_name_that_was_read_wakes_its_reader_even_if_it_was_not_there() {
    let mut index = index(&[("a", get("x")), ("b", get("y"))]);
    let created = change(None, Some(object("x", &json!({}), "")));
    assert_eq!(woken(&mut index, &created), ["a"]);
}

#[test]
fn a_list_wakes_when_an_object_comes_changes_or_leaves_it() {
    let mut index = index(&[
        ("here", list("n", "app=web")),
        ("everywhere", list("", "app=web,tier!=db")),
        ("elsewhere", list("other", "app=web")),
        ("all", list("n", "")),
        ("db", list("n", "app=db")),
    ]);
    let web = object("x", &json!({"app": "web"}), "");
    let relabelled = object("x", &json!({"app": "db"}), "");
    assert_eq!(woken(&mut index, &change(None, Some(web.clone()))), ["all", "everywhere", "here"]);
    assert_eq!(
        woken(&mut index, &change(Some(web), Some(relabelled.clone()))),
        ["all", "db", "everywhere", "here"]
    );
    assert_eq!(woken(&mut index, &change(Some(relabelled), None)), ["all", "db"]);
}

#[test]
fn object_of_an_owner_wakes_the_requests_that_read_its_objects() {
    let mut index = index(&[("a", owned("u1", "")), ("b", owned("u2", ""))]);
    assert_eq!(woken(&mut index, &change(None, Some(object("x", &json!({}), "u2")))), ["b"]);
}

#[test]
fn object_that_names_an_owner_of_another_namespace_wakes_nobody() {
    let reads = [("here", owned("u", "n")), ("away", owned("u", "other")), ("all", owned("u", ""))];
    let mut index = index(&reads);
    let planted = change(None, Some(object("x", &json!({}), "u")));
    assert_eq!(woken(&mut index, &planted), ["all", "here"]);
    for name in ["here", "away", "all"] {
        index.forget(&request(name));
    }
    assert!(index.owned.is_empty(), "{:?}", index.owned);
}

#[test]
fn a_writer_is_not_woken_by_its_own_write() {
    let mut index = index(&[("a", get("x")), ("b", get("x"))]);
    let mut written = (*change(None, Some(object("x", &json!({}), "")))).clone();
    written.writer = Some(request("a"));
    assert_eq!(woken(&mut index, &Arc::new(written)), ["b"]);
}

#[test]
fn a_change_during_a_run_is_not_missed() {
    let mut index = DependencyIndex::default();
    let (first, second) = (index.begin(&request("run")), index.begin(&request("run")));
    assert_eq!(woken(&mut index, &change(None, Some(object("x", &json!({}), "")))), [""; 0]);
    let third = index.begin(&request("run"));
    assert!(index.record(&request("a"), first, record(&get("x")), ALL, reads_all));
    assert!(!index.record(&request("b"), second, record(&get("y")), ALL, reads_all));
    assert!(!index.record(&request("c"), third, record(&get("x")), ALL, reads_all));
    assert!(index.changes.is_empty(), "no run under way needs it");
}

#[test]
fn the_log_is_kept_only_as_long_as_a_run_needs_it() {
    let mut index = DependencyIndex::default();
    let long = index.begin(&request("run"));
    for _ in 0..10 {
        let _ = index
            .changed(&change(None, Some(object("x", &json!({}), ""))), &UnreadByModule::default());
        let short = index.begin(&request("run"));
        index.abandon(short);
    }
    assert_eq!(index.changes.len(), 10);
    index.abandon(long);
    assert_eq!(index.changes.len(), 0);
    let _ =
        index.changed(&change(None, Some(object("x", &json!({}), ""))), &UnreadByModule::default());
    assert_eq!(index.changes.len(), 0);
}

#[test]
fn reads_of_the_last_run_count_only() {
    let mut index = index(&[("a", get("x")), ("a", get("y"))]);
    assert_eq!(woken(&mut index, &change(None, Some(object("x", &json!({}), "")))), [""; 0]);
    assert_eq!(woken(&mut index, &change(None, Some(object("y", &json!({}), "")))), ["a"]);
    index.forget_module("m");
    assert!(index.gets.is_empty() && index.by_request.is_empty());
}

/// A record of this many names in a namespace, which it does not list.
fn names(count: usize) -> ReadRecord {
    let mut record = ReadRecord::default();
    for number in 0..count {
        record.get(&kind("Pod"), &ObjectKey::new("n", &format!("p{number}")));
    }
    record
}

fn bytes(index: &DependencyIndex) -> usize {
    index.bytes().map(|(_, bytes)| bytes).sum()
}

#[test]
fn records_beyond_the_bytes_of_the_module_become_whole_kinds() {
    let mut index = DependencyIndex::default();
    for number in 0..100 {
        let begun = index.begin(&request("run"));
        index.record(&request(&format!("w{number:02}")), begun, names(500), 1 << 20, reads_all);
    }
    let small = 100 * SMALL_RECORD_BYTES;
    assert!(bytes(&index) < (1 << 20) + small, "{}", bytes(&index));
    // One that is small is kept as it is, of the same module and of another.
    let begun = index.begin(&request("run"));
    index.record(&request("small"), begun, record(&get("p0")), 1 << 20, reads_all);
    let other = ReconcileRequest { module: "other".into(), key: ObjectKey::new("n", "other") };
    let begun = index.begin(&request("run"));
    index.record(&other, begun, names(500), 1 << 20, reads_all);
    let unread = change(None, Some(object("unread", &json!({}), "")));
    let woken = woken(&mut index, &unread);
    assert!(!woken.contains(&"small".to_owned()) && !woken.contains(&"other".to_owned()));
    assert!(woken.len() >= 90, "{}", woken.len());
    index.forget_module("m");
    index.forget_module("other");
    assert_eq!(bytes(&index), 0);
    assert!(index.gets.is_empty() && index.lists.is_empty() && index.bytes.is_empty());
}

#[test]
fn a_record_that_takes_the_place_of_another_counts_once() {
    let mut index = DependencyIndex::default();
    for _ in 0..100 {
        for count in [500, 499] {
            let begun = index.begin(&request("run"));
            index.record(&request("a"), begun, names(count), 200_000, reads_all);
        }
    }
    assert_eq!(bytes(&index), names(499).bytes());
}

#[test]
fn selectors_beyond_the_comparisons_of_a_module_wake_their_readers() {
    let mut index = DependencyIndex::default();
    // Each reader has 16 selectors that ask for no one value and match nothing.
    let selectors: Vec<_> = (0..16).map(|number| format!("a{number},b,c,d,e,f,g")).collect();
    for reader in 0..3_000 {
        let mut record = ReadRecord::default();
        for selector in &selectors {
            record.list(&kind("Pod"), "n", selector.parse().unwrap());
        }
        let begun = index.begin(&request("run"));
        index.record(&request(&format!("w{reader:04}")), begun, record, ALL, reads_all);
    }
    let calm = ReconcileRequest { module: "calm".into(), key: ObjectKey::new("n", "calm") };
    let begun = index.begin(&request("run"));
    index.record(&calm, begun, record(&list("n", "zone,!old")), ALL, reads_all);
    let woken = woken(&mut index, &change(None, Some(object("x", &json!({}), ""))));
    let exact = COMPARISONS_MAX / (16 * 8);
    assert_eq!(woken.len(), 3_000 - exact, "those beyond the limit are woken");
    assert!(!woken.contains(&"calm".to_owned()), "the comparisons of another module are its own");
}

#[test]
fn an_object_with_thousands_of_labels_wakes_those_that_ask_for_one() {
    let mut index = index(&[
        ("a", list("n", "l4000=v,l1")),
        ("b", list("", "l4999=v")),
        ("c", list("n", "l4000=w")),
        ("d", list("n", "other=v")),
    ]);
    let labels: serde_json::Map<_, _> =
        (0..5_000).map(|number| (format!("l{number}"), json!("v"))).collect();
    let object = object("x", &json!(labels), "");
    assert_eq!(woken(&mut index, &change(None, Some(object.clone()))), ["a", "b"]);
    assert_eq!(woken(&mut index, &change(Some(object), None)), ["a", "b"]);
}

#[test]
fn a_run_that_spans_more_changes_than_are_kept_runs_again() {
    let mut index = DependencyIndex::default();
    let (long, other) = (index.begin(&request("run")), index.begin(&request("run")));
    for _ in 0..=CHANGES_MAX {
        let _ = index
            .changed(&change(None, Some(object("x", &json!({}), ""))), &UnreadByModule::default());
    }
    assert_eq!(index.changes.len(), CHANGES_MAX);
    let short = index.begin(&request("run"));
    assert!(!index.record(&request("a"), short, record(&get("y")), ALL, reads_all));
    assert!(index.record(&request("b"), long, record(&get("y")), ALL, reads_all));
    index.abandon(other);
    assert_eq!((index.changes.len(), index.changes_bytes), (0, 0));
    let next = index.begin(&request("run"));
    assert!(!index.record(&request("b"), next, record(&get("y")), ALL, reads_all));
}

#[test]
fn changes_of_large_objects_are_kept_up_to_their_bytes() {
    let mut index = DependencyIndex::default();
    let run = index.begin(&request("run"));
    let large = json!({"a": "x".repeat(1 << 20)});
    let large = change(None, Some(object("x", &large, "")));
    for _ in 0..100 {
        let _ = index.changed(&large, &UnreadByModule::default());
    }
    assert!(index.changes_bytes <= CHANGES_BYTES_MAX && !index.changes.is_empty());
    assert!(
        index.record(&request("a"), run, record(&get("y")), ALL, reads_all),
        "some were dropped"
    );
    assert_eq!((index.changes.len(), index.changes_bytes), (0, 0));
}

#[test]
fn a_set_of_many_members_is_as_one_of_few() {
    let mut set = SmallSet::default();
    for number in (0..100).rev().chain(0..100) {
        set.insert(number);
    }
    assert!(set.iter().copied().eq(0..100));
    for number in 0..99 {
        assert!(!set.remove(&number));
    }
    assert!(set.remove(&99) && set.remove(&99));
}

#[test]
fn a_reader_of_all_is_woken_once_until_its_next_run_begins() {
    let mut index = index(&[("a", list("n", "")), ("b", list("", ""))]);
    let changed = change(None, Some(object("x", &json!({}), "")));
    let mut written = (*changed).clone();
    written.writer = Some(request("a"));
    let names = |woken: BTreeSet<ReconcileRequest>| -> Vec<String> {
        woken.into_iter().map(|request| request.key.name().into()).collect()
    };
    assert_eq!(names(index.changed(&Arc::new(written), &UnreadByModule::default())), ["b"]);
    assert_eq!(
        names(index.changed(&changed, &UnreadByModule::default())),
        ["a"],
        "its own write did not wake it"
    );
    assert_eq!(names(index.changed(&changed, &UnreadByModule::default())), [""; 0]);
    let run = index.begin(&request("a"));
    // The change comes during the run: it wakes the reader, and the run tells it too.
    assert_eq!(names(index.changed(&changed, &UnreadByModule::default())), ["a"]);
    assert!(index.record(&request("a"), run, record(&list("n", "")), ALL, reads_all));
    let run = index.begin(&request("a"));
    assert!(!index.record(&request("a"), run, record(&list("n", "")), ALL, reads_all));
    assert_eq!(names(index.changed(&changed, &UnreadByModule::default())), ["a"]);
    index.forget_module("m");
    assert!(index.lists.is_empty());
}

/// The module of the requests here reads nothing of what a change changes, by its manifest.
fn unread() -> UnreadByModule {
    UnreadByModule::of([("m".into(), NOTHING_READ)])
}

const NOTHING_READ: Unread = Unread { declared: true, reported: true };

#[test]
fn reader_of_other_fields_sleeps_through_a_change_and_is_woken_by_the_next() {
    let (before, after) = (object("x", &json!({}), "u"), object("x", &json!({}), "u"));
    let changed = change(Some(before), Some(after));
    for read in [get("x"), list("n", ""), list("n", "!old"), owned("u", "n")] {
        let mut index = DependencyIndex::default();
        for (name, scope) in [("a", ReadScope::Declared), ("b", ReadScope::Everything)] {
            let begun = index.begin(&request(name));
            assert!(!index.record(
                &request(name),
                begun,
                record(&read).within(scope),
                ALL,
                reads_all
            ));
        }
        let names = |woken: BTreeSet<ReconcileRequest>| -> Vec<String> {
            woken.into_iter().map(|request| request.key.name().into()).collect()
        };
        assert_eq!(names(index.changed(&changed, &unread())), ["b"], "{read:?}");
        assert!(
            names(index.changed(&changed, &UnreadByModule::default())).contains(&"a".to_owned())
        );
        let begun = index.begin(&request("a"));
        index.abandon(begun);
        index.forget_fields("m");
        assert!(names(index.changed(&changed, &unread())).contains(&"a".to_owned()), "{read:?}");
    }
}

#[test]
fn change_during_a_run_counts_by_the_fields_that_this_run_read() {
    let changed = change(Some(object("x", &json!({}), "")), Some(object("x", &json!({}), "")));
    let mut index = DependencyIndex::default();
    for (scope, is_missed) in [(ReadScope::Everything, true), (ReadScope::Declared, false)] {
        let begun = index.begin(&request("a"));
        let _ = index.changed(&changed, &unread());
        let unread = |_: &Change, _: Option<&KindMasks>| NOTHING_READ;
        let reads = record(&get("x")).within(scope);
        assert_eq!(index.record(&request("a"), begun, reads, ALL, unread), is_missed);
    }
}
