//! Components from core modules that Go compiled.

use anyhow::Result;
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
/// If the module is no guest, or imports a function that the stub lacks.
pub(super) fn encode(mut module: Vec<u8>) -> Result<Vec<u8>> {
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

#[cfg(test)]
mod tests {
    use wit_component::{DecodedWasm, decode};

    use super::*;

    /// A guest that imports a function of WASI.
    fn guest(function: &str, parameters: &str) -> Vec<u8> {
        let text = format!(
            r#"(module
                (import "wasi_snapshot_preview1" "{function}" (func $import {parameters}))
                (memory (export "memory") 1)
                (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) i32.const 16)
                (func (export "innkeeper:guest/reconciler@0.1.0#describe") (result i32) i32.const 16)
                (func (export "innkeeper:guest/reconciler@0.1.0#reconcile") (param i32 i32) (result i32)
                    i32.const 16)
                (func (export "_initialize")))"#
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
}
