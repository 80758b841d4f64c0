//! The permits to run a guest: [`Permits`].

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// A fair semaphore for sandbox calls.
///
/// More threads in guests than cores ruin the tail latency of all of them, so a caller holds a
/// [`Permit`] during a call. The callers get permits in the order of their requests. One module
/// holds or waits for at most half of them, so a busy module does not keep another one out. In the
/// same way, a busy tenant of a module is never ahead of another one with more calls than the
/// module may make at once.
#[derive(Clone, Debug)]
pub struct Permits {
    all: Arc<Semaphore>,
    shares: Arc<Mutex<Shares>>,
    half: usize,
}

/// The semaphores of modules that hold or wait for a permit, by the module's name and an empty
/// text, and those of their tenants, by both names.
type Shares = BTreeMap<(String, String), Weak<Semaphore>>;

/// The right to make sandbox calls, one at a time. The drop returns it.
#[derive(Debug)]
#[must_use = "a permit that is dropped at once allows nothing"]
pub struct Permit {
    // Dropped in this order: the place among all first, so that its next waiter goes on.
    _all: Option<OwnedSemaphorePermit>,
    _own: Option<OwnedSemaphorePermit>,
    _tenant: Option<OwnedSemaphorePermit>,
}

impl Permits {
    /// Makes `count` permits, at least two.
    pub fn new(count: usize) -> Self {
        let count = count.clamp(2, Semaphore::MAX_PERMITS);
        Self { all: Arc::new(Semaphore::new(count)), shares: Arc::default(), half: count / 2 }
    }

    /// Makes one permit per core, at least two.
    pub fn per_core() -> Self {
        Self::new(cores())
    }

    /// Waits for a permit for a `tenant` of a `module`, such as a namespace.
    ///
    /// A caller that drops the future loses nothing but its place in the queue.
    pub async fn acquire(&self, module: &str, tenant: &str) -> Permit {
        // No semaphore is ever closed, so no wait fails; the types of tokio do not know that.
        let tenant = match tenant {
            "" => None,
            tenant => self.share(module, tenant).acquire_owned().await.ok(),
        };
        let own = self.share(module, "").acquire_owned().await.ok();
        let all = Arc::clone(&self.all).acquire_owned().await.ok();
        Permit { _all: all, _own: own, _tenant: tenant }
    }

    /// Takes a permit if [`acquire`](Self::acquire) would give one at once, also in a task that has
    /// used up its turn, where tokio makes each wait pend.
    pub fn try_acquire(&self, module: &str, tenant: &str) -> Option<Permit> {
        let tenant = match tenant {
            "" => None,
            tenant => Some(self.share(module, tenant).try_acquire_owned().ok()?),
        };
        let own = Some(self.share(module, "").try_acquire_owned().ok()?);
        let all = Some(Arc::clone(&self.all).try_acquire_owned().ok()?);
        Some(Permit { _all: all, _own: own, _tenant: tenant })
    }

    /// The number of calls that could start now.
    pub fn available(&self) -> usize {
        self.all.available_permits()
    }

    fn share(&self, module: &str, tenant: &str) -> Arc<Semaphore> {
        let name = (module.to_owned(), tenant.to_owned());
        // A panic elsewhere cannot leave this map half written.
        let mut shares = self.shares.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(semaphore) = shares.get(&name).and_then(Weak::upgrade) {
            return semaphore;
        }
        shares.retain(|_, semaphore| semaphore.strong_count() > 0);
        let semaphore = Arc::new(Semaphore::new(self.half));
        shares.insert(name, Arc::downgrade(&semaphore));
        semaphore
    }
}

