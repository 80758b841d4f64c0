//! From the bytes of a guest to a component of the contract, or to a Kubewarden policy.

use std::sync::Arc;

use innkeeper_contract::{Manifest, POLICY_INTERFACE, RECONCILER_INTERFACE};
use sha2::{Digest, Sha256};
use wasmtime::Store;

use crate::call::call;
use crate::code::Code;
use crate::error::LoadError;
use crate::exports::Exports;
use crate::format::Format;
use crate::host::NoHost;
use crate::kubewarden::manifest::Described;
use crate::kubewarden::metadata::KubewardenMetadata;
use crate::kubewarden::policy::KubewardenPolicy;
use crate::limits::Limits;
use crate::loaded::Loaded;
use crate::program::Program;
use crate::runtime::Runtime;
use crate::state::State;
use crate::wapc::module::WapcModule;
use crate::{compile, contract, format, kubewarden, output};

/// Compiles a component or a Kubewarden policy, or takes the code of one that a guest holds; checks
/// that it is a guest, and takes its manifest from `describe` or from the metadata of the policy.
///
/// # Errors
/// [`LoadError`].
pub(crate) fn load(
    runtime: &Runtime,
    bytes: &[u8],
    limits: &Limits,
) -> Result<Arc<Loaded>, LoadError> {
    let format = compile::check(bytes, limits)?;
    let digest: [u8; 32] = Sha256::digest(bytes).into();
    let program = match runtime.loaded.get(&digest) {
        Some(loaded) if loaded.limits == *limits => return Ok(loaded),
        // Whether `describe` stays within other limits is not known.
        Some(loaded) => loaded.program.clone(),
        None => program(runtime, (format, bytes), &digest, limits)?,
    };
    let (manifest, warnings) = match &program {
        Program::Component(exports) => {
            let (manifest, warnings) = describe(runtime, exports, limits)?;
            check_members(&manifest, exports)?;
            (manifest, warnings)
        }
        Program::Kubewarden(policy) => describe_policy(runtime, policy, limits)?,
    };
    let loaded = Arc::new(Loaded {
        program,
        described: Arc::new(manifest),
        warnings,
        digest: hex::encode(digest),
        size_bytes: bytes.len(),
        limits: *limits,
    });
    runtime.loaded.insert(digest, &loaded);
    Ok(loaded)
}

/// Compiles a component or a core module and finds its exports. Metadata that the host cannot use
/// refuses a core module before it is compiled.
fn program(
    runtime: &Runtime,
    (format, bytes): (Format, &[u8]),
    digest: &[u8; 32],
    limits: &Limits,
) -> Result<Program, LoadError> {
    let metadata = match format {
        Format::Component => None,
        Format::Module => Some(KubewardenMetadata::of_module(bytes)?),
    };
    match (compile::code(runtime, (format, bytes), digest, limits)?, metadata) {
        (Code::Component(component), _) => {
            let exported = contract::check(&component, &runtime.wasm)?;
            Exports::of(&component, &runtime.linker, exported).map(Program::Component)
        }
        (Code::Module(module), Some(metadata)) => {
            let module = WapcModule::of(&module, &runtime.module_linker)?;
            let metadata = Arc::new(metadata);
            Ok(Program::Kubewarden(KubewardenPolicy { module, metadata }))
        }
        (Code::Module(_), None) => Err(format::plain_module()),
    }
}

/// The manifest of a Kubewarden policy, and what its reader should know.
fn describe_policy(
    runtime: &Runtime,
    policy: &KubewardenPolicy,
    limits: &Limits,
) -> Result<(Manifest, Vec<String>), LoadError> {
    let Described { manifest, mut warnings } = kubewarden::manifest::manifest(&policy.metadata)?;
    warnings.extend(policy.check_protocol(runtime, limits)?);
    Ok((manifest, warnings))
}

/// The manifest that each export describes, and what `describe` warned of.
fn describe(
    runtime: &Runtime,
    exports: &Exports,
    limits: &Limits,
) -> Result<(Manifest, Vec<String>), LoadError> {
    let mut host = NoHost::default();
    let mut manifest_of = |describe: &dyn Fn(&mut Store<State>) -> wasmtime::Result<String>| {
        let (described, _) = call(runtime, limits, (None, 0), &mut host, describe);
        output::read::<Manifest>(&described?, limits)
    };
    let of_reconciler = exports.reconciler.as_ref().map(|pre| {
        manifest_of(&|store| {
            pre.instantiate(&mut *store)?.innkeeper_guest_reconciler().call_describe(store)
        })
    });
    let of_policy = exports.policy.as_ref().map(|pre| {
        manifest_of(&|store| {
            pre.instantiate(&mut *store)?.innkeeper_guest_policy().call_describe(store)
        })
    });
    let manifest = match (of_reconciler.transpose()?, of_policy.transpose()?) {
        (Some(one), Some(other)) if one != other => return Err(LoadError::DescribesDiffer),
        (Some(manifest), _) | (None, Some(manifest)) => manifest,
        (None, None) => return Err(contract::missing_export()),
    };
    Ok((manifest, host.warnings))
}

/// Checks that the manifest has the member of each export, and of no other.
fn check_members(manifest: &Manifest, exports: &Exports) -> Result<(), LoadError> {
    let members = [
        (RECONCILER_INTERFACE, exports.reconciler.is_some(), "primary", manifest.primary.is_some()),
        (POLICY_INTERFACE, exports.policy.is_some(), "policy", manifest.policy.is_some()),
    ];
    for (interface, is_exported, member, is_described) in members {
        if is_exported != is_described {
            return Err(LoadError::ManifestMismatch { interface, member, is_exported });
        }
    }
    Ok(())
}
