//! Containers of Pods and of templates of Pods run with a read-only root file system unless they
//! say otherwise.

use k8s_openapi::api::core::v1::SecurityContext;
use kubewarden_policy_sdk::request::ValidationRequest;
use kubewarden_policy_sdk::{
    accept_request, mutate_pod_spec_from_request, protocol_version_guest, settings,
    validate_settings,
};
use serde::Deserialize;
use wapc_guest::{CallResult, register_function};

#[used]
#[unsafe(link_section = "io.kubewarden.metadata")]
static METADATA: [u8; include_bytes!("../metadata/defaults.json").len()] =
    *include_bytes!("../metadata/defaults.json");

/// The policy has no settings.
#[derive(Clone, Debug, Default, Deserialize)]
struct Settings {}

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
    let Some(mut spec) = request.extract_pod_spec_from_object()? else { return accept_request() };
    let mut is_changed = false;
    for container in &mut spec.containers {
        let context = container.security_context.get_or_insert_with(SecurityContext::default);
        if context.read_only_root_filesystem.is_none() {
            context.read_only_root_filesystem = Some(true);
            is_changed = true;
        }
    }
    if is_changed { mutate_pod_spec_from_request(request, spec) } else { accept_request() }
}
