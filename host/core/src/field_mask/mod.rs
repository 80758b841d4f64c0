//! Masks: which fields of an object count.
//!
//! A mask is a tree of paths in the form of `fieldsV1`, the format of `managedFields`
//! (structured-merge-diff): `f:name` is a member of an object, and `k:{"name":"a"}` the item of a
//! list with these keys. `*` is every item of a list, or every member of an object. A path that
//! ends without further elements (`{}`) stands for its whole value.
//!
//! ```json
//! {"f:spec": {"f:replicas": {}, "f:containers": {"*": {"f:image": {}}}}}
//! ```
//!
//! # What a mask keeps
//! - An object or a list on the way to a path stays, without its other members: a reader may ask
//!   whether it exists.
//! - A value of another type than the mask expects stays whole: a list where the mask has members
//!   of an object, for example. A reader then finds what it would find without the mask.
//! - The order of items stays. Those that no path names are left out; one that is named by its keys
//!   keeps its keys.
//!
//! # What a mask costs
//! Masks come from guests, and the host compares each event within them. So one element of a mask
//! decides about each member and each item: `*` counts for its siblings when the mask is read, and
//! all `k:` elements of a list have the same names. A mask has at most [`ELEMENTS_MAX`] elements,
//! also then; a union of more is the whole object.

mod compare;
mod error;
mod keys;
mod limits;
mod mask;
mod parse;
mod prune;
#[cfg(test)]
mod tests;

pub use error::FieldMaskError;
pub use limits::{DEPTH_MAX, ELEMENT_BYTES_MAX, ELEMENTS_MAX};
pub use mask::FieldMask;
