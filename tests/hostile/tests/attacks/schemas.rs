//! Schemas that take time and memory.
