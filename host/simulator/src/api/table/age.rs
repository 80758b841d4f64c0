//! Prints ages as kubectl does.

use jiff::Timestamp;
use serde_json::Value;

/// The age of a timestamp of an object.
pub(crate) fn age(time: &str, now: Timestamp) -> String {
    match time.parse::<Timestamp>() {
        Ok(time) => lasting(now.duration_since(time).as_secs()),
        Err(_) => "<unknown>".to_owned(),
    }
}

/// The age of an optional timestamp.
pub(crate) fn since(time: &Value, now: Timestamp) -> Value {
    age(time.as_str().unwrap_or_default(), now).into()
}

/// A duration in seconds as a text.
pub(crate) fn lasting(seconds: i64) -> String {
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86400);
    let two = |most: i64, unit: &str, rest: i64, small: &str| {
        if rest == 0 { format!("{most}{unit}") } else { format!("{most}{unit}{rest}{small}") }
    };
    match seconds {
        ..-1 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        120..600 => two(minutes, "m", seconds % 60, "s"),
        600..10_800 => format!("{minutes}m"),
        10_800..28_800 => two(hours, "h", minutes % 60, "m"),
        28_800..172_800 => format!("{hours}h"),
        172_800..691_200 => two(days, "d", hours % 24, "h"),
        691_200..63_072_000 => format!("{days}d"),
        63_072_000..252_288_000 => two(days / 365, "y", days % 365, "d"),
        _ => format!("{}y", days / 365),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn age_is_coarser_for_older_objects() {
        let cases = [
            (-2, "<invalid>"),
            (-1, "0s"),
            (119, "119s"),
            (120, "2m"),
            (125, "2m5s"),
            (3600, "60m"),
            (10_860, "3h1m"),
            (90_000, "25h"),
            (266_400, "3d2h"),
            (864_000, "10d"),
            (63_072_000, "2y"),
            (63_158_400, "2y1d"),
            (252_288_000, "8y"),
        ];
        for (seconds, text) in cases {
            assert_eq!(lasting(seconds), text);
        }
    }
}
