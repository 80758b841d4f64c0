//! The status, the conditions and the Events that a guest gives a primary.
//!
//! The host checks them before it acts on a guest's result. If the server refused one member, the
//! host could not write the whole status, so users would not see the problem.

use std::io;

use innkeeper_contract::{Condition, Event};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::{foreign, names};

/// The largest status, conditions and Events together, in bytes of JSON: an object has at most
/// about 1.5 MB.
pub const STATUS_BYTES_MAX: usize = 256 << 10;

/// The most conditions in one result.
pub const CONDITIONS_MAX: usize = 64;

/// The most Events in one result: each costs a request.
pub const EVENTS_MAX: usize = 32;

/// The longest note of an Event, in bytes: Kubernetes' limit.
pub const NOTE_BYTES_MAX: usize = 1_024;

/// The longest message of a guest's failure, in bytes; the host cuts longer ones.
pub const MESSAGE_BYTES_MAX: usize = 4_096;

/// The longest message of a condition, in bytes: Kubernetes' limit.
pub const CONDITION_MESSAGE_BYTES_MAX: usize = 32_768;

/// The longest type of a condition, in bytes: Kubernetes' limit.
const TYPE_BYTES_MAX: usize = 316;

/// The longest reason of a condition, in bytes: Kubernetes' limit.
const REASON_BYTES_MAX: usize = 1_024;

/// The longest reason of an Event, in bytes: Kubernetes' limit.
const EVENT_REASON_BYTES_MAX: usize = 128;

/// Checks the status, the conditions and the Events of a guest.
///
/// # Errors
/// Returns the first member that the server would refuse, or the limit that is exceeded.
pub fn check(
    status: Option<&Map<String, Value>>,
    conditions: &[Condition],
    events: &[Event],
) -> Result<(), String> {
    if conditions.len() > CONDITIONS_MAX {
        return Err(format!(
            "{} conditions are more than the {CONDITIONS_MAX} that a guest may give",
            conditions.len()
        ));
    }
    if events.len() > EVENTS_MAX {
        return Err(format!(
            "{} events are more than the {EVENTS_MAX} that a guest may give",
            events.len()
        ));
    }
    for (index, condition) in conditions.iter().enumerate() {
        let problem = if !is_type(&condition.type_) {
            "type is not a word like Ready or example.com/Ready"
        } else if !is_reason(&condition.reason) {
            "reason is not a CamelCase word"
        } else if condition.message.len() > CONDITION_MESSAGE_BYTES_MAX {
            "message has more than 32768 bytes"
        } else {
            continue;
        };
        return Err(format!("conditions[{index}].{problem}"));
    }
    for (index, event) in events.iter().enumerate() {
        if !is_reason(&event.reason) || event.reason.len() > EVENT_REASON_BYTES_MAX {
            return Err(format!(
                "events[{index}].reason is not a CamelCase word of at most {EVENT_REASON_BYTES_MAX} bytes"
            ));
        }
    }
    let status_bytes =
        status.map_or(0, size) + size(conditions) + conditions.iter().map(growth).sum::<usize>();
    let bytes = if events.is_empty() { status_bytes } else { status_bytes + size(events) };
    if bytes > STATUS_BYTES_MAX {
        return Err(format!(
            "status, conditions and events have {bytes} bytes, the limit is {STATUS_BYTES_MAX}"
        ));
    }
    Ok(())
}

/// Cuts the messages of Events to the length that Kubernetes accepts, and frees the rest.
pub fn cut_notes(events: &mut [Event]) {
    for event in events {
        if event.message.len() > NOTE_BYTES_MAX {
            let end = event.message.floor_char_boundary(NOTE_BYTES_MAX);
            // A copy, since truncating keeps the allocation.
            event.message = event.message[..end].to_owned();
        }
    }
}

/// Whether Kubernetes accepts a text as the reason of a condition.
pub fn is_reason(text: &str) -> bool {
    let inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | ',' | ':');
    text.len() <= REASON_BYTES_MAX
        && text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
        && text.chars().all(inner)
}

/// Whether Kubernetes accepts a text as the type of a condition: a name, with or without a DNS name
/// and a slash before it. The limit is on the whole text.
pub(crate) fn is_type(text: &str) -> bool {
    let (prefix, name) = text.split_once('/').map_or((None, text), |(a, b)| (Some(a), b));
    let ends = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    text.len() <= TYPE_BYTES_MAX
        && ends(name.chars().next())
        && ends(name.chars().next_back())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
        && prefix.is_none_or(names::is_subdomain)
}

