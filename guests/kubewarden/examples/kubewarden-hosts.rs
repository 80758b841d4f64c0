//! No two Ingresses have the same host, and the namespace of an Ingress has the label `public`. The
//! setting `scope` says whether the policy looks at Ingresses of its namespace or at all.

use k8s_openapi::List;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::networking::v1::Ingress;
use kubewarden_policy_sdk::host_capabilities::kubernetes::{
    GetResourceRequest, ListAllResourcesRequest, ListResourcesByNamespaceRequest, get_resource,
    list_all_resources, list_resources_by_namespace,
};
use kubewarden_policy_sdk::request::ValidationRequest;
use kubewarden_policy_sdk::{
    accept_request, protocol_version_guest, reject_request, settings, validate_settings,
};
use serde::Deserialize;
use wapc_guest::{CallResult, register_function};

#[used]
#[unsafe(link_section = "io.kubewarden.metadata")]
static METADATA: [u8; include_bytes!("../metadata/hosts.json").len()] =
    *include_bytes!("../metadata/hosts.json");

const INGRESS: (&str, &str) = ("networking.k8s.io/v1", "Ingress");

/// Which Ingresses the policy compares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
enum Scope {
    #[default]
    Cluster,
    Namespace,
}

/// The settings of the policy.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Settings {
    scope: Scope,
}

impl settings::Validatable for Settings {
    fn validate(&self) -> Result<(), String> {
        Ok(())
    }
}

#[unsafe(no_mangle)]
extern "C" fn wapc_init() {
    register_function("validate", validate);
    register_function("validate_settings", validate_settings::<Settings>);
    register_function("protocol_version", protocol_version_guest);
}

fn validate(payload: &[u8]) -> CallResult {
    let request: ValidationRequest<Settings> = ValidationRequest::new(payload)?;
    let (name, namespace) = (&request.request.name, &request.request.namespace);
    if !is_public(namespace)? {
        return reject(format!("the namespace {namespace} has no label public"));
    }
    let asked: Ingress = serde_json::from_value(request.request.object.clone())?;
    let hosts: Vec<String> = hosts(&asked);
    let others = ingresses(request.settings.scope, namespace)?;
    let is_itself = |one: &&Ingress| {
        one.metadata.name.as_ref() == Some(name)
            && one.metadata.namespace.as_ref() == Some(namespace)
    };
    for other in others.items.iter().filter(|one| !is_itself(one)) {
        if let Some(host) = self::hosts(other).into_iter().find(|host| hosts.contains(host)) {
            let namespace = other.metadata.namespace.as_deref().unwrap_or_default();
            let name = other.metadata.name.as_deref().unwrap_or_default();
            return reject(format!("the host {host} belongs to {namespace}/{name}"));
        }
    }
    accept_request()
}

fn is_public(namespace: &str) -> kubewarden_policy_sdk::Result<bool> {
    let request = GetResourceRequest {
        api_version: "v1".to_owned(),
        kind: "Namespace".to_owned(),
        name: namespace.to_owned(),
        namespace: None,
        disable_cache: false,
        field_masks: Some(["metadata.labels".to_owned()].into()),
    };
    let found: Namespace = get_resource(&request)?;
    Ok(found.metadata.labels.is_some_and(|labels| labels.contains_key("public")))
}

fn ingresses(scope: Scope, namespace: &str) -> kubewarden_policy_sdk::Result<List<Ingress>> {
    let (api_version, kind) = (INGRESS.0.to_owned(), INGRESS.1.to_owned());
    match scope {
        Scope::Cluster => list_all_resources(&ListAllResourcesRequest {
            api_version,
            kind,
            label_selector: None,
            field_selector: None,
            field_masks: None,
        }),
        Scope::Namespace => list_resources_by_namespace(&ListResourcesByNamespaceRequest {
            api_version,
            kind,
            namespace: namespace.to_owned(),
            label_selector: None,
            field_selector: None,
            field_masks: None,
        }),
    }
}

fn hosts(ingress: &Ingress) -> Vec<String> {
    let rules = ingress.spec.iter().flat_map(|spec| spec.rules.iter().flatten());
    rules.filter_map(|rule| rule.host.clone()).collect()
}

fn reject(message: String) -> CallResult {
    reject_request(Some(message), None, None, None)
}
