//! The certificates of the admission server, as all replicas share them.
//!
//! An authority of the host's own signs the certificate that the replicas serve. The webhook
//! configurations trust the authority. [`Certificates::due`] says when which certificate changes.

mod authority;
mod change;
mod error;
mod rotation;
mod secret;
mod serving;
mod shared;
mod validity;

pub use self::authority::Authority;
pub use self::change::Change;
pub use self::error::CertificateError;
pub use self::rotation::Observed;
pub use self::serving::ServingCertificate;
pub use self::shared::{Certificates, Phase};
pub use self::validity::{Lifetimes, Validity};
