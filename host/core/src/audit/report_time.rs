//! The time of a result in a report.

use jiff::Timestamp;

/// The time of a result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ReportTime {
    /// Seconds of Unix time.
    pub seconds: i64,
    /// Nanoseconds in addition; hosts write 0.
    pub nanos: i32,
}

impl From<Timestamp> for ReportTime {
    fn from(time: Timestamp) -> Self {
        Self { seconds: time.as_second(), nanos: 0 }
    }
}
