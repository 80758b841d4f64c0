//! The thread that advances the epoch of guests: [`Ticker`].

use std::io;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;

use crate::settings::TICK;

/// Advances an engine's epoch every [`TICK`], until its drop.
#[derive(Debug)]
pub(crate) struct Ticker {
    /// The drop wakes the thread, which then ends. Nothing is sent on it.
    _alive: Sender<()>,
}

impl Ticker {
    pub(crate) fn start(engine: &wasmtime::Engine) -> io::Result<Self> {
        let (alive, ended) = channel();
        let engine = engine.weak();
        thread::Builder::new().name("epoch".into()).spawn(move || {
            while ended.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
                match engine.upgrade() {
                    Some(engine) => engine.increment_epoch(),
                    None => break,
                }
            }
        })?;
        Ok(Self { _alive: alive })
    }
}
