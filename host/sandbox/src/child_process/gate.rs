//! A bound on the number of children at once: [`Gate`].

use std::sync::{Condvar, Mutex, PoisonError};

/// Lets a number of callers through at once; the others wait on their threads.
#[derive(Debug)]
pub(crate) struct Gate {
    free: Mutex<usize>,
    changed: Condvar,
}

/// A place behind a [`Gate`]. The drop frees it.
#[derive(Debug)]
pub(crate) struct GateSlot<'a>(&'a Gate);

impl Gate {
    /// Makes a gate with a number of places, at least one.
    pub(crate) fn new(places: usize) -> Self {
        Self { free: Mutex::new(places.max(1)), changed: Condvar::new() }
    }

    /// Waits for a place.
    pub(crate) fn enter(&self) -> GateSlot<'_> {
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.changed.wait_while(free, |free| *free == 0);
        *waited.unwrap_or_else(PoisonError::into_inner) -= 1;
        GateSlot(self)
    }
}

impl Drop for GateSlot<'_> {
    fn drop(&mut self) {
        *self.0.free.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.0.changed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;

    use super::*;

    #[test]
    fn gate_lets_no_more_through_than_it_has_places() {
        let gate = Gate::new(2);
        let (inside, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..100 {
                        let _place = gate.enter();
                        most.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                        thread::yield_now();
                        inside.fetch_sub(1, Ordering::SeqCst);
                    }
                });
            }
        });
        assert!((1..=2).contains(&most.into_inner()));
    }
}
