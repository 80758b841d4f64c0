//! What a host may write that was paused past its Lease.

use std::thread::available_parallelism;

use innkeeper_controlplane::AuditEvent;

/// Checks the writes of a host that was paused until another one had `acquired` the Lease.
///
/// Each thread of the host may have been paused between the check of the fence and the write, so
/// there may be one late write for each. The API server gives up a request of which the pause kept
/// a part back (504), and stores nothing of it.
///
/// # Panics
/// If there are more late writes.
pub fn assert_fenced(writes: &[AuditEvent], acquired: &str) {
    let late: Vec<_> =
        writes.iter().filter(|event| *event.time >= *acquired && event.code != 504).collect();
    // As many threads as tokio starts.
    let threads = available_parallelism().map_or(1, usize::from);
    assert!(late.len() <= threads, "the Lease was acquired at {acquired}; late: {late:#?}");
}
