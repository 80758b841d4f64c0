//! The time limit of a request, which its query names.

use std::time::Duration;

use jiff::SignedDuration;

use super::limits::ServerLimits;
use super::refusal::Refusal;

/// The longest text of a time that is read, in bytes. The API server sends `10s`.
const TEXT_BYTES_MAX: usize = 32;

/// Returns the time limit of a request by the `timeout` of its query.
///
/// # Errors
/// [`Refusal::Timeout`] if `timeout` is no positive duration.
pub(super) fn request_time(
    query: Option<&str>,
    limits: &ServerLimits,
) -> Result<Duration, Refusal> {
    let mut members = query.unwrap_or_default().split('&');
    let Some(text) = members.find_map(|member| member.strip_prefix("timeout=")) else {
        return Ok(limits.request_time);
    };
    let parsed = (text.len() <= TEXT_BYTES_MAX).then(|| text.parse::<SignedDuration>().ok());
    let time = parsed.flatten().and_then(|time| Duration::try_from(time).ok());
    let time = time.filter(|time| !time.is_zero());
    Ok(time.ok_or_else(|| Refusal::timeout(text))?.min(limits.request_time_max))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_that_of_the_query_up_to_its_maximum() {
        let time = |query| request_time(query, &ServerLimits::default()).unwrap().as_millis();
        assert_eq!(time(None), 10_000);
        assert_eq!(time(Some("")), 10_000);
        assert_eq!(time(Some("dryRun=All")), 10_000);
        assert_eq!(time(Some("timeout=3s")), 3_000);
        assert_eq!(time(Some("a=b&timeout=1m30s")), 30_000);
        assert_eq!(time(Some("timeout=1.5s&timeout=2s")), 1_500);
        assert_eq!(time(Some("timeout=250ms")), 250);
    }

    #[test]
    fn time_that_is_none_is_refused_with_an_example() {
        for text in ["", "3", "s", "-3s", "0s", "3%73", "9999999999999999999h", &"1".repeat(99)] {
            let query = format!("timeout={text}");
            let error = request_time(Some(&query), &ServerLimits::default()).unwrap_err();
            assert!(error.to_string().contains("timeout=10s"), "{text}: {error}");
            assert!(error.to_string().len() < 200, "{error}");
        }
    }
}
