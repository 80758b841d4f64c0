//! The schedules of CronJobs: five fields, or a name.

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

fn value(text: &str, names: &[&str], first: u8) -> Option<u8> {
    let known = names.iter().zip(first..).find(|(name, _)| text.eq_ignore_ascii_case(name));
    known.map_or_else(|| text.parse().ok(), |(_, number)| Some(number))
}

fn field(text: &str, least: u8, most: u8, names: &[&str]) -> Option<BTreeSet<u8>> {
    let mut found = BTreeSet::new();
    for part in text.split(',') {
        let (range, step) = match part.split_once('/') {
            Some((range, step)) => (range, step.parse::<usize>().ok().filter(|step| *step > 0)?),
            None => (part, 1),
        };
        let (begin, end) = match range.split_once('-') {
            _ if matches!(range, "*" | "?") => (least, most),
            Some((begin, end)) => (value(begin, names, least)?, value(end, names, least)?),
            None => {
                let only = value(range, names, least)?;
                (only, if part.contains('/') { most } else { only })
            }
        };
        if begin < least || end > most || begin > end {
            return None;
        }
        found.extend((begin..=end).step_by(step));
    }
    Some(found)
}

impl Schedule {
    /// Reads a schedule; nothing if it is none.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let text = match text.trim() {
            "@yearly" | "@annually" => "0 0 1 1 *",
            "@monthly" => "0 0 1 * *",
            "@weekly" => "0 0 * * 0",
            "@daily" | "@midnight" => "0 0 * * *",
            "@hourly" => "0 * * * *",
            other => other,
        };
        if let Some(every) = text.strip_prefix("@every ") {
            let every = every.trim().parse::<SignedDuration>().ok()?;
            let mut schedule = Self::parse("* * * * *")?;
            schedule.every = Some(every).filter(SignedDuration::is_positive);
            return schedule.every.is_some().then_some(schedule);
        }
        let fields: Vec<&str> = text.split_whitespace().collect();
        let [minutes, hours, days, months, weekdays] = fields.as_slice() else { return None };
        let mut known = field(weekdays, 0, 7, &WEEKDAYS)?;
        // Sunday has two numbers.
        if known.remove(&7) {
            known.insert(0);
        }
        Some(Self {
            minutes: field(minutes, 0, 59, &[])?,
            hours: field(hours, 0, 23, &[])?,
            days: field(days, 1, 31, &[])?,
            months: field(months, 1, 12, &MONTHS)?,
            weekdays: known,
            either_day: !days.starts_with(['*', '?']) && !weekdays.starts_with(['*', '?']),
            every: None,
        })
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
    fn schedules_are_read_as_cron_reads_them() {
        let from = "2026-11-22T10:07:30Z";
        assert_eq!(next("*/5 * * * *", from), "2026-11-22T10:10:00Z");
        assert_eq!(next("0 0 * * *", from), "2026-11-23T00:00:00Z");
        assert_eq!(next("30 9-11/2 * * mon", from), "2026-11-23T09:30:00Z");
        assert_eq!(next("0 0 29 2 *", from), "2028-02-29T00:00:00Z");
        assert_eq!(next("0 0 1 * 7", from), "2026-11-29T00:00:00Z", "one of both days is enough");
        assert_eq!(next("@hourly", from), "2026-11-22T11:00:00Z");
        assert_eq!(next("@every 90s", from), "2026-11-22T10:09:00Z");
    }

    #[test]
    fn what_is_no_schedule_is_refused() {
        for text in ["", "* * * *", "60 * * * *", "* * * * 8", "a * * * *", "*/0 * * * *"] {
            assert_eq!(Schedule::parse(text), None, "{text}");
        }
    }
}
