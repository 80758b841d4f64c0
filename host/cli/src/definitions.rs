//! The CustomResourceDefinitions of a guest, compared with its types, with its `crd.json`, and with
//! the ones that a cluster has.

use std::path::Path;

use innkeeper_cluster::{ApiClient, ApiError};
use innkeeper_contract::{JsonText, Kind};
use innkeeper_core::ObjectKey;
use innkeeper_core::crd_compat::changed_fields;
use innkeeper_modules::definitions::installable_definitions;
use serde_json::Value;

use crate::component::Opened;
use crate::inspect::crd_name;
use crate::out;

/// The most fields that one message names.
const FIELDS_MAX: usize = 8;

/// Says whether `crd.json` has changed since the component of its crate was built.
pub(crate) fn print_stale_component(opened: &Opened) {
    if let Some(message) = stale_component(&opened.path, &opened.guest.manifest().crds) {
        out::eprint(&message);
    }
}

/// The message if the component lies in its crate, and the `crd.json` there is another definition.
fn stale_component(component: &Path, definitions: &[JsonText]) -> Option<String> {
    let built = component.parent().filter(|folder| folder.ends_with("target/components"))?;
    let file = built.parent()?.parent()?.join("crd.json");
    let text = std::fs::read(&file).ok()?;
    let place = file.display();
    let Ok(definition) = serde_json::from_slice::<Value>(&text) else {
        return Some(format!(
            "warning: {place} is no JSON; run `UPDATE_EXPECT=1 cargo test`, which writes it"
        ));
    };
    let name = crd_name(&definition);
    let own = definitions.iter().map(JsonText::value).find(|one| crd_name(one) == name)?;
    let fields = changed_fields(&own, &definition, FIELDS_MAX);
    (!fields.is_empty()).then(|| {
        format!(
            "warning: {place} has changed since the component was built: {}; run `innkeeper build`",
            fields.join(", ")
        )
    })
}

/// Says where the definitions of a guest differ from the ones in the cluster, and who installs
/// them. `allowed` are the groups whose definitions the Module may install.
pub(crate) async fn print_installed(client: &ApiClient, opened: &Opened, allowed: &[String]) {
    let kind = Kind::cluster(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        "customresourcedefinitions",
    );
    for definition in installable_definitions(opened.guest.manifest()) {
        let name = crd_name(&definition);
        let installed = match client.get_as(&kind, &ObjectKey::new("", &name)).await {
            Ok(installed) => Some(installed),
            Err(ApiError::NotFound { .. }) => None,
            // The comparison is a service: the host reports what it cannot install.
            Err(_) => continue,
        };
        let group = definition["spec"]["group"].as_str().unwrap_or_default();
        let is_allowed = allowed.iter().any(|one| one == group);
        let message = installed_message(&definition, installed.as_ref(), is_allowed);
        if let Some(message) = message {
            let component = opened.path.display();
            out::eprint(&message.replace("COMPONENT", &component.to_string()));
        }
    }
}

/// The message about one definition and the one that is installed, with `COMPONENT` for the file.
fn installed_message(guests: &Value, installed: Option<&Value>, allowed: bool) -> Option<String> {
    let name = crd_name(guests);
    let group = guests["spec"]["group"].as_str().unwrap_or_default();
    let fields = installed.map(|one| changed_fields(one, guests, FIELDS_MAX)).unwrap_or_default();
    let what = match installed {
        None if allowed => return None,
        None => "is not installed".to_owned(),
        Some(_) if fields.is_empty() => return None,
        Some(_) => format!("differs from the guest's in {}", fields.join(", ")),
    };
    Some(if allowed {
        format!(
            "the installed definition {name} {what}; the host installs the guest's if it only adds to it"
        )
    } else {
        format!(
            "warning: the definition {name} {what}, and the Module may not install it; run `innkeeper inspect COMPONENT --crds | kubectl apply --server-side -f -`, or add {group} to spec.allowedCRDGroups"
        )
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn definition(field: &str) -> Value {
        json!({"metadata": {"name": "hellos.example.com"}, "spec": {"group": "example.com",
            "names": {"kind": "Hello", "plural": "hellos"}, "versions": [{"name": "v1",
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                (field): {"type": "string"}}}}}]}})
    }

    #[test]
    fn installed_definition_is_compared_and_the_message_says_who_installs_the_new_one() {
        let (old, new) = (definition("a"), definition("b"));
        assert_eq!(installed_message(&new, Some(&new), false), None);
        assert_eq!(installed_message(&new, None, true), None);
        let place = ".spec.versions[name=\"v1\"].schema.openAPIV3Schema.properties";
        assert_eq!(
            installed_message(&new, Some(&old), true).unwrap(),
            format!(
                "the installed definition hellos.example.com differs from the guest's in {place}.a, {place}.b; the host installs the guest's if it only adds to it"
            )
        );
        let missing = installed_message(&new, None, false).unwrap();
        assert!(missing.contains("is not installed, and the Module may not"), "{missing}");
        assert!(missing.contains("inspect COMPONENT --crds | kubectl apply"), "{missing}");
    }

    #[test]
    fn component_is_stale_when_the_definition_of_its_crate_has_changed() {
        let folder = tempfile::tempdir().unwrap();
        let component = folder.path().join("target/components/hello.wasm");
        let file = folder.path().join("crd.json");
        let stale = || stale_component(&component, &[definition("a").into()]);
        assert_eq!(stale(), None, "there is no crd.json");
        std::fs::write(&file, definition("a").to_string()).unwrap();
        assert_eq!(stale(), None);
        std::fs::write(&file, definition("b").to_string()).unwrap();
        let message = stale().unwrap();
        assert!(message.contains("has changed since the component was built"), "{message}");
        assert!(message.ends_with("run `innkeeper build`"), "{message}");
        std::fs::write(&file, "{").unwrap();
        assert!(stale().unwrap().contains("is no JSON"));
        assert_eq!(stale_component(&folder.path().join("hello.wasm"), &[]), None);
    }
}
