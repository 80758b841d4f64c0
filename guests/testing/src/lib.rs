//! Faulty guests, for tests that the host tolerates them. Each example of this package is a
//! component with one fault and the primary of the bench guest, so that a test can replace the
//! bench guest by it. `*.wat` are components that the Rust toolchain cannot build.
//!
//! | component | fault |
//! |---|---|
//! | `traps-in-describe` | panics in `describe` |
//! | `loops-in-reconcile` | never returns from `reconcile` |
//! | `allocates-in-reconcile` | allocates memory without end |
//! | `makes-undeclared-kind` | desires a Secret, which its manifest does not own |
//! | `imports-wasi` | imports `wasi:cli/environment`, which the host does not provide |
