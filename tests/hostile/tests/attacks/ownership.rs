//! Objects, labels and finalizers of others.
