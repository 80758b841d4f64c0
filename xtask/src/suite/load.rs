//! Load on the machine: threads that only spin.

use std::hint;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

/// Spinning threads; they end with the value.
pub(super) struct Load {
    ended: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Load {
    /// Starts as many threads.
    pub(super) fn start(threads: usize) -> Self {
        let ended = Arc::new(AtomicBool::new(false));
        let spin = |_| {
            let ended = Arc::clone(&ended);
            thread::spawn(move || {
                while !ended.load(Ordering::Relaxed) {
                    hint::spin_loop();
                }
            })
        };
        let threads = (0..threads).map(spin).collect();
        Self { ended, threads }
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // A thread that only spins does not panic.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_end_with_the_value() {
        let load = Load::start(2);
        let ended = Arc::clone(&load.ended);
        assert_eq!(load.threads.len(), 2);
        drop(load);
        assert_eq!(Arc::strong_count(&ended), 1, "no thread holds it any more");
    }
}
