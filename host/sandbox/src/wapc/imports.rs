//! The functions of waPC that a guest imports.

use wasmtime::{Caller, Linker, Result};

use super::exchange::{Exchange, ResponseTooLarge};
use super::memory;
use crate::host::Level;
use crate::kubewarden::host_calls::{self, HostCall};
use crate::state::State;

/// The module of the imports.
pub(crate) const MODULE: &str = "wapc";

/// The names of the functions that [`add`] defines.
pub(crate) const FUNCTIONS: [&str; 9] = [
    "__guest_request",
    "__guest_response",
    "__guest_error",
    "__host_call",
    "__host_response",
    "__host_response_len",
    "__host_error",
    "__host_error_len",
    "__console_log",
];

/// The largest payload of a host call, in bytes: names, selectors and the members of a log line.
const PAYLOAD_BYTES_MAX: u32 = 64 << 10;

/// The longest name of a host call that the host reads, in bytes.
const NAME_BYTES_MAX: u32 = 256;

/// Adds the imports to a linker.
///
/// # Errors
/// That of wasmtime, for a name that is there already.
pub(crate) fn add(linker: &mut Linker<State>) -> Result<()> {
    linker
        .func_wrap(MODULE, "__guest_request", guest_request)?
        .func_wrap(MODULE, "__guest_response", guest_response)?
        .func_wrap(MODULE, "__guest_error", guest_error)?
        .func_wrap(MODULE, "__host_call", host_call)?
        .func_wrap(MODULE, "__host_response", |caller: Caller<'_, State>, address: i32| {
            give(caller, address, |exchange| &mut exchange.host_response)
        })?
        .func_wrap(MODULE, "__host_response_len", |caller: Caller<'_, State>| {
            length(&caller.data().exchange.host_response)
        })?
        .func_wrap(MODULE, "__host_error", |caller: Caller<'_, State>, address: i32| {
            give(caller, address, |exchange| &mut exchange.host_error)
        })?
        .func_wrap(MODULE, "__host_error_len", |caller: Caller<'_, State>| {
            length(&caller.data().exchange.host_error)
        })?
        .func_wrap(MODULE, "__console_log", console_log)?;
    Ok(())
}

fn guest_request(mut caller: Caller<'_, State>, operation: i32, request: i32) -> Result<()> {
    let name = caller.data().exchange.operation;
    memory::write(&mut caller, operation, name.as_bytes())?;
    give(caller, request, |exchange| &mut exchange.request)
}

fn guest_response(mut caller: Caller<'_, State>, address: i32, length: i32) -> Result<()> {
    let bytes = length.cast_unsigned() as usize;
    if bytes > caller.data().limits.output_bytes {
        return Err(ResponseTooLarge { bytes }.into());
    }
    let response = memory::read(&mut caller, address, length)?;
    caller.data_mut().exchange.response = Some(response);
    Ok(())
}

fn guest_error(mut caller: Caller<'_, State>, address: i32, length: i32) -> Result<()> {
    let bytes = length.cast_unsigned() as usize;
    if bytes > caller.data().limits.output_bytes {
        return Err(ResponseTooLarge { bytes }.into());
    }
    let error = memory::read(&mut caller, address, length)?;
    caller.data_mut().exchange.error = Some(error);
    Ok(())
}

/// Copies bytes of the exchange into the guest. The guest asked for their length before.
fn give(
    mut caller: Caller<'_, State>,
    address: i32,
    of: impl Fn(&mut Exchange) -> &mut Vec<u8>,
) -> Result<()> {
    // Taken out, since the memory and the exchange belong to the same store.
    let bytes = std::mem::take(of(&mut caller.data_mut().exchange));
    let written = memory::write(&mut caller, address, &bytes);
    *of(&mut caller.data_mut().exchange) = bytes;
    written
}

fn length(bytes: &[u8]) -> i32 {
    // No answer of the host is larger than the memory of a guest.
    u32::try_from(bytes.len()).unwrap_or(u32::MAX).cast_signed()
}

fn console_log(mut caller: Caller<'_, State>, address: i32, length: i32) -> Result<()> {
    let line = memory::read(&mut caller, address, length)?;
    caller.data_mut().write_log(Level::Info, String::from_utf8_lossy(&line).into_owned());
    Ok(())
}

#[expect(clippy::too_many_arguments, reason = "the protocol passes four byte strings")]
fn host_call(
    mut caller: Caller<'_, State>,
    binding: i32,
    binding_length: i32,
    namespace: i32,
    namespace_length: i32,
    operation: i32,
    operation_length: i32,
    payload: i32,
    payload_length: i32,
) -> Result<i32> {
    let mut name = |address: i32, length: i32| {
        let length = length.cast_unsigned().min(NAME_BYTES_MAX).cast_signed();
        let bytes = memory::read(&mut caller, address, length)?;
        wasmtime::error::Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    let call = HostCall {
        binding: name(binding, binding_length)?,
        namespace: name(namespace, namespace_length)?,
        operation: name(operation, operation_length)?,
    };
    let answer = if payload_length.cast_unsigned() > PAYLOAD_BYTES_MAX {
        caller.data_mut().count_read()?;
        Err(format!("the payload of {call} has more than {PAYLOAD_BYTES_MAX} bytes"))
    } else {
        let payload = memory::read(&mut caller, payload, payload_length)?;
        host_calls::answer(caller.data_mut(), &call, &payload)?
    };
    let is_answered = answer.is_ok();
    let exchange = &mut caller.data_mut().exchange;
    (exchange.host_response, exchange.host_error) = match answer {
        Ok(response) => (response, Vec::new()),
        Err(error) => (Vec::new(), error.into_bytes()),
    };
    Ok(is_answered.into())
}
