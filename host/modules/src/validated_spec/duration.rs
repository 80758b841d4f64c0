//! Durations as users write them.

use std::time::Duration;

use jiff::SignedDuration;

/// The shortest resync period, so that a slip of units cannot keep the host busy.
pub const RESYNC_MIN: Duration = Duration::from_secs(1);

/// Reads a resync period.
///
/// # Errors
/// What is wrong with it, for users.
pub fn resync_period(text: &str) -> Result<Duration, String> {
    match parse_duration(text) {
        None => Err(not_a_duration(text)),
        Some(period) if !period.is_zero() && period < RESYNC_MIN => {
            Err(format!("{text} is too short: at least 1s, or 0s for never"))
        }
        Some(period) => Ok(period),
    }
}

pub(super) fn not_a_duration(text: &str) -> String {
    format!(
        "{text:?} is not a duration: numbers with h, m, s or ms, largest first, as in 30s or 1h30m"
    )
}

/// A duration as Kubernetes users write it: `30s`, `1h30m`, `500ms`, and the bare `0`.
pub(super) fn parse_duration(text: &str) -> Option<Duration> {
    let allowed = |c: char| c.is_ascii_digit() || "hms".contains(c);
    if text.is_empty() || text.len() > 32 || !text.chars().all(allowed) {
        return None;
    }
    if text == "0" {
        return Some(Duration::ZERO);
    }
    text.parse::<SignedDuration>().ok()?.try_into().ok()
}
