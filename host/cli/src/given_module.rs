//! The Module among the files of a command: its parameters, and what it grants its guest.

use std::path::Path;

use anyhow::{Context as _, bail};
use innkeeper_contract::{PolicyManifest, PolicyRule};
use innkeeper_core::host_names::Grants;
use innkeeper_core::{Object, foreign};
use innkeeper_modules::module::PolicyMode;
use innkeeper_modules::{Module, SourceKind, ValidatedPolicy, ValidatedSpec, module};
use innkeeper_operator::policies::review_scope::ReviewScope;
use innkeeper_sandbox::Limits;
use serde_json::Value;

use crate::objects::InputObject;
use crate::out;

/// A Module from a file.
pub(crate) struct GivenModule {
    /// Its name.
    pub(crate) name: String,
    place: String,
    spec: ValidatedSpec,
}

/// Takes the Module out of the objects, if there is one. `component` is the file of its guest.
///
/// # Errors
/// If there are several, or if the host would refuse it.
pub(crate) fn take(
    given: &mut Vec<InputObject>,
    component: &Path,
) -> anyhow::Result<Option<GivenModule>> {
    let mut modules = take_objects(given);
    if modules.len() > 1 {
        let names: Vec<_> = modules.iter().map(|one| one.text("/metadata/name")).collect();
        bail!("the files have several Modules ({}): give one of them", names.join(", "));
    }
    modules.pop().map(|object| GivenModule::read(&object, component)).transpose()
}

/// Takes all Modules out of the objects.
pub(crate) fn take_objects(given: &mut Vec<InputObject>) -> Vec<InputObject> {
    let (modules, others): (Vec<_>, Vec<_>) =
        std::mem::take(given).into_iter().partition(|one| one.is(&module::kind()));
    *given = others;
    modules
}

impl GivenModule {
    /// The Module in an object. `component` is the file of its guest.
    ///
    /// # Errors
    /// If the host would refuse it.
    pub(crate) fn read(object: &InputObject, component: &Path) -> anyhow::Result<Self> {
        let name = object.text("/metadata/name").to_owned();
        let what = || format!("{}: Module {name}", object.place);
        let module = Module::from_value(&object.value).with_context(what)?;
        Self::of(module, object.place.to_string(), component)
    }

    /// A Module from a place, which errors name. `component` is the file of its guest.
    ///
    /// # Errors
    /// If the host would refuse it.
    pub(crate) fn of(mut module: Module, place: String, component: &Path) -> anyhow::Result<Self> {
        let name = module.metadata.name.clone();
        let source = &mut module.spec.source;
        if source.config_map.is_none() && source.file.is_none() {
            // `innkeeper push` sets the source; here the guest comes from the command line.
            source.file = Some(component.display().to_string());
        }
        let source_kind =
            if source.file.is_some() { SourceKind::Directory } else { SourceKind::Cluster };
        let spec = ValidatedSpec::new(&module, source_kind, Limits::default(), None)
            .with_context(|| format!("{place}: Module {name}"))?;
        Ok(Self { name, place, spec })
    }

    /// The Module's parameters and their location, if it has any.
    pub(crate) fn parameters(&self) -> Option<(Value, String)> {
        let parameters = &self.spec.parameters;
        let place = || format!("{}: Module {}", self.place, self.name);
        (!parameters.is_null()).then(|| (parameters.clone(), place()))
    }

    /// What a call of the guest may use.
    pub(crate) fn limits(&self) -> Limits {
        self.spec.limits
    }

    /// What the Module allows its guest.
    pub(crate) fn grants(&self) -> Grants<'_> {
        Grants {
            cross_namespace: self.spec.allow_cross_namespace,
            finalizers: self.spec.allow_finalizers,
            host_namespace: None,
            value_sources: &self.spec.value_sources,
        }
    }

    /// How the policy of the guest reviews; none if the Module does not allow it to.
    pub(crate) fn policy(&self) -> Option<&ValidatedPolicy> {
        self.spec.policy.as_ref()
    }

    /// The rules that count for a policy: those of the Module if it has some.
    pub(crate) fn rules_of<'a>(&'a self, policy: &'a PolicyManifest) -> &'a [PolicyRule] {
        self.spec.policy.as_ref().map_or(&*policy.rules, |own| own.rules_of(policy))
    }

    /// Which existing objects the policy reviews.
    pub(crate) fn scope(&self, policy: &PolicyManifest) -> Option<ReviewScope> {
        let settings = self.spec.policy.as_ref()?;
        let rules = settings.rules_of(policy).to_vec();
        Some(ReviewScope::new(rules, settings, &self.spec.namespaces))
    }

    /// The number of conditions in CEL that the Module adds to those of a policy.
    pub(crate) fn conditions(&self) -> usize {
        self.spec.policy.as_ref().map_or(0, |policy| policy.match_conditions.len())
    }

    /// What the Module says about verdicts in addition to the policy; none if it enforces them.
    pub(crate) fn policy_note(&self) -> Option<String> {
        let name = &self.name;
        let Some(policy) = &self.spec.policy else {
            return Some(format!(
                "the Module {name} has no spec.policy, so the host would refuse the policy (PolicyNotGranted)"
            ));
        };
        if policy.overrides.is_empty() && policy.mode == PolicyMode::Enforce {
            return None;
        }
        let overrides = match policy.overrides.len() {
            0 => "",
            _ => ", and spec.policy.overrides has other modes for some namespaces",
        };
        Some(format!(
            "spec.policy.mode of the Module {name} is {}{overrides}; this command shows each verdict as Enforce applies it",
            policy.mode.as_str()
        ))
    }

    /// Whether the Module is about a namespace; the empty text stands for cluster-scoped objects.
    pub(crate) fn includes_namespace(&self, namespace: &str) -> bool {
        let namespaces = &self.spec.namespaces;
        namespaces.is_empty() || namespaces.contains(namespace)
    }

    /// Whether the Module allows finalizers.
    pub(crate) fn allows_finalizers(&self) -> bool {
        self.spec.allow_finalizers
    }

    /// Prints a warning if the operator would leave the primary alone.
    pub(crate) fn warn_unless_selected(&self, primary: &Object) {
        let namespace = primary.key.namespace();
        let field = if !self.includes_namespace(namespace) {
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
