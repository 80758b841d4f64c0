//! The memory of cached objects.

use super::support::*;
use super::*;

/// A ConfigMap with text that all have in common.
fn long(name: &str, uid: &str, version: u64) -> Value {
    let mut map = map(name, uid, version);
    map["data"]["text"] = "a line that every object of the test has; ".repeat(20).into();
    map
}

#[tokio::test(start_paused = true)]
async fn objects_are_compressed_on_every_way_into_a_cache() {
    let (test, view, watch) = Test::synced(&[long("a", "u1", 1), long("listed", "u2", 2)]).await;
    watch.send("ADDED", &long("watched", "u3", 11));
    test.settle().await;
    test.caches.record_write(&maps(), object(&long("written", "u4", 12)));
    test.caches.mark_unknown(&maps(), &key("got"));
    test.caches.resolve_unknown(&maps(), &key("got"), Some(object(&long("got", "u5", 13))), &[]);

    let all = view.snapshot().list(&maps(), None, &|_| true).unwrap();
    assert_eq!(all.len(), 5);
    for cached in &all {
        let name = cached.key.name();
        let sizes = (cached.text.stored_bytes(), cached.text.len());
        assert!(sizes.0 * 4 < sizes.1, "{name}: {sizes:?}");
        let version = cached.version();
        assert_eq!(**cached, object(&long(name, &cached.uid, version)), "it is the same object");
    }
    let bytes: usize = all.iter().map(|object| object.bytes()).sum();
    let of_cache = test.caches.sizes()[0].bytes;
    assert!(of_cache > bytes + all[0].text.len() / 2, "the dictionary counts: {of_cache} {bytes}");
}
