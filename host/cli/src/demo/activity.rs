//! What the operator does to objects, and why, from its log.

use std::fmt::{self, Debug, Write as _};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt as _;

/// The crate whose log the demo shows.
const OPERATOR: &str = "innkeeper_operator";
/// The span around one reconcile request.
const SPAN: &str = "reconcile";
/// The message at the end of a reconcile request.
const RECONCILED: &str = "reconciled";

/// One reconcile request of a primary.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Reconcile {
    /// Namespace and name of the primary.
    pub(super) primary: String,
    /// The module.
    pub(super) module: String,
    /// Why it ran.
    pub(super) trigger: String,
    /// How long it took, in real time.
    pub(super) duration: Duration,
    /// What it changed.
    pub(super) changes: Changes,
    /// Why it could not finish; empty if it did.
    pub(super) reason: String,
    /// The result as the metrics count it: success, `requeue_after` or error.
    pub(super) result: String,
}

/// Counts of the objects that a reconcile request changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Changes {
    created: u64,
    changed: u64,
    deleted: u64,
    unchanged: u64,
    status: bool,
}

impl Changes {
    /// Whether the request wrote to the cluster.
    pub(super) fn is_write(&self) -> bool {
        self.created + self.changed + self.deleted > 0 || self.status
    }
}

impl fmt::Display for Changes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = [
            (self.created, "created"),
            (self.changed, "changed"),
            (self.deleted, "deleted"),
            (self.unchanged, "unchanged"),
        ];
        let mut parts: Vec<String> = counts
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{count} {what}"))
            .collect();
        if self.status {
            parts.push("status".to_owned());
        }
        f.write_str(if parts.is_empty() { "nothing" } else { "" })?;
        f.write_str(&parts.join(", "))
    }
}

impl Reconcile {
    /// The outcome in a few words.
    pub(super) fn outcome(&self) -> &str {
        match (&*self.reason, &*self.result) {
            ("", "success") => "ok",
            ("", "requeue_after") => "ok, again later",
            ("", "error") => "failed",
            ("", other) => other,
            (reason, _) => reason,
        }
    }
}

/// An entry of the operator's log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum OperatorEvent {
    /// A line about an object.
    Line(String),
    /// A reconcile request ended.
    Reconciled(Box<Reconcile>),
}

/// The entries that the demo has not shown yet. Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct Activity(Arc<Mutex<Vec<OperatorEvent>>>);

impl Activity {
    /// Subscribes to the operator's log for the life of the process.
    ///
    /// # Errors
    /// If the process has a subscriber already.
    pub(super) fn start() -> anyhow::Result<Self> {
        let activity = Self::default();
        let filter = Targets::new().with_target(OPERATOR, Level::DEBUG);
        tracing_subscriber::registry().with(activity.clone().with_filter(filter)).try_init()?;
        Ok(activity)
    }

    /// The entries since the last call.
    pub(super) fn take(&self) -> Vec<OperatorEvent> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn add(&self, event: OperatorEvent) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(event);
    }
}

/// The fields of an entry or span that the demo shows.
#[derive(Default)]
struct Fields {
    has_module: bool,
    has_primary: bool,
    message: String,
    reconcile: Reconcile,
}

impl Fields {
    fn text(&mut self, name: &str, text: String) {
        match name {
            "module" => (self.has_module, self.reconcile.module) = (true, text),
            "primary" => (self.has_primary, self.reconcile.primary) = (true, text),
            "trigger" => self.reconcile.trigger = text,
            "result" => self.reconcile.result = text,
            "reason" => self.reconcile.reason = text,
            "message" => self.message = text,
            _ => {}
        }
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.text(field.name(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.text(field.name(), value.to_owned());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        let changes = &mut self.reconcile.changes;
        match field.name() {
            "created" => changes.created = value,
            "changed" => changes.changed = value,
            "deleted" => changes.deleted = value,
            "unchanged" => changes.unchanged = value,
            _ => {}
        }
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        if field.name() == "status" {
            self.reconcile.changes.status = value;
        }
    }
}

/// What the demo keeps of a span until its request ends.
struct SpanStart {
    at: Instant,
    trigger: String,
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Activity {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        if attributes.metadata().name() != SPAN {
            return;
        }
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        if let Some(span) = context.span(id) {
            let start = SpanStart { at: Instant::now(), trigger: fields.reconcile.trigger };
            span.extensions_mut().insert(start);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        if !fields.has_module || !fields.has_primary {
            return;
        }
        if fields.message == RECONCILED {
            let mut reconcile = fields.reconcile;
            let spans = context.event_scope(event).into_iter().flatten();
            for span in spans {
                if let Some(start) = span.extensions().get::<SpanStart>() {
                    reconcile.duration = start.at.elapsed();
                    reconcile.trigger.clone_from(&start.trigger);
                }
            }
            self.add(OperatorEvent::Reconciled(Box::new(reconcile)));
        } else if *event.metadata().level() <= Level::INFO {
            let Reconcile { module, primary, .. } = fields.reconcile;
            let mut line = String::new();
            // Writing into a String cannot fail.
            let _ = write!(line, "{module:<10} {primary:<24} {}", fields.message);
            self.add(OperatorEvent::Line(line));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reconcile_that_ends_is_shown_with_its_trigger() {
        let activity = Activity::default();
        let subscriber = tracing_subscriber::registry().with(activity.clone());
        tracing::subscriber::with_default(subscriber, || {
            let span = tracing::debug_span!("reconcile", trigger = %"Pod n/a is gone");
            let _entered = span.enter();
            tracing::info!(module = "m", primary = "n/p", "create Pod n/a");
            tracing::debug!(module = "m", primary = "n/p", "a detail");
            tracing::debug!(
                module = "m",
                primary = "n/p",
                result = "requeue_after",
                reason = "",
                created = 1_usize,
                unchanged = 2_usize,
                status = true,
                "reconciled"
            );
        });
        let events = activity.take();
        let [OperatorEvent::Line(line), OperatorEvent::Reconciled(reconcile)] = &*events else {
            panic!("{events:?}");
        };
        assert!(line.ends_with("create Pod n/a"), "{line}");
        assert_eq!(reconcile.trigger, "Pod n/a is gone");
        assert_eq!(reconcile.changes.to_string(), "1 created, 2 unchanged, status");
        assert_eq!(reconcile.outcome(), "ok, again later");
        assert!(reconcile.changes.is_write());
        assert_eq!(Changes::default().to_string(), "nothing");
    }
}
