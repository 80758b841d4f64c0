//! The format of the bytes of a guest: [`Format`].

use crate::error::LoadError;

/// The custom section with the metadata of a Kubewarden policy.
pub(crate) const METADATA_SECTION: &str = "io.kubewarden.metadata";

/// The formats of WebAssembly that the host runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// A component: a guest of the contract.
    Component,
    /// A core module: a Kubewarden policy.
    Module,
}

impl Format {
    /// The format by the first bytes.
    ///
    /// # Errors
    /// [`LoadError::NotAComponent`] for bytes of any other format.
    pub(crate) fn of(bytes: &[u8]) -> Result<Self, LoadError> {
        const MAGIC: &[u8] = b"\0asm";
        /// Version 13 of the binary format, layer 1.
        const COMPONENT: &[u8] = &[0x0d, 0, 1, 0];
        /// Version 1, layer 0.
        const MODULE: &[u8] = &[1, 0, 0, 0];
        const GZIP: &[u8] = &[0x1f, 0x8b];

        let what = match bytes.strip_prefix(MAGIC) {
            Some(rest) if rest.starts_with(COMPONENT) => return Ok(Self::Component),
            Some(rest) if rest.starts_with(MODULE) => return Ok(Self::Module),
            Some(_) => "this is WebAssembly of another binary format".to_owned(),
            None if bytes.is_empty() => "there are no bytes".to_owned(),
            None if bytes.starts_with(GZIP) => "this is compressed by gzip".to_owned(),
            None => format!(
                "the bytes start with {:02x?} instead of [00, 61, 73, 6d]",
                &bytes[..bytes.len().min(MAGIC.len())]
            ),
        };
        Err(LoadError::NotAComponent { what })
    }

    /// The format's part of the name of cached code.
    pub(crate) fn tag(self) -> &'static [u8] {
        match self {
            Self::Component => b"component",
            Self::Module => b"module",
        }
    }
}

/// The error of a core module that is no Kubewarden policy.
pub(crate) fn plain_module() -> LoadError {
    LoadError::NotAComponent {
        what: format!(
            "this is a core module without the section {METADATA_SECTION} of a Kubewarden policy; \
             make a component of it (`wasm-tools component new`), or add the section (`kwctl \
             annotate`)"
        ),
    }
}
