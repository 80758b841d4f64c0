//! Cron schedules as the library robfig/cron reads them: five fields, or a name. Validation and the
//! controller of CronJobs use the same parser.

use std::collections::BTreeSet;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

/// When something is due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Schedule {
    minutes: BTreeSet<u8>,
    hours: BTreeSet<u8>,
    days: BTreeSet<u8>,
    months: BTreeSet<u8>,
    weekdays: BTreeSet<u8>,
    /// Whether both kinds of days were given: then one of them is enough.
    either_day: bool,
    every: Option<SignedDuration>,
}

/// How far ahead is looked: a leap day comes within eight years.
const DAYS_MAX: i64 = 8 * 366;

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const WEEKDAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// A number, or a name that stands for one.
fn value(text: &str, names: &[&str], first: u8) -> Option<u8> {
    let known = names.iter().zip(first..).find(|(name, _)| text.eq_ignore_ascii_case(name));
    known.map_or_else(|| text.parse().ok(), |(_, number)| Some(number))
}

/// The numbers of a field. Empty parts of its list count for nothing.
fn field(text: &str, min: u8, max: u8, names: &[&str]) -> Option<BTreeSet<u8>> {
    let mut numbers = BTreeSet::new();
    for part in text.split(',').filter(|part| !part.is_empty()) {
        let (range, step) = match part.split_once('/') {
            Some((range, step)) => (range, step.parse::<usize>().ok().filter(|step| *step > 0)?),
            None => (part, 1),
        };
        let (begin, end) = match range.split_once('-') {
            Some(("*" | "?", end)) => {
                value(end, names, min)?;
                (min, max)
            }
            Some((begin, end)) => (value(begin, names, min)?, value(end, names, min)?),
            None if matches!(range, "*" | "?") => (min, max),
            None => {
                let only = value(range, names, min)?;
                (only, if part.contains('/') && only <= max { max } else { only })
            }
        };
        if begin < min || end > max || begin > end {
            return None;
        }
        numbers.extend((begin..=end).step_by(step));
    }
    Some(numbers)
}

/// A duration as Go writes it: numbers with units, as in `1h30m`.
fn duration(text: &str) -> Option<SignedDuration> {
    let mut rest = text.trim_start_matches(['-', '+']);
    if rest == "0" {
        return Some(SignedDuration::ZERO);
    }
    if rest.is_empty() {
        return None;
    }
    let mut seconds = 0.0;
    while !rest.is_empty() {
        let unit_on = rest.trim_start_matches(|one: char| one.is_ascii_digit() || one == '.');
        let number: f64 = rest[..rest.len() - unit_on.len()].parse().ok()?;
        let units = [
            ("ns", 1e-9),
            ("us", 1e-6),
            ("µs", 1e-6),
            ("ms", 1e-3),
            ("s", 1.0),
            ("m", 60.0),
            ("h", 3600.0),
        ];
        let (after, size) = units.into_iter().find_map(|(unit, size)| {
            let after = unit_on.strip_prefix(unit)?;
            let ends = after.starts_with(|one: char| one.is_ascii_digit() || one == '.');
            (after.is_empty() || ends).then_some((after, size))
        })?;
        seconds += number * size;
        rest = after;
    }
    if text.starts_with('-') {
        seconds = -seconds;
    }
    SignedDuration::try_from_secs_f64(seconds).ok()
}

