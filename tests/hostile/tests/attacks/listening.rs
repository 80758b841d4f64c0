//! What the host listens to.
