//! What the operator does, and why: its own log, as far as it concerns objects.

use std::fmt::{Debug, Write as _};
use std::sync::{Arc, Mutex, PoisonError};

use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::{Context, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;

/// The crate whose lines are shown.
const OPERATOR: &str = "innkeeper_operator";

/// Lines that nobody has taken yet. Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct Activity(Arc<Mutex<Vec<String>>>);

impl Activity {
    /// Begins to listen to the operator, for the life of the program.
    pub(super) fn start() -> anyhow::Result<Self> {
        let activity = Self::default();
        tracing_subscriber::registry().with(activity.clone()).try_init()?;
        Ok(activity)
    }

    /// What was said since the last time.
    pub(super) fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The fields of a line that people want to see.
#[derive(Default)]
struct Said {
    module: Option<String>,
    primary: Option<String>,
    message: String,
}

impl Visit for Said {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let text = format!("{value:?}");
        let text = text.trim_matches('"').to_owned();
        match field.name() {
            "module" => self.module = Some(text),
            "primary" => self.primary = Some(text),
            "message" => self.message = text,
            _ => {}
        }
    }
}

impl<S: Subscriber> Layer<S> for Activity {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let metadata = event.metadata();
        if !metadata.target().starts_with(OPERATOR) || *metadata.level() > Level::INFO {
            return;
        }
        let mut said = Said::default();
        event.record(&mut said);
        let (Some(module), Some(primary)) = (said.module, said.primary) else { return };
        let mut line = String::new();
        // Writing into a String cannot fail.
        let _ = write!(line, "{module:<10} {primary:<24} {}", said.message);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(line);
    }
}
