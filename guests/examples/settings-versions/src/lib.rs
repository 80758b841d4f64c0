//! Versions of the guest `settings`, each with one difference. Each example of this package is a
//! component that tests load as the candidate revision.
//!
//! | component | difference |
//! |---|---|
//! | `settings-fewer` | ignores the last name: it would delete a ConfigMap |
//! | `settings-shouting` | writes the text in capitals: it would change every ConfigMap |
//! | `settings-nothing` | desires nothing and owns no kind |
//! | `settings-afraid-of-b` | fails if there is a name `b` |
//! | `settings-afraid-of-late` | fails if the text is `late` |
