//! Logs: for people on a terminal, JSON otherwise.

use std::io::{self, IsTerminal};

use anyhow::Context as _;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// Left out of the logs, unless the filter names the crate.
const QUIET: &str = "kube_client::client::builder=off";

/// How log lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum LogFormat {
    /// `text` on a terminal, `json` otherwise.
    Auto,
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// Sends the logs to standard error. `filter` is as in `RUST_LOG`: `info`, or
/// `info,innkeeper_operator=debug`.
pub(crate) fn start(format: LogFormat, filter: &str) -> anyhow::Result<()> {
    let named = filter.contains("kube_client");
    let filter = EnvFilter::try_new(filter).with_context(|| {
        format!("{filter:?} is not a log filter; try info, or info,innkeeper_operator=debug")
    })?;
    // The connector of the kube client complains of each try; what comes of the tries is said
    // by us.
    let filter = match QUIET.parse() {
        Ok(directive) if !named => filter.add_directive(directive),
        _ => filter,
    };
    let terminal = io::stderr().is_terminal();
    let registry = tracing_subscriber::registry().with(filter);
    let layer = tracing_subscriber::fmt::layer().with_writer(io::stderr);
    let json = match format {
        LogFormat::Auto => !terminal,
        LogFormat::Text => false,
        LogFormat::Json => true,
    };
    if json {
        registry.with(layer.json().flatten_event(true)).try_init()?;
    } else {
        registry.with(layer.with_ansi(terminal)).try_init()?;
    }
    Ok(())
}
