//! What the operator does, and why: its own log, as far as it concerns objects.

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

/// The crate that is listened to.
const OPERATOR: &str = "innkeeper_operator";
/// Its span around the work on one primary.
const SPAN: &str = "reconcile";
/// What it says at the end of that.
const RECONCILED: &str = "reconciled";

/// One time that a primary was worked on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Reconcile {
    /// Namespace and name.
    pub(super) primary: String,
    /// The module.
    pub(super) module: String,
    /// What happened, so that it was.
    pub(super) cause: String,
    /// How long it took, on the wall.
    pub(super) took: Duration,
    /// What was created, changed, deleted and left as it was.
    pub(super) did: Did,
    /// What stands in the way; empty if nothing does.
    pub(super) problem: String,
    /// As it is counted: success, `requeue_after` or error.
    pub(super) result: String,
}

/// Counts of objects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Did {
    created: u64,
    changed: u64,
    deleted: u64,
    unchanged: u64,
    status: bool,
}

impl Did {
    /// Whether something was written.
    pub(super) fn something(&self) -> bool {
        self.created + self.changed + self.deleted > 0 || self.status
    }
}

impl fmt::Display for Did {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = [
            (self.created, "created"),
            (self.changed, "changed"),
            (self.deleted, "deleted"),
            (self.unchanged, "unchanged"),
        ];
        let mut told: Vec<String> = counts
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{count} {what}"))
            .collect();
        if self.status {
            told.push("status".to_owned());
        }
        f.write_str(if told.is_empty() { "nothing" } else { "" })?;
        f.write_str(&told.join(", "))
    }
}

impl Reconcile {
    /// How it ended.
    pub(super) fn ending(&self) -> &str {
        match (&*self.problem, &*self.result) {
            ("", "success") => "ok",
            ("", "requeue_after") => "ok, again later",
            ("", "error") => "failed",
            ("", other) => other,
            (problem, _) => problem,
        }
    }
}

/// Something that the operator did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Happened {
    /// A line about an object.
    Line(String),
    /// The work on a primary ended.
    Reconciled(Box<Reconcile>),
}

/// What nobody has taken yet. Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct Activity(Arc<Mutex<Vec<Happened>>>);

impl Activity {
    /// Begins to listen to the operator, for the life of the program.
    pub(super) fn start() -> anyhow::Result<Self> {
        let activity = Self::default();
        let filter = Targets::new().with_target(OPERATOR, Level::DEBUG);
        tracing_subscriber::registry().with(activity.clone().with_filter(filter)).try_init()?;
        Ok(activity)
    }

    /// What happened since the last time.
    pub(super) fn take(&self) -> Vec<Happened> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn add(&self, happened: Happened) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(happened);
    }
}

/// The fields of a line or span that people want to see.
#[derive(Default)]
struct Said {
    has_module: bool,
    has_primary: bool,
    message: String,
    reconcile: Reconcile,
}

impl Said {
    fn text(&mut self, name: &str, text: String) {
        match name {
            "module" => (self.has_module, self.reconcile.module) = (true, text),
            "primary" => (self.has_primary, self.reconcile.primary) = (true, text),
            "trigger" => self.reconcile.cause = text,
            "result" => self.reconcile.result = text,
            "reason" => self.reconcile.problem = text,
            "message" => self.message = text,
            _ => {}
        }
    }
}

impl Visit for Said {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.text(field.name(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.text(field.name(), value.to_owned());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        let did = &mut self.reconcile.did;
        match field.name() {
            "created" => did.created = value,
            "changed" => did.changed = value,
            "deleted" => did.deleted = value,
            "unchanged" => did.unchanged = value,
            _ => {}
        }
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        if field.name() == "status" {
            self.reconcile.did.status = value;
        }
    }
}

/// What a span remembers.
struct Begun {
    at: Instant,
    cause: String,
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Activity {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        if attributes.metadata().name() != SPAN {
            return;
        }
        let mut said = Said::default();
        attributes.record(&mut said);
        if let Some(span) = context.span(id) {
            let begun = Begun { at: Instant::now(), cause: said.reconcile.cause };
            span.extensions_mut().insert(begun);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut said = Said::default();
        event.record(&mut said);
        if !said.has_module || !said.has_primary {
            return;
        }
        if said.message == RECONCILED {
            let mut reconcile = said.reconcile;
            let spans = context.event_scope(event).into_iter().flatten();
            for span in spans {
                if let Some(begun) = span.extensions().get::<Begun>() {
                    reconcile.took = begun.at.elapsed();
                    reconcile.cause.clone_from(&begun.cause);
                }
            }
            self.add(Happened::Reconciled(Box::new(reconcile)));
        } else if *event.metadata().level() <= Level::INFO {
            let Reconcile { module, primary, .. } = said.reconcile;
            let mut line = String::new();
            // Writing into a String cannot fail.
            let _ = write!(line, "{module:<10} {primary:<24} {}", said.message);
            self.add(Happened::Line(line));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_reconcile_is_heard_with_its_cause() {
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
        let happened = activity.take();
        let [Happened::Line(line), Happened::Reconciled(reconcile)] = &*happened else {
            panic!("{happened:?}");
        };
        assert!(line.ends_with("create Pod n/a"), "{line}");
        assert_eq!(reconcile.cause, "Pod n/a is gone");
        assert_eq!(reconcile.did.to_string(), "1 created, 2 unchanged, status");
        assert_eq!(reconcile.ending(), "ok, again later");
        assert!(reconcile.did.something());
        assert_eq!(Did::default().to_string(), "nothing");
    }
}
