//! The doc comments of a Module's fields, and the examples in docs/reference, are true.

use innkeeper_contract::Manifest;
use serde_json::json;

use super::*;
use crate::module::Quantity;
use crate::{crd, manifest, parameters};

/// The example in docs/reference/module.md.
const MODULE: &str = include_str!("../../../../xtask/src/reference/examples/module.yaml");

/// The example in docs/reference/manifest.md.
const MANIFEST: &str = include_str!("../../../../xtask/src/reference/examples/manifest.json");

/// Checks a Module with one more field, at a JSON pointer below `spec`.
fn with(parent: &str, field: &str, value: Value) -> Result<ValidatedSpec, String> {
    let mut spec = json!({
        "source": {"configMap": {"name": "m"}}, "serviceAccountName": "m",
        "limits": {}, "rollout": {},
    });
    spec.pointer_mut(parent).unwrap()[field] = value;
    let document = json!({
        "apiVersion": module::API_VERSION, "kind": module::KIND, "metadata": {"name": "m"},
        "spec": spec,
    });
    let module = Module::from_value(&document).map_err(|error| error.to_string())?;
    ValidatedSpec::new(&module, SourceKind::Cluster, Limits::default(), None)
        .map_err(|errors| errors.to_string())
}

/// The fields of the object at a JSON pointer below `spec`: name, and what the description has
/// between a word and the end of the sentence.
fn documented(parent: &str, word: &str) -> Vec<(String, String)> {
    let crd = crd();
    let spec = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
    let object = spec.pointer(&parent.replace('/', "/properties/")).unwrap();
    let fields = object["properties"].as_object().unwrap().iter();
    let value = |description: &str| {
        let rest = description.split_once(word)?.1;
        Some(rest.split(". ").next()?.trim_end_matches('.').to_owned())
    };
    fields
        .filter_map(|(name, field)| Some((name.clone(), value(field["description"].as_str()?)?)))
        .collect()
}

/// A number as a number, everything else as a text.
fn value(text: &str) -> Value {
    text.parse::<u32>().map_or_else(|_| text.into(), Value::from)
}

#[test]
fn documented_default_changes_nothing_when_it_is_set() {
    let plain = with("", "paused", false.into()).unwrap();
    let mut count = 0;
    for parent in ["", "/limits", "/rollout"] {
        for (field, default) in documented(parent, "Default: ") {
            // `runResult` also says that the condition is written where nothing declares it.
            if default.contains(' ') || field == "runResult" {
                continue;
            }
            let settings = with(parent, &field, value(&default));
            assert_eq!(settings.as_ref(), Ok(&plain), "spec{parent}/{field}: {default}");
            count += 1;
        }
    }
    assert!(count >= 16, "only {count} fields document their default");
}

#[test]
fn documented_limits_are_the_last_values_that_the_host_accepts() {
    let mut count = 0;
    for parent in ["/limits", "/rollout"] {
        for (field, limits) in documented(parent, "Limits: ") {
            let (accepted, refused) = if let Some((min, max)) = limits.split_once(" to ") {
                let bytes = |text: &str| Quantity::Text(text.to_owned()).bytes().unwrap();
                let (min, max) = (bytes(min), bytes(max));
                let below = min.checked_sub(1).map(Value::from);
                (
                    vec![min.into(), max.into()],
                    below.into_iter().chain([(max + 1).into()]).collect(),
                )
            } else {
                let (zero, max) = limits.split_once("at most ").unwrap();
                let none = (!zero.is_empty()).then(|| Value::from("0s"));
                let more = Value::from(format!("{max}1ms"));
                (vec![max.into()], none.into_iter().chain([more]).collect::<Vec<_>>())
            };
            for value in accepted {
                let settings = with(parent, &field, value);
                assert!(settings.is_ok(), "spec{parent}/{field}: {limits}: {settings:?}");
            }
            for value in refused {
                let settings = with(parent, &field, value.clone());
                assert!(settings.is_err(), "spec{parent}/{field}: {limits}: {value}");
            }
            count += 1;
        }
    }
    assert!(count >= 7, "only {count} fields document their limits");
}

#[test]
fn examples_of_the_reference_are_accepted() {
    let document: Value = serde_yaml_ng::from_str(MODULE).unwrap();
    let module = Module::from_value(&document).unwrap();
    let settings = ValidatedSpec::new(&module, SourceKind::Cluster, Limits::default(), None);
    let settings = settings.unwrap();
    let guest: Manifest = serde_json::from_str(MANIFEST).unwrap();
    assert_eq!(manifest::check(&guest), Ok(()));
    assert_eq!(parameters::check(&guest, &settings.parameters), Ok(()));
}
