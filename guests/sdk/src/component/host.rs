//! The imports of every guest.

use super::bindings::reconciler::innkeeper::guest::{clock, cluster, log};
use crate::{ClusterReader, LogLevel, ReadError};

/// Reads through the component's imports.
pub(super) struct Host;

impl ClusterReader for Host {
    fn get(
        &self,
        api_version: &str,
        kind: &str,
        namespace: &str,
        name: &str,
    ) -> Result<String, ReadError> {
        Ok(cluster::get(&resource_kind(api_version, kind), namespace, name)?)
    }

    fn list(
        &self,
        api_version: &str,
        kind: &str,
        namespace: &str,
        selector: &str,
    ) -> Result<String, ReadError> {
        Ok(cluster::list(&resource_kind(api_version, kind), namespace, selector)?)
    }

    fn now_ms(&self) -> f64 {
        clock::now_ms()
    }

    fn log(&self, level: LogLevel, message: &str) {
        let level = match level {
            LogLevel::Debug => log::Level::Debug,
            LogLevel::Info => log::Level::Info,
            LogLevel::Warn => log::Level::Warn,
            LogLevel::Error => log::Level::Error,
        };
        log::write(level, message);
    }
}

impl From<cluster::ReadError> for ReadError {
    fn from(error: cluster::ReadError) -> Self {
        match error {
            cluster::ReadError::NotFound => Self::NotFound,
            cluster::ReadError::NotServed => Self::NotServed,
            cluster::ReadError::Forbidden(what) => Self::Forbidden(what),
            cluster::ReadError::Undeclared => Self::Undeclared,
            cluster::ReadError::Invalid(why) => Self::Invalid(why),
        }
    }
}

fn resource_kind(api_version: &str, kind: &str) -> cluster::ResourceKind {
    cluster::ResourceKind { api_version: api_version.to_owned(), kind: kind.to_owned() }
}

/// Logs the message of a panic before it traps: the backtrace of a trap shows where, not why.
/// Every call has a fresh instance, so each call sets the hook; that allocates nothing.
pub(super) fn report_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let message = panic.payload_as_str().unwrap_or("(no message)");
        let line = match panic.location() {
            Some(place) => format!("panicked at {place}: {message}"),
            None => format!("panicked: {message}"),
        };
        log::write(log::Level::Error, &line);
    }));
}
