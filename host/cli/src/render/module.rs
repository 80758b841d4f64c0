//! The Module among the files of `innkeeper render`: its parameters, and what it grants its guest.

use std::path::Path;

use anyhow::{Context as _, bail};
use innkeeper_core::host_names::Grants;
use innkeeper_core::{Object, foreign};
use innkeeper_modules::{Module, SourceKind, ValidatedSpec, module};
use innkeeper_sandbox::Limits;
use serde_json::Value;

use crate::objects::{InputLocation, InputObject};
use crate::out;

/// A Module from a file.
pub(super) struct GivenModule {
    /// Its name.
    pub(super) name: String,
    place: InputLocation,
    spec: ValidatedSpec,
}

/// Takes the Module out of the objects, if there is one. `component` is the file of its guest.
///
/// # Errors
/// If there are several, or if the host would refuse it.
pub(super) fn take(
    given: &mut Vec<InputObject>,
    component: &Path,
) -> anyhow::Result<Option<GivenModule>> {
    let (mut modules, others): (Vec<_>, Vec<_>) =
        std::mem::take(given).into_iter().partition(|one| one.is(&module::kind()));
    *given = others;
    if modules.len() > 1 {
        let names: Vec<_> = modules.iter().map(|one| one.text("/metadata/name")).collect();
        bail!("the files have several Modules ({}): give one of them", names.join(", "));
    }
    modules.pop().map(|object| GivenModule::read(&object, component)).transpose()
}

impl GivenModule {
    fn read(object: &InputObject, component: &Path) -> anyhow::Result<Self> {
        let name = object.text("/metadata/name").to_owned();
        let what = || format!("{}: Module {name}", object.place);
        let mut module = Module::from_value(&object.value).with_context(what)?;
        let source = &mut module.spec.source;
        if source.config_map.is_none() && source.file.is_none() {
            // `innkeeper push` sets the source; here the guest comes from the command line.
            source.file = Some(component.display().to_string());
        }
        let source_kind =
            if source.file.is_some() { SourceKind::Directory } else { SourceKind::Cluster };
        let spec =
            ValidatedSpec::new(&module, source_kind, Limits::default(), None).with_context(what)?;
        Ok(Self { name, place: object.place.clone(), spec })
    }

    /// The Module's parameters and their location, if it has any.
    pub(super) fn parameters(&self) -> Option<(Value, String)> {
        let parameters = &self.spec.parameters;
        let place = || format!("{}: Module {}", self.place, self.name);
        (!parameters.is_null()).then(|| (parameters.clone(), place()))
    }

    /// What a call of the guest may use.
    pub(super) fn limits(&self) -> Limits {
        self.spec.limits
    }

    /// What the Module allows its guest.
    pub(super) fn grants(&self) -> Grants<'_> {
        Grants {
            cross_namespace: self.spec.allow_cross_namespace,
            finalizers: self.spec.allow_finalizers,
            host_namespace: None,
            value_sources: &self.spec.value_sources,
        }
    }

    /// Prints a warning if the operator would leave the primary alone.
    pub(super) fn warn_unless_selected(&self, primary: &Object) {
        let namespaces = &self.spec.namespaces;
        let namespace = primary.key.namespace();
        let field = if !namespaces.is_empty() && !namespaces.contains(namespace) {
            "spec.namespaces"
        } else if !self.spec.selector.matches(primary) {
            "spec.selector"
        } else {
            return;
        };
        let line = format_args!(
            "innkeeper: warning: {field} of the Module {} does not select {}, so the operator would not reconcile it",
            self.name, primary.key
        );
        out::eprint(&foreign::one_line(line, foreign::LINE_BYTES_MAX));
    }
}
