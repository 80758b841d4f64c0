//! Beginning a watch.

use std::cell::Cell;

use jiff::{SignedDuration, Timestamp};

use super::collection::selector;
use super::{Ask, Outcome};
use crate::cluster::Cluster;
use crate::crd::reading;
use crate::http::accept::View;
use crate::request::Answer;
use crate::status_error::{FieldError, Named, StatusError};
use crate::table::Include;
use crate::watch::{Feed, Shown, Watcher};

/// How long a watch lasts whose client says nothing.
const DEFAULT_SECONDS: i64 = 1800;

impl Cluster {
    /// `watch`.
    pub(super) fn begin_watch(&mut self, ask: &Ask<'_>) -> Outcome {
        let query = ask.query;
        let initial = query.is("sendInitialEvents");
        if initial && query.get("resourceVersionMatch") != "NotOlderThan" {
            let why = "resourceVersionMatch=NotOlderThan is required when sendInitialEvents=true";
            let error = FieldError::forbidden("resourceVersionMatch", why);
            let named = Named { group: "meta.k8s.io", what: "ListOptions", name: "" };
            return Err(StatusError::invalid(named, &[error]));
        }
        let selector = selector(ask)?;
        let seconds: i64 = query.get("timeoutSeconds").parse().unwrap_or(DEFAULT_SECONDS);
        let ends = self
            .now()
            .checked_add(SignedDuration::from_secs(seconds.max(1)))
            .unwrap_or(Timestamp::MAX);
        let feed = Feed::default();
        let watcher = Watcher {
            kind: ask.kind_key().clone(),
            namespace: ask.namespace().to_owned(),
            selector,
            api_version: ask.kind.api_version(),
            object_kind: ask.kind.name.clone(),
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
            version: reading::has_versions(&ask.kind).then(|| ask.kind.clone()),
            feed: feed.clone(),
        };
        let since = query.get("resourceVersion");
        if initial || matches!(since, "" | "0") {
            self.show_all(ask, &watcher);
            if initial && watcher.bookmarks {
                watcher.bookmark(self.store.version(), true);
            }
        } else {
            let Ok(since) = since.parse::<u64>() else {
                return Err(StatusError::bad_request(format!(
                    "Invalid value: {since:?}: strconv.ParseUint: parsing {since:?}: invalid syntax"
                )));
            };
            if let Some(collection) = self.store.collection(ask.kind_key()) {
                if since < collection.forgotten {
                    let message =
                        format!("too old resource version: {since} ({})", collection.forgotten);
                    watcher.expire(&StatusError::new(410, "Expired", message).body());
                    return Ok(Answer::Watch(feed));
                }
                for event in collection.history.iter().filter(|event| event.version > since) {
                    watcher.tell(event, self.now());
                }
            }
        }
        self.watch(watcher);
        Ok(Answer::Watch(feed))
    }

    fn show_all(&self, ask: &Ask<'_>, watcher: &Watcher) {
        let Some(collection) = self.store.collection(ask.kind_key()) else { return };
        for (key, stored) in &collection.objects {
            let here = watcher.namespace.is_empty() || key.0 == watcher.namespace;
            if here && (watcher.selector.is_all() || watcher.selector.fits(&stored.object())) {
                watcher.show(&Self::text(&ask.kind, &stored.text), self.now());
            }
        }
    }
}
