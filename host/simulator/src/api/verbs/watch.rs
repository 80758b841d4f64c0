//! The verb `watch`.

use std::cell::Cell;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::api::http::accept::View;
use crate::api::request::Response;
use crate::api::request_context::{Outcome, RequestContext};
use crate::api::table::{self, Include};
use crate::api::verbs::list::selector;
use crate::api::verbs::list_options::{begins_with_all, check_watch, number, too_large, version};
use crate::api::verbs::write::blank;
use crate::mutation::{Mutation, is_active};
use crate::state::cluster::Cluster;
use crate::state::watch::{Feed, ObjectForm, RowTable, Watcher};
use crate::types::crd::conversion;
use crate::types::kind::Kind;
use crate::types::status_error::StatusError;

/// The default duration of a watch.
const DEFAULT_SECONDS: i64 = 1800;

/// `watch`.
pub(crate) fn begin_watch(cluster: &mut Cluster, context: &RequestContext<'_>) -> Outcome {
    let query = context.query;
    let selector = selector(context, check_watch)?;
    // 0 counts as absent; a negative timeout is over at once.
    let seconds = number(query, "timeoutSeconds")?.filter(|seconds| *seconds != 0);
    let seconds = seconds.unwrap_or(DEFAULT_SECONDS);
    let ends = cluster
        .now()
        .checked_add(SignedDuration::from_secs(seconds.max(1)))
        .unwrap_or(Timestamp::MAX);
    let feed = Feed::default();
    let mut watcher = Watcher {
        kind: context.kind_key().clone(),
        namespace: context.namespace().to_owned(),
        since: 0,
        selector,
        blank: Arc::new(Value::clone(&blank(context))),
        bookmarks: query.is("allowWatchBookmarks"),
        ends,
        next_bookmark: ends,
        shown: match context.view() {
            View::Table(version) => {
                let include = Include::parse(query.get("includeObject"));
                ObjectForm::Table(rows(version, context.kind.clone(), include))
            }
            View::Metadata(version) => ObjectForm::Metadata(version),
            View::Plain | View::Aggregated | View::MetadataList(_) => ObjectForm::Plain,
        },
        version: conversion::has_versions(&context.kind).then(|| context.kind.clone()),
        feed: feed.clone(),
    };
    let since = version(query).map_err(StatusError::unforeseen)?;
    let present = cluster.store.version();
    if seconds < 0 {
        watcher.feed.end();
        return Ok(Response::Watch(feed));
    }
    if begins_with_all(query) {
        if since > present {
            watcher.expire(&too_large(since, present).body());
            return Ok(Response::Watch(feed));
        }
        show_all(cluster, context, &watcher);
        // The server sends this bookmark even if the client did not ask for initial events
        // explicitly.
        if watcher.bookmarks && !is_active(Mutation::InitialEventsDoNotEnd) {
            watcher.bookmark(present, true, cluster.now());
        }
    } else {
        // No version means the current version.
        let since = if since == 0 { present } else { since };
        let forgotten = cluster.store.forgotten(context.kind_key());
        if since < forgotten {
            let message = format!("too old resource version: {since} ({forgotten})");
            watcher.expire(&StatusError::new(410, "Expired", message).body());
            return Ok(Response::Watch(feed));
        }
        if let Some(collection) = cluster.store.collection(context.kind_key()) {
            let next = u64::from(!is_active(Mutation::WatchTellsOfItsBeginning));
            let first = since.saturating_add(next);
            for event in collection.history.iter().filter(|event| event.version >= first) {
                watcher.tell(event, cluster.now());
            }
        }
        watcher.since = since;
    }
    feed.limit();
    cluster.watch(watcher);
    Ok(Response::Watch(feed))
}

fn show_all(cluster: &Cluster, context: &RequestContext<'_>, watcher: &Watcher) {
    let Some(collection) = cluster.store.collection(context.kind_key()) else { return };
    for (key, stored) in &collection.objects {
        let here = watcher.namespace.is_empty() || key.0 == watcher.namespace;
        if here && (watcher.selector.is_all() || watcher.selector.fits(&stored.object())) {
            watcher.show(&Cluster::text(&context.kind, &stored.text), cluster.now());
        }
    }
}

/// Makes tables of one row. Only the first has the column definitions.
fn rows(version: &'static str, kind: Arc<Kind>, include: Include) -> RowTable {
    let headed = Cell::new(false);
    Box::new(move |object, now| {
        let mut table = table::of(version, &kind, &[object], None, include, now);
        if headed.replace(true) {
            table["columnDefinitions"] = Value::Null;
        }
        table
    })
}
