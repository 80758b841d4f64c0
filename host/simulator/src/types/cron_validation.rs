//! Schedules of CronJobs.

/// Names of months and days that stand for their numbers.
const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const DAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// Whether a schedule can be read: five fields, or one of the names.
pub(crate) fn is_schedule(text: &str) -> bool {
    if let Some(name) = text.strip_prefix('@') {
        let named = ["yearly", "annually", "monthly", "weekly", "daily", "midnight", "hourly"]
            .contains(&name);
        return named || name.strip_prefix("every ").is_some_and(is_duration);
    }
    let fields: Vec<&str> = text.split_whitespace().collect();
    let [minute, hour, day, month, weekday] = fields.as_slice() else { return false };
    is_field(minute, 0, 59, &[])
        && is_field(hour, 0, 23, &[])
        && is_field(day, 1, 31, &[])
        && is_field(month, 1, 12, &MONTHS)
        && is_field(weekday, 0, 6, &DAYS)
}

fn is_field(text: &str, low: usize, high: usize, names: &[&str]) -> bool {
    text.split(',').filter(|part| !part.is_empty()).all(|part| is_part(part, low, high, names))
}

fn is_part(part: &str, low: usize, high: usize, names: &[&str]) -> bool {
    let number = |text: &str| {
        let index = names.iter().position(|name| name.eq_ignore_ascii_case(text));
        index.map(|index| index + low).or_else(|| text.parse::<usize>().ok())
    };
    let (range, step) = match part.split_once('/') {
        Some((range, step)) => (range, Some(step)),
        None => (part, None),
    };
    if step.is_some_and(|step| step.parse::<usize>().map_or(true, |step| step == 0)) {
        return false;
    }
    let (from, to) = match range.split_once('-') {
        Some((from, to)) => (from, Some(to)),
        None => (range, None),
    };
    if matches!(from, "*" | "?") {
        return to.is_none_or(|to| number(to).is_some());
    }
    let Some(from) = number(from) else { return false };
    let to = match to {
        Some(to) => number(to),
        None => Some(from),
    };
    to.is_some_and(|to| from >= low && to <= high && from <= to)
}

/// Numbers with units, as in `1h30m`.
fn is_duration(text: &str) -> bool {
    let mut rest = text.trim_start_matches(['-', '+']);
    if rest == "0" {
        return true;
    }
    if rest.is_empty() {
        return false;
    }
    while !rest.is_empty() {
        let digits = rest.trim_start_matches(|one: char| one.is_ascii_digit() || one == '.');
        let number = &rest[..rest.len() - digits.len()];
        if number.parse::<f64>().is_err() {
            return false;
        }
        let units = ["ns", "us", "µs", "ms", "s", "m", "h"];
        let Some(unit) = units.iter().find(|unit| {
            digits.strip_prefix(**unit).is_some_and(|after| {
                after.is_empty()
                    || after.starts_with(|one: char| one.is_ascii_digit() || one == '.')
            })
        }) else {
            return false;
        };
        rest = &digits[unit.len()..];
    }
    true
}

#[cfg(test)]
mod tests {
    use super::is_schedule;

    #[test]
    fn schedules_are_five_fields_or_a_name() {
        for good in [
            "* * * * *",
            "*/5 0-6 1,15 jan-MAR sun",
            "@hourly",
            "@every 1h30m",
            "0 0 ? * 6",
            "5/15 * * * *",
        ] {
            assert!(is_schedule(good), "{good}");
        }
        for bad in [
            "",
            "text",
            "* * * *",
            "60 * * * *",
            "* * 0 * *",
            "* * * * 7",
            "*/0 * * * *",
            "5-1 * * * *",
            "@often",
            "@every day",
        ] {
            assert!(!is_schedule(bad), "{bad}");
        }
    }
}
