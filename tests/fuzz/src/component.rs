//! The bytes of guests: components, and core modules with the metadata of Kubewarden policies.

use std::sync::OnceLock;
use std::time::Duration;

use innkeeper_sandbox::{Engine, Guest, Interruption, Limits};
use innkeeper_tiny_guests::kubewarden::Kubewarden;
use innkeeper_tiny_guests::{NOTHING, Tiny, reader};

use crate::manifest;

/// The longest error, in bytes.
const ERROR_BYTES_MAX: usize = 4_096;

/// Reads changed guests: the first byte chooses one, each four more change a byte of it, remove
/// some, repeat some, or cut the end off. Errors are short; the manifest of what is loaded keeps
/// the properties of manifests.
pub fn fuzz_entry(data: &[u8]) {
    let (&[choice, ..], [_, changes @ ..]) = (data, data) else { return };
    let guests = guests();
    let mut bytes = guests[usize::from(choice) % guests.len()].clone();
    for change in changes.as_chunks::<4>().0 {
        apply(&mut bytes, *change);
    }
    if let Some(guest) = load(&bytes) {
        manifest::check(guest.manifest());
        // What was compiled for other bytes is not taken for these.
        assert_eq!(guest.size_bytes(), bytes.len());
    }
}

/// Loads a guest with small limits. A refusal has a short text.
pub(crate) fn load(bytes: &[u8]) -> Option<Guest> {
    static ENGINE: OnceLock<Engine> = OnceLock::new();
    let engine = ENGINE.get_or_init(|| {
        // Instructions are counted, so the same bytes end in the same way.
        let builder = Engine::builder().interruption(Interruption::Fuel);
        builder.build().expect("the engine is made")
    });
    let limits = Limits {
        component_bytes: 1 << 20,
        time: Duration::from_millis(20),
        memory_bytes: 4 << 20,
        ..Limits::default()
    };
    match engine.load(bytes, &limits) {
        Ok(guest) => Some(guest),
        Err(error) => {
            let text = error.to_string();
            assert!(text.len() <= ERROR_BYTES_MAX, "{} bytes: {text}", text.len());
            None
        }
    }
}

/// The guests that are changed.
fn guests() -> &'static [Vec<u8>] {
    static GUESTS: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    GUESTS.get_or_init(|| {
        vec![
            Tiny::default().outcome(0, NOTHING).component(),
            reader().component(),
            Tiny::policy(innkeeper_tiny_guests::ALLOWED).component(),
            Kubewarden::default().module(),
        ]
    })
}

/// Changes bytes at a place between the beginning and the end.
fn apply(bytes: &mut Vec<u8>, [operation, high, low, value]: [u8; 4]) {
    if bytes.is_empty() {
        return;
    }
    let at = (usize::from(u16::from_be_bytes([high, low])) * bytes.len()) >> 16;
    let end = bytes.len().min(at + usize::from(value) + 1);
    match operation % 6 {
        0 => bytes[at] = value,
        1 => bytes[at] ^= 1 << (value % 8),
        2 => drop(bytes.drain(at..end)),
        3 => {
            let copy = bytes[at..end].to_vec();
            drop(bytes.splice(end..end, copy));
        }
        4 => bytes.insert(at, value),
        _ => bytes.truncate(at),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guests_without_a_change_are_loaded() {
        for (index, guest) in guests().iter().enumerate() {
            assert!(load(guest).is_some(), "guest {index}");
        }
    }
}
