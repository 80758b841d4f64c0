//! Objects need labels, each with any value; a deletion is allowed with a warning.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use kubewarden_policy_sdk::request::ValidationRequest;
use kubewarden_policy_sdk::settings::Validatable;
use kubewarden_policy_sdk::{logging, protocol_version_guest, response, validate_settings};
use serde::Deserialize;
use slog::{Logger, info, o};
use wapc_guest::{CallResult, register_function};

#[used]
#[unsafe(link_section = "io.kubewarden.metadata")]
static METADATA: [u8; include_bytes!("../metadata/labels.json").len()] =
    *include_bytes!("../metadata/labels.json");

/// The settings of the policy.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Settings {
    labels: BTreeSet<String>,
}

impl Validatable for Settings {
    fn validate(&self) -> Result<(), String> {
        if self.labels.is_empty() {
            return Err("name at least one label in `labels`".to_owned());
        }
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
    let logger = Logger::root(logging::KubewardenDrain::new(), o!());
    info!(logger, "reviewing"; "user" => request.request.user_info.username.clone());
    if request.request.operation == "DELETE" {
        return answer(true, None, None, Some(vec!["labels are not checked".to_owned()]));
    }
    let labels = request.request.object.pointer("/metadata/labels").cloned().unwrap_or_default();
    let labels: BTreeMap<String, String> = serde_json::from_value(labels).unwrap_or_default();
    let missing: Vec<&String> =
        request.settings.labels.iter().filter(|name| !labels.contains_key(*name)).collect();
    if missing.is_empty() {
        return answer(true, None, None, None);
    }
    let message = format!("these labels are missing: {missing:?}");
    answer(false, Some(message), Some(422), None)
}

fn answer(
    accepted: bool,
    message: Option<String>,
    code: Option<u16>,
    warnings: Option<Vec<String>>,
) -> CallResult {
    let audit_annotations =
        message.as_ref().map(|_| HashMap::from([("checked".to_owned(), "labels".to_owned())]));
    let response = response::ValidationResponse {
        accepted,
        message,
        code,
        mutated_object: None,
        audit_annotations,
        warnings,
    };
    Ok(serde_json::to_vec(&response)?)
}
