//! From the original podroute operator.
