use std::fmt;
use std::time::{Duration, UNIX_EPOCH};

/// The last second of the year 9999, the latest time that RFC 3339 can express.
const LATEST: u64 = 253_402_300_799;

/// Maximum length of the text of a duration.
const DURATION_LENGTH_MAX: usize = 32;

/// A time in whole seconds, from 1970 to 9999.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time {
    /// Seconds since 1970-01-01T00:00:00Z.
    seconds: u64,
}

impl Time {
    /// Parses a time as the API server writes it: RFC 3339 in UTC. Cuts parts of a second off.
    ///
    /// ```
    /// use innkeeper_sdk::Time;
    ///
    /// assert_eq!(Time::parse("2026-01-01T00:00:09Z").unwrap().to_string(), "2026-01-01T00:00:09Z");
    /// assert_eq!(Time::parse("yesterday"), None);
    /// ```
    pub fn parse(text: &str) -> Option<Self> {
        let since = humantime::parse_rfc3339(text).ok()?.duration_since(UNIX_EPOCH).ok()?;
        Some(Self::at(since.as_secs()))
    }

    /// Creates a time from milliseconds since 1970-01-01T00:00:00Z, as
    /// [`Context::now_ms`](crate::Context::now_ms) returns them.
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the cast cuts the value to the bounds of the integer"
    )]
    pub fn from_ms(ms: f64) -> Self {
        Self::at((ms / 1000.0) as u64)
    }

    /// Returns the time after this duration.
    pub fn after(self, duration: Duration) -> Self {
        Self::at(self.seconds.saturating_add(duration.as_secs()))
    }

    /// Returns the duration until a later time; zero if `later` is not later.
    pub fn until(self, later: Self) -> Duration {
        Duration::from_secs(later.seconds.saturating_sub(self.seconds))
    }

    fn at(seconds: u64) -> Self {
        Self { seconds: seconds.min(LATEST) }
    }
}

/// Writes the time as the API server does: RFC 3339 in UTC.
impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = UNIX_EPOCH + Duration::from_secs(self.seconds);
        fmt::Display::fmt(&humantime::format_rfc3339_seconds(time), f)
    }
}

/// Parses a duration as Kubernetes users write it: `30s`, `10m`, `1h30m`, `500ms`.
///
/// ```
/// use std::time::Duration;
///
/// assert_eq!(innkeeper_sdk::parse_duration("1h30m"), Some(Duration::from_secs(5400)));
/// assert_eq!(innkeeper_sdk::parse_duration("-30s"), None);
/// ```
pub fn parse_duration(text: &str) -> Option<Duration> {
    // The parser also knows months and names of units, which no Kubernetes API accepts.
    let is_allowed = |c: char| c.is_ascii_digit() || "hms".contains(c);
    if text.len() > DURATION_LENGTH_MAX || !text.chars().all(is_allowed) {
        return None;
    }
    humantime::parse_duration(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_written_as_it_was_parsed() {
        for text in ["1970-01-01T00:00:00Z", "2024-02-29T23:59:59Z", "9999-12-31T23:59:59Z"] {
            assert_eq!(Time::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(
            Time::parse("2026-01-01T00:00:00.999Z"),
            Time::parse("2026-01-01T00:00:00Z"),
            "parts of a second are cut off"
        );
    }

    #[test]
    fn text_is_no_time_when_it_is_not_rfc_3339() {
        for text in ["", "0", "2026-01-01", "2026-13-01T00:00:00Z", "1969-12-31T23:59:59Z", "☃"] {
            assert_eq!(Time::parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn time_is_within_its_bounds_when_the_input_is_not() {
        for ms in [-1.0, f64::NAN, f64::NEG_INFINITY] {
            assert_eq!(Time::from_ms(ms).to_string(), "1970-01-01T00:00:00Z");
        }
        let latest = Time::from_ms(f64::INFINITY);
        assert_eq!(latest.to_string(), "9999-12-31T23:59:59Z");
        assert_eq!(latest.after(Duration::MAX), latest);
    }

    #[test]
    fn duration_until_an_earlier_time_is_zero() {
        let (early, late) = (Time::from_ms(1_000.0), Time::from_ms(91_999.0));
        assert_eq!(early.until(late), Duration::from_secs(90));
        assert_eq!(late.until(early), Duration::ZERO);
        assert_eq!(early.after(Duration::from_secs(90)), late);
    }

    #[test]
    fn duration_is_parsed_when_it_has_numbers_with_units() {
        for (text, seconds) in [("90s", 90), ("10m", 600), ("1h", 3600), ("1h1m1s", 3661)] {
            assert_eq!(parse_duration(text), Some(Duration::from_secs(seconds)), "{text}");
        }
        assert_eq!(parse_duration("500ms"), Some(Duration::from_millis(500)));
    }

    #[test]
    fn text_is_no_duration_when_a_kubernetes_api_would_not_accept_it() {
        let long = "1".repeat(40) + "s";
        let overflow = "9".repeat(31) + "h";
        for text in
            ["", "90", "-90s", "+90s", "90 s", "1month", "1d", "1.5h", "s", "９０s", "90ſ", "☃"]
                .into_iter()
                .chain([&*long, &*overflow])
        {
            assert_eq!(parse_duration(text), None, "{text:?}");
        }
    }
}
