//! From the original family operator.
