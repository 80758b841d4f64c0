//! The thread that lets time pass for guests.

use std::io;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;

use crate::settings::TICK;

/// Advances an engine's epoch every [`TICK`], until it is dropped.
#[derive(Debug)]
pub(crate) struct Ticker {
    /// Never sent on: dropping it wakes the thread, which then ends.
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
