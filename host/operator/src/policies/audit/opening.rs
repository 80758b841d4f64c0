//! Opens the caches with the existing objects of a policy.

use std::sync::Arc;
use std::time::Duration;

use innkeeper_cluster::{ApiClient, Backoff, Env, Task};
use tokio::sync::mpsc;

use crate::policies::ActivePolicy;
use crate::policies::existing_objects::ExistingObjects;

/// The first wait before discovery that failed is asked again, and the longest one.
const RETRY: (Duration, Duration) = (Duration::from_secs(2), Duration::from_mins(5));

/// How long an opened policy waits at most for the first lists of its kinds. What comes later wakes
/// the audit.
const LISTS_TIME: Duration = Duration::from_mins(1);

/// The opened caches of a policy.
pub(super) struct Opened {
    /// The Module.
    pub(super) module: Arc<str>,
    /// The number of the opening: an earlier one does not count.
    pub(super) number: u64,
    /// The caches.
    pub(super) objects: ExistingObjects,
}

/// Opens the caches of a policy in a task, and tries again until discovery answers. The drop of the
/// task ends it. `None` for a policy that has no account to read with.
pub(super) fn open(
    env: &Env,
    host: &ApiClient,
    policy: &Arc<ActivePolicy>,
    number: u64,
    outbox: mpsc::UnboundedSender<Opened>,
) -> Option<Task<()>> {
    let access = policy.access.clone()?;
    let (policy, host, env_of_task) = (policy.clone(), host.clone(), env.clone());
    Some(env.spawn("open existing objects", async move {
        let mut backoff = Backoff::new(&env_of_task, RETRY.0, RETRY.1);
        loop {
            let opened =
                ExistingObjects::open(&access.caches, &host, &access.reader, &policy).await;
            match opened {
                Ok(objects) => {
                    let _ = env_of_task.timeout(LISTS_TIME, objects.settled()).await;
                    // The audit is gone only when the term of leadership ends.
                    let module = policy.module.clone();
                    let _ = outbox.send(Opened { module, number, objects });
                    return;
                }
                Err(error) => {
                    tracing::warn!(
                        module = &*policy.module,
                        "existing objects not listed: {error}; the host tries again"
                    );
                    env_of_task.sleep(backoff.advance()).await;
                }
            }
        }
    }))
}