/// The number of cores that this process may use.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::{Pin, pin};
    use std::task::{Context, Poll, Waker};

    use super::*;

    /// Polls a wait once.
    fn poll<F: Future>(future: Pin<&mut F>) -> Option<F::Output> {
        match future.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(output) => Some(output),
            Poll::Pending => None,
        }
    }

    fn take(permits: &Permits, module: &str) -> Option<Permit> {
        poll(pin!(permits.acquire(module, "t")))
    }

    #[test]
    fn permits_are_at_least_two() {
        assert_eq!(Permits::new(0).available(), 2);
        assert!(Permits::per_core().available() >= 2);
    }

    #[test]
    fn one_module_holds_at_most_half() {
        let permits = Permits::new(5);
        let held: Vec<_> = (0..2).map(|_| take(&permits, "a").expect("within its half")).collect();
        assert!(take(&permits, "a").is_none());
        assert!(take(&permits, "b").is_some());
        drop(held);
        assert!(take(&permits, "a").is_some());
    }

    #[test]
    fn second_call_of_a_busy_module_waits_behind_other_modules() {
        let permits = Permits::new(2);
        let (a, b) = (take(&permits, "a").expect("free"), take(&permits, "b").expect("free"));
        // The second of a asks before c, but waits for its own half and not among all.
        let mut second_of_a = pin!(permits.acquire("a", "t"));
        assert!(poll(second_of_a.as_mut()).is_none());
        let mut first_of_c = pin!(permits.acquire("c", "t"));
        assert!(poll(first_of_c.as_mut()).is_none());
        drop(b);
        assert!(poll(second_of_a.as_mut()).is_none());
        let c = poll(first_of_c.as_mut()).expect("b is gone");
        drop((a, c));
        assert!(poll(second_of_a.as_mut()).is_some());
    }

    #[test]
    fn permits_go_to_callers_in_the_order_of_their_requests() {
        let permits = Permits::new(2);
        let (a, b) = (take(&permits, "a"), take(&permits, "b"));
        let mut first = pin!(permits.acquire("c", "t"));
        assert!(poll(first.as_mut()).is_none());
        let mut second = pin!(permits.acquire("d", "t"));
        assert!(poll(second.as_mut()).is_none());
        drop(a);
        assert!(poll(second.as_mut()).is_none(), "the first has not taken it yet");
        let first = poll(first.as_mut()).expect("its turn");
        drop(b);
        assert!(poll(second.as_mut()).is_some());
        drop(first);
    }

    #[test]
    fn busy_tenant_is_ahead_of_another_by_one_call_per_permit() {
        let permits = Permits::new(4);
        let mut busy: Vec<_> = (0..6).map(|_| Box::pin(permits.acquire("m", "busy"))).collect();
        let mut held: Vec<_> = busy.iter_mut().filter_map(|wait| poll(wait.as_mut())).collect();
        assert_eq!(held.len(), 2);
        let mut calm = pin!(permits.acquire("m", "calm"));
        assert!(poll(calm.as_mut()).is_none(), "the module has its half");
        held.pop();
        for wait in busy.iter_mut().skip(2) {
            assert!(poll(wait.as_mut()).is_none(), "calm waits for longer among tenants");
        }
        assert!(poll(calm.as_mut()).is_some());
    }

    #[test]
    fn attempt_takes_a_free_permit_and_none_ahead_of_a_wait() {
        let permits = Permits::new(4);
        let first = permits.try_acquire("a", "t").expect("free");
        let second = permits.try_acquire("a", "").expect("within its half");
        assert!(permits.try_acquire("a", "u").is_none(), "beyond its half");
        assert_eq!(permits.available(), 2, "an attempt holds nothing");
        let mut waiting = pin!(permits.acquire("a", "t"));
        assert!(poll(waiting.as_mut()).is_none());
        drop(first);
        assert!(permits.try_acquire("a", "t").is_none(), "the wait is first");
        assert!(poll(waiting.as_mut()).is_some());
        drop(second);
        assert!(permits.try_acquire("a", "t").is_some());
    }

    #[test]
    fn dropped_wait_holds_no_permit() {
        let permits = Permits::new(2);
        let a = take(&permits, "a");
        {
            let mut waiting = pin!(permits.acquire("a", "t"));
            assert!(poll(waiting.as_mut()).is_none());
        }
        drop(a);
        assert!(take(&permits, "a").is_some());
        assert_eq!(permits.available(), 2);
    }

    #[test]
    fn semaphores_of_idle_modules_are_removed() {
        let permits = Permits::new(2);
        for index in 0..100 {
            drop(take(&permits, &format!("module-{index}")));
        }
        assert_eq!(permits.shares.lock().expect("nobody panicked").len(), 2);
    }
}
