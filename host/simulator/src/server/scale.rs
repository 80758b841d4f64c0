//! The subresource `scale`.

use serde_json::{Value, json};

use super::write::parse;
use super::{Ask, Outcome};
use crate::cluster::Cluster;
use crate::object::meta;
use crate::request::Answer;
use crate::status_error::StatusError;
use crate::value::{at, set};

/// Where figures are: the wanted one, the present one, the selector.
struct Paths {
    spec: Vec<String>,
    status: Vec<String>,
    selector: Option<Vec<String>>,
}

fn paths(ask: &Ask<'_>) -> Option<Paths> {
    let split = |path: &str| path.trim_start_matches('.').split('.').map(str::to_owned).collect();
    let Some(custom) = &ask.kind.custom else {
        let selector = Some(split("spec.selector"));
        return Some(Paths { spec: split("spec.replicas"), status: split("status.replicas"), selector });
    };
    let scale = custom.version(&ask.kind.version)?.scale.as_ref()?;
    Some(Paths {
        spec: split(&scale.spec),
        status: split(&scale.status),
        selector: scale.selector.as_deref().map(split),
    })
}

fn find<'a>(object: &'a Value, path: &[String]) -> Option<&'a Value> {
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    at(object, &path)
}

fn scale_of(object: &Value, paths: &Paths) -> Value {
    let mut metadata = json!({});
    for name in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(value) = object["metadata"].get(name) {
            metadata[name] = value.clone();
        }
    }
    let count = |path: &[String]| find(object, path).and_then(Value::as_i64).unwrap_or(0);
    let mut spec = json!({});
    if count(&paths.spec) != 0 {
        spec["replicas"] = count(&paths.spec).into();
    }
    let mut status = json!({ "replicas": count(&paths.status) });
    match paths.selector.as_ref().and_then(|path| find(object, path)) {
        Some(Value::String(text)) if !text.is_empty() => status["selector"] = text.as_str().into(),
        Some(selector @ Value::Object(_)) => {
            let pairs: Vec<String> = selector["matchLabels"]
                .as_object()
                .into_iter()
                .flatten()
                .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
                .collect();
            status["selector"] = pairs.join(",").into();
        }
        _ => {}
    }
    json!({"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": metadata, "spec": spec, "status": status})
}

impl Cluster {
    /// Reads the scale of an object.
    pub(super) fn get_scale(&mut self, ask: &Ask<'_>) -> Outcome {
        let paths = paths(ask).ok_or_else(StatusError::no_resource)?;
        let Some(object) = self.object(&ask.kind_key(), &ask.key()) else {
            return Err(StatusError::not_found(ask.named(&ask.target.name)));
        };
        Ok(Answer::json(200, &scale_of(&object, &paths)))
    }

    /// Writes it.
    pub(super) fn write_scale(&mut self, ask: &Ask<'_>) -> Outcome {
        let paths = paths(ask).ok_or_else(StatusError::no_resource)?;
        let Some(old) = self.object(&ask.kind_key(), &ask.key()) else {
            return Err(StatusError::not_found(ask.named(&ask.target.name)));
        };
        let mut scale = scale_of(&old, &paths);
        let body = parse(&ask.request.body).map_err(StatusError::bad_request)?;
        if ask.request.method == "PATCH" {
            let kind = if ask.request.content_type.starts_with("application/json-patch") {
                crate::patch::Kind::Json
            } else {
                crate::patch::Kind::Merge
            };
            scale = crate::patch::apply(kind, ask.kind.schema(), &scale, &ask.request.body)?;
        } else {
            scale = body;
        }
        let mut new = old.clone();
        let path: Vec<&str> = paths.spec.iter().map(String::as_str).collect();
        set(&mut new, &path, scale["spec"]["replicas"].as_i64().unwrap_or(0).into());
        let said = meta(&scale, "resourceVersion");
        if !said.is_empty() {
            new["metadata"]["resourceVersion"] = said.into();
        }
        self.track(ask, Some(&old), &mut new);
        let stored = self.store_change(ask, &old, new)?;
        Ok(Answer::json(200, &scale_of(&stored, &paths)))
    }
}
