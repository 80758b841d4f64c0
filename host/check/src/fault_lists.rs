//! The faults that the laws inject.

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
pub(crate) fn watch_faults() -> [(WatchFault, u32); 7] {
    [
        (WatchFault::Lag { events: 1, milliseconds: 10_000 }, 0),
        (WatchFault::Lag { events: 2, milliseconds: 10_000 }, 0),
        (WatchFault::Freeze { milliseconds: 30_000 }, 3),
        (WatchFault::Close { after_events: 1 }, 20),
        (WatchFault::Expire { after_events: 1 }, 20),
        (WatchFault::Gap { events: 2, milliseconds: 10_000 }, 5),
        (WatchFault::Gap { events: 5, milliseconds: 30_000 }, 5),
    ]
}
