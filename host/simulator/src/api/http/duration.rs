//! Durations of queries, as Go reads them: `1h30m`, `0.5s`, `-2ms`.

/// The units of a duration.
const UNITS: [&str; 8] = ["ns", "us", "µs", "μs", "ms", "s", "m", "h"];

/// Checks a duration, as `time.ParseDuration` of Go does.
///
/// # Errors
/// In Go's words, if it is none.
pub(crate) fn check(text: &str) -> Result<(), String> {
    let invalid = || format!("time: invalid duration {text:?}");
    let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    if rest == "0" {
        return Ok(());
    }
    if rest.is_empty() {
        return Err(invalid());
    }
    while !rest.is_empty() {
        let whole = digits(rest);
        let after = &rest[whole..];
        let fraction = after.strip_prefix('.').map_or(0, digits);
        if whole + fraction == 0 || rest[..whole].trim_start_matches('0').len() > DIGITS_MAX {
            return Err(invalid());
        }
        let after = after.strip_prefix('.').map_or(after, |after| &after[fraction..]);
        let is_number = |one: char| one == '.' || one.is_ascii_digit();
        let (unit, next) = after.split_at(after.find(is_number).unwrap_or(after.len()));
        if unit.is_empty() {
            return Err(format!("time: missing unit in duration {text:?}"));
        }
        if !UNITS.contains(&unit) {
            return Err(format!("time: unknown unit {unit:?} in duration {text:?}"));
        }
        rest = next;
    }
    Ok(())
}

/// Longer numbers are more nanoseconds than Go can count.
const DIGITS_MAX: usize = 18;

/// The number of digits at the start of a text.
fn digits(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duration_is_read_as_go_reads_it() {
        for text in ["0", "0s", "3m", "-1s", "+1s", "1h30m", "0.5s", ".5s", "1.s", "10ns"] {
            assert_eq!(check(text), Ok(()), "{text}");
        }
        let wrong = |text: &str| check(text).unwrap_err();
        assert_eq!(wrong("invalid"), "time: invalid duration \"invalid\"");
        assert_eq!(wrong("-"), "time: invalid duration \"-\"");
        assert_eq!(wrong(".s"), "time: invalid duration \".s\"");
        assert_eq!(wrong("5"), "time: missing unit in duration \"5\"");
        assert_eq!(wrong("1h1x"), "time: unknown unit \"x\" in duration \"1h1x\"");
    }
}
