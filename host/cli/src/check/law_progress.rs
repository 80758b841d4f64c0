//! Progress of a check of laws, on standard error.

use std::time::{Duration, Instant};

use innkeeper_check::Progress;

use crate::out;

/// The time between two lines on a terminal, where each replaces the one before.
const REPLACE_AFTER: Duration = Duration::from_millis(200);

/// The time between two lines elsewhere, such as in the log of CI.
const LINE_AFTER: Duration = Duration::from_secs(30);

/// Shows how far a check is.
pub(super) struct LawProgress {
    is_terminal: bool,
    start: Instant,
    shown: Option<Instant>,
}

impl LawProgress {
    /// Begins at the start of a check.
    pub(super) fn begin() -> Self {
        Self { is_terminal: out::is_error_terminal(), start: Instant::now(), shown: None }
    }

    /// Shows how far the check is, unless it showed that a short time before.
    pub(super) fn show(&mut self, reached: Progress) {
        let now = Instant::now();
        if !self.is_due(now) {
            return;
        }
        self.shown = Some(now);
        let seconds = now.duration_since(self.start).as_secs();
        let line = line(reached, seconds);
        if self.is_terminal {
            out::replace_error_line(&line);
        } else {
            out::eprint(&line);
        }
    }

    fn is_due(&self, now: Instant) -> bool {
        if self.is_terminal {
            self.shown.is_none_or(|shown| now.duration_since(shown) >= REPLACE_AFTER)
        } else {
            now.duration_since(self.shown.unwrap_or(self.start)) >= LINE_AFTER
        }
    }

    /// Removes the line from a terminal.
    pub(super) fn end(self) {
        if self.is_terminal && self.shown.is_some() {
            out::replace_error_line("");
        }
    }
}

fn line(reached: Progress, seconds: u64) -> String {
    match reached {
        Progress::Direct(primaries) => {
            format!("calling the guest alone: primary {}, {seconds} s", primaries + 1)
        }
        Progress::Law(law, checked, cases) => match checked.checked_sub(cases) {
            None => format!("checking {law}: case {} of {cases}, {seconds} s", checked + 1),
            Some(random) => format!("checking {law}: random case {}, {seconds} s", random + 1),
        },
    }
}

#[cfg(test)]
mod tests {
    use innkeeper_check::Law;

    use super::*;

    #[test]
    fn line_tells_law_case_and_time() {
        assert_eq!(line(Progress::Law(Law::Crash, 0, 88), 3), "checking crash: case 1 of 88, 3 s");
        assert_eq!(
            line(Progress::Law(Law::Crash, 87, 88), 3),
            "checking crash: case 88 of 88, 3 s"
        );
        assert_eq!(
            line(Progress::Law(Law::Crash, 88, 88), 9),
            "checking crash: random case 1, 9 s"
        );
        let direct = line(Progress::Direct(41), 2);
        assert_eq!(direct, "calling the guest alone: primary 42, 2 s");
    }

    #[test]
    fn line_is_due_at_once_on_a_terminal_and_after_30_s_elsewhere() {
        let start = Instant::now();
        let progress = |is_terminal, shown| LawProgress { is_terminal, start, shown };
        let after = |millis| start + Duration::from_millis(millis);
        assert!(progress(true, None).is_due(start));
        assert!(!progress(true, Some(start)).is_due(after(199)));
        assert!(progress(true, Some(start)).is_due(after(200)));
        assert!(!progress(false, None).is_due(after(29_999)));
        assert!(progress(false, None).is_due(after(30_000)));
        assert!(!progress(false, Some(after(30_000))).is_due(after(59_999)));
        assert!(progress(false, Some(after(30_000))).is_due(after(60_000)));
    }
}
