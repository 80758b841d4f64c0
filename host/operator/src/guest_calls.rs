//! The calls of guests in reconciles and in reviews in the background.

use std::time::Duration;

use innkeeper_sandbox::Permits;

use crate::execution::{CallPace, Execution};

/// Runs the calls of guests in reconciles and in reviews in the background: each waits for a permit
/// of the sandbox. Reviews of requests have permits of their own, so that none of these calls
/// delays a request.
#[derive(Clone, Debug)]
pub struct GuestCalls {
    permits: Permits,
    execution: Execution,
}

impl GuestCalls {
    /// Calls with these permits, on the threads of `execution`.
    pub fn new(permits: Permits, execution: Execution) -> Self {
        Self { permits, execution }
    }

    /// Runs `call` as soon as a `tenant` of a `module`, such as a namespace, has a permit, and
    /// gives its result.
    ///
    /// `call` makes the texts that the guest gets: so the permits bound how many of them exist at
    /// once, and the guest's limit of memory bounds the size of each.
    pub async fn run<T>(&self, module: &str, tenant: &str, call: impl FnOnce() -> T) -> T {
        let permit = self.permits.acquire(module, tenant).await;
        let result = self.execution.run(call);
        drop(permit);
        result
    }

    /// The same for a call of a revision whose calls have a pace: `call` gets the time after which
    /// it is to end, if there is one, and may run twice ([`Execution::run_call`]).
    pub async fn run_paced<T>(
        &self,
        (module, tenant): (&str, &str),
        pace: &CallPace,
        call: impl FnMut(Option<Duration>) -> T,
    ) -> T {
        let permit = self.permits.acquire(module, tenant).await;
        let result = self.execution.run_call(pace, call);
        drop(permit);
        result
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn call_waits_until_its_module_has_a_permit_and_returns_the_permit() {
        let permits = Permits::new(2);
        let calls = GuestCalls::new(permits.clone(), Execution::Inline);
        let held = permits.acquire("busy", "").await;
        let made = AtomicUsize::new(0);
        let call = || calls.run("busy", "tenant", || made.fetch_add(1, Ordering::Relaxed));

        let waits = tokio::time::timeout(Duration::from_secs(1), call()).await;
        assert!(waits.is_err(), "the module holds its half of the permits");
        assert_eq!(made.load(Ordering::Relaxed), 0);

        drop(held);
        assert_eq!((call().await, call().await), (0, 1));
    }
}
