//! Versions of the guest `settings`, each with one difference: each example of this package is a
//! component that a test puts in its place.
//!
//! | component | difference |
//! |---|---|
//! | `settings-fewer` | leaves the last name out: it would delete |
//! | `settings-shouting` | says everything in capitals: it would change everything |
//! | `settings-afraid-of-b` | fails where there is a name `b` |
//! | `settings-afraid-of-late` | fails where the text is `late` |
