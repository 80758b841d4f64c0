//! Logs: for people on a terminal, JSON otherwise.
//!
//! Guests and servers give texts that stand in log lines. Each line is one line and does nothing to
//! the terminal, in JSON too: `kubectl logs` shows it there.

use std::fmt;
use std::io::{self, IsTerminal};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context as _;
use innkeeper_cluster::Env;
use innkeeper_core::foreign;
use tracing::field::Field;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::field::MakeExt as _;
use tracing_subscriber::fmt::format::{FormatFields, Writer, debug_fn};
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::document;

/// Log lines that the host hides, unless the filter names their crate.
const QUIET: &str = "kube_client::client::builder=off";

/// The formats of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum LogFormat {
    /// `text` on a terminal, `json` otherwise.
    Auto,
    /// Text for people.
    Text,
    /// One JSON object per line.
    Json,
}

/// The clock of log lines: that of the machine, or the virtual one of a simulated cluster.
#[derive(Clone, Default)]
pub(crate) struct LogClock(Arc<Mutex<Option<Env>>>);

impl LogClock {
    /// Uses the clock of a simulated cluster from here on.
    pub(crate) fn set(&self, env: Env) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(env);
    }
}

impl FormatTime for LogClock {
    fn format_time(&self, writer: &mut Writer<'_>) -> fmt::Result {
        let now = self.0.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(Env::now);
        match now {
            Some(now) => write!(writer, "{now:.3}"),
            None => SystemTime.format_time(writer),
        }
    }
}

/// Sends the logs to standard error. `filter` has the syntax of `RUST_LOG`: `info`, or
/// `info,innkeeper_operator=debug`.
///
/// # Errors
/// If the filter is malformed.
pub(crate) fn start(format: LogFormat, filter: &str) -> anyhow::Result<()> {
    start_at(format, filter, &LogClock::default())
}

/// The same with the time of a clock in each line.
///
/// # Errors
/// If the filter is malformed.
pub(crate) fn start_at(format: LogFormat, filter: &str, clock: &LogClock) -> anyhow::Result<()> {
    let named = filter.contains("kube_client");
    let filter = EnvFilter::try_new(filter).with_context(|| {
        format!(
            "{filter:?} is no log filter; use one such as info or info,innkeeper_operator=debug"
        )
    })?;
    // The kube client logs each attempt to connect; the host logs the result of the attempts.
    let filter = match QUIET.parse() {
        Ok(directive) if !named => filter.add_directive(directive),
        _ => filter,
    };
    let terminal = io::stderr().is_terminal();
    let registry = tracing_subscriber::registry().with(filter);
    let json = match format {
        LogFormat::Auto => !terminal,
        LogFormat::Text => false,
        LogFormat::Json => true,
    };
    if json {
        let layer = tracing_subscriber::fmt::layer().with_writer(|| Visible(io::stderr()));
        registry.with(layer.with_timer(clock.clone()).json().flatten_event(true)).try_init()?;
    } else {
        let layer = tracing_subscriber::fmt::layer().with_writer(io::stderr);
        let layer = layer.with_timer(clock.clone()).with_ansi(terminal);
        registry.with(layer.fmt_fields(text_fields())).try_init()?;
    }
    Ok(())
}

/// Writes JSON lines, with escape codes for characters that are not visible.
struct Visible<W>(W);

impl<W: io::Write> io::Write for Visible<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        self.0.write_all(document::visible_json(&text).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Writes fields as visible text: the message alone, others as `name=value`.
fn text_fields() -> impl for<'a> FormatFields<'a> + 'static {
    debug_fn(|writer: &mut Writer<'_>, field: &Field, value: &dyn fmt::Debug| {
        let value = foreign::one_line(format_args!("{value:?}"), foreign::LINE_BYTES_MAX);
        match field.name() {
            "message" => write!(writer, "{value}"),
            name => write!(writer, "{name}={value}"),
        }
    })
    .delimited(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Default)]
    struct Sink(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Sink {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn text_line_of_a_guest_stays_one_line_without_terminal_commands() {
        let sink = Sink::default();
        let writer = sink.clone();
        let layer = tracing_subscriber::fmt::layer()
            .with_writer(move || writer.clone())
            .with_ansi(false)
            .without_time()
            .fmt_fields(text_fields());
        let text = "a\n ERROR host: forged\r\u{1b}]52;c;eA==\u{7}\u{9b}2J\u{202e}\u{2028}\u{feff}b";
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
            let span = tracing::info_span!("reconcile", trigger = %text);
            let _entered = span.enter();
            tracing::info!(module = text, primary = %text, guest = true, "{text}");
        });
        let written = String::from_utf8(sink.0.lock().unwrap().clone()).unwrap();
        assert_eq!(written.lines().count(), 1, "{written:?}");
        assert!(written.trim_end_matches('\n').chars().all(foreign::is_visible), "{written:?}");
        assert!(written.contains(r"a\n ERROR host: forged\r\u{1b}]52;c;eA==\u{7}"), "{written}");
        assert!(written.contains("guest=true"), "{written}");
    }

    #[test]
    fn json_line_of_a_guest_has_its_text_without_terminal_commands() {
        let sink = Sink::default();
        let writer = sink.clone();
        let layer = tracing_subscriber::fmt::layer()
            .with_writer(move || Visible(writer.clone()))
            .json()
            .flatten_event(true);
        let text = "a\n\u{1b}[2J\u{7f}\u{9b}2J\u{9d}0;t\u{9c}\u{202e}\u{2028}\u{feff}\u{e0041}b";
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
            let span = tracing::info_span!("reconcile", trigger = %text);
            let _entered = span.enter();
            tracing::info!(primary = %text, guest = true, "{text}");
        });
        let written = String::from_utf8(sink.0.lock().unwrap().clone()).unwrap();
        assert_eq!(written.lines().count(), 1, "{written:?}");
        assert!(written.trim_end_matches('\n').chars().all(foreign::is_visible), "{written:?}");
        let line: serde_json::Value = serde_json::from_str(&written).unwrap();
        assert_eq!((&line["message"], &line["primary"]), (&text.into(), &text.into()));
    }
}
