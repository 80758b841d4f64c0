//! Components from core modules that Go compiled.

use anyhow::{Result, bail};
use wasmparser::{DataKind, Operator, Parser, Payload};
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

use super::wasi_stub;

/// The contract of guests.
const WIT: &str = include_str!("../../../../wit/guest.wit");

/// Makes a component from a core module that Go compiled for WASI, and validates it.
///
/// A stub answers for WASI: the component imports nothing but the contract.
///
/// # Errors
/// If the module is no guest, has data where the stub has its state, or imports a function that the
/// stub lacks.
pub(super) fn encode(mut module: Vec<u8>) -> Result<Vec<u8>> {
    check_layout(&module)?;
    let mut resolve = Resolve::default();
    let package = resolve.push_str("guest.wit", WIT)?;
    let world = resolve.select_world(&[package], Some("reconciler-guest"))?;
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8)?;
    ComponentEncoder::default()
        .validate(true)
        .module(&module)?
        .adapter(wasi_stub::NAME, &wasi_stub::adapter(&mut resolve)?)?
        .encode()
}

/// Checks that a module has no data where the stub has its state.
fn check_layout(module: &[u8]) -> Result<()> {
    for payload in Parser::new(0).parse_all(module) {
        let Payload::DataSection(segments) = payload? else { continue };
        for segment in segments {
            let DataKind::Active { offset_expr, .. } = segment?.kind else { continue };
            let offset = offset_expr.get_operators_reader().read()?;
            if matches!(offset, Operator::I32Const { value } if value < wasi_stub::STATE_END) {
                bail!(
                    "this version of Go has data below the address {}, where the stub of WASI has its state; use an earlier version",
                    wasi_stub::STATE_END
                );
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use wit_component::{DecodedWasm, decode};

    use super::*;

    /// A guest that imports a function of WASI.
    fn guest(function: &str, parameters: &str) -> Vec<u8> {
        guest_with(function, parameters, "")
    }

    fn guest_with(function: &str, parameters: &str, data: &str) -> Vec<u8> {
        let text = format!(
            r#"(module
                (import "wasi_snapshot_preview1" "{function}" (func $import {parameters}))
                (memory (export "memory") 1)
                (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) i32.const 16)
                (func (export "innkeeper:guest/reconciler@0.1.0#describe") (result i32) i32.const 16)
                (func (export "innkeeper:guest/reconciler@0.1.0#reconcile") (param i32 i32) (result i32)
                    i32.const 16)
                (func (export "_initialize")) {data})"#
        );
        wat::parse_str(text).unwrap()
    }

    /// The interfaces that a component imports.
    fn imports(component: &[u8]) -> Vec<String> {
        let DecodedWasm::Component(resolve, world) = decode(component).unwrap() else {
            panic!("no component")
        };
        let names = resolve.worlds[world].imports.keys();
        names.map(|name| resolve.name_world_key(name)).collect()
    }

    #[test]
    fn component_imports_only_the_contract() {
        let none: [&str; 0] = [];
        let asks_the_time = guest("clock_time_get", "(param i32 i64 i32) (result i32)");
        assert_eq!(imports(&encode(asks_the_time).unwrap()), none);
        let writes = guest("fd_write", "(param i32 i32 i32 i32) (result i32)");
        assert_eq!(imports(&encode(writes).unwrap()), ["innkeeper:guest/log@0.1.0"]);
    }

    #[test]
    fn function_that_the_stub_lacks_is_refused_by_name() {
        let error = encode(guest("sock_connect", "(param i32) (result i32)")).unwrap_err();
        assert!(format!("{error:#}").contains("sock_connect"), "{error:#}");
    }

    #[test]
    fn data_where_the_stub_has_its_state_is_refused() {
        let with_data = |address: u32| {
            let data = format!("(data (i32.const {address}) \"x\")");
            encode(guest_with("sched_yield", "(result i32)", &data))
        };
        assert!(with_data(12_288).is_ok());
        let error = with_data(12_287).unwrap_err().to_string();
        assert!(error.contains("has data below the address 12288"), "{error}");
    }
}
