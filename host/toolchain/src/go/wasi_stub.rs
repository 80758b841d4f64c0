//! The system of guests in Go: an adapter without clock, randomness, files and network.

use anyhow::{Context as _, Result};
use wit_component::{StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

/// The import of core modules that the adapter satisfies.
pub(super) const NAME: &str = "wasi_snapshot_preview1";

/// The end of the addresses at which the adapter has its state.
pub(super) const STATE_END: i32 = 12_288;

/// What the adapter itself imports.
const WORLD: &str =
    "package innkeeper:wasi-stub; world wasi-stub { import innkeeper:guest/log@0.1.0; }";

/// The bytes of the adapter. `resolve` has the contract.
///
/// # Errors
/// If its texts are wrong, which the tests exclude.
pub(super) fn adapter(resolve: &mut Resolve) -> Result<Vec<u8>> {
    let mut module =
        wat::parse_str(include_str!("wasi_stub.wat")).context("cannot parse the stub of WASI")?;
    let package = resolve.push_str("wasi_stub.wit", WORLD)?;
    let world = resolve.select_world(&[package], None)?;
    embed_component_metadata(&mut module, resolve, world, StringEncoding::UTF8)?;
    Ok(module)
}
