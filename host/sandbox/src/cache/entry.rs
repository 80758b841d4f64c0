//! One entry: its name, a digest over all that its code depends on, and its seal.
//!
//! ```text
//! artifact | MAGIC | HMAC-SHA256(key, PURPOSE | name | artifact)
//! ```

use std::hash::{Hash, Hasher};
use std::io::{self, Read, Write};

use hmac::Mac as _;
use sha2::{Digest as _, Sha256};

use super::key::Key;
use crate::format::Format;

/// The bytes between artifact and authentication code, which name the format.
const MAGIC: &[u8; 8] = b"INKCODE1";

/// The purpose of the key here, so that it can have others elsewhere.
const PURPOSE: &[u8] = b"innkeeper code cache 1\0";

/// Bytes of the authentication code.
const MAC_BYTES: usize = 32;

/// Bytes of the seal: of an entry beyond its artifact.
pub(super) const SEAL_BYTES: u64 = (MAGIC.len() + MAC_BYTES) as u64;

/// The suffix of an entry's file name.
const SUFFIX: &str = ".code";

/// The bytes of one read.
const CHUNK_BYTES: usize = 64 << 10;

/// A digest over all that the code of a component depends on.
pub(super) struct Name([u8; 32]);

impl Name {
    /// The name for a guest (its format, and the SHA-256 of its bytes) and an engine: it covers
    /// wasmtime's version, the settings and CPU features that shape code, and the versions of the
    /// contract and this host.
    pub(super) fn of(wasm: &wasmtime::Engine, format: Format, guest: &[u8; 32]) -> Self {
        let mut engine = Sha256Hasher(Sha256::new());
        wasm.precompile_compatibility_hash().hash(&mut engine);
        let mut name = Sha256::new_with_prefix(PURPOSE);
        name.update(format.tag());
        name.update(b"\0");
        name.update(guest);
        name.update(engine.0.finalize());
        for version in [innkeeper_contract::VERSION, env!("CARGO_PKG_VERSION")] {
            name.update(version);
            name.update(b"\0");
        }
        Self(name.finalize().into())
    }

    /// The name of the file in the folder.
    pub(super) fn file(&self) -> String {
        format!("{}{SUFFIX}", hex::encode(self.0))
    }

    /// Whether a file with this name is an entry.
    pub(super) fn is_file(name: &str) -> bool {
        name.strip_suffix(SUFFIX)
            .is_some_and(|digits| hex::decode_to_slice(digits, &mut [0; 32]).is_ok())
    }
}

/// Hashes all input by SHA-256. The hashes of std are too short, and differ between releases.
struct Sha256Hasher(Sha256);

impl Hasher for Sha256Hasher {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// No caller uses these 64 bits; `Name::of` takes the digest from the field.
    fn finish(&self) -> u64 {
        let digest: [u8; 32] = self.0.clone().finalize().into();
        digest.iter().take(8).fold(0, |bits, byte| bits << 8 | u64::from(*byte))
    }
}

/// Writes an artifact and its seal; gives the length of the artifact in bytes.
pub(super) fn write(
    key: &Key,
    name: &Name,
    artifact: &mut dyn Read,
    to: &mut dyn Write,
) -> io::Result<u64> {
    let mut mac = key.mac();
    mac.update(PURPOSE);
    mac.update(&name.0);
    let mut written = 0;
    each_chunk(artifact, |chunk| {
        mac.update(chunk);
        written += chunk.len() as u64;
        to.write_all(chunk)
    })?;
    to.write_all(MAGIC)?;
    to.write_all(&mac.finalize().into_bytes())?;
    to.flush()?;
    Ok(written)
}

/// Checks the seal of a file of `bytes` bytes, from its start; `Err` has the problem.
pub(super) fn check(key: &Key, name: &Name, file: &mut dyn Read, bytes: u64) -> Result<(), String> {
    let unreadable = |error: io::Error| format!("it cannot be read: {error}");
    let artifact_bytes = bytes.checked_sub(SEAL_BYTES).ok_or("it is too short")?;
    let mut mac = key.mac();
    mac.update(PURPOSE);
    mac.update(&name.0);
    let mut left = artifact_bytes;
    each_chunk(&mut file.take(artifact_bytes), |chunk| {
        mac.update(chunk);
        left = left.saturating_sub(chunk.len() as u64);
        Ok(())
    })
    .map_err(unreadable)?;
    let mut magic = [0; MAGIC.len()];
    let mut code = [0; MAC_BYTES];
    file.read_exact(&mut magic).and_then(|()| file.read_exact(&mut code)).map_err(unreadable)?;
    if left != 0 || magic != *MAGIC {
        return Err("its end is not a seal of this format".to_owned());
    }
    // In constant time.
    mac.verify_slice(&code)
        .map_err(|_| "its seal is not of this host's key, or its bytes were changed".to_owned())
}

