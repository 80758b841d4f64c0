//! From the original postgres operator.
