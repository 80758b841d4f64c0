//! Waiting for a condition.

use std::time::Duration;

use anyhow::{Result, bail};
use tokio::time::{Instant, sleep};

/// How often a condition is asked.
const POLL: Duration = Duration::from_millis(25);

/// Asks `condition` until it gives `Ok(Ok(value))`, and gives that value. `Ok(Err(why))`
/// means "not yet", with the reason for the message.
///
/// # Errors
/// `what` and the last reason, after `bound`; or the first `Err`, at once.
///
/// ```
/// # use std::time::Duration;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> anyhow::Result<()> {
/// use innkeeper_cluster_tests::eventually;
///
/// let mut asked = 0;
/// let value = eventually("three questions", Duration::from_secs(5), async || {
///     asked += 1;
///     Ok(if asked == 3 { Ok(asked) } else { Err(format!("asked {asked} times")) })
/// })
/// .await?;
/// assert_eq!(value, 3);
/// # Ok(())
/// # }
/// ```
pub async fn eventually<T>(
    what: &str,
    bound: Duration,
    mut condition: impl AsyncFnMut() -> Result<Result<T, String>>,
) -> Result<T> {
    let deadline = Instant::now() + bound;
    loop {
        let why = match condition().await? {
            Ok(value) => return Ok(value),
            Err(why) => why,
        };
        if Instant::now() >= deadline {
            bail!("{what}: not so after {:.1} s; last: {why}", bound.as_secs_f32());
        }
        sleep(POLL).await;
    }
}
