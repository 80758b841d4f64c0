//! Guests that misbehave, to see that the host bears it: each example of this package is a
//! component with one fault and the primary of the bench guest, so that a test can put it in
//! the bench guest's place. `*.wat` are components that no Rust crate would give.
//!
//! | component | fault |
//! |---|---|
//! | `traps-in-describe` | a panic while it is asked what it is |
//! | `loops-in-reconcile` | never comes back |
//! | `allocates-in-reconcile` | asks for memory without end |
//! | `makes-undeclared-kind` | desires a Secret, which its manifest does not own |
//! | `imports-wasi` | imports `wasi:cli/environment`, which the host does not have |
