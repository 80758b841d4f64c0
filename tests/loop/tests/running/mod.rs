//! What the tests of the loop have in common: one thread, virtual time, and components.

use std::path::PathBuf;

/// Runs `future` on one thread and virtual time.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    innkeeper_lab::block_on(future).unwrap()
}

/// A component that `cargo xtask guests` has built.
pub(crate) fn component(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join(format!("../../guests/target/components/{name}.wasm"));
    assert!(path.exists(), "{} is not there: run `cargo xtask guests` first", path.display());
    path.canonicalize().unwrap()
}
