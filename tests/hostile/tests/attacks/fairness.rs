//! Guests and tenants that take more than their share.
