//! Secrets and identities.
