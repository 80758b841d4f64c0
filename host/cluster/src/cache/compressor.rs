//! The compressor of the objects of one cache: [`Compressor`].

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use innkeeper_core::Object;
use innkeeper_core::object::ObjectCompressor;

/// Makes the objects of one cache small before they enter. That takes some microseconds, and
/// milliseconds for a text of a MiB: so it has a lock of its own, and is used outside the lock of
/// the store. The watch and the writers of one kind wait for each other. Clones are the same.
#[derive(Clone, Debug, Default)]
pub(super) struct Compressor(Arc<Mutex<ObjectCompressor>>);

impl Compressor {
    /// The same object, compressed.
    pub(super) fn compress(&self, object: Object) -> Object {
        self.lock().compress(object)
    }

    /// The bytes of what the compressed texts refer to.
    pub(super) fn dictionary_bytes(&self) -> usize {
        self.lock().dictionary_bytes()
    }

    fn lock(&self) -> MutexGuard<'_, ObjectCompressor> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
