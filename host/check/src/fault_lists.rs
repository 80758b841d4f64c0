//! The faults that the laws inject.

use crate::incident::Incident;
use innkeeper_faults::{CrashPoint, Fault, PlannedFault, Refusal, WatchFault};

/// Crashes of the host.
pub(crate) fn crashes() -> Vec<Fault> {
    [CrashPoint::BeforeRequest, CrashPoint::BeforeAnswer]
        .map(|point| Fault::Crash { point })
        .to_vec()
}

/// Writes that fail, and writes whose answer does not come.
pub(crate) fn failures() -> Vec<Fault> {
    let refuse = |code, retry_after_seconds| Fault::Refuse(Refusal { code, retry_after_seconds });
    vec![
        Fault::LoseAnswer {},
        refuse(409, None),
        refuse(422, None),
        refuse(403, None),
        refuse(429, Some(2)),
        refuse(500, None),
        refuse(503, None),
        Fault::Duplicate {},
        Fault::Hang {},
        Fault::DelayAnswer { milliseconds: 20_000 },
        Fault::DelayRequest { milliseconds: 3_000 },
    ]
}

/// A fault of as many watches of a resource.
pub(crate) fn late(resource: &str, count: u32, fault: WatchFault) -> PlannedFault {
    PlannedFault { count, ..PlannedFault::of_watches(resource, Fault::Watch(fault)) }
}

/// Faults of watches, and how many watches each affects.
pub(crate) fn watch_faults() -> [(WatchFault, u32); 10] {
    [
        (WatchFault::Lag { events: 1, milliseconds: 10_000 }, 0),
        (WatchFault::Lag { events: 2, milliseconds: 10_000 }, 0),
        (WatchFault::Freeze { milliseconds: 30_000 }, 3),
        (WatchFault::Close { after_events: 1 }, 20),
        (WatchFault::Expire { after_events: 1 }, 20),
        (WatchFault::Gap { events: 2, milliseconds: 10_000 }, 5),
        (WatchFault::Gap { events: 5, milliseconds: 30_000 }, 5),
        (WatchFault::Repeat { events: 0 }, 0),
        (WatchFault::Repeat { events: 2 }, 0),
        (WatchFault::Bookmark {}, 0),
    ]
}

/// What happens to the process of the host.
pub(crate) fn interruptions() -> [Incident; 4] {
    [
        Incident::Pause { seconds: 60 },
        Incident::TakeOver { seconds: 10 },
        Incident::SetClock { seconds: 3_600 },
        Incident::SetClock { seconds: -3_600 },
    ]
}

/// What happens between the host and the API server.
pub(crate) fn outages() -> [Incident; 2] {
    [Incident::CutOff { seconds: 5 }, Incident::CutOff { seconds: 90 }]
}
