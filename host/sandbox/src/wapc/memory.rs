//! The linear memory of a guest, as its imports read and write it. Addresses and lengths are the
//! guest's: each access is checked, and a wrong one ends the call.

use wasmtime::{Caller, Extern, Memory, Result};

use crate::state::State;

/// The export that every guest of waPC has.
pub(crate) const MEMORY: &str = "memory";

/// The error that ends a call with a wrong address.
#[derive(Debug, thiserror::Error)]
enum MemoryError {
    #[error("the guest exports no memory")]
    Missing,
    #[error("the guest passed {length} bytes at {address}, which is outside of its memory")]
    Outside { address: u32, length: usize },
}

/// The memory that the guest exports.
fn memory(caller: &mut Caller<'_, State>) -> Result<Memory> {
    let found = caller.get_export(MEMORY).and_then(Extern::into_memory);
    Ok(found.ok_or(MemoryError::Missing)?)
}

/// Copies bytes out of the guest.
///
/// # Errors
/// If a byte is outside of the memory.
pub(crate) fn read(caller: &mut Caller<'_, State>, address: i32, length: i32) -> Result<Vec<u8>> {
    let length = length.cast_unsigned() as usize;
    read_at(caller, address.cast_unsigned(), length)
}

/// The same with a length of the host.
///
/// # Errors
/// If a byte is outside of the memory.
pub(crate) fn read_at(
    caller: &mut Caller<'_, State>,
    address: u32,
    length: usize,
) -> Result<Vec<u8>> {
    let memory = memory(caller)?;
    let data = memory.data(&*caller);
    let start = address as usize;
    let end = start.checked_add(length);
    let bytes = end.and_then(|end| data.get(start..end));
    Ok(bytes.ok_or(MemoryError::Outside { address, length })?.to_vec())
}

/// Copies bytes into the guest.
///
/// # Errors
/// If a byte would be outside of the memory.
pub(crate) fn write(caller: &mut Caller<'_, State>, address: i32, bytes: &[u8]) -> Result<()> {
    let memory = memory(caller)?;
    let (address, length) = (address.cast_unsigned(), bytes.len());
    memory
        .write(caller, address as usize, bytes)
        .map_err(|_| MemoryError::Outside { address, length }.into())
}

/// Writes a number as WebAssembly stores it.
///
/// # Errors
/// If a byte would be outside of the memory.
pub(crate) fn write_u32(caller: &mut Caller<'_, State>, address: i32, number: u32) -> Result<()> {
    write(caller, address, &number.to_le_bytes())
}
