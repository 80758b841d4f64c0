//! Properties of everything that reads foreign bytes.
//!
//! A [`Target`] is one reader. Its `fuzz_entry` takes any bytes, reads them, and panics if a
//! property does not hold: what it accepts is printed and read back as the same, names that it
//! accepts are safe, limits hold. Two drivers call the same entries: `tests/properties.rs` with
//! random documents from a printed seed, and libFuzzer (`libfuzzer/`, `cargo xtask fuzz`).
//! docs/fuzzing.md has figures.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::missing_panics_doc,
    reason = "a property fails by a panic"
)]

pub mod admission;
pub mod case;
pub mod cel;
pub mod chunks;
pub mod component;
pub mod definition;
pub mod desired;
pub mod failure;
pub mod faults;
pub mod kubeconfig;
pub mod kubewarden;
pub mod manifest;
pub mod module;
pub mod mutate;
pub mod quantity;
pub mod selector;
pub mod sieve;
pub mod steps;
pub mod verdict;

use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// A reader of foreign bytes and the properties that it has to have.
#[derive(Clone, Copy)]
pub struct Target {
    /// The name, as `cargo xtask fuzz` takes it.
    pub name: &'static str,
    /// Reads bytes; panics if a property does not hold.
    pub fuzz_entry: fn(&[u8]),
    /// Documents for one random test in CI: as many as take about a second.
    pub cases: usize,
}

impl Target {
    /// The folder with the documents that a search begins with.
    pub fn corpus(&self) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(self.name)
    }
}

/// CPU time of this thread since it started, which other programs on the machine do not change.
pub fn cpu_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).expect("CPU time is not negative")
}

/// All targets.
pub const TARGETS: [Target; 18] = [
    Target { name: "manifest", fuzz_entry: manifest::fuzz_entry, cases: 4_000 },
    Target { name: "desired", fuzz_entry: desired::fuzz_entry, cases: 4_000 },
    Target { name: "failure", fuzz_entry: failure::fuzz_entry, cases: 8_000 },
    Target { name: "selector", fuzz_entry: selector::fuzz_entry, cases: 20_000 },
    Target { name: "quantity", fuzz_entry: quantity::fuzz_entry, cases: 20_000 },
    Target { name: "definition", fuzz_entry: definition::fuzz_entry, cases: 2_000 },
    Target { name: "chunks", fuzz_entry: chunks::fuzz_entry, cases: 100 },
    Target { name: "cel", fuzz_entry: cel::fuzz_entry, cases: 100 },
    Target { name: "kubeconfig", fuzz_entry: kubeconfig::fuzz_entry, cases: 2_000 },
    Target { name: "admission", fuzz_entry: admission::fuzz_entry, cases: 4_000 },
    Target { name: "verdict", fuzz_entry: verdict::fuzz_entry, cases: 4_000 },
    Target { name: "faults", fuzz_entry: faults::fuzz_entry, cases: 8_000 },
    Target { name: "case", fuzz_entry: case::fuzz_entry, cases: 4_000 },
    Target { name: "sieve", fuzz_entry: sieve::fuzz_entry, cases: 4_000 },
    Target { name: "component", fuzz_entry: component::fuzz_entry, cases: 1_000 },
    Target { name: "kubewarden", fuzz_entry: kubewarden::fuzz_entry, cases: 2_000 },
    Target { name: "module", fuzz_entry: module::fuzz_entry, cases: 4_000 },
    Target { name: "steps", fuzz_entry: steps::fuzz_entry, cases: 200 },
];
