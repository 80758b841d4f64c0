//! Waits with a bound.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

/// How often a wait looks again.
const STEP: Duration = Duration::from_millis(100);

/// Waits until `look` gives a result, at most for `bound`. Its inner error says why not yet.
///
/// # Errors
/// The error of `look`, or after the bound what was awaited and why it did not come.
pub async fn eventually<T>(
    what: &str,
    bound: Duration,
    mut look: impl AsyncFnMut() -> Result<Result<T, String>>,
) -> Result<T> {
    let started = Instant::now();
    loop {
        match look().await? {
            Ok(found) => return Ok(found),
            Err(why) if started.elapsed() > bound => bail!("not within {bound:?}: {what}: {why}"),
            Err(_) => tokio::time::sleep(STEP).await,
        }
    }
}
