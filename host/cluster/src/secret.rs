//! The digests in place of values of Secrets: [`SecretDigestKey`].

use std::fmt;
use std::sync::Arc;

use hmac::{Hmac, KeyInit as _, Mac as _};
use innkeeper_core::ObjectKey;
use sha2::Sha256;

/// Hexadecimal digits of a digest.
const DIGITS: usize = 16;

/// The key of the digests in place of values of Secrets, in caches and for guests.
///
/// A digest is the first 16 hexadecimal digits of HMAC-SHA256 over namespace, name, name of the
/// value, and value. So equal values in two places have different digests, and nobody can guess a
/// value without the key.
#[derive(Clone)]
pub struct SecretDigestKey {
    mac: Arc<Hmac<Sha256>>,
    /// The namespace of the Secret that holds the key, if there is one.
    namespace: Option<Arc<str>>,
}

impl SecretDigestKey {
    /// Makes a key of bytes of any length; 32 random bytes are good.
    pub fn new(key: &[u8]) -> Self {
        // HMAC takes keys of every length: longer ones are hashed, shorter ones padded.
        let mut block = [0; 64];
        if key.len() <= block.len() {
            block[..key.len()].copy_from_slice(key);
        } else {
            use sha2::Digest as _;
            block[..32].copy_from_slice(&Sha256::digest(key));
        }
        Self { mac: Arc::new(Hmac::new((&block).into())), namespace: None }
    }

    /// The same key, with the namespace of the Secret that holds it: no module reads Secrets there.
    #[must_use]
    pub fn kept_in(self, namespace: &str) -> Self {
        Self { namespace: Some(namespace.into()), ..self }
    }

    /// The namespace of the Secret that holds the key.
    pub(crate) fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    /// Makes a random key for this process: digests change at every start.
    pub fn forgotten(env: &crate::Env) -> Self {
        let words: Vec<u8> = (0..4).flat_map(|_| env.random().to_le_bytes()).collect();
        Self::new(&words)
    }

    /// Derives a key for another purpose, from which nobody can compute this key or other ones.
    pub fn derive(&self, purpose: &str) -> [u8; 32] {
        let mut mac = Hmac::clone(&self.mac);
        // No namespace has a NUL, so this is the digest of no Secret.
        mac.update(b"\0purpose/");
        mac.update(purpose.as_bytes());
        mac.finalize().into_bytes().into()
    }

    /// The digest of a text that is no value of a Secret, for one purpose: digests of other
    /// purposes and of Secrets differ from it.
    pub fn digest_text(&self, purpose: &str, text: &str) -> String {
        let mut mac = Hmac::clone(&self.mac);
        mac.update(b"\0text/");
        mac.update(purpose.as_bytes());
        mac.update(b"\0");
        mac.update(text.as_bytes());
        truncated(mac)
    }

    /// The digest of one value, in the form that the object has it in (base64 in `data`).
    pub fn digest(&self, secret: &ObjectKey, name: &str, value: &str) -> String {
        let mut mac = Hmac::clone(&self.mac);
        mac.update(format!("{}/{}/{name}/{value}", secret.namespace(), secret.name()).as_bytes());
        truncated(mac)
    }
}

fn truncated(mac: Hmac<Sha256>) -> String {
    let mut digest = hex::encode(mac.finalize().into_bytes());
    digest.truncate(DIGITS);
    digest
}

impl fmt::Debug for SecretDigestKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretDigestKey(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digest_depends_on_the_key_the_name_and_the_value() {
        let digest = |key: &[u8], name, value| {
            SecretDigestKey::new(key).digest(&ObjectKey::new("n", "s"), name, value)
        };
        let one = digest(b"key", "password", "aHVudGVyMg==");
        assert_eq!(one.len(), DIGITS);
        assert_eq!(one, digest(b"key", "password", "aHVudGVyMg=="));
        assert_ne!(one, digest(b"yek", "password", "aHVudGVyMg=="));
        assert_ne!(one, digest(b"key", "other", "aHVudGVyMg=="));
        assert_ne!(one, digest(b"key", "password", "aHVudGVyMw=="));
    }

    #[test]
    fn derived_keys_differ_by_purpose_and_key() {
        let derived = |key: &[u8], purpose| SecretDigestKey::new(key).derive(purpose);
        assert_eq!(derived(b"key", "a"), derived(b"key", "a"));
        assert_ne!(derived(b"key", "a"), derived(b"key", "b"));
        assert_ne!(derived(b"key", "a"), derived(b"yek", "a"));
        let digest = SecretDigestKey::new(b"key").digest(&ObjectKey::new("", ""), "a", "");
        assert!(!hex::encode(derived(b"key", "a")).starts_with(&digest));
    }

    #[test]
    fn digests_of_texts_differ_by_purpose_and_key() {
        let digest = |key: &[u8], purpose| SecretDigestKey::new(key).digest_text(purpose, "x");
        let one = digest(b"key", "a");
        assert_eq!(one.len(), DIGITS);
        assert_ne!(one, digest(b"key", "b"));
        assert_ne!(one, digest(b"yek", "a"));
        assert_ne!(one, SecretDigestKey::new(b"key").digest_text("", "a\0x"));
    }

    #[test]
    fn digest_is_hmac_sha256_of_rfc_4231() {
        // RFC 4231, test case 2: the key shorter than a block.
        let key = SecretDigestKey::new(b"Jefe");
        let mut mac = Hmac::clone(&key.mac);
        mac.update(b"what do ya want for nothing?");
        assert_eq!(
            hex::encode(mac.finalize().into_bytes()),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        );
    }
}
