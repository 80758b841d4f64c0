//! The thread that advances the epoch of guests: [`Ticker`].

use std::io;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};

use crate::settings::TICK;

/// Advances an engine's epoch every [`TICK`], until its drop.
#[derive(Debug)]
pub(crate) struct Ticker {
    /// The drop wakes the thread, which then ends. Nothing is sent on it.
    alive: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Ticker {
    pub(crate) fn start(engine: &wasmtime::Engine) -> io::Result<Self> {
        let (alive, ended) = channel();
        let engine = engine.weak();
        let thread = thread::Builder::new().name("epoch".into()).spawn(move || {
            while ended.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
                match engine.upgrade() {
                    Some(engine) => engine.increment_epoch(),
                    None => break,
                }
            }
        })?;
        Ok(Self { alive: Some(alive), thread: Some(thread) })
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.alive = None;
        // During a tick the thread has a strong reference to the engine: only after its end is the
        // engine's memory free.
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
