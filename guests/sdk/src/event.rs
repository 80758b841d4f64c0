//! Events about the primary. One that repeats is counted by the host, not written again.

use crate::{Event, EventType};

/// Something happened as expected. `reason` is one CamelCase word.
pub fn normal(reason: &str, message: impl Into<String>) -> Event {
    Event { type_: EventType::Normal, reason: reason.to_owned(), message: message.into() }
}

/// Somebody should look. `reason` is one CamelCase word.
pub fn warning(reason: &str, message: impl Into<String>) -> Event {
    Event { type_: EventType::Warning, reason: reason.to_owned(), message: message.into() }
}
