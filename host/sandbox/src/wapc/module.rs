//! A core module that speaks waPC, and its calls: [`WapcModule`].

use wasmtime::{
    Engine, ExternType, InstancePre, Linker, Module, Result, Store, TypedFunc, ValType,
};

use super::exchange::Exited;
use super::{imports, memory, wasi};
use crate::error::{LoadError, text};
use crate::state::State;

/// The export that does an operation.
const CALL: &str = "__guest_call";

/// The exports that make an instance ready, in this order; a module has some of them.
const STARTS: [&str; 3] = ["_initialize", "_start", "wapc_init"];

/// A core module with its imports resolved. Clones are cheap.
#[derive(Clone)]
pub(crate) struct WapcModule {
    pre: InstancePre<State>,
}

/// How a guest ended an operation.
pub(crate) enum Answer {
    /// With a response.
    Response(Vec<u8>),
    /// With an error, of any bytes.
    Error(String),
}

/// The functions that such modules may import.
///
/// # Errors
/// That of wasmtime.
pub(crate) fn linker(engine: &Engine) -> Result<Linker<State>> {
    let mut linker = Linker::new(engine);
    imports::add(&mut linker)?;
    wasi::add(&mut linker)?;
    Ok(linker)
}

impl WapcModule {
    /// Checks the imports and exports of a module, and resolves the imports.
    ///
    /// # Errors
    /// [`LoadError::UnknownModuleImport`], [`LoadError::WrongModuleExport`] and
    /// [`LoadError::WrongType`].
    pub(crate) fn of(module: &Module, linker: &Linker<State>) -> Result<Self, LoadError> {
        for import in module.imports() {
            let (from, name) = (import.module(), import.name());
            let is_known = match from {
                imports::MODULE => imports::FUNCTIONS.contains(&name),
                wasi::MODULE => wasi::has(name),
                _ => false,
            };
            if !is_known {
                let name = text(format!("{from}#{name}"));
                return Err(LoadError::UnknownModuleImport { name });
            }
        }
        check_exports(module)?;
        let pre = linker
            .instantiate_pre(module)
            .map_err(|error| LoadError::WrongType { what: text(format!("{error:#}")) })?;
        Ok(Self { pre })
    }

    /// The imports, as `module#function`, in the module's own order.
    pub(crate) fn imports(&self) -> Vec<String> {
        let imports = self.pre.module().imports();
        imports.map(|import| format!("{}#{}", import.module(), import.name())).collect()
    }

    /// Does an operation in a new instance.
    ///
    /// # Errors
    /// That of wasmtime, if the guest traps or exceeds a limit.
    pub(crate) fn call(
        &self,
        store: &mut Store<State>,
        operation: &'static str,
        request: &[u8],
    ) -> Result<Answer> {
        let instance = self.pre.instantiate(&mut *store)?;
        for name in STARTS {
            if instance.get_export(&mut *store, name).is_none() {
                continue;
            }
            let start: TypedFunc<(), ()> = instance.get_typed_func(&mut *store, name)?;
            match start.call(&mut *store, ()) {
                // A program that has done its part ends so.
                Err(error) if matches!(error.downcast_ref(), Some(Exited(0))) => {}
                started => started?,
            }
        }
        store.data_mut().exchange.begin(operation, request);
        let call: TypedFunc<(i32, i32), i32> = instance.get_typed_func(&mut *store, CALL)?;
        let lengths = (i32::try_from(operation.len())?, i32::try_from(request.len())?);
        let is_done = call.call(&mut *store, lengths)? == 1;
        let exchange = &mut store.data_mut().exchange;
        if is_done {
            return Ok(Answer::Response(exchange.response.take().unwrap_or_default()));
        }
        let error = exchange.error.take().unwrap_or_default();
        Ok(Answer::Error(match String::from_utf8_lossy(&error) {
            error if error.trim().is_empty() => format!("{operation} failed without a reason"),
            error => error.into_owned(),
        }))
    }
}

/// Checks that the module exports what every call needs.
fn check_exports(module: &Module) -> Result<(), LoadError> {
    let wrong = |name| Err(LoadError::WrongModuleExport { name });
    match module.get_export(memory::MEMORY) {
        Some(ExternType::Memory(_)) => {}
        _ => return wrong(memory::MEMORY),
    }
    let is_i32 = |ty: &ValType| matches!(ty, ValType::I32);
    match module.get_export(CALL) {
        Some(ExternType::Func(ty))
            if ty.params().len() == 2
                && ty.params().all(|ty| is_i32(&ty))
                && ty.results().len() == 1
                && ty.results().all(|ty| is_i32(&ty)) => {}
        _ => return wrong(CALL),
    }
    for name in STARTS {
        match module.get_export(name) {
            None => {}
            Some(ExternType::Func(ty)) if ty.params().len() == 0 && ty.results().len() == 0 => {}
            Some(_) => return wrong(name),
        }
    }
    Ok(())
}