impl Schedule {
    /// Parses a schedule. `None` if the API server refuses it.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let text = match text {
            "@yearly" | "@annually" => "0 0 1 1 *",
            "@monthly" => "0 0 1 * *",
            "@weekly" => "0 0 * * 0",
            "@daily" | "@midnight" => "0 0 * * *",
            "@hourly" => "0 * * * *",
            other => other,
        };
        if let Some(every) = text.strip_prefix("@every ") {
            let every = Some(duration(every)?);
            return Some(Self { every, ..Self::parse("* * * * *")? });
        }
        let fields: Vec<&str> = text.split_whitespace().collect();
        let [minutes, hours, days, months, weekdays] = fields.as_slice() else { return None };
        Some(Self {
            minutes: field(minutes, 0, 59, &[])?,
            hours: field(hours, 0, 23, &[])?,
            days: field(days, 1, 31, &[])?,
            months: field(months, 1, 12, &MONTHS)?,
            weekdays: field(weekdays, 0, 6, &WEEKDAYS)?,
            either_day: !days.starts_with(['*', '?']) && !weekdays.starts_with(['*', '?']),
            every: None,
        })
    }

    /// Whether time ever reaches the next run: an interval that is not positive has none.
    pub(crate) fn is_runnable(&self) -> bool {
        self.every.is_none_or(|every| every.is_positive())
    }

    fn has_day(&self, time: &DateTime) -> bool {
        let number = |number: i8| u8::try_from(number).unwrap_or(0);
        let day = self.days.contains(&number(time.day()));
        let weekday = self.weekdays.contains(&number(time.weekday().to_sunday_zero_offset()));
        self.months.contains(&number(time.month()))
            && if self.either_day { day || weekday } else { day && weekday }
    }

    /// The first time after `after`, if there is one at all.
    pub(crate) fn next(&self, after: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        if let Some(every) = self.every {
            return after.checked_add(every).ok();
        }
        let start = after.to_zoned(zone.clone()).datetime();
        for offset in 0..DAYS_MAX {
            let date = start.date().checked_add(SignedDuration::from_hours(24 * offset)).ok()?;
            if !self.has_day(&date.at(0, 0, 0, 0)) {
                continue;
            }
            let times = self.hours.iter().flat_map(|hour| {
                self.minutes.iter().map(move |minute| (hour.cast_signed(), minute.cast_signed()))
            });
            for (hour, minute) in times {
                let time = date.at(hour, minute, 0, 0);
                if let Ok(time) = time.to_zoned(zone.clone())
                    && time.timestamp() > after
                {
                    return Some(time.timestamp());
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(schedule: &str, after: &str) -> String {
        let schedule = Schedule::parse(schedule).unwrap();
        schedule.next(after.parse().unwrap(), &TimeZone::UTC).unwrap().to_string()
    }

    #[test]
    fn schedules_match_the_times_of_cron() {
        let from = "2026-11-22T10:07:30Z";
        assert_eq!(next("*/5 * * * *", from), "2026-11-22T10:10:00Z");
        assert_eq!(next("0 0 * * *", from), "2026-11-23T00:00:00Z");
        assert_eq!(next("30 9-11/2 * * mon", from), "2026-11-23T09:30:00Z");
        assert_eq!(next("0 0 29 2 *", from), "2028-02-29T00:00:00Z");
        assert_eq!(next("0 0 1 * sun", from), "2026-11-29T00:00:00Z", "one of both days is enough");
        let saturday = "2026-11-21T10:00:00Z";
        assert_eq!(next("0 0 * * 1/6", saturday), "2026-11-23T00:00:00Z", "Sunday is 0 only");
        assert_eq!(next("0 0,,12 * * *", from), "2026-11-22T12:00:00Z", "empty parts do not count");
        assert_eq!(next("0 0 *-5 * *", from), "2026-11-23T00:00:00Z", "* has no end of its own");
        assert_eq!(next("@hourly", from), "2026-11-22T11:00:00Z");
        assert_eq!(next("@every 90s", from), "2026-11-22T10:09:00Z");
    }

    #[test]
    fn invalid_schedule_is_refused() {
        for text in ["", "* * * *", "60 * * * *", "* * * * 8", "a * * * *", "*/0 * * * *"] {
            assert_eq!(Schedule::parse(text), None, "{text}");
        }
    }

    #[test]
    fn schedule_has_five_fields_or_is_a_macro() {
        for good in [
            "* * * * *",
            "*/5 0-6 1,15 jan-MAR sun",
            "@hourly",
            "@every 1h30m",
            "0 0 ? * 6",
            "5/15 * * * *",
        ] {
            assert!(Schedule::parse(good).is_some(), "{good}");
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
            assert!(Schedule::parse(bad).is_none(), "{bad}");
        }
    }
}
