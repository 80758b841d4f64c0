//! Asks the host for what the setting `ask` says: the digest of an image, the address of a name, or
//! whether a user may do something.

use kubewarden_policy_sdk::host_capabilities::kubernetes::{
    CanIRequest, ResourceAttributes, SubjectAccessReview, can_i,
};
use kubewarden_policy_sdk::host_capabilities::{net::lookup_host, oci::get_manifest_digest};
use kubewarden_policy_sdk::request::ValidationRequest;
use kubewarden_policy_sdk::{accept_request, protocol_version_guest, settings, validate_settings};
use serde::Deserialize;
use wapc_guest::{CallResult, register_function};

#[used]
#[unsafe(link_section = "io.kubewarden.metadata")]
static METADATA: [u8; include_bytes!("../metadata/images.json").len()] =
    *include_bytes!("../metadata/images.json");

/// What the policy asks for.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
enum Ask {
    #[default]
    Digest,
    Address,
    Rights,
}

/// The settings of the policy.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Settings {
    ask: Ask,
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
    match request.settings.ask {
        Ask::Digest => {
            let image = request.request.object.pointer("/spec/containers/0/image");
            let image = image.and_then(|image| image.as_str()).unwrap_or_default();
            get_manifest_digest(image)?;
        }
        Ask::Address => {
            lookup_host("registry.example.com")?;
        }
        Ask::Rights => {
            let resource_attributes = ResourceAttributes {
                resource: "pods".to_owned(),
                verb: "create".to_owned(),
                ..ResourceAttributes::default()
            };
            let user = request.request.user_info.username;
            let subject_access_review =
                SubjectAccessReview { groups: None, resource_attributes, user };
            can_i(CanIRequest { subject_access_review, disable_cache: false })?;
        }
    }
    accept_request()
}
