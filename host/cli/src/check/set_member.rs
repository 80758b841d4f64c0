//! One Module of a set: its guest, and which requests its policy reviews.

use std::path::PathBuf;

use anyhow::{Context as _, bail};
use innkeeper_contract::{
    Manifest, PolicyKind, PolicyManifest, PolicyRule, PrimarySelector as SelectorDocument,
};
use innkeeper_core::{PrimarySelector, Selector};
use innkeeper_modules::module::LabelSelector;
use innkeeper_modules::{Module, ValidatedPolicy};
use innkeeper_sandbox::{CodeCache, Guest, Interruption};
use serde_json::{Value, json};

use crate::component;
use crate::given_module::GivenModule;
use crate::parameter_kinds;
use crate::review::request::Request;

/// A Module and its guest.
pub(super) struct SetMember {
    /// The name of the Module.
    pub(super) name: String,
    pub(super) guest: Guest,
    pub(super) given: GivenModule,
    /// The parameters as JSON; empty for none.
    pub(super) parameters: String,
    /// The file of the component.
    file: PathBuf,
    module: Module,
    namespaces: Selector,
    objects: Selector,
}

impl SetMember {
    /// Opens the guest of a Module. `place` is the location of the Module, for errors;
    /// `definitions` are objects some of which may define kinds that parameters name.
    ///
    /// # Errors
    /// If the component is no guest, or the host would refuse the Module.
    pub(super) fn open(
        module: Module,
        place: &str,
        file: PathBuf,
        cache: &CodeCache,
        definitions: &[Value],
    ) -> anyhow::Result<Self> {
        let name = module.metadata.name.clone();
        let opened = component::open_with(&file, Interruption::Fuel, Some(cache.clone()))
            .with_context(|| format!("{place}: Module {name}"))?;
        Self::of(module, place, file, &opened.guest, definitions)
    }

    /// A component without a Module: its name is the stem of the file, and its policy is allowed.
    ///
    /// # Errors
    /// As [`open`](Self::open), and if the stem is no name of a Module.
    pub(super) fn of_component(
        file: PathBuf,
        cache: &CodeCache,
        definitions: &[Value],
    ) -> anyhow::Result<Self> {
        let place = file.display().to_string();
        let name = file.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        if !innkeeper_core::names::is_label(name) {
            bail!(
                "{place}: {name:?} is no name of a Module (lower-case letters, digits and '-'); rename the file, or give a Module with spec.source.file"
            );
        }
        let opened = component::open_with(&file, Interruption::Fuel, Some(cache.clone()))?;
        let manifest = opened.guest.manifest();
        let groups = manifest.definitions().filter_map(|one| one.pointer("/spec/group").cloned());
        let mut module = json!({
            "apiVersion": "innkeeper.dev/v1alpha1", "kind": "Module", "metadata": {"name": name},
            "spec": {"source": {"file": file}, "allowedCRDGroups": groups.collect::<Vec<_>>()},
        });
        if manifest.policy.is_some() {
            module["spec"]["policy"] = json!({});
        }
        let module = Module::from_value(&module).with_context(|| place.clone())?;
        Self::of(module, &place, file, &opened.guest, definitions)
    }

    fn of(
        module: Module,
        place: &str,
        file: PathBuf,
        guest: &Guest,
        definitions: &[Value],
    ) -> anyhow::Result<Self> {
        let name = module.metadata.name.clone();
        let given = GivenModule::of(module.clone(), place.to_owned(), &file)?;
        match (guest.has_policy(), given.policy()) {
            (true, None) => bail!(
                "{place}: Module {name}: its guest has a policy, and the host refuses it without spec.policy (PolicyNotGranted)"
            ),
            (false, Some(_)) => bail!(
                "{place}: Module {name}: it has spec.policy, and its guest has no policy (PolicyMissing)"
            ),
            _ => {}
        }
        let (parameters, place) =
            given.parameters().unwrap_or_else(|| (Value::Null, format!("{place}: Module {name}")));
        let guest = parameter_kinds::checked(guest, &parameters, &place, definitions)?;
        let parameters = if parameters.is_null() { String::new() } else { parameters.to_string() };
        let select = |of: fn(&ValidatedPolicy) -> &LabelSelector| {
            given.policy().map(|policy| selector(of(policy))).unwrap_or_default()
        };
        let namespaces = select(|policy| &policy.namespace_selector);
        let objects = select(|policy| &policy.object_selector);
        let guest = guest.with_limits(given.limits());
        Ok(Self { name, guest, given, parameters, file, module, namespaces, objects })
    }

    /// Whether the guest has a policy of this kind.
    pub(super) fn has_policy(&self, kind: PolicyKind) -> bool {
        self.policy().is_some_and(|policy| policy.kind == kind)
    }

    /// The policy of the guest.
    pub(super) fn policy(&self) -> Option<&PolicyManifest> {
        self.manifest().policy.as_ref()
    }

    pub(super) fn manifest(&self) -> &Manifest {
        self.guest.manifest()
    }

    /// Whether a rule matches a request, in a namespace with these labels (none for a
    /// cluster-scoped object), whatever the object is.
    pub(super) fn is_asked(&self, request: &Request<'_>, namespace: Option<&Value>) -> bool {
        let rules: &[PolicyRule] = self.policy().map_or(&[], |policy| self.given.rules_of(policy));
        request.is_matched(rules)
            && namespace.is_none_or(|labels| {
                self.namespaces.matches_by(|key| Some(labels.get(key)?.as_str()?.into()))
            })
    }

    /// Whether neither a selector of objects nor a condition leaves anything out.
    pub(super) fn selects_all(&self) -> bool {
        self.objects.is_everything() && self.conditions().next().is_none()
    }

    /// Whether `spec.policy.objectSelector` selects an object.
    pub(super) fn selects(&self, object: &Value) -> bool {
        let labels = &object["metadata"]["labels"];
        self.objects.matches_by(|key| Some(labels.get(key)?.as_str()?.into()))
    }

    /// The conditions in CEL of the guest and of the Module.
    pub(super) fn conditions(&self) -> impl Iterator<Item = &str> {
        let of_guest = self.policy().map_or(&[][..], |policy| &policy.match_conditions);
        let of_module = self.given.policy().map_or(&[][..], |policy| &policy.match_conditions);
        of_guest.iter().chain(of_module).map(|condition| condition.expression.as_str())
    }

    /// The Module for a simulated cluster: with an account of its own, and with its policy in this
    /// mode in all namespaces.
    ///
    /// # Errors
    /// If the file of the component is gone, or the Module cannot be written as JSON.
    pub(super) fn document(&self, mode: &str) -> anyhow::Result<Value> {
        let mut module = serde_json::to_value(&self.module)?;
        let file = self.file.canonicalize().with_context(|| self.file.display().to_string())?;
        let spec = &mut module["spec"];
        spec["source"] = json!({"file": file});
        spec["serviceAccountName"] = self.name.clone().into();
        if let Some(policy) = spec.get_mut("policy").and_then(Value::as_object_mut) {
            policy.remove("overrides");
            policy.insert("mode".to_owned(), mode.into());
        }
        Ok(module)
    }
}

/// A selector of labels. The Module is checked, so nothing of it is left out.
fn selector(of: &LabelSelector) -> Selector {
    let document = SelectorDocument {
        match_labels: of.match_labels.clone(),
        match_expressions: of.match_expressions.clone(),
        ..SelectorDocument::default()
    };
    PrimarySelector::read(&document, "", &mut |_, _| {}).labels
}
