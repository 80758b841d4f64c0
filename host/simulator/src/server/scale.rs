//! The subresource `scale`.

use serde_json::{Value, json};

use super::write::parse;
use super::{Ask, Outcome};
use crate::apply::fieldset::{Element, FieldSet};
use crate::apply::managed_fields::{Manager, Managers, Operation, Owned, decode, encode};
use crate::cluster::Cluster;
use crate::object::{meta, unset};
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
        return Some(Paths {
            spec: split("spec.replicas"),
            status: split("status.replicas"),
            selector,
        });
    };
    let scale = custom.version(&ask.kind.version)?.scale.as_ref()?;
    Some(Paths {
        spec: split(&scale.spec),
        status: split(&scale.status),
        selector: scale.selector.as_deref().map(split),
    })
}

fn dotted(path: &[String]) -> String {
    format!(".{}", path.join("."))
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
        let Some(object) = self.object(ask.kind_key(), ask.key()) else {
            return Err(StatusError::not_found(ask.named(&ask.target.name)));
        };
        if find(&object, &paths.spec).is_none_or(Value::is_null) {
            let text = format!("the spec replicas field {:?} does not exist", dotted(&paths.spec));
            let details = json!({"causes": [{"message": text}]});
            return Err(StatusError::new(
                500,
                "InternalError",
                format!("Internal error occurred: {text}"),
            )
            .details(details));
        }
        Ok(Answer::json(200, &scale_of(&object, &paths)))
    }

    /// Writes it.
    pub(super) fn write_scale(&mut self, ask: &Ask<'_>) -> Outcome {
        let paths = paths(ask).ok_or_else(StatusError::no_resource)?;
        let Some(old) = self.object(ask.kind_key(), ask.key()) else {
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
        let absent = find(&old, &paths.spec).is_none_or(Value::is_null);
        if absent && scale["spec"]["replicas"].is_null() && ask.kind.custom.is_some() {
            let text = format!("the spec replicas field {:?} cannot be empty", dotted(&paths.spec));
            return Err(StatusError::bad_request(text));
        }
        let mut new = Value::clone(&old);
        let path: Vec<&str> = paths.spec.iter().map(String::as_str).collect();
        set(&mut new, &path, scale["spec"]["replicas"].as_i64().unwrap_or(0).into());
        let said = meta(&scale, "resourceVersion");
        if !said.is_empty() {
            new["metadata"]["resourceVersion"] = said.into();
        }
        let changed = find(&old, &paths.spec) != find(&new, &paths.spec);
        let count = find(&new, &paths.spec).and_then(Value::as_i64).unwrap_or(0);
        share(ask, &mut new, &paths.spec, changed, count);
        let stored = self.store_change(ask, &old, new)?;
        Ok(Answer::json(200, &scale_of(&stored, &paths)))
    }
}

/// The version of scales.
const SCALE: &str = "autoscaling/v1";

/// Who owns the figure after a write of the scale: the owners are carried over to the scale and back, in
/// which those that update are told apart by the version in which they did.
fn share(ask: &Ask<'_>, object: &mut Value, path: &[String], changed: bool, count: i64) {
    let parents = decode(object["metadata"].get("managedFields")).unwrap_or_default();
    let path: Vec<Element> = path.iter().map(|name| Element::field(name)).collect();
    let mut only = FieldSet::default();
    only.insert(&path);
    let mut scales = Managers::new();
    let version = ask.kind.api_version();
    for (manager, _) in parents.iter().filter(|(_, owned)| owned.set.has_path(&path)) {
        let owned = Owned { set: only.clone(), version: version.clone(), time: None };
        scales.insert(manager.in_version(SCALE), owned);
    }
    // What nobody owned is nobody's afterwards.
    if changed && !scales.is_empty() && count == 0 {
        // No replicas are none in a scale.
        scales.clear();
    } else if changed && !scales.is_empty() {
        let manager = Manager::new(&ask.manager(), Operation::Update, SCALE, "scale");
        let owned = Owned { set: only.clone(), version: version.clone(), time: None };
        scales = Managers::from([(manager, owned)]);
    }
    let mut result = Managers::new();
    for (manager, mut owned) in parents {
        if owned.set.has_path(&path) && scales.remove(&manager).is_none() {
            owned.set = owned.set.difference(&only);
            if owned.set.is_empty() {
                continue;
            }
        }
        result.insert(manager, owned);
    }
    result.extend(scales);
    unset(object, "managedFields");
    if let Some(list) = encode(&result) {
        object["metadata"]["managedFields"] = list;
    }
}
