//! Beginning a watch.

use std::cell::Cell;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::api::http::accept::View;
use crate::api::request::Answer;
use crate::api::request_context::{Ask, Outcome};
use crate::api::table::Include;
use crate::api::verbs::list::selector;
use crate::api::verbs::list_options::{begins_with_all, check_watch, number, too_large, version};
use crate::api::verbs::write::blank;
use crate::mutation::{Bug, planted};
use crate::state::cluster::Cluster;
use crate::state::watch::{Feed, Shown, Watcher};
use crate::types::crd::conversion;
use crate::types::status_error::StatusError;

/// How long a watch lasts whose client says nothing.
const DEFAULT_SECONDS: i64 = 1800;

/// `watch`.
pub(crate) fn begin_watch(cluster: &mut Cluster, ask: &Ask<'_>) -> Outcome {
    let query = ask.query;
    let selector = selector(ask, check_watch)?;
    // No time at all is none that was said; less than that is over at once.
    let seconds = number(query, "timeoutSeconds")?.filter(|seconds| *seconds != 0);
    let seconds = seconds.unwrap_or(DEFAULT_SECONDS);
    let ends = cluster
        .now()
        .checked_add(SignedDuration::from_secs(seconds.max(1)))
        .unwrap_or(Timestamp::MAX);
    let feed = Feed::default();
    let watcher = Watcher {
        kind: ask.kind_key().clone(),
        namespace: ask.namespace().to_owned(),
        selector,
        blank: Arc::new(Value::clone(&blank(ask))),
        bookmarks: query.is("allowWatchBookmarks"),
        ends,
        next_bookmark: ends,
        shown: match ask.view() {
            View::Table => Shown::Table {
                kind: ask.kind.clone(),
                include: Include::parse(query.get("includeObject")),
                headed: Cell::new(false),
            },
            View::Metadata => Shown::Metadata,
            View::Plain | View::Aggregated => Shown::Plain,
        },
        version: conversion::has_versions(&ask.kind).then(|| ask.kind.clone()),
        feed: feed.clone(),
    };
    let since = version(query).map_err(StatusError::unforeseen)?;
    let present = cluster.store.version();
    if seconds < 0 {
        watcher.feed.end();
        return Ok(Answer::Watch(feed));
    }
    if begins_with_all(query) {
        if since > present {
            watcher.expire(&too_large(since, present).body());
            return Ok(Answer::Watch(feed));
        }
        show_all(cluster, ask, &watcher);
        // Also where the client did not ask for it in so many words.
        if watcher.bookmarks && !planted(Bug::InitialEventsDoNotEnd) {
            watcher.bookmark(present, true);
        }
    } else {
        // From no version on is from now on.
        let since = if since == 0 { present } else { since };
        let forgotten = cluster.store.forgotten(ask.kind_key());
        if since < forgotten {
            let message = format!("too old resource version: {since} ({forgotten})");
            watcher.expire(&StatusError::new(410, "Expired", message).body());
            return Ok(Answer::Watch(feed));
        }
        if let Some(collection) = cluster.store.collection(ask.kind_key()) {
            let first = since + u64::from(!planted(Bug::WatchTellsOfItsBeginning));
            for event in collection.history.iter().filter(|event| event.version >= first) {
                watcher.tell(event, cluster.now());
            }
        }
    }
    cluster.watch(watcher);
    Ok(Answer::Watch(feed))
}

fn show_all(cluster: &Cluster, ask: &Ask<'_>, watcher: &Watcher) {
    let Some(collection) = cluster.store.collection(ask.kind_key()) else { return };
    for (key, stored) in &collection.objects {
        let here = watcher.namespace.is_empty() || key.0 == watcher.namespace;
        if here && (watcher.selector.is_all() || watcher.selector.fits(&stored.object())) {
            watcher.show(&Cluster::text(&ask.kind, &stored.text), cluster.now());
        }
    }
}
