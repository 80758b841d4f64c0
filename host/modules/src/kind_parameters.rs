//! The parameters of a Module that name kinds: their checks in the manifest, and the kinds that
//! they name.

use innkeeper_contract::{JsonText, KindName, KindParameter, KindRole, Manifest};
use innkeeper_core::{foreign, names as grammar};
use serde_json::Value;

/// The most kind parameters of a manifest.
const PARAMETERS_MAX: usize = 8;

/// The most kinds that one parameter may name.
const KINDS_MAX: usize = 20;

/// The longest quoted name, in bytes.
const NAME_BYTES_MAX: usize = 80;

/// The shape of a value.
const SHAPE: &str = "write apiVersion and kind, as in {apiVersion: apps/v1, kind: Deployment}";

/// A kind that a parameter of the Module names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestedKind {
    /// Its place in the spec (`spec.parameters.copies[1]`), for messages.
    pub place: String,
    /// Its name.
    pub name: KindName,
    pub(crate) parameter: KindParameter,
}

/// Checks the kind parameters of a manifest, and adds what is wrong to `errors`.
pub(crate) fn check(manifest: &Manifest, errors: &mut Vec<String>) {
    let all = &manifest.kind_parameters;
    if all.len() > PARAMETERS_MAX {
        errors.push(format!(
            "kindParameters: {} are more than the {PARAMETERS_MAX} that a guest may have",
            all.len()
        ));
        return;
    }
    let schema = manifest.parameters_schema.as_ref().map(JsonText::value);
    let properties = schema.as_ref().map(|schema| &schema["properties"]);
    for (index, one) in all.iter().enumerate() {
        let place = format!("kindParameters[{index}]");
        let name = foreign::one_line(&one.parameter, NAME_BYTES_MAX);
        if properties.is_none_or(|all| all.get(&one.parameter).is_none()) {
            errors.push(format!(
                "{place}.parameter: {name:?} is no property of parametersSchema; add it there"
            ));
        }
        if all[..index].iter().any(|other| other.parameter == one.parameter) {
            errors.push(format!("{place}.parameter: {name:?} is named twice"));
        }
        if one.role != KindRole::Owned && (one.merges || one.optional) {
            errors.push(format!("{place}: merges and optional are for the role Owned"));
        }
        if manifest.primary.is_none() && one.role != KindRole::Reads {
            errors.push(format!(
                "{place}.role: {} is only for a guest with a primary; a policy has the role Reads",
                one.role.as_str()
            ));
        }
        if one.role == KindRole::Primary {
            if all[..index].iter().any(|other| other.role == KindRole::Primary) {
                errors.push(format!("{place}.role: another parameter has the role Primary"));
            }
            if !manifest.decorates {
                errors.push(format!(
                    "{place}.role: a guest whose primary is a parameter decorates its primaries; set decorates"
                ));
            }
        }
    }
}

/// Returns the kinds that parameters name, which fit the schema of the manifest.
///
/// # Errors
/// A text for each value that names no kind, with its place.
pub fn requested(
    manifest: &Manifest,
    parameters: &Value,
) -> Result<Vec<RequestedKind>, Vec<String>> {
    let (mut kinds, mut errors) = (Vec::new(), Vec::new());
    for parameter in &manifest.kind_parameters {
        let name = foreign::one_line(&parameter.parameter, NAME_BYTES_MAX);
        let place = format!("spec.parameters.{name}");
        let Some(value) = parameters.get(&parameter.parameter).filter(|value| !value.is_null())
        else {
            continue;
        };
        let values: Vec<(String, &Value)> = match value {
            Value::Array(_) if parameter.role == KindRole::Primary => {
                errors.push(format!("{place}: is a list, and a guest has one primary; {SHAPE}"));
                continue;
            }
            Value::Array(values) if values.len() > KINDS_MAX => {
                errors.push(format!(
                    "{place}: {} kinds are more than the {KINDS_MAX} that a parameter may name",
                    values.len()
                ));
                continue;
            }
            Value::Array(values) => {
                let values = values.iter().enumerate();
                values.map(|(index, value)| (format!("{place}[{index}]"), value)).collect()
            }
            value => vec![(place, value)],
        };
        for (place, value) in values {
            match name_of(value) {
                Ok(name) => {
                    let parameter = parameter.clone();
                    kinds.push(RequestedKind { place, name, parameter });
                }
                Err(error) => errors.push(format!("{place}{error}")),
            }
        }
    }
    if errors.is_empty() { Ok(kinds) } else { Err(errors) }
}

/// The name of a kind; otherwise the rest of a message that begins with its place.
fn name_of(value: &Value) -> Result<KindName, String> {
    let name: KindName =
        serde_json::from_value(value.clone()).map_err(|_| format!(": names no kind; {SHAPE}"))?;
    let quoted = |text: &str| foreign::one_line(text, NAME_BYTES_MAX);
    if !grammar::is_api_version(&name.api_version) {
        let given = quoted(&name.api_version);
        return Err(format!(".apiVersion: {given:?} is not a group and a version"));
    }
    if !grammar::is_kind(&name.kind) {
        return Err(format!(".kind: {:?} is not a CamelCase name", quoted(&name.kind)));
    }
    Ok(name)
}

#[cfg(test)]
mod tests;