/// By how many bytes a condition grows when the host writes it: an invisible character becomes its
/// code.
fn growth(condition: &Condition) -> usize {
    let message = foreign::message(&condition.message, CONDITION_MESSAGE_BYTES_MAX);
    size(&message).saturating_sub(size(&condition.message))
}

/// The length of a value as JSON, in bytes.
fn size<T: Serialize + ?Sized>(value: &T) -> usize {
    struct Count(usize);
    impl io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    // A value that has no JSON form exceeds every limit.
    serde_json::to_writer(&mut count, value).map_or(usize::MAX / 4, |()| count.0)
}

#[cfg(test)]
mod tests {
    use innkeeper_contract::{ConditionStatus, EventType};
    use serde_json::json;

    use super::*;

    fn condition(type_: &str, reason: &str, message: &str) -> Condition {
        Condition {
            type_: type_.into(),
            status: ConditionStatus::True,
            reason: reason.into(),
            message: message.into(),
        }
    }

    fn refused(conditions: &[Condition]) -> String {
        check(None, conditions, &[]).unwrap_err()
    }

    #[test]
    fn status_that_kubernetes_accepts_is_accepted() {
        let status = json!({"replicas": 3, "text": "x".repeat(100_000)});
        let conditions = [
            condition("Ready", "AllIsWell", ""),
            condition("example.com/Ready-2", "A_b,c:d", &"m".repeat(32_768)),
        ];
        assert_eq!(check(status.as_object(), &conditions, &[]), Ok(()));
    }

    #[test]
    fn status_that_the_server_would_refuse_is_refused_with_its_place() {
        let hostile = ["", "a b", "-a", "A.com/x", "a/b/c", "a..b/c", "a\n", "Ready\u{202e}"];
        for type_ in hostile.into_iter().chain([&*"x".repeat(317)]) {
            let error = refused(&[condition("Ready", "Ok", ""), condition(type_, "Ok", "")]);
            assert_eq!(error, "conditions[1].type is not a word like Ready or example.com/Ready");
        }
        let hostile = ["", "two words", "1st", "Colon:", "A\nB", "A\u{1b}[2J", "A\u{200b}B"];
        for reason in hostile.into_iter().chain([&*"x".repeat(1_025)]) {
            let error = refused(&[condition("Ready", reason, "")]);
            assert_eq!(error, "conditions[0].reason is not a CamelCase word");
        }
        assert_eq!(
            refused(&[condition("Ready", "Ok", &"m".repeat(32_769))]),
            "conditions[0].message has more than 32768 bytes"
        );
        for reason in ["", "two words", "A\nB", "A\u{9b}2J", "A\0", &"x".repeat(129)] {
            let event =
                Event { type_: EventType::Normal, reason: reason.into(), message: String::new() };
            assert_eq!(
                check(None, &[], std::slice::from_ref(&event)).unwrap_err(),
                "events[0].reason is not a CamelCase word of at most 128 bytes"
            );
        }
    }

    #[test]
    fn answer_with_too_many_conditions_events_or_bytes_is_refused() {
        let many = vec![condition("Ready", "Ok", ""); 65];
        assert_eq!(refused(&many), "65 conditions are more than the 64 that a guest may give");
        let event = Event { type_: EventType::Normal, reason: "A".into(), message: String::new() };
        assert_eq!(
            check(None, &[], &vec![event.clone(); 33]).unwrap_err(),
            "33 events are more than the 32 that a guest may give"
        );
        let status = json!({"text": "x".repeat(STATUS_BYTES_MAX)});
        assert_eq!(
            check(status.as_object(), &[], &[]).unwrap_err(),
            "status, conditions and events have 262157 bytes, the limit is 262144"
        );
        let long = Event { message: "x".repeat(10_000), ..event };
        let error = check(None, &[], &vec![long; EVENTS_MAX]).unwrap_err();
        assert!(error.starts_with("status, conditions and events have 32"), "{error}");
    }

    #[test]
    fn long_message_of_an_event_is_cut_and_its_memory_freed() {
        let mut events = vec![
            Event {
                type_: EventType::Normal,
                reason: "A".into(),
                message: "é".repeat(100_000),
            };
            2
        ];
        events[1].message = "short".into();
        cut_notes(&mut events);
        assert_eq!((events[0].message.len(), &*events[1].message), (1_024, "short"));
        assert!(events[0].message.capacity() < 2_048);
    }
}
