//! CRDs.
