//! The log of the host of one test.

use std::cell::RefCell;
use std::io::Write;
use std::sync::Once;

thread_local! {
    /// What the host of this thread's test has written into its log.
    static LOGGED: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Writes into the log of its thread.
struct Log;

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        LOGGED.with_borrow_mut(|logged| logged.extend_from_slice(bytes));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Begins to keep what the hosts of all tests log. One subscriber for all threads: whether a line
/// is wanted is remembered for the process.
pub(crate) fn keep_log() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(tracing::Level::DEBUG)
            .with_ansi(false)
            .with_writer(|| Log)
            .finish();
        tracing::subscriber::set_global_default(subscriber).unwrap();
    });
    LOGGED.take();
}

/// The lines that the host itself or a guest logged, not what a library shows of its requests.
pub(crate) fn logged() -> Vec<String> {
    let text = String::from_utf8(LOGGED.take()).unwrap();
    text.lines().filter(|line| line.contains("innkeeper_")).map(str::to_owned).collect()
}
