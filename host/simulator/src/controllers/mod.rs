//! What reacts to writes: at once, as admission and registries do, or when time passes, as
//! controllers do.

mod address;
mod garbage;
mod lifecycle;
