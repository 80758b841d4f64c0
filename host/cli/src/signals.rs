//! The signals that end a command: Ctrl-C, SIGTERM, and SIGHUP when its terminal goes.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals that end a command.
pub(crate) struct EndSignals {
    interrupt: Signal,
    terminate: Signal,
    /// `None` if the process was started to outlive its terminal, as by `nohup`.
    hangup: Option<Signal>,
}

impl EndSignals {
    /// Receives these signals from now on, instead of being ended by them. To be called in a tokio
    /// runtime.
    ///
    /// # Errors
    /// If the system refuses a handler.
    pub(crate) fn listen() -> io::Result<Self> {
        let hangup = (!is_hangup_ignored()).then(|| signal(SignalKind::hangup())).transpose()?;
        let interrupt = signal(SignalKind::interrupt())?;
        Ok(Self { interrupt, terminate: signal(SignalKind::terminate())?, hangup })
    }

    /// Waits for one of them.
    pub(crate) async fn received(&mut self) {
        let hangup = async {
            match &mut self.hangup {
                Some(hangup) => hangup.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            _ = hangup => {}
        }
    }
}

fn is_hangup_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    ignored.is_some_and(|mask| mask & 1 != 0)
}
