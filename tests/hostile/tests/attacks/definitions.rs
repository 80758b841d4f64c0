//! CustomResourceDefinitions that a guest describes.
