//! Why a document is no mask: [`FieldMaskError`].

use super::limits::{DEPTH_MAX, ELEMENT_BYTES_MAX, ELEMENTS_MAX};

/// Why a document is no mask. Each error names the path of the element, from the root of the mask.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FieldMaskError {
    /// An element is not of the format.
    #[error(
        "`{path}` has the element `{element}`, which is none of `f:name`, `k:{{\"name\":\"a\"}}` and `*`"
    )]
    Element {
        /// The path of the element above.
        path: String,
        /// The element.
        element: String,
    },
    /// The keys of an item are no object of texts, numbers and booleans.
    #[error(
        "`{path}` has the element `{element}`, whose keys are not an object of texts, numbers and booleans with at least one member"
    )]
    Keys {
        /// The path of the element above.
        path: String,
        /// The element.
        element: String,
    },
    /// The keys of the items of one list have different names.
    #[error(
        "`{path}` has the element `{element}`, whose keys have other names than those of its siblings; write `*` for every item"
    )]
    KeyNames {
        /// The path of the element above.
        path: String,
        /// The element.
        element: String,
    },
    /// An element is too long.
    #[error("`{path}` has an element of {bytes} bytes; at most {ELEMENT_BYTES_MAX} are allowed")]
    ElementTooLong {
        /// The path of the element above.
        path: String,
        /// Its length in bytes.
        bytes: usize,
    },
    /// The value of an element is not an object.
    #[error("`{path}` is not an object of elements; write {{}} for a whole value")]
    NotAnObject {
        /// The path of the element.
        path: String,
    },
    /// A path is too deep.
    #[error("`{path}` is deeper than {DEPTH_MAX} elements; end the path above")]
    TooDeep {
        /// The path.
        path: String,
    },
    /// The mask has too many elements.
    #[error(
        "the mask has more than {ELEMENTS_MAX} elements, where `*` counts again for each of its siblings; name whole fields instead"
    )]
    TooManyElements,
}
