//! Builders for Events about the primary. The host counts an Event that repeats instead of
//! writing it again.

use crate::{Event, EventType};

/// Builds an Event of the type `Normal`: something happened as expected.
///
/// `reason` is one CamelCase word of at most 128 characters; `message` is for people, at most
/// 1,024 bytes.
pub fn normal(reason: &str, message: impl Into<String>) -> Event {
    Event { type_: EventType::Normal, reason: reason.to_owned(), message: message.into() }
}

/// Builds an Event of the type `Warning`: something needs attention. Arguments as for [`normal`].
pub fn warning(reason: &str, message: impl Into<String>) -> Event {
    Event { type_: EventType::Warning, reason: reason.to_owned(), message: message.into() }
}
