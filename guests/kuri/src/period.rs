use std::fmt;
use std::time::Duration;

use innkeeper_sdk::parse_duration;

/// Maximum length of the text of a period.
pub(crate) const LENGTH_MAX: u32 = 32;

/// Pattern of the text of a period.
pub(crate) const PATTERN: &str = "^([0-9]+[hms])+$";

/// The shortest period: a Job and its pods need a few seconds to come and go.
const SHORTEST: Duration = Duration::from_secs(10);

/// The longest period.
const LONGEST: Duration = Duration::from_hours(365 * 24);

/// The period of a Kuri.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Period<'a> {
    /// Minimum time between the starts of two runs.
    pub(crate) length: Duration,
    text: &'a str,
    field: &'static str,
}

impl<'a> Period<'a> {
    /// Parses the period of a Kuri: its own, else that of the Module. `None` if both are left out,
    /// so that the Kuri runs once.
    ///
    /// # Errors
    /// What is wrong with the period, for users.
    pub(crate) fn of(
        own: Option<&'a str>,
        of_module: Option<&'a str>,
    ) -> Result<Option<Self>, String> {
        let own = own.map(|text| (text, "spec.period"));
        let of_module = of_module.map(|text| (text, "the Module's spec.parameters.period"));
        let Some((text, field)) = own.or(of_module) else { return Ok(None) };
        match parse_duration(text) {
            None => Err(format!(
                "{field} {text:?} is not a duration: use numbers with h, m or s, for example 90s, 10m or 1h30m"
            )),
            Some(length) if length < SHORTEST => Err(format!(
                "{field} {text} is too short: use at least 10s, or leave it out to run once"
            )),
            Some(length) if length > LONGEST => {
                Err(format!("{field} {text} is too long: use at most 8760h"))
            }
            Some(length) => Ok(Some(Self { length, text, field })),
        }
    }
}

/// Writes the period as the user wrote it, and where.
impl fmt::Display for Period<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.text, self.field)
    }
}
