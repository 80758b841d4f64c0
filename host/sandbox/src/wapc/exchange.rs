//! What passes between the host and the guest of one waPC call: [`Exchange`].

/// The bytes that pass between the host and a guest. The guest asks for them one by one.
#[derive(Default)]
pub(crate) struct Exchange {
    /// The operation that the guest is to do.
    pub(crate) operation: &'static str,
    /// The request of the operation.
    pub(crate) request: Vec<u8>,
    /// The guest's answer, and its error.
    pub(crate) response: Option<Vec<u8>>,
    pub(crate) error: Option<Vec<u8>>,
    /// The answer of the last call of the host, and its error; empty before.
    pub(crate) host_response: Vec<u8>,
    pub(crate) host_error: Vec<u8>,
}

impl Exchange {
    /// Begins an operation. What an earlier one left is gone.
    pub(crate) fn begin(&mut self, operation: &'static str, request: &[u8]) {
        *self = Self { operation, request: request.to_vec(), ..Self::default() };
    }
}

/// The error that ends a call whose answer is too large.
#[derive(Debug, thiserror::Error)]
#[error("the response has {bytes} bytes")]
pub(crate) struct ResponseTooLarge {
    /// Its size.
    pub(crate) bytes: usize,
}

/// The error that ends a call in which the guest ends itself.
#[derive(Debug, thiserror::Error)]
#[error("the guest ended itself by proc_exit({0})")]
pub(crate) struct Exited(pub(crate) i32);
