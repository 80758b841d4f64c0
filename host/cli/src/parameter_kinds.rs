//! The kinds that the parameters of a Module name, without an API server: Kubernetes' own, and
//! those of CustomResourceDefinitions in files.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context as _, anyhow, bail};
use innkeeper_contract::{Kind, KindName, Scope};
use innkeeper_modules::{kind_parameters, parameters, resolved_manifest};
use innkeeper_sandbox::Guest;
use serde_json::Value;

use crate::{objects, out};

/// The parameters of a Module, and the definitions of the kinds that they name.
#[derive(clap::Args)]
pub(crate) struct ParameterArguments {
    /// The Module's parameters, as JSON or YAML, or @FILE.
    #[arg(long, value_name = "PARAMETERS")]
    parameters: Option<String>,
    /// CustomResourceDefinitions of kinds that the parameters name, as YAML or JSON (repeatable).
    /// Kubernetes' own kinds are known.
    #[arg(long = "crd", value_name = "FILE")]
    definitions: Vec<PathBuf>,
}

impl ParameterArguments {
    /// The files that the options name.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        let file = self.parameters.iter().filter_map(|given| given.strip_prefix('@'));
        file.map(PathBuf::from).chain(self.definitions.iter().cloned()).collect()
    }

    /// The parameters, and the guest with the kinds that they name. Without parameters the guest
    /// has its default kinds.
    ///
    /// # Errors
    /// If a file cannot be read, the parameters do not fit the guest, or a kind is not known.
    pub(crate) fn resolve(&self, guest: &Guest) -> anyhow::Result<(Value, Guest)> {
        self.resolve_with(None, "--parameters gives them", guest)
    }

    /// The same with the parameters of a Module and their location, unless there are none.
    ///
    /// # Errors
    /// As [`resolve`](Self::resolve), and if the options give parameters too.
    pub(crate) fn resolve_or(
        &self,
        of_module: Option<(Value, String)>,
        guest: &Guest,
    ) -> anyhow::Result<(Value, Guest)> {
        let advice = "--parameters gives them, or spec.parameters of a Module among the objects";
        self.resolve_with(of_module, advice, guest)
    }

    /// The same; `advice` says how to give parameters.
    fn resolve_with(
        &self,
        of_module: Option<(Value, String)>,
        advice: &str,
        guest: &Guest,
    ) -> anyhow::Result<(Value, Guest)> {
        let given = match of_module {
            Some((_, place)) if self.is_given() => {
                bail!("{place} has spec.parameters: give these or --parameters, not both")
            }
            None if self.is_given() => Some((self.read()?, "--parameters".to_owned())),
            of_module => of_module,
        };
        let mut definitions = Vec::new();
        for file in &self.definitions {
            definitions.extend(objects::read(file)?.into_iter().map(|object| object.value));
        }
        if let Some((parameters, place)) = given {
            let guest = checked(guest, &parameters, &place, &definitions)?;
            return Ok((parameters, guest));
        }
        let none = Value::Null;
        let accepted = parameters::check(guest.described(), &none)
            .and_then(|()| parameters::ask(guest, &none));
        if let Err(error) = accepted {
            let why = out::error_chain(&error.into());
            bail!("the guest requires parameters: {why}; {advice}");
        }
        let guest = with_parameters(guest, &none, &definitions)
            .context("cannot use the kinds that the guest has without parameters")?;
        Ok((none, guest))
    }

    /// Whether parameters are given.
    pub(crate) fn is_given(&self) -> bool {
        self.parameters.is_some()
    }

    /// The options that give the same parameters and definitions, with their values.
    pub(crate) fn options(&self) -> Vec<(&'static str, String)> {
        let parameters = self.parameters.iter().map(|given| ("--parameters", given.clone()));
        let definitions =
            self.definitions.iter().map(|file| ("--crd", file.to_string_lossy().into_owned()));
        parameters.chain(definitions).collect()
    }

    fn read(&self) -> anyhow::Result<Value> {
        let Some(given) = &self.parameters else { return Ok(Value::Null) };
        let text = match given.strip_prefix('@') {
            Some(file) => std::fs::read_to_string(file)
                .with_context(|| format!("--parameters: {file} cannot be read"))?,
            None => given.clone(),
        };
        let value: Value =
            serde_yaml_ng::from_str(&text).context("--parameters is neither JSON nor YAML")?;
        if !value.is_object() && !value.is_null() {
            bail!("--parameters must be an object, as in '{{\"size\": 3}}'");
        }
        Ok(value)
    }
}

/// A guest with the kinds that parameters name, once they are checked against its schema. `place`
/// is their location.
///
/// # Errors
/// If the parameters do not fit the guest, or a kind is not known.
pub(crate) fn checked(
    guest: &Guest,
    parameters: &Value,
    place: &str,
    definitions: &[Value],
) -> anyhow::Result<Guest> {
    parameters::check(guest.described(), parameters)
        .and_then(|()| parameters::ask(guest, parameters))
        .with_context(|| place.to_owned())?;
    with_parameters(guest, parameters, definitions)
        .with_context(|| format!("{place}: cannot use the kinds that they name"))
}

/// A guest with the kinds that parameters name. They fit its schema.
///
/// # Errors
/// If a kind is not known, or the guest cannot use it.
pub(crate) fn with_parameters(
    guest: &Guest,
    parameters: &Value,
    definitions: &[Value],
) -> anyhow::Result<Guest> {
    let described = guest.described();
    if described.kind_parameters.is_empty() {
        return Ok(guest.clone());
    }
    let failed = |errors: Vec<String>| anyhow!("{}", errors.join("\n  "));
    let mut kinds = Vec::new();
    for one in kind_parameters::requested(described, parameters).map_err(failed)? {
        let kind = find(&one.name, definitions).with_context(|| {
            format!(
                "{}: {} is no kind of Kubernetes, and no definition of it is given",
                one.place, one.name
            )
        })?;
        kinds.push((one, kind));
    }
    let resolved = resolved_manifest::resolve(described, kinds).map_err(failed)?;
    Ok(guest.with_manifest(Arc::new(resolved)))
}

/// The kind of this name: one of Kubernetes' own, or of one of the definitions.
pub(crate) fn find(name: &KindName, definitions: &[Value]) -> Option<Kind> {
    let group = name.api_version.split_once('/').map_or("", |(group, _)| group);
    let make = |plural: &str, is_namespaced: bool| Kind {
        api_version: name.api_version.clone(),
        kind: name.kind.clone(),
        plural: plural.to_owned(),
        scope: if is_namespaced { Scope::Namespaced } else { Scope::Cluster },
    };
    let builtin = innkeeper_simulator::builtin_kinds(group);
    if let Some(known) = builtin.iter().find(|known| known.kind == name.kind) {
        return Some(make(&known.plural, known.namespaced));
    }
    let definition = definitions.iter().find(|definition| {
        definition["kind"] == "CustomResourceDefinition"
            && definition["spec"]["group"] == group
            && definition["spec"]["names"]["kind"] == name.kind.as_str()
    })?;
    let spec = &definition["spec"];
    Some(make(spec["names"]["plural"].as_str()?, spec["scope"] == "Namespaced"))
}
