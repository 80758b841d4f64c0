//! Binds the contract's functions to the SDK's types. For [`export!`](crate::export) only.

use crate::reconciler::{manifest_text, reconcile_text};
use crate::{ClusterReader, LogLevel, RawOutcome, ReadError, Reconciler, type_fields};

/// The bindings that wit-bindgen generates from the contract.
#[allow(unsafe_code, missing_docs, unreachable_pub, clippy::pedantic, clippy::expect_used)]
pub mod bindings {
    wit_bindgen::generate!({
        path: "../../wit",
        world: "reconciler-guest",
        pub_export_macro: true,
    });
}

pub use bindings::exports::innkeeper::guest::reconciler::{Guest, Outcome};
use bindings::innkeeper::guest::{clock, cluster, log};

/// Reads through the component's imports.
struct Host;

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

/// Implements the export `describe`: returns the `manifest` document.
pub fn describe<R: Reconciler>() -> String {
    report_panics();
    let manifest = R::describe();
    if let Some(line) = type_fields::warning::<R::Primary>(&manifest) {
        log::write(log::Level::Warn, &line);
    }
    manifest_text(&manifest)
}

/// Implements the export `reconcile`: takes an `observed` document, returns the outcome.
pub fn reconcile<R: Reconciler>(observed: &str) -> Outcome {
    report_panics();
    match reconcile_text::<R>(&Host, observed) {
        RawOutcome::Complete(desired) => Outcome::Complete(desired),
        RawOutcome::Partial(desired) => Outcome::Partial(desired),
        RawOutcome::Failed(failure) => Outcome::Failed(failure),
    }
}

/// Logs the message of a panic before it traps: the backtrace of a trap shows where, not why.
/// Every call has a fresh instance, so each call sets the hook; that allocates nothing.
fn report_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let message = panic.payload_as_str().unwrap_or("(no message)");
        let line = match panic.location() {
            Some(place) => format!("panicked at {place}: {message}"),
            None => format!("panicked: {message}"),
        };
        log::write(log::Level::Error, &line);
    }));
}
