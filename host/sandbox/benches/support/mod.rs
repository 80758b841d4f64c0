//! What benches of guests have in common.

#![allow(dead_code, reason = "each bench uses a part")]
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::redundant_pub_crate,
    reason = "a bench has nobody to tell of errors"
)]

use std::path::PathBuf;

use innkeeper_sandbox::{Host, Level, ReadError, ResourceKind};

/// A component that `cargo xtask guests` has built.
pub(crate) fn component(name: &str) -> Vec<u8> {
    let path: PathBuf =
        [env!("CARGO_MANIFEST_DIR"), "../../guests/target/components", &format!("{name}.wasm")]
            .iter()
            .collect();
    std::fs::read(&path).unwrap_or_else(|error| {
        panic!("{}: {error}; `cargo xtask guests` builds it", path.display())
    })
}

#[expect(clippy::cast_precision_loss, reason = "for people")]
pub(crate) fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

/// What this process takes, in bytes.
pub(crate) struct Memory {
    pub(crate) anonymous: u64,
    pub(crate) resident: u64,
    pub(crate) proportional: u64,
}

impl Memory {
    pub(crate) fn now() -> Self {
        let text = std::fs::read_to_string("/proc/self/smaps_rollup").expect("smaps_rollup");
        let of = |name: &str| {
            text.lines()
                .filter_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
                .find_map(|rest| rest.split_whitespace().next()?.parse::<u64>().ok())
                .map_or_else(|| panic!("no {name} in {text}"), |kib| kib << 10)
        };
        Self { anonymous: of("Anonymous"), resident: of("Rss"), proportional: of("Pss") }
    }
}

/// Nothing to read: what is measured is given all it needs.
pub(crate) struct NoWorld;

impl Host for NoWorld {
    fn get(&mut self, _: &ResourceKind, _: &str, _: &str, _: usize) -> Result<String, ReadError> {
        Err(ReadError::NotFound)
    }

    fn list(&mut self, _: &ResourceKind, _: &str, _: &str, _: usize) -> Result<String, ReadError> {
        Err(ReadError::NotFound)
    }

    fn now_ms(&mut self) -> u64 {
        0
    }

    fn log(&mut self, _: Level, _: &str) {}
}
