//! Kinds, plurals and scopes that a guest invents.