fn each_chunk(
    from: &mut dyn Read,
    mut take: impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let mut buffer = vec![0; CHUNK_BYTES];
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(count) => take(&buffer[..count])?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use wasmtime::{Config, Engine};

    use super::*;

    fn sealed(artifact: &[u8]) -> Vec<u8> {
        let mut entry = Vec::new();
        let written = write(&Key::new(&[1; 32]), &Name([2; 32]), &mut &artifact[..], &mut entry);
        assert_eq!(written.unwrap(), artifact.len() as u64);
        assert_eq!(entry.len() as u64, artifact.len() as u64 + SEAL_BYTES);
        entry
    }

    fn is_good(key: u8, name: u8, entry: &[u8]) -> bool {
        let bytes = entry.len() as u64;
        check(&Key::new(&[key; 32]), &Name([name; 32]), &mut &entry[..], bytes).is_ok()
    }

    #[test]
    fn entry_is_valid_only_with_its_own_bytes_key_and_name() {
        let long = vec![7; 3 * CHUNK_BYTES / 2];
        for artifact in [&b""[..], b"some code", &long] {
            let entry = sealed(artifact);
            assert!(is_good(1, 2, &entry));
            assert!(!is_good(3, 2, &entry), "another key");
            assert!(!is_good(1, 3, &entry), "another name");
        }
    }

    #[test]
    fn entry_with_a_changed_bit_or_length_is_invalid() {
        let entry = sealed(b"some code");
        for at in 0..entry.len() {
            for bit in 0..8 {
                let mut changed = entry.clone();
                changed[at] ^= 1 << bit;
                assert!(!is_good(1, 2, &changed), "bit {bit} of byte {at}");
            }
            assert!(!is_good(1, 2, &entry[..at]), "cut to {at}");
            assert!(!is_good(1, 2, &[&entry[..at], &[0], &entry[at..]].concat()), "grown at {at}");
        }
        // A file that became shorter after the host read its length.
        let length = entry.len() as u64;
        let key = Key::new(&[1; 32]);
        assert!(check(&key, &Name([2; 32]), &mut &entry[..20], length).is_err());
    }

    #[test]
    fn name_depends_on_the_component_and_on_settings_that_shape_code() {
        let engine = |fuel| Engine::new(Config::new().consume_fuel(fuel)).unwrap();
        let name = |wasm: &Engine, guest| Name::of(wasm, Format::Component, &[guest; 32]).file();
        let (plain, fuel) = (engine(false), engine(true));
        assert_eq!(name(&plain, 1), name(&engine(false), 1));
        assert_ne!(name(&plain, 1), name(&plain, 2));
        assert_ne!(name(&plain, 1), name(&fuel, 1));
        assert!(Name::is_file(&name(&plain, 1)));
        for other in ["key", ".code", "12.code", "x.new"] {
            assert!(!Name::is_file(other), "{other}");
        }
    }

    #[test]
    fn name_depends_on_cpu_features_and_tuning() {
        // A feature that every recent x86-64 machine has and that code may do without.
        let mut with = Config::new();
        let mut without = Config::new();
        if cfg!(target_arch = "x86_64") && std::is_x86_feature_detected!("popcnt") {
            for (config, has) in [(&mut with, true), (&mut without, false)] {
                // SAFETY: nothing is compiled or run by these engines; the machine has it.
                #[expect(unsafe_code, reason = "forcing settings of Cranelift is")]
                unsafe {
                    config.target("x86_64-unknown-linux-gnu").unwrap();
                    if has {
                        config.cranelift_flag_enable("has_popcnt");
                    }
                }
            }
            let of = |wasm: &Engine| Name::of(wasm, Format::Component, &[1; 32]).file();
            let name = |config| of(&Engine::new(config).unwrap());
            assert_ne!(name(&with), name(&without));
        }
    }
}
