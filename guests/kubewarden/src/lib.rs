//! Policies built with Kubewarden's SDK: see the examples.
