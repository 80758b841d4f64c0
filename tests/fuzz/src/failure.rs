//! What a guest gives when it fails.

use innkeeper_contract::Failure;
use innkeeper_core::{foreign, guest_status};

/// Reads a failure. What is read is printed as it was; what may be written into a status fits
/// there.
pub fn fuzz_entry(data: &[u8]) {
    let Ok(failure) = serde_json::from_slice::<Failure>(data) else { return };
    let text = serde_json::to_string(&failure).expect("a failure is printed");
    let again: Failure = serde_json::from_str(&text).expect("a printed failure is read");
    assert_eq!(failure, again, "a failure changes when it is printed and read");
    if guest_status::is_reason(&failure.reason) {
        let inner = |c: char| c.is_ascii_alphanumeric() || "_,:".contains(c);
        assert!(failure.reason.len() <= 1_024 && failure.reason.chars().all(inner));
    }
    for bytes in [0, 1, 7, guest_status::MESSAGE_BYTES_MAX] {
        let cut = foreign::message(&failure.message, bytes);
        assert!(cut.len() <= bytes + 3, "{} bytes of {bytes}", cut.len());
        let whole = !failure.message.chars().all(foreign::is_visible) || cut == failure.message;
        assert!(whole || cut.ends_with("..."), "{cut}");
        assert!(whole || failure.message.starts_with(cut.trim_end_matches("...")) || bytes == 0);
    }
    let Failure { status, conditions, events, .. } = &failure;
    match guest_status::check(status.as_ref(), conditions, events) {
        Ok(()) => {
            let bytes = serde_json::to_string(&(status, conditions)).map_or(0, |text| text.len());
            assert!(bytes <= guest_status::STATUS_BYTES_MAX + 64, "{bytes} bytes of status");
            assert!(
                conditions.len() <= guest_status::CONDITIONS_MAX
                    && events.len() <= guest_status::EVENTS_MAX
            );
            for condition in conditions {
                assert!(guest_status::is_reason(&condition.reason), "{}", condition.reason);
                assert!(!condition.type_.is_empty() && condition.type_.len() <= 316);
                assert!(condition.type_.is_ascii() && !condition.type_.contains(char::is_control));
            }
        }
        Err(problem) => assert!(problem.len() < 1_024, "{problem}"),
    }
}
